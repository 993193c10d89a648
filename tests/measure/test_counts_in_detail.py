"""Counts, steps, curves and areas at their edges: precision, empty groups, thresholds beyond all scores."""

import math

import pytest
import torch

import setpoint as sp
from setpoint.errors import MissingClass
from setpoint.measure.area import mcclish, mean_over, pr_area, roc_area
from setpoint.measure.classes import class_shares, count_classes, predict_class
from setpoint.measure.count import count
from setpoint.measure.curve import curve
from setpoint.measure.step import HardStep, SigmoidStep, SoftplusStep

SCORES = torch.tensor([0.1, 0.4, 0.35, 0.8])
LABELS = torch.tensor([0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_steps_keep_their_precision_and_counts_have_enough(dtype):
    margin = torch.tensor([-1.0, 0.0, 1.0], dtype=dtype)
    for step in (HardStep(), SigmoidStep(2.0), SoftplusStep(2.0), SigmoidStep(2.0).slope, SoftplusStep(2.0).slope):
        assert step.above(margin).dtype == step.below(margin).dtype == dtype
    scores = SCORES.to(dtype)
    assert count(scores, LABELS, 0.375).dtype == torch.float64
    assert count(scores, LABELS, 0.375, SigmoidStep()).dtype == torch.promote_types(dtype, torch.float32)
    assert count(scores, LABELS, 0.375).tolist() == [1, 1, 1, 1]


def test_a_margin_of_zero_does_not_pass():
    margin = torch.tensor([-1.0, 0.0, 1.0])
    assert HardStep().above(margin).tolist() == [0, 0, 1]
    assert HardStep().below(margin).tolist() == [1, 1, 0]


def test_smooth_steps_by_hand():
    margin = torch.tensor([0.3], dtype=torch.float64)
    up = 1 / (1 + math.exp(-0.6))
    sigmoid, softplus = SigmoidStep(2.0), SoftplusStep(2.0)
    assert sigmoid.above(margin).item() == pytest.approx(up)
    assert sigmoid.below(margin).item() == pytest.approx(1 - up)
    assert sigmoid.slope.above(margin).item() == pytest.approx(2 * up * (1 - up))
    assert sigmoid.slope.below(margin).item() == pytest.approx(-2 * up * (1 - up))
    assert softplus.above(margin).item() == pytest.approx(math.log1p(math.exp(0.6)))
    assert softplus.below(margin).item() == pytest.approx(math.log1p(math.exp(-0.6)))
    assert softplus.slope.above(margin).item() == pytest.approx(2 * up)
    assert softplus.slope.below(margin).item() == pytest.approx(-2 * (1 - up))
    assert SigmoidStep().temperature == SoftplusStep().temperature == 1.0


def test_counts_of_groups_in_every_shape():
    groups, weights = torch.tensor([0, 2, 2, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    split = count(SCORES, LABELS, 0.375, weights=weights, groups=groups)
    assert split.tolist() == [[4, 0, 0, 1], [0, 0, 0, 0], [0, 2, 3, 0]]
    assert count(SCORES, LABELS, 0.375, groups=groups, n_groups=5).shape == (5, 4)
    two = count(SCORES, LABELS, torch.tensor([0.0, 0.375]), weights=weights, groups=groups)
    assert two.shape == (2, 3, 4)
    assert two[1].tolist() == split.tolist()
    own = count(SCORES, LABELS, torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.375]]), groups=groups)
    assert own[0].tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]
    assert own[1].tolist() == [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]]
    nobody = count(SCORES[:0], LABELS[:0], 0.5, groups=groups[:0])
    assert nobody.tolist() == [[0, 0, 0, 0]]


def test_a_curve_of_ties_and_weights():
    cuts = curve(
        torch.tensor([1.0, 2.0, 2.0, 0.0, 5.0]), torch.tensor([1, 0, 1, 0, 1]), torch.tensor([1.0, 2, 3, 4, 0])
    )
    assert cuts.values.tolist() == [2, 1, 0]
    assert cuts.tp.tolist() == [0, 3, 4, 4]
    assert cuts.fp.tolist() == [0, 2, 2, 6]
    assert cuts.counts.tolist() == [[0, 0, 4, 6], [3, 2, 1, 4], [4, 2, 0, 4], [4, 6, 0, 0]]
    assert cuts.thresholds(torch.arange(4)).tolist()[:3] == [2, 1.5, 0.5]
    last = cuts.thresholds(torch.tensor([3])).item()
    assert last < 0
    assert last == torch.nextafter(torch.tensor(0.0), torch.tensor(-1.0)).item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_curve_of_half_precision_has_thresholds_between_neighbours(dtype):
    eps = torch.finfo(dtype).eps
    leaf = torch.tensor([1.0, 1.0 + eps], dtype=dtype, requires_grad=True)
    cuts = curve(leaf, torch.tensor([False, True]))
    assert cuts.values.dtype == torch.float32
    assert not cuts.values.requires_grad
    assert cuts.thresholds(torch.tensor([1])).item() == 1 + eps / 2
    assert cuts.tp.dtype == cuts.fp.dtype == torch.float64


def test_neighbouring_floats_have_the_lower_one_as_their_threshold():
    low = torch.tensor(1.0, dtype=torch.float64)
    high = torch.nextafter(low, torch.tensor(2.0, dtype=torch.float64))
    cuts = curve(torch.stack([low, high]), torch.tensor([0, 1]))
    assert cuts.thresholds(torch.tensor([1])).item() == 1.0
    wide = curve(torch.tensor([1.7e308, -1.7e308], dtype=torch.float64), torch.tensor([1, 0]))
    assert wide.thresholds(torch.tensor([1])).item() == 0


def test_areas_by_hand():
    # From the highest: a positive, a negative, a positive, a negative.
    scores, labels = torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert roc_area(scores, labels).item() == pytest.approx(0.75)
    assert roc_area(scores, labels, low=0.0, high=0.5).item() == pytest.approx(0.5)
    assert roc_area(scores, labels, low=0.25, high=0.75).item() == pytest.approx(0.75)
    assert pr_area(scores, labels).item() == pytest.approx((1 + 2 / 3) / 2)
    assert pr_area(scores, labels, low=0.5, high=1.0).item() == pytest.approx(2 / 3)
    assert pr_area(scores, labels, low=0.25, high=0.75).item() == pytest.approx((1 + 2 / 3) / 2)
    weights = torch.tensor([1.0, 3.0, 1.0, 1.0])
    assert roc_area(scores, labels, weights).item() == pytest.approx((1 + 0.25) / 2)
    assert pr_area(scores, labels, weights).item() == pytest.approx((1 + 2 / 5) / 2)
    assert mean_over(curve(scores, labels), sp.fpr, sp.fnr.between(0, 1)).item() == pytest.approx(0.25)
    assert mean_over(curve(scores, labels), sp.precision, sp.fnr.between(0, 1)).item() == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize(
    ("area", "low", "high", "scaled"), [(0.05, 0.0, 0.1, 0.5), (1.0, 0.0, 0.1, 1.0), (0.6, 0.2, 0.4, 10 / 14)]
)
def test_the_scaled_partial_area(area, low, high, scaled):
    assert mcclish(torch.tensor(area).double(), low, high).item() == pytest.approx(scaled)


def test_an_area_without_its_class():
    with pytest.raises(MissingClass) as refusal:
        roc_area(torch.tensor([1.0]), torch.tensor([1.0]))
    assert str(refusal.value) == "the area over fpr needs samples of the class that it is a share of"


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
