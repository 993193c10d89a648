"""What a report is made of: a point, the solvers that were trained, and their scores on the rows they are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadGroups, ShapeMismatch
from setpoint.measure.count import count
from setpoint.measure.sample import Sample, check_sample, name_groups
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Thresholds, places_among


@dataclass(frozen=True)
class Contender:
    """One trained solver: its thresholds, its scores by part, and what was measured on the way.

    `judged` holds `objective`, `feasible` and `rates` by part, `history` a row an epoch (`soft`, `train`, `held_out`).
    """

    name: str
    thresholds: Thresholds
    scores: Mapping[str, Any]
    judged: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    best_epoch: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class Material:
    """Everything that is shown. The first contender is the one that `point` belongs to; parts come in reading order.

    `facts` are pairs of a word and what there is to say about it; `groups` hold a name or number a row, by part;
    `refusal` says why there is no certificate, if one was asked for.
    """

    point: OperatingPoint
    contenders: Sequence[Contender]
    labels: Mapping[str, Any]
    groups: Mapping[str, Any] | None = None
    group_by: str = "group"
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    refusal: str = ""

    @property
    def problem(self) -> Problem:
        return self.point.problem

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
        return check_sample(contender.scores[part], self.labels[part]).double()

    def sample(self, contender: Contender, part: str) -> tuple[Sample, list[float]]:
        """What a threshold moves over, with groups where there are any, and the contender's own thresholds on it.

        Where every group has a threshold of its own, the scores are margins (score - threshold of the group), and
        the threshold is 0: moving it moves the thresholds of all groups together.
        """
        names, raw = self.group_names(), self.raw(contender, part)
        codes = self._codes(part, names, len(raw.scores)) if names else None
        scores, own = contender.thresholds.lowered(raw.scores, contender.thresholds.places(self._groups(part)))
        return Sample(scores, raw.labels, None, codes, len(names) or None), own.reshape(-1).tolist()

    def counts(self, contender: Contender, part: str) -> Tensor:
        """Counts of a part at the contender's own thresholds, by group where the problem compares groups."""
        sample, own = self.sample(contender, part)
        groups = None if self.problem.group is None else sample.groups
        thresholds = torch.tensor(own, dtype=torch.float64)
        return count(sample.scores, sample.labels, thresholds, groups=groups, n_groups=sample.n_groups)

    def judge(self, contender: Contender, part: str) -> OperatingPoint:
        """The contender's own threshold on the rows of a part."""
        point = replace(self.point, thresholds=contender.thresholds)
        return point.judge(contender.scores[part], self.labels[part], groups=self._groups(part))

    def _groups(self, part: str) -> Any:
        return None if self.groups is None else self.groups.get(part)

    def _codes(self, part: str, names: list[str], rows: int) -> Tensor:
        groups = self._groups(part)
        if groups is None:
            raise BadGroups(f"this point has one threshold a {self.grouping}; pass the groups of the {part} rows")
        codes = places_among(names, groups, self.grouping)
        if len(codes) != rows:
            raise ShapeMismatch(f"{len(codes)} groups and {rows} {part} rows must match")
        return codes
