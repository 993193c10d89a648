"""A `dask.dataframe` as a table: the answers of the same rows in files, wherever its partitions are."""

from __future__ import annotations

import json
import pickle

import dask
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import setpoint as sp
from doors import main_ok
from marks import slow
from setpoint.cli import main
from setpoint.data.dask_frame import Partitions
from setpoint.data.partitions import DaskWorkers
from setpoint.data.scan import scan_table
from setpoint.errors import BadSetting, BadTable
from setpoint.integrations import dask as on_dask
from setpoint.run.artefact import load_run
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream

ASK = "minimize fnr where fpr <= 5%"
SIZES = (1500, 2100, 900)


def rows_of(rows, seed):
    draw = np.random.default_rng(seed)
    x, job = draw.normal(size=(rows, 2)), draw.choice(["clerk", "nurse", "cook"], rows)
    y = x @ [1.0, -0.5] + (job == "cook") + draw.logistic(size=rows) > 1.5
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "job": job, "y": y.astype(int)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files that are one chunk and one partition each, and new rows."""
    place = tmp_path_factory.mktemp("files")
    for number, rows in enumerate(SIZES):
        rows_of(rows, number).write_parquet(place / f"{number}.parquet")
    rows_of(2500, 9).write_parquet(place / "new.parquet")
    return place


def paths_of(files):
    return [files / f"{number}.parquet" for number in range(len(SIZES))]


def table_of(files):
    return dd.read_parquet([str(path) for path in paths_of(files)])


@pytest.fixture(scope="module")
def client():
    """The threads of this process: no worker processes have to start."""
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as made:
        yield made


def test_a_run_of_a_dask_frame_is_that_of_its_rows_in_files(client, files, tmp_path):
    run = on_dask.fit(table_of(files), "y", ASK, tmp_path / "run", client=client)
    alone = fit_stream(scan_table(paths_of(files)), "y", sp.ask(ASK), Settings(solver="sums"))
    assert run.point.to_dict() == alone.chosen.point.to_dict()
    assert run.schema == alone.schema
    state, own = load_run(tmp_path / "run").model.state_dict(), alone.chosen.trained.model.state_dict()
    assert all(torch.equal(state[name], own[name]) for name in own)
    assert run.about["data"]["rows"] == sum(SIZES)
    # A persisted frame is asked of the workers that hold it.
    held = on_dask.fit(table_of(files).persist(), "y", ASK, tmp_path / "held", client=client)
    assert held.point.to_dict() == run.point.to_dict()
    assert held.about["data"] == run.about["data"]


def test_every_other_door_gives_the_answer_of_the_command(client, files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, new = table_of(files), dd.read_parquet(str(files / "new.parquet"))
    told = {}
    for name in ("ours", "theirs"):
        on_dask.fit(table, "y", ASK, name, client=client)
    for command in (["evaluate"], ["watch"], ["calibrate", "--confidence", "0.9"]):
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main([command[0], "theirs", str(files / "new.parquet"), *command[1:], "--json", "-q", "--stream"])
        told[command[0]] = json.loads(capsys.readouterr().out)
        if command == ["watch"]:
            theirs = sp.Watch.load("theirs/watch/state.json")
    judged = on_dask.evaluate("ours", new, client=client)
    assert judged.rows == told["evaluate"]["rows"] == 2500
    assert judged.here.rates == told["evaluate"]["rates"]
    assert judged.check.p_value == told["evaluate"]["p_value"]
    assert judged.best.threshold == told["evaluate"]["best"]["threshold"]
    watched = on_dask.watch("ours", new, "new.parquet", client=client)
    looks = [[entry["counts"] for entry in each.entries if entry["kind"] == "look"] for each in (watched, theirs)]
    assert looks[0] == looks[1]
    assert len(looks[0]) == 1
    # The same rows are not counted twice.
    again = on_dask.watch("ours", new, "again", client=client)
    assert len(again.entries) == len(watched.entries)
    point = on_dask.calibrate("ours", new, 0.9, client=client)
    assert point.to_dict() == told["calibrate"]["point"]
    assert sp.load_run("ours").point.to_dict() == point.to_dict()


def test_answers_are_lazy_and_those_of_the_run(client, files, tmp_path):
    run = on_dask.fit(table_of(files), "y", ASK, tmp_path / "run", client=client)
    new = dd.read_parquet(str(files / "new.parquet")).repartition(npartitions=3)
    given = new.drop(columns=["y"]).assign(place=new.index)
    answers = on_dask.predict(run, given, keep=["place"])
    assert list(answers.columns) == ["place", "score", "decision"]
    found, rows = answers.compute(scheduler="synchronous"), rows_of(2500, 9).drop("y")
    own = run.columns(rows, run.scores(rows))
    assert found.dtypes.to_dict() == answers.dtypes.to_dict()
    assert all((found[name].to_numpy() == values).all() for name, values in own.items())
    assert (found["place"].to_numpy() == np.arange(2500)).all()
    twice = on_dask.predict(run, given.assign(score=0.0), keep=["place", "place"], ignore_extra=True)
    assert list(twice.columns) == ["place", "score", "decision"]
    with pytest.raises(BadTable, match="a kept column cannot be named 'score', as the answer is; rename it first"):
        on_dask.predict(run, given.assign(score=0.0), keep=["place", "score"])
    with pytest.raises(BadTable, match="no column 'plaice' for --keep"):
        on_dask.predict(run, given, keep=["place", "plaice"])
    # Dask knows the same question again, and another run is another question.
    assert answers._name == on_dask.predict(tmp_path / "run", given, keep=["place"])._name
    on_dask.calibrate(tmp_path / "run", new, None, client=client)
    assert answers._name != on_dask.predict(tmp_path / "run", given, keep=["place"])._name


def test_text_that_spells_numbers_and_empty_partitions_are_answered(client, files, tmp_path):
    """Dask's made rows spell no number, so what the answers look like is found without any row."""
    rows = rows_of(2500, 9).with_columns(a=pl.col("a").round(1).cast(pl.String) + " %")
    frame, new = dd.from_pandas(rows.to_pandas(), npartitions=3), rows.drop("y").to_pandas()
    for model in ("linear", "trees"):
        run = on_dask.fit(frame, "y", ASK, tmp_path / model, Settings(model=model), client=client)
        given = dd.concat([dd.from_pandas(new, npartitions=2), dd.from_pandas(new[:0], npartitions=1)])
        answers = on_dask.predict(run, given)
        found = answers.compute(scheduler="synchronous")
        assert found.dtypes.to_dict() == answers.dtypes.to_dict()
        assert (found["score"].to_numpy() == run.scores(rows.drop("y"))).all()
        assert run.columns(new[:0], run.scores(new[:0]))["decision"].shape == (0,)


