"""Evidence over any number of looks: closed forms against integrals, and levels against streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from setpoint.problem import anytime
from setpoint.problem.anytime import RateEvidence, average_interval, gap_evidence, log_above


def by_integral(part, whole, bound):
    """The mean likelihood ratio over the prior above the bound, by numerical integration."""
    first, second = anytime._prior(bound)
    prior = stats.beta(first, second)
    peak = max(bound, part / whole) if whole else bound

    def ratio(q):
        return special.xlogy(part, q / bound) + special.xlogy(whole - part, (1 - q) / (1 - bound))

    top = ratio(peak)
    points = [bound + (1 - bound) * share for share in (1e-5, 1e-4, 1e-3, 1e-2, 0.1)]
    area, _ = integrate.quad(
        lambda q: math.exp(ratio(q) - top) * prior.pdf(q), bound, 1, points=[*points, peak], limit=500
    )
    return math.log(area / prior.sf(bound)) + top


@pytest.mark.parametrize(
    ("part", "whole", "bound"),
    [(0, 0, 0.01), (3, 100, 0.01), (30, 100, 0.01), (5, 5000, 0.01), (90, 100, 0.95), (99, 100, 0.95), (40, 60, 0.5)],
)
def test_the_closed_form_is_the_integral(part, whole, bound):
    found = log_above(np.array([float(part)]), np.array([float(whole)]), bound)
    assert found[0] == pytest.approx(by_integral(part, whole, bound), abs=1e-6)


def test_far_tails_join_the_near_ones(monkeypatch):
    part, whole = np.array([5.0, 400.0, 9_000.0]), np.array([5e3, 1e5, 1e6])
    near = log_above(part[:1], whole[:1], 0.01)
    monkeypatch.setattr(anytime, "_TINY", 2.0)
    assert log_above(part[:1], whole[:1], 0.01) == pytest.approx(near, abs=1e-8)
    monkeypatch.undo()
    # So far from the bound the capital is about the prior's density there over the slope of the likelihood.
    slope = whole * (1 / 99 + 1) - part * (100 + 1 / 0.99)
    about = np.log(stats.beta(1, 99).pdf(0.01) / stats.beta(1, 99).sf(0.01) / slope)
    assert log_above(part[1:], whole[1:], 0.01) == pytest.approx(about[1:], abs=0.02)
    assert np.isfinite(log_above(np.array([0.0, 1e8]), np.array([1e8, 1e8]), 0.01)).all()


@pytest.mark.parametrize("rate", [0.0, 0.004, 0.01])
@pytest.mark.parametrize("size", [1, 40])
def test_the_next_look_gains_nothing_on_average(rate, size):
    """The exact mean over all outcomes of a look, after a history, for every rate at or under the bound."""
    outcomes = np.arange(size + 1.0)
    evidence = RateEvidence(0.01, len(outcomes))
    for part in (0.0, 3.0, 1.0):
        before = evidence.look(np.full(len(outcomes), part), np.full(len(outcomes), 60.0))
    after = evidence.look(outcomes, np.full(len(outcomes), float(size)))
    mean = stats.binom(size, rate).pmf(outcomes) @ np.exp(after)
    assert mean <= math.exp(before[0]) * (1 + 1e-9)
    if rate == 0.01:
        assert mean == pytest.approx(math.exp(before[0]), rel=1e-6)


def test_a_rate_at_the_bound_is_rarely_called_broken_and_a_broken_one_soon():
    draw, streams = np.random.default_rng(0), 400
    kept, late = RateEvidence(0.05, streams), RateEvidence(0.05, streams)
    whole = np.full(streams, 200.0)
    for look in range(150):
        kept.look(draw.binomial(200, 0.05, streams), whole)
        late.look(draw.binomial(200, 0.05 if look < 60 else 0.1, streams), whole)
    assert (kept.peak >= math.log(20)).mean() <= 0.05
    assert (late.peak >= math.log(20)).mean() == 1
    # From the first look on alone, sixty good looks hide the bad ones for longer.
    assert (log_above(late.part, late.whole, 0.05) < late.peak).mean() > 0.9


def test_bounds_of_nothing_and_of_everything():
    one = np.ones(1)
    assert RateEvidence(0.0).look(one, 10 * one)[0] == math.inf
    assert RateEvidence(0.0).look(0 * one, 10 * one)[0] <= 0
    assert RateEvidence(1.0).look(one, one)[0] <= 0


def test_intervals_hold_the_average_of_a_rate_that_changes():
    draw, missed = np.random.default_rng(1), 0
    for _ in range(60):
        rates = np.repeat(draw.choice([0.02, 0.2], 25), 40)
        hits = (draw.random(len(rates)) < rates).cumsum()
        average = rates.cumsum() / np.arange(1, len(rates) + 1)
        ends = [average_interval(hits[n], n + 1, 0.1) for n in range(39, 1000, 120)]
        missed += any(not low <= average[n] <= high for n, (low, high) in zip(range(39, 1000, 120), ends))
    assert missed <= 6
    assert average_interval(0, 0, 0.05) == (0.0, 1.0)
    low, high = average_interval(1e6, 1e8, 0.05)
    assert 0.00995 < low < 0.01 < high < 0.01005


def test_the_evidence_on_a_gap_is_at_most_that_of_any_pair_of_rates():
    part, whole = np.array([50.0, 120.0]), np.array([1000.0, 1000.0])
    broken, holds = gap_evidence(part, whole, 0.02)
    # Only the pair in which the second group is the higher one counts, half of the average.
    pairs = [
        anytime._log_average(120, 1000, np.array(t + 0.02), 1) + anytime._log_average(50, 1000, np.array(t), -1)
        for t in np.linspace(0, 0.98, 2000)
    ]
    assert min(pairs) - 0.2 < broken + math.log(2) <= min(pairs) + 1e-6
    assert broken > math.log(20) > 0 > holds
    assert gap_evidence(np.array([500.0, 520.0]), np.array([1e4, 1e4]), 0.02)[1] > math.log(20)
    assert gap_evidence(np.zeros(2), np.zeros(2), 0.02) == (0.0, 0.0)
