"""A point: true rates, strict decisions, what it promises, checks later, refuses and keeps on disk."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

import setpoint as sp
from setpoint.errors import BadFile, BadGroups, BadScores, BadSetting, BadWeights, MissingClass
from setpoint.measure.curve import roc_area
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate, Estimate, read_certificate
from setpoint.problem.check import Check
from setpoint.problem.point import FORMAT, OperatingPoint
from setpoint.problem.thresholds import OneThreshold, PerGroup

SCORES = [0.1, 0.4, 0.35, 0.8, 0.7, 0.2]


LABELS = [0, 0, 1, 1, 1, 0]


def test_a_point_holds_true_rates_and_predicts_strictly_above():
    point = sp.evaluate(sp.minimize(sp.fnr, sp.fpr <= 0.34), SCORES, LABELS)
    assert point.feasible
    assert point.objective == 0
    assert point.rates["fpr"] == pytest.approx(1 / 3)
    assert point.rates["recall"] == 1
    assert isinstance(point.threshold, float)
    assert 0.2 < point.threshold < 0.35
    decisions = point.predict(SCORES)
    assert isinstance(decisions, np.ndarray)
    assert decisions.tolist() == [0, 1, 1, 1, 1, 0]
    assert torch.equal(point.predict(torch.tensor(SCORES)), torch.tensor([0, 1, 1, 1, 1, 0]))
    assert point.predict([point.threshold]).tolist() == [0]


def test_a_point_on_other_data_keeps_its_threshold():
    point = sp.evaluate(sp.minimize(sp.fnr, sp.fpr <= 0.34), SCORES, LABELS)
    other = point.judge([0.9, 0.1, 0.9], [0, 1, 1])
    assert other.threshold == point.threshold
    assert other.rates["fpr"] == 1
    assert other.objective == 0.5
    assert not other.feasible


def test_infeasible_is_an_answer_with_a_name():
    point = sp.evaluate(sp.maximize(sp.recall, sp.precision >= 0.9), [0.1, 0.2, 0.3], [1, 0, 0])
    assert not point.feasible
    assert point.outcome.startswith("infeasible: no threshold meets precision >= 90%")
    assert "0.333" in point.outcome
    assert point.violation == pytest.approx(0.9 - 1 / 3)
    assert "infeasible" in str(point)


def test_an_equality_is_met_within_one_sample():
    problem = sp.maximize(sp.precision, sp.flagged == 0.4)
    assert sp.evaluate(problem, SCORES, LABELS).feasible
    assert not sp.evaluate(problem, [0.5] * 6, LABELS).feasible


def test_an_area_has_one_threshold_a_point():
    problem = sp.maximize(sp.precision, over=sp.recall.between(0.5, 1.0, points=3))
    point = sp.evaluate(problem, SCORES, LABELS)
    assert len(point.threshold) == 3
    assert point.predict(SCORES).shape == (6, 3)
    # Two positives rank first; the third comes after one negative: precision 1 up to recall 2/3, then 3/4.
    assert point.objective == pytest.approx((1 * (2 / 3 - 0.5) + 0.75 / 3) / 0.5)


@pytest.mark.parametrize(
    "text",
    [
        "minimize fnr where fpr <= 34%",
        "maximize f1",
        "maximize recall where precision >= 99%",
        "maximize precision over recall in [50%, 100%] with 3 points",
    ],
)
def test_json_round_trip(text, tmp_path):
    point = sp.evaluate(text, SCORES, LABELS)
    path = tmp_path / "new" / "point.json"
    point.save(path)
    assert sp.OperatingPoint.load(path) == point
    assert [p.name for p in path.parent.iterdir()] == ["point.json"]


def test_a_certified_point_survives_the_round_trip(tmp_path):
    scores, labels = np.linspace(0, 1, 400), np.arange(400) % 2
    point = sp.calibrate("minimize fnr where fpr <= 5%", scores, labels, confidence=0.9)
    point.save(tmp_path / "point.json")
    assert sp.OperatingPoint.load(tmp_path / "point.json") == point
    assert point.certificate is not None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("format"), "'format' is missing"),
        (lambda d: d.update(format=2), "upgrade"),
        (lambda d: d.pop("rates"), "damaged"),
        (lambda d: d.update(threshold="high"), "damaged"),
        (lambda d: d.update(threshold=[1.0, None]), "damaged"),
        (lambda d: d.update(objective=True), "damaged"),
        (lambda d: d.update(certificate={"who": 1}), "damaged"),
    ],
)
def test_damaged_files_are_refused(change, says, tmp_path):
    data = sp.evaluate("maximize f1", SCORES, LABELS).to_dict()
    change(data)
    (tmp_path / "point.json").write_text(json.dumps(data))
    with pytest.raises(BadFile, match=says):
        sp.OperatingPoint.load(tmp_path / "point.json")


def test_missing_and_unreadable_files_are_refused(tmp_path):
    with pytest.raises(BadFile, match="no operating point"):
        sp.OperatingPoint.load(tmp_path / "nothing.json")
    (tmp_path / "text.json").write_text("not json")
    with pytest.raises(BadFile, match="is not JSON"):
        sp.OperatingPoint.load(tmp_path / "text.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(BadFile, match="not an operating point"):
        sp.OperatingPoint.load(tmp_path / "list.json")


CERTIFICATE = Certificate("fpr <= 30%", 0.9, 100)


ESTIMATE = Estimate("recall", 0.75, 0.51234567, 0.9, 0.95, 40, "bootstrap")


BOUNDED = sp.minimize(sp.fnr, sp.fpr <= 0.3)


POINT = OperatingPoint(BOUNDED, 0.5, 0.25, {"fnr": 0.25, "fpr": 0.1}, True, 0.0, CERTIFICATE, (ESTIMATE, ESTIMATE))


def later(n=120, seed=0):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, n)
    return draw.normal(size=n) + labels, labels, np.where(draw.random(n) < 0.4, "a", "b")


def test_promises_in_words():
    method = "order statistic of the calibration scores"
    assert str(CERTIFICATE) == f"fpr <= 30% with confidence 90%, from 100 samples ({method})"
    assert str(ESTIMATE) == (
        "recall 0.75, between 0.5123 and 0.9 with confidence 95%: an estimate (bootstrap), not a certificate"
    )


def test_everything_written_is_read_again(tmp_path):
    data = POINT.to_dict()
    assert list(data) == [
        "format", "ask", "threshold", "objective", "rates", "feasible", "violation", "certificate", "estimates",
    ]  # fmt: skip
    assert data["format"] == FORMAT == 1
    assert data["estimates"][1]["low"] == 0.51234567
    assert OperatingPoint.from_dict(json.loads(json.dumps(data))) == POINT
    deep = tmp_path / "one" / "two" / "three" / "point.json"
    POINT.save(str(deep))
    POINT.save(deep)
    assert OperatingPoint.load(str(deep)) == POINT
    assert [path.name for path in deep.parent.iterdir()] == ["point.json"]
    older = {key: value for key, value in data.items() if key != "estimates"}
    bare = OperatingPoint.from_dict({**older, "certificate": None})
    assert (bare.certificate, bare.estimates) == (None, ())


def test_deep_nests_and_folders_are_no_points(tmp_path):
    (tmp_path / "nest.json").write_text("[" * 100_000)
    with pytest.raises(BadFile, match=r"nest\.json is not JSON"):
        OperatingPoint.load(tmp_path / "nest.json")
    with pytest.raises(BadFile, match="no operating point at"):
        OperatingPoint.load(tmp_path)
    for odd in ([], "format", None, {"ask": "maximize f1"}):
        with pytest.raises(BadFile, match="the key 'format' is missing"):
            OperatingPoint.from_dict(odd)


def test_decisions_have_the_kind_of_the_scores_and_are_strict():
    scores = [0.4, 0.5, np.nextafter(0.5, 1)]
    assert isinstance(POINT.predict(scores), np.ndarray)
    assert POINT.predict(scores).dtype == np.int64
    assert POINT.predict(scores).tolist() == [0, 0, 1]
    tensor = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    assert isinstance(POINT.predict(tensor), torch.Tensor)
    assert POINT.predict(tensor).tolist() == [0, 0, 1]
    # A threshold that lies between two numbers of half precision is not rounded to either.
    between = OperatingPoint(BOUNDED, 1.0001, 0.0, {}, True, 0.0)
    assert between.predict(torch.tensor([1.0, 1.001], dtype=torch.float16)).tolist() == [0, 1]
    three = OperatingPoint(sp.maximize(sp.recall, over=sp.fpr.between(0, 1, 3)), (0.1, 0.2, 0.3), 0.0, {}, True, 0.0)
    assert three.predict([0.25, 0.05]).tolist() == [[1, 1, 0], [0, 0, 0]]


def test_thresholds_of_groups_are_as_strict_in_full_precision():
    point = OperatingPoint(BOUNDED, {"a": 0.1, "b": 0.7}, 0.0, {}, True, 0.0)
    scores = [0.1, np.nextafter(0.1, 1), 0.7, np.nextafter(0.7, 1)]
    assert point.predict(scores, ["a", "a", "b", "b"]).tolist() == [0, 1, 0, 1]
    assert point.predict(torch.tensor(scores, dtype=torch.float64), ["a", "a", "b", "b"]).tolist() == [0, 1, 0, 1]
    judged = point.judge(scores, [1, 1, 1, 0], groups=["a", "a", "b", "b"])
    assert (judged.rates["recall"], judged.rates["fpr"]) == (pytest.approx(1 / 3), 1.0)


def test_groups_without_a_column_are_called_groups():
    point = OperatingPoint(BOUNDED, {"a": 0.1, "b": 0.7}, 0.0, {}, True, 0.0)
    with pytest.raises(BadGroups) as refusal:
        point.predict([0.5], ["c"])
    assert str(refusal.value) == "no threshold for group 'c'; known are a, b"
    with pytest.raises(BadGroups) as refusal:
        point.predict([0.5])
    assert str(refusal.value) == "this point has one threshold a group; pass groups="


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, True, False, float("nan")])
def test_levels_that_are_none(level):
    with pytest.raises(BadSetting) as refusal:
        POINT.check([0.1, 0.9], [0, 1], level=level)
    assert str(refusal.value) == f"level must lie between 0 and 1, such as 0.05, got {level!r}"


def test_a_level_is_handed_on_and_is_five_percent_otherwise():
    scores, labels, _ = later()
    assert POINT.check(scores, labels).level == 0.05
    assert POINT.check(scores, labels, level=1e-9).level == 1e-9
    area = OperatingPoint(sp.maximize(sp.recall, over=sp.fpr.between(0, 1, 2)), (0.1, 0.2), 0.0, {}, True, 0.0)
    assert area.check(scores, labels, level=0.2) == Check((), 0.2)


def of_group(name, threshold, side):
    """How many of a group and a class pass, and how many there are."""
    scores, labels, groups = later()
    mine = (groups == name) & (labels == side) if name else labels == side
    return int((scores[mine] > threshold).sum()), int(mine.sum())


def test_each_group_against_a_bound_of_its_own():
    scores, labels, groups = later()
    point = OperatingPoint(BOUNDED, {"a": 0.2, "b": 0.9}, 0.0, {}, True, 0.0)
    rows = point.check(scores, labels, groups=groups).bounds
    assert [row.group for row in rows] == ["a", "b"]
    for row, threshold in zip(rows, (0.2, 0.9)):
        part, whole = of_group(row.group, threshold, 0)
        assert row.samples == (whole,)
        assert row.rate == pytest.approx(part / whole)
        assert row.p_value == pytest.approx(binomtest(part, whole, 0.3, alternative="greater").pvalue)


def test_beside_a_gap_the_groups_are_taken_together():
    scores, labels, groups = later()
    fair = sp.minimize(sp.fnr, sp.fpr <= 0.3, sp.recall.gap("side") <= 0.5)
    point = OperatingPoint(fair, {"a": 0.2, "b": 0.9}, 0.0, {}, True, 0.0)
    together, gap = point.check(scores, labels, groups=groups).bounds
    passed = [of_group(*each, 0) for each in (("a", 0.2), ("b", 0.9))]
    part, whole = sum(one for one, _ in passed), sum(size for _, size in passed)
    assert (together.group, together.samples) == (None, (whole,))
    assert together.p_value == pytest.approx(binomtest(part, whole, 0.3, alternative="greater").pvalue)
    (hit_a, all_a), (hit_b, all_b) = of_group("a", 0.2, 1), of_group("b", 0.9, 1)
    assert gap.samples == (all_a, all_b)
    assert gap.rate == pytest.approx(abs(hit_a / all_a - hit_b / all_b))


def test_a_group_that_is_not_in_the_batch_is_checked_on_nothing():
    scores, labels, groups = later()
    point = OperatingPoint(BOUNDED, {"a": 0.2, "b": 0.9, "c": 0.0}, 0.0, {}, True, 0.0)
    rows = point.check(scores, labels, groups=groups).bounds
    assert rows[2].samples == (0,)
    assert rows[2].p_value == 1.0


def test_judging_weighs_areas_and_equalities():
    scores, labels, _ = later(40)
    weights = np.linspace(0.0, 3.0, 40)
    area = sp.evaluate("maximize recall over fpr in [0%, 50%] with 4 points", scores, labels)
    judged = area.judge(scores, labels, weights=weights)
    expected = roc_area(torch.tensor(scores), torch.tensor(labels), torch.tensor(weights), high=0.5)
    assert judged.objective == pytest.approx(float(expected))
    assert judged.objective != pytest.approx(area.objective)
    half = OperatingPoint(sp.maximize(sp.recall, sp.flagged == 0.5), 0.5, 0.0, {}, True, 0.0)
    # One of weight 1 passes of a weight of 3.5: 0.21 short of a half, which one sample of weight 1.5 makes up for.
    assert half.judge([1.0, 0.0, 0.0], [1, 0, 0], weights=[1.0, 1.0, 1.5]).feasible
    assert half.judge([1.0, 0.0, 0.0, 0.0], [1, 0, 0, 0], weights=[0.1] * 4).feasible
    assert not half.judge([1.0, *[0.0] * 9], [1, *[0] * 9], weights=[0.1] * 10).feasible
    assert not half.judge([1.0, *[0.0] * 9], [1, *[0] * 9], weights=[1.0] * 10).feasible


@pytest.mark.parametrize(
    ("labels", "weights", "error", "says"),
    [
        ([], None, BadScores, "no scores to judge"),
        ([0, 1], [0.0, 0.0], BadWeights, "all weights are 0"),
        ([1, 1], None, MissingClass, "fpr needs negative samples, but these 2 hold none"),
        ([0, 0], None, MissingClass, "fnr needs positive samples, but these 2 hold none"),
        ([0, 1, 1], [0.0, 1.0, 1.0], MissingClass, "fpr needs negative samples, but these 3 hold none"),
        ([0, 1, 0], [1.0, 0.0, 1.0], MissingClass, "fnr needs positive samples, but these 3 hold none"),
    ],
)
def test_a_class_that_weighs_nothing_is_absent(labels, weights, error, says):
    scores = torch.zeros(len(labels))
    sample = Sample(scores, torch.tensor(labels).float(), None if weights is None else torch.tensor(weights))
    with pytest.raises(error, match=f"^{says}"):
        BOUNDED.refuse_absent_classes(sample)


def test_only_what_is_asked_must_be_there():
    ones, zeros = Sample(torch.zeros(2), torch.ones(2)), Sample(torch.zeros(2), torch.zeros(2))
    sp.maximize(sp.recall).refuse_absent_classes(ones)
    sp.minimize(sp.fpr).refuse_absent_classes(zeros)
    sp.maximize(sp.precision, sp.flagged <= 0.5).refuse_absent_classes(ones)
    sp.maximize(sp.mcc).refuse_absent_classes(zeros)
    for problem, sample, says in [
        (sp.maximize(sp.precision, sp.tnr >= 0.5), ones, "tnr needs negative"),
        (sp.minimize(sp.error, sp.recall.gap("g") <= 0.1), zeros, "recall needs positive"),
        (sp.maximize(sp.precision, over=sp.recall.between(0, 1)), zeros, "recall needs positive"),
    ]:
        with pytest.raises(MissingClass, match=f"^{says}"):
            problem.refuse_absent_classes(sample)


def test_the_nearest_values_of_bounds_that_cannot_be_met():
    alone = sp.evaluate("maximize recall where precision >= 90%", [0.1, 0.2, 0.3], [1, 0, 0])
    assert alone.outcome == "infeasible: no threshold meets precision >= 90% (nearest: 0.333333)"
    both = sp.minimize(sp.fnr, sp.fpr <= 0.1, sp.recall >= 0.9)
    rates = {"fnr": 0.4, "fpr": 0.2, "recall": 0.6}
    assert OperatingPoint(both, 0.0, 0.4, rates, False, 0.3).outcome == (
        "infeasible: no threshold meets fpr <= 10% and recall >= 90% together (nearest: fpr 0.2, recall 0.6)"
    )


def test_several_rates_of_a_group_are_told_apart():
    fair = sp.minimize(sp.error, sp.flagged <= 0.9, sp.recall.gap("g") <= 0.1)
    sample = Sample(torch.tensor([0.1, 0.9]).double(), torch.tensor([0.0, 1.0]).double(), None, torch.tensor([0, 1]), 2)
    point = OperatingPoint.at(fair, PerGroup({"a": 0.5, "b": 0.6}), sample, CERTIFICATE)
    assert [name for name in point.rates if "[" in name] == ["recall[b]"]
    assert point.certificate == CERTIFICATE
    own = OperatingPoint.at(BOUNDED, PerGroup({"a": 0.05, "b": 0.6}), sample)
    assert {name: value for name, value in own.rates.items() if "[" in name} == {"fpr[a]": 1.0}
    assert (own.violation, own.feasible) == (pytest.approx(0.7), False)
    pooled = OperatingPoint.at(BOUNDED, OneThreshold(0.5), sample)
    assert (pooled.threshold, pooled.rates["fpr"]) == (0.5, 0.0)


def test_a_group_without_positives_has_no_recall():
    scores, groups = [0.1, 0.9, 0.3, 0.8, 0.2], ["a", "a", "b", "b", "b"]
    fair = sp.minimize(sp.error, sp.recall.gap("site") <= 0.5)
    point = OperatingPoint(fair, {"a": 0.5, "b": 0.5}, 0.0, {}, True, 0.0)
    judged = point.judge(scores, [0, 1, 0, 0, 0], groups=groups)
    assert {name: value for name, value in judged.rates.items() if "[" in name} == {"recall[a]": 1.0}
    each = OperatingPoint(sp.maximize(sp.recall, sp.precision >= 0.5), {"a": 0.95, "b": 0.5}, 0.0, {}, True, 0.0)
    judged = each.judge(scores, [0, 1, 0, 1, 0], groups=groups)
    # Nothing of group a is flagged, so that it has no precision.
    assert {name: value for name, value in judged.rates.items() if "[" in name} == {"precision[b]": 1.0}


@pytest.mark.parametrize("asked", ["maximize f_score(1)", "minimize fnr where fpr <= 5%"])
def test_a_certificate_of_something_else_is_not_read(asked):
    data = {"statement": "fpr <= 1%", "confidence": 0.95, "samples": 300, "method": "a test"}
    assert read_certificate(data, sp.ask("minimize fnr where fpr <= 1%")).statement == "fpr <= 1%"
    with pytest.raises(TypeError, match="which is not what was asked"):
        read_certificate(data, sp.ask(asked))
