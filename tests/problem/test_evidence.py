"""The exact tests of bounds against scipy and against sums over every outcome."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import setpoint as sp
from marks import quick_first
from setpoint.problem.evidence import at_least, at_most, interval, is_testable, p_if_broken, p_if_kept, trials


@given(whole=st.integers(0, 300), seen=st.floats(0, 1), share=st.floats(0, 1))
def test_tails_are_those_of_scipy(whole, seen, share):
    part = round(seen * whole)
    assert at_most(part, whole, share) == pytest.approx(binom.cdf(part, whole, share), abs=1e-12)
    assert at_least(part, whole, share) == pytest.approx(binom.sf(part - 1, whole, share), abs=1e-12)


@given(whole=st.integers(1, 300), seen=st.floats(0, 1), confidence=st.sampled_from([0.8, 0.95, 0.999]))
def test_intervals_are_those_of_scipy(whole, seen, confidence):
    part = round(seen * whole)
    expected = binomtest(part, whole).proportion_ci(confidence)
    low, high = interval(part, whole, confidence)
    assert (low, high) == (pytest.approx(expected.low, abs=1e-9), pytest.approx(expected.high, abs=1e-9))


def test_nothing_to_count_proves_nothing():
    nothing = np.zeros(4)
    for bound in (sp.fpr <= 0.1, sp.recall >= 0.9, sp.precision >= 0.5):
        assert float(p_if_broken(bound, nothing)) == float(p_if_kept(bound, nothing)) == 1.0
    assert interval(0, 0, 0.95) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("bound", "part", "whole", "alternative"),
    [
        (sp.fpr <= 0.2, 7, 61, "greater"),
        (sp.precision >= 0.5, 23, 30, "less"),
        (sp.recall >= 0.5, 23, 40, "less"),
        (sp.flagged <= 0.3, 30, 101, "greater"),
        (sp.accuracy >= 0.8, 77, 101, "less"),
        (sp.jaccard >= 0.3, 23, 47, "less"),
    ],
)
def test_evidence_against_a_bound_is_a_binomial_test(bound, part, whole, alternative):
    counts = np.array([23, 7, 17, 54])
    assert float(p_if_kept(bound, counts)) == pytest.approx(
        binomtest(part, whole, bound.bound, alternative=alternative).pvalue
    )
    other = "less" if alternative == "greater" else "greater"
    assert float(p_if_broken(bound, counts)) == pytest.approx(
        binomtest(part, whole, bound.bound, alternative=other).pvalue
    )


def test_an_equality_is_tested_on_both_sides_and_never_proved():
    bound, counts = sp.flagged == 0.3, np.array([23, 7, 17, 54])
    assert float(p_if_broken(bound, counts)) == 1.0
    assert float(p_if_kept(bound, np.array([0, 60, 0, 41]))) < 1e-6
    assert float(p_if_kept(bound, np.array([0, 3, 0, 98]))) < 1e-6
    assert float(p_if_kept(bound, counts)) > 0.5


def by_group(parts, size):
    return np.array([[part, 0, size - part, 0] for part in parts])


@pytest.mark.parametrize("size", quick_first([60, 400]))
@pytest.mark.parametrize("lower", [0.2, 0.5, 0.85])
def test_the_gap_tests_err_no_more_often_than_they_say(size, lower):
    """Rates exactly the bound apart: the border of both hypotheses, where errors are most frequent."""
    draw, bound = np.random.default_rng(0), sp.recall.gap("g") <= 0.1
    wrong = np.zeros(2)
    for _ in range(300):
        counts = by_group([draw.binomial(size, lower), draw.binomial(size, lower + 0.1)], size)
        wrong += [float(p_if_broken(bound, counts)) <= 0.1, float(p_if_kept(bound, counts)) <= 0.1]
    assert (wrong / 300 <= 0.1 + 2 * (0.1 * 0.9 / 300) ** 0.5).all()
    assert size == 60 or wrong[0] > 3


def test_the_gap_tests_see_what_is_clear():
    bound = sp.recall.gap("g") <= 0.1
    alike, apart = by_group([270, 272, 268], 300), by_group([270, 150, 268], 300)
    assert float(p_if_broken(bound, alike)) < 0.01
    assert float(p_if_kept(bound, alike)) > 0.9
    assert float(p_if_kept(bound, apart)) < 0.01
    assert float(p_if_broken(bound, apart)) > 0.9
    # A group without samples: its rate may be anything, so nothing speaks for the gap, and nothing more against it.
    missing = np.vstack([alike, np.zeros((1, 4))])
    assert float(p_if_broken(bound, missing)) == 1.0
    assert float(p_if_kept(bound, np.vstack([apart, np.zeros((1, 4))]))) == float(p_if_kept(bound, apart))
    assert float(p_if_broken(bound, alike[:1])) == float(p_if_kept(bound, alike[:1])) == 1.0


def test_which_bounds_have_an_exact_test():
    assert all(is_testable(c) for c in (sp.fpr <= 0.1, sp.precision >= 0.5, sp.recall.gap("g") <= 0.1))
    assert not any(is_testable(c) for c in (sp.f_score(2) >= 0.5, sp.mcc >= 0.5, sp.recall.gap("g") >= 0.1))


COUNTS = np.array([23, 7, 17, 54])


def share_at_most(seen, sizes, rates):
    """P(share a - share b <= what was seen), over every pair of outcomes."""
    a, b = (np.arange(size + 1) for size in sizes)
    small = (a[:, None] / sizes[0] - b / sizes[1]) <= seen + 1e-12
    return float(binom.pmf(a, sizes[0], rates[0]) @ small @ binom.pmf(b, sizes[1], rates[1]))


def not_less(parts, sizes, bound):
    """The p-value of "rate a exceeds rate b by the bound or more", the slow way (Berger and Boos)."""
    (low_a, high_a), (low_b, high_b) = (
        tuple(binomtest(part, size).proportion_ci(0.9995)) for part, size in zip(parts, sizes)
    )
    low, high = max(low_b, low_a - bound), min(high_b, high_a - bound)
    if low <= high:
        rates = [(min(max(rate + bound, 0), 1), rate) for rate in np.linspace(low, high, 33)]
    else:
        rates = [(low_a, high_b)] if low_a - bound > high_b else []
    seen = parts[0] / sizes[0] - parts[1] / sizes[1]
    return min(1.0, max([share_at_most(seen, sizes, pair) for pair in rates], default=0.0) + 0.001)


TWO_GROUPS = [
    ((4, 5), (9, 11), 0.1),
    ((9, 3), (9, 11), 0.1),
    ((0, 0), (7, 12), 0.3),
    ((7, 12), (7, 12), 0.2),
    ((0, 12), (7, 12), 0.5),
    ((30, 41), (60, 80), 0.05),
    ((200, 20), (400, 40), 0.1),
    ((390, 150), (400, 300), 0.25),
    ((299, 1), (300, 300), 0.05),
    ((1, 1), (1, 1), 0.9),
]


def recall_of(parts, sizes):
    return np.array([[part, 3, size - part, 5] for part, size in zip(parts, sizes)])


@pytest.mark.parametrize(("parts", "sizes", "bound"), TWO_GROUPS)
def test_evidence_for_a_gap_is_a_sum_over_every_outcome(parts, sizes, bound):
    expected = max(not_less(parts, sizes, bound), not_less(parts[::-1], sizes[::-1], bound))
    constraint = sp.recall.gap("g") <= bound
    assert float(p_if_broken(constraint, recall_of(parts, sizes))) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("parts", "sizes", "bound"), TWO_GROUPS)
def test_evidence_against_a_gap_is_a_sum_over_every_outcome(parts, sizes, bound):
    missed = tuple(size - part for part, size in zip(parts, sizes))
    expected = 2 * min(not_less(missed, sizes, -bound), not_less(missed[::-1], sizes[::-1], -bound))
    constraint = sp.recall.gap("g") <= bound
    assert float(p_if_kept(constraint, recall_of(parts, sizes))) == pytest.approx(min(1, expected), abs=1e-9)


def test_of_three_groups_every_ordered_pair_is_asked():
    parts, sizes, constraint = (40, 25, 38), (50, 40, 45), sp.recall.gap("g") <= 0.1
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    for_it = [not_less([parts[a], parts[b]], [sizes[a], sizes[b]], 0.1) for a, b in pairs]
    against = [not_less([sizes[a] - parts[a], sizes[b] - parts[b]], [sizes[a], sizes[b]], -0.1) for a, b in pairs]
    counts = recall_of(parts, sizes)
    assert float(p_if_broken(constraint, counts)) == pytest.approx(max(for_it), abs=1e-9)
    assert float(p_if_kept(constraint, counts)) == pytest.approx(min(1, 6 * min(against)), abs=1e-9)
    empty = np.vstack([counts[:2], [[0, 9, 0, 9]], counts[2:]])
    assert float(p_if_kept(constraint, empty)) == float(p_if_kept(constraint, counts))


def test_a_group_of_one_sample_takes_part():
    constraint = sp.recall.gap("g") <= 0.1
    alone = recall_of((1, 300), (1, 300))
    assert float(p_if_broken(constraint, alone)) > 0.5
    assert float(p_if_broken(constraint, alone)) != float(p_if_broken(constraint, alone[:1]))


@pytest.mark.parametrize(("part", "whole"), [(0, 9), (1, 9), (8, 9), (9, 9), (0, 1), (1, 1)])
def test_tails_and_interval_at_the_ends(part, whole):
    assert float(at_most(part, whole, 0.3)) == pytest.approx(binom.cdf(part, whole, 0.3))
    assert float(at_least(part, whole, 0.3)) == pytest.approx(binom.sf(part - 1, whole, 0.3))
    expected = binomtest(part, whole).proportion_ci(0.9)
    assert interval(part, whole, 0.9) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_many_counts_at_once():
    parts, wholes = np.array([0, 3, 9, 0]), np.array([9, 9, 9, 0])
    assert at_most(parts, wholes, 0.3).tolist() == [float(at_most(p, w, 0.3)) for p, w in zip(parts, wholes)]
    assert at_least(parts, wholes, 0.3).tolist() == [float(at_least(p, w, 0.3)) for p, w in zip(parts, wholes)]
    low, high = interval(parts, wholes, 0.9)
    each = [interval(p, w, 0.9) for p, w in zip(parts, wholes)]
    assert (low.tolist(), high.tolist()) == ([float(one[0]) for one in each], [float(one[1]) for one in each])
    rows = np.stack([COUNTS, 2 * COUNTS, np.zeros(4)])
    for bound in (sp.fpr <= 0.2, sp.precision >= 0.6, sp.flagged == 0.3):
        for test in (p_if_broken, p_if_kept):
            assert test(bound, rows).shape == (3,)
            assert test(bound, rows).tolist() == [float(test(bound, row)) for row in rows]


@pytest.mark.parametrize("flagged", [10, 25, 30, 31, 50])
def test_an_equality_is_twice_the_smaller_tail(flagged):
    smaller = min(binom.cdf(flagged, 101, 0.3), binom.sf(flagged - 1, 101, 0.3))
    p = float(p_if_kept(sp.flagged == 0.3, np.array([0, flagged, 0, 101 - flagged])))
    assert p == pytest.approx(min(1.0, 2 * smaller))


def test_which_bounds_have_an_exact_test_in_detail():
    double = sp.Rate("double", part=(2, 0, 0, 0), whole=(2, 2, 0, 0))
    assert is_testable(double >= 0.6)
    assert float(p_if_kept(double >= 0.6, COUNTS)) == float(p_if_kept(sp.precision >= 0.6, COUNTS))
    assert float(trials(double >= 0.6, COUNTS)) == 30
    half = sp.Rate("half", part=(1, 0, 0, 0), whole=(2, 2, 0, 0))
    nothing = sp.Rate("nothing", part=(0, 0, 0, 0), whole=(1, 1, 0, 0))
    above = sp.Rate("odds", part=(1, 0, 0, 0), whole=(0, 1, 0, 0))
    mixed = sp.Rate("mixed", part=(1, 0, 0, 0), whole=(1, 1, 0.5, 0))
    for rate in (half, nothing, above, mixed):
        assert not is_testable(sp.Metric(rate.name, lambda tp, fp, fn, tn: tp) >= 0.5)
        assert not is_testable(rate >= 0.5)
        assert not is_testable(rate.gap("g") <= 0.5)
    assert is_testable(sp.flagged == 0.3)
    assert is_testable(sp.flagged <= 0.3)
    assert not is_testable(sp.flagged.gap("g") == 0.3)


def test_how_many_samples_a_bound_is_a_share_of():
    groups = np.stack([COUNTS, 2 * COUNTS])
    assert float(trials(sp.fpr <= 0.1, COUNTS)) == 61
    assert trials(sp.recall.gap("g") <= 0.1, groups).tolist() == [40, 80]


def test_only_a_gap_that_is_bounded_from_above_or_closed_has_a_test():
    gap = sp.recall.gap("site")
    assert [is_testable(bound) for bound in (gap <= 0.05, gap == 0, gap == 0.05, gap >= 0.05)] == [
        True,
        True,
        False,
        False,
    ]
