"""The answers of the evidence pages follow the figures: with other figures their words change."""

from __future__ import annotations

import copy
import importlib

import pytest
from benchmarks.common import answers, harness, words


def page_of(study):
    return importlib.import_module("benchmarks.peers.page" if study == "peers" else f"benchmarks.studies.{study}.page")


def turned(value, scale=-1.0):
    """The same figures with every gain to the other side: means beside a standard error."""
    if isinstance(value, list):
        return [turned(one, scale) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: turned(one, scale) for name, one in value.items()}
    if "mean" in found and "standard_error" in found:
        found["mean"] *= scale
    return found


@pytest.mark.parametrize(("study", "now", "after"), [
    ("default_study", "In the mean yes", "In the mean no"),
    ("default_study", "27 of 50 cells (54 %, at least the 40 % asked for)", "1 of 50 cells (2 %, under the 40 %"),
    ("default_study", "Ijcnn1 and letter carry the mean: over cross-entropy they have +9.2", "German_credit and"),
    ("free_asks", "In the mean yes", "In the mean no"),
    ("free_asks", "by corrected errors in 7 (29 %, under", "by corrected errors in 0 (0 %, under"),
    ("free_asks", "stronger rival for `error` (+0.28 ± 0.11 over it", "stronger rival for `f_score(1)` (-1.48"),
    ("networks", "gains 1.5 points over best of 7 weights", "loses 1.5 points over best of 7 weights"),
    ("networks", "nothing over plain cross-entropy: -0.11", "nothing beyond noise over plain cross-entropy: +0.11"),
    ("rare_events", "a gain of 3.6", "a loss of 3.6"),
    ("small_nets", "and lose 5.4 at 1 % (0 and 13)", "and gain 5.4 at 1 % (13 and 0)"),
    ("paper_tabular", "Yes, over cross-entropy", "No, over cross-entropy"),
    ("paper_ranges", "the mean gain is 0.7", "the mean loss is 0.7"),
    ("paper_images", "last layer lose 0.71 ± 0.33 points (1 better", "last layer gain 0.71 ± 0.33 points (2 better"),
    ("paper_images", "level (-0.05 ± 0.74 points of FNR; 2 better", "level (+0.05 ± 0.74 points of FNR; 1 better"),
    ("peers", "Yes, in 1 of 3 contests", "Yes, in 2 of 3 contests"),
    ("peers", "in 3 of 14 cells and worse in 2, against LightGBM", "in 2 of 14 cells and worse in 3, against LibAUC"),
    ("auto", "linear +2.7", "linear -2.7"),
    ("auto", "; 5 splits per cell cannot rule out small losses.", "; 5 splits per cell cannot rule out small losses."),
    ("paper_programs", "No: with the paper's margin the program is better than cross-entropy, beyond two plain "
     "standard errors, in 0 and worse in 9 of 11", "Not in general: with the paper's margin the program is better than "
     "cross-entropy, beyond two plain standard errors, in 9 and worse in 0 of 11"),
    ("beside_mapie", "better in 11 and worse in 1 of 12 cells: recall", "better in 1 and worse in 11 of 12 cells: fnr"),
])  # fmt: skip
def test_an_answer_says_gain_or_loss_by_the_sign(study, now, after):
    page, figures = page_of(study), harness.load_figures(study)
    assert now in page.answer(figures)
    assert after in page.answer(turned(figures))


def test_the_answer_on_the_solver_says_what_it_raises_and_whether_it_is_level_with_the_closed_form():
    page, figures = page_of("lp_training"), harness.load_figures("lp_training")
    now, after = page.answer(figures), page.answer(turned(figures, -10.0))
    assert "through our engine, AUC is level within 1 point" in now
    assert "F at zero is level in the mean (+0.43 ± 0.61 (2.03)), which 3 seeds do not show to be within 1 point" in now
    assert "changes neither figure beyond two plain standard errors" in now
    assert "F at zero is more than 1 point away" in after
    assert "raises F at zero and lowers AUC beyond" in after
    assert page.answer({**figures, "rows": figures["rows"][:3]}) == ""


def test_level_within_a_point_is_met_where_two_errors_are_within_it_as_well():
    page, figures = page_of("lp_training"), harness.load_figures("lp_training")
    told = [(claim.says, claim.met) for claim in page.claims(figures) if "our engine" in claim.says]
    assert told == [("through our engine: AUC within 1 point", True), ("through our engine: F at zero within 1 point",
                                                                       False)]  # fmt: skip
    assert page.level({"mean": -0.4, "standard_error": 0.29})
    assert not page.level({"mean": -0.4, "standard_error": 0.31})


