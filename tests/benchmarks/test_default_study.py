"""The studies of the default for linear models: what is judged is what `sp.fit` trains."""

from __future__ import annotations

import json

import pytest
import torch
from benchmarks.common import harness
from benchmarks.common.data import Parts
from benchmarks.studies.default_study.study import (
    CLASS_WEIGHTS,
    SCREENING_SEEDS,
    SEEDS,
    Fitted,
    best_weight,
    judge,
    run_split,
    training_rows,
)
from benchmarks.studies.default_study.study import (
    rows_of as study_rows,
)
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, ONCE, OURS, RIVALS, TUNED, sides, summary
from benchmarks.studies.free_asks import study as free_asks

import setpoint as sp
from setpoint.train.class_weights import class_weights
from setpoint.train.linear import cross_entropy
from setpoint.train.recipes import KAPPA


def test_the_splits_that_confirm_are_not_those_that_were_tried():
    assert not set(SEEDS) & set(SCREENING_SEEDS)


@pytest.fixture
def journal(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return lambda: harness.Journal("study")


@pytest.mark.parametrize(
    ("mean", "least", "side"), [(0.03, 0.0, 1), (-0.03, 0.0, -1), (0.019, 0.0, 0), (-0.03, 0.05, 0), (0.0, 0.0, 0)]
)
def test_better_and_worse_are_by_two_standard_errors(mean, least, side):
    assert sides({"mean": mean, "standard_error": 0.01}, "standard_error", least) == side


def rows_of(ask, figures):
    """Rows of a study in which every method has the given figure on test rows."""
    methods = {name: {"test": value, "at threshold": value, "bounds hold": 1.0, "seconds": 1.0}
               for name, value in figures.items()}  # fmt: skip
    return [{"set": "s", "ask": ask, "seed": seed, "methods": methods} for seed in range(3)]


def test_a_weight_is_chosen_in_the_direction_of_the_ask_and_ties_go_to_the_nearest_to_one():
    tried = {1.0: {"held out": 0.4}, 4.0: {"held out": 0.3}, 0.5: {"held out": 0.3}, 8.0: {"held out": 0.5}}
    assert best_weight(sp.ask("minimize fnr where fpr <= 1%"), tried) == 0.5
    assert best_weight(sp.ask("maximize precision where recall >= 95%"), tried) == 8.0


def test_a_gain_is_positive_when_ours_is_better_whatever_the_direction():
    figures = {**dict.fromkeys(RIVALS, 0.45), TUNED: 0.42, TUNED + AGAIN: 0.41, ONCE: 0.47, DEFAULT: 0.5}
    for ask, better in (("minimize fnr where fpr <= 1%", -1), ("maximize precision where recall >= 95%", 1)):
        found = summary(rows_of(ask, figures), 0.2, 0.5)
        gains = found["cells"][0]["gain, test"]
        assert gains[DEFAULT][TUNED]["mean"] == pytest.approx(better * 0.08)
        assert gains[DEFAULT][TUNED + AGAIN]["mean"] == pytest.approx(better * 0.09)
        assert gains[ONCE][BASELINE]["mean"] == pytest.approx(better * 0.02)
        counted = found["counts"][f"{DEFAULT} | {TUNED} | test | standard_error"]
        assert counted == {"cells": 1, "better": int(better > 0), "worse": int(better < 0),
                           "worse by half a point as well": int(better < 0)}  # fmt: skip


def world(seed: int = 0) -> Parts:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.arange(1200) % 3 == 0).double()
    x = torch.randn(1200, 3, generator=draw, dtype=torch.float64) + labels.unsqueeze(-1)
    return Parts(*((x[rows], labels[rows]) for rows in torch.arange(1200).split(300)))


def test_the_default_that_is_judged_is_the_one_that_fit_trains():
    parts, problem = world(), sp.ask("minimize fnr where fpr <= 5%")
    for fitted, refit in ((Fitted(parts.train), False), (Fitted(parts.train, parts.held_out), None)):
        theta = fitted.default(problem)[0]
        model = torch.nn.Linear(3, 1).double()
        sp.fit(model, problem, [parts.train], [parts.held_out], calibration=[parts.calibration], refit=refit)
        with torch.no_grad():
            torch.testing.assert_close(
                fitted.scaling.with_ones(parts.test[0]) @ theta, model(parts.test[0]).squeeze(-1), rtol=1e-6, atol=1e-6
            )


def test_the_weights_of_the_grid_are_trained_to_convergence():
    parts = world()
    fitted = Fitted(parts.train)
    for weight in (0.25, 1024.0):
        theta, _ = fitted.weighted(weight)
        alone = cross_entropy(fitted.rows, class_weights(fitted.rows, weight))
        torch.testing.assert_close(theta, alone, rtol=1e-4, atol=1e-4)


def test_a_threshold_is_set_on_calibration_and_judged_on_test_rows():
    parts, problem = world(), sp.ask("minimize fnr where fpr <= 5%")
    _, scaling = training_rows(parts.train)
    theta = torch.tensor([1.0, 0.5, 0.2, 0.0], dtype=torch.float64)
    found = judge(problem, scaling, theta, parts)
    calibration, test = (scaling.with_ones(part[0]) @ theta for part in (parts.calibration, parts.test))
    negatives = calibration[parts.calibration[1] == 0].sort(descending=True).values
    allowed = int(0.05 * len(negatives))
    between = calibration[(calibration > negatives[allowed]) & (calibration <= negatives[allowed - 1])].min()
    positives = test[parts.test[1] == 1]
    # Any threshold just below the lowest score that may pass; test scores in between are few.
    low, high = (float((positives <= cut).double().mean()) for cut in (negatives[allowed], between))
    assert low <= found["at threshold"] <= high
    assert found["test"] == sp.evaluate(problem, test, parts.test[1]).objective
    passed = [float((test[parts.test[1] == 0] > cut).double().mean()) for cut in (negatives[allowed], between)]
    assert found["bounds hold"] in {float(rate <= 0.05) for rate in passed}


def test_a_study_that_was_stopped_goes_on(journal):
    asks = ("minimize fnr where fpr <= 5%",)
    run_split(journal(), "world", 0, world, asks)
    run_split(journal(), "world", 0, lambda: pytest.fail("split again"), asks)
    (line,) = journal().path.read_text().splitlines()
    methods = json.loads(line)["methods"]
    assert set(methods) == {*RIVALS, *OURS}
    assert methods[TUNED]["weight"] in CLASS_WEIGHTS


def test_without_a_bound_the_anchor_of_before_stands_beside_the_default(journal, monkeypatch):
    ask, strengths, plain = "maximize f_score(1)", [], Fitted.default

    def watched(fitted, problem, kappa=KAPPA):
        strengths.append(kappa)
        return plain(fitted, problem, kappa)

    monkeypatch.setattr(Fitted, "default", watched)
    for seed in range(2):
        run_split(journal(), "world", seed, lambda seed=seed: world(seed), (ask,), free_asks.before)
    assert strengths == [KAPPA, KAPPA, KAPPA / 16] * 2
    rows = study_rows(journal(), ("world",), range(2), (ask,))
    summed = summary(rows, 0.2, 0.5, (DEFAULT, free_asks.BEFORE))
    assert set(summed["cells"][0]["gain, test"]) == {DEFAULT, free_asks.BEFORE}
