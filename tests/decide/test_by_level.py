"""Cuts found in plain arrays, of areas and under bounds, are those that the search over all cuts finds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.decide.by_level import Bounded, Levelled
from setpoint.decide.cut import Finder, find_among
from setpoint.measure.curve import curve
from setpoint.measure.sample import Sample

ASKS = [
    f"{goal} over {rate} in [{low}%, {high}%] with {points} points"
    for goal in ("maximize recall", "minimize error", "maximize precision", "maximize tnr")
    for rate in ("fpr", "recall", "tnr", "fnr", "flagged")
    for low, high, points in ((0, 5, 10), (20, 100, 3))
    if rate != goal.split()[1]
]
ASKS += [
    "maximize f1",
    "minimize error",
    "maximize precision where recall >= 80%",
    "maximize recall where precision >= 100%",
    "maximize precision where flagged == 20%",
    "minimize error where fpr <= 5% and recall >= 50%",
    "maximize recall where fpr <= 0% and precision >= 99% and flagged == 10%",
]


def alike(ask, scores, labels):
    problem = sp.ask(ask)
    found = (Levelled.of(problem) or Bounded.of(problem)).find(scores, labels, None)
    wanted = find_among(problem, curve(scores, labels))
    for ours, theirs in zip(found, (wanted.thresholds, wanted.counts, wanted.feasible, wanted.active)):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs), ask


@given(
    st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=40),
    st.sampled_from(ASKS),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_cuts_with_ties_are_those_of_all_cuts(rows, ask, dtype):
    scores, labels = zip(*rows)
    alike(ask, torch.tensor(scores, dtype=dtype) / 3, torch.tensor(labels, dtype=dtype))


@pytest.mark.parametrize("ask", ASKS)
def test_cuts_of_many_rows_are_those_of_all_cuts(ask):
    draw = np.random.default_rng(3)
    labels = torch.from_numpy(draw.integers(0, 2, 3000)).float()
    scores = torch.from_numpy(draw.normal(size=3000)).float() + labels
    alike(ask, scores, labels)
    # With the scores that no cut can lie among taken as one range.
    found, wanted = Finder(sp.ask(ask))(Sample(scores, labels)), find_among(sp.ask(ask), curve(scores, labels))
    assert torch.equal(found.thresholds, wanted.thresholds)
    assert torch.equal(found.counts, wanted.counts)
