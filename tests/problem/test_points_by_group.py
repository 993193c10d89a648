"""Points with a threshold a group, the words of points, and what is on disk after a crash."""

import json
import os

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.errors import BadFile, BadGroups
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.point import FORMAT
from setpoint.problem.read_thresholds import thresholds_from
from setpoint.problem.thresholds import OneThreshold

SCORES = [0.9, 0.7, 0.5, 0.1, 0.8, 0.6, 0.4, 0.2]
LABELS = [1, 1, 0, 0, 1, 0, 1, 0]
GROUPS = ["b", "b", "b", "b", "a", "a", "a", "a"]
FAIR = sp.minimize(sp.error, sp.recall.gap("sex") <= 0.0)


def by_hand(thresholds):
    """The point at given thresholds, a for the second half and b for the first."""
    limits = torch.tensor([[thresholds["a"], thresholds["b"]]]).double()
    sample = Sample(
        torch.tensor(SCORES).double(), torch.tensor(LABELS).double(), None, torch.tensor([1] * 4 + [0] * 4), 2
    )
    return sp.OperatingPoint.at(FAIR, thresholds_from(limits, FAIR, ["a", "b"]), sample)


def test_a_threshold_a_group_with_the_rates_of_each():
    point = by_hand({"a": 0.7, "b": 0.6})
    assert point.threshold == {"a": pytest.approx(0.7), "b": pytest.approx(0.6)}
    assert point.rates["recall[a]"] == 0.5
    assert point.rates["recall[b]"] == 1
    assert point.rates["recall.gap(sex)"] == 0.5
    assert point.rates["recall"] == 0.75
    assert point.objective == point.rates["error"] == 1 / 8
    assert not point.feasible
    assert point.violation == 0.5
    assert point.outcome == "infeasible: no threshold meets recall.gap(sex) <= 0% (nearest: 0.5)"
    shown = ["error", "recall.gap(sex)", "fpr", "fnr", "recall", "tnr", "precision", "flagged", "accuracy"]
    assert list(point.rates) == [*shown, "recall[a]", "recall[b]"]


def test_groups_are_numbered_where_they_have_no_names():
    sample = Sample(torch.zeros(2).double(), torch.tensor([0.0, 1.0]).double(), None, torch.tensor([0, 2]), 3)
    point = sp.OperatingPoint.at(FAIR, thresholds_from(torch.tensor([[0.0, 1.0, -1.0]]).double(), FAIR), sample)
    assert point.threshold == {"0": 0, "1": 1, "2": -1}
    # Neither the negative of group 0 nor the nothing of group 1 has a recall.
    assert [name for name in point.rates if "[" in name] == ["recall[2]"]


def test_each_sample_is_decided_by_the_threshold_of_its_group():
    point = by_hand({"a": 0.7, "b": 0.05})
    assert point.predict([0.5, 0.5, 0.8], ["a", "b", "a"]).tolist() == [0, 1, 1]
    assert point.predict(torch.tensor([0.5, 0.5]), np.array(["b", "a"])).tolist() == [1, 0]
    with pytest.raises(BadGroups) as refusal:
        point.predict([0.5])
    assert str(refusal.value) == "this point has one threshold a sex; pass groups="
    with pytest.raises(BadGroups) as refusal:
        point.predict([0.5], ["c"])
    assert str(refusal.value) == "no threshold for sex 'c'; known are a, b"


def test_judging_keeps_thresholds_groups_weights_and_certificate():
    point = by_hand({"a": 0.7, "b": 0.6})
    again = point.judge(SCORES, LABELS, groups=GROUPS)
    assert again == point
    only_b = point.judge(SCORES[:4], LABELS[:4], groups=GROUPS[:4])
    assert only_b.threshold == point.threshold
    assert "recall[a]" not in only_b.rates
    assert only_b.rates["recall.gap(sex)"] == 0
    assert only_b.feasible
    weighted = point.judge(SCORES, LABELS, weights=[1, 1, 1, 1, 3, 1, 1, 1], groups=GROUPS)
    assert weighted.rates["recall[a]"] == 0.75
    plain = sp.calibrate("minimize fnr where fpr <= 90%", SCORES * 9, LABELS * 9, confidence=0.5)
    assert plain.certificate is not None
    assert plain.judge(SCORES, LABELS).certificate == plain.certificate


def test_a_gap_found_judged_saved_and_read(tmp_path):
    point = sp.evaluate(FAIR, SCORES, LABELS, groups=GROUPS)
    assert point.feasible
    assert set(point.threshold) == {"a", "b"}
    point.save(tmp_path / "point.json")
    assert sp.OperatingPoint.load(tmp_path / "point.json") == point
    assert point.judge(SCORES, LABELS, groups=GROUPS).rates == point.rates


def test_areas_say_where_each_rate_was_seen():
    problem = sp.maximize(sp.precision, over=sp.recall.between(0.5, 1.0, points=2))
    point = sp.evaluate(problem, SCORES, LABELS)
    assert list(point.rates) == [
        "precision at recall 0.625", "precision at recall 0.875", "recall at recall 0.625", "recall at recall 0.875",
    ]  # fmt: skip
    assert isinstance(point.threshold, tuple)
    assert point.feasible
    assert point.violation == 0
    other = point.judge(SCORES[::-1], LABELS[::-1])
    assert other.threshold == point.threshold
    assert other.objective == pytest.approx(point.objective)


