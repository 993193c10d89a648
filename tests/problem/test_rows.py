"""Bounds in rows: `flagged == 100 rows`, among the rows at hand or turned into a share of so many."""

import pytest
import torch
from sklearn.metrics import precision_score

import setpoint as sp
from setpoint.errors import BadAsk, BadProblem

EXACTLY = "maximize precision where flagged == 30 rows"


def rows(size=200, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).double()
    return torch.randn(size, generator=draw, dtype=torch.float64) + labels, labels


@pytest.mark.parametrize("relation", ["==", "<=", ">="])
def test_asks_in_rows_are_read_and_written_back(relation):
    problem = sp.ask(f"maximize precision where flagged {relation} 30 rows and recall >= 10%")
    bound = {"==": sp.flagged.rows == 30, "<=": sp.flagged.rows <= 30, ">=": sp.flagged.rows >= 30}[relation]
    assert problem == sp.maximize(sp.precision, bound, sp.recall >= 0.1)
    assert sp.ask(str(problem)) == problem
    assert f"flagged {relation} 30 rows" in str(problem)
    assert problem != sp.ask(f"maximize precision where flagged {relation} 30% and recall >= 10%")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ("maximize precision where flagged == 30% rows", "number of flagged rows"),
        ("maximize precision where mcc == 3 rows", "number of flagged rows"),
        ("maximize precision where fpr == 3 rows", "fpr is not counted in rows"),
        ("maximize precision where flagged == 2.5 rows", "whole numbers"),
        ("maximize precision where flagged == -1 rows", "whole numbers"),
        ("maximize precision where flagged >= 9 rows and flagged <= 5 rows", "contradict"),
    ],
)
def test_other_asks_in_rows_are_refused_in_a_sentence(ask, says):
    with pytest.raises((BadAsk, BadProblem), match=says):
        sp.ask(ask)


def test_rows_are_no_objective():
    with pytest.raises(BadProblem, match="the objective must be a rate"):
        sp.minimize(sp.flagged.rows)


@pytest.mark.parametrize("k", [0, 1, 30, 200])
def test_exactly_k_rows_are_flagged_the_highest(k):
    scores, labels = rows()
    point = sp.evaluate(f"maximize precision where flagged == {k} rows", scores, labels)
    flagged = torch.as_tensor(point.predict(scores)).bool()
    assert point.feasible
    assert int(flagged.sum()) == k == point.rates["flagged rows"]
    if k:
        assert set(scores[flagged].tolist()) == set(scores.topk(k).values.tolist())
        assert point.objective == pytest.approx(precision_score(labels, flagged))
    assert sp.OperatingPoint.from_dict(point.to_dict()) == point


def test_at_most_k_rows_is_the_best_cut_of_so_few():
    scores, labels = rows()
    point = sp.evaluate("maximize recall where flagged <= 30 rows", scores, labels)
    assert point.rates["flagged rows"] == 30
    best = max((labels[scores.topk(k).indices].sum() / labels.sum()).item() for k in range(1, 31))
    assert point.objective == pytest.approx(best)


def test_of_tied_rows_all_pass_or_none_and_the_nearest_number_is_taken():
    scores, labels = torch.tensor([3.0, 2.0, 2.0, 2.0, 2.0, 1.0]), torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    near = sp.evaluate("maximize precision where flagged == 2 rows", scores, labels)
    assert (near.rates["flagged rows"], near.feasible) == (1.0, True)
    far = sp.evaluate("maximize precision where flagged == 3 rows", scores, labels)
    assert (far.rates["flagged rows"], far.feasible) == (1.0, False)
    assert "no threshold meets flagged == 3 rows" in far.outcome
    many = sp.evaluate("maximize precision where flagged == 9 rows", scores, labels)
    assert (many.rates["flagged rows"], many.feasible) == (6.0, False)


def test_a_weight_is_so_many_rows():
    scores, labels = rows(60)
    weights = torch.randint(1, 4, (60,), generator=torch.Generator().manual_seed(0))
    point = sp.evaluate(EXACTLY, scores, labels, weights=weights.double())
    again = sp.evaluate(EXACTLY, scores.repeat_interleave(weights), labels.repeat_interleave(weights))
    assert point.threshold == again.threshold
    assert point.rates == pytest.approx(again.rates)


def test_a_share_of_so_many_rows_flags_as_many_of_those():
    problem, (scores, labels) = sp.ask(EXACTLY), rows()
    share = problem.among(200)
    assert share == sp.ask("maximize precision where flagged == 15%")
    assert sp.evaluate(share, scores, labels).threshold == sp.evaluate(problem, scores, labels).threshold
    assert sp.ask("minimize fnr where fpr <= 1%").among(10) == sp.ask("minimize fnr where fpr <= 1%")
    with pytest.raises(BadProblem, match="more than the 20 rows"):
        problem.among(20)
    with pytest.raises(BadProblem, match="from 1 up"):
        problem.among(0)


def test_where_the_number_of_rows_is_another_it_is_refused():
    """Training, calibration, certificates, tallies and later data all have other rows than those that were meant."""
    problem, (scores, labels) = sp.ask(EXACTLY), rows()
    model, batches = torch.nn.Linear(1, 1), [(scores.float().unsqueeze(-1), labels.float())]
    point = sp.evaluate(problem, scores, labels)
    for call in (
        lambda: sp.fit(model, problem, batches, batches, calibration=batches),
        lambda: sp.ImplicitThreshold(problem),
        lambda: sp.Lagrangian(problem),
        lambda: sp.calibrate(problem, scores, labels),
        lambda: sp.calibrate(problem, scores, labels, confidence=0.9),
        lambda: point.check(scores, labels),
        lambda: sp.SetpointClassifier(EXACTLY).fit(scores.unsqueeze(-1).numpy(), labels.numpy()),
    ):
        with pytest.raises(BadProblem, match=r"flagged == 30 rows is about the rows at hand.*problem\.among"):
            call()
    solver = sp.ImplicitThreshold(problem.among(200), memory=0).double()
    solver(scores, labels)
    assert int((scores > solver.thresholds).sum()) == 30


def test_a_number_of_rows_is_met_within_the_heaviest_row():
    found = sp.flagged.rows.resolution(torch.zeros(3, 4), 2.5)
    assert found.tolist() == [2.5, 2.5, 2.5]
