"""Rates among the first rows of lists: against plain loops and rankings, in problems, and their slopes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
import setpoint as sp
from setpoint.errors import BadProblem, ShapeMismatch
from setpoint.measure.in_first import InFirst, hit
from setpoint.measure.ranking import precision_at_k, recall_at_k

RATES = [sp.precision, sp.recall, sp.fnr, sp.f_score(1), sp.f_score(2), hit]
LISTS = [[1, 0, 1], [0, 0], [0, 1, 0, 1]]
COUNTS = torch.tensor(reference.list_counts(LISTS, 4), dtype=torch.float64)


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 7))
def test_values_equal_a_plain_loop(lists, k):
    counts = torch.tensor(reference.list_counts(lists, 7), dtype=torch.float64)
    assert counts.sum(-1).tolist() == [[len(one) for one in lists]] * 7
    for rate in RATES:
        expected = reference.in_first(rate.name, lists, k)
        assert math.isclose(float(InFirst(rate, k)(counts)), expected, abs_tol=1e-12), rate


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 7))
def test_they_are_the_measures_of_rankings(lists, k):
    counts = torch.tensor(reference.list_counts(lists, 7), dtype=torch.float64)
    wide = max(map(len, lists))
    labels = torch.tensor([[*one, *[0] * (wide - len(one))] for one in lists])
    mask = torch.tensor([[place < len(one) for place in range(wide)] for one in lists])
    scores = -torch.arange(wide).double().expand(len(lists), wide)
    for rate, measure in ((sp.precision, precision_at_k), (sp.recall, recall_at_k)):
        assert float(InFirst(rate, k)(counts)) == pytest.approx(float(measure(scores, labels, k, mask).mean()))


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_slopes_are_those_of_finite_differences(rate):
    soft = (0.8 * COUNTS + 0.05).requires_grad_()
    assert torch.autograd.gradcheck(InFirst(rate, 2), (soft,))
    assert InFirst(rate, 2)(COUNTS.expand(5, 4, 3, 4)).shape == (5,)
    assert float(InFirst(rate, 2)(COUNTS[:, :0])) == 0
    assert float(InFirst(rate, 2).resolution(COUNTS[:, :0], 1.0)) == 0


def test_a_problem_knows_how_deep_it_looks():
    problem = sp.ask("maximize recall in the first 20 where precision in the first 5 >= 30%")
    assert (problem.kind, problem.depth) == ("lists", 20)
    assert sp.minimize(sp.fnr).depth == 0
    short = sp.ask("maximize recall in the first 2 where precision in the first 1 >= 30%")
    assert problem == sp.maximize(InFirst(sp.recall, 20), InFirst(sp.precision, 5) >= 0.3)
    assert short.costs(COUNTS.unsqueeze(0)).tolist() == pytest.approx([-(0.5 + 0 + 0.5) / 3])
    assert short.excesses(COUNTS.unsqueeze(0)).tolist() == pytest.approx([0.3 - 1 / 3])


def test_names_identities_and_fineness():
    assert str(InFirst(sp.f_score(1), 3)) == "f_score(1) in the first 3"
    assert repr(InFirst(hit, 3)) == "InFirst(hit in the first 3)"
    assert InFirst(hit, 3) == InFirst(hit, 3)
    assert InFirst(hit, 3) != InFirst(hit, 4)
    assert InFirst(sp.recall, 3) != InFirst(sp.precision, 3)
    assert InFirst(hit, 3).is_share
    assert float(InFirst(sp.precision, 4).resolution(COUNTS, 1.0)) == pytest.approx(1 / 4 / 3)
    assert float(InFirst(sp.recall, 4).resolution(COUNTS, 1.0)) == pytest.approx(1 / 2 / 3)
    assert float(InFirst(hit, 4).resolution(COUNTS, 1.0)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("make", [lambda: InFirst(hit, 5)(COUNTS), lambda: InFirst(hit, 1)(COUNTS[0])])
def test_counts_that_are_not_deep_enough(make):
    with pytest.raises(ShapeMismatch, match="needs counts"):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: InFirst(sp.fpr, 5), r"lists have precision, recall, fnr, an F-score or hit .* got Rate\(fpr\)"),
        (lambda: InFirst("recall", 5), "lists have precision"),
        (lambda: InFirst(sp.recall, 0), "a whole number of rows from 1 up, got 0"),
        (lambda: InFirst(sp.recall, True), "a whole number of rows from 1 up, got True"),
        (lambda: sp.ask("maximize recall in the first 0"), "a whole number of rows from 1 up, got 0"),
        (lambda: sp.ask("maximize npv in the first 5"), "lists have precision"),
        (lambda: sp.ask("maximize recall in the first 5 where precision >= 9%"), "precision in the first 5"),
        (lambda: sp.ask("maximize recall in the first 5 where fpr <= 9%"), "fpr has no meaning in lists"),
        (lambda: sp.ask("maximize recall in the first 5 over fpr in [0, 1]"), "has no area over fpr"),
        (lambda: sp.ask("maximize recall in the first 5").resolved(["a", "b"]), "is about two classes"),
        (lambda: sp.ask("maximize recall in the first 5 where macro recall >= 9%"), "decided in different ways"),
    ],
)  # fmt: skip
def test_refusals(make, says):
    with pytest.raises(BadProblem, match=says):
        make()
