import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
import setpoint as sp
from cases import cases
from setpoint.decide.cut import find
from setpoint.measure.count import count
from setpoint.measure.rate import CATALOGUE
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

NAMES = st.sampled_from([*CATALOGUE, "f_score(1)", "f_score(2)"])
BOUNDS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.25, 0.5, 1 / 3, 0.95, 1.0]))


def named(name):
    return sp.ask(f"minimize {name}").objective


@st.composite
def asks(draw):
    limit = st.tuples(NAMES, st.sampled_from(["<=", ">="]), BOUNDS)
    return draw(NAMES), draw(st.booleans()), draw(st.lists(limit, max_size=3))


@given(asks(), cases(both_classes=True))
def test_find_equals_brute_force_over_all_cuts(asked, case):
    name, maximize, limits = asked
    try:
        problem = Problem(named(name), maximize, tuple(sp.Constraint(named(n), r, b) for n, r, b in limits))
    except sp.SetpointError:
        return
    found = find(problem, case.sample)
    best = reference.best_cut(name, maximize, limits, *case.lists)
    assert found.feasible == (best is not None)
    recounted = count(case.scores, case.labels, found.thresholds, weights=case.weights)
    torch.testing.assert_close(recounted, found.counts)
    if best is not None:
        assert math.isclose(float(named(name)(found.counts)[0]), best, abs_tol=1e-9)
    else:
        worst = [
            sum(max(0.0, (reference.RATES[n](*cut) - b) * (1 if r == "<=" else -1)) for n, r, b in limits)
            for cut in reference.all_cuts(*case.lists)
        ]
        broken = sum(float(c.violation(found.counts)[0].clamp(min=0)) for c in problem.constraints)
        assert math.isclose(broken, min(worst), abs_tol=1e-6)


@given(bound=st.floats(0, 1), case=cases(both_classes=True))
def test_the_threshold_keeps_its_promise(bound, case):
    found = find(sp.minimize(sp.fnr, sp.fpr <= bound), case.sample)
    assert sp.fpr(count(case.scores, case.labels, found.thresholds, weights=case.weights))[0] <= bound + 1e-9


@given(bound=st.floats(0, 1), case=cases(both_classes=True))
def test_an_equality_takes_the_nearest_cut(bound, case):
    found = find(sp.maximize(sp.precision, sp.flagged == bound), case.sample)
    nearest = min(abs(reference.RATES["flagged"](*cut) - bound) for cut in reference.all_cuts(*case.lists))
    assert math.isclose(abs(float(sp.flagged(found.counts)[0]) - bound), nearest, abs_tol=1e-9)


@pytest.mark.parametrize("stretch", [sp.fpr, sp.fnr, sp.recall, sp.tnr, sp.flagged], ids=str)
@given(case=cases(both_classes=True))
def test_an_area_takes_the_nearest_cut_at_each_point_and_of_those_the_best(stretch, case):
    objective = sp.precision
    problem = sp.maximize(objective, over=stretch.between(0.1, 0.9, points=4))
    found = find(problem, case.sample)
    cuts = reference.all_cuts(*case.lists)
    for bound, row in zip(problem.over.bounds, found.counts):
        distance = [abs(reference.RATES[stretch.name](*cut) - bound) for cut in cuts]
        near = [cut for cut, d in zip(cuts, distance) if d <= min(distance) + 1e-12]
        assert math.isclose(abs(float(stretch(row)) - bound), min(distance), abs_tol=1e-9)
        same_level = [c for c in near if abs(reference.RATES[stretch.name](*c) - float(stretch(row))) < 1e-12]
        ends = [reference.RATES["precision"](*c) for c in (same_level[0], same_level[-1])]
        assert math.isclose(float(objective(row)), max(ends), abs_tol=1e-9)


def test_of_equally_good_cuts_the_one_closest_to_its_bound_is_taken():
    scores = torch.tensor([9.0, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    labels = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    found = find(sp.minimize(sp.fnr, sp.fpr <= 0.34), Sample(scores, labels))
    assert found.counts[0].tolist() == [1, 3, 0, 6]
    assert found.thresholds.tolist() == [5.5]


def test_a_bound_is_active_when_a_neighbouring_cut_breaks_it():
    scores = torch.arange(10.0)
    labels = (scores >= 5).float()
    tight = find(sp.minimize(sp.fnr, sp.fpr <= 0.0), Sample(scores, labels))
    assert tight.active.tolist() == [True]
    loose = find(sp.minimize(sp.error, sp.fpr <= 0.9, sp.recall >= 0.1), Sample(scores, labels))
    assert loose.active.tolist() == [False, False]
    assert find(sp.maximize(sp.precision, sp.flagged == 0.5), Sample(scores, labels)).active.tolist() == [True]
