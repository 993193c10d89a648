"""A run on a table in chunks: its parts, its batches, its artefact, and going on after a kill."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import polars as pl
import pytest
import torch

from marks import quick_first, slow
from setpoint.cli import main
from setpoint.data.frame import read_table
from setpoint.data.scan import Chunk, scan_table
from setpoint.data.stream import Division, StreamedBatches
from setpoint.errors import BadSetting, BadTable, TooFewSamples
from setpoint.measure.sample import Sample
from setpoint.problem.language import ask
from setpoint.run.artefact import load_run
from setpoint.run.settings import PARTS, Settings
from setpoint.run.stream import fit_stream, keep, learn
from setpoint.run.table import fit_table
from setpoint.run.unfinished import Plan, begin, resume
from setpoint.train import progress as state
from setpoint.train.draws import Draws
from setpoint.train.progress import Progress
from tables import loans

SHARES = (0.5, 0.2, 0.1, 0.2)
ASK = "minimize fnr where fpr <= 20%"


def big(path, rows=3000, seed=0):
    frame = loans(rows, seed).with_columns(row=pl.Series(np.random.default_rng(1).permutation(rows) / 7))
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return path


def called(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_rows_belong_to_parts_by_their_number_and_the_seed_alone():
    division = Division.of(100_000, SHARES, seed=5)
    parts = division.parts(Chunk(0, 100_000))
    pieces = [division.parts(Chunk(first, 9)) for first in range(0, 99_999, 9)]
    assert (np.concatenate(pieces) == parts[:99_999]).all()
    found = np.bincount(parts) / 100_000
    assert np.abs(found - SHARES).max() < 0.01
    assert (Division.of(100_000, SHARES, seed=6).parts(Chunk(0, 100_000)) != parts).mean() > 0.3
    # Neighbours are independent: as many pairs within a part as chance would give.
    together = (parts[1:] == parts[:-1]).mean()
    assert abs(together - sum(share**2 for share in SHARES)) < 0.01


def test_no_part_but_train_outgrows_its_bound():
    division = Division.of(100_000, SHARES, seed=0, most=1000)
    sizes = np.bincount(division.parts(Chunk(0, 100_000)))
    assert sizes[0] > 96_000
    assert (np.abs(sizes[1:] - 1000) < 150).all()
    assert abs(division.sampled(Chunk(0, 100_000)).sum() - 1000) < 150
    assert (division.parts(Chunk(0, 100_000))[division.sampled(Chunk(0, 100_000))] == 0).all()


def test_an_epoch_holds_every_training_row_once(tmp_path):
    scan = scan_table(big(tmp_path / "t.parquet"), 8000)
    division = Division.of(scan.rows, SHARES, seed=1)
    schema = learn(scan, division, "default")
    rows = int(sum((division.parts(chunk) == 0).sum() for chunk in scan.chunks))
    loader = StreamedBatches(scan, schema, division, rows, 64, seed=2)
    place = schema.features.index("row")
    epochs = [list(loader) for _ in range(2)]
    expected = pl.concat([f.filter(division.parts(c) == 0) for c, f in scan.frames()])
    features = schema.encode(expected)
    for batches in epochs:
        assert len(batches) == len(loader)
        assert {len(batch.labels) for batch in batches[:-1]} == {64}
        x, labels = torch.cat([b.x for b in batches]), torch.cat([b.labels for b in batches])
        # The column named row is different in every row: it says which one this is.
        back, there = x[:, place].argsort(), features[:, place].argsort()
        assert torch.equal(x[back], features[there])
        assert torch.equal(labels[back], schema.labels(expected)[there])
    assert not torch.equal(epochs[0][0].x, epochs[1][0].x)


def test_kept_rows_are_bounded_and_counted(tmp_path):
    scan = scan_table(big(tmp_path / "t.csv"), 20_000)
    division = Division.of(scan.rows, SHARES, seed=1)
    schema = learn(scan, division, "default")
    parts, sizes = keep(scan, division, schema, most=100)
    assert all(len(part.labels) == 100 for part in parts.values())
    whole = read_table(scan.paths[0])
    places = np.concatenate([division.parts(chunk) for chunk in scan.chunks])
    for place, part in enumerate(PARTS):
        own = whole.filter(places == place)
        assert sizes[part] == {"rows": own.height, "positives": int((own["default"] == "yes").sum())}
    assert torch.equal(parts["test"].x, schema.encode(whole.filter(places == 3)[:100]))


@pytest.mark.parametrize("name", quick_first(["t.parquet", "t.csv"]))
def test_a_streamed_run_is_a_run_like_any_other(tmp_path, monkeypatch, capsys, name):
    for place in ("run.unfinished", "data.exchange"):
        monkeypatch.setattr(
            import_module(f"setpoint.{place}"), "scan_table", lambda path, **how: scan_table(path, 40_000, **how)
        )
    data, out = big(tmp_path / name), tmp_path / "run"
    fit = ["fit", str(data), "--target", "default", "--ask", ASK, "--stream", "--out", str(out),
           "--epochs", "8", "--batch-size", "50"]  # fmt: skip
    assert called([*fit, "--json"]) == 0
    told, aside = capsys.readouterr()
    assert "with a budget of about" in aside
    assert "trained in batches" in aside
    about = json.loads(told)
    assert sum(part["rows"] for part in about["rows"].values()) == 3000
    assert about["results"]["default"]["method"] == "default: ImplicitThreshold"
    assert called(["predict", str(out), str(data), "--out", str(tmp_path / "p.csv"), "--quiet"]) == 0
    assert pl.read_csv(tmp_path / "p.csv").height == 3000
    for ending in ("csv", "tsv", "parquet"):
        place = tmp_path / f"streamed.{ending}"
        keep = ["--keep", "id", "--keep", "age"]
        assert called(["predict", str(out), str(data), "--stream", "--out", str(place), *keep]) == 0
        answer = read_table(place)
        assert answer.columns == ["id", "age", "score", "decision"]
        assert answer["score"].cast(pl.Float32).equals(pl.read_csv(tmp_path / "p.csv")["score"].cast(pl.Float32))
        assert answer["id"].to_list() == read_table(data)["id"].to_list()
    assert "streamed.csv: 3,000 rows." in capsys.readouterr().out.replace("\n", " ")
    assert called(["predict", str(out), str(data), "--stream", "--quiet"]) == 0
    assert capsys.readouterr().out == (tmp_path / "p.csv").read_text()
    codes, answers = [], []
    for more in ([], ["--stream"]):
        codes.append(called(["evaluate", str(out), str(data), "--json", "--quiet", *more]))
        answers.append(json.loads(capsys.readouterr().out))
    assert codes[0] == codes[1]
    assert answers[0] == answers[1]
    assert called(["report", str(out)]) == 0
    # About as good as with the whole table in memory.
    whole = fit_table(read_table(data), "default", ask(ASK), Settings())
    assert about["results"]["default"]["best_on_test"] < whole.chosen.best("test").objective + 0.08


@slow
def test_a_streamed_run_goes_on_after_a_kill_to_the_very_same_parameters(tmp_path, monkeypatch):
    monkeypatch.setattr("setpoint.run.unfinished.GAP", 0.0)
    monkeypatch.setattr("setpoint.run.unfinished.scan_table", lambda path, **how: scan_table(path, 40_000, **how))
    data = big(tmp_path / "t.parquet")
    plan = Plan((str(data),), "default", ASK, Settings(epochs=3, batch_size=400), seconds=0.0, stream=True)
    calm = begin(plan, tmp_path / "calm")

    class Killed(BaseException):
        pass

    def kill(solver, done, epochs):
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        begin(plan, tmp_path / "killed", on_epoch=kill)
    resumed = resume(tmp_path / "killed")
    for mine, theirs in zip(resumed.runs, calm.runs):
        assert mine.history == theirs.history
        for one, other in zip(mine.model.parameters(), theirs.model.parameters()):
            assert torch.equal(one, other)
    assert load_run(tmp_path / "killed").point == load_run(tmp_path / "calm").point


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_stream_is_trained_by_the_method_of_the_table_in_memory_unless_that_refuses_it(tmp_path, model):
    path, settings = big(tmp_path / "t.csv"), Settings(model=model, epochs=2)
    whole = fit_table(read_table(path), "default", ask(ASK), settings)
    streamed = fit_stream(scan_table(path), "default", ask(ASK), settings)
    kinds = [type(run.chosen.trained.settled).__name__ for run in (whole, streamed)]
    solvers = [type(run.chosen.solver).__name__ for run in (whole, streamed)]
    if model == "mlp":
        assert kinds == ["ByEpochs", "ByEpochs"]
        assert solvers == ["CrossEntropy", "CrossEntropy"]
        assert [run.chosen.trained.again for run in (whole, streamed)] == [True, True]
        assert streamed.chosen.instead == ""
    else:
        assert solvers == ["Anchored", "ImplicitThreshold"]
        told = (
            "the full-batch recipe needs all rows in memory, but they are read from a file in every epoch; trained in"
        )
        assert any(note.startswith(told) for note in streamed.notes)


def test_what_cannot_be_streamed_is_refused(tmp_path):
    scan = scan_table(big(tmp_path / "t.csv"))
    with pytest.raises(BadSetting, match="over_splits"):
        fit_stream(scan, "default", ask(ASK), Settings(ensemble=2, over_splits=True))
    with pytest.raises(BadSetting, match="compares groups"):
        fit_stream(scan, "default", ask("minimize error where recall.gap(job) <= 2%"))
    with pytest.raises(BadTable, match="did you mean 'default'"):
        fit_stream(scan, "defaults", ask(ASK))
    with pytest.raises(BadTable, match="'job' is missing in"):
        fit_stream(scan, "job", ask(ASK))
    one = tmp_path / "one.csv"
    loans(50).with_columns(default=pl.Series(["no"] * 49 + ["yes"])).write_csv(one)
    with pytest.raises(TooFewSamples, match="no positive row among"):
        fit_stream(scan_table(one), "default", ask(ASK))


def test_answers_of_a_stream_appear_whole_or_not_at_all(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        import_module("setpoint.data.exchange"), "scan_table", lambda path, **how: scan_table(path, 10_000, **how)
    )
    data, out = big(tmp_path / "t.csv", 600), tmp_path / "run"
    assert called(["fit", str(data), "--target", "default", "--ask", ASK, "--out", str(out), "--quiet"]) == 0
    text = data.read_text().splitlines()
    for ending in ("csv", "parquet"):
        broken, answer = tmp_path / "broken.csv", tmp_path / f"answer.{ending}"
        broken.write_text("\n".join([*text[:500], text[1].rpartition(",")[0], *text[500:]]))
        assert called(["predict", str(out), str(broken), "--stream", "--out", str(answer)]) == 2
        assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.csv", "run", "t.csv"]
    assert called(["predict", str(out), "-", "--stream"]) == 2
    assert called(["evaluate", str(out), "-", "--stream"]) == 2
    assert "standard input is none" in capsys.readouterr().err


def test_a_long_epoch_keeps_evenly_spread_rows(monkeypatch):
    monkeypatch.setattr(state, "MOST_SEEN", 100)
    model = torch.nn.Linear(1, 1)
    kept = Progress({"m": model}, torch.optim.SGD(model.parameters(), 0.1), Draws([]))
    numbers = torch.arange(1000.0)
    for part in numbers.split(37):
        kept.saw(part.mean(), [Sample(part, part, part)])
        assert sum(len(sample.scores) for sample in kept.seen) <= 100
        held = {s.scores.untyped_storage().data_ptr(): s.scores.untyped_storage().nbytes() for s in kept.seen}
        assert kept.stride == 1 or sum(held.values()) <= 4 * 100
    seen = torch.cat([sample.scores for sample in kept.seen])
    assert torch.equal(seen, numbers[:: kept.stride])
    assert len(seen) > 50
    assert float(kept.loss) == pytest.approx(sum(float(p.mean()) for p in numbers.split(37)))
