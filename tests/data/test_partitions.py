"""Tables worked on by Dask workers: the same answers as on one machine, to the last bit, also if a worker dies."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import distributed
import numpy as np
import polars as pl
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import setpoint as sp
from doors import main_ok
from marks import slow
from setpoint.cli import main
from setpoint.data import exchange, partitions
from setpoint.data.partitions import workers_at
from setpoint.data.rows import Rows
from setpoint.data.scan import Scan, scan_table
from setpoint.data.standardise import Standardiser
from setpoint.errors import BadSetting, BadTable
from setpoint.run import unfinished
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream
from setpoint.train.by_sums import newton_by_sums

ASK = "minimize fnr where fpr <= 5%"
ROWS = 6_000


def rows_of(rows=ROWS, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 3))
    job = draw.choice(["clerk", "nurse", "cook"], rows)
    y = x @ [1.0, -0.5, 0.25] + (job == "cook") + draw.logistic(size=rows) > 1.5
    return pl.DataFrame(
        {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "job": job, "id": np.arange(rows), "y": y.astype(int)}
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same rows as two Parquet files and as text."""
    place = tmp_path_factory.mktemp("tables")
    frame = rows_of()
    frame[:3500].write_parquet(place / "1.parquet")
    frame[3500:].write_parquet(place / "2.parquet")
    frame.write_csv(place / "all.csv")
    rows_of(4_000, 1).write_parquet(place / "new.parquet")
    return place


@pytest.fixture(scope="module")
def address():
    """A scheduler with two workers."""
    with workers_at("2") as workers:
        yield workers.client.scheduler.address


def small_chunks(monkeypatch):
    """Read so small a table in several chunks."""

    def cut(paths, **how):
        return scan_table(paths, 30_000, **how)

    monkeypatch.setattr(exchange, "scan_table", cut)
    monkeypatch.setattr(unfinished, "scan_table", cut)


def fitted(scan: Scan):
    run = fit_stream(scan, "y", sp.ask(ASK), Settings(solver="sums", drop=("id",)))
    return run, {name: value.clone() for name, value in run.chosen.trained.model.state_dict().items()}


def test_newton_on_sums_is_the_minimum_that_scikit_learn_finds(tables):
    class Loader:
        def map(self, function):
            return (function(rows) for rows in parts)

    frame = rows_of()
    x, y = (
        torch.from_numpy(frame.select("a", "b", "c").to_numpy().copy()),
        torch.from_numpy(frame["y"].to_numpy().copy()),
    )
    parts = [Rows(x[first : first + 700].float(), y[first : first + 700].float()) for first in range(0, ROWS, 700)]
    scaling = Standardiser.of(x.float())
    theta = newton_by_sums(Loader(), scaling, 3.0, torch.zeros(4, dtype=torch.float64))
    weights = np.where(y > 0, 3.0, 1.0)
    weights /= weights.mean()
    features = scaling.with_ones(x.float()).numpy()[:, :-1]
    known = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(features, y.numpy(), weights)
    np.testing.assert_allclose(theta.numpy(), [*known.coef_[0], known.intercept_[0]], rtol=1e-4, atol=1e-5)


@slow
def test_a_model_trained_by_workers_is_that_of_one_machine_bit_for_bit(address, tables):
    for where, paths in ((address, [tables / "1.parquet", tables / "2.parquet"]), ("3", [tables / "all.csv"])):
        scan = scan_table(paths, 50_000)
        assert len(scan.chunks) > 4
        alone, state = fitted(scan)
        with workers_at(where) as scan.workers:
            run, other = fitted(scan)
        assert all(torch.equal(state[name], other[name]) for name in state)
        assert run.schema == alone.schema
        assert run.chosen.point.to_dict() == alone.chosen.point.to_dict()
        assert run.sizes == alone.sizes


