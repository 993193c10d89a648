"""The border: what is read as a number, what a sample knows of itself, and the words of each refusal."""

import datetime

import numpy as np
import pytest
import torch

from setpoint.errors import BadGroups, BadLabels, BadScores, BadWeights, ShapeMismatch
from setpoint.measure.classes import check_classes
from setpoint.measure.sample import (
    Sample,
    check_sample,
    check_scores,
    name_groups,
    refuse_huge_scores,
    refuse_odd_weights,
)

SCORES = torch.tensor([0.5, 1.5, -1.0, 3.0])


LABELS = torch.tensor([0.0, 1.0, 0.0, 1.0])


WEIGHTS = torch.tensor([1.0, 2.0, 0.5, 0.0])


UNREAD = "must be numbers, one per sample, but could not be read: values of type"


FLAT = "must hold one number per sample, shape (n,)"


@pytest.mark.parametrize(
    ("arguments", "error", "whole"),
    [
        (([0.1, 0.2], [0, 2]), BadLabels, "labels must be 0 or 1, but hold 2; map your classes to 0 and 1 first"),
        (
            ([0.1, 0.2], [1, -1]),
            BadLabels,
            "labels must be 0 or 1, but hold -1; for labels of -1 and 1 pass (labels > 0)",
        ),
        (([[0.1]], [0]), ShapeMismatch, f"scores (1, 1) {FLAT}; use scores.squeeze(-1)"),
        (([0.1], [0, 1]), ShapeMismatch, "scores (1,) and labels (2,) must match"),
        (([0.1], [0], [1, 2]), ShapeMismatch, "scores (1,) and weights (2,) must match"),
        (([0.1], [0], None, [1, 2]), ShapeMismatch, "groups (2,) and scores (1,) must match"),
        (
            ([float("nan"), float("inf"), 1.0], [0, 0, 1]),
            BadScores,
            "2 of 3 scores are not finite (1 NaN); the model has diverged or its input holds such values: lower the "
            "learning rate or clean the input",
        ),
        (
            ([0.1], [0], None, [True]),
            BadGroups,
            "groups must be whole numbers from 0 up, one per sample; encode names as numbers first",
        ),
        (
            ([0.1], [0], [-1.0]),
            BadWeights,
            "weights must be finite and not negative; drop such samples or set their weight to 0",
        ),
        (
            ([0.1, 0.2, 0.3], [0, 1, 1], [0.0, 1e-13, 2.0]),
            BadWeights,
            "weights other than 0 must lie between 1e-12 and 1e+12, but run from 1e-13 to 2; divide them by their mean",
        ),
        (
            ([0.1, 0.2, 0.3], [0, 1, 1], [0.0, 1e-9, 1e6]),
            BadWeights,
            "weights run from 1e-09 to 1e+06, but none may be more than 1e+12 times another; set the smallest to 0",
        ),
    ],
)  # fmt: skip
def test_every_word_of_a_refusal(arguments, error, whole):
    with pytest.raises(error) as refusal:
        check_sample(*arguments)
    assert str(refusal.value) == whole


@pytest.mark.parametrize("edge", [1e-12, 1e12])
def test_weights_at_the_edge_get_in(edge):
    assert check_sample(SCORES.double(), LABELS, [edge, 1, 0, 1]).weights[0] == edge
    refuse_odd_weights(torch.zeros(0))
    refuse_odd_weights(torch.zeros(3))


@pytest.mark.parametrize("weight", [0.9e-12, 1.1e12, np.nextafter(1e-12, 0), np.nextafter(1e12, np.inf)])
def test_weights_beyond_the_edge_do_not(weight):
    with pytest.raises(BadWeights, match="the weights of the heavy"):
        refuse_odd_weights(torch.tensor([0.0, weight, 1.0], dtype=torch.float64), "the weights of the heavy")


