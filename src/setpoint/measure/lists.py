"""Rows in lists, such as the documents of a query: ordered by their scores within the list that each belongs to.

Rows with tied scores share their places: counts are the mean over all orders of the ties, so they do not depend on the
order in which rows come. Where a decision must be made, tied rows keep the order in which they come in their list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadGroups, BadWeights, ShapeMismatch
from setpoint.measure.sample import Sample, present_values
from setpoint.measure.step import Step
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


NO_LISTS = "the ask is about lists; pass lists=, the name or number of the list of each row"


def number_lists(lists: Any) -> tuple[Tensor, NDArray[Any]]:
    """The number of the list of each row, from 0 up, and the value that names each list.

    Raises:
        BadGroups: If the list of a row is missing.
        ShapeMismatch: If the lists are not one value per row.

    Example:
        >>> from setpoint.measure.lists import number_lists
        >>> number_lists(["b", "a", "b"])[0].tolist()
        [1, 0, 1]
    """
    names, numbers = _numbered(lists)
    return torch.from_numpy(numbers), names


def _numbered(lists: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    values = present_values(lists, "lists", "drop those rows, or name the list of each")
    if values.ndim != 1:
        raise ShapeMismatch(f"lists {values.shape} must name one list per row, shape (n,)")
    names, numbers = np.unique(values if values.dtype.kind in "biuf" else values.astype(str), return_inverse=True)
    return names, numbers.astype(np.int64)


def ranks_in_lists(scores: NDArray[np.float64], lists: Any) -> NDArray[np.int64]:
    """The rank of each row in its list, from 1 up; rows with tied scores keep their order in the list.

    Args:
        scores: one score per row.
        lists: the name or number of the list of each row.

    Raises:
        BadGroups: If lists are missing.
        ShapeMismatch: If there are more or fewer lists than rows.

    Example:
        >>> import numpy as np
        >>> from setpoint.measure.lists import ranks_in_lists
        >>> ranks_in_lists(np.array([0.2, 0.9, 0.4, 0.4]), ["a", "a", "b", "b"]).tolist()
        [2, 1, 1, 2]
    """
    if lists is None:
        raise BadGroups(NO_LISTS)
    numbers = _numbered(lists)[1]
    if len(numbers) != len(scores):
        raise ShapeMismatch(f"{len(scores)} scores came with the lists of {len(numbers)} rows")
    order = np.lexsort((-scores, numbers))
    sizes = np.bincount(numbers)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1) - (np.cumsum(sizes) - sizes)[numbers[order]]
    return ranks


def with_lists(sample: Sample, lists: Any) -> Sample:
    """The sample with the number of the list of each row.

    Raises:
        BadGroups: If lists are missing.
        BadWeights: If the rows of a list differ in weight.
        ShapeMismatch: If there are more or fewer lists than rows.
    """
    if lists is None:
        raise BadGroups(NO_LISTS)
    numbers, names = number_lists(lists)
    if len(numbers) != len(sample.scores):
        raise ShapeMismatch(f"{len(sample.scores)} scores came with the lists of {len(numbers)} rows")
    own = replace(sample, lists=numbers.to(sample.scores.device))
    if sample.weights is not None and len(numbers):
        heaviest = Ordered(own).per_list(sample.weights, "amax")
        odd = (sample.weights != heaviest[numbers]).nonzero()
        if len(odd):
            raise BadWeights(
                f"the rows of list {str(names[numbers[odd[0, 0]]])!r} differ in weight; a list counts as a whole, so "
                "give all its rows the same weight"
            )
    return own


@dataclass(frozen=True)
class Ordered:
    """The rows of a sample, list by list, from the highest score to the lowest.

    Attributes:
        sample: The rows, with the number of the list of each; numbers may be missing.
    """

    sample: Sample

    @cached_property
    def numbers(self) -> Tensor:
        """The number of the list of each row, from 0 up without gaps."""
        assert self.sample.lists is not None
        numbers: Tensor = self.sample.lists.unique(return_inverse=True)[1]
        return numbers

    @cached_property
    def sizes(self) -> Tensor:
        """The number of rows of each list."""
        return torch.bincount(self.numbers)

    @cached_property
    def order(self) -> Tensor:
        """Row numbers, list by list; tied rows keep their order."""
        by_score = self.sample.scores.detach().argsort(descending=True, stable=True)
        return by_score[self.numbers[by_score].argsort(stable=True)]

    @cached_property
    def places(self) -> Tensor:
        """The place in its list of each row of `order`, from 0 up."""
        starts = self.sizes.cumsum(0) - self.sizes
        return torch.arange(len(self.order), device=self.order.device) - starts[self.numbers[self.order]]

    @property
    def ranks(self) -> Tensor:
        """The rank of each row of the sample in its list, from 1 up."""
        ranks = torch.empty_like(self.order)
        ranks[self.order] = self.places + 1
        return ranks

    def per_list(self, values: Tensor, how: str = "sum") -> Tensor:
        """The sum, or the largest, of the values of the rows of each list."""
        return values.new_zeros(len(self.sizes)).scatter_reduce(0, self.numbers, values, how, include_self=how == "sum")

    def counts(self, depth: int) -> Tensor:
        """The counts of each list when its first d rows are flagged, `(D, Q, 6)`, for d = 1 ... D.

        D is `depth`, or the length of the longest list if that is less. The six numbers are tp, fp, fn and tn, the
        probability that a positive is flagged, and the weight of the list.
        """
        depth = max(1, min(depth, int(self.sizes.max()) if len(self.sizes) else 1))
        labels, numbers = self.sample.labels[self.order].double(), self.numbers[self.order]
        share, clear = _tied(self.sample.scores[self.order], numbers, labels, self.places)
        kept = self.places < depth
        spots = numbers[kept], self.places[kept]
        shape = len(self.sizes), depth
        hits = labels.new_zeros(shape).index_put(spots, share[kept]).cumsum(1)
        missed = labels.new_ones(shape).index_put(spots, clear[kept]).cumprod(1)
        sizes, positives = self.sizes.unsqueeze(1).double(), self.per_list(self.sample.labels.double()).unsqueeze(1)
        flagged = torch.arange(1, depth + 1, device=sizes.device).double().minimum(sizes)
        weights = torch.ones_like(sizes)
        if self.sample.weights is not None:
            weights = self.per_list(self.sample.weights.double(), "amax").unsqueeze(1)
        fp = flagged - hits
        each = [hits, fp, positives - hits, sizes - positives - fp, 1 - missed, weights.expand(shape)]
        return torch.stack(each, dim=-1).transpose(0, 1)

    def soft_counts(self, k: int, step: Step) -> Tensor:
        """The same through a smooth step, for d = k alone, `(1, Q, 6)`: half way from the k-th score to the next."""
        scores, ends = self.sample.scores.double(), []
        for place in (k - 1, k):
            end = scores.new_full((len(self.sizes),), -torch.inf)
            rows = self.order[self.places == place]
            ends.append(end.index_put((self.numbers[rows],), scores[rows]))
        middle = torch.where(ends[1].isfinite(), (ends[0] + ends[1]) / 2, -torch.inf)
        margin = torch.where(self.sizes[self.numbers] > k, scores - middle[self.numbers], torch.inf)
        above, labels = step.above(margin), self.sample.labels.double()
        tp, fp = self.per_list(above * labels), self.per_list(above * (1 - labels))
        counts = self.counts(k)[-1]
        positives, negatives = counts[:, 0] + counts[:, 2], counts[:, 1] + counts[:, 3]
        soft = [tp, fp, positives - tp, negatives - fp, tp.clamp(max=1), counts[:, 5]]
        return torch.stack(soft, dim=-1).unsqueeze(0)


def _tied(scores: Tensor, numbers: Tensor, labels: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """For rows in order: the share of positives among the rows tied with each, and a probability.

    The probability is that of no positive in the place of the row, if there is none in the places above it.
    """
    first = torch.ones_like(numbers, dtype=torch.bool)
    first[1:] = (numbers[1:] != numbers[:-1]) | (scores[1:] != scores[:-1])
    block = first.cumsum(0) - 1
    sizes = torch.bincount(block).double()
    positives = sizes.new_zeros(len(sizes)).index_add(0, block, labels)
    drawn = (places - places[first][block]).double()
    left = sizes[block] - drawn
    return (positives / sizes)[block], ((left - positives[block]) / left).clamp(min=0)
