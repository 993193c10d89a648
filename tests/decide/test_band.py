"""Bands: the best pair of cuts against all pairs, certificates against the known distribution."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import setpoint as sp
from marks import slow
from reference import band_counts, band_rate
from setpoint.decide.band import find_band, range_minimum
from setpoint.decide.by_kind import decider
from setpoint.errors import BadProblem, TooFewSamples
from setpoint.measure.sample import check_sample

ASKS = (
    "minimize review where precision >= 70% and npv >= 80%",
    "minimize error where review <= 20%",
    "maximize recall where review <= 30% and precision >= 60%",
    "minimize cost(miss=5, alarm=1) where review <= 25%",
    "minimize review where error <= 10%",
    "minimize review where error <= 10% and recall >= 50%",
    "minimize fnr where review <= 30% and fpr <= 20%",
    "maximize precision where review <= 30% and recall >= 40%",
    "maximize npv where review <= 30% and flagged <= 40%",
    "minimize review where accuracy >= 60%",
)


def best_of_all_pairs(problem, scores, labels, weights):
    """The best objective over all pairs of cuts that meet the bounds, by a loop; None if no pair does."""
    values = sorted(set(scores), reverse=True)
    cuts = [values[0] + 1, *((a + b) / 2 for a, b in pairwise(values)), values[-1] - 1]
    best = None
    for place, high in enumerate(cuts):
        for low in cuts[place:]:
            counts = band_counts(scores, labels, weights, low, high)
            rates = [(c, band_rate(str(c.quantity), counts)) for c in problem.constraints]
            if all(rate <= c.bound + 1e-9 if c.relation == "<=" else rate >= c.bound - 1e-9 for c, rate in rates):
                value = band_rate(str(problem.objective), counts)
                better = best is None or (value > best if problem.maximize else value < best)
                best = value if better else best
    return best


@given(ask=st.sampled_from(ASKS), seed=st.integers(0, 10_000), tied=st.booleans(), weighted=st.booleans())
def test_the_best_band_is_the_best_of_all_pairs(ask, seed, tied, weighted):
    draw, problem = np.random.default_rng(seed), sp.ask(ask)
    size = int(draw.integers(4, 20))
    labels = np.concatenate([[0, 1], draw.random(size - 2) < 0.4]).astype(float)
    scores = draw.normal(size=size) + 1.2 * labels
    scores = np.round(2 * scores) / 2 if tied else scores
    weights = draw.random(size) + 0.1 if weighted else np.ones(size)
    expected = best_of_all_pairs(problem, scores, labels, weights)
    point = sp.evaluate(problem, scores, labels, weights=weights if weighted else None)
    assert point.feasible == (expected is not None)
    if expected is not None:
        assert point.objective == pytest.approx(expected, abs=1e-9)
    cuts = point.threshold
    counts = band_counts(scores, labels, weights, cuts["low"], cuts["high"])
    assert cuts["low"] <= cuts["high"]
    for name, value in point.rates.items():
        assert value == pytest.approx(band_rate(name, counts), abs=1e-9)


@given(values=st.lists(st.integers(-5, 5), min_size=1, max_size=20), data=st.data())
def test_range_minimum(values, data):
    ends = st.integers(0, len(values) - 1)
    pairs = data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=10))
    first, last = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    expected = [min(values[a : b + 1], default=np.inf) for a, b in pairs]
    assert range_minimum(np.array(values, dtype=float), first, last).tolist() == expected


def test_many_equally_good_pairs_are_found_quickly():
    """All scores of a class are tied with each other, or all cuts are equally good: no loop over pairs of cuts."""
    scores, labels = torch.arange(200_000).double(), (torch.arange(200_000) % 2).double()
    for ask in ASKS:
        find_band(sp.ask(ask), check_sample(scores, labels).double())


def test_decisions_are_flagged_reviewed_or_neither():
    scores, labels = [0.1, 0.2, 0.3, 0.45, 0.55, 0.7, 0.8, 0.9], [0, 0, 0, 1, 0, 1, 1, 1]
    point = sp.calibrate("minimize review where precision >= 99% and npv >= 99%", scores, labels)
    assert point.predict(scores).tolist() == [0, 0, 0, -1, -1, 1, 1, 1]
    assert point.rates["review"] == 0.25
    assert sp.OperatingPoint.from_dict(point.to_dict()) == point


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ("minimize review where f1 >= 50%", "f_score(1) has no meaning beside review"),
        ("minimize review where mcc >= 0.5", "mcc has no meaning beside review"),
        ("minimize error where review == 5%", "two cuts meet an equality in many ways"),
        ("minimize review where recall.gap(sex) <= 5%", "has no meaning beside review"),
        ("minimize error where review <= 5% and macro recall >= 50%", ""),
    ],
)
def test_asks_without_a_meaning_are_refused(ask, said):
    with pytest.raises(sp.SetpointError) as refusal:
        sp.ask(ask)
    assert said in str(refusal.value)


def test_solvers_for_one_threshold_refuse_a_band():
    with pytest.raises(BadProblem, match="decided by cuts that are set after training"):
        sp.ImplicitThreshold(sp.ask("minimize error where review <= 5%"))


def true_rates(low, high):
    """Rates of a band in a population of half positives, N(2, 1), and half negatives, N(0, 1)."""
    tp, fp, fn, tn = norm.sf(high - 2), norm.sf(high), norm.cdf(low - 2), norm.cdf(low)
    return {
        "precision": tp / (tp + fp), "npv": tn / (tn + fn), "review": 1 - (tp + fp + fn + tn) / 2,
        "error": (fp + fn) / 2,
    }  # fmt: skip


CERTIFIED = ("minimize review where precision >= 90% and npv >= 90%", "minimize error where review <= 30%",
             "minimize review where error <= 6%")  # fmt: skip


@slow
@pytest.mark.parametrize("ask", CERTIFIED)
def test_the_promise_of_a_band_is_broken_no_more_often_than_it_says(ask):
    """All bounds together, 200 calibrations of 1,000 rows; the bare band breaks a bound far more often."""
    draw, problem = np.random.default_rng(1), sp.ask(ask)
    broken, refused = {None: 0, 0.9: 0}, 0
    for _ in range(200):
        labels = (draw.random(1000) < 0.5).astype(int)
        scores = draw.normal(size=1000) + 2 * labels
        for confidence in broken:
            try:
                rates = true_rates(**sp.calibrate(problem, scores, labels, confidence=confidence).threshold)
            except TooFewSamples:
                refused += 1
                continue
            kept = [
                rates[str(c.quantity)] <= c.bound if c.relation == "<=" else rates[str(c.quantity)] >= c.bound
                for c in problem.constraints
            ]
            broken[confidence] += not all(kept)
    assert broken[0.9] / 200 <= 0.1 + 2 * (0.1 * 0.9 / 200) ** 0.5
    assert broken[None] / 200 > 0.35
    assert refused < 100


def test_a_certified_band_states_its_bounds_and_costs_review():
    draw = np.random.default_rng(0)
    labels = (draw.random(2000) < 0.5).astype(int)
    scores = draw.normal(size=2000) + 2 * labels
    ask = CERTIFIED[0]
    certified, bare = sp.calibrate(ask, scores, labels, confidence=0.95), sp.calibrate(ask, scores, labels)
    assert certified.certificate.statement == "precision >= 90% and npv >= 90%"
    assert "two walks that share the error probability" in certified.certificate.method
    assert certified.rates["review"] > bare.rates["review"]
    assert certified.feasible
    later = draw.normal(size=4000) + 2 * np.repeat([0, 1], 2000)
    assert certified.check(later, np.repeat([0, 1], 2000)).holds


def test_too_few_rows_for_a_band_are_refused_with_the_bound():
    labels = np.repeat([0, 1], 10)
    with pytest.raises(TooFewSamples, match=r"^review <= 10% at confidence 95%"):
        sp.calibrate("minimize error where review <= 10%", np.linspace(0, 1, 20), labels, confidence=0.95)


@pytest.mark.parametrize(
    ("ask", "of_each"),
    [
        ("minimize review where fpr <= 5% and fnr <= 5%", 2),
        ("minimize review where fpr <= 5%", 2),
        ("minimize error where review <= 5%", 1),
    ],
)
def test_the_fewest_samples_of_a_certificate_are_just_enough(ask, of_each):
    """On scores that separate the classes, one sample fewer is refused."""
    problem = sp.ask(ask)
    enough = decider(problem).needed(problem, problem.constraints[0], 0.95)
    for size, certified in ((enough, True), (enough - 1, False)):
        labels = np.arange(of_each * size) % 2
        scores = np.random.default_rng(0).random(len(labels)) + 2 * labels
        if certified:
            assert sp.calibrate(problem, scores, labels, confidence=0.95).certificate.confidence == 0.95
        else:
            with pytest.raises(TooFewSamples):
                sp.calibrate(problem, scores, labels, confidence=0.95)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ("minimize review where npv >= 99.9%", r"npv >= 99\.9% .* samples that are not flagged to judge it by"),
        ("minimize review where fnr <= 0.1%", r"fnr <= 0\.1% at confidence 95% needs 2,995 positives, but there are"),
        ("minimize review where tnr >= 99.9%", r"tnr >= 99\.9% .* negatives"),
        ("minimize review where precision >= 99.9% and review <= 90%", "flagged samples to judge it by"),
    ],
)
def test_a_refusal_names_the_rows_that_the_bound_is_a_share_of(ask, words):
    labels = np.arange(400) % 2
    scores = np.random.default_rng(0).normal(size=400) + 2 * labels
    with pytest.raises(TooFewSamples, match=words):
        sp.calibrate(ask, scores, labels, confidence=0.95)
