"""A watch: looks in any batches, both directions, every kind of bound, a record that is only added to."""

from __future__ import annotations

import json

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import BadFile, BadProblem, BadSetting, BadWeights
from setpoint.problem.watch import Watch

ASK = "minimize fnr where fpr <= 10%"


def rows(n, fpr, seed, positives=0.3):
    """Scores of which a threshold of 0.5 passes a share `fpr` of negatives and 90 % of positives."""
    draw = np.random.default_rng(seed)
    labels = draw.random(n) < positives
    passes = draw.random(n) < np.where(labels, 0.9, fpr)
    return np.where(passes, 0.5 + draw.random(n) / 2, draw.random(n) / 2), labels.astype(int)


@pytest.fixture
def point():
    return sp.calibrate(ASK, [0.4, 0.6], [0, 1])


def test_kept_broken_and_open(point):
    good = point.watch()
    for month in range(12):
        good.update(*rows(500, 0.05, month))
    assert good.holds
    assert not good.broken
    bad = point.watch()
    for month in range(6):
        bad.update(*rows(500, 0.05, month))
    assert not bad.broken
    for month in range(6, 16):
        bad.update(*rows(500, 0.2, month))
    assert bad.broken
    assert not bad.holds
    assert not point.watch().update(*rows(20, 0.1, 0)).holds
    low, high = bad.interval["fpr <= 10%"]
    assert low < bad.rates["fpr <= 10%"] < high


def test_the_order_within_a_batch_and_its_division_into_chunks_do_not_matter(point, monkeypatch):
    scores, labels = rows(400, 0.1, 3)
    one = point.watch().update(scores, labels)
    order = np.random.default_rng(0).permutation(400)
    assert point.watch().update(scores[order], labels[order]).evidence == one.evidence
    monkeypatch.setattr("setpoint.problem.watch._CHUNK", 7)
    assert point.watch().update(scores, labels).looks[0]["counts"] == one.looks[0]["counts"]
    assert sum(one.looks[0]["counts"]) == 400


def test_the_two_directions_of_a_rate_and_its_complement_are_one():
    scores, labels = rows(500, 0.1, 5)
    fpr, tnr = (
        sp.calibrate(f"minimize fnr where {bound}", scores, labels).watch().update(*rows(900, 0.2, 6))
        for bound in ("fpr <= 10%", "tnr >= 90%")
    )
    assert next(iter(fpr.evidence.values())) == pytest.approx(next(iter(tnr.evidence.values())))


def test_several_bounds_share_the_level():
    scores, labels = rows(500, 0.1, 5)
    alone = sp.calibrate("minimize fnr where fpr <= 50%", scores, labels).watch()
    both = sp.calibrate("minimize fnr where fpr <= 50% and flagged <= 90%", scores, labels).watch()
    # 18 of 21 negatives pass: the e-value lies between 1 / level and 2 / level.
    batch = [0.9] * 18 + [0.01] * 3, [0] * 21
    for watch in (alone, both):
        watch.update(*batch)
    assert 20 < alone.bounds[0].against < 40
    assert alone.broken
    assert not both.broken


def test_an_equality_is_broken_on_either_side_and_never_shown_to_hold():
    scores, labels = rows(500, 0.1, 5)
    point = sp.calibrate("maximize precision where flagged == 30%", scores, labels)
    for scores_of in (np.ones, np.zeros):
        watch = point.watch().update(scores_of(200), labels[:200])
        assert watch.broken
        assert not watch.holds
    assert not point.watch().update(scores, labels).broken


def test_gaps_are_watched_between_groups():
    groups = np.array(["a", "b"])[np.arange(2000) % 2]
    scores, labels = rows(2000, 0.1, 7)
    point = sp.calibrate("minimize fnr where fpr.gap(site) <= 5% and fpr <= 20%", scores, labels, groups=groups)
    assert not point.watch().update(scores, labels, groups=groups).broken
    apart = np.where((groups == "a") & (np.arange(2000) % 3 > 0), 1.0, scores)
    watch = point.watch().update(apart, labels, groups=groups)
    assert watch.broken
    assert watch.interval["fpr.gap(site) <= 5%"][0] > 0.05


