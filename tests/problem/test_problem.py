"""Problems: what is refused, costs and excesses in numbers, the tightest bound, contradictions."""

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadProblem


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sp.minimize(sp.f_score), "call it first"),
        (lambda: sp.minimize("fnr"), "must be a rate"),
        (lambda: sp.minimize(sp.recall.gap("sex")), "must be a rate"),
        (lambda: sp.minimize(sp.fnr, 0.3), "expected a constraint"),
        (lambda: sp.minimize(sp.fnr, over=sp.fpr), "expects a range"),
        (lambda: sp.minimize(sp.fnr, sp.fpr <= 0.1, over=sp.fpr.between(0, 0.1)), "no further bound"),
        (lambda: sp.minimize(sp.fpr, over=sp.fpr.between(0, 0.1)), "over itself"),
        (lambda: sp.minimize(sp.fnr, sp.fpr <= 0.1, sp.fpr == 0.2), "contradict"),
        (lambda: sp.minimize(sp.error, sp.recall.gap("a") <= 0.1, sp.fpr.gap("b") <= 0.1), "one column"),
    ],
)
def test_bad_problems_are_refused_by_name(make, says):
    with pytest.raises(BadProblem, match=says):
        make()


def test_cost_and_excess_of_an_area_are_means_over_its_points():
    problem = sp.maximize(sp.precision, over=sp.recall.between(0.5, 1.0, points=2))
    counts = torch.tensor([[6.0, 2, 4, 8], [9.0, 9, 1, 1]]).double()
    assert problem.cost(counts).item() == pytest.approx(-(6 / 8 + 9 / 18) / 2)
    assert problem.excesses(counts).tolist() == pytest.approx([0.6 - 0.625, 0.9 - 0.875])


def test_groups_are_pooled_for_global_rates_and_kept_for_gaps():
    problem = sp.minimize(sp.error, sp.recall.gap("sex") <= 0.1, sp.recall >= 0.7)
    counts = torch.tensor([[[9.0, 1, 1, 9], [6.0, 2, 4, 8]]]).double()
    assert problem.group == "sex"
    assert problem.cost(counts).item() == pytest.approx(8 / 40)
    assert problem.excesses(counts).tolist() == pytest.approx([0.2, 0.7 - 0.75])


#: Two groups at one threshold: (tp, fp, fn, tn).
SPLIT = torch.tensor([[[6.0, 1, 4, 9], [2.0, 3, 8, 7]]], dtype=torch.float64)


TWO = torch.tensor([[6.0, 1, 4, 9], [8.0, 3, 2, 7]], dtype=torch.float64)


def test_costs_are_the_objective_with_the_sign_of_a_loss():
    assert sp.minimize(sp.fnr).costs(TWO).tolist() == [0.4, 0.2]
    assert sp.maximize(sp.recall).costs(TWO).tolist() == [-0.6, -0.8]
    area = sp.maximize(sp.recall, over=sp.fpr.between(0, 0.4, 2))
    assert area.costs(TWO).tolist() == [-0.3, -0.4]
    assert float(area.cost(TWO)) == pytest.approx(-0.7)
    assert area.excesses(TWO).tolist() == pytest.approx([0.1 - 0.1, 0.3 - 0.3])
    assert float(sp.minimize(sp.fnr, sp.fpr.gap("g") <= 1).cost(SPLIT)) == pytest.approx(12 / 20)


def test_excesses_are_pooled_but_for_gaps():
    fair = sp.minimize(sp.fnr, sp.fpr <= 0.1, sp.recall.gap("g") <= 0.1, sp.precision >= 0.9)
    assert fair.excesses(SPLIT).tolist() == pytest.approx([4 / 20 - 0.1, 0.4 - 0.1, 0.9 - 8 / 12])
    assert fair.violations(SPLIT) == pytest.approx([4 / 20 - 0.1, 0.4 - 0.1, 0.9 - 8 / 12])
    assert sp.minimize(sp.fnr).excesses(TWO).shape == (0,)
    assert sp.minimize(sp.fnr).excesses(TWO).dtype == torch.float64
    assert sp.minimize(sp.fnr, sp.fpr <= 0.2).excesses(TWO[:1]).tolist() == pytest.approx([-0.1])


def test_a_bound_without_a_gap_holds_in_the_worst_group():
    own = sp.minimize(sp.fnr, sp.fpr <= 0.2)
    assert own.violations(SPLIT) == pytest.approx([0.1])
    assert own.holds(SPLIT) is False
    assert sp.minimize(sp.fnr, sp.fpr <= 0.3).holds(SPLIT) is True
    assert sp.minimize(sp.fnr, sp.fpr <= 0.3, sp.recall >= 0.3).holds(SPLIT) is False
    assert sp.minimize(sp.fnr).holds(SPLIT) is True
    even = sp.minimize(sp.fnr, sp.flagged == 0.5)
    assert even.holds(TWO[:1]) is False
    assert even.holds(TWO[:1], 3.0) is True


