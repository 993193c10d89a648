"""Several solvers on several random splits of one table, and which differ from cross-entropy by more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy

from setpoint.data.frame import Frame
from setpoint.errors import BadSetting, SetpointError
from setpoint.problem.caution import cautions_of_ask
from setpoint.problem.problem import Problem
from setpoint.run.run import Run
from setpoint.run.settings import Settings
from setpoint.run.side_by_side import MODEL
from setpoint.run.table import fit_table
from setpoint.train.default import BASELINE, SOLVERS, TUNED, Case, make_solver
from setpoint.train.kinds import kind_of

#: The solvers to compare by default, if they can solve the problem. A class weight is tuned for linear models only:
#: for networks it costs many trainings and has gained nothing.
USUAL = (BASELINE, "weighted", TUNED, "default", "implicit", "lagrangian", "auto")
#: The probability that any solver is called different from cross-entropy although none is.
LEVEL = 0.05


@dataclass(frozen=True)
class Standing:
    """The results of one solver, one value per split.

    Attributes:
        solver: The name of the solver.
        shipped: The objective on the test rows at the threshold that the model ships with.
        held: Whether the bounds hold on the test rows at that threshold.
        certified: Whether that threshold has a certificate.
        best: The objective at the best threshold of the test rows; None where no threshold meets the bounds.
        seconds: The time of the training.
        differences: `shipped` less that of plain cross-entropy on the same split.
        standard_error: The standard error of the mean difference; None below two splits.
        margin: The half-width of the interval of the mean difference; None below two splits.

    Example:
        >>> from setpoint.run.compare import Standing
        >>> both = (True, True)
        >>> Standing("auto", (0.3, 0.2), both, both, (0.3, 0.2), (1.0, 1.0), (-0.1, -0.1), 0.0, 0.01).is_clear
        True
    """

    solver: str
    shipped: tuple[float, ...]
    held: tuple[bool, ...]
    certified: tuple[bool, ...]
    best: tuple[float | None, ...]
    seconds: tuple[float, ...]
    differences: tuple[float, ...] = ()
    standard_error: float | None = None
    margin: float | None = None

    @property
    def mean_shipped(self) -> float:
        return statistics.fmean(self.shipped)

    @property
    def mean_best(self) -> float | None:
        known = [value for value in self.best if value is not None]
        return statistics.fmean(known) if known else None

    @property
    def difference(self) -> float | None:
        return statistics.fmean(self.differences) if self.differences else None

    @property
    def is_clear(self) -> bool:
        """Whether the mean difference is larger than its margin."""
        return self.margin is not None and self.difference is not None and abs(self.difference) > self.margin

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "solver": self.solver,
            "shipped_on_test": list(self.shipped),
            "mean_shipped_on_test": self.mean_shipped,
            "held": list(self.held),
            "share_held": sum(self.held) / len(self.held),
            "share_certified": sum(self.certified) / len(self.certified),
            "best_on_test": list(self.best),
            "mean_best_on_test": self.mean_best,
            "seconds": [round(value, 3) for value in self.seconds],
            "differences": list(self.differences),
            "difference": self.difference,
            "standard_error": self.standard_error,
            "margin": self.margin,
            "clear": self.is_clear,
        }


@dataclass(frozen=True)
class Comparison:
    """The comparison of several solvers on random splits of one table.

    Attributes:
        problem: The problem to solve.
        settings: How every solver was trained.
        seeds: The seeds of the splits.
        rows: The number of rows of each part.
        standings: The results of each solver; plain cross-entropy is the first.
        notes: Sentences about columns, values and choices that a user should know of.
        refusal: The first reason why a model has no certificate, where one was wanted.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.compare import compare_table
        >>> from setpoint.run.settings import Settings
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> problem = sp.ask("minimize fnr where fpr <= 10%")
        >>> found = compare_table(frame, "y", problem, Settings(), ["default"], trials=2)
        >>> found.seeds, found.rows["test"], found.standings[1].differences
        ((0, 1), 40, (0.0, 0.0))
    """

    problem: Problem
    settings: Settings
    seeds: tuple[int, ...]
    rows: dict[str, int]
    standings: tuple[Standing, ...]
    notes: tuple[str, ...]
    refusal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "ask": str(self.problem),
            "model": self.settings.model,
            "confidence": self.settings.confidence,
            "seeds": list(self.seeds),
            "rows": self.rows,
            "level": LEVEL,
            "refusal": self.refusal,
            "warnings": [caution.to_dict() for caution in cautions_of_ask(self.problem)],
            "solvers": [standing.to_dict() for standing in self.standings],
        }


def usual_solvers(problem: Problem, model: str) -> list[str]:
    """The default solvers to compare on a problem: those that do not refuse it."""
    if kind_of(model).method is not None:
        return ["default"]
    linear = model == "linear" and problem.group is None
    case = Case(problem, linear, whole=True, n_groups=None if problem.group is None else 2)
    return [name for name in USUAL if (linear if name == TUNED else _takes(name, case))]


def _takes(name: str, case: Case) -> bool:
    try:
        make_solver(name, case)
    except SetpointError:
        return False
    return True


def compare_table(
    frame: Frame,
    target: str,
    problem: Problem,
    settings: Settings,
    solvers: Sequence[str],
    trials: int,
    *,
    positive: str | None = None,
    on_split: Callable[..., None] | None = None,
) -> Comparison:
    """Train several solvers on several random splits of a table, each beside plain cross-entropy.

    Args:
        frame: The table.
        target: The name of the column to predict.
        problem: The problem to solve.
        settings: How to train; nothing is retrained on held-out rows.
        solvers: The names of the solvers.
        trials: The number of splits, with the seeds `settings.seed`, `settings.seed + 1`, ...
        positive: The positive class. None finds it, see `Target`.
        on_split: A function that is called with the solver, the rows of history so far and the expected number of rows.

    Returns:
        The results of each solver on each split.

    Raises:
        BadSetting: If a solver is unknown, or there is no trial.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.compare import compare_table
        >>> from setpoint.run.settings import Settings
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> problem = sp.ask("minimize fnr where fpr <= 10%")
        >>> found = compare_table(frame, "y", problem, Settings(), ["weighted"], trials=1)
        >>> [standing.solver for standing in found.standings]
        ['cross-entropy', 'weighted']
    """
    if trials < 1:
        raise BadSetting(f"trials must be at least 1, got {trials}")
    if settings.time is not None and trials > 1:
        raise BadSetting(f"--time splits the rows in one way only, so {trials} trials are the same; give --trials 1")
    for name in solvers:
        if name.startswith(MODEL):
            kind_of(name.removeprefix(MODEL))
    unknown = [name for name in solvers if name not in (*SOLVERS, TUNED) and not name.startswith(MODEL)]
    if unknown:
        raise BadSetting(f"solver {unknown[0]!r} is none of {', '.join([*SOLVERS, TUNED])}")
    names = [name for name in dict.fromkeys(solvers) if name != BASELINE]
    runs: dict[str, list[Run]] = {name: [] for name in [BASELINE, *names]}
    seeds = tuple(range(settings.seed, settings.seed + trials))
    notes: dict[str, None] = {}
    for done, seed in enumerate(seeds):

        def on_row(solver: str, row: int, rows: int, *doing: str, done: int = done) -> None:
            if on_split is not None:
                on_split(solver, done * rows + row, trials * rows, *doing)

        # Nothing is retrained on held-out rows: rows that only one solver gets would look like its merit.
        once = replace(settings, seed=seed, solver=BASELINE, refit=False)
        found = fit_table(frame, target, problem, once, positive=positive, solvers=names, on_row=on_row)
        notes.update(dict.fromkeys(found.notes))
        for one in found.runs:
            runs[one.name].append(one)
    rows = {part: size["rows"] for part, size in found.sizes.items()}
    plain = _standing(BASELINE, runs[BASELINE])
    others = [_held_against(_standing(name, runs[name]), plain, rows, len(names)) for name in names]
    refusal = next((one.refusal for own in runs.values() for one in own if one.refusal is not None), None)
    return Comparison(found.problem, settings, seeds, rows, (plain, *others), tuple(notes), refusal)


def _standing(name: str, runs: Sequence[Run]) -> Standing:
    best, judged = [run.best("test") for run in runs], [run.judged("test") for run in runs]
    return Standing(
        name,
        tuple(point.objective for point in judged),
        tuple(point.feasible for point in judged),
        tuple(point.certificate is not None for point in judged),
        tuple(point.objective if point.feasible else None for point in best),
        tuple(run.seconds for run in runs),
    )


def _held_against(standing: Standing, plain: Standing, rows: dict[str, int], compared: int) -> Standing:
    differences = [ours - theirs for ours, theirs in zip(standing.shipped, plain.shipped)]
    error = corrected_error(differences, rows["test"], sum(rows.values()) - rows["test"])
    margin = None
    if error is not None:
        # The level is divided by the number of solvers, so that one of many does not win by luck.
        margin = error * float(scipy.special.stdtrit(len(differences) - 1, 1 - LEVEL / compared / 2))
    return replace(standing, differences=tuple(differences), standard_error=error, margin=margin)


def corrected_error(differences: Sequence[float], test: int, rest: int) -> float | None:
    """The standard error of a mean over random splits that share rows: s sqrt(1 / J + test / rest).

    The second term (Nadeau and Bengio, 2003) is for the overlap: splits of one table differ less than new tables would.
    """
    if len(differences) < 2:
        return None
    return statistics.stdev(differences) * math.sqrt(1 / len(differences) + test / rest)
