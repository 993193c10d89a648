"""The exact tests against sums over every outcome, and the words in which their verdict is given."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import setpoint as sp
from setpoint.problem.check import BoundCheck, Check, check_bound
from setpoint.problem.evidence import at_least, at_most, interval, is_testable, p_if_broken, p_if_kept, trials

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


def test_one_bound_in_words():
    row = check_bound(sp.fpr <= 0.2, COUNTS.astype(float), 7 / 61)
    p = binomtest(7, 61, 0.2, alternative="greater").pvalue
    assert row == BoundCheck("fpr <= 20%", 7 / 61, (61,), pytest.approx(p), None)
    assert str(row) == f"fpr <= 20%: 11.4754% of 61 (p = {p:.3g})"
    named = check_bound(sp.fpr <= 0.2, COUNTS.astype(float), 7 / 61, "north")
    assert named.group == "north"
    assert str(named) == f"fpr <= 20% in north: 11.4754% of 61 (p = {p:.3g})"
    groups = np.stack([COUNTS, 2 * COUNTS]).astype(float)
    gap = check_bound(sp.recall.gap("g") <= 0.1, groups, 0.0)
    assert gap.samples == (40, 80)
    assert str(gap).startswith("recall.gap(g) <= 10%: 0% of 40 and 80 (p = ")


def test_a_bound_without_an_exact_test_in_words():
    row = check_bound(sp.mcc >= 0.3, COUNTS.astype(float), 0.25, "north")
    assert row == BoundCheck("mcc >= 0.3", 0.25, (101,), None, "north")
    assert str(row) == "mcc >= 0.3 in north: 25% of 101 (no exact test)"
    groups = np.stack([COUNTS, 2 * COUNTS]).astype(float)
    assert check_bound(sp.recall.gap("g") >= 0.1, groups, 0.0).samples == (303,)


def rows(*values):
    return tuple(BoundCheck(f"bound {i}", 0.5, (10,), value) for i, value in enumerate(values))


@pytest.mark.parametrize(
    ("values", "together"),
    [((0.03,), 0.03), ((0.03, 0.5), 0.06), ((0.03, None, 0.5), 0.06), ((0.9, 0.8), 1.0), ((None,), 1.0), ((), 1.0)],
)
def test_all_bounds_together_are_the_smallest_times_their_number(values, together):
    assert Check(rows(*values), 0.05).p_value == together


def test_a_promise_is_broken_at_the_level_itself():
    assert not Check(rows(0.05), 0.05).holds
    assert Check(rows(0.0500001), 0.05).holds
    assert not Check(rows(0.05), 0.1).holds


def test_the_verdict_in_words():
    first = "bound 0: 50% of 10 (p = 0.3)"
    assert str(Check(rows(0.3), 0.05)) == f"no evidence that the promise is broken (p = 0.3): {first}"
    both = f"{first}; bound 1: 50% of 10 (p = 0.01)"
    assert str(Check(rows(0.3, 0.01), 0.05)) == f"the promise is broken (p = 0.02, level 0.05 per look): {both}"
    one = f"{first}; bound 1: 50% of 10 (no exact test)"
    assert str(Check(rows(0.3, None), 0.05)) == f"no evidence that the promise is broken (p = 0.3): {one}"
    assert str(Check(rows(None, None), 0.05)) == "nothing was promised that could be tested"
