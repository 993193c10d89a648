"""The best cut against brute force: which one is taken, what is said of it, and when bounds hold it in place."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
import setpoint as sp
from cases import cases
from setpoint.decide.cut import find, find_among
from setpoint.measure.constraint import Constraint
from setpoint.measure.count import count
from setpoint.measure.curve import curve
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
        problem = Problem(named(name), maximize, tuple(Constraint(named(n), r, b) for n, r, b in limits))
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


SCORES = torch.tensor([8.0, 7, 6, 5, 4, 3, 2, 1])


LABELS = torch.tensor([1.0, 1, 0, 1, 0, 1, 0, 0])


def cut(problem, weights=None):
    found = find(problem, Sample(SCORES, LABELS, weights))
    return found, found.counts[0].tolist()


def test_without_a_bound_the_first_of_the_best_cuts_is_taken():
    found, counts = cut(sp.maximize(sp.accuracy))
    assert counts == [2, 0, 2, 4]
    assert found.thresholds.tolist() == [6.5]
    assert found.feasible
    assert found.active.shape == (0,)
    assert found.active.dtype == torch.bool
    assert cut(sp.minimize(sp.accuracy))[1] in ([0, 0, 4, 4], [4, 4, 0, 0])
    assert cut(sp.minimize(sp.flagged))[1] == [0, 0, 4, 4]
    assert cut(sp.maximize(sp.flagged))[1] == [4, 4, 0, 0]


def test_cuts_that_differ_by_rounding_are_equally_good():
    # 1 + 1e-14 of a metric is no better than 1.
    nearly = sp.Metric("nearly", lambda tp, fp, fn, tn: 1 + 1e-14 * (tp + fp))
    assert cut(sp.maximize(nearly))[1] == [0, 0, 4, 4]
    clearly = sp.Metric("clearly", lambda tp, fp, fn, tn: 1 + 1e-11 * (tp + fp))
    assert cut(sp.maximize(clearly))[1] == [4, 4, 0, 0]


def test_bounds_come_first_then_equalities_then_the_objective():
    assert cut(sp.maximize(sp.recall, sp.fpr <= 0.25))[1] == [3, 1, 1, 3]
    assert cut(sp.maximize(sp.recall, sp.fpr <= 0.0))[1] == [2, 0, 2, 4]
    found, counts = cut(sp.maximize(sp.recall, sp.fpr <= 0.25, sp.flagged == 0.75))
    assert counts == [3, 1, 1, 3]
    assert not found.feasible
    assert found.active.tolist() == [True, True]
    assert found.active.dtype == torch.bool


def test_of_equal_cuts_the_one_nearest_to_its_bound():
    # All four positives need a flag on six of eight; recall 50 % is met by flagging two or three.
    found, counts = cut(sp.minimize(sp.fnr, sp.fpr <= 0.5))
    assert counts == [4, 2, 0, 2]
    found, counts = cut(sp.maximize(sp.tnr, sp.recall >= 0.4))
    assert counts == [2, 0, 2, 4]
    assert found.thresholds.tolist() == [6.5] or counts[0] == 2


def test_an_infeasible_problem_breaks_its_bounds_least():
    found, counts = cut(sp.maximize(sp.recall, sp.precision >= 1.0, sp.recall >= 0.75))
    assert not found.feasible
    assert counts in ([2, 0, 2, 4], [3, 1, 1, 3])
    assert sum(max(0.0, v) for v in (1 - counts[0] / (counts[0] + counts[1]), 0.75 - counts[0] / 4)) == pytest.approx(
        0.25
    )


@pytest.mark.parametrize(
    ("problem", "active"),
    [
        (sp.maximize(sp.recall, sp.fpr <= 0.25), [True]),
        (sp.maximize(sp.accuracy, sp.fpr <= 0.99), [False]),
        (sp.minimize(sp.error, sp.fpr <= 0.99, sp.recall >= 0.5), [False, True]),
        (sp.minimize(sp.flagged, sp.recall >= 0.0), [False]),
        (sp.maximize(sp.flagged, sp.fpr <= 1.0), [False]),
        (sp.minimize(sp.flagged, sp.recall <= 0.1), [True]),
        (sp.maximize(sp.flagged, sp.recall >= 1.0), [False]),
        (sp.minimize(sp.flagged, sp.recall >= 1.0), [True]),
    ],
    ids=str,
)
def test_a_bound_holds_the_cut_when_one_of_its_neighbours_breaks_it(problem, active):
    found, _ = cut(problem)
    assert found.active.tolist() == active


def test_an_equality_within_the_heaviest_sample():
    weights = torch.tensor([1.0, 1, 1, 1, 4, 1, 1, 1])
    found, counts = cut(sp.maximize(sp.precision, sp.flagged == 0.5), weights)
    assert sum(counts[:2]) in (4, 8)
    assert found.feasible
    even, _ = cut(sp.maximize(sp.precision, sp.flagged == 0.5))
    assert even.feasible
    none = find(sp.maximize(sp.precision, sp.flagged == 0.5), Sample(torch.zeros(8), LABELS))
    assert not none.feasible


@pytest.mark.parametrize("rate", [sp.recall, sp.fnr])
def test_an_area_has_the_nearest_cut_at_each_point_whichever_way_the_rate_runs(rate):
    problem = sp.maximize(sp.precision, over=rate.between(0.0, 1.0, points=2))
    found = find(problem, Sample(SCORES, LABELS))
    recalls = [row[0] / 4 for row in found.counts.tolist()]
    assert sorted(recalls) == [0.25, 0.75]
    assert found.feasible
    assert found.active.tolist() == [True, True]
    assert found.active.dtype == torch.bool
    # At recall 75 % one negative is flagged, or two: the better cut is taken.
    assert [3, 1, 1, 3] in found.counts.tolist()
    worst = find(sp.minimize(sp.precision, over=rate.between(0.0, 1.0, points=2)), Sample(SCORES, LABELS))
    assert [3, 2, 1, 2] in worst.counts.tolist()


def test_half_way_between_two_levels_either_is_near():
    problem = sp.maximize(sp.precision, over=sp.recall.between(0.0, 0.25, points=1))
    found = find(problem, Sample(SCORES, LABELS))
    assert found.counts[0, 0].item() in (0, 1)
    edge = sp.maximize(sp.precision, over=sp.recall.between(0.9, 1.0, points=1))
    assert find(edge, Sample(SCORES, LABELS)).counts[0].tolist() == [4, 2, 0, 2]


def test_groups_have_a_threshold_each():
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    found = find(sp.minimize(sp.error, sp.recall.gap("g") <= 1.0), Sample(SCORES, LABELS, None, groups, 2))
    assert found.thresholds.shape == (1, 2)
    assert found.counts.shape == (1, 2, 4)
    assert found.feasible


@pytest.mark.parametrize(
    "ask",
    [
        "maximize recall over fpr in [0%, 5%] with 10 points",
        "maximize precision over flagged in [1%, 20%] with 3 points",
        "maximize precision where fpr <= 2%",
        "maximize f1 where flagged == 7%",
        "minimize error where fpr <= 5% and recall >= 30%",
        "minimize error where fpr <= 1% and recall >= 90%",
        "maximize accuracy where flagged <= 0%",
    ],
)
@pytest.mark.parametrize("digits", [None, 2, 0], ids=["no ties", "some ties", "many ties"])
@pytest.mark.parametrize("seed", range(4))
def test_a_cut_found_among_the_highest_scores_is_that_of_the_whole_curve(ask, digits, seed):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(1500, generator=draw) < 0.15).double()
    scores = torch.randn(1500, generator=draw, dtype=torch.float64) + labels
    scores = scores if digits is None else scores.round(decimals=digits)
    problem = sp.ask(ask)
    found, whole = find(problem, Sample(scores, labels)), find_among(problem, curve(scores, labels))
    for part in ("thresholds", "counts", "feasible", "active"):
        torch.testing.assert_close(getattr(found, part), getattr(whole, part), rtol=0, atol=0)