def test_an_equality_is_met_within_the_heaviest_sample():
    problem = sp.maximize(sp.precision, sp.flagged == 0.5)
    thresholds = OneThreshold(0.5)
    scores, labels = torch.tensor([0.9, 0.1, 0.2]).double(), torch.tensor([1.0, 0.0, 0.0]).double()
    light = Sample(scores, labels, torch.tensor([1.0, 4.0, 4.0]).double())
    assert sp.OperatingPoint.at(problem, thresholds, light).feasible
    assert sp.OperatingPoint.at(problem, thresholds, Sample(scores, labels)).feasible
    even = Sample(torch.tensor([0.9, *[0.1] * 9]).double(), torch.tensor([1.0, *[0.0] * 9]).double())
    assert not sp.OperatingPoint.at(problem, thresholds, even).feasible


def test_the_words_of_a_point():
    point = sp.evaluate("minimize fnr where fpr <= 25%", SCORES, LABELS)
    assert point.outcome == "feasible"
    assert str(point).startswith(
        f"minimize fnr where fpr <= 25%: feasible, threshold {point.thresholds.describe()}, fnr 25%, fpr 25%"
    )
    both = sp.evaluate("maximize recall where precision >= 100% and recall >= 100%", [1.0, 2.0], [1, 0])
    assert both.outcome.count(" and ") == 1 or both.outcome.count("nearest") == 1
    equal = sp.evaluate("maximize precision where flagged == 40%", [0.5] * 6, [0, 1, 0, 1, 0, 1])
    assert equal.outcome == "infeasible: no threshold meets flagged == 40% (nearest: 0)"


def test_what_is_written():
    point = by_hand({"a": 0.7, "b": 0.6})
    assert point.to_dict() == {
        "format": FORMAT, "ask": "minimize error where recall.gap(sex) <= 0%", "threshold": point.threshold,
        "objective": point.objective, "rates": point.rates, "feasible": False, "violation": 0.5, "certificate": None,
    } | {key: value for key, value in point.to_dict().items() if key not in (
        "format", "ask", "threshold", "objective", "rates", "feasible", "violation", "certificate")}  # fmt: skip


def test_metrics_of_ones_own_are_handed_to_the_reader(tmp_path):
    own = sp.Metric("own", lambda tp, fp, fn, tn: tp - fp)
    point = sp.evaluate(sp.maximize(own), SCORES, LABELS)
    point.save(tmp_path / "point.json")
    assert sp.OperatingPoint.load(tmp_path / "point.json", [own]) == point
    assert sp.OperatingPoint.from_dict(point.to_dict(), [own]) == point
    with pytest.raises(BadFile, match=r"asks what cannot be read.*'own' is not a rate.*hand metrics of your own over"):
        sp.OperatingPoint.load(tmp_path / "point.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 99}, "operating point of format 99, this version reads"),
        ({"objective": float("inf")}, "damaged operating point: expected a number, found inf"),
        ({"violation": "0"}, "damaged operating point: expected a number, found '0'"),
        ({"rates": [1]}, "damaged operating point: expected a dict"),
        ({"threshold": {"a": True}}, "damaged operating point: expected a number, found True"),
        ({"threshold": None}, "damaged operating point: expected a number, found None"),
    ],
)
def test_every_word_of_a_damaged_file(change, says):
    data = {**by_hand({"a": 0.7, "b": 0.6}).to_dict(), **change}
    with pytest.raises(BadFile) as refusal:
        sp.OperatingPoint.from_dict(data)
    assert str(refusal.value).startswith(says)


def test_whole_numbers_are_read_as_numbers():
    data = {**by_hand({"a": 0.7, "b": 0.6}).to_dict(), "threshold": {"a": 1, "b": 2}, "objective": 0}
    point = sp.OperatingPoint.from_dict(data)
    assert point.threshold == {"a": 1.0, "b": 2.0}
    assert isinstance(point.threshold["a"], float)
    assert isinstance(point.objective, float)


def test_names_are_written_and_read_as_utf_8(tmp_path, monkeypatch):
    point = sp.evaluate('minimize error where recall.gap("Straße ≤ 3") <= 100%', SCORES, LABELS, groups=GROUPS)
    point.save(tmp_path / "a" / "b" / "point.json")
    text = (tmp_path / "a" / "b" / "point.json").read_bytes().decode("utf-8")
    assert text.endswith("}\n")
    assert '\n  "format"' in text
    assert sp.OperatingPoint.load(tmp_path / "a" / "b" / "point.json") == point
    (tmp_path / "latin.json").write_bytes(b'{"format": "\xe9"}')
    with pytest.raises(BadFile, match="is not JSON"):
        sp.OperatingPoint.load(tmp_path / "latin.json")


def test_numbers_that_json_has_no_word_for_are_not_written(tmp_path):
    point = sp.OperatingPoint(FAIR, 0.0, float("nan"), {}, True, 0.0, Certificate("fpr <= 1%", 0.95, 3))
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        point.save(tmp_path / "point.json")
    assert os.listdir(tmp_path) == []
    assert json.loads(json.dumps(point.to_dict()["certificate"]))["confidence"] == 0.95
