"""`setpoint watch` and `setpoint calibrate`: looks of every kind, exit codes, kills, and a threshold set anew."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import setpoint as sp
from doors import FIT, answer, code_of, main_ok
from marks import slow
from setpoint import files
from setpoint.data.scan import scan_table
from setpoint.decide.drift import Drifted
from setpoint.problem.watch import Watch
from setpoint.report.watching import advice, drift_words
from setpoint.run.artefact import load_run
from setpoint.serve.stored import RECORD
from tables import loans

MONTHS = 24


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("watched")
    loans(2000).write_csv(place / "loans.csv")
    here = Path.cwd()
    os.chdir(place)
    try:
        main_ok(*FIT, "--model", "linear", "--quiet")
    finally:
        os.chdir(here)
    return place


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    shutil.copytree(trained / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def month(name, rows=300, seed=1, moved=0):
    loans(rows, seed).with_columns(pl.col("amount") + moved).write_csv(name)
    return name


def test_looks_add_up_and_a_batch_is_counted_once(place, capsys):
    assert code_of("watch", "run", month("july.csv")) == 0
    assert "The promise is" in capsys.readouterr().out
    code, found = answer(capsys, "watch", "run", month("august.csv", seed=2))
    assert (code, found["looks"], found["broken"]) == (0, 2, False)
    before = (place / "run" / RECORD).read_bytes()
    assert code_of("watch", "run", "august.csv") == 0
    assert "counted before, as entry 3" in capsys.readouterr().err
    assert (place / "run" / RECORD).read_bytes() == before
    # The counts are those of `evaluate` on both months.
    frames = [pl.read_csv(name) for name in ("july.csv", "august.csv")]
    saved = load_run("run")
    judged = saved.point.judge(saved.scores(pl.concat(frames)), saved.schema.labels(pl.concat(frames)))
    assert found["bounds"][0]["rate"] == pytest.approx(judged.rates["fpr"])


def test_a_broken_bound_and_a_new_threshold(place, capsys):
    for seed in range(3):
        code, found = answer(capsys, "watch", "run", month(f"{seed}.csv", seed=seed, moved=900))
    assert (code, found["broken"]) == (1, True)
    assert "setpoint calibrate run" in found["advice"][0]
    old = load_run("run").point
    assert code_of("calibrate", "run", month("fresh.csv", rows=900, seed=9, moved=900)) == 0
    assert "Certificate: fpr <= 20%" in capsys.readouterr().out
    new = load_run("run").point
    assert new.threshold > old.threshold
    code, found = answer(capsys, "watch", "run", month("later.csv", seed=12, moved=900))
    assert (code, found["looks"], found["broken"]) == (0, 1, False)
    kept = [entry for entry in Watch.load(place / "run" / RECORD).entries if entry["kind"] == "calibrated"]
    assert kept[0]["before"] == old.to_dict()
    assert code_of("calibrate", "run", "fresh.csv", "--quiet") == 0
    assert load_run("run").point == new
    assert code_of("calibrate", "run", month("few.csv", rows=20, seed=3), "--confidence", "0.999", "--quiet") == 3


@pytest.mark.parametrize(
    ("ask", "said"),
    [("minimize fnr where fpr <= 0%", "fresh.csv."), ("minimize fnr where fpr <= 10%", "29 negatives.")],
)
def test_a_bound_without_room_is_advised_on_without_a_number_of_rows(ask, said):
    scores, labels = np.arange(200) / 200, np.arange(200) >= 100
    watch = sp.evaluate(ask, scores, labels).watch().update(scores + 0.5, labels)
    assert watch.broken
    assert advice(watch, "run", [])[0].endswith(said)


def test_drift_alone_and_labels_that_come_late(place, capsys):
    table = loans(300, 5).with_columns(id=pl.format("s-{}", pl.int_range(300)))
    table.drop("default").write_csv("scored.csv")
    table.select("id", "default").sample(200, seed=1).write_csv("labels.csv")
    code, found = answer(capsys, "watch", "run", "scored.csv", "--scores", "--key", "id")
    assert (code, found["looks"], found["waiting"]) == (0, 0, 300)
    # Only the scores have rows from before to be compared with.
    tested = [one["name"] for one in found["drift"] if one["looks"]]
    (words,) = drift_words([Drifted(**{k: v for k, v in one.items() if k != "drifts"}) for one in found["drift"]])
    assert tested == ["scores"]
    assert words.startswith("No drift is found in 1 test. These rows are the reference of ")
    # The reference is the calibration rows at the threshold that ships.
    rates = load_run("run").point.rates
    assert {one["rate"]: one["estimate"] for one in found["without_labels"]} == pytest.approx(
        {name: rates[name] for name in ("fnr", "fpr")}
    )
    code, found = answer(capsys, "watch", "run", "labels.csv", "--labels", "--key", "id")
    assert (code, found["looks"], found["waiting"]) == (0, 1, 100)
    labelled = table.join(pl.read_csv("labels.csv").select("id"), on="id")
    saved = load_run("run")
    judged = saved.point.judge(saved.scores(labelled, ignore_extra=True), saved.schema.labels(labelled))
    assert found["bounds"][0]["rate"] == pytest.approx(judged.rates["fpr"])
    for seed in range(3):
        month(f"{seed}.csv", seed=seed, moved=900)
        pl.read_csv(f"{seed}.csv").drop("default").write_csv(f"{seed}.csv")
        code, found = answer(capsys, "watch", "run", f"{seed}.csv", "--scores")
    assert (code, found["broken"]) == (4, False)
    assert "scores" in [one["name"] for one in found["drift"] if one["drifts"]]


def test_a_stream_is_counted_as_the_whole_table(place, capsys, monkeypatch):
    month("july.csv", rows=500)
    monkeypatch.setattr("setpoint.data.exchange.scan_table", partial(scan_table, chunk=4000))
    _, found = answer(capsys, "watch", "run", "july.csv", "--stream")
    shutil.rmtree("run/watch")
    monkeypatch.undo()
    os.chdir(place)
    _, whole = answer(capsys, "watch", "run", "july.csv")
    assert found["bounds"] == whole["bounds"]


def test_a_new_run_in_its_place_takes_the_watch_along(place, trained, capsys):
    assert code_of("watch", "run", month("july.csv")) == 0
    shutil.copy(trained / "loans.csv", "loans.csv")
    main_ok(*FIT, "--model", "linear", "--quiet", "--force")
    assert not Path("run", "watch").exists()


@pytest.mark.parametrize("at", range(4))
def test_a_kill_while_writing_leaves_the_old_state_or_the_new(place, monkeypatch, at):
    """The n-th move of a file into its place fails, then the command is given again."""
    table = loans(100, 5).with_columns(id=pl.format("s-{}", pl.int_range(100)))
    table.write_csv("scored.csv")
    given = ["watch", "run", "scored.csv", "--scores", "--key", "id", "--quiet"]
    shutil.copytree("run", "undisturbed")
    main_ok(*[word if word != "run" else "undisturbed" for word in given])
    moves, move = [], os.replace

    def killed(*paths):
        moves.append(paths)
        if len(moves) == at + 1:
            raise KeyboardInterrupt
        move(*paths)

    monkeypatch.setattr(files.os, "replace", killed)
    code_of(*given)
    monkeypatch.setattr(files.os, "replace", move)
    main_ok(*given)
    assert state_of("run") == state_of("undisturbed")


def state_of(run):
    return {path.name: path.read_bytes() for path in Path(run, "watch").iterdir()}


def test_rows_to_label_are_drawn_once_and_watched_with_their_weights(place, capsys):
    loans(3000, 7).write_csv("batch.csv")
    main_ok("watch", "run", "batch.csv", "--plan", "300", "--out", "to_label.csv", "--json")
    told = json.loads(capsys.readouterr().out)
    drawn = pl.read_csv("to_label.csv")
    assert drawn.height == told["drawn"] == pytest.approx(300, rel=0.3)
    before = Path("to_label.csv").read_bytes(), state_of("run")
    main_ok("watch", "run", "batch.csv", "--plan", "300", "--out", "to_label.csv", "--quiet")
    assert (Path("to_label.csv").read_bytes(), state_of("run")) == before, "the same rows are drawn again"
    assert code_of("watch", "run", "to_label.csv", "--weight", "weight", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["looks"] == 1
    assert 0 < answer["bounds"][0]["samples"][0] < drawn.height
    kinds = [entry["kind"] for entry in Watch.load("run/watch/state.json").entries]
    assert kinds == ["reference", "planned", "look"]
    assert code_of("evaluate", "run", "to_label.csv", "--weight", "weight", "--json") == 0
    assert json.loads(capsys.readouterr().out)["holds"]
    main_ok("calibrate", "run", "to_label.csv", "--weight", "weight", "--quiet")
    main_ok("report", "run")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--weight", "weight", "--scores"], "leave out --scores"),
        (["--plan", "9"], "it needs --out"),
        (["--plan", "99999", "--out", "o.csv"], "from 1 to the 300"),
        (["--weight", "nothing"], "no column 'nothing' of weights"),
        (["--weight", "amount"], "holds no number above 0"),
        (["--weight", "region"], "give the largest weight that can occur"),
        (["--most-weight", "2"], "name the column with --weight"),
    ],
)
def test_plans_and_weights_that_cannot_be_are_refused(place, capsys, given, says):
    assert code_of("watch", "run", month("batch.csv"), *given) == 2
    assert says in capsys.readouterr().err.replace("\n", " ")


#: A process that says when the command begins, so that the kill falls into its work and not into its imports.
WORKER = """import sys
from setpoint.cli import main
from setpoint.commands import calibrate, watch
print(flush=True)
main(sys.argv[1:])
"""


@slow
def test_24_months_with_kills_at_random_moments_give_the_same_state(place):
    """A script as cron would run it; in every other month a real process is killed, then the command is given again."""
    script = []
    for number in range(MONTHS):
        table = loans(150, number).with_columns(id=pl.format(f"{number}-{{}}", pl.int_range(150)))
        table.drop("default").write_csv(f"scored-{number}.csv")
        table.select("id", "default").write_csv(f"labels-{number}.csv")
        script.append(["watch", "RUN", f"scored-{number}.csv", "--scores", "--key", "id"])
        if number:
            script.append(["watch", "RUN", f"labels-{number - 1}.csv", "--labels", "--key", "id"])
    loans(900, 99).write_csv("fresh.csv")
    script.insert(len(script) // 2, ["calibrate", "RUN", "fresh.csv"])
    shutil.copytree("run", "undisturbed")
    spent = []
    for command in script:
        begun = time.perf_counter()
        code_of(*[word.replace("RUN", "undisturbed") for word in command], "--quiet")
        spent.append(time.perf_counter() - begun)
    chance, kills = random.Random(0), 0
    for number, (command, seconds) in enumerate(zip(script, spent)):
        given = [*(word.replace("RUN", "run") for word in command), "--quiet"]
        if number % 6 == 1 or command[0] == "calibrate":
            process = subprocess.Popen([sys.executable, "-c", WORKER, *given], stdout=subprocess.PIPE)
            process.stdout.readline()
            time.sleep(chance.uniform(0, seconds))
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        code_of(*given)
    assert kills >= MONTHS / 4
    # The labels of the rows that waited when the threshold was set anew find none; calibrate makes two entries.
    assert len(Watch.load("run/watch/state.json").entries) == len(script) + 1
    assert state_of("run") == state_of("undisturbed")
