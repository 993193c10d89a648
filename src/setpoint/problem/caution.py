"""Cautions: what a user should know before trusting an answer; those of an ask can be told before any data are seen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from setpoint.errors import DoubtfulAsk, SetpointError
from setpoint.measure.constraint import Constraint
from setpoint.measure.rate import Gap, Rate, flagged, precision, recall
from setpoint.measure.worth import Weighted
from setpoint.on_use import torch
from setpoint.plain import text
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor

#: Shares of positives, in a table of so many rows, at which an ask is tried out.
_POSITIVES, _ROWS = (0.001, 0.5, 0.999), 1e6


@dataclass(frozen=True)
class Caution:
    """A reason to doubt an answer.

    Attributes:
        code: A name that does not change between versions, such as "cannot-bind".
        sentence: The reason, in words.

    Example:
        >>> import setpoint as sp
        >>> from setpoint.problem.caution import cautions_of_ask
        >>> [caution.code for caution in cautions_of_ask(sp.ask("minimize fnr where fpr <= 1"))]
        ['cannot-bind', 'trivial']
    """

    code: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """Plain data, ready for JSON."""
        return {"code": self.code, "sentence": self.sentence}

    @classmethod
    def from_dict(cls, data: Any) -> Caution:
        """The caution that `to_dict` wrote."""
        return cls(text(data["code"]), text(data["sentence"]))


def cautions_of_ask(problem: Problem) -> list[Caution]:
    """Cautions that follow from the ask alone: bounds that cannot bind, and asks that need no model or flag nothing."""
    if isinstance(problem, LabelProblem):
        each = list(problem.each.items())[: 1 if problem.is_uniform else None]
        told = [(label, caution) for label, own in each for caution in cautions_of_ask(own)]
        of = "" if problem.is_uniform else "label {!r}: "
        return [Caution(caution.code, of.format(label) + caution.sentence) for label, caution in told]
    found = [_cannot_bind(constraint) for constraint in problem.constraints if always_holds(constraint)]
    objective = problem.objective
    if problem.over is not None or not isinstance(objective, Rate | Weighted) or not objective.is_share:
        return found
    for everything, words in ((True, "everything"), (False, "nothing")):
        if _is_best(problem, [_extreme(share, everything=everything) for share in _POSITIVES]):
            why = f"flagging {words} makes {problem.objective} as good as it can be"
            kept = " and keeps every bound" if problem.constraints else ""
            more = "bound the other kind of mistake too, such as fpr <= 1%" if everything else "bound recall too"
            return [*found, Caution("trivial", f"'{problem}' needs no model: {why}{kept}; {more}")]
    if _is_best(problem, [_one_flagged(share) for share in _POSITIVES]):
        found.append(Caution("best-when-little-is-flagged", _little(problem)))
    return found


def warn_of_ask(problem: Problem) -> None:
    """A Python warning for each caution of an ask."""
    for caution in cautions_of_ask(problem):
        warnings.warn(caution.sentence, DoubtfulAsk, stacklevel=3)


def always_holds(constraint: Constraint) -> bool:
    """Whether a bound on a share holds whatever is flagged."""
    ends = {"<=": 1.0, ">=": 0.0}
    return constraint.quantity.is_share and constraint.bound == ends.get(constraint.relation)


def _cannot_bind(constraint: Constraint) -> Caution:
    hint = f"; did you mean {constraint.quantity} <= 1%?" if constraint.relation == "<=" else ""
    meant = "no share is above 100%" if constraint.relation == "<=" else "no share is below 0%"
    return Caution("cannot-bind", f"the bound {constraint} always holds, since {meant}{hint}")


def _extreme(positives: float, *, everything: bool) -> Tensor:
    """The counts of a table of which all rows are flagged, or none."""
    some, others = positives * _ROWS, (1 - positives) * _ROWS
    return torch.tensor([some, others, 0.0, 0.0] if everything else [0.0, 0.0, some, others], dtype=torch.float64)


def _one_flagged(positives: float) -> Tensor:
    """The counts of a table of which one row is flagged, a positive one."""
    return _extreme(positives, everything=False) + torch.tensor([1.0, 0.0, -1.0, 0.0], dtype=torch.float64)


def _is_best(problem: Problem, tables: list[Tensor]) -> bool:
    """Whether all bounds hold, and the objective is perfect, at the counts of every table."""
    best = 1.0 if problem.maximize else 0.0
    try:
        return all(
            float(problem.objective(counts)) == best and all(_holds(c, counts) for c in problem.constraints)
            for counts in (_valued(problem, table) for table in tables)
        )
    except (SetpointError, ArithmeticError, RuntimeError):
        # A metric of the user's own may not take such counts; then nothing is known.
        return False


def _holds(constraint: Constraint, counts: Tensor) -> bool:
    """Whether a bound holds at the counts; groups that are compared all look alike."""
    return bool(constraint.holds(torch.stack([counts, counts]) if isinstance(constraint.quantity, Gap) else counts))


def _valued(problem: Problem, counts: Tensor) -> Tensor:
    """The counts that the problem looks at, where every row has the value 1 in every column."""
    return counts.expand(1 + len(problem.columns), 4) if problem.columns else counts


def _little(problem: Problem) -> str:
    """The sentence on an objective that is best when next to nothing is flagged, with what may have been meant."""
    allowed = f", and {problem.promise} allows that" if problem.constraints else ""
    text = f"{problem.objective} is best when almost nothing is flagged{allowed}: a single flagged row can make it 100%"
    tops = [c for c in problem.constraints if bool(c.quantity == flagged) and c.relation == "<="]
    meant = []
    if problem.constraints:
        meant.append(f"'{replace(problem, objective=recall, maximize=True)}'")
    if tops:
        exact = tuple(replace(c, relation="==") if c in tops else c for c in problem.constraints)
        meant.append(f"'{replace(problem, constraints=exact)}'")
    elif bool(problem.objective == precision):
        meant.append(f"'{replace(problem, constraints=(*problem.constraints, recall >= 0.8))}'")
    return f"{text}; did you mean {', or '.join(meant)}?" if meant else text