def test_the_time_of_a_step_alone_stands_beside_that_of_the_trainings():
    page, figures = page_of("lp_training"), copy.deepcopy(harness.load_figures("lp_training"))
    steps = "the mean step takes 1.2 to 1.3 by our engine and by the paper's penalty "
    rest = ", up to 4.2 at the others and up to 17.1 after a burn-in"
    assert f"{steps}2.2 to 3.6 at epsilon 0.01{rest}." in page.answer(figures)
    for row in figures["rows"]:
        row["milliseconds per step"] *= 2 if row["method"] == page.PAPER else 1
    assert f"{steps}4.3 to 7.3 at epsilon 0.01{rest}." in page.answer(figures)
    rows = [row for row in figures["rows"] if row["method"] != page.BURNT]
    assert "at epsilon 0.01 and up to 4.2 at the others." in page.answer({**figures, "rows": rows})


def test_the_strongest_rival_of_networks_is_the_one_of_the_index():
    page, figures = page_of("networks"), copy.deepcopy(harness.load_figures("networks"))
    (shown,) = (claim for claim in page.claims(figures) if claim.index)
    assert (shown.against, shown.met) == (page.HELPED, False)
    assert "on spambase it is behind by a point or more" in page.answer(figures)
    for own in figures["confirmation"]["together"].values():
        own["test"]["default"][page.HELPED]["lost a point on"] = []
        own["at threshold"]["default"][page.PLAIN]["mean"] = 0.1
    assert [claim.met for claim in page.claims(figures) if claim.index] == [True]
    told = page.answer(figures)
    assert "spambase" not in told
    assert "it gains over plain cross-entropy: +10.00" in told


def test_methods_of_networks_stand_beside_their_number_of_sets():
    page, figures = page_of("networks"), harness.load_figures("networks")
    lines = page.beside_weights(figures["confirmation"]).splitlines()
    assert lines[0].startswith("| method | trainings | sets |")
    assert [line.split(" | ")[2] for line in lines if "weight 1" in line] == ["8, 3", "6, 3"]


def test_errors_count_data_sources_and_not_cells():
    names = ["letter", "letter, 100 ReLU features", "CIFAR-10 head, cat", "CIFAR-10 head, truck", "adult"]
    assert [words.source(name) for name in names] == ["letter", "letter", "CIFAR-10", "CIFAR-10", "adult"]
    assert words.of_sources(5, "sets", names) == "5 sets of 3 data sources"
    assert words.of_sources(2, "sets", ["letter", "adult"]) == "2 sets"
    assert words.of_sources(4, "cells", names[:2] * 2) == "4 cells of one data source"
    # Twice the same data in every cell is no reason to be surer.
    twice = [{"set": name, "gain": {"mean": mean}} for name, mean in zip(names[:4], (0.1, 0.1, 0.3, 0.3))]
    mean, error = words.mean_and_error(words.by_source(twice, lambda row: row["gain"]))
    assert (mean, error) == (pytest.approx(20), pytest.approx(10))


@pytest.mark.parametrize(("study", "of"), [
    ("default_study", "10 sets of 7 data sources, 12 splits"), ("free_asks", "6 sets, 8 splits"),
    ("small_nets", "18 cells of 3 data sources, 4 seeds"), ("rare_events", "6 cells of 2 data sources, 3 splits"),
])  # fmt: skip
def test_claims_say_of_how_many_data_sources_they_are(study, of):
    assert page_of(study).claims(harness.load_figures(study))[0].on == of


def test_too_few_cuts_cannot_say_whether_a_promise_is_kept():
    page, figures = page_of("rare_events"), copy.deepcopy(harness.load_figures("rare_events"))
    assert "by 1 of 11 cuts that flag any row; these are too few to say" in page.answer(figures)
    assert not any("hold" in claim.says for claim in page.claims(figures))
    for cell in figures["cells"]:
        cell["splits"], cell[page.OURS]["refused"] = 10, 0.0
    assert "of 60 cuts that flag any row." in page.answer(figures)


def test_a_peer_that_is_equal_is_called_so_and_contests_have_counts_without_a_mean():
    page, figures = page_of("peers"), copy.deepcopy(harness.load_figures("peers"))
    assert f"its error is exactly that of *{page.GROUPED}*, on 2 sets (0.00 ± 0.00)" in page.answer(figures)
    (shown,) = (claim for claim in page.claims(figures) if claim.index)
    assert (shown.effect, shown.gain) == ("3 better, 2 worse of 14 (corrected)", None)
    next(row for row in figures["contests"]["error at gap"]["rows"] if row["peer"] == page.GROUPED)["better by"][
        "test"
    ]["mean"] = 0.001
    assert "exactly" not in page.answer(figures)


