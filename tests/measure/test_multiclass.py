"""AUC-mu and one against the rest: loops over pairs of samples, scikit-learn, and the laws."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import reference_pairs as reference
from marks import cases
from setpoint.errors import BadLabels, BadScores, BadSetting, BadWeights, MissingClass, ShapeMismatch
from setpoint.measure.multiclass import auc_mu, auc_one_vs_rest


def sample(n, n_classes, seed, levels=4):
    """Scores of few distinct values that know something of the labels; every class is there."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.arange(n_classes), torch.randint(0, n_classes, (n - n_classes,), generator=generator)])
    scores = torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    scores[torch.arange(n), labels] += 0.7
    return (scores * levels / 4).round() / levels, labels, torch.rand(n, generator=generator).double() + 0.1


def argmax_partition(n_classes):
    return torch.ones(n_classes, n_classes) - torch.eye(n_classes)


@cases(25)
@given(n=st.integers(5, 25), n_classes=st.integers(2, 5), seed=st.integers(0, 1_000), weighted=st.booleans())
def test_auc_mu_is_that_of_the_loop(n, n_classes, seed, weighted):
    scores, labels, weights = sample(n, n_classes, seed)
    costs = torch.randint(0, 5, (n_classes, n_classes), generator=torch.Generator().manual_seed(seed)).double()
    given_weights = weights if weighted else None
    used = weights.tolist() if weighted else [1.0] * n
    for partition in (None, costs):
        expected = reference.auc_mu(
            scores.tolist(),
            labels.tolist(),
            used,
            (argmax_partition(n_classes) if partition is None else partition).tolist(),
        )
        assert auc_mu(scores, labels, given_weights, partition) == pytest.approx(expected, abs=1e-12)


def test_the_default_partition_is_the_argmax_one_to_the_last_tie():
    scores, labels, weights = sample(400, 4, 1, levels=3)
    scores = scores.softmax(1)
    default = auc_mu(scores, labels, weights)
    assert torch.equal(default, auc_mu(scores, labels, weights, argmax_partition(4)))
    assert torch.equal(default, auc_mu(scores, labels, weights, 4 * argmax_partition(4) + torch.arange(4)))


def test_equal_rows_stay_tied_under_any_partition():
    generator = torch.Generator().manual_seed(2)
    scores = torch.rand(1, 7, generator=generator, dtype=torch.float64).expand(1_003, 7)
    partition = torch.rand(7, 7, generator=generator, dtype=torch.float64)
    assert auc_mu(scores, torch.arange(1_003) % 7, partition=partition) == 0.5


def test_scores_that_differ_do_not_become_tied():
    scores = torch.tensor([[1.0, 1e-9], [1.0, 0.0]])
    assert auc_mu(scores, torch.tensor([1, 0])) == 1


def test_two_classes_give_the_roc_area():
    scores, labels, weights = sample(500, 2, 4)
    ranked = scores[:, 1] - scores[:, 0]
    expected = roc_auc_score(labels, ranked, sample_weight=weights)
    assert auc_mu(scores, labels, weights) == pytest.approx(expected, abs=1e-12)
    # A partition that looks at one score only ranks by that score.
    partition = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    expected = roc_auc_score(labels, scores[:, 1])
    assert auc_mu(scores, labels, partition=partition) == pytest.approx(expected, abs=1e-12)


def test_perfect_scores_give_one_and_reversed_ones_zero():
    labels = torch.arange(12) % 3
    scores = torch.nn.functional.one_hot(labels, 3).float()
    for measure in (auc_mu, auc_one_vs_rest):
        assert measure(scores, labels) == 1
        assert measure(-scores, labels) == 0
        assert measure(0 * scores, labels) == 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_vs_rest_is_scikit_learn_s(dtype):
    scores, labels, weights = sample(600, 4, 5)
    scores = scores.softmax(1).to(dtype)
    for w in (None, weights):
        whole = roc_auc_score(labels, scores, multi_class="ovr", sample_weight=w)
        each = [roc_auc_score(labels == c, scores[:, c], sample_weight=w) for c in range(4)]
        assert auc_one_vs_rest(scores, labels, w) == pytest.approx(whole, abs=1e-12)
        assert auc_one_vs_rest(scores, labels, w) == pytest.approx(sum(each) / 4, abs=1e-12)


@cases(25)
@given(seed=st.integers(0, 1_000), data=st.data())
def test_law_a_weight_is_a_repetition_and_the_names_of_classes_do_not_matter(seed, data):
    scores, labels, _ = sample(20, 3, seed)
    times = torch.tensor([1, 1, 1, *data.draw(st.lists(st.integers(0, 3), min_size=17, max_size=17))])
    renamed = torch.tensor(data.draw(st.permutations(range(3))))
    again = [x.repeat_interleave(times, dim=0) for x in (scores, labels)]
    for measure in (auc_mu, auc_one_vs_rest):
        weighted = measure(scores, labels, times)
        assert weighted == pytest.approx(measure(*again).item(), abs=1e-12)
        assert weighted == pytest.approx(
            measure(scores[:, renamed.argsort()], renamed[labels], times).item(), abs=1e-12
        )


def test_law_class_sizes_do_not_move_auc_mu_but_move_one_vs_rest():
    scores, labels, _ = sample(200, 3, 6)
    times = torch.tensor([1, 1, 20])[labels]
    assert auc_mu(scores, labels, times) == pytest.approx(auc_mu(scores, labels).item(), abs=1e-12)
    assert abs(auc_one_vs_rest(scores, labels, times) - auc_one_vs_rest(scores, labels)) > 1e-3


def test_wrong_input_is_named():
    scores, labels = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])
    for measure in (auc_mu, auc_one_vs_rest):
        with pytest.raises(ShapeMismatch, match=r"\(4,\)"):
            measure(scores[:, 0], labels)
        with pytest.raises(ShapeMismatch, match="two classes"):
            measure(scores[:, :1], labels)
        with pytest.raises(ShapeMismatch, match="4 samples came with labels"):
            measure(scores, labels[:3])
        with pytest.raises(ShapeMismatch, match="weights"):
            measure(scores, labels, torch.ones(3))
        with pytest.raises(BadLabels, match="from 0 to 1"):
            measure(scores, labels + 1)
        with pytest.raises(BadLabels, match="whole numbers"):
            measure(scores, labels * 0.5)
        with pytest.raises(BadWeights, match="not negative"):
            measure(scores, labels, -torch.ones(4))
        with pytest.raises(MissingClass, match="class 1"):
            measure(scores, 0 * labels)
        with pytest.raises(MissingClass, match="class 0"):
            measure(scores, labels, labels)
        with pytest.raises(BadScores, match="finite"):
            measure(scores / 0, labels)
    with pytest.raises(ShapeMismatch, match="partition"):
        auc_mu(scores, labels, partition=torch.zeros(3, 3))
    with pytest.raises(BadSetting, match="partition"):
        auc_mu(scores, labels, partition=torch.zeros(2, 2) / 0)


def test_labels_and_weights_of_another_size_are_named():
    scores, labels = torch.rand(4, 2), torch.tensor([0, 1, 0, 1])
    for odd, name in (((labels[:3], None), "labels"), ((labels, torch.ones(3)), "weights")):
        with pytest.raises(ShapeMismatch, match=rf"^4 samples came with {name} of shape \(3,\)"):
            auc_mu(scores, *odd)
