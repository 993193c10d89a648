import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import beta

import setpoint as sp
from setpoint.decide.by_group import find_by_group
from setpoint.decide.rate_window import p_window_breaks, widest_window
from setpoint.decide.samples_needed import fewest_of_each
from setpoint.errors import TooFewSamples
from setpoint.measure.sample import Sample


def apart(upper, n, lower, m, bound):
    """P(U - V > bound) by quadrature, for the order statistics of n and of m uniform numbers."""
    above, below = beta(upper, n + 1 - upper), beta(lower, m + 1 - lower)
    return quad(lambda v: below.pdf(v) * above.sf(v + bound), 0, 1, points=[below.median()], limit=200)[0]


@pytest.mark.parametrize(("n", "m", "low", "high"), [(80, 50, 0.05, 0.06), (300, 200, 0.8, 0.83), (90, 400, 0.1, 0.12)])
def test_the_probability_is_that_of_two_order_statistics_and_never_less(n, m, low, high):
    ends = [(math.ceil(low * size), math.floor(high * size) + 1) for size in (n, m)]
    exact = apart(ends[0][1], n, ends[1][0], m, 0.1) + apart(ends[1][1], m, ends[0][0], n, 0.1)
    assert exact <= p_window_breaks(low, high, [n, m], 0.1) <= exact * 1.05 + 1e-3


def test_at_an_end_it_is_the_chance_that_no_sample_falls_into_the_bound():
    """All pass in every group: the other end of a rate is at most the smallest of n numbers away."""
    closed = 0.9**40 + 0.9**60
    assert p_window_breaks(1.0, 1.0, [40, 60], 0.1) == pytest.approx(closed)
    assert p_window_breaks(0.0, 0.0, [40, 60], 0.1) == pytest.approx(closed)
    assert fewest_of_each(0.1, 0.05, [0, 0]) == math.ceil(math.log(0.025) / math.log(0.9))


def test_the_window_is_as_wide_as_the_level_allows_and_moves_to_the_end_of_few_samples():
    low, high = widest_window(0.85, [300, 300], 0.1, 0.05)
    assert (low + high) / 2 == pytest.approx(0.85)
    assert p_window_breaks(low, high, [300, 300], 0.1) <= 0.05
    assert p_window_breaks(low - 0.01, high + 0.01, [300, 300], 0.1) > 0.05
    few = widest_window(0.85, [60, 60], 0.1, 0.05)
    assert few[0] > 0.9
    assert p_window_breaks(*few, [60, 60], 0.1) <= 0.05
    assert widest_window(0.85, [300, 20], 0.1, 0.05) is None


def test_a_gap_is_certified_at_a_high_confidence_where_the_samples_suffice():
    draw = np.random.default_rng(0)
    groups, labels = np.arange(2000) % 2, draw.integers(0, 2, 2000)
    scores = draw.normal(size=2000) + 2 * labels
    given = "minimize error where recall.gap(g) <= 20%", scores, labels
    point = sp.calibrate(*given, groups=groups, confidence=0.999999)
    assert point.certificate.confidence == 0.999999
    few = groups[:100]
    with pytest.raises(TooFewSamples, match=r"of each group, but there are \d+ of group '0' and \d+ of group '1'"):
        sp.calibrate(given[0], scores[:100], labels[:100], groups=few, confidence=0.999999)


@pytest.mark.parametrize("rate", ["recall", "fnr", "fpr", "flagged"])
def test_cuts_are_found_within_a_range_of_the_rate(rate):
    draw = np.random.default_rng(0)
    groups, labels = torch.arange(400) % 2, torch.from_numpy(draw.integers(0, 2, 400)).double()
    sample = Sample(torch.from_numpy(draw.normal(size=400)) + labels, labels, groups=groups, n_groups=2)
    problem = sp.ask(f"minimize error where {rate}.gap(g) <= 5%")
    counts = find_by_group(problem, sample, (0.6, 0.7))[1][0]
    found = problem.constraints[0].quantity.rate(counts)
    assert 0.6 <= float(found.min()) <= float(found.max()) <= min(0.7, float(found.min()) + 0.05 + 1e-9)
    with pytest.raises(TooFewSamples, match=r"some group has no cut with a rate between 50\.1% and 50\.2%"):
        find_by_group(problem, sample, (0.501, 0.502))


def test_every_pair_of_cuts_in_the_window_keeps_the_gap_at_once_even_with_ties():
    """2,000 draws of two groups: how often any two cuts in the window truly differ by more than the bound."""
    draw, sizes, broken = np.random.default_rng(1), (80, 120), 0
    low, high = widest_window(0.2, sizes, 0.15, 0.1)
    values = np.linspace(0, 1, 26)
    for _ in range(2000):
        true = []
        for n in sizes:
            # Scores tied at 25 values, whose true share at or below the k-th is k / 25.
            counts = np.concatenate([[0], np.bincount(draw.integers(0, 25, n), minlength=25).cumsum()]) / n
            inside = values[(counts >= low) & (counts <= high)]
            true.append((inside.min(), inside.max()) if len(inside) else (np.nan, np.nan))
        (a, b), (c, d) = true
        broken += max(b - c, d - a) > 0.15 + 1e-9
    assert 0.005 < broken / 2000 <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / 2000)
