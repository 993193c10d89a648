"""The point that ships: certified by default where the rows suffice, and what that costs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import setpoint as sp
from setpoint.decide.settle import demanded, read_confidence, settle

ASK = sp.ask("minimize fnr where fpr <= 5%")


def draw(rng, negatives=400, positives=100):
    labels = np.repeat([0, 1], [negatives, positives])
    return rng.normal(size=len(labels)) + 2 * labels, labels


def test_by_default_the_bound_is_kept_and_the_bare_cut_breaks_it_half_the_time():
    rng, repeats = np.random.default_rng(0), 300
    broken = {"auto": 0, None: 0}
    for _ in range(repeats):
        scores, labels = draw(rng)
        for confidence in broken:
            threshold = settle(ASK, scores, labels, confidence).point.threshold
            broken[confidence] += norm.sf(threshold) > 0.05
    assert broken["auto"] <= repeats * 0.05 + 2 * np.sqrt(repeats * 0.05 * 0.95)
    assert broken[None] > 0.3 * repeats


def test_the_cost_is_that_of_the_same_search_without_a_certificate():
    scores, labels = draw(np.random.default_rng(1))
    settled = settle(ASK, scores, labels, "auto")
    assert settled.point == sp.calibrate(ASK, scores, labels, confidence=0.95)
    assert settled.bare == sp.calibrate(ASK, scores, labels)
    assert settled.cost == pytest.approx(settled.point.objective - settled.bare.objective)
    assert settled.cost > 0
    recall = settle(sp.ask("maximize recall where fpr <= 5%"), scores, labels, 0.9)
    assert recall.cost == pytest.approx(recall.bare.objective - recall.point.objective)
    assert settle(ASK, scores, labels, None).cost is None


def test_rows_that_certify_only_a_cut_that_flags_nothing_do_not_suffice():
    # 59 negatives allow no false alarm at 5 %; here a negative has the highest score of all.
    scores, labels = np.arange(79.0), np.repeat([0, 1, 0], [58, 20, 1])
    settled = settle(ASK, scores, labels, "auto")
    assert "flagged or none" in settled.refusal
    assert settled.point == sp.calibrate(ASK, scores, labels)
    demanded_one = settle(ASK, scores, labels, 0.95)
    assert demanded_one.point.certificate is not None
    assert demanded_one.point.rates["flagged"] == 0


@pytest.mark.parametrize(
    ("ask", "auto", "number"),
    [
        ("maximize f1", None, None),
        ("maximize recall over fpr in [0%, 10%]", None, None),
        ("maximize precision where flagged == 20%", None, "no data can show"),
        ("maximize recall where f1 >= 10%", None, "no exact test of f_score"),
        ("minimize fnr where fpr <= 0%", "no number of samples", "no number of samples"),
        ("minimize fnr where fpr <= 0.1%", "needs 2,995 negatives", "needs 2,995 negatives"),
    ],
)
def test_each_reason_against_a_certificate(ask, auto, number):
    scores, labels = draw(np.random.default_rng(2))
    problem = sp.ask(ask)
    for confidence, why in (("auto", auto), (0.95, number), (None, None)):
        settled = settle(problem, scores, labels, confidence)
        assert settled.refusal is None if why is None else why in settled.refusal
        assert settled.point.certificate is None
        assert settled.cost is None


def test_the_three_states_of_a_confidence():
    assert [demanded(read_confidence(each)) for each in (0.9, "auto", None)] == [0.9, None, None]
    for odd in ("high", 95, 0, True):
        with pytest.raises(sp.SetpointError, match="confidence must"):
            read_confidence(odd)


def test_a_gap_that_is_certified_only_by_treating_all_rows_alike_is_not_by_default():
    ask, rng = sp.ask("minimize error where recall.gap(site) <= 10%"), np.random.default_rng(0)
    groups, labels = np.arange(900) % 2, (np.arange(900) // 2 % 6 == 0).astype(int)
    scores = rng.normal(size=900) + 1.5 * labels
    certified = sp.calibrate(ask, scores, labels, groups=groups, confidence=0.95)
    assert certified.objective >= labels.mean()
    settled = settle(ask, scores, labels, "auto", groups=groups)
    assert settled.point == sp.calibrate(ask, scores, labels, groups=groups)
    assert "flagging all rows or none does as well" in settled.refusal
    assert settle(ask, scores, labels, 0.95, groups=groups).point == certified
    many = np.random.default_rng(1)
    groups, labels = np.arange(8000) % 2, (np.arange(8000) % 4 < 2).astype(int)
    clear = settle(ask, many.normal(size=8000) + 2 * labels, labels, "auto", groups=groups)
    assert clear.refusal is None
    assert clear.point.certificate is not None
