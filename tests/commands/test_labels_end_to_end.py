"""Several labels through the command line: fit, predict, evaluate, compare, report and resume."""

from __future__ import annotations

import json
import shutil

import numpy as np
import polars as pl
import pytest

import setpoint as sp
from label_tables import ASK, ASKS, NAMES, label_frame
from marks import quick_first, slow
from setpoint.cli import main
from setpoint.data.label_columns import LabelColumns
from setpoint.errors import BadFile
from setpoint.run import table as module
from setpoint.run.artefact import load_run, load_scores, save_run, seal
from setpoint.train.work import Work

TARGETS = ",".join(NAMES)


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return (ended.value.code, *capsys.readouterr())


@pytest.fixture
def here(tmp_path, monkeypatch):
    label_frame().write_csv(tmp_path / "t.csv")
    (tmp_path / "asks.yaml").write_text("".join(f"{name}: {ask}\n" for name, ask in ASKS.items()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


#: The ask, and the options of the training.
WAYS = {
    "linear": ("--target", TARGETS, "--ask", ASK, "--model", "linear"),
    "network": ("--ask", "asks.yaml", "--model", "mlp", "--epochs", "8"),
    "trees": ("--ask", "asks.yaml", "--model", "trees"),
    "implicit network": ("--target", TARGETS, "--ask", ASK, "--model", "mlp", "--solver", "implicit", "--epochs", "8"),
    "ensemble": ("--target", TARGETS, "--ask", ASK, "--model", "linear", "--ensemble", "2"),
    "auto": ("--ask", "asks.yaml"),
}


@pytest.mark.parametrize("way", quick_first(WAYS, 2))
def test_a_run_is_fitted_applied_judged_and_reported(way, here, capsys):
    code, out, _ = call(capsys, "fit", "t.csv", *WAYS[way], "--out", "run", "--json")
    assert code == 0
    told = json.loads(out)
    point, test = told["point"], told["rows"]["test"]
    assert list(point["threshold"]) == list(NAMES) == list(test["labels"])
    assert sum(part["labels"]["toxic"]["known"] for part in told["rows"].values()) == label_frame()["toxic"].count()
    assert list(told["results"])[-1] == "cross-entropy"

    assert call(capsys, "predict", "run", "t.csv", "--out", "answers.csv", "--quiet")[0] == 0
    answers = pl.read_csv("answers.csv")
    assert answers.columns == [f"{what} of {name}" for what in ("score", "decision") for name in NAMES]
    saved, frame = load_run("run"), label_frame().drop(NAMES)
    scores = saved.scores(frame).numpy().astype(np.float64)
    decided = scores > np.array(list(point["threshold"].values()))
    assert (answers[:, 3:].to_numpy() == decided).all()
    # A prediction depends on its own row alone.
    assert saved.predict(frame[7:8]).tolist() == decided[7:8].astype(int).tolist()
    assert len(set(map(tuple, decided.tolist()))) > 3

    code, out, _ = call(capsys, "evaluate", "run", "t.csv", "--json")
    judged = json.loads(out)
    own = np.stack([label_frame()[name].to_numpy().astype(float) for name in NAMES], 1)
    for place, name in enumerate(NAMES):
        found = decided[:, place][own[:, place] == 1].mean()
        assert judged["rates"][f"recall of label {name}"] == pytest.approx(found)
    assert {row["bound"] for row in judged["bounds"]} == {str(c) for c in saved.point.problem.constraints}
    assert call(capsys, "report", "run")[0] == 0
    page = (here / "run" / "report.html").read_text(encoding="utf-8")
    assert "Each label, test rows" in page
    assert all(f'<th scope="row">{name}</th>' in page for name in NAMES)
    assert "<script" not in page


@slow
def test_the_terminal_shows_each_label_within_80_columns(here, capsys, monkeypatch):
    monkeypatch.setattr("setpoint.commands.terminal.WIDE", 80)
    code, out, _ = call(
        capsys, "fit", "t.csv", "--ask", "asks.yaml", "--model", "linear", "--no-refit", "--confidence", "0.9",
        "--out", "run",
    )  # fmt: skip
    assert code == 0
    table = out[: out.index("Rows: ")].splitlines()[1:]
    assert max(map(len, table)) <= 80
    shown = {line.split()[0]: line for line in table if line.strip()}
    assert "fpr" in shown["toxic"]
    assert "precision" in shown["threat"]
    assert "error" in shown["insult"]
    assert "2 labels share" not in out
    assert "with confidence 90%" in out
    code, out, _ = call(capsys, "evaluate", "run", "t.csv")
    assert "precision of label threat >= 50%" in out
    assert call(capsys, "report", "run", "--png")[0] == 0


def test_solvers_are_compared_by_the_mean_over_labels(here, capsys):
    more = ["--model", "linear", "--solvers", "weighted", "--trials", "2", "--json"]
    code, out, _ = call(capsys, "compare", "t.csv", "--target", TARGETS, "--ask", ASK, *more)
    told = json.loads(out)
    assert code == 0
    assert told["ask"] == f"{ASK} for each of {', '.join(NAMES)}"
    assert [row["solver"] for row in told["solvers"]] == ["cross-entropy", "weighted"]


def test_a_certificate_that_was_demanded_names_the_label_without_it(here, capsys):
    asks = {**ASKS, "threat": "minimize fnr where fpr <= 0.1%"}
    (here / "asks.json").write_text(json.dumps(asks))
    more = ["--solver", "cross-entropy", "--confidence", "0.95", "--out", "run", "--quiet"]
    code, _, err = call(capsys, "fit", "t.csv", "--ask", "asks.json", *more)
    assert code == 3
    assert "no certificate: label 'threat': fpr <= 0.1% at confidence 97.5% needs 3,688 negatives" in err
    assert load_run("run").point.certificate is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", TARGETS, "--ask", ASK, "--stream"], "several labels, which --stream does not train"),
        (["--ask", "asks.yaml", "--stream"], "several labels, which --stream does not train"),
        (["--ask", ASK], "--target is missing"),
        (["--target", "toxic,nothing", "--ask", ASK], "no column 'nothing' to predict"),
        (["--target", "toxic,threat", "--ask", "asks.yaml"], "label 'insult' is not among the columns"),
        (["--target", "toxic,x0", "--ask", ASK], "target 'x0' must hold two classes"),
        (["--target", TARGETS, "--ask", "maximize recall.gap(x0)"], "gap"),
        (["--ask", "asks.yaml", "--model", "mlp", "--solver", "lagrangian"], "trains for one label"),
        (["--ask", "none.yaml"], "cannot be read as asks"),
    ],
)
def test_what_does_not_go_with_labels_is_refused_before_any_work(arguments, said, here, capsys):
    code, _, err = call(capsys, "fit", "t.csv", *arguments, "--out", "run")
    assert code == 2
    assert said in err.replace("\n", " ")
    assert not (here / "run").exists()


