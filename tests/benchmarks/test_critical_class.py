"""The study of a rare class: what could be wrong without showing."""

from __future__ import annotations

import polars as pl
import pytest
import torch
from benchmarks.common import words as gains
from benchmarks.common.harness import RESULTS
from benchmarks.common.small_images import Images
from benchmarks.studies.critical_class import ladder, nine_losses, page, page_ladder, page_limits
from benchmarks.studies.critical_class import study as critical_class
from benchmarks.studies.critical_class.published import COLUMNS
from benchmarks.studies.critical_class.verdict import ALONE, CONSTRAINED, STARTS, pack, table_row, tuned_rows


def test_images_to_choose_on_are_not_trained_on():
    pair = Images(torch.arange(1200).view(-1, 1), (torch.arange(1200) % 2).float())
    drawn, validation = critical_class.draw(pair, seed=2, ratio=100)
    assert not set(drawn.x.flatten().tolist()) & set(validation.x.flatten().tolist())
    assert drawn.labels.long().bincount().tolist() == [500, 5]


def critical_run(way, setting, seed, validation, figure):
    figures = dict.fromkeys(COLUMNS, figure)
    told = {"ratio": 100, "loss": "BCE", "way": way, "setting": setting, "seed": seed, "validation AUC": validation}
    return {**told, **figures, "images": 5000, "seconds": 1.0}


def test_settings_and_starts_are_chosen_on_validation_rows_and_paired_by_seed():
    rows = []
    for seed in (0, 1):
        rows.append(critical_run(ALONE, "", seed, 80, 70 + seed))
        rows.append(critical_run(CONSTRAINED, "a", seed, 81 + seed, 60))
        rows.append(critical_run(CONSTRAINED, "b", seed, 82 - seed, 10))
        rows.append(critical_run(STARTS, "start 1", seed, 79 + 2 * seed, 50))
    alone, constrained, starts = tuned_rows(rows)
    assert alone["AUC"]["minus alone"]["mean"] == 0
    assert constrained["settings"] == ["b", "a"]
    assert constrained["AUC"]["minus alone"]["mean"] == pytest.approx(((10 - 70) + (60 - 71)) / 2)
    assert starts["settings"] == ["", "start 1"]
    assert starts["choices"] == 2
    assert starts["deviation over starts"] == pytest.approx(((20**2 / 2 + 21**2 / 2) / 2) ** 0.5)
    assert constrained["AUC"]["published minus alone"] == pytest.approx(93.1 - 91.2)


def test_ratios_are_to_cross_entropy_of_the_same_run_and_of_the_paper():
    plain, other = ({"AUC": {"mean": mean, "published": told}} for mean, told in ((80.0, 90.0), (60.0, 99.0)))
    unpublished = {"AUC": {"mean": 84.0}}
    shown = gains.ratios(["loss"], [(["one"], other, plain), (["two"], unpublished, plain)], ("AUC",)).splitlines()
    assert shown[3] == "| loss | AUC | AUC, published |"
    assert shown[5:] == ["| one | 0.750 | 1.100 |", "| two | 1.050 |  |"]


def test_another_pair_of_classes_has_its_second_class_as_the_rare_one(monkeypatch):
    whole = Images(torch.arange(8).view(-1, 1), torch.tensor([0, 1, 2, 3, 3, 2, 1, 0]))
    monkeypatch.setattr(critical_class, "cifar10", lambda folder: (whole, whole))
    drawn, _ = critical_class.load_pair("nowhere", (3, 1))
    assert drawn.x.flatten().tolist() == [1, 3, 4, 6]
    assert drawn.labels.tolist() == [1, 0, 0, 1]


class Rows(dict):
    """Finished rows, as a journal has them."""

    @property
    def rows(self):
        return self