def test_columns_with_numbers_for_names_are_kept_by_either(client, files, tmp_path):
    rows = rows_of(2500, 9).select(pl.col("a").alias("0"), pl.col("b").alias("1"), "y")
    run = on_dask.fit(dd.from_pandas(rows.to_pandas(), npartitions=2), "y", ASK, tmp_path / "run", client=client)
    given = dd.from_pandas(pd.DataFrame(rows.drop("y").to_numpy()), npartitions=2)
    for keep in ([0], ["0"]):
        answers = on_dask.predict(run, given, keep=keep)
        assert list(answers.columns) == [0, "score", "decision"]
        assert (answers.compute(scheduler="synchronous")[0].to_numpy() == rows["0"].to_numpy()).all()
    with pytest.raises(BadTable, match="no column '7' for --keep"):
        on_dask.predict(run, given, keep=[7])


def odd_frame():
    """Words that are missing in whole partitions, categories, times and an empty partition."""
    words = ["x", "y"] * 100 + [None] * 200
    frame = pd.DataFrame({
        "number": np.arange(400.0), "word": words, "any": pd.Series(words, dtype=object),
        "level": pd.Categorical(["p", "q"] * 200), "time": pd.date_range("2020-01-01", periods=400),
    })  # fmt: skip
    return dd.concat([dd.from_pandas(frame, npartitions=4), dd.from_pandas(frame[:0], npartitions=1)])


