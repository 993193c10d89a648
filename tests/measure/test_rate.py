import math

import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn import metrics

import reference
import setpoint as sp
from cases import cases
from setpoint.errors import BadProblem
from setpoint.measure.constraint import Constraint
from setpoint.measure.count import count
from setpoint.measure.rate import NAMED, Gap

ALL = [*NAMED.values(), sp.f_score(1), sp.f_score(2)]


@given(case=cases())
def test_rates_equal_the_slow_reference(case):
    counts, slowly = count(case.scores, case.labels, 0.0, weights=case.weights), reference.counts(*case.lists, 0.0)
    for quantity in ALL:
        expected = reference.RATES[quantity.name](*slowly)
        assert math.isclose(float(quantity(counts)), expected, abs_tol=1e-9), quantity


@given(case=cases())
def test_rates_equal_scikit_learn(case):
    scores, labels, weights = (np.array(part) for part in case.lists)
    passed = (scores > 0).astype(int)
    counts = count(case.scores, case.labels, 0.0, weights=case.weights)
    kept = {"sample_weight": weights, "zero_division": 0.0}
    expected = {
        sp.precision: metrics.precision_score(labels, passed, **kept),
        sp.recall: metrics.recall_score(labels, passed, **kept),
        sp.f_score(1): metrics.f1_score(labels, passed, **kept),
        sp.f_score(2): metrics.fbeta_score(labels, passed, beta=2, **kept),
        sp.jaccard: metrics.jaccard_score(labels, passed, **kept),
        sp.accuracy: metrics.accuracy_score(labels, passed, sample_weight=weights),
    }
    for rate, value in expected.items():
        assert math.isclose(float(rate(counts)), value, abs_tol=1e-9), rate


@pytest.mark.parametrize("quantity", ALL, ids=str)
def test_rates_of_nothing_are_zero_with_zero_gradient(quantity):
    counts = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    value = quantity(counts)
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(counts.grad).all()


@pytest.mark.parametrize("quantity", ALL, ids=str)
def test_rates_have_right_gradients(quantity):
    counts = torch.tensor([[3.0, 1.0, 2.0, 7.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(quantity, (counts,))


def test_comparison_with_a_number_is_a_constraint_and_with_a_rate_a_truth():
    constraint = sp.flagged == 0.02
    assert isinstance(constraint, Constraint)
    assert constraint == Constraint(sp.flagged, "==", 0.02)
    assert (sp.fpr == sp.fpr) is True
    assert (sp.fpr == sp.fnr) is False
    assert sp.f_score(1) == sp.f_score(1.0)
    assert sp.f_score(1) != sp.f_score(2)
    assert len({sp.fpr, sp.fpr, sp.fnr}) == 2


def test_violation_is_positive_when_broken():
    counts = torch.tensor([8.0, 3.0, 2.0, 7.0]).double()
    assert math.isclose((sp.fpr <= 0.1).violation(counts), 0.2)
    assert math.isclose((sp.recall >= 0.9).violation(counts), 0.1)
    assert math.isclose((sp.recall >= 0.5).violation(counts), -0.3)
    assert math.isclose((sp.flagged == 0.6).violation(counts), 0.05)
    assert math.isclose((sp.flagged == 0.6).excess(counts), -0.05)
    assert (sp.flagged == 0.6).holds(counts)
    assert not (sp.flagged == 0.7).holds(counts)


def test_gap_is_the_largest_difference_between_groups_that_have_anyone():
    counts = torch.tensor([[9.0, 0, 1, 0], [6.0, 0, 4, 0], [0.0, 5, 0, 5]]).double()
    assert math.isclose(float(sp.recall.gap("sex")(counts)), 0.3)
    assert float(Gap(sp.recall, "sex")(torch.zeros(2, 4).double())) == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sp.fpr <= 1.5, "0.015"),
        (lambda: sp.fpr <= float("nan"), "finite"),
        (lambda: sp.fpr < 0.1, "never strict"),
        (lambda: sp.fpr > 0.1, "never strict"),
        (lambda: bool(sp.fpr <= 0.1), "not a truth value"),
        (lambda: sp.precision.between(0, 1), "only rises or only falls"),
        (lambda: sp.fpr.between(0.5, 0.2), "must rise"),
        (lambda: sp.fpr.between(0.0, 0.2, points=0), "at least one"),
        (lambda: sp.f_score(0), "above 0"),
        (lambda: sp.recall.gap(""), "name of a column"),
        (lambda: Constraint("fpr", "<=", 0.1), "sp.fpr <= 0.01"),
        (lambda: Constraint(sp.fpr, "<", 0.1), "none of"),
    ],
)
def test_bad_bounds_are_refused_by_name(make, says):
    with pytest.raises(BadProblem, match=says):
        make()


def test_points_of_a_range_are_bin_midpoints():
    assert sp.recall.between(0.9, 1.0, points=2).bounds == pytest.approx([0.925, 0.975])


@pytest.mark.parametrize("rate", [sp.fpr, sp.fnr, sp.recall, sp.tnr, sp.precision, sp.flagged, sp.error, sp.f_score(2)])
def test_the_slope_of_a_rate_is_what_autograd_says(rate):
    counts = torch.tensor([[3.0, 2.0, 5.0, 7.0], [0.0, 0.0, 4.0, 6.0], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    counts = counts.double().requires_grad_()
    (expected,) = torch.autograd.grad(rate(counts).sum(), counts)
    torch.testing.assert_close(rate.slope(counts.detach()), expected)
    # One row of counts, or rows per threshold and group, have the same slopes.
    torch.testing.assert_close(rate.slope(counts.detach()[0]), expected[0])
    torch.testing.assert_close(rate.slope(counts.detach().view(2, 2, 4)), expected.view(2, 2, 4))


@pytest.mark.parametrize("rate", [sp.fpr, sp.fnr, sp.flagged, sp.precision], ids=str)
def test_where_totals_are_known_they_are_the_whole_of_a_fixed_share(rate):
    draw = torch.Generator().manual_seed(0)
    counts = torch.rand(3, 4, generator=draw, dtype=torch.float64) + 0.5
    totals = torch.tensor([4.0, 6.0, 0.0, 0.0], dtype=torch.float64)

    def value(counts):
        whole = totals if rate.has_fixed_whole else counts
        part, size = (torch.tensor(four, dtype=torch.float64) for four in (rate.part, rate.whole))
        return (counts @ part) / (whole @ size)

    found, slope = rate.with_slope(counts, totals)
    torch.testing.assert_close(found, value(counts))
    leaf = counts.clone().requires_grad_()
    torch.testing.assert_close(slope, torch.autograd.grad(value(leaf).sum(), leaf)[0])


def test_the_edges_of_beta():
    for beta in (1e-6, 1e6):
        assert sp.f_score(beta).whole[2] == beta**2
    for beta in (9e-7, 1.000001e6):
        with pytest.raises(BadProblem, match="beta"):
            sp.f_score(beta)


def test_a_group_of_little_weight_counts_in_a_gap():
    counts = torch.tensor([[0.1, 0.0, 0.3, 0.0], [3.0, 0.0, 1.0, 0.0]])
    assert float(sp.recall.gap("g")(counts)) == pytest.approx(0.5)