def test_labels_are_read_from_the_data_in_the_order_of_the_images(monkeypatch):
    numbers = torch.tensor([8, 3, 0, 8, 0, 0])
    test = Images(torch.arange(6).view(-1, 1), numbers)
    monkeypatch.setattr(critical_class, "cifar10", lambda folder: (test, test))
    monkeypatch.setattr(critical_class, "load_arrays", lambda name, folder: {"y_test": numbers.numpy()})
    assert critical_class.labels_of_test("nowhere").tolist() == critical_class.load_pair("nowhere")[1].labels.tolist()
    assert critical_class.labels_of_test("nowhere", (3, 8)).tolist() == [1, 0, 1]


def test_no_rows_hold_labels_of_the_data():
    files = sorted((RESULTS / "rows").glob("*.parquet"))
    assert files
    assert not [path.name for path in files if "labels" in pl.read_parquet_schema(path)]


def test_a_rung_stands_beside_the_same_runs_of_the_first_and_the_logits_are_averaged(monkeypatch):
    labels = torch.tensor([1.0, 1, 0, 0])
    monkeypatch.setattr(ladder, "labels_of_test", lambda folder, classes=None: labels)
    logits = {0: torch.tensor([3.0, -1, 0, -1.5]), 1: torch.tensor([-1.0, 3, 0, -1.5])}
    rows = Rows()
    for name, seeds, area in ((ladder.FIRST, (0, 1), 50.0), ("ResNet-10", (1,), 60.0)):
        for seed in seeds:
            kept = {"logits": pack(logits[seed]), "seconds": 1.0, "validation AUC": area}
            rows[f"{name} | {seed} | 0"] = {"rung": name, "seed": seed, "AUC": area + seed, **kept}
    rungs = {ladder.FIRST: ladder.Rung(), "ResNet-10": ladder.Rung(), "60 epochs": ladder.Rung()}
    first, other = ladder.summary(rows, rungs, "nowhere")
    assert (first["AUC"], first["together"]["AUC"]) == (50.5, 100.0)
    assert (other["AUC"], other["first rung"], other["runs"]) == (61.0, 51.0, 1)
    assert ladder.by_number(rows, labels) == {"1": 75.0, "2": 100.0}


def test_a_column_for_draws_is_that_of_the_table():
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(200) % 4 == 0).float()
    scores = torch.randn(200, generator=draw) + labels
    positives, negatives = (torch.nonzero(labels == side).squeeze(1).numpy() for side in (1, 0))
    own = table_row(scores, labels)
    for column in COLUMNS:
        assert nine_losses.one_column(scores.numpy(), positives, negatives, column) == pytest.approx(
            own[column], abs=1e-3
        )


def test_the_charge_is_chosen_on_validation_rows_of_one_seed_and_the_gain_is_of_mean_logits():
    logits = torch.tensor([3.0, -1, 0, -1.5])
    table = nine_losses.Table.__new__(nine_losses.Table)
    table.journal, table.labels = Rows(), torch.tensor([1.0, 1, 0, 0])
    best = critical_class.CHARGES[2]

    def add(charge, seed, validation, own):
        row = {**dict.fromkeys(COLUMNS, 50.0), "validation AUC": validation, "AUC": float(validation)}
        table.journal[table.key(100, "BCE", charge, seed)] = {**row, "logits": pack(own)}

    for charge in critical_class.CHARGES:
        assert table.chosen("BCE") is None
        add(charge, nine_losses.CHOOSING, 80 + (charge == best), logits)
    assert table.chosen("BCE") == best
    for seed in (0, 1):
        add(None, seed, 70, logits)
        add(best, seed, 90, logits if seed == 0 else torch.tensor([-1.0, 3, 0, -1.5]))
    cell = table.cell(100, "BCE")
    assert (cell["models"], cell["setting"]) == (2, str(best))
    assert (cell["alone"]["together"]["AUC"], cell["constrained"]["together"]["AUC"]) == (75.0, 100.0)
    assert cell["gain"]["AUC"]["together"]["mean"] == 25.0
    assert cell["gain"]["AUC"]["published"] == pytest.approx(93.1 - 91.2)