def test_scores_at_the_edge_can_be_trained_on():
    refuse_huge_scores(torch.tensor([-1e35, 1e35], dtype=torch.float64))
    refuse_huge_scores(torch.zeros(0))
    with pytest.raises(BadScores, match="2e\\+35 are too large to train on \\(at most 1e\\+35\\)"):
        refuse_huge_scores(torch.tensor([0.0, -2e35]))


def test_labels_and_weights_take_the_type_of_the_scores_and_lose_their_gradient():
    weights = torch.ones(4, dtype=torch.float64, requires_grad=True)
    sample = check_sample(SCORES, LABELS.int(), weights, groups=torch.tensor([0, 1, 1, 2], dtype=torch.int32))
    assert sample.labels.dtype == sample.weights.dtype == torch.float32
    assert not sample.weights.requires_grad
    assert sample.groups.dtype == torch.int64
    assert sample.groups.tolist() == [0, 1, 1, 2]
    assert sample.n_groups is None


def test_what_a_sample_knows_of_itself():
    plain, weighted = Sample(SCORES, LABELS), Sample(SCORES, LABELS, WEIGHTS)
    assert plain.mass == 4
    assert weighted.mass == 3.5
    assert Sample(SCORES.half(), LABELS).mass.dtype == torch.float32
    assert Sample(SCORES.double(), LABELS).dtype == torch.float64
    repeated = torch.tensor([0.5, 0.5, 1.5, 1.5, 1.5, 1.5, -1.0]).double()
    assert float(weighted.spread) == pytest.approx(float(repeated.std(correction=0)))
    assert float(plain.spread) == pytest.approx(float(SCORES.double().std(correction=0)))
    assert plain.spread.dtype == torch.float64


@pytest.mark.parametrize(
    ("labels", "weights", "both"),
    [
        ([0, 1], None, True),
        ([0, 0], None, False),
        ([1, 1], None, False),
        ([0, 1], [1.0, 0.0], False),
        ([0, 1], [0.0, 1.0], False),
        ([0, 1], [0.5, 1.0], True),
    ],
)
def test_both_classes_are_there_when_both_weigh_something(labels, weights, both):
    weights = None if weights is None else torch.tensor(weights)
    assert Sample(torch.zeros(2), torch.tensor(labels).float(), weights).has_both_classes is both


def test_detached_and_doubled_samples_keep_all_else():
    groups = torch.tensor([0, 1, 0, 1])
    leaf = SCORES.clone().requires_grad_()
    sample = Sample(leaf, LABELS, WEIGHTS, groups, 2)
    for changed, dtype in ((sample.detach(), torch.float32), (sample.double(), torch.float64)):
        assert not changed.scores.requires_grad
        assert changed.scores.dtype == dtype
        assert changed.scores.tolist() == SCORES.tolist()
        assert changed.labels.tolist() == LABELS.tolist()
        assert changed.weights.tolist() == WEIGHTS.tolist()
        assert changed.groups is groups
        assert changed.n_groups == 2
    assert sample.double().labels.dtype == sample.double().weights.dtype == torch.float64
    assert Sample(SCORES, LABELS).double().weights is None


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_groups_are_named_in_the_order_of_their_names(kind):
    codes, names = name_groups(kind([3, 1, 3, 20]))
    assert codes.tolist() == [2, 0, 2, 1]
    assert codes.dtype == torch.int64
    assert names == ["1", "20", "3"]
    assert name_groups(["b", "a"])[0].tolist() == [1, 0]
    assert name_groups(torch.tensor([[1, 0]]))[0].shape == (1, 2)


def test_a_mask_of_true_and_false_is_no_group_but_whole_numbers_of_any_size_are():
    with pytest.raises(BadGroups):
        check_sample(SCORES, LABELS, groups=[True, False, True, False])
    assert check_sample(SCORES, LABELS, groups=np.array([0, 1, 0, 9], dtype=np.uint8)).groups.max() == 9


