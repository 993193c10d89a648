"""`setpoint compare`: the same splits for every method, an honest error, and a verdict that admits noise."""

from __future__ import annotations

import dataclasses
import io
import json
import statistics
from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from doors import ASK, FIT, main_ok
from marks import slow
from setpoint import ask
from setpoint.commands.compare import running_table
from setpoint.report.explained import verdict
from setpoint.run.compare import News, Trials, compare_table, usual_solvers
from setpoint.run.settings import Settings
from setpoint.run.standing import Noise, Standing, held_against
from setpoint.run.table import fit_table
from setpoint.train.default import TUNED
from tables import loans

COMPARED = "minimize fnr where fpr <= 3%"


@pytest.fixture(scope="module")
def compared():
    names = ["weighted", "tuned", "cross-entropy"]
    settings = Settings(seed=3, confidence=None)
    return compare_table(loans(), "default", ask(COMPARED), settings, Trials(names, 3, stop_early=False))


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
    alone = held_against(made("weighted", [1.0]), made("cross-entropy", [0.0]), Noise(3, 1, 0.25))
    assert (alone.standard_error, alone.margin) == (None, None)


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
            error = np.std(means, ddof=1) * (Noise(10, 1, 40 / 160).error(10) if corrected else 1 / np.sqrt(10))
            wrong[corrected] += abs(np.mean(means)) > error * scipy.stats.t.ppf(0.975, 9)
    assert wrong[True] < 0.12 * 400
    assert wrong[False] > 1.5 * wrong[True]


def made(name, shipped):
    """The standing of a solver with these results."""
    every = tuple(True for _ in shipped)
    shipped = tuple(shipped)
    return Standing(name, shipped, every, every, shipped, shipped, tuple(1.0 for _ in shipped))


def is_clear(differences, noise):
    return held_against(made("a", differences), made("b", [0.0] * len(differences)), noise).is_clear


@given(
    st.lists(st.floats(-1, 1).map(lambda value: round(value, 4)), min_size=2, max_size=6),
    st.integers(1, 6),
    st.sampled_from([1, 4, 7]),
    st.sampled_from([0.05, 0.25, 1.0]),
)
def test_a_stopped_solver_would_not_have_been_clear_whatever_came(ran, left, compared, overlap):
    """The hardest case is the search's: equal results that agree with those before them; random ones are tried too."""
    noise = Noise(len(ran) + left, compared, overlap)
    tried = [[value] * left for value in np.linspace(-3, 3, 121)]
    if sum(ran):
        tried.append([sum(value**2 for value in ran) / sum(ran)] * left)
    tried += np.random.default_rng(0).normal(size=(20, left)).tolist()
    reachable = any(is_clear([*ran, *rest], noise) for rest in tried)
    if noise.is_settled(ran):
        assert not reachable
        assert not is_clear(ran, noise)
    elif sum(ran):
        # The rule stops as early as it can: where it does not stop, some results would have been clear.
        assert reachable


def test_clear_differences_and_single_splits_are_never_settled():
    noise = Noise(5, 1, 0.25)
    assert not noise.is_settled([0.3, 0.31, 0.3, 0.305])
    assert not noise.is_settled([0.0])
    assert noise.is_settled([0.0, 0.0])
    assert not noise.is_settled([0.1, -0.1, 0.1, -0.1, 0.1])


class Told(list):
    """A listener to the news of a comparison."""

    def __call__(self, news):
        self.append(news)


@slow
def test_stopping_early_changes_no_result_and_no_verdict():
    """On made worlds: solvers that are level with cross-entropy are stopped, and the rest is that of the full run."""
    stopped = 0
    for seed, model in ((0, "linear"), (7, "linear")):
        names, settings, told = ["weighted", "default", "model trees"], Settings(seed=seed, model=model), Told()
        early, full = (
            compare_table(
                loans(seed=seed), "default", ask(COMPARED), settings, Trials(names, 6, stop_early=stop), on_news=told
            )
            for stop in (True, False)
        )
        assert not any(one.stopped for one in full.standings)
        for ours, whole in zip(early.standings, full.standings):
            assert ours.shipped == whole.shipped[: ours.trials]
            assert ours.best == whole.best[: ours.trials]
            assert ours.differences == whole.differences[: ours.trials]
            assert ours.is_clear == whole.is_clear
            assert ours.stopped == (ours.trials < 6) or ours.solver == "cross-entropy"
            stopped += ours.stopped
        assert verdict(early).split(", which hides")[0] == verdict(full).split(", which hides")[0]
        ended = [(news.split, news.solver) for news in told if news.ended]
        assert len(ended) == sum(one.trials for one in (*early.standings, *full.standings))
        assert ended[0] == (1, "weighted")
    assert stopped > 0


def with_differences(compared, **differences):
    """The comparison with other differences from cross-entropy."""
    changed = {standing.solver: standing for standing in compared.standings}
    for name, own in differences.items():
        error = statistics.stdev(own) * np.sqrt(1 / len(own) + 0.25)
        noise = {"standard_error": error, "margin": error * 6.2, "hidden": error * 6.2}
        changed[name] = dataclasses.replace(changed[name], differences=tuple(own), **noise)
    return dataclasses.replace(compared, standings=tuple(changed.values()))


