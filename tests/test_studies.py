"""The page of evidence is what the results say, and the harness neither repeats nor invents rows."""

from __future__ import annotations

import json
import statistics
import threading

import pytest
import torch
from benchmarks import evidence, free_asks, harness, paper_ranges, paper_tabular, plots
from benchmarks.data import Parts, Split, halves_of, load_arrays, paired, split_rows
from benchmarks.default_study import (
    CLASS_WEIGHTS,
    SCREENING_SEEDS,
    SEEDS,
    Fitted,
    best_weight,
    judge,
    run_split,
    training_rows,
)
from benchmarks.default_study import (
    rows_of as study_rows,
)
from benchmarks.pages import paper_ranges as ranges_page
from benchmarks.verdicts import AGAIN, BASELINE, DEFAULT, ONCE, OURS, RIVALS, TUNED, sides, summary

import setpoint as sp
from setpoint.train.linear import class_weights, cross_entropy
from setpoint.train.recipes import KAPPA


def test_the_page_is_up_to_date():
    assert evidence.PAGE.read_text() == evidence.page(), "run: python -m benchmarks.evidence"


def test_every_figure_of_the_page_is_there():
    shown = [line.split("](")[1].rstrip(")") for line in evidence.page().splitlines() if line.startswith("![")]
    assert all((evidence.PAGE.parent / name).is_file() for name in shown)


def test_the_figure_of_ranges_shows_the_gains_of_the_results(tmp_path):
    made = plots.draw(tmp_path)
    assert {path.name for path in made} == {"default_study.svg", "paper_ranges.svg"}
    assert all(path.stat().st_size > 10_000 for path in made)
    rows = json.loads((harness.RESULTS / "paper_ranges.json").read_text())["figures"]["rows"]
    panel = plots.paper_ranges(rows).axes[1]
    (line, _, (bars,)) = next(shown for shown in panel.containers if shown.get_label() == "default")
    gains = [row["minus cross-entropy"] for row in rows if (row["set"], row["method"]) == ("ijcnn1", "default")]
    assert panel.get_title() == "ijcnn1"
    assert line.get_ydata().tolist() == [gain["mean"] for gain in gains]
    reach = [(end[1] - start[1]) / 2 for start, end in bars.get_segments()]
    assert reach == pytest.approx([2 * gain["standard_error"] for gain in gains])


def test_the_small_sweep_over_ranges_has_its_tables_and_its_figure(monkeypatch, tmp_path):
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(400) % 4 == 0).double()
    x = torch.randn(400, 3, generator=draw, dtype=torch.float64) + labels.unsqueeze(-1)
    monkeypatch.setattr(harness, "QUICK_RESULTS", tmp_path)
    monkeypatch.setattr(paper_ranges, "read_table", lambda name, data: (x.numpy(), labels.numpy()))
    monkeypatch.setattr("sys.argv", ["paper_ranges", "--quick"])
    paper_ranges.main()
    assert [path.name for path in plots.draw(tmp_path / "images", quick=True)] == ["paper_ranges.svg"]
    page = evidence.page(quick=True)
    assert "| letter | 0.95 | 2 |" in page
    assert "| letter | 0.95 | default |" in page


def test_the_ranges_are_counted_by_plain_and_by_corrected_errors():
    def row(beta, over_plain, over_weights):
        errors = {"standard_error": 0.4, "corrected_standard_error": 1.0}
        gains = {"minus cross-entropy": over_plain, "minus best of 21 weights": over_weights}
        return {"set": "letter", "beta": beta, "method": "auto", **{k: {"mean": v, **errors} for k, v in gains.items()}}

    told = ranges_page.verdict([row(0.5, 1, 3), row(0.8, 9, 1), row(0.9, 2, -0.9), row(0.99, 0, 0.5)])
    assert "at beta 0.8 (letter); of 4 cells" in told
    assert "in 2 by plain errors (1 by corrected ones), worse in 1 (0)" in told


def test_a_study_that_has_no_rows_yet_has_no_figure(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "QUICK_RESULTS", tmp_path)
    (tmp_path / "paper_ranges.json").write_text(json.dumps({"figures": {"rows": []}}))
    assert plots.draw(tmp_path / "images", quick=True) == []


@pytest.mark.parametrize("study", ["paper_tabular", "paper_ranges"])
def test_what_is_set_beside_the_paper_has_every_method_on_ten_splits(study):
    rows = json.loads((harness.RESULTS / f"{study}.json").read_text())["figures"]["rows"]
    cells = {(row["set"], row.get("beta")) for row in rows}
    done = {(row["set"], row.get("beta"), row["method"]): row["splits"] for row in rows}
    assert done == {(*cell, method): 10 for cell in cells for method in paper_tabular.METHODS}
    assert {name for name, _ in cells} == set(paper_ranges.SETS if study == "paper_ranges" else paper_tabular.SETS)


