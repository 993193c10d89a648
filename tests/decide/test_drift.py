"""Drift against a reference sample: exact bins, ties, a level over many looks, and changes that are found."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.special import gammaln

from setpoint.decide.drift import SCORES, DriftEvidence, Reference, drift_of, read_reference


def test_bins_hold_equal_numbers_of_ranks_and_every_value_once():
    draw = np.random.default_rng(0)
    reference = Reference.of(draw.normal(size=999), draw)
    assert reference.ranks.sum() == 1000
    assert set(reference.ranks) <= {62, 63}
    assert reference.count(draw.normal(size=500), draw).sum() == 500
    assert (read_reference(reference.stored()).edges == reference.edges).all()


@pytest.mark.parametrize("size", [1, 3, 40])
def test_small_references_have_fewer_bins(size):
    draw = np.random.default_rng(size)
    reference = Reference.of(draw.random(size), draw)
    assert reference.ranks.sum() == size + 1
    assert len(reference.ranks) == min(size + 1, 16)


def test_ties_are_broken_at_random():
    draw = np.random.default_rng(0)
    reference = Reference.of(np.zeros(1599), draw)
    counts = reference.count(np.zeros(16_000), draw)
    assert counts.min() > 700
    assert counts.max() < 1300


def test_a_look_gains_nothing_on_average_while_nothing_drifts():
    """The mean over all counts of three rows in three bins, by the probabilities of the urn."""
    ranks = np.array([2.0, 1.0, 3.0])
    counts = np.array([np.bincount(rows, minlength=3) for rows in combinations_with_replacement(range(3), 3)])
    start = DriftEvidence(np.tile(ranks, (len(counts), 1)))
    start.look(np.tile([1, 0, 2], (len(counts), 1)))
    before, known = math.exp(start.now[0]), start.known[0]
    after = np.exp(start.look(counts))
    orders = np.exp(gammaln(4) - gammaln(counts + 1).sum(1))
    chance = np.exp((gammaln(known + counts) - gammaln(known)).sum(1) - gammaln(known.sum() + 3) + gammaln(known.sum()))
    assert (orders * chance).sum() == pytest.approx(1)
    assert (orders * chance * after).sum() == pytest.approx(before)


def test_no_drift_is_rarely_called_drift_and_a_change_soon_is():
    draw, streams = np.random.default_rng(1), 300
    ranks = Reference.of(np.arange(500), draw).ranks
    shares = draw.dirichlet(ranks, streams)
    still, moved = DriftEvidence(np.tile(ranks, (streams, 1))), DriftEvidence(np.tile(ranks, (streams, 1)))
    tilted = shares * np.linspace(0.6, 1.4, len(ranks))
    for look in range(60):
        still.look(draw.multinomial(200, shares))
        changed = tilted / tilted.sum(1, keepdims=True) if look >= 30 else shares
        moved.look(draw.multinomial(200, changed))
    assert (still.peak >= math.log(20)).mean() <= 0.05
    assert (moved.peak >= math.log(20)).mean() > 0.95


def test_scores_have_half_of_the_level_and_features_share_the_rest():
    draw = np.random.default_rng(0)
    reference = Reference.of(draw.random(99), draw).stored()
    bins = np.zeros(16, dtype=int)
    bins[0] = 60
    names = [SCORES, "feature a", "feature b"]
    entries = [{"references": dict.fromkeys(names, reference)}, {"bins": dict.fromkeys(names, bins.tolist())}]
    found = drift_of(entries, 0.04)
    assert [one.level for one in found] == [0.02, 0.01, 0.01]
    assert all(one.drifts and one.looks == 1 for one in found)
