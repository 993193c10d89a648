"""The thresholds of an operating point: one, one per bound of an area, one per group, or two with a review band.

Each kind applies itself to scores, counts a sample, describes itself in words and stores itself as plain data. Shifts
per class are in `problem/shifts.py`, the first rows of lists in `problem/first_of_list.py`. Another kind is another
class, and a line in `problem/read_thresholds.py`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from setpoint.errors import BadGroups
from setpoint.measure.count import count, count_sorted
from setpoint.measure.sample import Sample, numbered
from setpoint.measure.step import Step
from setpoint.on_use import torch
from setpoint.problem.legible import digits_between, spelled

if TYPE_CHECKING:
    from torch import Tensor

#: The decision to review a row.
REVIEW = -1
#: Thresholds as a user meets them: a number, one per bound of an area, or one per group by its name.
Threshold = float | tuple[float, ...] | dict[str, float]


class Thresholds(ABC):
    """The thresholds of a decision rule; a score passes when it is strictly above its threshold."""

    #: The plain value: a float, a tuple with one float per bound, or a dict with one float per group.
    plain: Threshold
    #: What is set, in words.
    noun: ClassVar[str] = "threshold"
    #: How many digits of a threshold are shown; 0 shows as many as read back as the very number.
    digits: int = 0
    #: What is true where bounds are broken, before the bounds; by default, that no such thing as the noun meets them.
    fails: ClassVar[str] = ""

    @abstractmethod
    def tensor(self) -> Tensor:
        """The thresholds as `measure.count` takes them, in float64: `(m,)`, or `(1, G)` for G groups."""

    @property
    def values(self) -> list[float]:
        """All thresholds as numbers, in their order."""
        plain = self.plain
        several = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, tuple) else (plain,)
        return list(map(float, several))

    @property
    def single(self) -> float | None:
        """The threshold where there is one for all scores, else None."""
        return None

    @property
    def by_group(self) -> dict[str, float]:
        """The threshold of each group by its name; empty where groups have no thresholds of their own."""
        return {}

    def stored(self) -> Any:
        """Plain data for JSON, which `read_thresholds` reads back."""
        return self.plain

    @abstractmethod
    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        """The decision on each row as a whole number: 1 for flagged, 0 for not flagged.

        `groups` has the group of each row, or its list, where the decision depends on it.

        Raises:
            BadGroups: each group has its own threshold, and `groups` are missing or hold a group without one.
        """

    def decide(self, scores: Tensor, groups: Any = None) -> Tensor:
        """`decided` for tensors."""
        decided = np.asarray(self.decided(scores.detach().double().cpu().numpy(), groups))
        return torch.from_numpy(decided).to(scores.device)

    def written(self, decisions: NDArray[np.int64]) -> NDArray[Any]:
        """Decisions as a file shows them."""
        return decisions

    def passes(self, scores: Tensor, groups: Any = None) -> Tensor:
        """Whether each score is above its threshold: `(n,)`, or `(n, m)` for m thresholds that all scores meet."""
        return self.decide(scores, groups) == 1

    def places(self, groups: Any) -> Tensor | None:
        """The place of each row's group among the thresholds; None where groups have no thresholds of their own."""
        return None

    def count(self, sample: Sample) -> Tensor:
        """True counts of a sample at these thresholds: `(m, 4)`, by group `(1, G, 4)`, of a band `(1, 6)`."""
        counts = count(
            sample.scores, sample.labels, self.tensor(), weights=sample.weights,
            groups=sample.groups if self.by_group else None, n_groups=sample.n_groups,
        )  # fmt: skip
        return self.joined(counts)

    def kinds(self, sample: Sample) -> Tensor:
        """How many rows of a sample are of each kind, `(4,)`: a row is of one kind, all groups and cuts together."""
        counts = self.count(sample)
        return counts.reshape(-1, counts.shape[-1]).sum(0)

    def soft_counts(self, sample: Sample, step: Step) -> Tensor:
        """Counts of a sample through a smooth step, all groups together: `(m, 4)`, of a band `(1, 6)`."""
        scores, own = self.lowered(sample.scores.double(), self.places(sample.groups))
        return self.joined(count(scores, sample.labels, own, step, weights=sample.weights))

    def joined(self, counts: Tensor) -> Tensor:
        """The counts of the decision, from the counts at each of the thresholds of `tensor`."""
        return counts

    def lowered(self, scores: Tensor, places: Tensor | None) -> tuple[Tensor, Tensor]:
        """Scores that share thresholds, and those: scores less the thresholds of their groups, if any, share a 0."""
        return scores, self.tensor()

    def legible(self, scores: Any) -> Self:
        """The same thresholds, shown with as few digits as decide each of these scores in the same way."""
        shown, seen = copy.copy(self), np.asarray(scores, dtype=np.float64)
        object.__setattr__(shown, "digits", self.enough_digits(seen) if seen.size else 0)
        return shown

    def enough_digits(self, scores: NDArray[np.float64]) -> int:
        """The digits that `legible` shows: those of the threshold that needs most, 0 if it needs all."""
        each = [
            digits_between(value, scores) for value in {min(self.values), max(self.values), *self.by_group.values()}
        ]
        return max(each) if all(each) else 0

    def describe(self, form: str = "{group} {value}") -> str:
        """The thresholds in words: of groups each in the given form if there is one, else the lowest and highest."""
        return f"{self.shown(min(self.values))} ... {self.shown(max(self.values))}"

    def rule(self, form: str = "{group} {value}") -> str:
        """The decision rule as an instruction, with the thresholds in the form of `describe`."""
        return f"Run at threshold {self.describe(form)}"

    def shown(self, value: float) -> str:
        """The text of one of the thresholds."""
        return spelled(value, self.digits)