@slow
def test_every_command_gives_the_same_answer_with_workers(address, tables, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small_chunks(monkeypatch)
    files = [str(tables / "1.parquet"), str(tables / "2.parquet")]
    new, answers = str(tables / "new.parquet"), {}
    fit = ("fit", *files, "--target", "y", "--ask", ASK, "--model", "linear", "--drop", "id", "-q")
    commands = {
        "evaluate": ["evaluate", new], "watch": ["watch", new], "set": ["calibrate", new, "--confidence", "0.95"],
        "set again": ["calibrate", files[0]], "watch again": ["watch", new, "--name", "2"],
    }  # fmt: skip
    for name, how in (("one", ["--stream", "--solver", "sums"]), ("two", ["--workers", address, "--solver", "sums"])):
        main_ok(*fit, "--out", name, *how)
        more = how[:-2]
        main_ok("predict", name, new, "--out", f"{name}.csv", "--keep", "id", "-q", *more)
        answers[name] = {"predict": (tmp_path / f"{name}.csv").read_text()}
        for command, (first, *rest) in commands.items():
            capsys.readouterr()
            with pytest.raises(SystemExit):
                main([first, name, *rest, "--json", "-q", *more])
            told = json.loads(capsys.readouterr().out)
            answers[name][command] = {key: value for key, value in told.items() if key not in ("hash", "advice")}
    for command, answer in answers["one"].items():
        assert answer == answers["two"][command], command
    assert answers["one"]["evaluate"]["rows"] == 4_000
    # Tallies set the threshold that all scores at once do.
    main_ok(*fit, "--out", "again", "--stream", "--solver", "sums")
    capsys.readouterr()
    main_ok("calibrate", "again", new, "--confidence", "0.95", "--json", "-q")
    whole = json.loads(capsys.readouterr().out)
    assert whole["point"]["threshold"] == answers["two"]["set"]["point"]["threshold"]
    assert whole["point"]["certificate"] == answers["two"]["set"]["point"]["certificate"]


def wait_and_count(place, chunk, frame):
    """A slow task that says which process does it."""
    Path(place, f"{chunk.first}-{os.getpid()}").touch()
    time.sleep(0.3)
    return frame["a"].sum(), os.getpid()


@slow
def test_a_worker_that_is_killed_changes_nothing(tables, tmp_path):
    scan = scan_table([tables / "1.parquet", tables / "2.parquet"], 30_000)
    want = [frame["a"].sum() for frame in scan]
    killed = None
    with workers_at("2") as scan.workers:
        found = []
        for total, _ in scan.map(partial(wait_and_count, str(tmp_path))):
            found.append(total)
            if killed is None:
                # A process that is at work now.
                killed = int(max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime).name.split("-")[1])
                os.kill(killed, signal.SIGKILL)
        alone, state = fitted(scan)
    assert found == want
    again = {path.name.split("-")[0] for path in tmp_path.iterdir() if path.name.endswith(f"-{killed}")}
    done = [path.name.split("-")[0] for path in tmp_path.iterdir()]
    assert any(done.count(first) > 1 for first in again), "no chunk was under way when the worker died"
    other, same = fitted(scan_table([tables / "1.parquet", tables / "2.parquet"], 30_000))
    assert all(torch.equal(state[name], same[name]) for name in state)
    assert other.chosen.point.to_dict() == alone.chosen.point.to_dict()


@pytest.mark.parametrize(("status", "awaited"), [("pending", True), ("finished", True), ("error", False)])
def test_a_result_that_was_lost_with_its_worker_is_awaited_and_an_error_of_the_task_is_raised(status, awaited):
    answers = [distributed.TimeoutError(), distributed.TimeoutError(), 7]

    class Future:
        def __init__(self):
            self.status = status

        def result(self, timeout):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    class Client:
        def scheduler_info(self):
            return {"workers": {"tcp://127.0.0.1:1": {"status": "running"}}}

    workers = partitions.DaskWorkers(Client())
    if awaited:
        assert workers._result(Future()) == 7
    else:
        with pytest.raises(distributed.TimeoutError):
            workers._result(Future())


