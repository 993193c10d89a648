"""Tests and watches of rows that come in clusters: fair bets, kept levels, and the same answers in any chunks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import norm

import setpoint as sp
from setpoint.errors import BadFile, BadGroups, BadSetting, BadWeights, ShapeMismatch
from setpoint.problem.clusters import ClusterCounts, grown
from setpoint.problem.read_sample import read_sample
from setpoint.problem.thresholds import OneThreshold
from setpoint.problem.weighted import mixed

ASK = "minimize fnr where fpr <= 10%"
SD = np.hypot(1, 1.5)


def rows(draw, clusters=60, each=25, moved=0.0, share=1.5):
    """Rows of clusters whose scores share most of their noise: scores, labels and clusters."""
    patient = np.repeat(np.arange(clusters), each)
    labels = (draw.random(len(patient)) < 0.3).astype(int)
    noise = share * draw.normal(size=clusters)[patient] + draw.normal(size=len(patient))
    return noise + 2 * labels + moved * (labels == 0), labels, patient


@pytest.fixture(scope="module")
def at_the_bound():
    """A point whose true false positive rate is 10 %, just as promised."""
    scores, labels, _ = rows(np.random.default_rng(0))
    return replace(sp.calibrate(ASK, scores, labels), thresholds=OneThreshold(float(norm.isf(0.1) * SD)))


def test_a_bet_on_a_cluster_is_fair_at_the_bound_however_its_rows_depend():
    """Two rows of one cluster that are both wrong or both right, or of which one does not count."""
    bound, mean = 0.3, 0.0
    for wrong, alike, counts in product((0, 1), repeat=3):
        second = wrong if alike else 0
        both = 1 if alike else 0
        chance = (bound if wrong else 1 - bound) / 4
        part, whole = counts * (wrong + second * both) / 2, counts * (1 + both) / 2
        mean += chance * np.exp(mixed(grown(np.array([part]), np.array([whole]), np.ones(1), bound)))
    assert mean == pytest.approx(1)


def test_a_kept_promise_is_called_broken_no_more_often_than_the_level(at_the_bound):
    """200 looks at 60 patients of 25 rows, exactly at the bound; rows taken for independent give 20 % false alarms."""
    draw, alarms = np.random.default_rng(1), {True: 0, False: 0}
    for _ in range(200):
        scores, labels, patients = rows(draw)
        for known in alarms:
            alarms[known] += not at_the_bound.check(scores, labels, clusters=patients if known else None).holds
    assert alarms[True] <= 0.05 * 200
    assert alarms[False] > 0.12 * 200, "the same looks without clusters"


def test_a_broken_promise_is_found_and_more_rows_of_each_cluster_help(at_the_bound):
    draw, found = np.random.default_rng(2), {1: 0, 25: 0}
    for _ in range(40):
        for each in found:
            scores, labels, patients = rows(draw, each=each, moved=1.2)
            found[each] += not at_the_bound.check(scores, labels, clusters=patients).holds
    assert found[25] > 36 > found[1]


def test_a_watch_of_clusters_keeps_its_level_over_all_looks(at_the_bound):
    draw, ever = np.random.default_rng(3), 0
    for _ in range(40):
        watch = at_the_bound.watch(level=0.1)
        for month in range(6):
            scores, labels, patients = rows(draw)
            watch.update(scores, labels, clusters=1000 * month + patients)
        ever += watch.broken
    assert ever <= 4
    for month in range(3):
        scores, labels, patients = rows(draw, moved=1.5)
        watch.update(scores, labels, clusters=9000 + 1000 * month + patients)
    assert watch.broken


def test_a_cluster_counts_once_over_all_looks(at_the_bound, tmp_path):
    """The rows of a patient in July say nothing new in August."""
    draw = np.random.default_rng(4)
    once, twice = at_the_bound.watch(), at_the_bound.watch()
    for start in (0, 30):
        scores, labels, patients = rows(draw, clusters=30)
        once.update(scores, labels, clusters=patients + start)
        twice.update(scores, labels, clusters=patients + start)
        twice.update(scores + 1, labels, clusters=patients + start)
    assert twice.bounds == once.bounds
    assert twice.entries[-1]["left_out"] == 30
    assert once.bounds[0].samples == (60,)
    twice.save(tmp_path / "watch.json")
    again = sp.Watch.load(tmp_path / "watch.json")
    assert (again.bounds, again.by_clusters) == (twice.bounds, True)
    scores, labels, patients = rows(draw, clusters=30)
    assert again.update(scores, labels, clusters=patients).bounds == twice.bounds, "a record knows its clusters"
    low, high = once.interval["fpr <= 10%"]
    assert low < once.rates["fpr <= 10%"] < high


def test_chunks_of_clusters_add_up_to_the_whole(at_the_bound):
    scores, labels, patients = rows(np.random.default_rng(5), clusters=20)
    mixed_up = np.random.default_rng(6).permutation(len(scores))

    def of(own):
        sample = read_sample(at_the_bound.problem, scores[own], labels[own])
        return ClusterCounts.of(at_the_bound.thresholds, sample, patients[own])

    whole, parts = of(mixed_up), of(mixed_up[:200]).merge(of(mixed_up[200:]))
    for name in ("keys", "sizes", "counts"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert (parts.drawn.sum(1) == 1).all()
    assert (parts.drawn <= parts.counts).all()


def test_the_rate_is_that_of_a_random_row_of_a_random_cluster():
    point = sp.calibrate("minimize fnr where flagged <= 50%", [0.0, 1.0], [0, 1])
    found = point.check([1.0, 1.0, 1.0, 0.0], [1, 0, 1, 0], clusters=["a", "a", "a", "b"]).bounds[0]
    assert (found.rate, found.samples, found.units) == (0.5, (2,), "clusters")
    assert "50% of 2 clusters" in str(found)


@pytest.mark.parametrize(
    "ask",
    ["minimize review where precision >= 60% and npv >= 60%", "maximize recall where precision >= 60%",
     "minimize fnr where flagged == 30%", "maximize recall weighted by amount where fpr <= 10%"],
)  # fmt: skip
def test_clusters_of_one_row_give_the_rates_of_rows(ask):
    scores, labels, _ = rows(np.random.default_rng(7))
    weights = {"weights": {"amount": np.abs(scores) + 1}} if "amount" in ask else {}
    point = sp.calibrate(ask, scores, labels, **weights)
    for one, other in zip(
        point.check(scores, labels, **weights).bounds,
        point.check(scores, labels, clusters=np.arange(len(scores)), **weights).bounds,
        strict=True,
    ):
        assert (other.rate, other.samples) == (pytest.approx(one.rate), one.samples)
        assert other.p_value > 0.2


def test_gaps_groups_and_classes_are_tested_by_clusters():
    draw = np.random.default_rng(8)
    scores, labels, patients = rows(draw, clusters=400, each=5)
    groups = np.where(draw.random(len(scores)) < 0.5, "f", "m")
    gap = sp.calibrate("minimize error where recall.gap(sex) <= 20%", scores, labels, groups=groups)
    found = gap.check(scores, labels, groups=groups, clusters=patients).bounds[0]
    assert found.units == "rows, one of each cluster"
    assert sum(found.samples) < 400 < sum(gap.check(scores, labels, groups=groups).bounds[0].samples)
    moved = scores - 4 * (groups == "m")
    assert not gap.check(moved, labels, groups=groups, clusters=patients).holds
    assert gap.watch().update(moved, labels, groups=groups, clusters=patients).bounds[0].samples < (400, 400)
    each = sp.calibrate(ASK, scores, labels, groups=groups, per_group=True, confidence=0.9)
    assert [row.group for row in each.check(scores, labels, groups=groups, clusters=patients).bounds] == ["f", "m"]
    watched = each.watch().update(scores, labels, groups=groups, clusters=patients)
    assert [bound.group for bound in watched.bounds] == ["f", "m"]
    wide = torch.from_numpy(draw.normal(size=(len(scores), 3)))
    kinds = sp.calibrate("minimize error where recall of class 1 >= 20%", wide, labels + (scores > 3))
    alone = kinds.check(wide, labels + (scores > 3), clusters=np.arange(len(scores)))
    assert alone.bounds[0].rate == pytest.approx(kinds.rates["recall of class 1"])
    assert kinds.watch().update(wide, labels, clusters=patients).by_clusters


def test_clusters_that_cannot_be_tested_are_refused(at_the_bound, tmp_path):
    scores, labels, patients = rows(np.random.default_rng(9))
    with pytest.raises(ShapeMismatch, match="one cluster per row"):
        at_the_bound.check(scores, labels, clusters=patients[:-1])
    with pytest.raises(BadGroups, match=f"clusters are missing for {len(scores)} of .* give each row its cluster"):
        at_the_bound.check(scores, labels, clusters=[None] * len(scores))
    weights = sp.PopulationWeights(np.ones(len(scores)), most=1)
    with pytest.raises(BadWeights, match="not tested beside clusters"):
        at_the_bound.check(scores, labels, weights=weights, clusters=patients)
    lists = sp.calibrate("maximize precision in the first 5", scores, labels, lists=patients)
    with pytest.raises(BadSetting, match="lists are tested whole"):
        lists.check(scores, labels, lists=patients, clusters=patients)
    watch = at_the_bound.watch().update(scores, labels, clusters=patients)
    with pytest.raises(BadSetting, match="counts clusters of rows; pass clusters="):
        watch.update(scores + 1, labels)
    with pytest.raises(BadSetting, match="counts rows; leave out clusters="):
        at_the_bound.watch().update(scores, labels).update(scores + 1, labels, clusters=patients)
    other = at_the_bound.watch().update(scores + 2, labels, clusters=patients)
    with pytest.raises(BadSetting, match="both watches have counted 60 clusters"):
        watch.merge(other)
    later = at_the_bound.watch().update(scores, labels, clusters=patients + 100)
    assert watch.merge(later).bounds[0].samples == (120,)
    odd = {name: value for name, value in watch.entries[0].items() if name != "hash"}
    with pytest.raises(BadFile, match="do not fit their number"):
        watch.add({**odd, "clusters": {"times": [1], "sizes": [], "counts": [[1, 0, 0, 0]]}})
    with pytest.raises(BadFile, match="not hexadecimal"):
        watch.add({**odd, "keys": "12"})
