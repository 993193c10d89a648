"""Curves and areas: every cut, scikit-learn's areas, slow references, ties, weights and missing classes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import reference
import setpoint as sp
from cases import cases
from setpoint.errors import MissingClass
from setpoint.measure.count import count
from setpoint.measure.curve import curve, mcclish, mean_over, pr_area, roc_area

# Where scores are near the largest float, scikit-learn's own check for infinities overflows, and says so.
oracle = pytest.mark.filterwarnings("ignore::RuntimeWarning")


RANGES = st.sampled_from([(0.0, 1.0), (0.0, 0.1), (0.5, 1.0), (0.2, 0.7), (0.95, 1.0)])


@given(cases())
def test_the_curve_holds_every_cut(case):
    found = curve(case.scores, case.labels, case.weights)
    torch.testing.assert_close(found.counts, torch.tensor(reference.all_cuts(*case.lists)).double())


@given(cases())
def test_the_threshold_of_a_cut_gives_its_counts(case):
    found = curve(case.scores, case.labels, case.weights)
    thresholds = found.thresholds(torch.arange(len(found.tp)))
    assert torch.isfinite(thresholds[:-1]).all()
    torch.testing.assert_close(count(case.scores, case.labels, thresholds, weights=case.weights), found.counts)


def test_thresholds_stand_half_way_between_neighbours():
    found = curve(torch.tensor([1.0, 3.0, 2.0]), torch.tensor([0.0, 1.0, 1.0]))
    assert found.thresholds(torch.tensor([0, 1, 2, 3]))[:3].tolist() == [3.0, 2.5, 1.5]
    assert found.thresholds(torch.tensor([3])) < 1.0


@oracle
@given(cases(both_classes=True))
def test_roc_points_equal_scikit_learn(case):
    scores, labels, weights = (np.array(part) for part in case.lists)
    keep = weights > 0
    fpr, tpr, _ = metrics.roc_curve(labels[keep], scores[keep], sample_weight=weights[keep], drop_intermediate=False)
    counts = curve(case.scores, case.labels, case.weights).counts
    np.testing.assert_allclose(sp.fpr(counts).numpy(), fpr, atol=1e-9)
    np.testing.assert_allclose(sp.recall(counts).numpy(), tpr, atol=1e-9)


@oracle
@given(cases(both_classes=True))
def test_whole_areas_equal_scikit_learn(case):
    scores, labels, weights = (np.array(part) for part in case.lists)
    auc = metrics.roc_auc_score(labels, scores, sample_weight=weights)
    average = metrics.average_precision_score(labels, scores, sample_weight=weights)
    assert math.isclose(roc_area(case.scores, case.labels, case.weights), auc, abs_tol=1e-9)
    assert math.isclose(pr_area(case.scores, case.labels, case.weights), average, abs_tol=1e-9)


@oracle
@given(cases(both_classes=True), st.sampled_from([0.01, 0.1, 0.35, 0.9]))
def test_the_standardised_partial_area_equals_scikit_learn(case, limit):
    scores, labels, weights = (np.array(part) for part in case.lists)
    expected = metrics.roc_auc_score(labels, scores, sample_weight=weights, max_fpr=limit)
    found = mcclish(roc_area(case.scores, case.labels, case.weights, high=limit), 0.0, limit)
    assert math.isclose(found, expected, abs_tol=1e-9)


@given(cases(both_classes=True), RANGES)
def test_the_partial_pr_area_equals_the_slow_reference(case, limits):
    expected = reference.average_precision_between(*case.lists, *limits)
    found = pr_area(case.scores, case.labels, case.weights, low=limits[0], high=limits[1])
    assert math.isclose(found, expected, abs_tol=1e-9)


@given(cases(both_classes=True, max_size=8), RANGES)
def test_the_partial_roc_area_equals_thin_strips(case, limits):
    expected = reference.roc_between(*case.lists, *limits, steps=2000)
    found = roc_area(case.scores, case.labels, case.weights, low=limits[0], high=limits[1])
    assert math.isclose(found, expected, abs_tol=1e-3)


@given(cases(both_classes=True), RANGES)
def test_an_area_over_a_falling_rate_mirrors_the_rising_one(case, limits):
    cuts = curve(case.scores, case.labels, case.weights)
    low, high = limits
    for objective in (sp.recall, sp.precision):
        rising = mean_over(cuts, objective, (sp.recall if objective is sp.precision else sp.fpr).between(low, high))
        mirror = sp.fnr if objective is sp.precision else sp.tnr
        falling = mean_over(cuts, objective, mirror.between(1 - high, 1 - low))
        assert math.isclose(rising, falling, abs_tol=1e-9)


def test_an_area_without_the_class_it_is_a_share_of_is_refused():
    with pytest.raises(MissingClass, match="recall"):
        pr_area(torch.tensor([1.0, 2.0]), torch.zeros(2))


@given(cases(both_classes=True))
def test_a_weight_is_a_repetition(case):
    repeats = torch.tensor([1 + i % 3 for i in range(len(case.scores))])
    weighted = curve(case.scores, case.labels, repeats.double())
    repeated = curve(case.scores.repeat_interleave(repeats), case.labels.repeat_interleave(repeats))
    torch.testing.assert_close(weighted.counts, repeated.counts)
    assert torch.equal(weighted.values, repeated.values)


@given(cases(both_classes=True))
def test_a_monotone_map_changes_no_rate(case):
    ranks = torch.unique(case.scores, return_inverse=True)[1].double()
    before, after = curve(case.scores, case.labels, case.weights), curve(ranks, case.labels, case.weights)
    torch.testing.assert_close(before.counts, after.counts)


def test_an_area_over_a_class_of_little_weight():
    scores, labels = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1.0, 0.0, 1.0])
    weights = torch.tensor([0.2, 0.3, 0.2])
    cuts = curve(scores, labels, weights)
    same = curve(scores, labels, 10 * weights)
    assert mean_over(cuts, sp.precision, sp.recall.between(0.5, 1.0)) == pytest.approx(
        float(mean_over(same, sp.precision, sp.recall.between(0.5, 1.0)))
    )


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