@pytest.mark.parametrize(
    ("arguments", "error", "whole"),
    [
        (([0.1], [0]), ShapeMismatch, "scores have shape (1,); give (samples, classes), two classes or more"),
        (([[0.1]], [0]), ShapeMismatch, "scores have shape (1, 1); give (samples, classes), two classes or more"),
        (([[1, 2]], [0], None, 3), ShapeMismatch, "scores have shape (1, 2); give (samples, classes), here (n, 3)"),
        (([[1, float("nan")]], [0]), BadScores, "1 of 1 rows of scores are not finite; lower the learning rate"),
        (([[1, 2]], [0, 1]), ShapeMismatch, "1 rows of scores came with labels of shape (2,)"),
        (([[1, 2]], [2]), BadLabels, "labels must be class numbers from 0 to 1, but hold 2"),
        (([[1, 2]], [-1]), BadLabels, "labels must be class numbers from 0 to 1, but hold -1"),
        (([[1, 2]], [0.5]), BadLabels, "labels must be class numbers from 0 to 1, but hold 0.5"),
        (([[1, 2]], [0], [1, 1]), ShapeMismatch, "1 rows of scores came with weights of shape (2,)"),
        ((["a"], [0]), BadScores, "scores must be numbers, but hold words such as 'a'"),
        (([[1, 2]], ["a"]), BadLabels, "labels must be numbers, but hold words such as 'a'; number the classes from 0"),
        (([[1, 2]], [0], ["a"]), BadWeights, "weights must be numbers, but hold words such as 'a'"),
        (([[1j, 2]], [0]), BadScores, "scores must be real numbers, but are complex"),
    ],
)
def test_every_word_of_a_refusal_of_classes(arguments, error, whole):
    with pytest.raises(error) as refusal:
        check_classes(*arguments[:3], n_classes=arguments[3] if len(arguments) > 3 else None)
    assert str(refusal.value).startswith(whole)


def test_classes_that_get_in():
    leaf = torch.zeros(2, 3, requires_grad=True)
    sample = check_classes(leaf, [0.0, 2.0])
    assert sample.labels.dtype == torch.int64
    assert sample.labels.tolist() == [0, 2]
    assert sample.weights.tolist() == [1, 1]
    assert not sample.weights.requires_grad
    whole = check_classes([[1, 2], [3, 4]], [0, 1], torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))
    assert whole.scores.dtype == torch.get_default_dtype()
    assert whole.weights.dtype == torch.get_default_dtype()
    assert whole.weights.tolist() == [1, 2]
    assert not whole.weights.requires_grad


NAN = float("nan")


RECORDS = np.array([(1, 2.0)], dtype=[("a", int), ("b", float)])


HUGE = torch.finfo(torch.float64).max