@pytest.mark.parametrize("convert", [True, False])
def test_partitions_have_the_types_of_the_frame(client, convert):
    with dask.config.set({"dataframe.convert-string": convert}):
        scan = Partitions(odd_frame(), DaskWorkers(client))
    assert [chunk.rows for chunk in scan.chunks] == [100] * 4
    frames = list(scan)
    assert {str(frame.schema) for frame in frames} == {str(scan.schema)}
    whole = pl.concat(frames)
    assert whole["word"].null_count() == whole["any"].null_count() == 200
    assert whole["number"].to_list() == list(range(400))


def test_a_worker_is_sent_the_graph_of_one_partition(client, tmp_path):
    for number in range(40):
        rows_of(10, number).write_parquet(tmp_path / f"{number:02}.parquet")
    frame = dd.read_parquet(str(tmp_path / "*.parquet")).assign(c=1)
    scan = Partitions(frame, DaskWorkers(client))
    assert len(scan.chunks) == 40
    sent = pickle.dumps(scan.reader(scan.chunks[7]))
    assert b"07.parquet" in sent
    assert b"08.parquet" not in sent


def test_rows_that_change_between_passes_are_refused(client):
    lengths = iter([50, 50, 40, 40])

    def made(part):
        return part[: next(lengths)]

    frame = dd.from_pandas(rows_of(100, 0).to_pandas(), npartitions=1)
    scan = Partitions(frame.map_partitions(made, meta=frame._meta), DaskWorkers(client))
    next(lengths, None)
    with pytest.raises(BadTable, match="persist the frame"):
        scan.read(scan.chunks[0])


def test_a_partition_of_other_types_is_refused(client):
    frame = dd.from_pandas(rows_of(100, 0).to_pandas(), npartitions=2)
    other = frame.map_partitions(lambda part: part.assign(a="many"), meta=frame._meta)
    scan = Partitions(other, DaskWorkers(client))
    with pytest.raises(BadTable, match="other columns or types than the frame says"):
        scan.read(scan.chunks[0])


def test_other_tables_and_questions_are_refused_before_any_work(client, files, tmp_path):
    frame = rows_of(100, 0).to_pandas()
    with pytest.raises(BadTable, match=r"a dask.dataframe is expected, got pandas.DataFrame"):
        on_dask.fit(frame, "y", ASK, tmp_path / "run", client=client)
    with pytest.raises(BadTable, match="has no rows"):
        on_dask.fit(dd.from_pandas(frame[:0], npartitions=1), "y", ASK, tmp_path / "run", client=client)
    with pytest.raises(BadSetting, match="trains linear models and trees"):
        on_dask.fit(table_of(files), "y", ASK, tmp_path / "run", Settings(model="mlp"), client=client)
    assert not (tmp_path / "run").exists()


def test_rows_without_a_label_are_left_out_where_training_did(client, files, tmp_path):
    settings = Settings(drop_missing_target=True)
    on_dask.fit(table_of(files), "y", ASK, tmp_path / "run", settings, client=client)
    gaps = dd.from_pandas(rows_of(600, 9).to_pandas().assign(y=lambda f: f["y"].where(f.index >= 100)), npartitions=2)
    assert on_dask.evaluate(tmp_path / "run", gaps, client=client).rows == 500


@slow
def test_worker_processes_and_trees_give_the_same_answers(files, tmp_path):
    table = table_of(files)
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        # The client in use is found; its workers are sent the trees as text.
        two = on_dask.fit(table, "y", ASK, tmp_path / "two")
        held = on_dask.fit(table.persist(), "y", ASK, tmp_path / "held")
        trees = on_dask.fit(table, "y", ASK, tmp_path / "trees", Settings(model="trees"))
        found = on_dask.predict(trees, dd.read_parquet(str(files / "new.parquet")).drop(columns=["y"])).compute()
    # Without a client, threads of this process.
    one = on_dask.fit(table, "y", ASK, tmp_path / "one")
    assert one.point.to_dict() == two.point.to_dict() == held.point.to_dict()
    assert (found["score"].to_numpy() == trees.scores(rows_of(2500, 9).drop("y"))).all()
    main_ok("predict", str(tmp_path / "trees"), str(files / "new.parquet"), "--out", str(tmp_path / "own.csv"), "-q")
    assert pl.read_csv(tmp_path / "own.csv")["decision"].to_list() == found["decision"].to_list()
