"""Every kind of question through every door: how each cell of docs/questions.md is tried, and how the page is written.

    python tests/questions.py        tries all cells and writes the tables of the page

A new kind of question is one entry of QUESTIONS, a new door one entry of DOORS.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from torch import nn

import setpoint as sp
from processes.launch import launch
from setpoint.cli import main
from setpoint.errors import SetpointError

PAGE = Path(__file__).parents[1] / "docs" / "questions.md"
YES, ESTIMATED = "yes", "estimated"
ROWS, CLASSES, PER_LIST = 360, ("a", "b", "c"), 6
CERTIFIED = 0.8


@dataclass(frozen=True)
class Question:
    """A kind of question: an ask of that kind, and the column of the table that it is about, or several columns."""

    ask: str
    target: str = "y"

    @property
    def about_classes(self) -> bool:
        return self.target == "kind"

    @property
    def about_labels(self) -> bool:
        return "," in self.target

    @property
    def about_lists(self) -> bool:
        return "in the first" in self.ask

    @property
    def outputs(self) -> int:
        """The number of scores per row."""
        return 3 if self.about_classes else 2 if self.about_labels else 1

    def rows(self, part: int, parts: int) -> np.ndarray:
        """The rows of one of several parts; lists stay whole."""
        numbers = np.arange(ROWS)
        return numbers[(numbers // PER_LIST if self.about_lists else numbers) % parts == part]


QUESTIONS = {
    "one bound": Question("minimize fnr where fpr <= 30%"),
    "several bounds": Question("maximize precision where recall >= 30% and fpr <= 50%"),
    "gaps between groups": Question("minimize error where recall.gap(sex) <= 40%"),
    "areas": Question("maximize recall over fpr in [0%, 30%] with 4 points"),
    "no bound": Question("maximize f_score(1)"),
    "review bands": Question("minimize review where precision >= 50% and npv >= 60%"),
    "costs of numbers": Question("minimize cost(miss=5, alarm=1)"),
    "worth of rows": Question("maximize recall weighted by amount where fpr <= 30%"),
    "one class": Question("maximize recall of class b where precision of class b >= 40%", "kind"),
    "several classes": Question("minimize error where recall of class a >= 30% and recall of class b >= 30%", "kind"),
    "several labels": Question("minimize fnr where fpr <= 40% for each of y, z", "y,z"),
    "lists": Question("maximize precision in the first 3 where hit in the first 3 >= 30%"),
}


@cache
def table() -> pl.DataFrame:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(ROWS, 2))
    y = (x[:, 0] + 0.7 * draw.normal(size=ROWS) > 0.3).astype(int)
    kind = np.array(CLASSES)[(x[:, 1] > -0.3).astype(int) + (x[:, 1] + 0.6 * draw.normal(size=ROWS) > 0.8)]
    columns = {"x0": x[:, 0], "x1": x[:, 1], "sex": np.array(["f", "m"])[draw.integers(0, 2, ROWS)]}
    amount = draw.lognormal(2, 1, ROWS).round(2)
    z, query = (x[:, 1] + 0.7 * draw.normal(size=ROWS) > 0).astype(int), np.arange(ROWS) // PER_LIST
    return pl.DataFrame({**columns, "amount": amount, "y": y, "kind": kind, "z": z, "query": query})


def columns(question: Question) -> dict[str, np.ndarray]:
    """Features, labels, groups and amounts of all rows, and scores that know something of the labels."""
    frame = table()
    x = frame.select("x0", "x1").to_numpy().astype(np.float32)
    draw = np.random.default_rng(1)
    labels = frame.select(question.target.split(",")).to_numpy().squeeze()
    if question.about_classes:
        labels = np.searchsorted(CLASSES, labels.astype(str))
        scores = 2 * np.eye(3)[labels] + draw.normal(size=(ROWS, 3))
    else:
        scores = 2.5 * labels + draw.normal(size=labels.shape)
    return {"x": x, "labels": labels, "scores": scores, "groups": frame["sex"].to_numpy(),
            "amount": frame["amount"].to_numpy(), "lists": frame["query"].to_numpy()}  # fmt: skip


def belonging(question: Question) -> dict[str, np.ndarray]:
    """The groups or the lists of all rows, by the argument that takes them."""
    named = [("groups", "gap(" in question.ask), ("lists", question.about_lists)]
    return {name: columns(question)[name] for name, wanted in named if wanted}


def given(question: Question) -> dict[str, object]:
    """What `sp.calibrate` is given beside scores and labels."""
    more: dict[str, object] = {**belonging(question)}
    if "amount" in question.ask:
        more["weights"] = {"amount": columns(question)["amount"]}
    if question.about_classes:
        more["classes"] = CLASSES
    return more


def evaluated(question: Question) -> None:
    own = columns(question)
    for decide in (sp.evaluate, sp.calibrate):
        point = decide(question.ask, own["scores"], own["labels"], **given(question))
        assert point.feasible
        assert len(point.predict(own["scores"], **belonging(question))) == ROWS


def certified(question: Question) -> str | None:
    own = columns(question)
    point = sp.calibrate(question.ask, own["scores"], own["labels"], confidence=CERTIFIED, **given(question))
    assert point.certificate is not None or point.estimates
    return None if point.certificate is not None else ESTIMATED


def loaders(question: Question, parts: int = 3) -> list[sp.Batches]:
    own = columns(question)
    made = []
    for part in range(parts):
        rows = question.rows(part, parts)
        labels = torch.from_numpy(own["labels"][rows])
        groups = torch.from_numpy((own["groups"][rows] == "m").astype(int)) if "gap(" in question.ask else None
        loader = sp.Batches(
            torch.from_numpy(own["x"][rows]), labels if question.about_classes else labels.float(), groups=groups
        )
        if "amount" in question.ask:
            loader = loader.with_values(torch.from_numpy(own["amount"][rows, None]))
        made.append(loader.with_lists(torch.from_numpy(own["lists"][rows])) if question.about_lists else loader)
    return made


def problem_of(question: Question) -> sp.Problem:
    """The problem as `sp.fit` takes it, which knows classes by their numbers."""
    return sp.ask(re.sub(r"class ([abc])", lambda found: f"class {CLASSES.index(found[1])}", question.ask))


def fitted(kind: str, question: Question, **more: object) -> object:
    train, held_out, rest = loaders(question)
    settings = {"epochs": 3} if kind == "mlp" else {}
    return sp.fit(kind, problem_of(question), train, held_out, calibration=rest, **settings, **more)


def resumed(question: Question) -> None:
    """A training that is stopped after its first epoch, and goes on to the parameters of one that was not."""

    class Stopped(Exception):
        pass

    def stop(row: dict[str, object]) -> None:
        raise Stopped

    def train(**more: object) -> object:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, question.outputs))
        loader, held_out, rest = loaders(question)
        settings = {"epochs": 3, "calibration": rest, **more}
        return sp.fit(model, problem_of(question), loader, held_out, sp.CrossEntropy(), **settings)

    whole = train()
    with tempfile.TemporaryDirectory() as place:
        kept = sp.Checkpoint(Path(place) / "kept", seconds=0)
        with contextlib.suppress(Stopped):
            train(checkpoint=kept, on_epoch=stop)
        assert (Path(place) / "kept").exists()
        again = train(checkpoint=sp.Checkpoint(Path(place) / "kept", seconds=0))
    assert again.point == whole.point
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])


def estimated(question: Question, classifier: object) -> None:
    own, more = columns(question), belonging(question)
    y = table().select(question.target.split(",")).to_numpy().squeeze()
    values = {"values": {"amount": own["amount"]}} if "amount" in question.ask else {}
    classifier.fit(own["x"], y, **more, **values)
    assert classifier.judge(own["x"], y, **more, **values).problem == classifier.operating_point_.problem
    assert len(classifier.decide(own["x"], **more)) == ROWS


def commanded(question: Question, *options: str, then: tuple[str, ...] = ("evaluate", "predict")) -> None:
    """Fit by the command line, then apply and judge the run; a refusal is raised as the library would."""
    others = {"y", "z", "kind", "query"} - {*question.target.split(","), *(["query"] if question.about_lists else [])}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        table().drop(others).write_csv(place / "t.csv")
        run, rows = str(place / "run"), str(place / "t.csv")
        _call("explain", question.ask)
        asked = ("--target", question.target, "--ask", question.ask, "--model", "linear", "--quiet",
                 *(("--lists", "query") if question.about_lists else ()))  # fmt: skip
        _call("fit", rows, *asked, "--out", run, *options)
        for command in then:
            if command == "report":
                _call("report", run)
                assert (place / "run" / "report.html").stat().st_size > 1000
            else:
                _call(command, run, rows, *(("--out", str(place / "p.csv")) if command == "predict" else ()))


def _call(*arguments: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(list(arguments))
    except SystemExit as ended:
        # 1 is the answer of evaluate that a promise is broken.
        if ended.code not in (None, 0, 1):
            raise SetpointError(" ".join(err.getvalue().split()).removeprefix("setpoint: ")) from ended


def _share(rank: int, size: int, question: Question) -> str:
    def work() -> None:
        train, held_out, rest = loaders(question)
        model = nn.Linear(2, question.outputs)
        sp.fit(model, problem_of(question), train, held_out, sp.CrossEntropy(), calibration=rest, epochs=2)

    return outcome(lambda _: work(), question)


def together(question: Question) -> None:
    """Two processes that train together, each with all rows."""
    with tempfile.TemporaryDirectory() as place:
        answers = set(launch(_share, 2, Path(place), question))
    if answers != {YES}:
        raise SetpointError(answers.pop())


def _model(question: Question) -> object:
    return MultiOutputClassifier(LogisticRegression()) if question.about_labels else LogisticRegression()


Door = Callable[[Question], object]
#: The doors that take less than a second, and those that take longer.
QUICK: dict[str, Door] = {
    "evaluate, calibrate": evaluated,
    "certificate": certified,
    "fit: linear": lambda question: fitted("linear", question) and None,
    "fit: network": lambda question: fitted("mlp", question) and None,
    "resume": resumed,
    "estimator": lambda question: estimated(question, sp.SetpointClassifier(question.ask, solver="default")),
    "Tuned": lambda question: estimated(question, sp.Tuned(_model(question), question.ask)),
}
LONG: dict[str, Door] = {
    "fit: trees": lambda question: fitted("trees", question) and None,
    "fit: auto": lambda question: fitted("auto", question) and None,
    "command line": commanded,
    "report": lambda question: commanded(question, then=("report",)),
    "stream": lambda question: commanded(question, "--stream", "--epochs", "1"),
    "several processes": together,
}
DOORS = {**QUICK, **LONG}


def outcome(door: Door, question: Question) -> str:
    """What becomes of a question at a door: yes, estimated, or the refusal, with ASK in the place of the ask."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = door(question)
        except SetpointError as refusal:
            said = str(refusal).replace(f"'{sp.ask(question.ask)}'", "ASK")
            return re.sub(r"\s+", " ", said)
    return found if isinstance(found, str) else YES


