"""Problems about several labels per row: one ask for every label, or one ask for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setpoint.errors import BadProblem
from setpoint.measure.constraint import CUT, Constraint, FlaggedRows
from setpoint.measure.labels import OfLabel, OverLabels
from setpoint.measure.rate import Metric, Rate, spelled
from setpoint.problem.problem import Problem


@dataclass(frozen=True)
class LabelProblem(Problem):
    """A problem about several labels, each with its own objective, its own bounds and its own threshold.

    The objective of the whole is the mean over the labels, and all bounds of all labels must hold. `sp.ask` makes such
    problems, from a mapping or from text; `str(problem)` is the ask.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.ask({"spam": "minimize fnr where fpr <= 1%", "toxic": "minimize fnr where fpr <= 1%"})
        >>> print(problem)
        minimize fnr where fpr <= 1% for each of spam, toxic
        >>> problem == sp.ask(str(problem)), str(problem.each["toxic"])
        (True, 'minimize fnr where fpr <= 1%')
    """

    @classmethod
    def of(cls, asks: Mapping[str, Problem]) -> LabelProblem:
        """The problem with this ask for each label, in the order of the columns of scores and labels.

        Raises:
            BadProblem: If there is one label, or an ask has no single threshold.
        """
        if len(asks) < 2:
            raise BadProblem("an ask about labels names two labels or more; for one label write its ask alone")
        rates: list[Rate | Metric] = []
        bounds: list[Constraint] = []
        for place, (label, own) in enumerate(asks.items()):
            if not isinstance(label, str) or not label:
                raise BadProblem(f"labels have names, but got {label!r}; give {{'label': 'minimize ...'}}")
            rows = any(isinstance(c.quantity, FlaggedRows) for c in own.constraints)
            plain = own.kind == CUT and own.over is None and own.group is None and not rows
            if not plain or not isinstance(own.objective, Rate | Metric):
                raise BadProblem(
                    f"label {label!r} asks '{own}', but each of several labels has one threshold: ask for rates of two "
                    "classes, without areas, groups, review, classes, lists, columns or numbers of rows"
                )
            rates.append(own.objective)
            for c in own.constraints:
                assert isinstance(c.quantity, Rate | Metric)
                bounds.append(Constraint(OfLabel(c.quantity, label, place), c.relation, c.bound))
        up = tuple(own.maximize for own in asks.values())
        objective = OverLabels(tuple(asks), tuple(rates), up)
        return cls(objective, all(up), tuple(bounds))

    @classmethod
    def same(cls, problem: Problem, labels: Sequence[str]) -> LabelProblem:
        """The problem with the same ask for every label."""
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if list(labels).count(label) > 1)
            raise BadProblem(f"label {twice!r} is named twice; name each label once")
        return cls.of(dict.fromkeys(labels, problem))

    @property
    def over_labels(self) -> OverLabels:
        assert isinstance(self.objective, OverLabels)
        return self.objective

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the columns of scores and labels."""
        return self.over_labels.labels

    @property
    def each(self) -> dict[str, Problem]:
        """The ask of each label by itself."""
        whole = self.over_labels
        return {
            label: Problem(rate, up, tuple(c for _, c in self._plain_bounds(place)))
            for place, (label, rate, up) in enumerate(zip(whole.labels, whole.rates, whole.maximize))
        }

    def bounds_of(self, place: int) -> list[Constraint]:
        """The bounds of one label, by its place, as this problem has them."""
        return [own for own, _ in self._plain_bounds(place)]

    def _plain_bounds(self, place: int) -> list[tuple[Constraint, Constraint]]:
        own = [(c, c.quantity) for c in self.constraints]
        return [(c, Constraint(q.rate, c.relation, c.bound)) for c, q in own if isinstance(q, OfLabel) and q.k == place]

    @property
    def n_bounded(self) -> int:
        """The number of labels that have a bound."""
        return sum(bool(self.bounds_of(place)) for place in range(len(self.labels)))

    def resolved(self, names: Sequence[str]) -> LabelProblem:
        """The same problem with its labels in the order of these names, which are the columns of scores and labels.

        Raises:
            BadProblem: If the names are not those of the labels.
        """
        each = self.each
        for some, others, told in ((names, each, "has no ask"), (each, names, "is not among the columns")):
            odd = [name for name in some if name not in others]
            if odd:
                raise BadProblem(f"label {odd[0]!r} {told}; the asks are about {', '.join(map(repr, each))}")
        return LabelProblem.of({name: each[name] for name in names})

    @property
    def is_uniform(self) -> bool:
        """Whether all labels have the same ask."""
        return len(set(map(str, self.each.values()))) == 1

    def __str__(self) -> str:
        """The ask, in words that `ask` reads back."""
        each = self.each
        if self.is_uniform:
            return f"{next(iter(each.values()))} for each of {self._listed}"
        return "; ".join(f"{spelled(label)}: {own}" for label, own in each.items())

    @property
    def promise(self) -> str:
        """All constraints in words, as a certificate states them."""
        first = next(iter(self.each.values()))
        if self.is_uniform and first.constraints:
            return f"{first.promise} for each of {self._listed}"
        return super().promise

    @property
    def _listed(self) -> str:
        return ", ".join(map(spelled, self.labels))