def test_labels_too_rare_to_be_in_every_part_are_named(here, capsys):
    label_frame().with_columns(insult=pl.int_range(900) < 2).write_csv("rare.csv")
    code, _, err = call(capsys, "fit", "rare.csv", "--target", TARGETS, "--ask", ASK, "--out", "run")
    assert code == 2
    assert "2 rows have label 'insult', too few to split into 4 parts" in err


@slow
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_run_of_labels_that_was_killed_goes_on_to_the_same_parameters(model, tmp_path):
    frame, problem = label_frame(rows=400), sp.ask(ASKS)

    class Killed(RuntimeError):
        pass

    def trained(store, stop_after=None):
        work, done = Work(sp.Checkpoint(store, keep=True, seconds=0)), 0

        def on_row(*told):
            nonlocal done
            done += 1
            if stop_after is not None and done > stop_after:
                raise Killed

        settings = module.Settings(model=model, solver="default", epochs=4)
        return module.fit_table(frame, NAMES, problem, settings, on_row=on_row, work=work)

    whole = trained(tmp_path / "whole")
    with pytest.raises(Killed):
        trained(tmp_path / "killed", stop_after=3)
    again = trained(tmp_path / "killed")
    for one, other in zip(whole.chosen.model.parameters(), again.chosen.model.parameters()):
        assert one.equal(other)
    assert again.chosen.point == whole.chosen.point


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    settings = module.Settings(model="linear", solver="cross-entropy")
    run = module.fit_table(label_frame(rows=400), NAMES, sp.ask(f"{ASK} for each of {', '.join(NAMES)}"), settings)
    return save_run(tmp_path_factory.mktemp("kept") / "run", run)


@pytest.fixture
def saved(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "run")


def test_the_stored_labels_know_what_is_not_known(saved):
    kept = load_scores(saved)
    assert all(bool(labels.isnan().any()) and labels.shape[1] == 3 for labels in kept.labels.values())
    schema = load_run(saved).schema
    assert isinstance(schema.target, LabelColumns)
    expected = np.stack([label_frame()[name].to_numpy().astype(float) for name in NAMES], 1)
    np.testing.assert_array_equal(schema.labels(label_frame()).numpy(), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about["point"]["threshold"].pop("threat"),
        lambda about: about["schema"]["target"]["labels"].pop(),
        lambda about: about["rows"]["test"]["labels"].pop("toxic"),
        lambda about: about["rows"]["test"]["labels"]["toxic"].update(positives=10**6),
        lambda about: about.update(ask="minimize fnr where fpr <= 20%"),
    ],
)
def test_a_saved_run_of_labels_that_was_changed_is_refused(change, saved):
    about = json.loads((saved / "setpoint.json").read_text())
    change(about)
    (saved / "setpoint.json").write_text(json.dumps({**about, "seal": seal(about)}))
    with pytest.raises(BadFile):
        load_run(saved)


@slow
def test_rows_without_any_label_are_left_out_on_demand(here, capsys):
    frame = label_frame()
    blank = frame[:20].with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in NAMES)
    pl.concat([frame, blank]).write_csv("gaps.csv")
    more = ["--target", TARGETS, "--ask", ASK, "--model", "linear", "--no-refit", "--json"]
    rows = []
    for place, options in enumerate(([], ["--drop-missing-target"])):
        code, out, err = call(capsys, "fit", "gaps.csv", *more, *options, "--out", f"run{place}")
        assert code == 0
        rows.append(sum(part["rows"] for part in json.loads(out)["rows"].values()))
    assert rows == [920, 900]
    assert "20 rows without any label are left out" in err
