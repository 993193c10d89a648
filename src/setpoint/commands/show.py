"""Printing: progress and tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from setpoint.commands.terminal import console
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import Constraint, Quantity
from setpoint.measure.in_first import LISTS, InFirst
from setpoint.problem.labels import LabelProblem
from setpoint.problem.point import OperatingPoint
from setpoint.report.by_label import bounds_held, label_heads, label_rows
from setpoint.report.names import in_words, method_words
from setpoint.report.verdict import shown_runs
from setpoint.report.words import part_name, show_bound, show_bounded, show_value
from setpoint.run.table import TableRun

SHOWN = ("train", "held_out", "test")
#: The width of the heads of columns, which are folded between words.
_NARROW = 10
#: The width of a table, and the least of it for the first column.
_WIDTH, _NAME = 80, 16


def write_json(answer: Mapping[str, Any]) -> None:
    """The answer for machines, on standard output."""
    print(json.dumps(answer, indent=2, allow_nan=False))


def grid(head: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """A table of texts: the first column to the left, the others to the right, narrow enough for 80 columns.

    Nothing is cut off: names in the first column are folded, and other columns only if that does not suffice.
    """
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    columns = [[name, *(str(row[place]) for row in rows)] for place, name in enumerate(head)]
    others = sum(2 + max(len(line) for cell in column for line in cell.split("\n")) for column in columns[1:])
    firm = others <= min(console().width, _WIDTH) - _NAME
    for place, name in enumerate(head):
        side: JustifyMethod = "right" if place else "left"
        table.add_column(escape(name), justify=side, vertical="bottom", overflow="fold", no_wrap=firm and place > 0)
    for row in rows:
        table.add_row(*(escape(cell) if isinstance(cell, str) else cell for cell in row))
    return table


@contextmanager
def progress(screen: Console) -> Iterator[Callable[..., None]]:
    """One bar per solver with the time left; no bars if the screen is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    silent = screen.quiet or not screen.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=screen, disable=silent) as bar:
        tasks = {}

        def on_epoch(solver: str, done: int, epochs: int, doing: str = "") -> None:
            said = f"training: {solver}{doing and f', {doing}'}"
            if solver not in tasks:
                tasks[solver] = bar.add_task(said, total=epochs)
            bar.update(tasks[solver], completed=done, description=said)

        yield on_epoch


@contextmanager
def redrawn(screen: Console) -> Iterator[Callable[..., None]]:
    """Texts and tables at the end of the terminal, drawn again with every call and gone at the end."""
    with Live(console=screen, transient=True, refresh_per_second=4) as live:
        yield lambda *parts: live.update(Group(*parts))


def result_table(run: TableRun) -> Table:
    """One row per solver: the objective and each bounded rate on every part, and the threshold.

    Bounds on classes, whose names are long, are shown on the test rows alone. The shifts of classes stand in the
    sentence below the table, and lists have no threshold to show.
    """
    problem, noun = run.problem, run.chosen.point.thresholds.noun
    if isinstance(problem, LabelProblem):
        return _result_of_labels(run)
    parts, several = SHOWN[-1:] if problem.kind == CLASSES else SHOWN, problem.kind in (CLASSES, LISTS)
    heads = [f"{_head(problem.objective)}\n{part_name(part)}" for part in SHOWN]
    heads += [f"{_head(c.quantity)}\n{c.relation} {show_bound(c)}\n{part_name(part)}"
              for c in problem.constraints for part in parts]  # fmt: skip
    rows: list[list[str | Text]] = []
    for one, name in zip(*shown_runs(run)):
        objectives = [show_value(problem.objective, one.judged(part).objective) for part in SHOWN]
        bounded = [_bounded(constraint, one.judged(part)) for constraint in problem.constraints for part in parts]
        own = [] if several else [one.point.thresholds.describe("")]
        rows.append([name, *objectives, *bounded, *own])
    table = grid(["method", *heads, *([] if several else [noun])], rows)
    table.title, table.title_justify = escape(str(problem)), "left"
    return table


def _head(quantity: Quantity) -> str:
    """The name of a quantity above a narrow column: `precision in the first 5` is `precision @5`, as in asks."""
    name = f"{quantity.rate} @{quantity.k}" if isinstance(quantity, InFirst) else str(quantity)
    return "\n".join(wrap(name, _NARROW, break_long_words=False))


def _result_of_labels(run: TableRun) -> Table:
    """One row per solver: the mean objective on every part, and how many bounds held on the test rows."""
    objective, rows = run.problem.objective, []
    for one, name in zip(*shown_runs(run)):
        judged = [one.judged(part) for part in SHOWN]
        held, bounds = bounds_held(judged[-1])
        values = [show_value(objective, point.objective) for point in judged]
        rows.append([name, *values, f"{held} of {bounds}"])
    table = grid(["method", *(f"{objective}\n{part_name(part)}" for part in SHOWN), "bounds held\ntest"], rows)
    table.title, table.title_justify = escape(str(run.problem)), "left"
    return table


def label_table(run: TableRun) -> Table:
    """One row per label on the test rows: its objective beside that of the rival, its bounded rates, its threshold."""
    problem = run.problem
    assert isinstance(problem, LabelProblem)
    objective, bounds = label_heads(problem)
    rivals = [] if run.rival is None else [label_rows(run.rival.judged("test"))]
    rows: list[list[str | Text]] = []
    thresholds = run.chosen.point.thresholds
    for place, row in enumerate(label_rows(run.chosen.judged("test"))):
        marked = [Text(f"{text}*", style="red") if beyond else Text(text) for text, beyond in row.bounds]
        marked = marked if problem.is_uniform or not bounds else [Text("\n").join(marked)]
        others: list[str | Text] = [rival[place].objective for rival in rivals]
        rows.append([row.label, row.objective, *others, *marked, thresholds.shown(row.threshold)])
    named = [f"{objective}\n{run.rival.name}" for _ in rivals if run.rival is not None]
    return grid(["label", f"{objective}\ntest", *named, *(f"{bound}\ntest" for bound in bounds), "threshold"], rows)


def trials_table(run: TableRun) -> Table:
    """The methods that `auto` chose from, with their values on held-out rows."""
    objective = run.problem.objective
    rows: list[list[str | Text]] = []
    for trial in run.chosen.trials:
        value = "-" if trial.point is None else show_value(objective, trial.point.objective)
        name = f"{method_words(trial.name)}{' (kept)' if trial.chosen else ''}"
        rows.append([name, value, f"{trial.seconds:.1f}", in_words(trial.note)])
    name = "objective" if run.chosen.point.labels else str(objective)
    table = grid(["tried", f"{name}\nheld-out", "seconds", "note"], rows)
    table.columns[-1].justify = "left"
    for column in table.columns:
        column.vertical = "top"
    return table


def _bounded(constraint: Constraint, point: OperatingPoint) -> str | Text:
    text, beyond = show_bounded(constraint, point.rates, feasible=point.feasible)
    return Text(f"{text}*", style="red") if beyond else text
