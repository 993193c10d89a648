"""Counts of K classes against scikit-learn and against slow loops, and the quantities made of them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_score, recall_score

import setpoint as sp
from setpoint.errors import BadLabels, BadProblem, BadScores, BadWeights, ShapeMismatch
from setpoint.measure.classes import (
    Macro,
    Micro,
    OfClass,
    check_classes,
    class_shares,
    count_classes,
    predict_class,
)


def draw(seed, size=50, n_classes=4, levels=None):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(size, n_classes, generator=generator, dtype=torch.float64)
    if levels:
        scores = (scores * levels).round() / levels
    labels = torch.randint(n_classes, (size,), generator=generator)
    shifts = torch.randn(n_classes, generator=generator, dtype=torch.float64)
    if levels:
        shifts = (shifts * levels).round() / levels
    weights = torch.rand(size, generator=generator, dtype=torch.float64)
    return scores, labels, shifts, weights


def slow_counts(scores, labels, shifts, weights, temperature=None):
    """One sample and one class at a time."""
    n_classes = len(shifts)
    counts = np.zeros((n_classes, 4))
    for row, label, weight in zip(scores.tolist(), labels.tolist(), weights.tolist()):
        moved = [score - shift for score, shift in zip(row, shifts.tolist())]
        if temperature is None:
            shares = [float(k == moved.index(max(moved))) for k in range(n_classes)]
        else:
            powers = [np.exp(temperature * value) for value in moved]
            shares = [power / sum(powers) for power in powers]
        for k, share in enumerate(shares):
            true = k == label
            counts[k, 0 if true else 1] += weight * share
            counts[k, 2 if true else 3] += weight * (1 - share)
    return counts


@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 6), levels=st.sampled_from([None, 1, 2]))
def test_hard_and_soft_counts_are_those_of_a_slow_loop(seed, n_classes, levels):
    scores, labels, shifts, weights = draw(seed, 20, n_classes, levels)
    for temperature in (None, 0.7, 5.0):
        found = count_classes(scores, labels, shifts, temperature, weights=weights)
        np.testing.assert_allclose(found, slow_counts(scores, labels, shifts, weights, temperature), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_hard_counts_and_their_rates_are_those_of_scikit_learn(seed):
    scores, labels, shifts, weights = draw(seed)
    predicted = (scores - shifts).numpy().argmax(1)
    matrix = confusion_matrix(labels, predicted, sample_weight=weights, labels=range(4))
    counts = count_classes(scores, labels, shifts, weights=weights)
    np.testing.assert_allclose(counts[:, 0], matrix.diagonal())
    np.testing.assert_allclose(counts[:, :2].sum(1), matrix.sum(0))
    np.testing.assert_allclose(counts[:, [0, 2]].sum(1), matrix.sum(1))
    np.testing.assert_allclose(counts.sum(1), [float(weights.sum())] * 4)
    asked = {"y_true": labels, "y_pred": predicted, "sample_weight": weights}
    assert float(Macro(sp.recall)(counts)) == pytest.approx(recall_score(**asked, average="macro"))
    assert float(Macro(sp.f_score(1))(counts)) == pytest.approx(f1_score(**asked, average="macro"))
    assert float(Micro(sp.f_score(1))(counts)) == pytest.approx(f1_score(**asked, average="micro"))
    assert float(1 - Micro(sp.fnr)(counts)) == pytest.approx(accuracy_score(**asked))
    assert float(OfClass(sp.precision, 2)(counts)) == pytest.approx(
        precision_score(**asked, average=None, zero_division=0)[2]
    )
    covered = float(weights[torch.tensor(predicted) == 1].sum() / weights.sum())
    assert float(OfClass(sp.flagged, 1)(counts)) == pytest.approx(covered)


def test_of_tied_classes_the_lowest_is_predicted():
    scores = torch.tensor([[0.0, 0.0, 0.0], [1.0, 3.0, 3.0], [2.0, 0.0, 2.0]])
    assert predict_class(scores).tolist() == [0, 1, 0]
    assert class_shares(scores).tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]


def test_soft_shares_become_the_truth_as_the_temperature_rises_and_have_a_gradient():
    scores, labels, shifts, _ = draw(3)
    torch.testing.assert_close(class_shares(scores, shifts, 1e6), class_shares(scores, shifts))
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: count_classes(s, labels, shifts, 2.0), (scores,))


def test_quantities_make_constraints_and_problems_that_take_their_counts():
    problem = sp.minimize(Micro(sp.fnr), OfClass(sp.flagged, 1) <= 0.3, OfClass(sp.flagged, 2) >= 0.2)
    assert str(problem) == "minimize micro fnr where coverage of class 1 <= 30% and coverage of class 2 >= 20%"
    scores, labels, shifts, _ = draw(1)
    counts = count_classes(scores, labels, shifts).unsqueeze(0)
    wrong = float((predict_class(scores, shifts) != labels).double().mean())
    assert float(problem.cost(counts)) == pytest.approx(wrong)
    covered = counts[0, :, :2].sum(1) / 50
    expected = [float(covered[1]) - 0.3, 0.2 - float(covered[2])]
    assert problem.excesses(counts).tolist() == pytest.approx(expected)
    assert problem.holds(counts) == (max(expected) <= 0)
    cost = sp.maximize(Macro(sp.recall)).costs(count_classes(scores, labels, shifts).expand(7, 4, 4))
    assert cost.shape == (7,)


def test_an_equality_of_a_coverage_is_met_within_one_sample():
    scores = torch.eye(3, dtype=torch.float64).repeat(5, 1)[:10]
    counts = count_classes(scores, torch.zeros(10, dtype=torch.long)).unsqueeze(0)
    assert sp.minimize(Micro(sp.fnr), OfClass(sp.flagged, 1) == 0.35).holds(counts)
    assert not sp.minimize(Micro(sp.fnr), OfClass(sp.flagged, 1) == 0.45).holds(counts)


def test_quantities_are_equal_when_they_say_the_same():
    assert OfClass(sp.flagged, 1) == OfClass(sp.flagged, 1)
    assert OfClass(sp.flagged, 1) != OfClass(sp.flagged, 2)
    assert Macro(sp.recall) != Micro(sp.recall)
    assert hash(Macro(sp.f_score(1))) == hash(Macro(sp.f_score(1)))


@pytest.mark.parametrize(
    "build",
    [lambda: OfClass(sp.flagged, -1), lambda: OfClass(sp.flagged, 1.5), lambda: Macro("recall"), lambda: Micro(None)],
)
def test_quantities_of_nothing_are_refused(build):
    with pytest.raises(BadProblem):
        build()


@pytest.mark.parametrize(
    ("scores", "labels", "weights", "error"),
    [
        (torch.zeros(3), [0, 1, 0], None, ShapeMismatch),
        (torch.zeros(3, 1), [0, 0, 0], None, ShapeMismatch),
        (torch.zeros(3, 5), [0, 0, 0], None, ShapeMismatch),
        (torch.zeros(3, 4), [0, 0], None, ShapeMismatch),
        (torch.zeros(3, 4), [0, 4, 0], None, BadLabels),
        (torch.zeros(3, 4), [0, -1, 0], None, BadLabels),
        (torch.zeros(3, 4), [0.0, 0.5, 0.0], None, BadLabels),
        (torch.full((3, 4), float("nan")), [0, 1, 2], None, BadScores),
        (torch.zeros(3, 4), [0, 1, 2], [1.0, -1.0, 1.0], BadWeights),
        (torch.zeros(3, 4), [0, 1, 2], [1.0, 1.0], ShapeMismatch),
        ([["a", "b"]], [0], None, BadScores),
        (torch.zeros(3, 4), ["a", "b", "c"], None, BadLabels),
        (torch.zeros(3, 4, dtype=torch.complex64), [0, 1, 2], None, BadScores),
        (torch.zeros(3, 4), None, None, BadLabels),
        (torch.zeros(3, 4, dtype=torch.float16), [0, 1, 2], [1.0, 1e6, 1.0], BadWeights),
    ],
)
def test_bad_input_is_refused_by_name(scores, labels, weights, error):
    with pytest.raises(error):
        check_classes(scores, labels, weights, n_classes=4)


def test_lists_and_arrays_get_in():
    sample = check_classes([[1, 2], [3, 0]], np.array([1, 0], dtype=np.uint8))
    assert sample.scores.is_floating_point()
    assert sample.labels.dtype == torch.int64
    assert sample.weights.tolist() == [1, 1]


def test_counts_of_classes_by_hand():
    scores = torch.tensor([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    labels, weights = torch.tensor([0, 2, 0, 2]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert predict_class(scores).tolist() == [0, 1, 0, 2]
    assert predict_class(scores, torch.tensor([1.5, 0.0, 0.0])).tolist() == [1, 1, 1, 2]
    counts = count_classes(scores, labels, weights=weights)
    assert counts.dtype == torch.float64
    assert counts.tolist() == [[4, 0, 0, 6], [0, 2, 0, 8], [4, 0, 2, 4]]
    shifted = count_classes(scores, labels, torch.tensor([1.5, 0.0, 0.0]))
    assert shifted.tolist() == [[0, 0, 2, 2], [0, 3, 0, 1], [1, 0, 1, 2]]
    soft = class_shares(scores.half(), 0.5, 2.0)
    assert soft.dtype == torch.float32
    torch.testing.assert_close(soft, torch.softmax(2 * scores, -1), atol=1e-3, rtol=1e-3)
    assert class_shares(scores, 0.0, None).tolist()[1] == [0, 1, 0]
    assert count_classes(scores, labels, 0.0, 1.0).sum().item() == pytest.approx(12)
