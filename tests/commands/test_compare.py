"""`setpoint compare`: the same splits for every method, an honest error, and a verdict that admits noise."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path

import numpy as np
import pytest
import scipy

from doors import ASK, FIT, main_ok
from marks import slow
from setpoint import ask
from setpoint.report.explained import verdict
from setpoint.run.compare import compare_table, corrected_error, usual_solvers
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.default import TUNED
from tables import loans

COMPARED = "minimize fnr where fpr <= 3%"


@pytest.fixture(scope="module")
def compared():
    names = ["weighted", "tuned", "cross-entropy"]
    return compare_table(loans(), "default", ask(COMPARED), Settings(seed=3, confidence=None), names, trials=3)


@slow
def test_a_comparison_is_that_of_the_runs_on_the_same_splits(compared):
    assert [standing.solver for standing in compared.standings] == ["cross-entropy", "weighted", "tuned"]
    for place, seed in enumerate((3, 4, 5)):
        run = fit_table(loans(), "default", ask(COMPARED), Settings(seed=seed, solver="weighted", confidence=None))
        plain, weighted, _ = compared.standings
        assert weighted.best[place] == run.chosen.best("test").objective
        assert weighted.shipped[place] == run.chosen.judged("test").objective
        assert weighted.certified[place] == (run.chosen.point.certificate is not None)
        assert weighted.held[place] == run.chosen.judged("test").feasible
        assert plain.best[place] == run.runs[-1].best("test").objective
        assert weighted.differences[place] == weighted.shipped[place] - plain.shipped[place]
    assert all(seconds > 0 for standing in compared.standings for seconds in standing.seconds)


@slow
def test_the_standard_error_is_corrected_for_shared_rows(compared):
    weighted = compared.standings[1]
    factor = np.sqrt(1 / 3 + 80 / 320)
    assert compared.rows == {"train": 200, "held_out": 60, "calibration": 60, "test": 80}
    assert weighted.standard_error > 0
    assert weighted.standard_error == pytest.approx(statistics.stdev(weighted.differences) * factor)
    assert weighted.margin == pytest.approx(weighted.standard_error * scipy.stats.t.ppf(1 - 0.05 / 4, 2))
    assert corrected_error([1.0], 20, 80) is None


def test_the_correction_keeps_the_error_rate_on_splits_of_one_table():
    """Two useless rules on random splits of one sample: called different about as often as the level says."""
    draw = np.random.default_rng(0)
    wrong = {True: 0, False: 0}
    for _ in range(400):
        difference = draw.normal(size=200)
        means = [difference[draw.permutation(200)[:40]].mean() for _ in range(10)]
        # Each split adds what its training brings; half of the noise, here.
        means = [mean + draw.normal() * 0.5 / np.sqrt(40) for mean in means]
        for corrected in wrong:
            error = corrected_error(means, 40, 160) if corrected else np.std(means, ddof=1) / np.sqrt(10)
            wrong[corrected] += abs(np.mean(means)) > error * scipy.stats.t.ppf(0.975, 9)
    assert wrong[True] < 0.12 * 400
    assert wrong[False] > 1.5 * wrong[True]


def with_differences(compared, **differences):
    """The comparison with other differences from cross-entropy."""
    changed = {standing.solver: standing for standing in compared.standings}
    for name, own in differences.items():
        error = corrected_error(own, 80, 320)
        margin = None if error is None else error * 6.2
        changed[name] = dataclasses.replace(changed[name], differences=tuple(own), standard_error=error, margin=margin)
    return dataclasses.replace(compared, standings=tuple(changed.values()))


def test_the_verdict_admits_noise(compared):
    noisy, ahead, behind = [0.01, -0.02, 0.03], [-0.1, -0.101, -0.1], [0.1, 0.101, 0.1]
    assert verdict(with_differences(compared, weighted=noisy, tuned=noisy)).startswith(
        "As shipped, no solver differs from cross-entropy by more than the noise of 3 splits, which hides differences"
    )
    wide, wider = ([size * value for value in noisy] for size in (10, 30))
    assert "hides differences up to 119 to 358 points: " in verdict(
        with_differences(compared, weighted=wide, tuned=wider)
    )
    assert verdict(with_differences(compared, weighted=ahead, tuned=noisy)) == (
        "As shipped, compared with cross-entropy on 3 splits, weighted was better beyond noise; tuned cannot be told "
        "from it."
    )
    assert verdict(with_differences(compared, weighted=ahead, tuned=behind)) == (
        "As shipped, compared with cross-entropy on 3 splits, weighted was better and tuned was worse beyond noise."
    )
    assert "One split says nothing" in verdict(dataclasses.replace(compared, seeds=(1,)))


def test_compare_on_the_command_line(table, capsys):
    arguments = ["compare", *FIT[1:-2], "--trials", "2", "--solvers", "weighted", "--confidence", "0.8"]
    main_ok(*arguments)
    heard = capsys.readouterr()
    rows = {line.split()[0]: line.split() for line in heard.out.splitlines() if line.strip()}
    main_ok(*arguments, "--json", "--quiet")
    quiet = capsys.readouterr()
    answer = json.loads(quiet.out)
    assert quiet.err == ""
    plain, weighted = answer["solvers"]
    assert rows["weighted"][1] == f"{100 * weighted['mean_shipped_on_test']:.2f}%"
    assert rows["cross-entropy"][1] == f"{100 * plain['mean_shipped_on_test']:.2f}%"
    assert rows["weighted"][-2] == f"{100 * weighted['mean_best_on_test']:.2f}%"
    assert rows["weighted"][2].rstrip("*") == f"{100 * weighted['difference']:+.2f}"
    assert heard.out.splitlines()[-1] == answer["verdict"]
    assert "certified at 0.8" in heard.out
    assert answer["seeds"] == [0, 1]
    main_ok(*arguments, "--quiet")
    assert capsys.readouterr().out.splitlines() == [answer["verdict"]]
    assert sorted(path.name for path in table.iterdir()) == ["loans.csv", "loans.parquet"]


def test_the_usual_solvers_suit_the_ask_and_the_model():
    problem = ask(ASK)
    assert usual_solvers(problem, "linear")[:4] == ["cross-entropy", "weighted", TUNED, "default"]
    assert TUNED not in usual_solvers(problem, "mlp")
    assert "implicit" in usual_solvers(problem, "mlp")


def test_the_page_names_the_fields_of_runs_and_comparisons(run, compared):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    answer = compared.to_dict()
    fields = {*run.to_dict(), *run.to_dict()["results"][run.chosen.name], *answer, *answer["solvers"][0]} - {*run.sizes}
    assert {field for field in fields if f"`{field}`" not in page} == set()