def cells_of_the_page() -> dict[tuple[str, str], str]:
    """The outcome that the page tells of each question at each door."""
    text = PAGE.read_text(encoding="utf-8")
    reasons = dict(re.findall(r"^(\d+)\. `(.*)`$", text, re.MULTILINE))
    found: dict[tuple[str, str], str] = {}
    head: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not head:
            head = cells
        elif not set(cells[0]) <= {"-"}:
            for door, cell in zip(head[1:], cells[1:]):
                number = re.fullmatch(r"no \((\d+)\)", cell)
                found[cells[0], door] = reasons[number[1]] if number else cell
    return found


def write() -> None:
    """Try every cell and write the tables and the reasons."""
    told = {(name, door): outcome(try_it, q) for name, q in QUESTIONS.items() for door, try_it in DOORS.items()}
    reasons = list(dict.fromkeys(said for said in told.values() if said not in (YES, ESTIMATED)))
    numbered = {said: f"no ({place})" for place, said in enumerate(reasons, 1)}
    lines = []
    for doors in (QUICK, LONG):
        lines += ["| question | " + " | ".join(doors) + " |", "|" + " --- |" * (len(doors) + 1)]
        for name in QUESTIONS:
            lines.append(f"| {name} | " + " | ".join(numbered.get(told[name, d], told[name, d]) for d in doors) + " |")
        lines.append("")
    asks = ["| question | ask of the test |", "| --- | --- |", *(f"| {n} | `{q.ask}` |" for n, q in QUESTIONS.items())]
    begin, end = "<!-- cells -->", "<!-- end of cells -->"
    text = PAGE.read_text(encoding="utf-8")
    body = "\n".join([*lines, *(f"{place}. `{said}`" for place, said in enumerate(reasons, 1)), "", *asks])
    PAGE.write_text(f"{text.split(begin)[0]}{begin}\n{body}\n{end}{text.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    write()
    sys.exit(0)
