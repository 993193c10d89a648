import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import setpoint as sp
from setpoint.problem.evidence import at_least, at_most, interval, is_testable, p_if_broken, p_if_kept


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


@pytest.mark.parametrize("size", [60, 400])
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
