"""`setpoint calibrate`: what it prints is the point in use, for runs of every kind."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from doors import FIT, code_of, main_ok
from setpoint.data.target import Target
from setpoint.problem.watch import Watch
from setpoint.run.artefact import load_run
from setpoint.serve.stored import RECORD
from tables import loans


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place, here = tmp_path_factory.mktemp("calibrated"), Path.cwd()
    os.chdir(place)
    try:
        loans(2000).write_csv("loans.csv")
        main_ok(*FIT, "--model", "linear", "--quiet")
    finally:
        os.chdir(here)
    return place


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    shutil.copytree(trained / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    loans(900, 9).write_csv("fresh.csv")
    return tmp_path


def answer(capsys, *arguments):
    capsys.readouterr()
    code = code_of(*arguments, "--json")
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


def files(run):
    return {path: path.read_bytes() for path in sorted(Path(run).rglob("*")) if path.is_file() and path.name[0] != "."}


def with_gaps(seed):
    """Loans of which each ninth has no label."""
    return loans(900, seed).with_columns(default=pl.when(pl.int_range(900) % 9 == 0).then(None).otherwise("default"))


OTHERS = [[], ["--confidence", "0.999"], ["--confidence", "none"], ["--confidence", "0.9"],
          ["--weight", "w", "--most-weight", "4"], ["--weight", "w", "--most-weight", "8"],
          ["--confidence", "none", "--stream"]]  # fmt: skip


def test_the_point_that_is_printed_is_the_point_in_use_whatever_was_set_before(place, capsys):
    """The law: every way to say how, after every other way, on the same file."""
    plain = loans(900, 9)
    for first in OTHERS:
        for second in OTHERS:
            shutil.rmtree("run/watch", ignore_errors=True)
            for more in (first, second):
                # The rows with weights are another file, which has one column more.
                frame = plain.with_columns(w=pl.lit(2.0)) if "--weight" in more else plain
                frame.write_csv("again.csv")
                code, found, _ = answer(capsys, "calibrate", "run", "again.csv", *more)
                assert found["point"] == load_run("run").point.to_dict()
                assert (code, found["is_set"]) == (0, True)
                sure = found["point"]["certificate"] and found["point"]["certificate"]["confidence"]
                asked = more[1] if more[:1] == ["--confidence"] else "0.95"
                assert sure == (None if asked == "none" else float(asked))


def test_the_same_file_with_the_same_options_is_set_once(place, capsys):
    _, first, _ = answer(capsys, "calibrate", "run", "fresh.csv")
    before = files("run")
    code, again, notes = answer(capsys, "calibrate", "run", "fresh.csv")
    assert (code, again) == (0, first)
    assert "fresh.csv with these settings already; it is not set again" in notes
    assert files("run") == before
    assert code_of("calibrate", "run", "fresh.csv", "--confidence", "0.999") == 0
    told = capsys.readouterr()
    assert "fresh.csv set the threshold before, as entry 2; a certificate holds if" in told.err
    assert "99.9%" in told.out


def test_a_demanded_certificate_that_cannot_be_given_leaves_the_run_as_it_was(place, capsys):
    assert code_of("calibrate", "run", "fresh.csv", "--quiet") == 0
    before, point = files("run"), load_run("run").point
    assert point.certificate is not None
    loans(40, 3).write_csv("few.csv")
    for more in ((), ("--stream",)):
        code, found, _ = answer(capsys, "calibrate", "run", "few.csv", "--confidence", "0.999", *more)
        assert (code, found["is_set"]) == (3, False)
        assert found["point"] == point.to_dict()
        assert "needs" in found["refusal"]
    assert code_of("calibrate", "run", "few.csv", "--confidence", "0.999") == 3
    said = " ".join(capsys.readouterr().out.split())
    assert f"The run stays as it was: the threshold is {point.thresholds.describe()}. No certificate:" in said
    assert "new threshold" not in said
    assert files("run") == before


def test_rows_without_labels_are_left_out_at_every_door_as_in_training(place, capsys):
    gaps = with_gaps(4)
    gaps.write_csv("gaps.csv")
    main_ok(*[word.replace("loans.csv", "gaps.csv") for word in FIT], "--model", "linear", "--quiet",
            "--drop-missing-target", "--out", "dropping")  # fmt: skip
    for number, command in enumerate(("evaluate", "watch", "calibrate")):
        for more in ((), ("--stream",)):
            with_gaps(10 + 2 * number + len(more)).write_csv(f"{command}{len(more)}.csv")
            capsys.readouterr()
            assert code_of(command, "dropping", f"{command}{len(more)}.csv", *more) == 0
            assert "100 rows without a label are left out, as in training" in capsys.readouterr().err
            assert code_of(command, "run", f"{command}{len(more)}.csv", *more) == 2
            said = capsys.readouterr().err
            assert "missing in 100 of 900 rows; fill it in, or drop those rows, as setpoint fit does with" in said
    assert load_run("dropping").point.certificate.samples < 800


def test_labels_that_come_late_may_be_missing_still(place, capsys):
    gaps = with_gaps(4)
    gaps.write_csv("gaps.csv")
    main_ok(*[word.replace("loans.csv", "gaps.csv") for word in FIT], "--model", "linear", "--quiet",
            "--drop-missing-target", "--out", "dropping")  # fmt: skip
    rows = gaps.with_row_index("key")
    rows.drop("default").write_csv("scored.csv")
    rows.select("key", "default").write_csv("labels.csv")
    assert code_of("watch", "dropping", "scored.csv", "--scores", "--key", "key", "--quiet") == 0
    _, found, _ = answer(capsys, "watch", "dropping", "labels.csv", "--labels", "--key", "key")
    assert found["waiting"] == 100


def kinds(seed, rows=900):
    draw = np.random.default_rng(seed)
    y = (draw.random(rows) < 0.3).astype(int)
    x = draw.normal(size=rows) + 1.5 * y
    amount = np.exp(draw.normal(size=rows) + y / 2)
    z, c = (draw.normal(size=rows) + x > 1).astype(int), np.where(x > 1.2, "b", draw.choice(["a", "c"], rows))
    sex, q = draw.choice(["f", "m"], rows), draw.integers(0, rows // 6, rows)
    return pl.DataFrame({"x": x, "amount": amount, "sex": sex, "q": q, "y": y, "z": z, "c": c})


HITS = "maximize recall in the first 3 where hit in the first 3 >= 20%"
KINDS = {
    "labels": (["--target", "y,z", "--ask", "minimize fnr where fpr <= 30%"], False),
    "lists": (["--target", "y", "--lists", "q", "--ask", HITS], False),
    "area": (["--target", "y", "--ask", "maximize recall over fpr in [0%, 10%] with 4 points"], False),
    "no bound": (["--target", "y", "--ask", "minimize error"], False),
    "classes": (["--target", "c", "--ask", "minimize error where recall of class a >= 30%"], True),
    "gap": (["--target", "y", "--ask", "minimize error where recall.gap(sex) <= 40%"], True),
    "band": (["--target", "y", "--ask", "minimize review where precision >= 50% and npv >= 60%"], True),
    "worth": (["--target", "y", "--ask", "maximize recall weighted by amount where fpr <= 30%"], True),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_every_kind_are_set_anew(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kinds(1).write_csv("a.csv")
    kinds(2).write_csv("b.csv")
    asked, watched = KINDS[kind]
    solver = ["--model", "linear", "--solver", "cross-entropy", "--epochs", "1"]
    main_ok("fit", "a.csv", *asked, *solver, "--confidence", "none", "--quiet")
    code, found, _ = answer(capsys, "calibrate", "run", "b.csv")
    assert code == 0
    point = load_run("run").point
    assert found["point"] == point.to_dict() != found["before"]
    assert [entry["kind"] for entry in Watch.load(Path("run") / RECORD).entries].count("calibrated") == 1
    assert (point.certificate is not None) == (kind not in ("area", "no bound"))
    assert code_of("calibrate", "run", "b.csv") == 0
    assert code_of("predict", "run", "b.csv", "--quiet") == 0
    assert code_of("evaluate", "run", "b.csv", "--quiet") == 0
    assert code_of("report", "run") == 0
    assert "In use since the fit: " in Path("run/report.html").read_text()
    capsys.readouterr()
    assert code_of("watch", "run", "a.csv", "--quiet") in ((0, 1) if watched else (2,))
    said = capsys.readouterr().err
    assert watched or ("can" in said and "watched" in said)


def test_advice_on_missing_labels_names_the_command_that_has_the_option():
    with pytest.raises(Exception, match="or drop those rows, as setpoint fit does with --drop-missing-target"):
        Target.of(pl.DataFrame({"y": [0, 1, None]}), "y")


def test_the_report_says_what_is_in_use_since_the_fit(place, capsys):
    fitted = load_run("run").point
    assert code_of("report", "run") == 0
    assert 'class="later"' not in Path("run/report.html").read_text()
    assert code_of("calibrate", "run", "fresh.csv", "--quiet") == 0
    point = load_run("run").point
    assert code_of("report", "run") == 0
    page = Path("run/report.html").read_text()
    promise = f"fpr &lt;= {point.certificate.statement.split()[-1]} with confidence 95%"
    told = r"In use since the fit: run at threshold (\S+), (.*?) The rest .*As fitted: run at threshold (\S+)\.<"
    now, set_on, then = re.search(told, page, re.S).groups()
    assert float(now) == pytest.approx(point.threshold, abs=1e-3)
    assert float(then) == pytest.approx(fitted.threshold, abs=1e-3) != pytest.approx(float(now), abs=1e-3)
    assert set_on == f"set on 900 rows of fresh.csv, {promise}."
    assert "Promise of the fit" in page
    assert ">Run at" not in page


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_rows_of_the_training_give_no_certificate(place, trained, capsys, more):
    loans(2000)[:800].write_csv("known.csv")
    before = files("run")
    code, told, _ = answer(capsys, "calibrate", "run", "known.csv", "--confidence", "0.9", *more)
    assert (code, told["is_set"], files("run")) == (3, False, before)
    assert re.match(r"about \d+% of the rows of known.csv set the parameters", told["refusal"])
    code, told, _ = answer(capsys, "calibrate", "run", "known.csv", *more)
    assert (code, told["is_set"], files("run")) == (3, False, before)
    code, told, notes = answer(capsys, "calibrate", "run", "known.csv", "--confidence", "none", *more)
    assert (code, told["is_set"], told["point"]["certificate"]) == (0, True, None)
    assert "of the rows of known.csv set the parameters" in notes
    code, told, _ = answer(capsys, "calibrate", "run", "fresh.csv", "--confidence", "0.9", *more)
    assert (code, told["refusal"]) == (0, None)
