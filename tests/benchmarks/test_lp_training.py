"""The study of networks trained through the LP solver: its losses are the programs, and its sums are paired."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from benchmarks.common.small_images import Images, Plan
from benchmarks.studies.lp_training import costs, losses, reduction, rule, study
from benchmarks.studies.paper_programs import study as paper_programs

from setpoint import lp


@pytest.mark.parametrize(
    ("form", "margin", "loss"),
    [("area", 1.0, losses.engine("area", 1.0)), ("area", 1.0, losses.penalty("area", 1.0, 0.001)),
     ("f-score", 0.0, losses.engine("f-score", 0.0))],
)  # fmt: skip
def test_a_loss_through_a_solver_is_that_of_the_closed_form_with_its_gradient(form, margin, loss):
    scores, labels = reduction.batch(30, 0, 0.7)
    value = loss(scores, labels)
    assert float(value.detach()) == pytest.approx(float(losses.closed(form, scores, labels, margin).detach()), abs=1e-6)
    assert loss.cosines == [pytest.approx(1, abs=1e-6)]
    assert loss.outcomes.total() == 1


@pytest.mark.parametrize("form", ["area", "f-score"])
def test_the_penalty_keeps_its_gradient_in_the_directions_of_the_form_and_loses_it_without_any(form):
    margin = 1.0 if form == "area" else 0.0
    scores, labels = reduction.batch(30, 1, 0.7)
    program, exact = losses.program_of(form, scores, labels, margin), losses.closed(form, scores, labels, margin)
    bases = (None, reduction.own_directions(form, scores, labels), torch.zeros(program.variables, 1).double())
    whole, own, none = (losses.cosine(losses.penalty_within(program, basis, 0.01), exact, scores) for basis in bases)
    assert (whole, own) == (pytest.approx(1, abs=1e-3), pytest.approx(1, abs=1e-3))
    assert none < 0.99


def test_the_rule_finds_an_epsilon_whose_prices_are_those_of_the_program():
    scores, labels = reduction.batch(20, 2, 0.6)
    epsilon = rule.by_rule("area", scores, labels, 1.0)
    assert epsilon is not None
    program = losses.program_of("area", scores.detach(), labels, 1.0)
    _, _, bounds = parts = losses.stacked(program)
    prices = losses.descend(*parts, epsilon, 1e-9, 100, line_search=True)[1] / epsilon
    assert float(-bounds @ prices) == pytest.approx(float(lp.solve(program, lp.Highs()).value), rel=1e-6)
    assert rule.by_rule("area", scores, torch.ones(20), 1.0) is None


def test_methods_of_a_seed_start_alike_and_the_solver_trains_as_the_closed_form(monkeypatch):
    labels = torch.arange(2000) % 10
    pixels = torch.randint(0, 200, (2000, 3, 32, 32), generator=torch.Generator().manual_seed(0))
    whole = Images((pixels + 50 * (labels < 5).view(-1, 1, 1, 1)).to(torch.uint8), labels)
    monkeypatch.setattr(paper_programs, "cifar10", lambda data: (whole, whole))
    plan = Plan(epochs=1, width=2, rate=1e-3)
    found = {name: study.trained("AUC", study.AREA[name], 3, plan, 64, "")[1] for name in (study.CLOSED, study.ENGINE)}
    assert found[study.ENGINE]["AUC"] == pytest.approx(found[study.CLOSED]["AUC"], abs=1e-4)
    assert found[study.ENGINE]["solved"] == 1
    assert "solved" not in found[study.CLOSED]


def test_gains_are_paired_by_seed_and_a_seed_without_cross_entropy_does_not_count():
    def row(method, seed, area):
        return {"figure": "AUC", "method": method, "seed": seed, "AUC": area, "images": 100, "seconds": 2.0, "steps": 4}

    rows = [row(method, seed, area + 0.1 * seed) for seed in (0, 1)
            for method, area in ((study.PLAIN, 0.5), (study.CLOSED, 0.6), (study.ENGINE, 0.59))]  # fmt: skip
    told = {line["method"]: line for line in study.summary([*rows, row(study.ENGINE, 2, 0.99)])}
    ours = told[study.ENGINE]
    assert ours["seeds"] == [0, 1]
    assert ours[f"minus {study.PLAIN}"] == {"mean": pytest.approx(9), "standard_error": pytest.approx(0, abs=1e-9),
                                            "corrected_standard_error": pytest.approx(0, abs=1e-9)}  # fmt: skip
    assert ours[f"minus {study.CLOSED}"]["mean"] == pytest.approx(-1)
    assert ours["milliseconds per step"] == 500


def test_costs_go_on_after_the_first_loss_and_leave_out_what_is_done(monkeypatch, tmp_path):
    told = SimpleNamespace(stdout='a warning\n{"step, ms": 1.0}\n')
    monkeypatch.setattr(costs.subprocess, "run", lambda *given, **more: told)
    rows = list(costs.study(True, str(tmp_path), {f"costs | cross-entropy | {costs.SIZES[0]}"}))
    assert [row["loss"] for row in rows] == list(costs.MAKERS)[1 : costs.QUICK]
    monkeypatch.setattr(costs, "python_of", lambda name, cache: tmp_path / "absent")
    whole = list(costs.study(False, str(tmp_path), {f"costs | cross-entropy | {costs.SIZES[0]}"}))
    assert {row["loss"] for row in whole if row["samples"] == costs.SIZES[0]} == set(costs.MAKERS) - {"cross-entropy"}
    assert {row["loss"] for row in whole if "not tried" in row} == {"area, penalty", "area, unrolled"}