class Unreadable:
    def __array__(self, *_, **__):
        raise TypeError("no")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (None, "scores are missing; pass one number per sample"),
        (torch.tensor([1j]), "scores must be real numbers, but are complex; pass scores.real or scores.abs()"),
        (np.array([1j]), "scores must be real numbers, but are complex; pass scores.real or scores.abs()"),
        (RECORDS, "scores must be numbers, one per sample, but are records of several fields"),
        (["high"], "scores must be numbers, but hold words such as 'high'"),
        ([1.0, "high"], "scores must be numbers, but hold words such as '1.0'"),
        (np.array([1.0, "high", b"low"], dtype=object), "scores must be numbers, but hold words such as 'high'"),
        (np.array([b"low"]), "scores must be numbers, but hold words such as \"b'low'\""),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "scores must be numbers, but hold dates or times; turn them"),
        (np.array([3], dtype="timedelta64[s]"), "scores must be numbers, but hold dates or times"),
        ([[1.0], [1.0, 2.0]], "scores must be numbers, one per sample, but this list could not be read as such"),
        ({1: 2}, "scores must be numbers, one per sample, but this dict could not be read as such"),
        (Unreadable(), "scores must be numbers, one per sample, but this Unreadable could not be read as such"),
        ([datetime.date(2020, 1, 1)], "scores must be numbers, one per sample, but this list could not be read"),
        ([10**400], "scores must be numbers, one per sample, but this list could not be read as such"),
        ([1.0, None], "1 of 2 scores are not finite (1 NaN); "),
        ([1.0, HUGE], "1 of 2 scores are not finite (0 NaN); "),
        ([-HUGE, NAN, 0.0], "2 of 3 scores are not finite (1 NaN); "),
    ],
)  # fmt: skip
def test_scores_that_are_none(values, says):
    with pytest.raises(BadScores) as refusal:
        check_scores(values)
    assert str(refusal.value).startswith(says)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([0.1], ["no"]), BadLabels, "labels must be numbers, but hold words such as 'no'; compare them"),
        (([0.1], None), BadLabels, "labels are missing; pass one number per sample"),
        (([0.1], [1j]), BadLabels, "labels must be real numbers"),
        (([0.1, 0.2], [1, None]), BadLabels, "labels are missing for 1 of 2 samples, first in labels[1]"),
        (([0.1], [0], ["a"]), BadWeights, "weights must be numbers, but hold words such as 'a'"),
        (([0.1], [0], [1j]), BadWeights, "weights must be real numbers"),
        (([0.1], [0], None, ["a"]), BadGroups, "groups must be numbers, but hold words such as 'a'; number the groups"),
        (([0.1], [0], None, [1j]), BadGroups, "groups must be real numbers, but are complex; pass groups.real"),
        (([0.1], [[0]]), ShapeMismatch, "scores (1,) and labels (1, 1) must match; use labels.squeeze(-1)"),
        (([0.1], [0], [[1.0]]), ShapeMismatch, "scores (1,) and weights (1, 1) must match; use weights.squeeze(-1)"),
        (([0.1], [[0, 1]]), ShapeMismatch, "scores (1,) and labels (1, 2) must match"),
        (([[0.1, 0.2]], [0]), ShapeMismatch, "scores (1, 2) must hold one number per sample, shape (n,); of two"),
        (([[1, 2, 3]], [0]), ShapeMismatch, "scores (1, 3) must hold one number per sample, shape (n,)"),
        ((0.1, [0]), ShapeMismatch, "scores () must hold one number per sample, shape (n,)"),
        (([[[0.1]]], [0]), ShapeMismatch, "scores (1, 1, 1) must hold one number per sample, shape (n,)"),
        ((torch.zeros(1).half(), [0], [7e4]), BadWeights, "weights beyond 65504 do not fit float16 scores; divide"),
    ],
)  # fmt: skip
def test_what_comes_with_the_scores_is_refused_by_its_own_name(arguments, error, says):
    with pytest.raises(error) as refusal:
        check_sample(*arguments)
    assert str(refusal.value).startswith(says)


def test_hints_are_given_only_where_they_help():
    for arguments in (([[1, 2, 3]], [0]), (0.1, [0]), ([0.1], [[0, 1]])):
        with pytest.raises(ShapeMismatch) as refusal:
            check_sample(*arguments)
        assert str(refusal.value).endswith((", shape (n,)", " must match"))


