"""The pages of bad input, row by row: each situation is made, and what is said and done is held against the page.

A row without a situation here fails, and so does a situation without a row.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier as Forest
from sklearn.linear_model import LogisticRegression

import setpoint as sp
from marks import slow
from setpoint import capacity, errors
from setpoint.cli import main
from setpoint.data.frame import read_table
from setpoint.data.schema import Schema
from setpoint.data.target import Target
from setpoint.run.settings import Settings
from tables import loans

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / f"bad_input{more}.md" for more in ("", "_to_runs", "_in_python")]
ASK = "minimize fnr where fpr <= 20%"
#: The quickest solver: what is tested here happens before or beside training.
QUICK = ["--solver", "cross-entropy", "--epochs", "1"]
MILLION = 1_000_000
EVERY_OTHER = np.arange(200) % 2


def rows_of_the_page():
    """Input, what is said, and the code or error of every row of every table."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [tuple(row) for row in cells if row[0] != "input"]


ROWS = rows_of_the_page()
#: Rows with an exit code are of the command line, the others of the library.
FROM_OUTSIDE = [row for row in ROWS if row[2][0].isdigit()]
FROM_WITHIN = [row for row in ROWS if not row[2][0].isdigit()]
ON_THE_COMMAND_LINE, IN_PYTHON = {}, {}


def rows_of(mistakes):
    """Cases for `parametrize`; the mistakes in a million values are left to `make test-all`."""
    return [pytest.param(*row, id=row[0], marks=[slow] if "million" in row[0] else []) for row in mistakes]


def on_the_command_line(name):
    """Registers a function that makes files where it is called, and returns the arguments of `setpoint`."""

    def register(make):
        assert name not in ON_THE_COMMAND_LINE
        ON_THE_COMMAND_LINE[name] = make
        return make

    return register


def in_python(name):
    """Registers a function that does something with the library, and returns what came of it."""

    def register(do):
        assert name not in IN_PYTHON
        IN_PYTHON[name] = do
        return do

    return register


def says(sentence, heard):
    """Whether a sentence of the page, in which ... stands for anything, is part of what was heard."""
    pattern = ".*".join(map(re.escape, sentence.strip("`").split("...")))
    return re.search(pattern, heard) is not None


def test_every_row_has_its_test_and_every_test_its_row():
    names = [name for name, _, _ in ROWS]
    assert len(set(names)) == len(names) > 100
    assert sorted(names) == sorted([*ON_THE_COMMAND_LINE, *IN_PYTHON])


def test_a_sentence_is_found_only_where_it_is_said():
    assert says("`needs 3 ... but 2`", "fpr needs 3 negatives, but 2 are there")
    assert not says("`needs 3 ... but 2`", "fpr needs 4 negatives, but 2 are there")
    assert not says("`(a.b)`", "(acb)")


# Tables


def table(rows=200, **columns):
    """A column that tells the classes apart, a target, and whatever else is given."""
    draw = np.random.default_rng(0)
    y = (np.arange(rows) % 3 == 0).astype(int)
    return pl.DataFrame({"x": draw.normal(size=rows) + 2 * y, "y": y} | columns)


def fit(path="t.csv", *more, ask=ASK, target="y"):
    return ["fit", path, "--target", target, "--ask", ask, *QUICK, *more]


def fit_table(frame, *more, **options):
    frame.write_csv("t.csv")
    return fit("t.csv", *more, **options)


