"""The advice of docs/choosing.md and docs/methods follows the figures: with other figures it changes."""

from __future__ import annotations

import copy

import pytest
from benchmarks.common import harness
from benchmarks.studies.auto import page as auto
from benchmarks.studies.letter import page as letter
from benchmarks.studies.paper_figures import page as pictures

from benchmarks import passages


@pytest.fixture
def found(monkeypatch):
    """The figures of studies by name, to be changed before a passage reads them."""
    loaded: dict[str, dict] = {}

    def load(name):
        return loaded.setdefault(name, copy.deepcopy(harness.load_figures(name)))

    monkeypatch.setattr(passages, "load_figures", load)
    monkeypatch.setattr(passages.critical_class, "load_figures", load)
    return load


def test_one_critical_class_is_advised_on_by_all_base_losses(found):
    assert passages.critical() == (
        "cross-entropy",
        "no gain was found; `sp.AugmentedLagrangian` over the base loss alone, points of AUC on a pair of CIFAR-10 "
        "(positive is better): -0.20 ± 0.19; 0 better, 0 worse of 16 cells",
    )
    for row in found("critical_class_nine")["rows"]:
        if "gain" in row:
            row["gain"]["AUC"]["together"]["mean"] = 9.0
    use, told = passages.critical()
    assert use == "`sp.AugmentedLagrangian`"
    assert told.startswith("`sp.AugmentedLagrangian` over")
    assert told.endswith("16 better, 0 worse of 16 cells")


def test_what_the_augmented_lagrangian_brings_has_losses_below_zero(found):
    told = passages.augmented()
    assert told.startswith("No gain was found")
    assert "| a pair of CIFAR-10: AUC | -0.20 ± 0.19 | 0 | 0 | 16 | +1.46 |" in told
    assert "| ten classes of CIFAR-10: error @ 80% TPR, by logit | -0.10 ± 0.18 | 0 | 2 | 16 | +2.00 |" in told
    assert "| ten classes of CIFAR-10: error @ 80% TPR, by probability | +0.21 ± 0.14 | 2 | 0 | 16 |  |" in told


@pytest.mark.parametrize(("mean", "use"), [
    (0.1, "`sp.fit` with no solver"),
    (0.0, "`sp.fit` with no solver, or tuned class weights"),
    (-0.1, "tuned class weights"),
])  # fmt: skip
def test_high_recall_is_advised_on_by_the_gain_over_tuned_weights(found, mean, use):
    found("letter")["default minus"]["best of 21 weights"]["mean"] = mean
    advised, told = passages.high_recall()
    assert advised == use
    assert f"default less the best of 21 weights {100 * mean:+.2f} ±" in told


def test_steps_that_are_few_put_cross_entropy_with_more_of_them_ahead_at_both_bounds(found):
    now = passages.few_steps()
    assert "At an FPR of 0.1 % they are 5.6 points of FNR ahead of the best of 7 class weights" in now
    assert (
        "3.5 points of FNR behind cross-entropy with 7/3 as many steps (clearly better in 1, clearly worse in 4" in now
    )
    assert "5.4 points of FNR behind cross-entropy with 7/3 as many steps" in now
    for row in found("small_nets")["rows"]:
        row["gain"]["longer"]["mean"] *= -1
    after = passages.few_steps()
    assert "3.5 points of FNR ahead of cross-entropy with 7/3 as many steps (clearly better in 4" in after


def test_auto_tells_cells_in_which_nothing_moved(found):
    rows = [row for row in found("auto")["rows"] if row["model"] == "linear"]
    assert passages.by_auto(rows) == (
        "against cross-entropy, worse by two standard errors in 0 of 18 cells, clearly better in 6, exactly the same "
        "in 5"
    )
    assert auto.unmoved(found("auto")["rows"]) == (8, 7)
    for row in rows:
        row["never worse"] = False
        row["gain, best cut"]["cross-entropy"]["mean"] = -1.0
    assert passages.by_auto(rows).endswith("in 18 of 18 cells, clearly better in 0, exactly the same in 0")


def test_networks_have_the_plain_error_and_the_corrected_one_in_brackets():
    one = harness.load_figures("networks")["confirmation"]["together"]["minimize fnr where fpr <= 1%"]["test"]
    gain = one["default"]["cross-entropy"]
    errors = (100 * gain[name] for name in ("standard_error", "corrected_standard_error"))
    plain, corrected = (f"{error:.2f}" for error in errors)
    assert f"± {plain} ({corrected}) points over cross-entropy" in passages.by_networks("default")


def test_the_time_of_auto_is_ranged_by_table():
    assert passages.fits_taken().endswith("tables, from 6 to 190, by table.")


def test_auto_counts_by_both_errors_against_both_rivals(found):
    told = auto.answer(found("auto"))
    assert (
        "+2.73 ± 1.68 points, within noise in the mean (6 better, 0 worse of 18 cells by plain errors, 6 and 0" in told
    )
    assert "it has +0.79 ± 0.72 points, within noise in the mean (5 better, 1 worse of 18 cells by plain errors" in told
    assert "by plain errors it is worse on communities_crime (precision where recall >= 90%, -1.08 ± 0.40" in told
    assert "in 8 the gain is exactly 0, in 7 of these because it kept cross-entropy in every split." in told
    assert len(auto.forest(found("auto"))) == 3
    for row in found("auto")["rows"]:
        for gain in row["gain, best cut"].values():
            gain["mean"] = 0.5
    after = auto.answer(found("auto"))
    assert "it is worse on" not in after
    assert "in 0 the gain is exactly 0" in after
    assert "within noise" not in after


def test_letter_is_answered_by_the_gain_over_the_best_weight(found):
    told = letter.answer(found("letter"))
    assert told.startswith("The default is level with the best of 21 class weights, the strongest rival: +0.10")
    found("letter")["default minus"]["best of 21 weights"]["mean"] = -0.1
    assert letter.answer(found("letter")).startswith("The default is worse than the best of 21")


def test_the_toy_example_counts_the_orders_that_fit(found):
    row = found("paper_figures")["rows"][
        next(name for name, own in found("paper_figures")["rows"].items() if "true of" in own)
    ]
    assert pictures.found(found("paper_figures"), "003, 1").endswith("one fits both numbers in the paper's text")
    row["true of"] *= 2
    assert "of all 252 orders of five positives and five negatives, 2 fit" in pictures.found(
        found("paper_figures"), "003, 1"
    )