def test_workers_that_are_paused_for_good_end_the_work_with_a_sentence(monkeypatch):
    monkeypatch.setattr(partitions, "ABSENCE", 0)

    class Future:
        status = "pending"

        def result(self, timeout):
            time.sleep(0.01)
            raise distributed.TimeoutError

    class Client:
        def scheduler_info(self):
            return {"workers": {"tcp://127.0.0.1:1": {"status": "paused"}}}

        def nthreads(self):
            pytest.fail("paused workers have threads, too")

    with pytest.raises(BadSetting, match="1 are there, all of them paused near their memory limit"):
        partitions.DaskWorkers(Client())._result(Future())


@slow
@pytest.mark.parametrize("what", ["workers", "scheduler"])
def test_a_cluster_that_goes_away_ends_the_work_with_a_sentence(what, tables, tmp_path, monkeypatch):
    monkeypatch.setattr(partitions, "ABSENCE", 3)
    scan = scan_table([tables / "1.parquet", tables / "2.parquet"], 30_000)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    said = "no Dask worker for 3 seconds" if what == "workers" else "the Dask scheduler is gone"
    with cluster, distributed.Client(cluster) as client:
        scan.workers = partitions.DaskWorkers(client)
        work = scan.map(partial(wait_and_count, str(tmp_path)))
        next(work)
        cluster.scale(0) if what == "workers" else cluster.close()
        with pytest.raises(BadSetting, match=said):
            list(work)


@slow
def test_mistakes_of_the_table_are_those_of_one_machine(address, tmp_path):
    rows_of(2_000).with_columns(y=pl.Series([None, *([0, 1] * 1000)][:2000])).write_parquet(tmp_path / "t.parquet")
    scan = scan_table(tmp_path / "t.parquet", 30_000)
    with workers_at(address) as scan.workers, pytest.raises(BadTable, match="'y' is missing in 1 of 2000 rows"):
        fitted(scan)


@pytest.mark.parametrize("where", ["0", "many", "-1", ""])
def test_odd_workers_are_refused(where):
    with pytest.raises(BadSetting, match="--workers takes a number of processes or an address"), workers_at(where):
        pass


@slow
def test_an_address_without_an_answer_is_refused(monkeypatch):
    monkeypatch.setattr(partitions, "PATIENCE", 1)
    with (
        pytest.raises(BadSetting, match="no Dask scheduler with workers answers at tcp"),
        workers_at("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "mlp"], "--workers trains linear models and trees, not --model mlp"),
        (["--model", "auto"], "choose --model linear or trees"),
        (["--solver", "implicit"], "--workers trains --model linear by default, sums"),
    ],
)
def test_other_models_are_refused_before_any_work(tables, capsys, options, said):
    with pytest.raises(SystemExit) as stop:
        main(["fit", str(tables / "1.parquet"), "--target", "y", "--ask", ASK, "--workers", "2", *options])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@slow
def test_trees_grown_by_workers_are_as_good_as_on_one_machine(address, tables):
    scan = scan_table([tables / "1.parquet", tables / "2.parquet"], 50_000)
    settings = Settings(model="trees", drop=("id",), confidence=None)
    alone = fit_stream(scan, "y", sp.ask(ASK), settings)
    with workers_at(address) as scan.workers:
        run = fit_stream(scan, "y", sp.ask(ASK), settings)
    assert any("default and cross-entropy trained on all" in note for note in run.notes)
    scores, labels = run.chosen.sample("test").scores, run.chosen.sample("test").labels
    areas = [roc_auc_score(labels, one.chosen.sample("test").scores) for one in (run, alone)]
    assert abs(areas[0] - areas[1]) < 0.02
    assert len(scores) == run.sizes["test"]["rows"]
