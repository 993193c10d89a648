"""The best mixture of snapshots against brute force over all pairs and triples, and the best single one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.solve.mixture import best_mixture


def by_hand(objectives, violations, steps=400):
    """The lowest objective of any feasible mixture of two snapshots, on a fine grid; one bound."""
    best = np.inf
    for i, j in itertools.combinations_with_replacement(range(len(objectives)), 2):
        for share in np.linspace(0, 1, steps + 1):
            if share * violations[i] + (1 - share) * violations[j] <= 1e-12:
                best = min(best, share * objectives[i] + (1 - share) * objectives[j])
    return best


@pytest.mark.parametrize("seed", range(8))
def test_one_bound_against_all_mixtures_of_two(seed):
    draw = np.random.default_rng(seed)
    objectives, violations = draw.random(6), draw.normal(0.05, 0.2, 6)
    violations[0] = -0.1
    mixture = best_mixture(objectives, violations[:, None])
    expected = by_hand(objectives, violations)
    assert mixture.feasible
    assert expected - 0.01 <= mixture.objective <= expected + 1e-9


numbers = st.floats(-1, 1).map(lambda v: round(v, 3))


@given(st.integers(1, 8), st.integers(0, 3), st.data())
def test_a_mixture_is_a_distribution_over_few_snapshots_and_no_worse_than_the_best_single(snapshots, bounds, data):
    objectives = data.draw(st.lists(numbers, min_size=snapshots, max_size=snapshots))
    rows = st.lists(numbers, min_size=bounds, max_size=bounds)
    violations = np.array(data.draw(st.lists(rows, min_size=snapshots, max_size=snapshots)), dtype=float)
    violations = violations.reshape(snapshots, bounds)
    mixture = best_mixture(objectives, violations)
    shares = np.zeros(snapshots)
    for place, share in mixture.weights.items():
        shares[place] = share
    assert 1 <= len(mixture.weights) <= bounds + 1
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    assert mixture.objective == pytest.approx(float(shares @ np.array(objectives)))
    np.testing.assert_allclose(mixture.violations, shares @ violations, atol=1e-9)
    single = violations[mixture.single].max(initial=0.0)
    if single <= 1e-9:
        assert mixture.feasible
        assert mixture.objective <= objectives[mixture.single] + 1e-7
    else:
        assert violations.max(1, initial=0.0).min() == pytest.approx(single)
        assert max(mixture.violations) <= single + 1e-7


def test_two_infeasible_or_dear_snapshots_can_make_a_good_mixture():
    mixture = best_mixture([0.2, 0.8], [[0.1], [-0.1]])
    assert mixture.weights == pytest.approx({0: 0.5, 1: 0.5})
    assert mixture.objective == pytest.approx(0.5)
    assert mixture.single == 1


def test_the_single_one_is_feasible_first_and_else_breaks_least():
    assert best_mixture([0.1, 0.5, 0.4], [[0.2], [-0.1], [0.0]]).single == 2
    assert best_mixture([0.1, 0.5, 0.4], [[0.2, 0], [0.1, 0], [0.1, 0.3]]).single == 1


def test_without_a_feasible_mixture_the_largest_violation_is_made_small_first():
    mixture = best_mixture([0.0, 1.0, 0.9], [[0.4], [0.2], [0.2]])
    assert not mixture.feasible
    assert mixture.weights == pytest.approx({2: 1.0})


def test_without_bounds_the_best_snapshot_is_taken_alone():
    mixture = best_mixture([0.3, 0.1, 0.2], np.zeros((3, 0)))
    assert mixture.weights == {1: 1.0}
    assert mixture.single == 1


def test_bad_snapshots_are_refused():
    with pytest.raises(ShapeMismatch, match=r"\(T, m\)"):
        best_mixture([0.1, 0.2], [0.1, 0.2])
    with pytest.raises(BadSetting, match="no snapshots"):
        best_mixture([], np.zeros((0, 1)))
    with pytest.raises(BadSetting, match="finite"):
        best_mixture([0.1, float("nan")], [[0.1], [0.2]])