def test_small_studies_run_two_at_a_time_and_real_ones_one_by_one(monkeypatch):
    meeting = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(evidence, "STUDIES", ("one", "two"))
    monkeypatch.setattr(evidence, "run", lambda study, data, quick: meeting.wait())
    evidence.run_all("data", quick=True)
    meeting = threading.Barrier(2, timeout=0.2)
    with pytest.raises(threading.BrokenBarrierError):
        evidence.run_all("data", quick=False)


def test_a_study_that_fails_is_named_and_no_page_is_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(evidence, "STUDIES", ("no_such_study",))
    monkeypatch.setattr(evidence, "PAGE", tmp_path / "evidence.md")
    monkeypatch.setattr("sys.argv", ["evidence", "--run"])
    with pytest.raises(SystemExit, match=r"benchmarks\.no_such_study failed.*the page was not written"):
        evidence.main()
    assert "no_such_study: " in capsys.readouterr().out
    assert not evidence.PAGE.exists()


def test_the_splits_that_confirm_are_not_those_that_were_tried():
    assert not set(SEEDS) & set(SCREENING_SEEDS)


@pytest.fixture
def journal(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return lambda: harness.Journal("study")


def test_a_written_row_is_not_made_again(journal):
    assert journal().row("a", lambda: {"value": 1.5})["value"] == 1.5
    again = journal()
    assert again.row("a", lambda: pytest.fail("made twice"))["value"] == 1.5
    assert again["a"]["torch"] == torch.__version__


def test_a_line_that_was_cut_off_is_made_again(journal):
    first = journal()
    first.add("a", {"value": 1})
    first.add("b", {"value": 2})
    text = first.path.read_text()
    first.path.write_text(text[: len(text) - 7])
    again = journal()
    assert "a" in again
    assert "b" not in again


def test_a_missing_file_is_named_with_how_to_get_it(tmp_path):
    with pytest.raises(SystemExit, match=r"letter\.npz is missing: pass --data DIR.*UCI Letter"):
        load_arrays("letter", str(tmp_path))


def test_rows_are_split_once_each_and_by_class():
    y = (torch.arange(1000) % 10 == 0).double().numpy()
    parts = split_rows(y, 3, (0.6, 0.2))
    assert sorted(row for part in parts for row in part) == list(range(1000))
    assert [int(y[part].sum()) for part in parts] == [60, 20, 20]
    assert [list(part) for part in split_rows(y, 3, (0.6, 0.2))] == [list(part) for part in parts]


def test_the_corrected_error_is_that_of_nadeau_and_bengio():
    values = [0.1, 0.3, 0.2, 0.6]
    found = paired(values, test_share=0.2, train_share=0.6)
    spread = statistics.stdev(values)
    assert found["standard_error"] == pytest.approx(spread / 2)
    assert found["corrected_standard_error"] == pytest.approx(spread * (1 / 4 + 1 / 3) ** 0.5)


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


def test_validation_rows_are_halved_each_class_apart():
    labels = (torch.arange(100) % 10 == 0).double()
    halves = halves_of(labels)
    assert sorted(torch.cat(halves).tolist()) == list(range(100))
    assert [float(labels[half].sum()) for half in halves] == [5, 5]
    rows = (torch.arange(100).double().unsqueeze(-1), labels)
    parts = Parts.of(Split(rows, rows, rows), most=20)
    assert [len(part[1]) for part in vars(parts).values()] == [100, 20, 20, 100]


def test_the_default_that_is_judged_is_the_one_that_fit_trains():
    parts, problem = world(), sp.ask("minimize fnr where fpr <= 5%")
    for fitted, refit in ((Fitted(parts.train), False), (Fitted(parts.train, parts.held_out), None)):
        theta = fitted.default(problem)[0]
        model = torch.nn.Linear(3, 1).double()
        sp.fit(model, problem, [parts.train], [parts.held_out], calibration=[parts.calibration], refit=refit)
        with torch.no_grad():
            torch.testing.assert_close(
                fitted.scaling.apply(parts.test[0]) @ theta, model(parts.test[0]).squeeze(-1), rtol=1e-6, atol=1e-6
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
    calibration, test = (scaling.apply(part[0]) @ theta for part in (parts.calibration, parts.test))
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
