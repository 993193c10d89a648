"""Runs fitted with `--cluster`: evaluate, watch and calibrate go by the cluster column of the run, too."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from doors import answer, code_of, main_ok
from setpoint.data.scan import scan_table
from setpoint.problem.watch import Watch
from setpoint.run.artefact import SavedRun, load_run
from setpoint.serve.stored import RECORD

ASK = "minimize fnr where fpr <= 10%"


def visits(seed, patients=60, each=25, first=0, moved=0.0):
    """Rows of patients whose scores share most of their noise."""
    draw = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), each)
    ill = (draw.random(len(patient)) < 0.3).astype(int)
    value = 1.5 * draw.normal(size=patients)[patient] + draw.normal(size=len(patient)) + 2 * ill + moved * (ill == 0)
    other = draw.integers(0, 5, len(patient))
    return pl.DataFrame({"patient": [f"p{first + one}" for one in patient], "value": value, "other": other, "ill": ill})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place, here = tmp_path_factory.mktemp("clusters"), Path.cwd()
    os.chdir(place)
    try:
        visits(1, 400, 10).write_csv("visits.csv")
        fit = ("fit", "visits.csv", "--target", "ill", "--cluster", "patient", "--ask", ASK, "--model", "linear")
        main_ok(*fit, "--quiet")
        # The threshold at which the false positive rate is 10 %, over so many patients that hardly any noise is left.
        visits(2, 40000, 1).write_csv("many.csv")
        main_ok("calibrate", "run", "many.csv", "--confidence", "none", "--quiet")
    finally:
        os.chdir(here)
    return place


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    shutil.copytree(trained / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, *args, **kwargs):
    visits(*args, **kwargs).write_csv(name)
    return name


def test_a_kept_promise_is_no_broken_one_because_rows_depend(place):
    """20 looks at the 5 % level; with rows for independent, four and more of them are alarms."""
    run = load_run("run")
    alarms = {True: 0, False: 0}
    for seed in range(20):
        frame = visits(100 + seed)
        scores, labels = run.scores(frame), run.schema.labels(frame)
        for known in alarms:
            clusters = run.clusters(frame) if known else None
            alarms[known] += not run.point.check(scores, labels, clusters=clusters).holds
    assert alarms[True] <= 2
    assert alarms[False] >= 4


def test_evaluate_counts_patients_in_memory_and_in_chunks(place, capsys, monkeypatch):
    code, whole = answer(capsys, "evaluate", "run", write("july.csv", 3))
    assert (code, whole["bounds"][0]["units"], whole["bounds"][0]["samples"]) == (0, "clusters", [60])
    with monkeypatch.context() as small:
        small.setattr("setpoint.data.exchange.scan_table", partial(scan_table, chunk=4000))
        _, chunks = answer(capsys, "evaluate", "run", "july.csv", "--stream")
    assert chunks["bounds"][0] == {**whole["bounds"][0], "p_value": pytest.approx(whole["p_value"])}
    assert code_of("evaluate", "run", "july.csv") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "clusters" in told
    assert "a tested rate is that of a random row of a random 'patient'" in told
    assert code_of("evaluate", "run", write("worse.csv", 4, moved=2.0), "--quiet") == 1


@pytest.mark.parametrize("command", ["evaluate", "watch", "calibrate"])
def test_a_table_without_the_column_is_asked_for_it(place, capsys, command):
    visits(3).drop("patient").write_csv("bare.csv")
    for more in ((), ("--stream",)):
        assert code_of(command, "run", "bare.csv", *more) == 2
        said = capsys.readouterr().err
        assert "no column 'patient', by which the run was fitted with --cluster" in said or "leave out --stream" in said
        assert len(said.strip().splitlines()) == 1
    visits(3).with_columns(patient=pl.lit(None)).write_csv("missing.csv")
    assert code_of(command, "run", "missing.csv") == 2
    assert "column 'patient' is missing in 1500 of 1500 rows" in capsys.readouterr().err


def test_a_new_threshold_is_certified_over_patients(place, capsys):
    assert code_of("calibrate", "run", write("fresh.csv", 5), "--confidence", "0.95") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "for a random row of a random cluster" in said
    assert "of 1500 rows, one of each cluster" in said
    assert load_run("run").point.certificate.samples <= 60
    entry = next(one for one in reversed(Watch.load(Path("run") / RECORD).entries) if one["kind"] == "calibrated")
    assert len(entry["keys"]) == 16 * 60
    code, found = answer(capsys, "watch", "run", write("again.csv", 6))
    assert (code, found["bounds"][0]["samples"]) == (0, [0]), "the same patients set the threshold"
    assert code_of("calibrate", "run", write("more.csv", 7), "--stream") == 2
    assert "certified over clusters in memory" in capsys.readouterr().err


def test_watch_counts_each_patient_once_with_labels_that_come_late_too(place, capsys, monkeypatch):
    july = visits(8, first=100000)
    july.write_csv("july.csv")
    _, found = answer(capsys, "watch", "run", "july.csv")
    assert (found["bounds"][0]["samples"], found["drift"]) == ([60], [])
    record = Watch.load(Path("run") / RECORD)
    shutil.copytree("run", "other")
    shutil.rmtree("other/watch")
    with monkeypatch.context() as small:
        small.setattr("setpoint.data.exchange.scan_table", partial(scan_table, chunk=4000))
        _, streamed = answer(capsys, "watch", "other", "july.csv", "--stream")
    assert streamed["bounds"][0]["samples"] == [60]
    assert code_of("watch", "run", write("again.csv", 9, first=100030)) == 0
    told = capsys.readouterr()
    assert "30 values of 'patient' were counted before and are left out" in told.err
    assert "Drift is not tested, since rows of one 'patient' depend on each other" in " ".join(told.out.split())
    keyed = visits(10, first=100090).with_row_index("id")
    keyed.drop("ill").write_csv("scored.csv")
    keyed.select("id", "ill").write_csv("labels.csv")
    assert code_of("watch", "run", "scored.csv", "--scores", "--key", "id", "--quiet") == 0
    code, found = answer(capsys, "watch", "run", "labels.csv", "--labels", "--key", "id")
    assert (code, found["bounds"][0]["samples"]) == (0, [150])
    assert len(Watch.load(Path("run") / RECORD).looks) == len(record.looks) + 2


def test_weights_and_plans_are_refused_beside_clusters(place, capsys):
    visits(11).with_columns(w=pl.lit(1.0)).write_csv("w.csv")
    assert code_of("watch", "run", "w.csv", "--weight", "w", "--most-weight", "2") == 2
    assert "rows with weights are not tested by clusters" in capsys.readouterr().err
    assert code_of("watch", "run", "w.csv", "--plan", "50", "--out", "o.csv") == 2
    assert "leave out --plan and --weight" in capsys.readouterr().err
    assert code_of("evaluate", "run", "w.csv", "--weight", "w", "--most-weight", "2") == 2
    assert "not tested beside clusters" in capsys.readouterr().err
    assert code_of("calibrate", "run", "w.csv", "--weight", "w", "--most-weight", "2", "--quiet") == 0


@pytest.fixture
def begun(place, monkeypatch):
    """A function that begins the record of a run without clusters: it holds references of every feature."""

    def look(*arguments):
        with monkeypatch.context() as early:
            early.setattr(SavedRun, "cluster", None)
            assert code_of("watch", "run", *arguments, "--ignore-extra", "--quiet") != 2

    # The run was calibrated, which began a record.
    (place / "run" / RECORD).unlink()
    return look


def test_a_record_with_looks_without_clusters_is_begun_anew(begun, capsys):
    begun(write("old.csv", 12))
    assert code_of("watch", "run", write("new.csv", 13, first=1000)) == 2
    said = capsys.readouterr().err.strip()
    assert "holds looks without the 'patient' of each row" in said
    assert "run setpoint calibrate on fresh labelled rows to begin anew" in said
    assert len(said.splitlines()) == 1
    assert code_of("calibrate", "run", write("fresh.csv", 14, first=2000), "--quiet") == 0
    assert answer(capsys, "watch", "run", "new.csv")[1]["bounds"][0]["samples"] == [60]


def test_a_record_with_rows_that_wait_without_clusters_is_begun_anew(begun, capsys):
    keyed = visits(15).with_row_index("id")
    keyed.drop("ill").write_csv("scored.csv")
    keyed.select("id", "ill").write_csv("labels.csv")
    begun("scored.csv", "--scores", "--key", "id")
    visits(16, first=1000).drop("ill").with_row_index("id", offset=9000).write_csv("more.csv")
    for arguments in (("labels.csv", "--labels"), ("more.csv", "--scores")):
        assert code_of("watch", "run", *arguments, "--key", "id") == 2
        said = capsys.readouterr().err.strip()
        assert "holds waiting rows without the 'patient' of each row" in said
        assert len(said.splitlines()) == 1
    # References of features that were kept without clusters are left aside.
    code, found = answer(capsys, "watch", "run", write("new.csv", 17, first=2000))
    assert (code, found["bounds"][0]["samples"], found["drift"]) == (0, [60], [])
    assert code_of("calibrate", "run", write("fresh.csv", 18, first=3000), "--quiet") == 0
    assert code_of("watch", "run", "more.csv", "--scores", "--key", "id", "--quiet") == 0


def test_rows_whose_labels_never_come_need_no_cluster(place, capsys):
    visits(19).drop("patient", "ill").with_row_index("id").write_csv("bare.csv")
    assert code_of("watch", "run", "bare.csv", "--scores", "--key", "id") == 2
    assert "no column 'patient'" in capsys.readouterr().err
    visits(19).drop("patient", "ill").write_csv("bare.csv")
    assert code_of("watch", "run", "bare.csv", "--scores", "--quiet") == 0
