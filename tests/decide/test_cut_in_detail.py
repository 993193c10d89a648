"""Which cut is taken, what is said of it, and when bounds hold it in place."""

import pytest
import torch

import setpoint as sp
from setpoint.decide.cut import find
from setpoint.measure.sample import Sample

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