def test_numbers_in_disguise_are_read():
    assert check_scores([True, False]).tolist() == [1.0, 0.0]
    assert check_scores(np.array([1, 2], dtype=object)).tolist() == [1.0, 2.0]
    assert check_scores(torch.tensor([1, 2])).dtype == torch.float64
    assert check_scores(np.array([1, 2], dtype=np.float32)).dtype == torch.float32
    assert check_scores(np.arange(6.0)[::-2]).tolist() == [5.0, 3.0, 1.0]
    assert check_scores(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    largest = torch.finfo(torch.float32).max
    assert check_scores(torch.tensor([largest, -largest])).tolist() == [largest, -largest]
    assert check_scores([np.nextafter(HUGE, 0)]).tolist() == [np.nextafter(HUGE, 0)]
    assert check_sample([0.1, 0.2], [False, True]).labels.tolist() == [0.0, 1.0]
    weights = check_sample(torch.zeros(1).bfloat16(), [0], [7e4]).weights
    assert weights.dtype == torch.bfloat16
    assert check_sample(torch.zeros(1).half(), [0], [65504.0]).weights.tolist() == [65504.0]


def test_what_was_given_is_not_changed_by_what_was_read():
    given = np.array([1.0, 2.0])
    check_scores(given)[0] = 9.0
    assert given.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("groups", "missing"),
    [
        (["a", None, "b"], 1),
        (["a", NAN, None], 2),
        (("a", NAN), 1),
        (np.array(["a", None], dtype=object), 1),
        (np.array([1.0, NAN, NAN]), 2),
        (torch.tensor([1.0, NAN]), 1),
        (np.array([1.0, NAN], dtype=np.float32), 1),
    ],
)
def test_missing_groups_are_counted(groups, missing):
    with pytest.raises(BadGroups) as refusal:
        name_groups(groups)
    assert str(refusal.value).startswith(f"groups are missing for {missing} of {len(groups)} samples, first in groups[")


def test_groups_of_any_values_have_names():
    assert name_groups(["nan", "b"])[1] == ["b", "nan"]
    assert name_groups(np.array(["b", "a", "b"]))[0].tolist() == [1, 0, 1]
    assert name_groups([True, False])[1] == ["False", "True"]
    assert name_groups(torch.tensor([0.5, 1.5]))[1] == ["0.5", "1.5"]
    codes, names = name_groups(np.array([b"x", b"y"]))
    assert (codes.tolist(), len(names)) == ([0, 1], 2)


def test_groups_are_whole_numbers_from_zero_up():
    for odd in ([0.0], [True], [-1], torch.tensor([0.5]), torch.tensor([True])):
        with pytest.raises(BadGroups, match="whole numbers from 0 up"):
            check_sample([0.1], [0], None, odd)
    assert check_sample([0.1], [0], None, [0]).groups.tolist() == [0]


@pytest.mark.parametrize(
    ("dtype", "most"),
    [(torch.float16, 65504 / 16), (torch.float32, 1e35), (torch.bfloat16, 1e35), (torch.float64, 1e35)]
)  # fmt: skip
def test_how_large_a_score_may_be_to_train_on(dtype, most):
    below, above = torch.tensor([0.0, -most * 0.99], dtype=dtype), torch.tensor([-most * 1.01, 0.0], dtype=dtype)
    refuse_huge_scores(below)
    with pytest.raises(BadScores, match="too large to train on") as refusal:
        refuse_huge_scores(above)
    assert f"(at most {most:g})" in str(refusal.value)


def test_rows_of_classes_that_are_not_finite_are_counted_by_row():
    scores = torch.tensor([[NAN, NAN, NAN], [1.0, 2.0, 3.0], [1.0, float("inf"), 3.0]])
    with pytest.raises(BadScores, match=r"^2 of 3 rows of scores are not finite"):
        check_classes(scores, [0, 1, 2])
    weighted = check_classes([[1.0, 2.0], [2.0, 1.0]], [1, 0], [0.5, 2.0])
    assert weighted.weights.tolist() == [0.5, 2.0]
    assert weighted.scores.dtype == torch.float64
    with pytest.raises(BadWeights, match="not negative"):
        check_classes([[1.0, 2.0]], [1], [-1.0])
    with pytest.raises(BadScores, match="too large to train on"):
        check_classes([[1e36, 2.0]], [1])
    assert check_classes(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), [0, 1]).scores.tolist() == [[1, 2], [3, 4]]
    assert check_classes(np.array([[1.0, 2.0]])[:, ::-1], [0]).scores.tolist() == [[2.0, 1.0]]
