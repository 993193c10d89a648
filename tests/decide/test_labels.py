"""Thresholds of several labels: those of each label by itself, and certificates for all labels at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from marks import quick_first
from setpoint.decide.estimate_labels import estimate_labels
from setpoint.decide.labels import needed_for_labels
from setpoint.decide.paired import difference
from setpoint.decide.settle import settle
from setpoint.errors import BadLabels, BadProblem, BadSetting, MissingClass, ShapeMismatch, TooFewSamples
from setpoint.problem.read_sample import read_sample

ASKS = {
    "a": "minimize fnr where fpr <= 10%",
    "b": "maximize recall where precision >= 60%",
    "c": "minimize error",
    "d": "maximize f1",
}


def drawn(draw, size, n_labels=4, shared=0.7, missing=0.0):
    """Scores and labels that depend on one another within a row, with labels that are not known."""
    common = draw.normal(size=(size, 1))
    truth = shared * common + (1 - shared**2) ** 0.5 * draw.normal(size=(size, n_labels))
    scores, labels = truth + draw.normal(size=(size, n_labels)), (truth > 0.5).astype(float)
    labels[draw.random((size, n_labels)) < missing] = np.nan
    return scores, labels


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), ties=st.booleans(), weighted=st.booleans())
def test_each_threshold_is_that_of_the_label_on_its_known_rows(seed, ties, weighted):
    draw = np.random.default_rng(seed)
    scores, labels = drawn(draw, 80, missing=0.2)
    scores = np.round(scores) if ties else scores
    weights = draw.integers(1, 4, 80).astype(float) if weighted else None
    whole = sp.evaluate(ASKS, scores, labels, weights=weights)
    losses = []
    for place, (name, ask) in enumerate(ASKS.items()):
        known = ~np.isnan(labels[:, place])
        own = None if weights is None else weights[known]
        alone = sp.evaluate(ask, scores[known, place], labels[known, place], weights=own)
        assert whole.threshold[name] == alone.threshold
        objective = whole.rates[f"{alone.problem.objective} of label {name}"]
        assert objective == pytest.approx(alone.objective)
        losses.append(1 - objective if alone.problem.maximize else objective)
        for rate in ("recall", "fpr", "precision", "flagged"):
            assert whole.rates[f"{rate} of label {name}"] == pytest.approx(alone.rates[rate])
    assert whole.objective == pytest.approx(np.mean(losses))


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_permuted_columns_permute_the_answer(confidence):
    scores, labels = drawn(np.random.default_rng(0), 1500, missing=0.1)
    order = [2, 0, 3, 1]
    names = np.array(list(ASKS))
    asks = {**ASKS, "c": "minimize error where recall >= 40%", "d": "minimize fnr where flagged <= 50%"}
    first = sp.calibrate(asks, scores, labels, confidence=confidence)
    other = sp.calibrate(asks, scores[:, order], labels[:, order], confidence=confidence, classes=names[order])
    assert dict(sorted(other.threshold.items())) == dict(sorted(first.threshold.items()))
    assert other.objective == pytest.approx(first.objective)
    assert (first.predict(scores)[:, order] == other.predict(scores[:, order])).all()


def test_one_ask_is_that_of_every_column_of_the_labels():
    scores, labels = drawn(np.random.default_rng(1), 300, 3)
    point = sp.evaluate(ASKS["a"], scores, labels)
    assert point.labels == ("0", "1", "2")
    named = sp.evaluate(ASKS["a"], scores, labels, classes=["x", "y", "z"])
    assert list(named.threshold.values()) == list(point.threshold.values())
    assert sp.OperatingPoint.from_dict(named.to_dict()) == named
    assert (
        named.predict(torch.from_numpy(scores)).tolist() == (scores > np.array(list(named.threshold.values()))).tolist()
    )


def test_none_is_a_label_that_is_not_known():
    scores, labels = drawn(np.random.default_rng(2), 200, 2, missing=0.2)
    listed = [[None if np.isnan(value) else bool(value) for value in row] for row in labels]
    assert sp.evaluate(ASKS["a"], scores, np.array(listed, dtype=object)) == sp.evaluate(ASKS["a"], scores, labels)
    whole = np.nan_to_num(labels, nan=0.0)
    assert sp.evaluate(ASKS["a"], scores, whole) != sp.evaluate(ASKS["a"], scores, labels)


#: Labels that depend on one another much or not at all, and bounds of each kind.
CELLS = {
    "dependent": (0.95, "minimize fnr where fpr <= 10%"),
    "independent": (0.0, "minimize fnr where fpr <= 10%"),
    "precision": (0.7, "maximize recall where precision >= 60%"),
    "recall": (0.7, "minimize fpr where recall >= 70%"),
}


@pytest.mark.parametrize("cell", quick_first(CELLS))
def test_all_bounds_hold_together_as_often_as_promised(cell):
    shared, ask = CELLS[cell]
    draw, repeats, broken, certified = np.random.default_rng(5), 60, 0, 0
    fresh = drawn(draw, 20_000, 3, shared=shared)
    for _ in range(repeats):
        try:
            point = sp.calibrate(ask, *drawn(draw, 500, 3, shared=shared, missing=0.2), confidence=0.9)
        except TooFewSamples:
            continue
        certified += 1
        # A little room for the noise of the rows that stand for the truth.
        broken += point.judge(*fresh).violation > 0.002
    assert certified > repeats / 3
    assert broken / repeats <= 0.1 + 2 * (0.1 * 0.9 / repeats) ** 0.5


def test_without_sharing_the_level_the_promise_would_be_broken():
    """The control: each of 8 independent labels at 0.9 by itself breaks one of the bounds most of the time."""
    draw, repeats, broken = np.random.default_rng(6), 20, 0
    fresh = drawn(draw, 20_000, 8, shared=0.0)
    for _ in range(repeats):
        scores, labels = drawn(draw, 500, 8, shared=0.0)
        alone = [sp.calibrate(ASKS["a"], s, y, confidence=0.9) for s, y in zip(scores.T, labels.T)]
        judged = [one.judge(s, y).feasible for one, s, y in zip(alone, fresh[0].T, fresh[1].T)]
        broken += not all(judged)
    assert broken / repeats > 0.25


def test_the_certificate_says_how_the_labels_are_paid_for():
    scores, labels = drawn(np.random.default_rng(3), 2000)
    point = sp.calibrate(ASKS, scores, labels, confidence=0.95)
    assert point.certificate.statement == "fpr of label a <= 10% and precision of label b >= 60%"
    assert point.certificate.method == "2 labels share the error probability: each is certified by itself at 97.5%"
    each = sp.calibrate(ASKS["a"], scores[:, 0], labels[:, 0], confidence=0.975)
    assert point.threshold["a"] == each.threshold
    # Labels without a bound have nothing to pay for.
    assert point.threshold["c"] == sp.calibrate(ASKS["c"], scores[:, 2], labels[:, 2]).threshold


def test_a_label_that_cannot_be_certified_is_named_with_the_rows_it_needs():
    scores, labels = drawn(np.random.default_rng(4), 400, 2)
    labels[30:, 1] = np.nan
    problem = sp.ask(f"{ASKS['a']} for each of x, y")
    with pytest.raises(TooFewSamples, match=r"label 'y': fpr <= 10% at confidence 97.5% needs 36 negatives, but there"):
        sp.calibrate(problem, scores, labels, confidence=0.95)
    assert needed_for_labels(problem, problem.constraints[0], 0.95) == 36
    settled = settle(problem, scores, labels, "auto")
    assert settled.point.certificate is None
    assert settled.refusal.startswith("label 'y': ")
    asks = {"x": ASKS["a"], "y": "minimize fnr where fpr <= 0%"}
    with pytest.raises(BadProblem, match="label 'y': no number of samples"):
        sp.calibrate(asks, *drawn(np.random.default_rng(4), 400, 2), confidence=0.95)


@pytest.mark.parametrize("fixed", quick_first([False, True]))
def test_intervals_of_the_objective_hold_the_truth_about_as_often_as_they_say(fixed):
    draw, repeats, held = np.random.default_rng(7), 40, 0
    problem = sp.ask({name: ASKS[name] for name in "ac"})
    fresh = drawn(draw, 20_000, 2, shared=0.95)
    for _ in range(repeats):
        scores, labels = drawn(draw, 600, 2, shared=0.95, missing=0.1)
        point = sp.evaluate(problem, fresh[0][:500], fresh[1][:500]) if fixed else sp.evaluate(problem, scores, labels)
        found = estimate_labels(point, read_sample(problem, scores, labels), 0.9, fixed=fixed)
        held += found.low <= point.judge(*fresh).objective <= found.high
    assert 0.78 <= held / repeats <= 0.99


def test_the_interval_of_the_difference_is_paired():
    draw = np.random.default_rng(8)
    scores, labels = drawn(draw, 1500, 2)
    worse = scores + 1.5 * draw.normal(size=scores.shape)
    points = [sp.evaluate(ASKS["a"], each, labels) for each in (scores, worse)]
    found = difference(*points, (scores, worse), labels)
    assert found.is_clear
    assert found.is_better
    assert found.high - found.low < 0.2


def test_a_check_tests_each_bound_of_each_label():
    scores, labels = drawn(np.random.default_rng(9), 3000)
    point = sp.calibrate(ASKS, scores, labels, confidence=0.95)
    later = drawn(np.random.default_rng(10), 2000, missing=0.3)
    check = point.check(*later)
    assert check.holds
    assert check.bounds[0].samples[0] == int((later[1][:, 0] == 0).sum())
    assert not point.check(later[0] + [2, 0, 0, 0], later[1]).holds


TWO = np.tile([[0.0, 1.0], [1.0, 0.0]], (5, 1))


@pytest.mark.parametrize(
    ("error", "said", "call"),
    [
        (ShapeMismatch, "each of the 2 labels", lambda: sp.evaluate(ASKS["a"], TWO[:, :1], TWO)),
        (ShapeMismatch, "must match: one", lambda: sp.evaluate(f"{ASKS['a']} for each of x, y", TWO, TWO[:, 0])),
        (BadLabels, "0, 1 or NaN", lambda: sp.evaluate(ASKS["a"], TWO, 2 * TWO)),
        (MissingClass, "known for none", lambda: sp.evaluate(ASKS["a"], TWO, TWO * [1, np.nan])),
        (MissingClass, "label '1': fnr needs positive", lambda: sp.evaluate(ASKS["a"], TWO, TWO * [1, 0])),
        (BadSetting, "names each of the 2 columns", lambda: sp.evaluate(ASKS["a"], TWO, TWO, classes=["x"])),
        (BadProblem, "has no ask", lambda: sp.evaluate(f"{ASKS['a']} for each of x, y", TWO, TWO, classes=["x", "z"])),
        (ShapeMismatch, r"\(n, 3\)", lambda: sp.evaluate(f"{ASKS['a']} for each of x, y, z", TWO, TWO)),
        (ShapeMismatch, "one column of scores per label", lambda: sp.evaluate(ASKS["a"], TWO, TWO).predict([0.5])),
    ],
)  # fmt: skip
def test_scores_and_labels_that_do_not_fit_are_refused(error, said, call):
    with pytest.raises(error, match=said):
        call()
