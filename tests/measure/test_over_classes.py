"""Quantities over all classes against plain loops, classes by name, and plain rates beside them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
import setpoint as sp
from setpoint.errors import BadProblem
from setpoint.measure.classes import Macro, Micro, OfClass
from setpoint.measure.over_classes import ClassGap, Proportional
from setpoint.measure.rate import NAMED

NAMES = ["mole", "melanoma", "nevus"]
COUNTS = torch.tensor([[8.0, 1, 2, 9], [4.0, 2, 4, 10], [1.0, 4, 1, 14]], dtype=torch.float64)


@given(st.data(), st.integers(1, 4), st.integers(0, 12))
def test_values_equal_a_plain_loop(data, n_classes, rows):
    each = st.lists(st.integers(0, n_classes - 1), min_size=rows, max_size=rows)
    predicted, labels = data.draw(each), data.draw(each)
    weights = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=rows, max_size=rows))
    counts = torch.tensor(reference.class_counts(predicted, labels, weights, n_classes), dtype=torch.float64)
    for name, rate in NAMED.items():
        for kind, quantity in (("macro", Macro(rate)), ("weighted", Proportional(rate)), ("gap", ClassGap(rate))):
            expected = reference.over_classes(name, kind, predicted, labels, weights, n_classes)
            assert math.isclose(float(quantity(counts)), expected, rel_tol=1e-9, abs_tol=1e-9), quantity
    wrong = sum(w for p, y, w in zip(predicted, labels, weights) if p != y)
    problem = sp.minimize(sp.error, OfClass(sp.recall, 0) >= 0.5, sp.accuracy >= 0.1)
    assert float(problem.objective(counts)) == pytest.approx(reference.share(wrong, sum(weights)))
    right = reference.share(sum(weights) - wrong, sum(weights))
    assert float(problem.constraints[1].quantity(counts)) == pytest.approx(right)


@pytest.mark.parametrize("kind", [Macro, Micro, Proportional, ClassGap, lambda rate: OfClass(rate, 1)])
@pytest.mark.parametrize("rate", [sp.recall, sp.precision, sp.mcc, sp.f_score(2)], ids=str)
def test_slopes_are_those_of_finite_differences(kind, rate):
    assert torch.autograd.gradcheck(kind(rate), (COUNTS.clone().requires_grad_(),))
    nothing = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    value = kind(rate)(nothing)
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(nothing.grad).all()


def test_how_fine_they_are():
    assert float(Proportional(sp.recall).resolution(COUNTS, 1.0)) == pytest.approx(2 / 20)
    assert float(ClassGap(sp.recall).resolution(COUNTS, 1.0)) == pytest.approx(2 / 2)


def test_names_of_classes():
    assert str(OfClass(sp.recall, "melanoma")) == "recall of class melanoma"
    assert str(OfClass(sp.flagged, "no fraud")) == 'coverage of class "no fraud"'
    assert str(OfClass(sp.recall, "3")) == 'recall of class "3"'
    assert str(OfClass(sp.recall, 3)) == "recall of class 3"
    assert str(Proportional(sp.f_score(1))) == "weighted f_score(1)"
    assert str(ClassGap(sp.recall)) == "recall gap between classes"
    assert OfClass(sp.recall, "3") != OfClass(sp.recall, 3)
    assert Proportional(sp.recall) != Macro(sp.recall)
    assert Micro(sp.fnr) != Micro(sp.fnr, "error")


def test_a_named_class_has_a_value_once_its_number_is_known():
    problem = sp.ask("maximize recall of class melanoma where error <= 60% and precision of class 2 >= 10%")
    assert problem.kind == "classes"
    with pytest.raises(
        BadProblem, match=r"recall of class melanoma names a class whose number is not known; .*resolved"
    ):
        problem.objective(COUNTS)
    known = problem.resolved(NAMES)
    assert known == problem
    assert str(known) == str(problem)
    assert known.resolved(NAMES) == problem
    assert float(known.objective(COUNTS)) == pytest.approx(0.5)
    assert [float(c.quantity(COUNTS)) for c in known.constraints] == pytest.approx([7 / 20, 1 / 5])
    assert known.objective.k == 1


@pytest.mark.parametrize(
    ("label", "names", "number"),
    [
        (2, ["a", "b", "c"], 2), (2, ["1", "2", "3"], 1), ("2", ["1", "2", "3"], 1), (2, ["1.0", "2.0"], 1),
        ("b", ["a", "b"], 1), (0, ["5", "0"], 1),
    ],
)  # fmt: skip
def test_a_number_is_a_name_before_it_is_a_place(label, names, number):
    assert OfClass(sp.recall, label).resolved(names).k == number


@pytest.mark.parametrize(
    ("label", "names", "says"),
    [
        ("melanom", NAMES, "recall of class melanom names a class that is not there; did you mean 'melanoma'?"),
        ("x", NAMES, "recall of class x names a class that is not there; the classes are mole, melanoma, nevus"),
        (3, NAMES, "recall of class 3 names a class that is not there; the classes are"),
        (0, ["1", "2"], "recall of class 0 names a class that is not there; the classes are 1, 2"),
        ("x", [f"y{i}" for i in range(20)], "the classes are y0, y1, y2, y3, y4, y5, y6, y7 and 12 more"),
    ],
)
def test_a_class_that_is_not_there(label, names, says):
    with pytest.raises(BadProblem) as refusal:
        sp.maximize(OfClass(sp.recall, label)).resolved(names)
    assert says in str(refusal.value)


def test_errors_alone_become_those_of_all_classes():
    problem = sp.minimize(sp.error)
    known = problem.resolved(NAMES)
    assert (problem.kind, known.kind) == ("cut", "classes")
    assert str(known) == "minimize error"
    assert float(known.objective(COUNTS)) == pytest.approx(7 / 20)
    assert known == sp.Problem(Micro(sp.fnr, "error"), False)
    both = sp.maximize(sp.accuracy, sp.error <= 0.3).resolved(NAMES)
    assert float(both.objective(COUNTS)) == pytest.approx(13 / 20)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sp.ask("minimize fnr where recall of class a >= 90%"), "say of which class: fnr of class"),
        (lambda: sp.minimize(sp.fnr).resolved(NAMES), "say of which class: fnr of class NAME, or macro fnr"),
        (lambda: sp.ask("maximize macro recall where mcc >= 0.5"), "mcc of class NAME, or macro mcc"),
        (lambda: sp.ask("maximize macro recall where fpr.gap(sex) <= 1%"), "is about two classes"),
        (lambda: sp.ask("maximize macro recall where flagged <= 3 rows"), "is about two classes"),
        (lambda: sp.ask("maximize recall weighted by amount").resolved(NAMES), "is about two classes"),
        (lambda: sp.ask("maximize auc").resolved(NAMES), "is about two classes, but there are 3"),
        (lambda: sp.ask("maximize macro recall over fpr in [0, 5%]"), "macro recall has no area over fpr"),
        (lambda: sp.ask("minimize recall gap between classes"), "the objective must be a rate"),
        (lambda: sp.ask("maximize macro recall where fpr weighted by x <= 1%"), "are decided in different ways"),
        (lambda: sp.maximize(OfClass(sp.recall, "a"), OfClass(sp.recall, "b") >= 0.3, OfClass(sp.recall, "b") <= 0.2),
         "contradict each other"),
        (lambda: ClassGap("recall"), "ClassGap is made of a rate"),
    ],
)  # fmt: skip
def test_refusals(make, says):
    with pytest.raises(BadProblem, match=says):
        make()
