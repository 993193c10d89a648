import numpy as np
import pytest
import torch
from scipy.stats import norm

import setpoint as sp
from setpoint.decide.population import independent
from setpoint.errors import BadGroups, BadSetting, BadWeights, ShapeMismatch, TooFewSamples
from setpoint.measure.sample import Sample

ASK = "minimize fnr where fpr <= 10%"


def broken(thresholds, true_fpr):
    return np.mean([true_fpr(t) > 0.1 for t in thresholds])


def test_the_promise_over_clusters_is_kept_where_the_naive_one_breaks():
    """100 patients of 1 to 39 rows, whose scores share most of their noise; 200 calibrations at 90 %."""
    draw, found = np.random.default_rng(0), {True: [], False: []}
    for _ in range(200):
        sizes = draw.integers(1, 40, 100)
        patients = np.repeat(np.arange(100), sizes)
        labels = draw.integers(0, 2, len(patients))
        scores = 0.9 * draw.normal(size=100)[patients] + 0.436 * draw.normal(size=len(patients)) + 3 * labels
        for known, kept in found.items():
            point = sp.calibrate(ASK, scores, labels, confidence=0.9, clusters=patients if known else None)
            kept.append(point.threshold)
    sd = np.hypot(0.9, 0.436)
    assert broken(found[True], lambda t: norm.sf(t / sd)) <= 0.1 + 2 * (0.09 / 200) ** 0.5
    assert broken(found[False], lambda t: norm.sf(t / sd)) > 0.2


def test_the_promise_under_a_known_shift_is_kept_where_the_naive_one_breaks():
    """Negatives of the target lie higher: the density ratio of N(0.5, 1) to N(0, 1) on [-2, 2], which is bounded."""
    draw, found = np.random.default_rng(1), {True: [], False: []}
    mass = [norm.cdf(2 - m) - norm.cdf(-2 - m) for m in (0.0, 0.5)]
    ratio = lambda x: np.exp(0.5 * x - 0.125) * mass[0] / mass[1]
    for _ in range(100):
        x = draw.normal(size=3000)
        x = x[np.abs(x) < 2][:1500]
        labels = (np.arange(len(x)) % 3 == 0).astype(int)
        scores = x + 3 * labels
        weights = np.where(labels == 1, 1.0, ratio(x))
        for known, kept in found.items():
            given = sp.PopulationWeights(weights, most=float(ratio(2.0))) if known else None
            kept.append(sp.calibrate(ASK, scores, labels, confidence=0.9, weights=given).threshold)
    true = lambda t: (norm.cdf(1.5) - norm.cdf(t - 0.5)) / mass[1]
    assert 0 < broken(found[True], true) <= 0.1 + 2 * (0.09 / 100) ** 0.5
    assert broken(found[False], true) > 0.9


def test_one_row_of_each_cluster_is_drawn_evenly_and_rows_by_their_weights():
    codes = np.repeat(np.arange(4000), 3)
    sample = Sample(torch.arange(12000.0), torch.zeros(12000))
    kept = independent(sample, codes).sample.scores.long()
    assert (kept // 3).tolist() == list(range(4000))
    assert np.bincount(kept % 3) == pytest.approx(4000 / 3, abs=100)
    weighted = Sample(torch.arange(12000.0), torch.zeros(12000), torch.arange(12000) % 3 + 0.0)
    drawn = independent(weighted, None, 4.0).sample
    assert drawn.weights is None
    assert np.bincount(drawn.scores.long() % 3) == pytest.approx(np.array([0, 1000, 2000]), abs=100)


def test_the_certificate_says_what_it_is_about_and_rests_on():
    scores, labels = np.linspace(0, 1, 900), np.arange(900) % 2
    point = sp.calibrate(ASK, scores, labels, confidence=0.95, clusters=[f"p{row // 3}" for row in range(900)])
    assert point.certificate.statement == "fpr <= 10%, for a random row of a random cluster"
    assert 100 < point.certificate.samples < 200
    assert point.certificate.method.endswith("; of 900 rows, one of each cluster")
    assert sp.OperatingPoint.from_dict(point.to_dict()) == point
    both = sp.calibrate(
        ASK, scores, labels, confidence=0.9, clusters=np.arange(900) // 2,
        weights=sp.PopulationWeights(np.full(900, 1.0), most=2),
    )  # fmt: skip
    assert "one of each cluster, each kept with probability weight / 2" in both.certificate.method


def test_a_gap_and_classes_are_certified_over_clusters_too():
    draw = np.random.default_rng(0)
    labels, groups, clusters = draw.integers(0, 2, 2000), draw.choice(["a", "b"], 2000), np.arange(2000) // 2
    scores = draw.normal(size=2000) + 2 * labels
    gap = sp.calibrate(
        "minimize error where recall.gap(g) <= 20%", scores, labels, confidence=0.9, groups=groups, clusters=clusters
    )
    assert gap.certificate.statement == "recall.gap(g) <= 20%, for a random row of a random cluster"
    many = np.eye(3)[draw.integers(0, 3, 2000)] + 0.1 * draw.normal(size=(2000, 3))
    of_classes = sp.calibrate(
        "minimize error where recall of class 1 >= 80%", many, many.argmax(1), confidence=0.9, clusters=clusters
    )
    assert of_classes.certificate.statement.endswith("random cluster")


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"clusters": [1, 2]}, ShapeMismatch, r"clusters have shape \(2,\) for 200 rows"),
        ({"clusters": [None] * 200}, BadGroups, "missing for 200"),
        ({"clusters": np.zeros(200)}, TooFewSamples, "but there (is|are) .* of 200 rows, one of each cluster"),
        ({"weights": sp.PopulationWeights(np.full(200, 3.0), most=2)}, BadWeights, "above most=2"),
        ({"weights": sp.PopulationWeights(np.full(200, 1e-9), most=2)}, TooFewSamples, "no row is left of 200"),
    ],
)
def test_what_no_certificate_can_count_is_refused(given, error, says):
    with pytest.raises(error, match=says):
        sp.calibrate(ASK, np.linspace(0, 1, 200), np.arange(200) % 2, confidence=0.95, **given)


@pytest.mark.parametrize("most", [0, -1.0, float("inf"), float("nan"), "2", True])
def test_the_largest_weight_is_a_number(most):
    with pytest.raises(BadSetting, match="most is the largest weight"):
        sp.PopulationWeights([1.0], most)