def test_the_verdict_admits_noise(compared):
    noisy, ahead, behind = [0.01, -0.02, 0.03], [-0.1, -0.101, -0.1], [0.1, 0.101, 0.1]
    assert verdict(with_differences(compared, weighted=noisy, tuned=noisy)).startswith(
        "As shipped, no method differs from cross-entropy by more than the noise of 3 splits, which hides differences"
    )
    wide, wider = ([size * value for value in noisy] for size in (10, 30))
    assert "hides differences up to 119 to 358 points: " in verdict(
        with_differences(compared, weighted=wide, tuned=wider)
    )
    alike = [0.0, 0.0, 0.0]
    assert "hides differences up to 12 points: " in verdict(with_differences(compared, weighted=noisy, tuned=alike))
    assert verdict(with_differences(compared, weighted=alike, tuned=alike)) == (
        "As shipped, no method differs from cross-entropy on any of these splits: take the simplest."
    )
    assert verdict(with_differences(compared, weighted=ahead, tuned=noisy)) == (
        "As shipped, compared with cross-entropy on 3 splits, cross-entropy with balanced classes was better beyond "
        "noise; cross-entropy with tuned class weights cannot be told from it."
    )
    assert verdict(with_differences(compared, weighted=ahead, tuned=behind)) == (
        "As shipped, compared with cross-entropy on 3 splits, cross-entropy with balanced classes was better and "
        "cross-entropy with tuned class weights was worse beyond noise."
    )
    told = with_differences(compared, weighted=noisy, tuned=noisy)
    assert verdict(told).endswith("points: give 5 --trials or more, since so few splits say little.")
    told = dataclasses.replace(told, seeds=(1, 2, 3, 4, 5))
    assert verdict(told).endswith("points: take the simplest, or give more --trials or more rows.")
    assert "One split says nothing" in verdict(dataclasses.replace(compared, seeds=(1,)))


def test_compare_on_the_command_line(table, capsys):
    arguments = ["compare", *FIT[1:-2], "--trials", "2", "--solvers", "weighted", "--confidence", "0.8"]
    main_ok(*arguments)
    heard = capsys.readouterr()
    rows = {line.strip().split("  ")[0]: line.split() for line in heard.out.splitlines() if line.strip()}
    main_ok(*arguments, "--json", "--quiet")
    quiet = capsys.readouterr()
    answer = json.loads(quiet.out)
    assert quiet.err == ""
    plain, weighted = answer["solvers"]
    assert weighted["label"] == "cross-entropy with balanced classes"
    ours = rows[weighted["label"]][4:]
    assert ours[0] == f"{100 * weighted['mean_shipped_on_test']:.2f}%"
    assert rows["cross-entropy"][1] == f"{100 * plain['mean_shipped_on_test']:.2f}%"
    assert ours[-3] == f"{100 * weighted['mean_best_on_test']:.2f}%"
    assert ours[-1] == "2"
    assert ours[1].rstrip("*") == f"{100 * weighted['difference']:+.2f}"
    assert heard.out.splitlines()[-1] == answer["verdict"]
    lines = [line for line in heard.err.splitlines() if line.startswith("split ")]
    assert [line.split(",")[0] for line in lines] == [
        f"split {split} of 2: {name}" for split in (1, 2) for name in (weighted["label"], "cross-entropy")
    ]
    assert "certified at 80%" in heard.out
    assert answer["seeds"] == [0, 1]
    main_ok(*arguments, "--quiet")
    assert capsys.readouterr().out.splitlines() == [answer["verdict"]]
    assert sorted(path.name for path in table.iterdir()) == ["loans.csv", "loans.parquet"]


@slow
def test_stopping_early_on_the_command_line(table, capsys):
    """The default method is often plain cross-entropy here: two equal splits of four settle it."""
    arguments = ["compare", *FIT[1:-2], "--trials", "4", "--solvers", "weighted,default", "--json", "--quiet"]
    answers = []
    for more in ([], ["--all-trials"], ["--confidence", "0.8"]):
        main_ok(*arguments, *more)
        answers.append(json.loads(capsys.readouterr().out))
    early, *full = ([(one["trials"], one["stopped"]) for one in answer["solvers"]] for answer in answers)
    assert full == [[(4, False)] * 3] * 2
    assert any(stopped and trials < 4 for trials, stopped in early)
    for ours, whole in zip(answers[0]["solvers"], answers[1]["solvers"]):
        assert ours["shipped_on_test"] == whole["shipped_on_test"][: ours["trials"]]
        assert ours["clear"] == whole["clear"]


def news():
    """A comparison whose last method is being trained on its third split; one was stopped after two."""
    plain, noise = made("cross-entropy", [0.6407] * 3), Noise(12, 3, 0.25)
    ours = [held_against(made(name, shipped), plain, noise) for name, shipped in OURS.items()]
    return News(3, "tuned", 0.4, (plain, dataclasses.replace(ours[0], stopped=True), *ours[1:]), ended=True)


OURS = {"weighted": [0.6361, 0.6491], "model trees": [0.5188, 0.5212, 0.5175], "tuned": [0.5288, 0.4512, 0.5175]}


@pytest.mark.parametrize("terminal", [True, False])
def test_the_running_table_shows_every_word_in_80_columns(terminal):
    heard = io.StringIO()
    screen = Console(file=heard, width=80, force_terminal=terminal, color_system=None, highlight=False)
    with running_table(screen, ask(COMPARED), Trials(list(OURS), 12)) as on_news:
        on_news(news())
    text = " ".join(heard.getvalue().split())
    line = "split 3 of 12: cross-entropy with tuned class weights"
    assert "\u2026" not in text
    if not terminal:
        assert heard.getvalue() == f"{line}, fnr 51.75%, 1.0 seconds\n"
        return
    assert line in text
    for word in ("boosted trees", "stopped: 2", "64.07%", "-12.15 ± 0.14*", "splits", "of 12", "40% trained"):
        assert word in text


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
