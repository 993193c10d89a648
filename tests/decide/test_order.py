"""Operating points in order: by preference, and by merit."""

from itertools import pairwise

import pytest

import setpoint as sp
from setpoint.decide.order import BROKEN_PRICE, merit, preference, worth
from setpoint.problem.point import OperatingPoint

MISSED = sp.minimize(sp.fnr, sp.fpr <= 0.1)
FOUND = sp.maximize(sp.recall, sp.fpr <= 0.1)


def point(problem, objective, violation=0.0):
    return OperatingPoint(problem, 0.0, objective, {}, violation == 0, violation)


def test_worth_turns_what_is_minimised_around():
    assert worth(FOUND, 0.25) == 0.25
    assert worth(MISSED, 0.25) == -0.25


@pytest.mark.parametrize(
    "from_best_to_worst",
    [
        [point(MISSED, 0.1), point(MISSED, 0.9), point(MISSED, 0.9, 0.01), point(MISSED, 0.0, 0.02)],
        [point(FOUND, 0.9), point(FOUND, 0.1), point(FOUND, 0.1, 0.01), point(FOUND, 1.0, 0.02)],
    ],
)
def test_feasible_points_by_their_objective_then_others_by_their_violation(from_best_to_worst):
    assert all(preference(better) > preference(worse) for better, worse in pairwise(from_best_to_worst))


def test_merit_is_the_objective_less_the_price_of_what_is_broken():
    assert merit(point(FOUND, 0.7)) == 0.7
    assert merit(point(MISSED, 0.7)) == -0.7
    assert merit(point(FOUND, 0.7, 0.02)) == pytest.approx(0.7 - 0.02 * BROKEN_PRICE)
    assert merit(point(MISSED, 0.7, 0.02)) == pytest.approx(-0.7 - 0.02 * BROKEN_PRICE)
    # A point that breaks a bound by little may have more merit than a feasible one that is much worse.
    assert merit(point(FOUND, 0.9, 0.01)) > merit(point(FOUND, 0.5))
