"""Rates and costs that count the values of columns: against plain loops, in problems, and their slopes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
import setpoint as sp
from cases import cases
from setpoint.errors import BadProblem, ShapeMismatch
from setpoint.measure.rate import NAMED
from setpoint.measure.worth import Cost, Weighted

AMOUNT, FEE = "amount", "fee"


def counts_of(case, values, threshold=0.0):
    return reference.worths(*case.lists, values, threshold)


@given(case=cases(), data=st.data())
def test_values_equal_a_plain_loop(case, data):
    scores, labels, weights = case.lists
    column = st.lists(st.floats(0, 1e3), min_size=len(scores), max_size=len(scores))
    amount, fee = data.draw(column), data.draw(column)
    counts = torch.tensor(counts_of(case, [amount, fee]), dtype=torch.float64)
    for name, rate in NAMED.items():
        worth = [w * a for w, a in zip(weights, amount)]
        expected = reference.RATES[name](*reference.counts(scores, labels, worth, 0.0))
        found = Weighted(rate, AMOUNT, (AMOUNT, FEE))(counts)
        assert math.isclose(float(found), expected, rel_tol=1e-9, abs_tol=1e-9), name
    for miss, alarm, misses, alarms in (
        (AMOUNT, 5.0, amount, [5.0] * len(scores)),
        (2.5, FEE, [2.5] * len(scores), fee),
        (FEE, AMOUNT, fee, amount),
        (FEE, FEE, fee, fee),
    ):
        expected = reference.mean_cost(scores, labels, weights, misses, alarms, 0.0)
        found = Cost(miss, alarm, (AMOUNT, FEE))(counts)
        assert math.isclose(float(found), expected, rel_tol=1e-9, abs_tol=1e-9), (miss, alarm)
    expected = reference.mean_cost(scores, labels, weights, [5.0] * len(scores), [1.0] * len(scores), 0.0)
    assert math.isclose(float(sp.cost(miss=5, alarm=1)(counts[0])), expected, rel_tol=1e-9, abs_tol=1e-9)


QUANTITIES = [
    Weighted(sp.recall, AMOUNT), Weighted(sp.precision, None), Weighted(sp.mcc, AMOUNT), Cost(AMOUNT, 5), Cost(1, FEE),
    Cost(AMOUNT, FEE),
]  # fmt: skip


@pytest.mark.parametrize("quantity", QUANTITIES, ids=str)
def test_slopes_are_those_of_finite_differences(quantity):
    counts = torch.tensor([[3.0, 1, 2, 7], [30.0, 5, 11, 40], [6.0, 9, 2, 1]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(quantity.among((AMOUNT, FEE)), (counts,))
    nothing = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    value = quantity.among((AMOUNT, FEE))(nothing)
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(nothing.grad).all()


def test_a_problem_gives_all_its_quantities_one_order_of_columns():
    problem = sp.minimize(
        Cost(AMOUNT, 5), Weighted(sp.fpr, FEE) <= 0.5, Weighted(sp.recall, AMOUNT) >= 0.5, sp.fpr <= 1
    )
    assert problem.kind == "worth"
    assert problem.columns == (AMOUNT, FEE)
    counts = torch.tensor([[[4.0, 2, 2, 2], [40.0, 20, 30, 10], [7.0, 3, 1, 1]]], dtype=torch.float64)
    assert problem.costs(counts).tolist() == [(30 + 5 * 2) / 10]
    values = [float(c.quantity(counts)[0]) for c in problem.constraints]
    assert values == pytest.approx([3 / 4, 40 / 70, 2 / 4])
    assert problem.excesses(counts).tolist() == pytest.approx([0.25, 0.5 - 40 / 70, -0.5])
    assert sp.minimize(sp.fnr).columns == ()


def test_quantities_by_themselves_have_their_own_columns():
    counts = torch.tensor([[4.0, 2, 2, 2], [40.0, 20, 30, 10], [7.0, 3, 1, 1]], dtype=torch.float64)
    assert float(Weighted(sp.recall, FEE)(counts[:2])) == pytest.approx(4 / 7)
    assert float(Cost(FEE, AMOUNT)(counts)) == pytest.approx((30 + 3) / 10)
    assert Cost(FEE, AMOUNT).columns == (FEE, AMOUNT)
    assert Cost(FEE, FEE).columns == (FEE,)


def test_plain_rates_beside_weighted_ones_count_rows():
    problem = sp.ask("maximize recall weighted by amount where fpr <= 10% and mcc >= 0")
    assert [type(q) for q in problem.quantities] == [Weighted] * 3
    assert [q.columns for q in problem.quantities] == [(AMOUNT,), (), ()]
    assert str(problem) == "maximize recall weighted by amount where fpr <= 10% and mcc >= 0.0"
    assert problem == sp.maximize(Weighted(sp.recall, AMOUNT), sp.fpr <= 0.1, sp.mcc >= 0)


def test_how_fine_they_are():
    counts = torch.tensor([[4.0, 2, 2, 2], [40.0, 20, 30, 10]], dtype=torch.float64)
    heaviest = torch.tensor([1.0, 35.0], dtype=torch.float64)
    assert float(Weighted(sp.recall, AMOUNT).resolution(counts, heaviest)) == pytest.approx(35 / 70)
    assert float(Weighted(sp.recall, None).resolution(counts, heaviest)) == pytest.approx(1 / 6)
    assert float(Weighted(sp.recall, AMOUNT).resolution(counts, 7.0)) == pytest.approx(7 / 70)
    assert float(Cost(AMOUNT, 5).resolution(counts, heaviest)) == pytest.approx(3.5)
    assert float(Cost(AMOUNT, 50).resolution(counts, heaviest)) == pytest.approx(5.0)


def test_names_identities_and_shares():
    assert str(Weighted(sp.fpr, "order value")) == 'fpr weighted by "order value"'
    assert str(Weighted(sp.fpr, None)) == "fpr"
    assert str(sp.cost(miss=5, alarm=0.5)) == "cost(miss=5, alarm=0.5)"
    assert str(Cost("order value", 1)) == 'cost(miss="order value", alarm=1)'
    assert repr(Cost(AMOUNT, 1)) == "Cost(cost(miss=amount, alarm=1))"
    assert Weighted(sp.fpr, AMOUNT) == Weighted(sp.fpr, AMOUNT, (FEE, AMOUNT))
    assert Weighted(sp.fpr, AMOUNT) != Weighted(sp.fpr, FEE)
    assert Weighted(sp.fpr, AMOUNT) != Weighted(sp.fnr, AMOUNT)
    assert Cost(AMOUNT, 1) != Cost(1, AMOUNT)
    assert sp.cost(miss=5, alarm=1) == sp.cost(alarm=1.0, miss=5.0)
    assert sp.cost(miss=1, alarm=0.5).is_share
    assert not sp.cost(miss=2, alarm=0.5).is_share
    assert not Cost(AMOUNT, 0.5).is_share
    assert Weighted(sp.recall, AMOUNT).is_share
    assert not Weighted(sp.mcc, AMOUNT).is_share


def test_counts_without_values_are_refused():
    with pytest.raises(ShapeMismatch, match=r"needs counts \(\.\.\., 2, 4\), of rows and of values, got \(4,\)"):
        Weighted(sp.recall, AMOUNT)(torch.ones(4))


@pytest.mark.parametrize(
    "make",
    [
        lambda: sp.cost(miss=-1, alarm=1),
        lambda: sp.cost(miss=math.nan, alarm=1),
        lambda: sp.cost(miss=1, alarm=2e12),
        lambda: sp.cost(miss=True, alarm=1),
        lambda: sp.cost(miss="", alarm=1),
        lambda: sp.cost(miss=0, alarm=0),
        lambda: Cost(1, 1),
        lambda: Cost(AMOUNT, None),
        lambda: Weighted("recall", AMOUNT),
        lambda: Weighted(sp.recall, 3),
        lambda: Weighted(sp.recall, ""),
        lambda: sp.minimize(Weighted(sp.fnr, AMOUNT), sp.flagged.rows <= 3),
        lambda: sp.minimize(Weighted(sp.fnr, AMOUNT), sp.recall.gap("sex") <= 0.1),
        lambda: sp.minimize(Weighted(sp.fnr, AMOUNT), over=sp.fpr.between(0, 0.1)),
        lambda: sp.minimize(Weighted(sp.fnr, AMOUNT), sp.classes.Macro(sp.fnr) <= 0.1),
    ],
)
def test_refusals(make):
    with pytest.raises(BadProblem):
        make()
