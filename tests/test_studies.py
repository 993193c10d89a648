"""The page of evidence is what the results say, and the harness neither repeats nor invents rows."""

from __future__ import annotations

import json
import statistics

import pytest
import torch
from benchmarks import evidence, harness
from benchmarks.data import Split, load_arrays, paired, split_rows
from benchmarks.default_study import (
    FIRST_FORM,
    SCREENING_SEEDS,
    SEEDS,
    Judged,
    kappas_of,
    run_split,
    training_rows,
)
from benchmarks.verdicts import chosen, sides, summary

import setpoint as sp
from setpoint.train.linear import anchor_strength
from setpoint.train.recipes import Recipes


def test_the_page_is_up_to_date():
    assert evidence.PAGE.read_text() == evidence.page(), "run: python -m benchmarks.evidence"


def test_every_figure_of_the_page_is_there():
    shown = [line.split("](")[1].rstrip(")") for line in evidence.page().splitlines() if line.startswith("![")]
    assert all((evidence.PAGE.parent / name).is_file() for name in shown)


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
    """Rows of a study in which every method has the given figure on validation and test rows."""
    methods = {name: {"validation": value, "test": value, "at threshold": value, "seconds": 1.0}
               for name, value in figures.items()}  # fmt: skip
    return [{"set": "s", "ask": ask, "seed": seed, "methods": methods} for seed in range(3)]


STRENGTHS = {"matched": 0.4, "anchored 4": 0.3, "anchored 1": 0.3, "anchored 0.25": 0.5, "anchored 0.0625": 0.35}


def test_the_choice_follows_the_direction_of_the_ask_and_ties_go_to_the_earlier():
    (row, *_) = rows_of("minimize fnr where fpr <= 1%", {"cross-entropy": 0.45, **STRENGTHS})
    assert chosen(row, ("cross-entropy", *STRENGTHS)) == "anchored 4"
    (row, *_) = rows_of("maximize precision where recall >= 95%", {"cross-entropy": 0.45, **STRENGTHS})
    assert chosen(row, ("cross-entropy", *STRENGTHS)) == "anchored 0.25"


def test_a_gain_is_positive_when_ours_is_better_whatever_the_direction():
    base = {"cross-entropy": 0.45, "best of 21 weights": 0.42, **STRENGTHS}
    for ask, better in (("minimize fnr where fpr <= 1%", -1), ("maximize precision where recall >= 95%", 1)):
        (cell,) = summary(rows_of(ask, base), 0.2, 0.6)["cells"]
        gain = cell["gain, test"]["default"]["best of 21 weights"]["mean"]
        assert gain == pytest.approx(better * (0.5 - 0.42))


def world(seed: int = 0) -> Split:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.arange(900) % 3 == 0).double()
    x = torch.randn(900, 3, generator=draw, dtype=torch.float64) + labels.unsqueeze(-1)
    return Split(*((x[rows], labels[rows]) for rows in torch.arange(900).split(300)))


def test_the_default_that_is_judged_is_the_one_that_fit_trains():
    parts, problem = world(), sp.ask("minimize fnr where fpr <= 5%")
    rows, scaling = training_rows(parts)
    theta = Recipes(problem, rows).anchored()
    model = torch.nn.Linear(3, 1).double()
    sp.fit(model, problem, [parts.train], [parts.validation])
    with torch.no_grad():
        torch.testing.assert_close(scaling.apply(parts.test[0]) @ theta, model(parts.test[0]).squeeze(-1))


def test_the_first_form_of_the_anchor_grew_with_the_rarity_of_what_the_bound_allows():
    rows, _ = training_rows(world())
    negatives, positives = 200, 100
    for ask, expected in (
        ("minimize fnr where fpr <= 5%", 3 * (1 / (0.05 * negatives) + 1 / positives)),
        ("maximize precision where recall >= 95%", 3 * (1 / (0.05 * positives) + 1 / negatives)),
        ("maximize precision over recall in [95%, 100%] with 5 points", 3 * (1 / (0.025 * positives) + 1 / negatives)),
    ):
        problem = sp.ask(ask)
        (kappa,) = kappas_of(FIRST_FORM, problem, rows).values()
        assert kappa * anchor_strength(problem, rows) == pytest.approx(0.25 * expected)


def test_a_threshold_is_set_on_validation_and_judged_on_test_rows():
    parts, problem = world(), sp.ask("minimize fnr where fpr <= 5%")
    _, scaling = training_rows(parts)
    theta = torch.tensor([1.0, 0.5, 0.2, 0.0], dtype=torch.float64)
    found = Judged(problem, scaling, parts)(theta)
    validation, test = (scaling.apply(part[0]) @ theta for part in (parts.validation, parts.test))
    negatives = validation[parts.validation[1] == 0].sort(descending=True).values
    allowed = int(0.05 * len(negatives))
    between = validation[(validation > negatives[allowed]) & (validation <= negatives[allowed - 1])].min()
    positives = test[parts.test[1] == 1]
    # Any threshold just below the lowest score that may pass; test scores in between are few.
    low, high = (float((positives <= cut).double().mean()) for cut in (negatives[allowed], between))
    assert low <= found["at threshold"] <= high
    assert found["test"] == sp.evaluate(problem, test, parts.test[1]).objective


def test_a_study_that_was_stopped_goes_on(journal, monkeypatch):
    monkeypatch.setattr("benchmarks.default_study.ASKS", ("minimize fnr where fpr <= 5%",))
    run_split(journal(), "world", 0, world)
    run_split(journal(), "world", 0, lambda: pytest.fail("split again"))
    (line,) = journal().path.read_text().splitlines()
    methods = json.loads(line)["methods"]
    assert set(methods) == {"cross-entropy", "best of 21 weights", "matched", "anchored 0.25"}
