import json

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.errors import BadFile, BadProblem

SCORES = [0.1, 0.4, 0.35, 0.8, 0.7, 0.2]
LABELS = [0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sp.minimize(sp.f_score), "call it first"),
        (lambda: sp.minimize("fnr"), "must be a rate"),
        (lambda: sp.minimize(sp.recall.gap("sex")), "must be a rate"),
        (lambda: sp.minimize(sp.fnr, 0.3), "expected a constraint"),
        (lambda: sp.minimize(sp.fnr, over=sp.fpr), "expects a range"),
        (lambda: sp.minimize(sp.fnr, sp.fpr <= 0.1, over=sp.fpr.between(0, 0.1)), "no further bound"),
        (lambda: sp.minimize(sp.fpr, over=sp.fpr.between(0, 0.1)), "over itself"),
        (lambda: sp.minimize(sp.fnr, sp.fpr <= 0.1, sp.fpr == 0.2), "contradict"),
        (lambda: sp.minimize(sp.error, sp.recall.gap("a") <= 0.1, sp.fpr.gap("b") <= 0.1), "one column"),
    ],
)
def test_bad_problems_are_refused_by_name(make, says):
    with pytest.raises(BadProblem, match=says):
        make()


def test_cost_and_excess_of_an_area_are_means_over_its_points():
    problem = sp.maximize(sp.precision, over=sp.recall.between(0.5, 1.0, points=2))
    counts = torch.tensor([[6.0, 2, 4, 8], [9.0, 9, 1, 1]]).double()
    assert problem.cost(counts).item() == pytest.approx(-(6 / 8 + 9 / 18) / 2)
    assert problem.excesses(counts).tolist() == pytest.approx([0.6 - 0.625, 0.9 - 0.875])


def test_groups_are_pooled_for_global_rates_and_kept_for_gaps():
    problem = sp.minimize(sp.error, sp.recall.gap("sex") <= 0.1, sp.recall >= 0.7)
    counts = torch.tensor([[[9.0, 1, 1, 9], [6.0, 2, 4, 8]]]).double()
    assert problem.group == "sex"
    assert problem.cost(counts).item() == pytest.approx(8 / 40)
    assert problem.excesses(counts).tolist() == pytest.approx([0.2, 0.7 - 0.75])


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
