"""The answers of the evidence pages follow the figures: with other figures their words change."""

from __future__ import annotations

import copy
import importlib

import pytest
from benchmarks.common import answers, harness


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
    ("free_asks", "In the mean yes", "In the mean no"),
    ("networks", "gains 1.5 points over best of 7 weights", "loses 1.5 points over best of 7 weights"),
    ("rare_events", "a gain of 3.6", "a loss of 3.6"),
    ("paper_tabular", "Yes, over cross-entropy", "No, over cross-entropy"),
    ("paper_ranges", "the mean gain is 0.7", "the mean loss is 0.7"),
    ("paper_images", "the last layer lose 0.7", "the last layer gain 0.7"),
    ("peers", "in 3 of 14 cells and worse in 2, against LightGBM", "in 2 of 14 cells and worse in 3, against LibAUC"),
    ("auto", "linear +2.7", "linear -2.7"),
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
    assert now.startswith("The solver is level with the closed form")
    assert "changes neither figure beyond two plain standard errors" in now
    assert after.startswith("The solver differs from the closed form")
    assert "raises F at zero and lowers AUC beyond" in after
    assert page.answer({**figures, "rows": figures["rows"][:3]}) == ""


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
