"""A model with a certificate beside one without: the verdict is about models, not about what a certificate costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from setpoint import ask, calibrate
from setpoint.report.of_run import read_material
from setpoint.report.page import make_page
from setpoint.report.verdict import against, sentences
from setpoint.report.words import often_broken, show_value
from setpoint.run.artefact import save_run
from setpoint.run.settings import Settings
from setpoint.run.standing import Noise, held_against, standing_of
from setpoint.run.table import fit_table

ASK = ask("minimize fnr where fpr <= 20%")


@pytest.fixture(scope="module")
def table():
    """Both models are certified, at thresholds that cost objective."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(4000, 2))
    y = (np.abs(x[:, 0]) + x[:, 1] + draw.normal(size=4000) > 1.5).astype(int)
    found = fit_table(pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}), "y", ASK, Settings(model="trees"))
    assert all(run.bare is not None and run.point.threshold != run.bare.threshold for run in found.runs)
    return found


def without_certificates(table, *places):
    """The same table of runs, some of which could not be certified."""
    runs = [one.uncertified if place in places else one for place, one in enumerate(table.runs)]
    return replace(table, chosen=replace(runs[0], beside=tuple(runs[1:])))


def on_test_point(run):
    return run.judged("test")


def on_test(run):
    return on_test_point(run).objective


@pytest.mark.parametrize("places", [(), (0,), (1,), (0, 1)])
def test_both_are_compared_as_they_ship_or_both_at_bare_cuts(table, places, tmp_path):
    found = without_certificates(table, *places)
    expected = [run.uncertified if places else run for run in table.runs]
    assert (found.against.ours, found.against.theirs) == tuple(map(on_test, expected))
    assert on_test(found.chosen) == on_test(table.chosen.uncertified if 0 in places else table.chosen)

    told = "\n".join(sentences(found))
    assert ("As shipped" in told) == (len(places) != 1)
    alone = {(0,): "cross-entropy", (1,): "boosted trees"}.get(places)
    assert alone is None or f"Both at bare cuts, since only {alone}" in told

    assert found.to_dict()["against"]["at_bare_cuts"] == (len(places) == 1)
    as_they_ship = f"As they ship: fnr {show_value(found.problem.objective, on_test(found.chosen))} for boosted trees"
    assert (as_they_ship in told) == (len(places) == 1)

    # The page of the run on disk says the same.
    material = read_material(save_run(tmp_path / "run", found))
    page = material.against("test")
    assert (page.value, page.low, page.high) == pytest.approx(
        (found.against.value, found.against.low, found.against.high)
    )
    numbers = next(line for line in told.splitlines() if line.startswith(("As shipped", "Both at bare")))
    html = make_page(material)
    assert numbers.split(":")[0] in html
    assert ("both at bare cuts" in html) == ("As they ship" in html) == (len(places) == 1)


def test_a_rival_is_said_to_break_its_bound_only_if_it_does_as_it_ships(table):
    """Cross-entropy is certified and keeps its bound; its bare cut, at which both are compared, does not."""
    found = without_certificates(table, 0).against
    better = replace(found, ours=0.5, theirs=0.2, low=0.1, high=0.5)
    kept, broken = (replace(on_test_point(table.rival), feasible=held) for held in (True, False))
    ours = replace(on_test_point(table.chosen), feasible=True)
    names, at = ("trees", "cross-entropy"), "Both at bare cuts"
    told = " ".join(against(better, names, [ours, broken], at, shipped=[ours, kept]))
    assert "breaks its bound" not in told
    told = " ".join(against(better, names, [ours, kept], at, shipped=[ours, broken]))
    assert "though it breaks its bound as it ships" in told


@pytest.mark.parametrize(
    ("text", "often"),
    [
        ("minimize fnr where fpr <= 1%", "about half the time"),
        ("maximize recall where flagged <= 5%", "about half the time"),
        ("maximize recall where precision >= 80%", "half the time or more"),
        ("maximize recall where error <= 20% and fpr <= 1%", "half the time or more"),
        ('minimize fnr where fpr.gap("sex") <= 5%', "half the time or more"),
        ("maximize macro recall where coverage of class a <= 35%", "about half the time"),
    ],
)
def test_bare_cuts_are_said_to_break_bounds_as_often_as_they_do(text, often):
    assert often_broken(ask(text)) == often


def test_precision_at_a_bare_cut_is_broken_more_than_half_the_time():
    """The number behind the sentence, from a world whose true precision is known."""
    draw, broken, repeats = np.random.default_rng(7), 0, 200
    for _ in range(repeats):
        labels = (draw.random(400) < 0.3).astype(int)
        scores = labels + draw.normal(size=400)
        cut = float(calibrate("maximize recall where precision >= 75%", scores, labels).threshold)
        hits, alarms = 0.3 * norm.sf(cut - 1), 0.7 * norm.sf(cut)
        broken += hits < 0.75 * (hits + alarms)
    assert broken / repeats > 0.5 + 2 * (0.25 / repeats) ** 0.5


def test_a_comparison_of_splits_is_on_equal_terms_on_each(table):
    first, second = without_certificates(table, 0), without_certificates(table, 0, 1)
    ours = standing_of("trees", [one.chosen for one in (table, first, second)])
    plain = standing_of("cross-entropy", [one.rival for one in (table, first, second)])
    found = held_against(ours, plain, Noise(3, 1, 0.25))
    certified, bare = (on_test(a) - on_test(b) for a, b in (table.runs, second.runs))
    assert found.differences == (certified, bare, bare)
    assert found.bare_splits == 1
    assert found.shipped == tuple(on_test(one.chosen) for one in (table, first, second))
    assert certified != bare
