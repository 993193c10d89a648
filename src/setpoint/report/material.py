"""The material of a report: an operating point, the trained models, and their scores and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.decide.calibrate import evaluate
from setpoint.decide.paired import Difference, difference
from setpoint.errors import BadGroups, ShapeMismatch
from setpoint.measure.classes import CLASSES
from setpoint.measure.count import count
from setpoint.measure.in_first import LISTS
from setpoint.measure.sample import Sample, check_sample, name_groups
from setpoint.problem.caution import Caution
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import read_sample
from setpoint.problem.thresholds import Thresholds, places_among
from setpoint.report.decision import Decision, decision_of
from setpoint.run.insight import Insight


@dataclass(frozen=True)
class TriedMethod:
    """A method that was tried: its objective on rows that it was not trained on, None where it was left out."""

    name: str
    objective: float | None
    seconds: float
    chosen: bool
    note: str


@dataclass(frozen=True)
class Contender:
    """One trained model in a report.

    Attributes:
        name: The name that the report shows.
        thresholds: The thresholds that the model runs at, shown with the digits that decide `scores`.
        bare: The bare cut of the calibration rows, where `thresholds` have a certificate.
        scores: One score per row, by part.
        judged: `objective`, `feasible` and `rates`, by part.
        history: One row per epoch, with `soft`, `train` and `held_out`.
        best_epoch: The place in the history of the epoch that was kept.
        seconds: How long training took, if known.
        tried: The methods that it was chosen from, itself among them, where there was a choice.

    Example:
        >>> import setpoint as sp
        >>> from setpoint.report.material import Contender
        >>> scores = [0.1, 0.4, 0.6, 0.9]
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", scores, [0, 1, 0, 1])
        >>> Contender("mine", point.thresholds, {"test": scores}).name
        'mine'
    """

    name: str
    thresholds: Thresholds
    scores: Mapping[str, Any]
    judged: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    best_epoch: int = 0
    seconds: float | None = None
    tried: Sequence[TriedMethod] = ()
    bare: Thresholds | None = None

    def __post_init__(self) -> None:
        if self.scores:
            seen = torch.cat([torch.as_tensor(scores).detach().double().cpu() for scores in self.scores.values()])
            object.__setattr__(self, "thresholds", self.thresholds.legible(seen))


@dataclass(frozen=True)
class Material:
    """Everything that a report shows.

    Attributes:
        point: The operating point of the first contender.
        contenders: The trained models, that of `point` first.
        labels: 0 or 1 per row, by part; the report speaks of the first part.
        groups: The name or number of each row's group, by part.
        group_by: The name of the groups, if the problem names none.
        facts: Pairs of a word and a text, shown as a list.
        notes: Sentences shown at the end.
        refusal: Why there is no certificate, if one was wanted.
        cost: How much better the objective is at the bare cut than at the certified point, on the calibration rows.
        cautions: The reasons to doubt the numbers.
        why_shipped: Why the first contender is shipped in the place of the named one, if it is.
        values: The values of the columns that the ask names, `(n, C)`, by part.
        lists: The name or number of the list of each row, by part.
        insight: The findings on the test rows, where the table was there to look at.
        no_insight: How to have it, where it was not.
        later: The decision in use by now, if `setpoint calibrate` has set it anew since the fit.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.report.material import Contender, Material
        >>> scores, labels = torch.linspace(-2, 2, 40), torch.arange(40) % 5 > 2
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", scores, labels)
        >>> mine = Contender("mine", point.thresholds, {"test": scores})
        >>> material = Material(point, [mine], {"test": labels})
        >>> material.parts, material.judge(mine, "test").feasible
        (['test'], True)
    """

    point: OperatingPoint
    contenders: Sequence[Contender]
    labels: Mapping[str, Any]
    groups: Mapping[str, Any] | None = None
    group_by: str = "group"
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    refusal: str = ""
    cost: float | None = None
    cautions: Sequence[Caution] = ()
    why_shipped: str = ""
    values: Mapping[str, Tensor] | None = None
    lists: Mapping[str, Any] | None = None
    insight: Insight | None = None
    no_insight: str = ""
    later: str = ""

    @property
    def problem(self) -> Problem:
        return self.point.problem

    @property
    def decision(self) -> Decision:
        """How the page shows the decisions of the point."""
        return decision_of(self.point)

    @property
    def parts(self) -> list[str]:
        return list(self.labels)

    @property
    def grouping(self) -> str:
        """The column that groups come from."""
        return self.problem.group or self.group_by

    def group_names(self) -> list[str]:
        """The groups of all parts, in the order of their thresholds if they have any."""
        if self.point.thresholds.by_group:
            return list(self.point.thresholds.by_group)
        parts = [] if self.groups is None else [self.groups[part] for part in self.parts]
        return sorted({name for groups in parts for name in name_groups(groups)[1]})

    def raw(self, contender: Contender, part: str) -> Sample:
        """Scores as the model gives them, and labels, in float64."""
        sample = check_sample(contender.scores[part], self.labels[part]).double()
        return sample if self.values is None else replace(sample, values=self.values[part])

    def sample(self, contender: Contender, part: str) -> tuple[Sample, list[float]]:
        """The scores that a threshold is moved over, with labels and groups, and the contender's own thresholds.

        Where every group has a threshold of its own, the scores are margins (score - threshold of the group), and
        the threshold is 0: moving it moves the thresholds of all groups together.
        """
        names, raw = self.group_names(), self.raw(contender, part)
        codes = self._codes(part, names, len(raw.scores)) if names else None
        scores, own = contender.thresholds.lowered(raw.scores, contender.thresholds.places(self._groups(part)))
        sample = Sample(scores, raw.labels, None, codes, len(names) or None, values=raw.values)
        return sample, own.reshape(-1).tolist()

    def counts(self, contender: Contender, part: str) -> Tensor:
        """Counts of a part at the contender's own thresholds, by group where the problem compares groups."""
        if self.values is not None:
            return contender.thresholds.count(self.raw(contender, part))
        if self.problem.kind in (CLASSES, LISTS):
            return contender.thresholds.count(self.read(contender, part))
        sample, own = self.sample(contender, part)
        groups = None if self.problem.group is None else sample.groups
        thresholds = torch.tensor(own, dtype=torch.float64)
        counts = count(sample.scores, sample.labels, thresholds, groups=groups, n_groups=sample.n_groups)
        return contender.thresholds.joined(counts)

    def judge(self, contender: Contender, part: str) -> OperatingPoint:
        """The contender's own threshold on the rows of a part."""
        point = replace(self.point, thresholds=contender.thresholds)
        given = {"weights": self._weights(part), "groups": self._groups(part), "lists": self._lists(part)}
        return point.judge(contender.scores[part], self.labels[part], **given)

    def best(self, contender: Contender, part: str) -> OperatingPoint:
        """The best cut of a part itself."""
        given = {"weights": self._weights(part), "groups": self._compared(part), "lists": self._lists(part)}
        return evaluate(self.problem, contender.scores[part], self.labels[part], **given)

    def on_equal_terms(self) -> tuple[Contender, Contender]:
        """The first and the last contender as they ship, or both at bare cuts where only one has a certificate."""
        both = self.contenders[0], self.contenders[-1]
        if (both[0].bare is None) == (both[1].bare is None):
            return both
        ours, theirs = (replace(one, thresholds=one.bare or one.thresholds, bare=None) for one in both)
        return ours, theirs

    def against(self, part: str) -> Difference | None:
        """The difference of the first contender from the last on the rows of a part, on equal terms."""
        if len(self.contenders) < 2:
            return None
        both = self.on_equal_terms()
        points, scores = [self.judge(one, part) for one in both], [one.scores[part] for one in both]
        values = None if self.values is None else self.values[part]
        groups, lists = self._compared(part), self._lists(part)
        found = difference(points[0], points[1], scores, self.labels[part], groups=groups, values=values, lists=lists)
        return replace(found, bare=both[0] is not self.contenders[0])

    def read(self, contender: Contender, part: str) -> Sample:
        """The rows of a part, as the kind of the problem reads them."""
        scores, names = torch.as_tensor(contender.scores[part]), self.point.classes
        return read_sample(self.problem, scores, self.labels[part], None, self._lists(part), names)

    def _lists(self, part: str) -> Any:
        return None if self.lists is None else self.lists[part]

    def _weights(self, part: str) -> dict[str, Tensor] | None:
        """The values of the columns that the ask names, by name."""
        return None if self.values is None else dict(zip(self.problem.columns, self.values[part].unbind(1)))

    def _compared(self, part: str) -> Any:
        return None if self.problem.group is None else self._groups(part)

    def _groups(self, part: str) -> Any:
        return None if self.groups is None else self.groups.get(part)

    def _codes(self, part: str, names: list[str], rows: int) -> Tensor:
        groups = self._groups(part)
        if groups is None:
            raise BadGroups(f"this point has one threshold per {self.grouping}; pass the groups of the {part} rows")
        codes = places_among(names, groups, self.grouping)
        if len(codes) != rows:
            raise ShapeMismatch(f"{len(codes)} groups and {rows} {part} rows must match")
        return codes
