"""Tests with weights: fair bets against all outcomes, plans, and the same answers as without weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.errors import BadProblem, BadSetting, BadWeights, MissingClass
from setpoint.problem.weighted import WeightedEvidence, log_weighted, losing, weighted_interval

ASK = "maximize recall where precision >= 50%"


def rows(seed, n=4000, share=0.1, shift=2.0):
    draw = np.random.default_rng(seed)
    labels = (draw.random(n) < share).astype(int)
    return draw.normal(size=n) + shift * labels, labels


def test_bets_are_fair_at_the_bound_whatever_the_weights():
    """All outcomes of three rows, each drawn with probability in proportion to 1 / its share: the mean is 1."""
    bound, chances = 0.3, np.array([1.0, 0.5, 0.25])
    shares, mean = chances.min() / chances, 0.0
    for drawn, wrong in product(product((0, 1), repeat=3), repeat=2):
        probability = np.prod(np.where(drawn, chances, 1 - chances)) * np.prod(np.where(wrong, bound, 1 - bound))
        counted = np.array(drawn, dtype=float)
        mean += probability * np.exp(log_weighted(shares, counted * np.array(wrong), counted, bound))
    assert mean == pytest.approx(1)


def test_evidence_starts_anew_and_stays_an_average_of_bets():
    evidence = WeightedEvidence(0.1)
    for _ in range(5):
        evidence.look(np.array([1.0]), np.array([0.0]), np.array([100.0]))
    low = evidence.now
    for _ in range(3):
        evidence.look(np.array([1.0]), np.array([30.0]), np.array([100.0]))
    assert low < 0 < np.log(20) < evidence.now


def test_the_interval_holds_the_rate_and_gets_narrower():
    ones = (np.ones(1), np.ones(1))
    widths = []
    for n in (100, 1000, 10000):
        low, high = weighted_interval(np.ones(1), ones, np.array([0.2 * n]), np.array([float(n)]), 0.05)
        assert low < 0.2 < high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert weighted_interval(np.ones(1), ones, np.zeros(1), np.zeros(1), 0.05) == (0.0, 1.0)


def test_rows_that_lose_a_bet_on_precision_are_flagged_and_for_recall_on_either_side():
    precision, recall = sp.ask(ASK).constraints[0], sp.ask("minimize fpr where recall >= 90%").constraints[0]
    assert losing(precision, 0.01) == (0.01, 0.01)
    # Missed positives lose a bet on a higher recall, found ones a bet on a lower one.
    assert losing(recall, 0.01) == (1.0, 0.01)


def test_a_plan_draws_the_share_and_more_of_the_rows_that_tell_most():
    scores, labels = rows(0, 20000)
    watch = sp.calibrate(ASK, scores, labels).watch()
    plan = watch.plan(scores, labels, share=0.05)
    drawn, weights = plan.draw(scores, seed=1)
    assert len(drawn) == pytest.approx(1000, rel=0.1)
    flagged = scores[drawn] > watch.thresholds.single
    assert flagged.mean() > 0.9, "precision is about flagged rows"
    assert np.asarray(weights.weights).sum() == pytest.approx(20000, rel=0.15)
    assert weights.most_flagged < weights.most
    assert np.all(np.asarray(weights.weights)[flagged] <= weights.most_flagged)
    assert plan.draw(scores, seed=1)[0].tolist() == drawn.tolist()
    recall = sp.calibrate("minimize fpr where recall >= 90%", scores, labels).watch().plan(scores, labels, share=0.05)
    assert max(recall.chances) > 3 * recall.chances[0], "few positives lie among the lowest scores"


def test_looks_at_planned_rows_find_a_broken_bound_and_are_saved(tmp_path):
    scores, labels = rows(1)
    point = sp.calibrate(ASK, scores, labels, confidence=0.95)
    watch = point.watch()
    for month in range(4):
        new, truth = rows(10 + month, shift=1.0 if month >= 2 else 2.0)
        drawn, weights = watch.plan(scores, labels, share=0.1).draw(new, seed=100 + month)
        watch.update(new[drawn], truth[drawn], weights=weights)
        assert watch.broken == (month >= 2)
    low, high = watch.interval["precision >= 50%"]
    assert low < watch.rates["precision >= 50%"] < high
    watch.save(tmp_path / "watch.json")
    again = sp.Watch.load(tmp_path / "watch.json")
    assert again.bounds == watch.bounds
    check = point.check(new[drawn], truth[drawn], weights=weights)
    assert not check.holds
    kept, right = rows(50)
    drawn, weights = watch.plan(scores, labels, share=0.1).draw(kept, seed=7)
    assert point.check(kept[drawn], right[drawn], weights=weights).holds


def test_many_different_weights_are_rounded_and_right_on_average():
    heavy = np.random.default_rng(0).random(50000) * 3
    shares = sp.PopulationWeights(heavy, most=4).shares(50000, 1)
    assert len(np.unique(shares)) <= 64
    assert shares.mean() == pytest.approx(heavy.mean() / 4, rel=1e-3)
    assert np.abs(shares - heavy / 4).max() < 1 / 63


def test_weights_that_cannot_be_tested_are_refused():
    scores, labels = rows(2, 400)
    groups = np.arange(400) % 2
    gap = sp.calibrate("minimize error where recall.gap(sex) <= 20%", scores, labels, groups=groups)
    plain, weights = sp.calibrate(ASK, scores, labels), sp.PopulationWeights(np.ones(400), most=1)
    with pytest.raises(BadWeights, match="one threshold and bounds on plain rates"):
        gap.watch().update(scores, labels, weights=weights, groups=groups)
    with pytest.raises(BadWeights, match="above most=1"):
        plain.watch().update(scores, labels, weights=sp.PopulationWeights(np.full(400, 2.0), most=1))
    with pytest.raises(BadWeights, match="above most_flagged"):
        plain.check(scores, labels, weights=sp.PopulationWeights(np.ones(400), most=1, most_flagged=0.5))
    with pytest.raises(BadSetting, match="most_flagged"):
        sp.PopulationWeights(np.ones(4), most=1, most_flagged=2)
    with pytest.raises(BadWeights, match="one weight"):
        plain.watch().update(scores, labels, weights=sp.PopulationWeights([1.0], most=1))
    with pytest.raises(BadSetting, match="share is the part"):
        plain.watch().plan(scores, labels, share=0)
    with pytest.raises(MissingClass, match="both classes"):
        plain.watch().plan(scores, torch.zeros(400), share=0.1)


def test_a_plan_needs_a_bound_that_can_be_tested():
    scores, labels = rows(3, 400)
    watch = sp.calibrate(ASK, scores, labels).watch()
    watch.problem = sp.ask("maximize f1")
    with pytest.raises((BadProblem, BadWeights)):
        watch.plan(scores, labels, share=0.1)


def test_a_bound_about_which_no_known_row_tells_draws_all_rows_alike():
    scores, labels = torch.arange(400) / 400, torch.arange(400) % 2
    plan = sp.evaluate("minimize fnr where flagged <= 0%", scores, labels).watch().plan(scores, labels, share=0.1)
    assert plan.chances == pytest.approx([0.1] * len(plan.chances))
    assert plan.most == pytest.approx(10)