def fit_text(content, **options):
    Path("t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return fit("t.csv", **options)


def fit_parquet(frame, **options):
    frame.write_parquet("t.parquet")
    return fit("t.parquet", **options)


def command(name, arguments):
    """A situation that needs no patience: arguments, or files and arguments made when it is tested."""
    on_the_command_line(name)(lambda monkeypatch, trained: arguments())


def fit_lists_of(frame, *more, ask="maximize recall in the first 2", lists="q"):
    frame.write_csv("t.csv")
    named = ["--lists", lists] if lists else []
    return ["fit", "t.csv", "--target", "y", "--ask", ask, *named, *more]


def workbook(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "")


Y = (np.arange(200) % 3 == 0).astype(int)
PAIRS = "\n".join(f"{i % 7},{i % 2}" for i in range(60))

command("no such file", lambda: fit("no.csv"))
command("a directory without tables", lambda: os.mkdir("data") or fit("data"))
command("a workbook, `.xlsx`", lambda: Path("t.xlsx").write_bytes(b"PK") and fit("t.xlsx"))
command("half a compressed file, `.csv.gz`", lambda: Path("t.csv.gz").write_bytes(b"\x1f\x8b") and fit("t.csv.gz"))
command("an empty file", lambda: fit_text(""))
command("blank lines only", lambda: fit_text("\n \n"))
command("column names and no rows", lambda: fit_text("x,y\n"))
command("semicolons for commas", lambda: fit_text(table().write_csv(separator=";")))
command("carets for commas", lambda: fit_text(table().write_csv(separator="^")))
command("an unknown separator", lambda: fit_table(table(), "--separator", "semi"))
command("Latin-1", lambda: fit_text(table(c=["tea", "caf\xe9"] * 100).write_csv().encode("latin-1")))
command("UTF-16", lambda: fit_text(table().write_csv().encode("utf-16")))
command("an unknown encoding", lambda: fit_table(table(), "--encoding", "latn-1"))
command("a binary file named .csv", lambda: fit_text(b"\x7fELF\x02\x01\x01\0\0\0" + bytes(range(1, 250))))
command("a Parquet file named .csv", lambda: table().write_parquet("t.csv") or fit())
command("a workbook named .csv", lambda: workbook("t.csv") or fit())
command("text named .parquet", lambda: Path("t.parquet").write_text("x,y\n1,0\n") and fit("t.parquet"))
command("a row with too many values", lambda: fit_text("x,y\n1,0\n1,2,3\n"))
command("a row with too few values", lambda: fit_text(f"y,x\n1,0\n1,2\n1\n{PAIRS}\n"))
command("a quote that never closes", lambda: fit_text('x,y\n1,0\n1,"0\n2,1\n'))
command(
    'a stray quote (`5" wide`)',
    lambda: fit_text("x,z,y\n" + "\n".join(f'{i % 7},5" wide,{i % 2}' for i in range(100))),
)
command("lines that end in carriage returns alone", lambda: fit_text(table().write_csv().replace("\n", "\r")))
command("two columns of one name", lambda: fit_text("x,x,y\n1,2,0\n"))
command(
    "a byte order mark, CRLF, blank lines at the end",
    lambda: fit_text("\ufeff" + table().write_csv().replace("\n", "\r\n") + "\r\n\r\n"),
)
command(
    "line breaks and commas within quotes",
    lambda: fit_table(table().with_columns(pl.Series("a\nname", ["one,\ntwo", "three"] * 100))),
)


@in_python("a file that may not be read, in Python")
def _(monkeypatch):
    # The command line asks for this itself, and root may read everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with tempfile.TemporaryDirectory() as place:
        table().write_csv(Path(place) / "t.csv")
        return read_table(Path(place) / "t.csv")


@on_the_command_line("half a Parquet file")
def _(monkeypatch, trained):
    table().write_parquet("t.parquet")
    content = Path("t.parquet").read_bytes()
    Path("t.parquet").write_bytes(content[: len(content) // 2])
    return fit("t.parquet")


WRITTEN = [f"{1000 * i:,}" for i in range(1, 201)]
MIXED = ["about 3" if i % 10 == 0 else str(i % 40) for i in range(200)]

command("a constant column", lambda: fit_table(table(c=[1.0] * 200)))
command("a column with every value missing", lambda: fit_table(table(c=[None] * 200)))
command("a column without a name", lambda: fit_table(table(**{"": range(200)})))
command("lists that differ in length", lambda: fit_parquet(table(c=[[i] * (1 + i % 2) for i in range(200)])))
command("a column of bytes", lambda: fit_parquet(table(c=[b"%d" % i for i in range(200)])))
command("nothing but constant columns", lambda: fit_table(table(x=[1.0] * 200)))
command("no column but the target", lambda: fit_parquet(table().select("y")))
command(
    "missing values and NaN among features",
    lambda: fit_table(table(c=[None if i % 5 == 0 else float("nan") if i % 5 == 1 else i for i in range(200)])),
)
command("infinities among features", lambda: fit_table(table(x=[np.inf] * 3 + [float(i) for i in range(197)])))
command(
    "numbers up to 1e308 and down to 1e-308",
    lambda: fit_table(table(c=[(-1) ** i * 1e308 for i in range(200)], d=[i * 1e-308 for i in range(200)])),
)
command("numbers and words in one column", lambda: fit_table(table(m=MIXED)))
command("numbers with thousands separators", lambda: fit_table(table(m=WRITTEN)))
command("a misspelt target", lambda: fit_table(loans(), target="defalt"))
command("a target in the wrong case", lambda: fit_table(table(), target="Y"))
command("a target like no column", lambda: fit_table(table(), target="outcome"))
command("classes that are words", lambda: fit_table(table(y=np.where(Y, "bad", "good"))))
command("classes that are booleans", lambda: fit_table(table(y=Y > 0)))
command("classes -1 and 1", lambda: fit_table(table(y=2 * Y - 1)))
command("classes 0.0 and 1.0", lambda: fit_table(table(y=Y.astype(float))))
command("a class that is not there", lambda: fit_table(table(), "--positive", "maybe"))
command("missing labels", lambda: fit_table(table(y=[None] * 3 + Y[3:].tolist())))
command("one class", lambda: fit_table(table(y=[1] * 200)))
command("one row", lambda: fit_table(table(1)))
command("three classes", lambda: fit_table(table(y=np.arange(200) % 3)))
command("a label between the classes", lambda: fit_table(table(y=np.where(np.arange(200) == 4, 0.5, Y))))
SEVERAL = "maximize macro recall"
LETTERS = np.array(["a", "b"])[Y]
command(
    "a positive class for an ask about classes",
    lambda: fit_table(table(y=np.arange(200) % 3), "--positive", "1", ask=SEVERAL),
)
command("one class for an ask about classes", lambda: fit_table(table(y=[1] * 200), ask=SEVERAL))
command("more classes than are told apart", lambda: fit_table(table(y=np.arange(200) % 120), ask=SEVERAL))
command(
    "a class with fewer rows than parts need",
    lambda: fit_table(table(y=np.where(np.arange(200) < 2, "rare", LETTERS)), ask=SEVERAL),
)
command(
    "an ask for a class that the table has not",
    lambda: fit_table(table(y=LETTERS), ask="maximize recall of class c"),
)
QUERIES = [f"q{row // 5}" for row in range(200)]
GRADES = np.arange(200) % 4
command("lists, streamed", lambda: fit_lists_of(table(q=QUERIES), "--stream"))
command("an ask about lists without their column", lambda: fit_lists_of(table(), lists=""))
command("a column of lists for another ask", lambda: fit_lists_of(table(q=QUERIES), ask=ASK))
command("a column of lists that is not there", lambda: fit_lists_of(table(), lists="zz"))
command("grades in lists", lambda: fit_lists_of(table(q=QUERIES, y=GRADES)))
command("a grade that no row has", lambda: fit_lists_of(table(q=QUERIES, y=GRADES), "--relevant", "9"))
command("a grade without lists", lambda: fit_lists_of(table(), "--relevant", "1", ask=ASK, lists=""))
command("grades that are words", lambda: fit_lists_of(table(q=QUERIES, y=QUERIES), "--relevant", "1"))
command(
    "a grade and a positive class",
    lambda: fit_lists_of(table(q=QUERIES, y=GRADES), "--relevant", "1", "--positive", "2"),
)
command("a row without a list", lambda: fit_lists_of(table(q=[None, *QUERIES[1:]])))
command("too few lists to split", lambda: fit_lists_of(table(q=["a"] * 100 + ["b"] * 100)))
command("trees for lists, another ask", lambda: fit_lists_of(table(), "--model", "lambdarank", ask=ASK, lists=""))

command("several labels, streamed", lambda: fit_table(table(z=EVERY_OTHER), "--stream", ask=f"{ASK} for each of y, z"))
command("a label that is no column", lambda: fit_table(table(z=EVERY_OTHER), target="y,zz"))
command("a label too rare to split", lambda: fit_table(table(z=(np.arange(200) < 2).astype(int)), target="y,z"))
command("a label without an ask", lambda: fit_table(table(z=EVERY_OTHER), target="y,z", ask=f"y: {ASK}; a: {ASK}"))
command(
    "a solver of one label for a network",
    lambda: [
        "fit",
        fit_table(table(z=EVERY_OTHER))[1],
        "--ask",
        f"y: {ASK}; z: {ASK}",
        "--model",
        "mlp",
        "--solver",
        "program",
    ],
)
command("a file of asks that is not there", lambda: fit_table(table(), ask="asks.yaml"))
command("several classes, streamed", lambda: fit_table(table(y=np.arange(200) % 3), "--stream", ask=SEVERAL))
command(
    "a solver of two classes for several",
    lambda: [*fit_table(table(y=np.arange(200) % 3), ask=SEVERAL), "--solver", "lagrangian"],
)
command("the last layer of a linear model", lambda: [*fit_table(table(y=Y)), "--solver", "last-layer"])
command(
    "a mixture for an ask without bounds",
    lambda: [*fit_table(table(y=Y), ask="maximize f_score(1)"), "--solver", "mixture"],
)
command("a target of lists", lambda: fit_parquet(table(y=[[int(y)] for y in Y])))
command("fewer positives than parts need", lambda: fit_table(table(y=(np.arange(200) < 3).astype(int))))


@on_the_command_line("a million different names")
def _(monkeypatch, trained):
    return fit(str(trained / "million.parquet"))


@on_the_command_line("a million classes")
def _(monkeypatch, trained):
    return fit(str(trained / "million.parquet"), target="c")


command("amounts in two currencies", lambda: fit_table(table(m=[f"{'€$'[i % 2]} {i + 1}" for i in range(200)])))
command("dates whose day or month may come first", lambda: fit_table(table(d=["1/1/2024", "2/1/2024"] * 100)))
command("row numbers", lambda: fit_table(table(rows=600, c=np.arange(600))))
command("identifiers by their name", lambda: fit_table(table(user_id=np.arange(200) ** 3)))
command("words of which most occur once", lambda: fit_table(table(400, c=[f"street {i % 350}" for i in range(400)])))
command("a misspelt column to be taken as categorical", lambda: fit_table(table(), "--categorical", "X"))
command("words to be taken as numbers", lambda: fit_table(table(c=["a", "b"] * 100), "--numeric", "c"))
command(
    "a column to be encoded by the target, streamed", lambda: fit_table(table(), "--target-encode", "x", "--stream")
)
command("a column under two options", lambda: fit_table(table(), "--hash", "x", "--text", "x"))


@in_python("a million levels, taken as categories")
def _(monkeypatch):
    often = [f"often {i % 98}" for i in range(MILLION // 10)]
    frame = pl.DataFrame({"c": [f"level {i}" for i in range(MILLION)] + often})
    frame = frame.with_columns(y=pl.int_range(pl.len()) % 2)
    schema = Schema.of(frame, Target.of(frame, "y"), kinds={"c": "categorical"})
    assert len(schema.features) == 101
    notes = schema.notes()
    schema.encode(frame, notes=notes)
    (note,) = notes.sentences()
    return note


command("a misspelt word in the ask", lambda: fit_table(table(), ask="minimize fnr wher fpr <= 1%"))
command("a misspelt rate", lambda: fit_table(table(), ask="minimize fnrr"))
command("an empty ask", lambda: fit_table(table(), ask=""))
command(
    "an ask that contradicts itself", lambda: fit_table(table(), ask="minimize fnr where fpr <= 50% and fpr >= 60%")
)
command(
    "one that does so through a complement",
    lambda: fit_table(table(), ask="maximize precision where recall >= 20% and fnr >= 90%"),
)
command("a bound in rows", lambda: fit_table(table(), ask="maximize precision where flagged == 9 rows"))
command("a bound outside 0 ... 1", lambda: fit_table(table(), ask="minimize fnr where fpr <= 5"))
command("a bound without a relation", lambda: fit_table(table(), ask="minimize fnr where fpr 1%"))
command("a gap as a function", lambda: fit_table(table(), ask="minimize fnr where gap(recall, sex) <= 1%"))
command("one rate at a value of another", lambda: fit_table(table(), ask="maximize recall@fpr=1%"))
command("an area with a bound", lambda: fit_table(table(), ask="maximize auc where fpr <= 1%"))
command("a bound on an area", lambda: fit_table(table(), ask="minimize fnr where auc >= 90%"))
command("a class without the word class", lambda: fit_table(table(), ask="maximize recall of melanoma"))
command("one letter for a rate in lists", lambda: fit_table(table(), ask="maximize p@5"))
command("a list without its length", lambda: fit_table(table(), ask="maximize precision@k"))
command("costs without names", lambda: fit_table(table(), ask="minimize cost(5, 1)"))
command(
    "groups of a column that is not there", lambda: fit_table(table(), ask="minimize fnr where recall.gap(sex) <= 1%")
)
command(
    "a bound that cannot be met",
    lambda: fit_table(
        table(x=np.where(np.arange(200) % 5 < 2, Y, 1 - Y)), ask="maximize recall where precision >= 99.9%"
    ),
)
command(
    "bounds that cannot be met together",
    lambda: fit_table(table(), ask="maximize recall where precision >= 99.9% and flagged >= 60%"),
)
command("an unknown solver", lambda: fit_table(table(), "--solver", "magic"))
command("a solver without a program for the ask", lambda: fit_table(table(), "--solver", "program"))
command("an unknown model", lambda: fit_table(table(), "--model", "tree"))
command("a confidence of 95", lambda: fit_table(table(), "--confidence", "95"))
command("a confidence in words", lambda: fit_table(table(), "--confidence", "high"))
command(
    "too few samples for the confidence",
    lambda: fit_table(table(), "--confidence", "0.95", ask="minimize fnr where fpr <= 1%"),
)
command("two shares", lambda: fit_table(table(), "--shares", "0.5,0.5"))
command("shares that do not add up, or NaN", lambda: fit_table(table(), "--shares", "nan,0.1,0.1,0.1"))
command("no epochs", lambda: fit_table(table(), "--epochs", "0"))
command("a file in the way", lambda: fit_table(table(), "--out", "t.csv"))


@on_the_command_line("an earlier run in the way")
def _(monkeypatch, trained):
    shutil.copytree(trained / "run", "run")
    return fit_table(table())


def foreign():
    os.mkdir("data")
    Path("data/letter.txt").write_text("dear all")
    return "data"


command("somebody's directory in the way", lambda: fit_table(table(), "--out", foreign()))
on_the_command_line("a run to export to a file that ends otherwise")(
    lambda monkeypatch, trained: ["export", trained / "run", "model.pb"]
)
command("no run there", lambda: loans().write_csv("new.csv") or ["predict", "nowhere", "new.csv"])
command("a directory that is no run", lambda: loans().write_csv("new.csv") or ["predict", foreign(), "new.csv"])


@on_the_command_line("a damaged run")
def _(monkeypatch, trained):
    shutil.copytree(trained / "run", "copy")
    Path("copy/setpoint.json").write_text("{")
    loans(20).write_csv("new.csv")
    return ["predict", "copy", "new.csv"]


def watch(name, *more, change=lambda frame: frame, before=(), then=lambda frame: frame):
    """A look at 20 loans, after other looks at the same table."""

    def make(monkeypatch, trained):
        shutil.copytree(trained / "run", "copy")
        for options in before:
            change(loans(20, seed=1)).write_csv("new.csv")
            with pytest.raises(SystemExit):
                main(["watch", "copy", "new.csv", "--quiet", *options])
        then(change(loans(20, seed=1))).write_csv("new.csv")
        return ["watch", "copy", "new.csv", *more]

    on_the_command_line(name)(make)


def other_keys(frame):
    return frame.with_columns(id=pl.format("other {}", "id"))


def over(name, written, given, *, command="predict", more=()):
    """A command that writes to `written`, of a run and 20 loans in the files that `given` makes."""

    def make(monkeypatch, trained):
        read = given(loans(20, seed=1).drop("default"))
        return [command, trained / "run", read, "--out", written, *more]

    on_the_command_line(name)(make)


def parts_with_a_link(frame):
    frame.write_csv("part-1.csv")
    frame.write_csv("part-2.csv")
    os.link("part-1.csv", "hard.csv")
    os.symlink("hard.csv", "linked.csv")
    return "part-*.csv"


def as_new(frame):
    frame.write_csv("new.csv")
    return "new.csv"


over("decisions over the table they are about", "new.csv", as_new)
over("decisions over one of many tables, by a link", "linked.csv", parts_with_a_link, more=("--stream",))
over("rows to label over the rows they are drawn from", "new.csv", as_new, command="watch", more=("--plan", "9"))
command("a report over its scores", lambda: report_scores("--out", "./s.csv"))
SCORED = ("--scores", "--key", "id")


def report_scores(*more, fourth=None, scores=None):
    """Good rows are rarer, and bad rows have the higher scores; the score of the fourth row may be another."""
    bad = np.arange(300) % 5 < 3
    text = list(map(str, np.random.default_rng(0).normal(size=300) + 2 * bad)) if scores is None else scores
    text[3] = text[3] if fourth is None else fourth
    pl.DataFrame({"score": text, "label": np.where(bad, "bad", "good")}).write_csv("s.csv")
    return ["report", "--scores", "s.csv", "--ask", ASK, *more]


command("scores whose positive class is not named", report_scores)
command("scores that are higher for the other class", report_scores)
command("a positive class that the labels do not have", lambda: report_scores("--positive", "worst"))
command("a score that is missing", lambda: report_scores(fourth=""))
command("a score that is infinite", lambda: report_scores(fourth="inf"))
command("a score that is a word", lambda: report_scores(fourth="none yet"))
command("scores that are true or false", lambda: report_scores(scores=["true", "false", "true"] * 100))
command("scores that are dates", lambda: report_scores(scores=["2024-01-01", "2024-01-02", "2024-01-03"] * 100))
command("scores that are all missing", lambda: report_scores(scores=[None] * 300))
command("the column of scores as labels", lambda: report_scores("--target", "score"))

command("no run to watch", lambda: loans().write_csv("new.csv") or ["watch", "nowhere", "new.csv"])
watch("a watch of rows without labels", change=lambda frame: frame.drop("default"))
watch("scores and labels at once", "--scores", "--labels")
watch("a look with weights in chunks", "--weight", "amount", "--stream")


def judged_by_weights(name, command):
    @on_the_command_line(name)
    def _(monkeypatch, trained):
        shutil.copytree(trained / "run", "copy")
        loans(20, seed=1).write_csv("new.csv")
        return [command, "copy", "new.csv", "--weight", "amount", "--stream"]


judged_by_weights("an evaluation with weights in chunks", "evaluate")
judged_by_weights("a calibration with weights in chunks", "calibrate")
watch("late labels without a key", "--labels")
watch("late labels for which no row waits", "--labels", "--key", "id")
watch("late labels of other rows", "--labels", "--key", "id", before=[SCORED], then=other_keys)
watch("a key that is no column", "--scores", "--key", "key")
watch("a key that two rows have", *SCORED, change=lambda frame: frame.with_columns(id=pl.lit("one")))
watch("another level for a watch", "--level", "0.1", before=[()])


@on_the_command_line("a record that was changed")
def _(monkeypatch, trained):
    shutil.copytree(trained / "run", "copy")
    loans(20, seed=1).write_csv("new.csv")
    with pytest.raises(SystemExit):
        main(["watch", "copy", "new.csv", "--quiet"])
    record = Path("copy/watch/state.json")
    record.write_text(record.read_text().replace('"kind": "reference"', '"kind": "Reference"'))
    return ["watch", "copy", "new.csv"]


def predict(name, change, *more):
    def make(monkeypatch, trained):
        change(loans(20, seed=1)).write_csv("new.csv")
        return ["predict", trained / "run", "new.csv", *(part() if callable(part) else part for part in more)]

    on_the_command_line(name)(make)


predict("a missing column", lambda frame: frame.rename({"age": "Age"}))
predict("words in a column of numbers", lambda frame: frame.with_columns(age=pl.lit("old")))
predict("no rows to predict", lambda frame: frame.head(0))
predict("a category that training never saw", lambda frame: frame.with_columns(job=pl.lit("pilot")))
predict("missing values that training never saw", lambda frame: frame.with_columns(age=pl.lit(float("nan"))))
predict("infinities in features", lambda frame: frame.with_columns(age=pl.lit(float("inf"))))
predict("decisions into a directory", lambda frame: frame, "--out", foreign)
predict("decisions into a place that is not there", lambda frame: frame, "--out", "no/such/x.csv")


@on_the_command_line("a percentage without its sign")
def _(monkeypatch, trained):
    rates = pl.DataFrame({"rate": [f"{i % 40 / 2} %" for i in range(200)], "y": EVERY_OTHER})
    rates.write_csv("t.csv")
    rates.with_columns(rate=pl.lit("0.05")).write_csv("new.csv")
    with pytest.raises(SystemExit):
        main(["fit", "t.csv", "--target", "y", "--ask", ASK, *QUICK, "--out", "own", "--quiet"])
    return ["predict", "own", "new.csv"]


@on_the_command_line("a table too large for the linear recipe")
def _(monkeypatch, trained):
    monkeypatch.setattr(capacity, "_machine", lambda: 10_000)
    return fit_table(table(c=Y * 0.5 + np.arange(200), d=np.arange(200) ** 0.5), "--solver", "default")


@on_the_command_line("a table too large to be written out")
def _(monkeypatch, trained):
    monkeypatch.setattr(capacity, "_machine", lambda: 1_000)
    return fit_table(table(c=Y * 0.5 + np.arange(200), d=np.arange(200) ** 0.5))


# The command line


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A directory with a finished run on the loans, and a table of a million different names."""
    place = tmp_path_factory.mktemp("trained")
    loans().write_csv(place / "loans.csv")
    with pytest.raises(SystemExit) as ended:
        main([*map(str, fit(place / "loans.csv", "--out", place / "run", target="default"))])
    assert ended.value.code == 0
    big = pl.DataFrame({"c": np.arange(MILLION)}).select(
        pl.format("name {}", "c").alias("c"),
        ((pl.col("c") * 7919) % 1000 / 100).alias("x"),
        (pl.col("c") % 3 == 0).alias("y"),
    )
    big.write_parquet(place / "million.parquet")
    return place


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(place):
    return sorted((str(path), path.read_bytes() if path.is_file() else b"") for path in place.rglob("*"))


@pytest.mark.parametrize(("name", "said", "code"), rows_of(FROM_OUTSIDE))
def test_on_the_command_line(name, said, code, here, monkeypatch, trained, capsys):
    arguments = [str(part) for part in ON_THE_COMMAND_LINE[name](monkeypatch, trained)]
    before = everything(here)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    heard = capsys.readouterr()
    assert str(ended.value.code) == code.split()[0]
    assert says(said, heard.out + heard.err)
    if code in ("0", "3"):
        made = {"fit": {"run"}, "report": {"report.html"}}.get(arguments[0], set())
        assert {path.name for path in here.iterdir()} == made | {Path(path).name for path, _ in before}
        return
    assert everything(here) == before
    assert heard.out == ""
    if code != "2 (usage)":
        assert heard.err.startswith("setpoint: ")
        assert heard.err.count("\n") == 1


@slow
@pytest.mark.parametrize("name", ["a row with too many values", "an ask that contradicts itself"])
def test_in_a_process_of_its_own(name, here, monkeypatch, trained):
    (said,) = [said for row, said, _ in ROWS if row == name]
    arguments = [str(part) for part in ON_THE_COMMAND_LINE[name](monkeypatch, trained)]
    before = everything(here)
    environment = {**os.environ, "PYTHONPATH": str(Path(sp.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, "-m", "setpoint.cli", *arguments],
        cwd=here, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert says(said, ended.stderr)
    assert ended.stderr.count("\n") == 1
    assert everything(here) == before


# The library

PROBLEM = "minimize fnr where fpr <= 50%"
BY_GROUP = "minimize error where recall.gap(sex) <= 10%"
SCORES, LABELS = [0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1]
NAN, INF = float("nan"), float("inf")


def library(name, do):
    in_python(name)(lambda monkeypatch: do())


def at_the_border(name, scores=SCORES, labels=LABELS, **more):
    """The same input to `calibrate`, `evaluate` and a solver, which must all say the same."""

    def do():
        results = []
        for door in (
            sp.calibrate,
            sp.evaluate,
            lambda problem, *a, **k: sp.ImplicitThreshold(sp.ask(problem))(*a, **k),
        ):
            try:
                results.append(door(PROBLEM, scores, labels, **more))
            except errors.SetpointError as refusal:
                results.append(refusal)
        calibrated, evaluated, loss = results
        assert str(calibrated) == str(evaluated)
        if isinstance(calibrated, Exception):
            assert (type(loss), str(loss)) == (type(calibrated), str(calibrated))
            raise calibrated
        assert torch.isfinite(loss)
        assert calibrated == sp.evaluate(PROBLEM, SCORES, LABELS)
        return str(calibrated)

    library(name, do)


at_the_border("labels that are booleans", labels=[False, False, True, True])
at_the_border("labels 0.0 and 1.0", labels=[0.0, 0.0, 1.0, 1.0])
at_the_border("labels as objects, as pandas has them", labels=np.array([False, 0, True, 1], dtype=object))
at_the_border("labels that are words", labels=["no", "no", "yes", "yes"])
at_the_border("labels -1 and 1", labels=[-1, -1, 1, 1])
at_the_border("labels 1 and 2", labels=[1, 1, 2, 2])
at_the_border("labels in between", labels=[0, 0.5, 1, 1])
at_the_border("labels with NaN or None", labels=[0, None, 1, 1])
at_the_border("words of which one is missing", labels=["no", "no", None, "yes"])
at_the_border("no labels", labels=None)
at_the_border("labels of shape (n, 1)", labels=torch.tensor(LABELS).unsqueeze(-1))
at_the_border("fewer labels than scores", labels=[0, 1, 1])
at_the_border("scores with NaN", [0.1, 0.4, 0.6, NAN])
at_the_border("infinite scores", [0.1, 0.4, 0.6, INF])
at_the_border("scores that are words", list("abcd"))
at_the_border("complex scores", torch.tensor(SCORES) * 1j)
at_the_border("scores of shape (n, 1)", torch.tensor(SCORES).unsqueeze(-1))
at_the_border("scores of shape (n, 2)", torch.zeros(4, 2))
at_the_border("lists of different lengths for scores", [[0.1, 0.2], [0.3]])
at_the_border("negative weights", weights=[1, 1, 1, -1])
at_the_border("weights with NaN", weights=[1, 1, 1, NAN])
library("a model to export that is none", lambda: sp.export_onnx(3, "model.onnx"))
library("a place for an exported model that ends otherwise", lambda: sp.export_onnx("run", "model.pkl"))
library(
    "a tuned classifier to export without rows",
    lambda: sp.export_onnx(
        sp.Tuned(LogisticRegression(), PROBLEM).fit([[k] for k in range(60)], [0, 1] * 30), "m.onnx"
    ),
)
in_python("weights that are all 0")(lambda _: sp.evaluate(PROBLEM, SCORES, LABELS, weights=[0, 0, 0, 0]))


def criterion(scores, labels, **settings):
    return sp.ImplicitThreshold(sp.ask(PROBLEM), **settings)(torch.tensor(scores), torch.tensor(labels))


library(
    "a correction at one set of parameters, without a model",
    lambda: criterion([0.0, 1.0], [0.0, 1.0], correction=sp.losses.Correction(every=9, batches=3)),
)
library(
    "a correction on more batches than memory holds",
    lambda: criterion([0.0, 1.0] * 2, [0.0, 1.0] * 2, correction=sp.losses.Correction(every=9, latest=3), memory=8),
)


library("scores that are all equal", lambda: sp.evaluate(PROBLEM, [1.0] * 4, LABELS))
library(
    "scores that are all equal, a bound out of reach",
    lambda: sp.evaluate("maximize recall where precision >= 99%", [1.0] * 4, LABELS),
)
library("nothing to judge", lambda: sp.evaluate(PROBLEM, [], []))
library("an empty batch in training", lambda: float(criterion([], [])))
library(
    "a batch of one class in training",
    lambda: "finite" if torch.isfinite(criterion(SCORES, [1, 1, 1, 1])) else "not finite",
)
library("one class to judge", lambda: sp.evaluate(PROBLEM, SCORES, [1] * 4))
library("one class for a point from elsewhere", lambda: sp.evaluate(PROBLEM, SCORES, LABELS).judge(SCORES, [0] * 4))
library("a cost below 0", lambda: sp.cost(miss=-1, alarm=1))
library("costs of nothing", lambda: sp.cost(miss=0, alarm=0))
library("weights by no column", lambda: sp.rates.Weighted(sp.recall, ""))
library(
    "groups beside a rate weighted by a column",
    lambda: sp.ask("minimize fnr weighted by amount where recall.gap(sex) <= 1%"),
)
library(
    "an area of a rate weighted by a column", lambda: sp.ask("maximize recall weighted by amount over fpr in [0, 5%]")
)
library("a plain rate beside one of a class", lambda: sp.ask("minimize fnr where recall of class a >= 90%"))
library(
    "an ask for a class that is not there",
    lambda: sp.ask("maximize recall of class melanom").resolved(["mole", "melanoma"]),
)
library(
    "the rate of a class whose number is not known",
    lambda: sp.ask("maximize recall of class melanoma").objective(torch.ones(2, 4)),
)
library("an area where there are several classes", lambda: sp.ask("maximize auc").resolved(["mole", "melanoma"]))
EYE = np.eye(3)[[0, 1, 2, 0]]
LISTS_ASK = "maximize recall in the first 2"
library("an ask about lists without lists", lambda: sp.evaluate(LISTS_ASK, SCORES, LABELS))
library("lists for another ask", lambda: sp.evaluate("minimize error", SCORES, LABELS, lists=[0, 0, 1, 1]))
library("lists that are missing", lambda: sp.evaluate(LISTS_ASK, SCORES, LABELS, lists=[0, 0, 1, None]))
library("lists of more rows than scores", lambda: sp.evaluate(LISTS_ASK, SCORES, LABELS, lists=[0, 0, 1, 1, 1]))
library("lists of lists", lambda: sp.evaluate(LISTS_ASK, SCORES, LABELS, lists=[[0], [0], [1], [1]]))
library(
    "weights that differ within a list",
    lambda: sp.evaluate(LISTS_ASK, SCORES, LABELS, lists=[0, 0, 1, 1], weights=[1, 2, 1, 1]),
)
library(
    "too few lists to certify",
    lambda: sp.calibrate(
        f"{LISTS_ASK} where hit in the first 1 >= 99%", SCORES, LABELS, lists=[0, 0, 1, 1], confidence=0.95
    ),
)


def fit_lists(train, held_out):
    x, labels = torch.zeros(4, 1), torch.tensor([0.0, 1.0, 0.0, 1.0])
    loaders = [
        sp.Batches(x, labels) if own is None else sp.Batches(x, labels).with_lists(own) for own in (train, held_out)
    ]
    return sp.fit(
        torch.nn.Linear(1, 1), LISTS_ASK, *loaders, calibration=sp.Batches(x, labels).with_lists([7, 7, 8, 8])
    )


library("a loader of rows without lists", lambda: fit_lists(None, [2, 2, 3, 3]))
library("a list in two parts", lambda: fit_lists([0, 0, 1, 1], [0, 0, 3, 3]))
library("names of lists in a loader", lambda: fit_lists(["a"] * 4, [2, 2, 3, 3]))
library("a solver of lists for another ask", lambda: sp.losses.ImplicitLists(sp.ask("minimize error")))
TWO_LABELS = f"{PROBLEM} for each of a, b"
library("one score per row for several classes", lambda: sp.evaluate("maximize macro recall", SCORES, LABELS))
library(
    "rows of scores of different lengths",
    lambda: sp.evaluate("maximize macro recall", [[0.1, 0.9], [0.5]], [0, 1]),
)
library(
    "names for other columns of scores than there are",
    lambda: sp.evaluate("maximize macro recall", EYE, [0, 1, 2, 0], classes=["a", "b"]),
)
library(
    "labels that name no class",
    lambda: sp.evaluate("maximize macro recall", EYE[:, :2], ["a", "b", "c", "a"], classes=["a", "b"]),
)
library(
    "a name of a class that is missing",
    lambda: sp.evaluate("maximize macro recall", EYE, ["a", "b", "c", None], classes=["a", "b", "None"]),
)
WORDS = ["no" if k % 2 else "yes" for k in range(60)]
library(
    "words of which one is missing, for an estimator",
    lambda: sp.SetpointClassifier(PROBLEM).fit([[k] for k in range(60)], [*WORDS[:7], None, *WORDS[8:]]),
)
library("class numbers beyond the last", lambda: sp.evaluate("maximize macro recall", EYE, [0, 1, 7, 0]))
library("no samples of a class that is asked for", lambda: sp.evaluate("maximize recall of class 2", EYE, [0, 1, 0, 0]))
library(
    "decisions from too few columns of scores",
    lambda: sp.evaluate("maximize macro recall", EYE, [0, 1, 2, 0]).predict(EYE[:2, :2]),
)
library("a class weight for several classes", lambda: sp.CrossEntropy(2.0)(torch.eye(3), torch.arange(3)))
library("a class that is no class", lambda: sp.classes.OfClass(sp.recall, -1))
library("several labels of which there is one", lambda: sp.ask({"a": "minimize fnr"}))
library("a label with two asks", lambda: sp.ask("a: minimize fnr; a: minimize fpr"))
library("an area for one of several labels", lambda: sp.ask({"a": "minimize fnr", "b": "maximize auc"}))
library("labels other than 0, 1 and NaN", lambda: sp.evaluate(PROBLEM, EYE[:, :2], 2 * EYE[:, :2]))
library("a label that is known for no row", lambda: sp.evaluate(PROBLEM, EYE[:, :2], EYE[:, :2] * [1, NAN]))
library("names of other labels than there are", lambda: sp.evaluate(TWO_LABELS, EYE[:, :2], EYE[:, :2], classes="ac"))
library("scores of fewer labels than are asked for", lambda: sp.evaluate(TWO_LABELS, EYE[:, :1], EYE[:, :1]))
library(
    "a certificate that one label cannot have",
    lambda: sp.calibrate(TWO_LABELS, EYE[:, :2], EYE[:, :2], confidence=0.95),
)
library("a class weight for several labels", lambda: sp.CrossEntropy(2.0)(torch.eye(3), torch.eye(3)))
library("unknown labels for a model to fit", lambda: sp.Tuned(Forest(), TWO_LABELS).fit(EYE, EYE[:, :2] * NAN))
library("labels that are no numbers in Y", lambda: sp.SetpointClassifier(TWO_LABELS).fit(EYE, [["a", "b"]] * 4))
library("two kinds of questions at once", lambda: sp.ask("maximize macro recall where fpr weighted by amount <= 1%"))
library("a rate that lists do not have", lambda: sp.rates.InFirst(sp.fpr, 5))
library("the first 0 rows of lists", lambda: sp.rates.InFirst(sp.recall, 0))
library("a plain rate beside one in lists", lambda: sp.ask("maximize recall in the first 20 where precision >= 30%"))
library(
    "a rate without a meaning beside one in lists", lambda: sp.ask("maximize recall in the first 20 where fpr <= 1%")
)
library("counts of lists that are not deep enough", lambda: sp.rates.InFirst(sp.recall, 20)(torch.ones(3, 2, 4)))
library("counts of rows without values", lambda: sp.rates.Weighted(sp.recall, "amount")(torch.ones(4)))
library("a question that is none", lambda: sp.evaluate(None, SCORES, LABELS))
library("groups asked for and not given", lambda: sp.evaluate(BY_GROUP, SCORES, LABELS))
library("groups missing for some", lambda: sp.evaluate(BY_GROUP, SCORES, LABELS, groups=["a", NAN, "b", "b"]))
library("a confidence outside 0 ... 1", lambda: sp.calibrate(PROBLEM, SCORES, LABELS, confidence=95))
library(
    "a confidence that few samples cannot give",
    lambda: sp.calibrate("minimize fnr where fpr <= 1%", SCORES, LABELS, confidence=0.95),
)
TWENTY = [0.1, 0.9] * 10, [0, 1] * 10
library("a level of a watch outside 0 ... 1", lambda: sp.evaluate(PROBLEM, SCORES, LABELS).watch(level=5))
library(
    "weights in a watch", lambda: sp.evaluate(PROBLEM, SCORES, LABELS).watch().update(SCORES, LABELS, weights=[1] * 4)
)
library("a watch without a bound", lambda: sp.evaluate("maximize f1", SCORES, LABELS).watch())
library(
    "a batch that a watch has counted",
    lambda: sp.evaluate(PROBLEM, SCORES, LABELS).watch().update(*TWENTY).update(*TWENTY),
)
library(
    "clusters of other rows",
    lambda: sp.calibrate(PROBLEM, SCORES, LABELS, confidence=0.95, clusters=["a", "b"]),
)
library(
    "weights above the largest that can occur",
    lambda: sp.calibrate(PROBLEM, SCORES, LABELS, confidence=0.95, weights=sp.PopulationWeights([1, 2, 3, 1], most=2)),
)
library("a largest weight of 0", lambda: sp.PopulationWeights([1, 2, 3, 1], most=0))
library("rows split in two ways", lambda: Settings(cluster="patient", time="day"))
library("clusters that are split again", lambda: Settings(cluster="patient", over_splits=True, ensemble=3))
library("decisions for NaN", lambda: sp.evaluate(PROBLEM, SCORES, LABELS).predict([0.5, NAN]))
library("a directory for a saved point", lambda: sp.OperatingPoint.load(DOCS))


def batches(width=3, rows=100):
    x = torch.arange(rows * width).reshape(rows, width) % 17 / 17
    return x, (torch.arange(rows) % 2).float()


def fit_model(x, labels, *solver, width=3):
    held_out = sp.Batches(*batches())
    return sp.fit(torch.nn.Linear(width, 1), PROBLEM, [(x, labels)], held_out, *solver)


X, LABELLED = batches()
WITH_NAN = torch.where(torch.arange(300).reshape(100, 3) == 7, NAN, X)
library("NaN among the features of a linear model", lambda: fit_model(WITH_NAN, LABELLED))
library("more features than the model takes", lambda: fit_model(X, LABELLED, width=4))


class Odd(torch.nn.Module):
    """A network with BatchNorm, whose forward is changed by a function."""

    def __init__(self, change=lambda scores: scores):
        super().__init__()
        layers = torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU(), torch.nn.Linear(2, 1)
        self.inner, self.change = torch.nn.Sequential(*layers), change

    def forward(self, x):
        return self.change(self.inner(x))


def fit_network(model, x=X):
    train, rest = sp.Batches(x, LABELLED, batch_size=33), sp.Batches(X, LABELLED)
    return sp.fit(model, PROBLEM, train, rest, calibration=[(X + 1, LABELLED)], epochs=1).point


library("a network that returns a dict", lambda: fit_network(Odd(lambda scores: {"logits": scores})))
library("a network whose parameters are all frozen", lambda: fit_network(Odd().requires_grad_(False)))
library("float64 rows for a float32 network", lambda: fit_network(Odd(), X.double()))
library("a last batch of one row for a network with BatchNorm", lambda: fit_network(Odd()))
library("empty batches for a linear model", lambda: fit_model(X[:0], LABELLED[:0]))
library("a loader without batches", lambda: sp.fit(torch.nn.Linear(3, 1), PROBLEM, [], sp.Batches(*batches())))
library("arrays for tensors in a batch", lambda: fit_model(X, LABELLED.numpy()))
library("the name of a solver", lambda: fit_model(X, LABELLED, "implicit"))
library(
    "an estimator without the values that the ask counts",
    lambda: sp.SetpointClassifier("maximize recall weighted by amount where fpr <= 1%").fit(
        X.numpy(), LABELLED.numpy()
    ),
)
library(
    "a program of too many pairs",
    lambda: sp.lp.forms.auc(torch.zeros(400_000), (torch.arange(400_000) % 2).float()),
)


@in_python("tensors too large for the linear recipe")
def _(monkeypatch):
    monkeypatch.setattr(capacity, "_machine", lambda: 10_000)
    return fit_model(X, LABELLED)


@pytest.mark.parametrize(
    ("name", "said", "error"),
    rows_of(FROM_WITHIN),
)
def test_in_python(name, said, error, monkeypatch):
    if error == "works":
        assert says(said, str(IN_PYTHON[name](monkeypatch)))
        return
    with pytest.raises(errors.SetpointError) as refusal:
        IN_PYTHON[name](monkeypatch)
    assert type(refusal.value).__name__ == error
    assert says(said, str(refusal.value))
    assert "\n" not in str(refusal.value)


# What the estimates of memory rest on


def test_the_memory_of_a_container_is_the_limit_if_it_is_less(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "_GROUP", tmp_path)
    monkeypatch.setattr(capacity, "_machine", lambda: 1000)
    assert capacity.available_memory() == 1000
    (tmp_path / "memory.max").write_text("900\n")
    (tmp_path / "memory.current").write_text("500\n")
    (tmp_path / "memory.stat").write_text("anon 100\ninactive_file 70\n")
    assert capacity.available_memory() == 470
    (tmp_path / "memory.max").write_text("max\n")
    assert capacity.available_memory() == 1000


def test_memory_is_what_the_system_says_it_is(tmp_path, monkeypatch):
    size = capacity.available_memory()
    assert size is None or 2**20 < size < 2**60


#: Prints the peak of memory over the estimate, for each pair of rows and features.
PEAK = """
import re, sys, torch, setpoint as sp
from pathlib import Path
from setpoint.train.linear import recipe_bytes

def held(kind):
    return 1024 * int(re.search(kind + r":\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

def train(rows, features):
    torch.manual_seed(0)
    x, labels = torch.randn(rows, features), (torch.arange(rows) % 3 == 0).float()
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    few = sp.Batches(x[:50], labels[:50])
    sp.fit(torch.nn.Linear(features, 1), "minimize fnr where fpr <= 50%", [(x, labels)], few, sp.Ridge())
    return (held("VmHWM") - before) / recipe_bytes(rows, features)

train(50, 2)
# Other allocations of the process can only add to a peak: the least of three is the recipe's own.
print(*(min(train(*size) for _ in range(3)) for size in ((300, 1500), (150_000, 20), (3000, 300))))
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory is read as on Linux")
@slow
def test_the_estimate_for_linear_recipes_is_about_what_they_take():
    environment = {**os.environ, "PYTHONPATH": str(Path(sp.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    # Freed memory goes back to the system at once, so the peak is what was asked for, to a per mille.
    environment |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", PEAK]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    for share in map(float, ended.stdout.split()):
        # The estimate leaves room for an allocator that keeps what is freed, but no more than that.
        assert 0.4 < share < 1.0
