"""The study on images: choices are made without test rows, nothing runs twice, and the published figures add up."""

from __future__ import annotations

import copy
import gzip
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.common import harness
from benchmarks.studies.paper_images import page
from benchmarks.studies.paper_images import study as paper_images
from benchmarks.studies.paper_images.published import (
    IMPLICIT_TABLE_2,
    IMPLICIT_TABLE_4_MEAN,
    IMPLICIT_TABLES_3_AND_4,
    LAST_LAYER_TABLE_1,
)
from benchmarks.studies.paper_images.sets import IMAGE_SETS, Folders, draw_parts, missing, read_idx
from benchmarks.studies.paper_images.study import AREA, AT_FPR, Study
from benchmarks.studies.paper_images.training import CRITERIA, BestEpoch, Plan, Runs, fresh, row_of
from benchmarks.studies.paper_images.verdict import BASE, TUNED, chosen_weight, key, published_ratios, summary
from sklearn.metrics import roc_auc_score

import setpoint as sp
from benchmarks import papers, papers_why

PLAN, SIZES, ASK = Plan(epochs=4, width=2, batch=32), (96, 60, 60, 80), AT_FPR[10]


def world() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise, brighter in one corner of a third of the images."""
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(300) % 3 == 0).float()
    pixels = torch.randint(0, 200, (300, 1, 32, 32), generator=draw, dtype=torch.uint8)
    pixels[labels == 1, :, :8, :8] += 30
    return pixels, labels


@pytest.fixture(scope="module")
def parts():
    return draw_parts(*world(), SIZES, seed=1)


def test_parts_share_no_image_and_have_the_same_share_of_positives():
    pixels = torch.arange(300).view(-1, 1, 1, 1)
    labels = (torch.arange(300) % 3 == 0).float()
    drawn, again, other = (draw_parts(pixels, labels, SIZES, seed) for seed in (1, 1, 2))
    rows = torch.cat([part.x.flatten() for part in drawn.values()])
    assert len(rows.unique()) == sum(SIZES)
    assert [len(part) for part in drawn.values()] == list(SIZES)
    assert [int(part.labels.sum()) for part in drawn.values()] == pytest.approx([size / 3 for size in SIZES], abs=1)
    assert torch.equal(drawn["test"].x, again["test"].x)
    assert not torch.equal(drawn["test"].x, other["test"].x)


def test_training_and_choosing_need_no_test_and_no_calibration_rows(parts):
    blind = Runs({part: parts[part] for part in ("train", "validation")}, PLAN, seed=1)
    _, _, half, _ = blind.weighted([ASK], None)
    for criterion in CRITERIA.values():
        best, _ = blind.taken_over(ASK, criterion, half)
        assert best.epoch >= PLAN.warm
    with pytest.raises(KeyError):
        blind.judged(best.problem, best.state)


def test_the_epoch_kept_is_the_best_on_validation_rows(parts):
    runs = Runs(parts, PLAN, seed=1)
    after, before, _, _ = runs.weighted([ASK, AREA], None)
    for ask in (ASK, AREA):
        for best in (after[ask], before[ask]):
            net = runs.net(best.state).eval()
            with torch.no_grad():
                scores = net(parts["validation"].floats()).squeeze(-1)
            assert sp.evaluate(ask, scores, parts["validation"].labels).objective == pytest.approx(best.value)
    assert before[ASK].epoch < PLAN.warm <= after[ASK].epoch


@pytest.mark.parametrize("ask", [ASK, AREA])
def test_the_better_epoch_is_kept_and_of_two_that_are_level_the_earlier(ask):
    labels = torch.tensor([0.0, 0.0, 1.0, 1.0])
    wrong, right = torch.tensor([3.0, 1.0, 2.0, 2.5]), torch.tensor([0.0, 1.0, 2.0, 3.0])
    best = BestEpoch(sp.ask(ask))
    for epoch, scores in ((4, wrong), (5, right), (6, right), (7, wrong)):
        best.look(epoch, {"epoch": torch.tensor(epoch)}, scores, labels)
    assert (best.epoch, int(best.state["epoch"])) == (5, 5)


def test_what_takes_over_begins_where_cross_entropy_was_half_way(parts):
    runs = Runs(parts, PLAN, seed=1)
    _, _, kept, _ = runs.weighted([ASK], None)
    again = runs.half_way()
    assert all(torch.equal(kept[name], again[name]) for name in kept)
    still = Runs(parts, replace(PLAN, rate=0.0, decay=0.0), seed=1)
    best, _ = still.taken_over(ASK, CRITERIA["implicit"], kept)
    weights = [name for name in kept if name.endswith("weight")]
    assert all(torch.equal(best.state[name], kept[name]) for name in weights)


def test_an_area_is_judged_as_scikit_learn_does_and_a_threshold_on_calibration_rows(parts):
    darker = replace(parts["calibration"], x=parts["calibration"].x // 2)
    runs = Runs({**parts, "calibration": darker}, replace(PLAN, width=8), seed=1)
    net = fresh(parts["train"], runs.plan, seed=1).eval()
    state = net.state_dict()
    with torch.no_grad():
        calibration, test = (net(part.floats()).squeeze(-1) for part in (darker, parts["test"]))
    labels = parts["test"].labels
    expected = roc_auc_score(labels.numpy(), test.numpy(), max_fpr=0.05)
    assert runs.judged(sp.ask(AREA), state)["test"] == pytest.approx(expected, abs=1e-6)
    found = runs.judged(sp.ask(ASK), state)
    assert found["at threshold"] != found["test"]
    threshold = sp.calibrate(ASK, calibration, darker.labels).threshold
    assert found["fpr"] == pytest.approx(float((test[labels == 0] > threshold).double().mean()))
    assert found["at threshold"] == pytest.approx(float((test[labels == 1] <= threshold).double().mean()))
    assert row_of(runs, runs.weighted([ASK], None)[0][ASK], 1.0)["epoch"] > PLAN.warm


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(paper_images, "pooled", lambda name, folders: world())
    one = replace(IMAGE_SETS["CIFAR-10, cat"], sizes=SIZES, splits=1)
    return lambda: Study("world", one, PLAN, [ASK], harness.Journal("paper_images"), Folders("nowhere"), tmp_path)


def test_a_study_that_was_stopped_goes_on(study, monkeypatch):
    first = study()
    first.cross_entropy(7)
    first.taken_over(7, ASK)
    methods = {row["method"] for row in first.journal.rows.values()}
    assert methods == {*BASE, *CRITERIA, "warm start", "proximal head"}
    assert key("world", ASK, "implicit", 7) in first.journal
    (lost,) = [line for line in first.journal.path.read_text().splitlines() if "| method 2 |" in line]
    first.journal.path.write_text(first.journal.path.read_text().replace(lost + "\n", ""))
    monkeypatch.setattr(Runs, "weighted", lambda *_: pytest.fail("cross-entropy trained again"))
    again = study()
    again.cross_entropy(7)
    again.taken_over(7, ASK)
    assert len(again.journal.rows) == len(first.journal.rows)
    named = key("world", ASK, "method 2", 7)
    assert again.journal[named]["test"] == pytest.approx(first.journal[named]["test"])
    assert again.journal[named]["epoch"] == first.journal[named]["epoch"]


def rows(ask, values):
    """Rows of one split whose figures are the same on validation and test rows."""
    return {method: {"method": method, "validation": value, "test": value, "epoch": 3, "seconds": 1.0, "kept": True,
                     **({} if ask == AREA else {"at threshold": value, "fpr": 0.02})}
            for method, value in values.items()}  # fmt: skip


FIGURES = {**dict.fromkeys(BASE, 0.4), "weight 2": 0.3, "weight 8": 0.5, "warm start": 0.45,
           **dict.fromkeys(CRITERIA, 0.42), "implicit": 0.36, "proximal head": 0.4}  # fmt: skip


def test_the_weight_follows_the_direction_of_the_ask_and_ties_go_to_plain_cross_entropy():
    assert chosen_weight(rows(AREA, FIGURES), maximize=True) == "weight 8"
    assert chosen_weight(rows(ASK, FIGURES), maximize=False) == "weight 2"
    assert chosen_weight(rows(ASK, dict.fromkeys(BASE, 0.4)), maximize=False) == "cross-entropy"
    lucky = rows(ASK, FIGURES)
    lucky["weight 0.5"]["test"] = lucky["weight 0.5"]["at threshold"] = 0.0
    assert chosen_weight(lucky, maximize=False) == "weight 2"


@pytest.mark.parametrize(("ask", "better"), [(AT_FPR[1], 1), (AREA, -1)])
def test_a_gain_is_positive_when_better_and_a_split_that_is_not_done_is_not_counted(tmp_path, monkeypatch, ask, better):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    journal = harness.Journal("paper_images")
    for seed in (1, 2, 3):
        done = {name: value for name, value in FIGURES.items() if seed < 3 or name != "weight 8"}
        for method, row in rows(ask, done).items():
            journal.add(key("CIFAR-10, cat", ask, method, seed), row)
    one = {"CIFAR-10, cat": IMAGE_SETS["CIFAR-10, cat"]}
    asks = {ask: "area" if ask == AREA else 1}
    found = summary(journal, one, {"CIFAR-10, cat": [1, 2, 3]}, asks)
    by = {row["method"]: row for cell in found["cells"] for row in cell["methods"]}
    assert set(by) == {"cross-entropy", TUNED, *CRITERIA, "proximal head", "warm start"}
    assert by["implicit"]["splits"] == 2
    assert by["implicit"]["over cross-entropy"]["mean"] == pytest.approx(4 * better)
    assert by["implicit"]["over warm start"]["mean"] == pytest.approx(9 * better)
    tuned = 0.3 if better > 0 else 0.5
    assert by["implicit"][f"over {TUNED}"]["mean"] == pytest.approx(better * 100 * (tuned - 0.36))
    assert by[TUNED]["seconds"] == 5.0
    (count,) = [one for one in found["counts"] if (one["method"], one["rival"]) == ("implicit", "cross-entropy")]
    # Two splits: one degree of freedom, so Cauchy's law.
    assert count["by chance"] == pytest.approx(1 - 2 * np.arctan(2) / np.pi)
    assert ("pooled" in count) == (ask != AREA)
    if ask != AREA:
        assert (count["pooled"]["mean"], count["pooled"]["units"]) == (pytest.approx(4), 2)
    plan = {"CIFAR-10, cat": {"sizes": [1, 1, 1, 1], "epochs": 1, "splits": 3}}
    told = page.section({**found, "plan": plan, "net": {"width": 16, "batch": 64}, "left out": []})
    assert "0.90" in told
    assert "2 of 3" in page.plan_table({**found, "plan": plan})


def test_a_missing_package_is_named_with_how_to_get_it(tmp_path):
    told = missing("Fashion-MNIST, shirt", Folders("nowhere", str(tmp_path)))
    assert "apt-get install dataset-fashion-mnist" in str(told)
    assert str(tmp_path) in str(told)
    assert missing("CIFAR-10, cat", Folders("nowhere", str(tmp_path))) is None


def test_an_idx_file_is_read_in_its_shape(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">3I", *pixels.shape) + pixels.tobytes()))
    assert np.array_equal(read_idx(path), pixels)


def test_the_published_tables_add_up():
    land = np.array(list(IMPLICIT_TABLES_3_AND_4.values())[5:])
    np.testing.assert_allclose(land.mean(0), IMPLICIT_TABLE_4_MEAN, atol=0.051)
    assert set(LAST_LAYER_TABLE_1) < set(IMPLICIT_TABLE_2)
    for published in (IMPLICIT_TABLE_2, LAST_LAYER_TABLE_1):
        for cells in published.values():
            assert list(cells) == [1, 2, 5, 10]
            assert (np.diff(np.array(list(cells.values())), axis=0) < 0).all(), "FNR falls as the FPR may rise"
    lipstick = published_ratios(1)["method 2"][2]
    assert lipstick == pytest.approx(38.8 / 44.0)


@pytest.fixture
def measured():
    return copy.deepcopy(harness.load_figures("paper_images"))


def test_both_pages_have_the_pooled_gain_and_the_cells_of_fnr(measured):
    fnr, last, area = page.claims(measured)
    effects = ("-0.05 ± 0.74; 2 better, 1 worse of 20", "-0.71 ± 0.33; 1 better, 2 worse of 20")
    assert (fnr.effect, last.effect) == effects
    assert area.effect == "-0.39 ± 0.45; 1 better, 0 worse of 5"
    entries = {(one.paper, one.what.split(":")[0]): one.found
               for one in papers.of_images(measured, harness.load_figures("paper_fashion"))}  # fmt: skip
    assert entries["000", "Table 2"].startswith(effects[0])
    assert entries["004", "Table 1"].startswith(effects[1])
    assert entries["000", "Table 3"].startswith(area.effect)
    told = page.answer(measured)
    assert "on all layers are level (-0.05 ± 0.74 points of FNR; 2 better, 1 worse of 20 cells) and on" in told
    assert "the last layer lose 0.71 ± 0.33 points (1 better, 2 worse of 20), pooled" in told
    assert "In partial ROC area, thresholds on all layers are level (-0.39 ± 0.45 points; 1 better, 0 worse" in told
    assert "twice its epochs are level (+0.36 ± 0.78 points)." in told
    assert "here in the mean a stronger rival than the best of 5 class weights" in told


@pytest.mark.parametrize(("mean", "words", "alone"), [
    (0.6, "are level (+0.60 ± 0.30 points of FNR; 1 better)", "is level (+0.60 ± 0.30 points)"),
    (-0.6, "are level (-0.60 ± 0.30 points of FNR; 1 better)", "is level (-0.60 ± 0.30 points)"),
    (0.7, "gain 0.70 ± 0.30 points of FNR (1 better)", "gains 0.70 ± 0.30 points"),
    (-0.7, "lose 0.70 ± 0.30 points of FNR (1 better)", "loses 0.70 ± 0.30 points"),
])  # fmt: skip
def test_a_gain_within_two_errors_is_level(mean, words, alone):
    found = {"mean": mean, "standard_error": 0.3}
    assert page.in_points(found, "1 better", " of FNR") == words
    assert page.in_points(found, one=True) == alone


def test_weights_are_weaker_level_or_stronger_than_plain_cross_entropy_by_their_error(measured):
    pooled = page.pooled_of(measured, TUNED)
    fashion = harness.load_figures("paper_fashion")

    def told():
        figures = {**measured, "rows": page.rows_of(measured)}
        return page.stronger(measured), " ".join(page.reasons(figures)), papers_why.of_fnr(figures, fashion).text

    rival, reasons, why = told()
    assert rival == ", here in the mean a stronger rival than the best of 5 class weights"
    assert "plain cross-entropy, the best of five weights is level (-1.16 ± 1.03 points), pooled" in reasons
    assert "plain cross-entropy, the best of five is level (-1.16 ± 1.03 points);" in why
    assert "twice the epochs are level (+0.36 ± 0.78 points; pooled over 20 cells); by set CIFAR-10, cat" in reasons
    assert "twice the epochs are level (+0.36 ± 0.78 points): CIFAR-10, cat" in why
    pooled["standard_error"] = 0.3
    rival, reasons, why = told()
    assert rival == ", here a stronger rival than the best of 5 class weights"
    assert "the best of five weights loses 1.16 ± 0.30 points, pooled" in reasons
    assert "the best of five loses 1.16 ± 0.30 points;" in why
    pooled["mean"] = 1.0
    assert page.stronger(measured) == ""


def test_the_sign_of_the_areas_turns_the_words(measured):
    for row in page.rows_of(measured):
        if "fpr" not in row:
            row["over cross-entropy"]["mean"] *= -1
    assert "thresholds on all layers are level (+0.39 ± 0.45 points; 0 better, 1 worse of 5" in page.answer(measured)
    for row in page.rows_of(measured):
        if "fpr" not in row:
            row["over cross-entropy"]["mean"] += 2
    assert "In partial ROC area, thresholds on all layers gain 2.39 ± 0.45 points (" in page.answer(measured)


def test_the_mean_of_cells_is_the_pooled_gain(measured):
    figures = {**measured, "rows": page.rows_of(measured)}
    for method in ("implicit", "method 2", "twice the epochs", TUNED):
        pooled = page.pooled_of(measured, method)["mean"]
        assert page.mean_of(page.of_method(figures, method), "over cross-entropy") == pytest.approx(pooled, abs=1e-4)


def test_no_reason_is_given_for_the_last_layer(measured):
    why = papers_why.of_last_layer({**measured, "rows": page.rows_of(measured)})
    assert why.lead == "No experiment shows the reason."
    assert "the last layer +2.78 points of FNR, cross-entropy of the same epochs +3.48" in why.text