def main_row(ratio, loss, alone, published, gain, told):
    both = {"together": {**dict.fromkeys(COLUMNS, 50.0), "AUC": alone},
            "published": {**dict.fromkeys(COLUMNS, 50.0), "AUC": published}}  # fmt: skip
    own = {"together": {"mean": gain, "standard_error": 0.1}, "published": told}
    return {"ratio": ratio, "loss": loss, "models": 10, "setting": "a", ALONE: both, CONSTRAINED: both,
            "gain": dict.fromkeys(COLUMNS, own)}  # fmt: skip


def test_the_figure_has_every_base_loss_at_both_ratios_with_the_published_gain_beside_it():
    panels = page.forest({})
    assert [len(panel.lines) for panel in panels] == [16, 16]
    assert panels[0].lines[0].label == "1:100, BCE"
    assert panels[0].lines[0].beside == pytest.approx(93.1 - 91.2)
    assert panels[1].lines[0].beside == pytest.approx(56.0 - 52.0), "a lower FPR is a gain"
    assert all(line.beside is not None for panel in panels for line in panel.lines)


def test_most_cells_are_more_than_half_and_none_worse():
    assert [page.most(*counts, 16) for counts in ((9, 0), (8, 0), (9, 1))] == [True, False, False]


def test_ten_models_see_about_as_many_rare_images_as_draws_of_their_own_give():
    """Draws as the study makes them, from 5,000 images per class."""
    pair = Images(torch.arange(10_000), (torch.arange(10_000) % 2).float())
    seen = {image for seed in range(10) for image in rare_of(critical_class.draw(pair, seed, 100)[0])}
    assert len(rare_of(critical_class.draw(pair, 0, 100)[0])) == page_limits.rare_images(100)
    assert len(seen) == pytest.approx(page_limits.distinct(100, 10), abs=15)


def rare_of(images):
    return images.x[images.labels == 1].tolist()


def test_runs_count_as_capped_where_mu_ends_at_32_times_itself():
    charge = critical_class.CHARGES[0]
    rows = [{"way": CONSTRAINED, "setting": str(charge), "mu": times * charge.mu} for times in (8, 16, 32)]
    assert "in 1 of 3 constrained runs" in page_limits.capped([*rows, {"way": ALONE}])


def test_four_starts_of_one_draw_stand_beside_four_models(monkeypatch):
    row = {"change": ladder.ONE_DRAW, "runs": 4, "first rung": 80.0, "together": {"AUC": 82.0},
           "first rung together": {"AUC": 80.0}}  # fmt: skip
    assert page_ladder.beside(row, {"by number": {"1": 80.0, "4": 85.0}}) == 85.0
    assert page_ladder.beside({**row, "change": ladder.FIRST}, {}) == 80.0


def test_the_answer_follows_the_signs_and_names_weak_base_losses(monkeypatch):
    weak, level = main_row(100, "CB-BCE", 91.0, 78.0, 0.0, 10.0), main_row(100, "BCE", 91.0, 91.0, 0.05, 1.0)
    figures = {"rows": [weak, level]}
    monkeypatch.setattr(page, "load_figures", lambda name: figures)
    assert page.answer({}).startswith("No gain was found")
    assert "(1 cells), the mean gain is +10.0 as published and +0.0 here; in the other 1 it is +1.0" in page.answer({})
    assert "The former is one cell, CB-BCE at 1:100 (+10.0)." in page.answer({})
    figures["rows"] = [weak, main_row(200, "W-BCE", 91.0, 78.0, 0.0, 2.0), level]
    assert "Most of the former is one cell, CB-BCE at 1:100 (+10.0); the other 1 have +2.0" in page.answer({})
    figures["rows"] = [main_row(100, loss, 91.0, 91.0, 1.0, 1.0) for loss in ("BCE", "S-ML")]
    assert page.answer({}).startswith("Yes")
    assert "the former" not in page.answer({})
    figures["rows"] = []
    assert page.answer({}) == ""
    assert [panel.lines for panel in page.forest({})] == [[], []]