def test_the_mean_without_the_two_sources_that_gain_most_stands_beside_it():
    page = page_of("default_study")
    rivals = (page.TUNED + page.AGAIN, page.BASELINE + page.AGAIN)

    def cells(**gains):
        own = {name: {"mean": gain, "standard_error": 0.01} for name, gain in gains.items()}
        return [{"set": name, "gain, test": {page.DEFAULT: dict.fromkeys(rivals, gain)}}
                for name, gain in own.items()]  # fmt: skip

    told = page.carried(cells(a=0.09, b=0.11, c=0.01, d=-0.01))
    assert told.startswith("B and a carry the mean: over cross-entropy they have +11.0 and +9.0 points")
    assert "the other 2 data sources -1.0 to +1.0; without the two the mean is +0.00 over the weights" in told
    assert page.carried(cells(a=0.04, b=0.05, c=0.04, d=0.03)).startswith("B and a gain most")
    assert page.carried(cells(a=0.04, b=0.05)) == ""


def broken(value, name="broken"):
    """The same figures with promises that are not kept."""
    if isinstance(value, list):
        return [broken(one, name) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: broken(one, name) for key, one in value.items()}
    return found | {key: 0.5 for key in (name,) if key in found} | {key: False for key in ("met",) if key in found}


@pytest.mark.parametrize(("study", "name"), [
    *((study, "broken") for study in ("certificates", "promises_tables", "promises_kinds", "dependence")),
    ("labels", "certified, broken"),
    ("promises_lists", "issued"),
])  # fmt: skip
def test_a_promise_that_is_not_kept_is_called_so(study, name):
    page, figures = page_of(study), harness.load_figures(study)
    assert page.answer(figures).startswith("Yes")
    assert page.answer(broken(figures, name)).startswith("No: in ")


def test_too_many_false_alarms_are_called_so():
    page, figures = page_of("watching"), harness.load_figures("watching")
    assert page.answer(figures).startswith("Few false alarms")
    assert page.answer(broken(figures, "alarms")).startswith("Too many false alarms")


def test_classes_and_long_tails_say_no_unless_there_is_a_gain():
    classes, figures = page_of("classes"), copy.deepcopy(harness.load_figures("classes"))
    assert classes.answer(figures).startswith("No:")
    for cell in figures["cells"]:
        cell["gain"] = 1.0
    assert classes.answer(figures).startswith("Yes:")
    tail, rows = page_of("long_tailed"), harness.load_figures("long_tailed")
    assert tail.answer(turned(rows, 100.0)).startswith("In some cells:")
    assert tail.answer({"rows": []}) == ""


def test_a_picture_that_is_as_the_paper_says_is_counted():
    page, figures = page_of("paper_figures"), harness.load_figures("paper_figures")
    assert page.answer(figures).startswith("2 of 5 do: Figure 2 of 000 and Figure 1 of 003, but not")
    told = page.answer({**figures, "true": dict.fromkeys(figures["true"], True)})
    assert told.startswith("5 of 5 do:")
    assert "but not" not in told


def test_a_kept_promise_is_within_noise_above_what_is_promised():
    cell = {"broken": 0.055, "repeats": 1000, "met": True}
    assert answers.kept([cell]).startswith("Yes, within noise: a certified bound is broken in 5.5 ± 0.7 %")
    assert answers.kept([{**cell, "broken": 0.05}]).startswith("Yes: ")
    assert answers.kept([cell, {**cell, "met": False}]).startswith("No: in 1 of 2 cells")


def test_a_gain_without_an_error_is_within_noise():
    gain = {"mean": 1.0, "standard_error": 0.1, "corrected_standard_error": 0.6}
    assert answers.beyond_both(gain) == "beyond two plain standard errors, not beyond two corrected ones"
    assert answers.beyond_both({**gain, "corrected_standard_error": 0.2}) == "beyond two corrected standard errors"
    assert answers.beyond_both(dict.fromkeys(gain, float("nan"))) == "within noise"
    assert answers.counted_sides([gain, {**gain, "mean": -1.0}, {**gain, "mean": 0.1}]) == (1, 1)
    assert (answers.ranged([1.0, 1.04]), answers.ranged([1, 2], ".0f")) == ("1.0", "1 to 2")
