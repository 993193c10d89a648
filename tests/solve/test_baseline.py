import pytest
import torch
from torch.nn import functional as F

import setpoint as sp

SCORES = torch.tensor([0.5, -1.0, 2.0, 0.3, -0.7])
LABELS = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0])


def test_plain_cross_entropy_is_torchs_own():
    expected = F.binary_cross_entropy_with_logits(SCORES, LABELS)
    torch.testing.assert_close(sp.CrossEntropy()(SCORES, LABELS), expected)


def test_sample_weights_make_a_weighted_mean():
    weights = torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0])
    losses = F.binary_cross_entropy_with_logits(SCORES, LABELS, reduction="none")
    torch.testing.assert_close(sp.CrossEntropy()(SCORES, LABELS, weights=weights), (weights * losses).sum() / 7)


def test_a_class_weight_keeps_the_ratio_and_a_mean_of_one():
    losses = F.binary_cross_entropy_with_logits(SCORES, LABELS, reduction="none")
    mean = (2 * 8 + 3) / 5
    expected = (torch.where(LABELS > 0, 8.0, 1.0) / mean * losses).mean()
    torch.testing.assert_close(sp.CrossEntropy(8.0)(SCORES, LABELS), expected)


def test_balanced_classes_weigh_the_same():
    losses = F.binary_cross_entropy_with_logits(SCORES, LABELS, reduction="none")
    expected = losses[LABELS > 0].mean() / 2 + losses[LABELS == 0].mean() / 2
    torch.testing.assert_close(sp.CrossEntropy("balanced")(SCORES, LABELS), expected)


def test_balance_is_judged_over_all_batches_seen():
    solver = sp.CrossEntropy("balanced")
    solver(SCORES, LABELS)
    only_negatives = solver(SCORES, torch.zeros(5))
    # Seen so far: 2 positives, 8 negatives, so that a negative weighs 10 / (2 * 8).
    expected = F.binary_cross_entropy_with_logits(SCORES, torch.zeros(5)) * 10 / 16
    assert only_negatives.item() == pytest.approx(expected.item())