@pytest.mark.parametrize(
    ("problem", "tightest"),
    [
        (sp.minimize(sp.fnr, sp.fpr <= 0.01), 0.01),
        (sp.minimize(sp.fnr, sp.tnr >= 0.75), 0.25),
        (sp.minimize(sp.fnr, sp.fpr <= 0.1, sp.precision >= 0.75), 0.1),
        (sp.minimize(sp.fnr, sp.fpr <= 0.0, sp.precision >= 0.75), 0.25),
        (sp.minimize(sp.fnr, sp.fpr <= 0.0), None),
        (sp.minimize(sp.fnr, sp.mcc >= 0.1), None),
        (sp.minimize(sp.fnr), None),
        (sp.maximize(sp.recall, over=sp.fpr.between(0, 0.5, 1)), 0.25),
    ],
    ids=str,
)
def test_the_tightest_share(problem, tightest):
    assert problem.tightest == tightest


def test_thresholds_bounds_and_groups_of_a_problem():
    assert sp.Problem(sp.fnr, False) == sp.minimize(sp.fnr)
    area = sp.maximize(sp.recall, over=sp.fpr.between(0, 0.5, 2))
    assert (area.n_thresholds, sp.minimize(sp.fnr).n_thresholds) == (2, 1)
    assert [(c.quantity, c.relation, c.bound) for c in area.bounds] == [(sp.fpr, "==", 0.125), (sp.fpr, "==", 0.375)]
    bounded = sp.minimize(sp.fnr, sp.fpr <= 0.1, sp.recall.gap("side") <= 0.1)
    assert bounded.bounds == bounded.constraints
    assert (bounded.group, sp.minimize(sp.fnr, sp.fpr <= 0.1).group) == ("side", None)
    assert bounded.pool(SPLIT).tolist() == [[8, 4, 12, 16]]
    assert area.pool(TWO) is TWO


@pytest.mark.parametrize(
    "bounds",
    [
        (sp.fpr >= 0.3, sp.fpr <= 0.2),
        (sp.fpr == 0.3, sp.fpr <= 0.2),
        (sp.fpr >= 0.3, sp.fpr == 0.2),
        (sp.fpr == 0.3, sp.fpr == 0.2),
        (sp.recall >= 0.8, sp.fnr >= 0.3),
        (sp.recall == 0.8, sp.fnr == 0.3),
        (sp.tnr >= 0.8, sp.fpr == 0.3),
        (sp.fpr >= 0.2 + 1e-8, sp.fpr <= 0.2),
    ],
    ids=str,
)
def test_bounds_that_leave_nothing_between(bounds):
    for pair in (bounds, bounds[::-1]):
        with pytest.raises(BadProblem, match="contradict each other; drop one"):
            sp.minimize(sp.precision, *pair)


@pytest.mark.parametrize(
    "bounds",
    [
        (sp.fpr >= 0.2, sp.fpr <= 0.3),
        (sp.fpr >= 0.2, sp.fpr <= 0.2),
        (sp.fpr >= 0.2 + 1e-10, sp.fpr <= 0.2),
        (sp.fpr <= 0.2, sp.fpr <= 0.3),
        (sp.fpr >= 0.2, sp.fpr >= 0.3),
        (sp.recall >= 0.7, sp.fnr >= 0.3),
        (sp.recall >= 0.9, sp.fnr <= 0.3),
        (sp.recall >= 0.9, sp.fpr >= 0.9),
        (sp.recall >= 0.9, sp.precision >= 0.9),
        (sp.mcc >= 0.9, sp.g_mean >= 0.9),
        (sp.recall.gap("g") >= 0.9, sp.fnr >= 0.9),
        (sp.accuracy >= 0.9, sp.flagged >= 0.9),
    ],
    ids=str,
)
def test_bounds_that_leave_something_between(bounds):
    assert sp.minimize(sp.precision, *bounds).constraints == bounds


def test_a_metric_is_no_complement_of_anything():
    own = sp.Metric("own", lambda tp, fp, fn, tn: tp)
    with pytest.raises(BadProblem, match="contradict"):
        sp.minimize(sp.fnr, own >= 3.0, own <= 2.0)
    assert len(sp.minimize(sp.fnr, own >= 0.9, sp.fnr >= 0.9).constraints) == 2


def test_functions_and_texts_are_no_objectives():
    with pytest.raises(BadProblem) as refusal:
        sp.maximize(sp.f_score)
    assert str(refusal.value) == "f_score is a function, not a rate; call it first, as in f_score(1)"

    class Nameless:
        def __call__(self):
            return None

    with pytest.raises(BadProblem, match=r"^objective is a function, not a rate"):
        sp.minimize(Nameless())
    for odd in ("fnr", sp.recall.gap("g"), None):
        with pytest.raises(BadProblem, match="the objective must be a rate such as"):
            sp.minimize(odd)