@dataclass(frozen=True)
class OneThreshold(Thresholds):
    """One threshold for all scores.

    Args:
        plain: the threshold.

    Example:
        >>> import torch
        >>> from setpoint.problem.thresholds import OneThreshold
        >>> OneThreshold(0.5).passes(torch.tensor([0.5, 0.6]).double()).tolist()
        [False, True]
    """

    plain: float

    @property
    def single(self) -> float:
        return self.plain

    def tensor(self) -> Tensor:
        return torch.tensor([self.plain], dtype=torch.float64)

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        return (scores > self.plain).astype(np.int64)

    def count(self, sample: Sample) -> Tensor:
        """True counts, `(1, 4)`; for a sample with values `(1, 1 + C, 4)`: of rows, then of each column."""
        return _per_column(sample, super().count)

    def soft_counts(self, sample: Sample, step: Step) -> Tensor:
        """The same through a smooth step."""
        return _per_column(sample, lambda own: super(OneThreshold, self).soft_counts(own, step))

    def describe(self, form: str = "") -> str:
        return self.shown(self.plain)


@dataclass(frozen=True)
class PerBound(Thresholds):
    """One threshold per bound of an area's stretch, so that each score gets one decision per bound.

    Args:
        plain: the thresholds, in the order of the bounds.

    Example:
        >>> import torch
        >>> from setpoint.problem.thresholds import PerBound
        >>> PerBound((0.1, 0.2)).passes(torch.tensor([0.15, 0.3]).double()).tolist()
        [[True, False], [True, True]]
    """

    plain: tuple[float, ...]

    def stored(self) -> list[float]:
        return list(self.plain)

    def tensor(self) -> Tensor:
        return torch.tensor(self.plain, dtype=torch.float64)

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        return (scores[..., None] > np.array(self.plain)).astype(np.int64)

    def count(self, sample: Sample) -> Tensor:
        if len(self.plain) == 1:
            return super().count(sample)
        return count_sorted(sample.scores, sample.labels, self.tensor().to(sample.scores.device), sample.weights)


@dataclass(frozen=True)
class PerGroup(Thresholds):
    """One threshold per group.

    Args:
        plain: the threshold of each group by its name.
        column: the name of the column of groups, for sentences.

    Example:
        >>> import torch
        >>> from setpoint.problem.thresholds import PerGroup
        >>> limits = PerGroup({"a": 0.1, "b": 0.7}, "site")
        >>> limits.passes(torch.tensor([0.5, 0.5]).double(), ["a", "b"]).tolist()
        [True, False]
    """

    plain: dict[str, float]
    column: str = "group"

    @property
    def by_group(self) -> dict[str, float]:
        return self.plain

    def tensor(self) -> Tensor:
        return torch.tensor([list(self.plain.values())], dtype=torch.float64)

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        return (scores > np.array(self.values)[self._places(groups)]).astype(np.int64)

    def places(self, groups: Any) -> Tensor:
        return torch.from_numpy(self._places(groups))

    def _places(self, groups: Any) -> NDArray[np.int64]:
        if groups is None:
            raise BadGroups(f"this point has one threshold a {self.column}; pass groups=")
        return _places_among(self.plain, groups, self.column)

    def lowered(self, scores: Tensor, places: Tensor | None) -> tuple[Tensor, Tensor]:
        own = self.tensor()[0, places].to(scores.device)
        return scores - own, torch.zeros((), dtype=torch.float64, device=scores.device)

    def describe(self, form: str = "{group} {value}") -> str:
        each = [form.format(group=group, value=self.shown(value)) for group, value in self.plain.items()]
        return ", ".join(each) if form else super().describe()