@pytest.mark.parametrize(
    ("ask", "scores", "labels"),
    [
        ("minimize review where precision >= 80%", "one", "two"),
        ("maximize recall of class 1 where error <= 60%", "three", "three"),
        ("maximize recall weighted by amount where fpr <= 20%", "one", "two"),
    ],
)
def test_bands_classes_and_values_are_watched(ask, scores, labels):
    draw = np.random.default_rng(0)
    two = draw.integers(0, 2, 600)
    three = draw.integers(0, 3, 600)
    scores = {"one": two + draw.normal(size=600), "three": np.eye(3)[three] + draw.normal(size=(600, 3))}[scores]
    labels = {"two": two, "three": three}[labels]
    weights = {"amount": draw.random(600)} if "amount" in ask else None
    watch = sp.calibrate(ask, scores, labels, weights=weights).watch()
    kept = watch.update(scores, labels, weights=weights).bounds[-1]
    assert kept.against < 20
    worse = watch.update(np.flip(scores, -1) if scores.ndim > 1 else 9 + 0 * scores, 0 * labels, weights=weights)
    assert worse.bounds[-1].against > 20 * kept.against


def test_a_batch_that_comes_twice_is_refused(point):
    watch = point.watch().update(*rows(200, 0.1, 1))
    with pytest.raises(BadSetting, match="counted at look 1 already"):
        watch.update(*rows(200, 0.1, 1))
    assert len(watch.update(*rows(200, 0.1, 1), again=True).looks) == 2


def test_what_is_saved_is_read_back_and_a_change_is_noticed(point, tmp_path):
    watch = point.watch().update(*rows(200, 0.1, 1), name="July").update(*rows(200, 0.1, 2))
    watch.save(tmp_path / "w.json")
    read = Watch.load(tmp_path / "w.json")
    assert (read.evidence, read.interval, read.hash) == (watch.evidence, watch.interval, watch.hash)
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "w.json").read_bytes()
    data = json.loads((tmp_path / "w.json").read_text())
    for spoil in (
        lambda d: d["entries"][0]["counts"].reverse(),
        lambda d: d["entries"].pop(0),
        lambda d: d.update(level=0.5),
        lambda d: d["point"].update(threshold=0.9),
    ):
        spoiled = json.loads(json.dumps(data))
        spoil(spoiled)
        (tmp_path / "spoiled.json").write_text(json.dumps(spoiled))
        with pytest.raises(BadFile, match="changed after it was written"):
            Watch.load(tmp_path / "spoiled.json")
    with pytest.raises(BadFile, match="no watch at"):
        Watch.load(tmp_path / "nowhere.json")


def test_watches_of_two_places_add_up(point):
    first, second = rows(300, 0.1, 1), rows(300, 0.1, 2)
    one, two = point.watch().update(*first), point.watch().update(*first).update(*second)
    assert len(one.merge(two).looks) == 2
    assert one.evidence == two.evidence
    apart = point.watch().update(*second).merge(point.watch().update(*first).update(*second))
    assert apart.rates == two.rates
    with pytest.raises(BadSetting, match="one point and one level"):
        one.merge(point.watch(level=0.1))


def test_a_recertification_starts_anew_and_keeps_the_record(point):
    watch = point.watch()
    for month in range(8):
        watch.update(*rows(500, 0.4, month))
    assert watch.broken
    fresh = sp.calibrate(ASK, *rows(500, 0.05, 9))
    watch.restart(fresh.to_dict())
    assert not watch.broken
    assert (len(watch.looks), len(watch.entries)) == (0, 9)
    assert watch.thresholds == fresh.thresholds
    with pytest.raises(BadSetting, match="restarted"):
        point.watch().merge(watch)


def test_refusals(point):
    with pytest.raises(BadWeights, match="counts rows"):
        point.watch().update([0.1, 0.9], [0, 1], weights=[1, 2])
    with pytest.raises(BadSetting, match="level must lie"):
        point.watch(level=1)
    with pytest.raises(BadProblem, match="no bound that can be watched"):
        sp.calibrate("maximize f1", [0.1, 0.9], [0, 1]).watch()
