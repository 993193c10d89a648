"""The study of tables: the same rows for everyone, judged the same way, and counted right."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
import torch
from benchmarks.studies.promises_tables.study import population, true_rates
from benchmarks.studies.tables import fresh, page, page_fresh, stack_weights, verdict
from benchmarks.studies.tables.rivals import best_of, score_of
from benchmarks.studies.tables.rows import ASKS, Table, judge
from benchmarks.studies.tables.study import SCREENING_SEEDS, SEEDS
from benchmarks.studies.tables.tables import at_most, labelled
from torch.nn import functional as F

import setpoint as sp
from setpoint.data.rows import Rows
from setpoint.run.settings import PARTS, Settings
from setpoint.run.table import fit_table

AT_5, PRECISION = ASKS[2], ASKS[3]


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(0)
    x = draw.normal(size=400)
    y = (draw.random(400) < 1 / (1 + np.exp(-2 * x))).astype(int)
    words = np.array(["a", "b"])[draw.integers(0, 2, 400)]
    return Table("made", pl.DataFrame({"x": x, "word": words, "y": y}), 3)


def test_the_splits_that_confirm_were_not_looked_at():
    assert not set(SEEDS) & set(SCREENING_SEEDS)


def test_rivals_have_the_rows_of_a_run(table):
    run = fit_table(table.frame, "y", sp.ask(AT_5), Settings(seed=3))
    for part in PARTS:
        assert np.array_equal(run.chosen.sample(part).labels.numpy(), table.labels(part))
    assert sorted(np.concatenate(list(table.rows.values()))) == list(range(400))


def test_scores_are_judged_at_the_threshold_of_calibration_rows(table):
    scores = {part: table.x["c0"].to_numpy()[table.rows[part]] for part in PARTS[1:]}
    found = judge(AT_5, table, scores)
    cut = sp.calibrate(AT_5, scores["calibration"], table.labels("calibration")).threshold
    positives = scores["test"][table.labels("test") == 1]
    assert found["at threshold"] == pytest.approx((positives <= cut).mean())
    negatives = np.sort(scores["test"][table.labels("test") == 0])
    best = (positives <= negatives[-1 - int(0.05 * len(negatives))]).mean()
    assert found["test"] == pytest.approx(best)


def test_an_ask_is_left_out_where_the_test_rows_cannot_show_it(table):
    # 80 test rows, about 40 of each class.
    assert [table.has(ask) for ask in ASKS] == [False, False, True, True, True]


def test_a_cut_table_keeps_its_mix_or_all_its_positives():
    frame = pl.DataFrame({"x": np.arange(1000), "kind": np.where(np.arange(1000) % 10 == 0, "yes", "no")})
    frame = labelled(frame, "kind", "yes")
    assert at_most(frame, 100)["y"].sum() == 10
    assert at_most(frame, 200, all_positives=True)["y"].sum() == 100
    assert at_most(frame, 200, all_positives=True).height == 200
    assert at_most(frame, 1000) is frame


@pytest.mark.parametrize(
    ("ask", "decided", "score"),
    [
        (AT_5, [0] * 20 + [1, 0], 0.5),
        (AT_5, [1] + [0] * 19 + [1, 1], 1.0),
        (AT_5, [1, 1] + [0] * 18 + [1, 1], -1.1),
        (PRECISION, [1, 1] + [0] * 18 + [1, 1], 0.5),
        (PRECISION, [0] * 20 + [1, 0], -1.5),
    ],
)
def test_scikit_learn_is_told_the_ask(ask, decided, score):
    y = np.array([0] * 20 + [1, 1])
    assert score_of(ask)(y, np.array(decided)) == pytest.approx(score)


def test_a_weight_is_chosen_in_the_direction_of_the_ask(table):
    tried = [{ask: {"held out": value, "test": value} for ask in table.asks} for value in (0.4, 0.3, 0.6, 0.3)]
    tried[3] = {ask: {"held out": 0.3, "test": 9.0} for ask in table.asks}
    best = best_of(table, tried)
    assert (best[AT_5]["test"], best[PRECISION]["test"]) == (0.3, 0.6)


def rows(figures):
    """Rows of three splits in which a method has a figure per split."""
    return [
        {"method": method, "table": "t", "seed": seed, "chosen": {AT_5: ["trees"]},
         "figures": {AT_5: {"test": value, "at threshold": value}}}
        for method, values in figures.items() for seed, value in enumerate(values)
    ]  # fmt: skip


def test_gains_are_paired_and_a_smaller_error_is_better():
    found = verdict.cells(rows({"auto": [0.3, 0.4, 0.5], "LightGBM tuned": [0.31, 0.41, 0.52], "cross-entropy": [0.2]}))
    gains = found[0]["gain"]["test"]
    assert gains["LightGBM tuned"]["mean"] == pytest.approx(0.04 / 3)
    assert gains["cross-entropy"] == pytest.approx({"splits": 1, "mean": -0.1, "standard_error": np.nan,
                                                    "corrected_standard_error": np.nan}, nan_ok=True)  # fmt: skip
    counts = verdict.counts(found)
    assert counts["LightGBM tuned | test | standard_error"]["better"] == 1
    assert counts["LightGBM tuned | test | corrected_standard_error"]["better"] == 1
    assert counts["LightGBM tuned | at threshold | standard_error"]["worse"] == 0
    # A single split has no standard error.
    assert counts["cross-entropy | test | standard_error"]["cells"] == 0


def test_the_page_counts_a_lost_cell_as_a_broken_claim(monkeypatch):
    monkeypatch.setattr(page_fresh, "figures_of", dict)
    plain = [0.5, 0.6, 0.7]
    won = {"auto": [0.3, 0.4, 0.5], "LightGBM tuned": [0.31, 0.41, 0.52], "cross-entropy": plain}
    lost = {**won, "LightGBM tuned": [0.2, 0.31, 0.39]}
    sizes = {"t": {"rows": 3, "columns": 2, "positives": 0.5}}
    for figures, met in ((won, True), (lost, False)):
        told = page.claims(verdict.summary(rows(figures), sizes))
        assert [claim.met for claim in told if "fits" not in claim.says] == [met, met, True]
        assert "| better / worse (corrected), best cut |" in page.section(verdict.summary(rows(figures), sizes))


FPR, PRECISION = "minimize fnr where fpr <= 5%", "maximize precision where recall >= 95%"
AREA = "minimize fnr over fpr in [0.1%, 10%] with 5 points"


def fresh_rows():
    """Five splits of two tables: ours with a certificate for one ask, never for the other; an area has none."""
    found = []
    for name, extra in (("one", 0.0), ("other", 0.2)):
        for seed in range(5):
            for method, lead in ((verdict.AUTO, 0.0), (fresh.STRONGEST[0], 0.01 * seed + extra)):
                found.append({"method": method, "table": name, "seed": seed, "figures": {
                    FPR: {"test": 0.1, "at threshold": 0.2, "certified": 0.3 + lead, "has a certificate": 1.0,
                          "bounds hold": 1.0, "certified holds": 1.0},
                    PRECISION: {"test": 0.9, "at threshold": 0.8, "certified": 0.8 - lead, "has a certificate": 0.0,
                                "bounds hold": 0.0, "certified holds": 0.0},
                    AREA: {"test": 0.5, "at threshold": 0.5, "certified": 0.5, "has a certificate": 1.0,
                           "bounds hold": 1.0, "certified holds": 1.0},
                }})  # fmt: skip
    return found


def test_the_price_of_a_certificate_and_the_runs_that_have_one(monkeypatch):
    rows = fresh_rows()
    assert fresh.certificates(rows) == {"of runs": 1 / 3, "of thresholds": 1 / 2}
    price = fresh.cost(rows)
    assert (price["runs"], price["by table"]) == (10, pytest.approx({"one": 0.1, "other": 0.1}))
    table = fresh.by_table(rows)[fresh.STRONGEST[0]]
    gains = {"one": [0.02 * seed / 3 for seed in range(5)], "other": [2 * (0.01 * seed + 0.2) / 3 for seed in range(5)]}
    for name, own in gains.items():
        assert table[name]["mean"] == pytest.approx(np.mean(own))
        assert table[name]["standard_error"] == pytest.approx(np.std(own, ddof=1) / 5**0.5)
    monkeypatch.setattr(verdict, "ASKS", (FPR, PRECISION, AREA))
    figures = fresh.summary(rows)
    alone = figures["counts"][f"{fresh.STRONGEST[0]} | {fresh.ALONE} | standard_error"]
    assert (alone["cells"], alone["better"]) == (2, 2)


def test_the_answer_on_tables_turns_with_the_figures(monkeypatch):
    figures = page_fresh.figures_of()
    now = page_fresh.answer()
    assert "points over tuned LightGBM that is trained again on held-out rows" in now
    assert "So the mean gain over LightGBM is shown;" in now
    assert "is bought by broken bounds." in now
    turned = {**figures, "cells": [
        {**cell, "gain": {judged: {rival: {**gain, "mean": -gain["mean"]} for rival, gain in own.items()}
                          for judged, own in cell["gain"].items()}} for cell in figures["cells"]
    ]}  # fmt: skip
    monkeypatch.setattr(page_fresh, "figures_of", lambda: turned)
    turned["held where"] = {name: dict.fromkeys(own, 0.9) for name, own in figures["held where"].items()}
    assert "over all runs the gain is" in page_fresh.answer()
    assert "So the mean gain over LightGBM is not shown;" in page_fresh.answer()


def test_nonnegative_weights_are_the_best_of_all_sets_of_members():
    """Brute force: among all sets of members whose own best weights are positive, the lowest cost."""
    negative = 0
    for seed in range(8):
        draw = torch.Generator().manual_seed(seed)
        first = torch.randn(120, generator=draw).double()
        noise = torch.randn(120, 3, generator=draw).double()
        x = torch.cat([(first.unsqueeze(-1) + 0.7 * noise) * torch.tensor([1.0, 1.0, 3.0]), torch.ones(120, 1)], dim=1)
        labels = (torch.rand(120, generator=draw) < torch.sigmoid(first + noise[:, 0])).double()
        given, best = Rows(x, labels), (np.inf, None)
        for members in itertools.chain.from_iterable(itertools.combinations(range(3), n) for n in range(4)):
            theta = torch.zeros(4).double()
            theta[[*members, 3]] = stack_weights.signed(Rows(x[:, [*members, 3]], labels))
            cost = float((F.softplus(x @ theta) - labels * (x @ theta)).sum() + theta[:-1].square().sum() / 2)
            if bool((theta[:-1] >= 0).all()) and cost < best[0]:
                best = cost, theta
        negative += bool((stack_weights.signed(given)[:-1] < 0).any())
        torch.testing.assert_close(stack_weights.nonnegative_weights(given), best[1], rtol=1e-5, atol=1e-6)
    assert negative > 3


def test_rows_of_an_earlier_state_are_named():
    sizes = {"t": {"rows": 3, "columns": 2, "positives": 0.5}}
    old = rows({"auto": [0.1, 0.2, 0.3], "LightGBM tuned": [0.2, 0.31, 0.42], "cross-entropy": [0.3, 0.4, 0.5]})
    new = [{**row, "state": verdict.STATE} for row in old]
    for own, named in ((old, True), (old[:1] + new[1:], True), (new, False)):
        text = page.section(verdict.summary(own, sizes))
        assert ("Rows of an earlier state of `auto`: t." in text) == named


def test_true_rates_are_those_of_the_population():
    frame, chance = population()
    flagged = (frame["a"] > 12).to_numpy().astype(float)
    draw = np.random.default_rng(0)
    cells = draw.integers(0, frame.height, 400_000)
    y = draw.random(400_000) < chance[cells]
    rates = true_rates(flagged)
    assert rates["fpr"] == pytest.approx(flagged[cells][~y].mean(), abs=0.005)
    assert rates["fnr"] == pytest.approx(1 - flagged[cells][y].mean(), abs=0.01)