@dataclass(frozen=True)
class Band(Thresholds):
    """Two cuts: scores above the upper one are flagged, scores between the two are reviewed, the rest is not flagged.

    Args:
        low: the lower cut; a score of just this value is not flagged.
        high: the upper cut; a score of just this value is reviewed. Where both cuts are equal, no row is reviewed.

    Example:
        >>> import torch
        >>> from setpoint.problem.thresholds import Band
        >>> Band(0.25, 0.75).decide(torch.tensor([0.1, 0.25, 0.5, 0.9]).double()).tolist()
        [0, 0, -1, 1]
    """

    low: float
    high: float
    noun: ClassVar[str] = "pair of cuts"

    @property
    def plain(self) -> dict[str, float]:  # type: ignore[override]
        return {"low": self.low, "high": self.high}

    def tensor(self) -> Tensor:
        return torch.tensor([self.high, self.low], dtype=torch.float64)

    @property
    def values(self) -> list[float]:
        return [self.high, self.low]

    def moved_to(self, values: Sequence[float]) -> Band:
        """The band with these cuts, in the order of `values`."""
        high, low = values
        return Band(low, high)

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        """1 for flagged rows, 0 for rows that are not flagged, -1 (`REVIEW`) for rows to review."""
        return np.where(scores > self.high, 1, np.where(scores > self.low, REVIEW, 0))

    def written(self, decisions: NDArray[np.int64]) -> NDArray[Any]:
        return np.where(decisions == REVIEW, "review", decisions.astype(str))

    def joined(self, counts: Tensor) -> Tensor:
        """The six counts of a band, `(1, 6)`, from the four counts at its upper cut and the four at its lower cut."""
        (tp, fp, _, _), (passed_tp, passed_fp, fn, tn) = (at_cut.unbind(-1) for at_cut in counts.unbind(-2))
        return torch.stack([tp, fp, fn, tn, passed_tp - tp, passed_fp - fp], dim=-1).unsqueeze(0)

    def describe(self, form: str = "") -> str:
        return f"{self.shown(self.low)} and {self.shown(self.high)}"

    def rule(self, form: str = "") -> str:
        if self.low == self.high:
            return f"Flag above {self.shown(self.high)}, review nothing"
        return f"Flag above {self.shown(self.high)}, review from {self.shown(self.low)} to {self.shown(self.high)}"


def _per_column(sample: Sample, count_of: Callable[[Sample], Tensor]) -> Tensor:
    """Counts of the rows, and of each column of values with the rows weighted by it: `(1, 1 + C, 4)`."""
    if sample.values is None:
        return count_of(sample)
    plain = replace(sample, values=None)
    weights = torch.ones_like(sample.values[:, 0]) if sample.weights is None else sample.weights.double()
    each = [replace(plain, weights=weights * column) for column in sample.values.unbind(1)]
    return torch.stack([count_of(own).double() for own in (plain, *each)], dim=1)


def heaviest_of(sample: Sample) -> float | Tensor:
    """The weight of the heaviest row; with values one number per row of the counts."""
    if sample.values is None:
        return 1.0 if sample.weights is None or not len(sample.weights) else float(sample.weights.max())
    weights = torch.ones_like(sample.values[:, 0]) if sample.weights is None else sample.weights.double()
    return torch.cat([weights.unsqueeze(-1), weights.unsqueeze(-1) * sample.values], dim=1).amax(0)


def places_among(known: Iterable[str], groups: Any, column: str) -> Tensor:
    """The place of each row's group among the known ones, or a BadGroups that names the unknown group."""
    return torch.from_numpy(_places_among(known, groups, column))


def _places_among(known: Iterable[str], groups: Any, column: str) -> NDArray[np.int64]:
    names, codes = numbered(groups)
    places = {name: place for place, name in enumerate(known)}
    for name in names:
        if name not in places:
            raise BadGroups(f"no threshold for {column} {name!r}; known are {', '.join(places)}")
    return np.array([places[name] for name in names], dtype=np.int64)[codes]
