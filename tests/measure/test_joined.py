"""Parts of one batch joined across processes, which here are threads that hand each other what they have."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import BadIndex, ShapeMismatch
from setpoint.measure.joined import joined
from setpoint.measure.sample import Sample
from setpoint.processes import ALONE, Processes


class Exchange:
    def __init__(self, size):
        self.barrier, self.parts = threading.Barrier(size, timeout=20), [None] * size

    def __call__(self, rank, part):
        self.parts[rank] = part
        self.barrier.wait()
        found = [other.clone() for other in self.parts]
        self.barrier.wait()
        return found


@dataclass(frozen=True)
class Threads(Processes):
    exchange: Any = None

    def all(self, part):
        return self.exchange(self.rank, part)


def join(parts, indexes=None, averaged=True):
    """What each process gets."""
    exchange = Exchange(len(parts))

    def one(rank):
        processes = Threads(len(parts), rank, None, averaged, exchange)
        return joined(replace(parts[rank], processes=processes), None if indexes is None else indexes[rank])

    with ThreadPoolExecutor(len(parts)) as pool:
        return [found.result() for found in [pool.submit(one, rank) for rank in range(len(parts))]]


def part(size, draw, *, weights=False, groups=False, dtype=torch.float32, width=()):
    return Sample(
        torch.randn(size, *width, generator=draw, dtype=dtype),
        torch.randint(0, 2, (size,), generator=draw).to(dtype),
        torch.rand(size, generator=draw, dtype=dtype) + 0.5 if weights else None,
        torch.randint(0, 3, (size,), generator=draw) if groups else None,
    )


@given(
    sizes=st.lists(st.integers(0, 4), min_size=2, max_size=3),
    weighted=st.lists(st.booleans(), min_size=3, max_size=3),
    double=st.lists(st.booleans(), min_size=3, max_size=3),
    groups=st.booleans(),
    width=st.sampled_from([(), (3,)]),
    seed=st.integers(0, 99),
)
def test_every_process_gets_all_samples_in_the_order_of_ranks(sizes, weighted, double, groups, width, seed):
    draw = torch.Generator().manual_seed(seed)
    dtypes = [torch.float64 if one else torch.float32 for one in double]
    parts = [
        part(size, draw, weights=weighted[rank], groups=groups, dtype=dtypes[rank], width=width)
        for rank, size in enumerate(sizes)
    ]
    # Beyond what float32 can count.
    indexes = [torch.arange(size) + 2**24 + 100 * rank + 1 for rank, size in enumerate(sizes)]
    precision = torch.float64 if any(double[: len(sizes)]) else torch.float32
    ones = [torch.ones(len(one.scores), dtype=precision) for one in parts]
    for rank, (whole, index) in enumerate(join(parts, indexes)):
        assert whole.processes is ALONE
        assert torch.equal(whole.scores, torch.cat([one.scores.to(precision) for one in parts]))
        assert torch.equal(whole.labels, torch.cat([one.labels for one in parts]).to(whole.labels.dtype))
        assert whole.labels.dtype == parts[rank].labels.dtype
        if any(weighted[: len(sizes)]):
            each = [own if one.weights is None else one.weights.to(precision) for one, own in zip(parts, ones)]
            assert torch.equal(whole.weights, torch.cat(each))
            assert whole.weights.dtype == precision
        else:
            assert whole.weights is None
        assert (whole.groups is None) == (not groups)
        if groups:
            assert torch.equal(whole.groups, torch.cat([one.groups for one in parts]))
        assert torch.equal(index, torch.cat(indexes))


@pytest.mark.parametrize("averaged", [True, False])
def test_gradients_flow_to_the_own_part_alone(averaged):
    draw = torch.Generator().manual_seed(0)
    parts = [part(size, draw) for size in (2, 3, 1)]
    for one in parts:
        one.scores.requires_grad_()
    slopes = torch.arange(1.0, 7.0)
    for (whole, index), one, own in zip(join(parts, averaged=averaged), parts, slopes.split([2, 3, 1])):
        assert index is None
        (slope,) = torch.autograd.grad((slopes * whole.scores).sum(), one.scores)
        assert torch.equal(slope, own * (3 if averaged else 1))


def test_a_process_without_samples_needs_neither_groups_nor_an_index():
    draw = torch.Generator().manual_seed(0)
    parts, indexes = [part(2, draw, groups=True), part(0, draw)], [torch.tensor([5, 7]), None]
    for whole, index in join(parts, indexes):
        assert torch.equal(whole.groups, parts[0].groups)
        assert index.tolist() == [5, 7]
    for whole, index in join([part(0, draw), part(0, draw)]):
        assert len(whole.scores) == 0
        assert index is None


def test_processes_that_pass_different_things_are_told_which():
    draw = torch.Generator().manual_seed(0)
    grouped, plain, wide = part(2, draw, groups=True), part(2, draw), part(2, draw, width=(3,))
    marked = replace(plain, labels=torch.zeros(2, 2))
    for parts, says in (
        ([grouped, plain], "process 1 has 0 numbers per sample for groups, another has 1"),
        ([plain, wide], "process 0 has 1 numbers per sample for scores, another has 3"),
        ([plain, marked], "process 0 has 1 numbers per sample for labels, another has 2"),
    ):
        with pytest.raises(ShapeMismatch, match=says):
            join(parts)
    with pytest.raises(ShapeMismatch, match="process 1 has 0 numbers per sample for index, another has 1"):
        join([plain, plain], [torch.arange(2), None])
    for index in (torch.arange(3), torch.arange(2.0), torch.zeros(2, 1, dtype=torch.long)):
        with pytest.raises(BadIndex, match="2 samples came with an index"):
            join([plain, plain], [index, index])


def test_alone_it_is_what_came():
    one, index = part(3, torch.Generator().manual_seed(0)), torch.arange(3)
    assert joined(one, index) == (one, index)


def test_values_of_columns_travel_with_all_their_digits():
    values = torch.tensor([[0.1, 1e9 + 1], [2.5, 3.0], [1 / 3, 0.0]], dtype=torch.float64)
    scores, labels = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, 0.0, 1.0])
    parts = [Sample(scores[rows], labels[rows], values=values[rows]) for rows in (slice(0, 1), slice(1, 3))]
    for whole, _ in join(parts):
        assert torch.equal(whole.values, values)
        assert torch.equal(whole.scores, scores)
