"""Thresholds per group under one gap, found in plain arrays, are as good as those of the search over all windows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.decide import by_gap
from setpoint.decide.by_gap import OneGap
from setpoint.decide.by_group import find_by_group
from setpoint.decide.cut import Finder
from setpoint.measure.count import count
from setpoint.measure.sample import Sample

ASKS = [
    f"{goal} where {rate}.gap(g) <= {bound}%"
    for goal in ("minimize error", "maximize recall", "minimize fpr")
    for rate in ("fpr", "fnr", "recall", "tnr", "flagged")
    for bound in (0, 0.1, 5, 30)
]


def alike(ask, sample):
    problem = sp.ask(ask)
    found, wanted = OneGap.of(problem).find(sample), find_by_group(problem, sample)
    if found is None:
        return False
    thresholds, counts, holds, active = found
    assert [(part.dtype, part.shape) for part in found] == [(part.dtype, part.shape) for part in wanted]
    assert float(problem.cost(counts)) == pytest.approx(float(problem.cost(wanted[1])), abs=1e-12), ask
    assert bool(holds) == bool(wanted[2]) == bool(problem.holding(counts))
    own = count(sample.scores, sample.labels, thresholds, groups=sample.groups, n_groups=sample.n_groups)
    assert torch.equal(own.double(), counts)
    if torch.equal(counts, wanted[1]):
        assert torch.equal(thresholds, wanted[0])
        assert torch.equal(active, wanted[3])
    return True


def drawn(seed, rows, groups, dtype, ties=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(rows, generator=draw) < 0.4).to(dtype)
    codes = torch.randint(groups, (rows,), generator=draw)
    scores = torch.randn(rows, generator=draw, dtype=dtype) + labels + 0.5 * codes
    return Sample((scores * ties).round() / ties if ties else scores, labels, None, codes, groups)


@given(
    st.integers(0, 10**6), st.sampled_from(ASKS), st.integers(8, 80), st.integers(2, 4),
    st.sampled_from([torch.float32, torch.float64]), st.sampled_from([0, 2]),
)  # fmt: skip
def test_few_rows_with_and_without_ties(seed, ask, rows, groups, dtype, ties):
    alike(ask, drawn(seed, rows, groups, dtype, ties))


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_rows(ask, dtype):
    assert alike(ask, drawn(0, 1500, 5, dtype))


def test_more_levels_than_windows(monkeypatch):
    monkeypatch.setattr(by_gap, "WINDOWS", 100)
    monkeypatch.setattr(by_gap, "edges_of", lambda levels: by_gap.np.unique(by_gap.np.concatenate(levels)))
    assert alike("minimize error where fpr.gap(g) <= 0.5%", drawn(1, 600, 3, torch.float64))


def test_a_group_that_the_rate_says_nothing_of_is_left_to_the_other_search():
    sample = Sample(torch.tensor([1.0, 2, 3, 4]), torch.tensor([1.0, 0, 1, 1]), None, torch.tensor([0, 0, 1, 1]), 2)
    assert OneGap.of(sp.ask("minimize error where fpr.gap(g) <= 5%")).find(sample) is None
    assert bool(Finder(sp.ask("minimize error where fpr.gap(g) <= 5%"))(sample).feasible)


@pytest.mark.parametrize(
    "ask",
    [
        "minimize error where fpr.gap(g) == 0%",
        "minimize error where fpr.gap(g) <= 5% and fpr <= 10%",
        "maximize precision where fpr.gap(g) <= 5%",
        "minimize error where error.gap(g) <= 5%",
    ],
)
def test_other_problems_are_left_to_the_other_search(ask):
    assert OneGap.of(sp.ask(ask)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_rows_are_sorted_by_group_and_score(dtype, scale):
    draw = np.random.default_rng(3)
    scores, codes = (draw.normal(size=500) * scale).astype(dtype), draw.integers(0, 6, 500)
    labels = (draw.random(500) < 0.3).astype(dtype)
    order = np.lexsort((-scores, codes))
    values, classes = by_gap._sorted(scores, labels, codes)
    assert values.dtype == dtype
    assert np.array_equal(values, scores[order])
    assert np.array_equal(classes, labels[order])
