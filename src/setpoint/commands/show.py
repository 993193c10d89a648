"""What a person sees: progress, tables, the sentences below them; and the same as JSON for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from setpoint.measure.constraint import Constraint, Quantity, percent
from setpoint.problem.point import OperatingPoint
from setpoint.run.solvers import BASELINE
from setpoint.run.table import TableRun

SHOWN = {"train": "train", "held_out": "held-out", "test": "test"}
#: The width of what is printed when nobody says how wide the screen is, as in a pipe or a log.
WIDE = 140


def console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that does not squeeze the table of a run when its output goes to a file; a quiet one is mute."""
    screen = Console(stderr=stderr, highlight=False, quiet=quiet)
    return screen if screen.is_terminal else Console(stderr=stderr, highlight=False, quiet=quiet, width=WIDE)


def say(screen: Console, *lines: str) -> None:
    """Plain lines, folded where the screen ends only if it is a terminal."""
    for line in lines:
        screen.print(line, markup=False, soft_wrap=not screen.is_terminal)


def unlike_training(alarms: Sequence[str]) -> bool:
    """Whether most rows of some column are unlike those of training; says so on standard error if they are."""
    if alarms:
        more = f" (and {len(alarms) - 1} more columns)" if len(alarms) > 1 else ""
        print(
            f"setpoint: {alarms[0]}{more}; nothing was written: check the file, or leave out --strict", file=sys.stderr
        )
    return bool(alarms)


def write_json(answer: Mapping[str, Any]) -> None:
    """The answer for machines, on standard output."""
    print(json.dumps(answer, indent=2, allow_nan=False))


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of texts: the first column to the left, the others to the right, narrow enough for 80 columns."""
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(escape(name), justify="right" if place else "left", no_wrap=not place, vertical="bottom")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


@contextmanager
def progress(screen: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time left, a solver a line; nothing at all when the screen is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    silent = screen.quiet or not screen.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=screen, disable=silent) as bar:
        tasks = {}

        def on_epoch(solver: str, done: int, epochs: int) -> None:
            if solver not in tasks:
                tasks[solver] = bar.add_task(f"training: {solver}", total=epochs)
            bar.update(tasks[solver], completed=done)

        yield on_epoch


def result_table(run: TableRun) -> Table:
    """One row a solver: the objective and each bounded rate on every part, and the threshold."""
    problem = run.problem
    # Narrow enough for a screen of 80 columns and one bound.
    table = Table(
        title=escape(str(problem)), title_justify="left", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False
    )
    table.add_column("solver", no_wrap=True)
    for name in (
        str(problem.objective),
        *(f"{c.quantity}\n{c.relation} {bound_text(c)}" for c in problem.constraints),
    ):
        for part in SHOWN.values():
            table.add_column(f"{escape(name)}\n{part}", justify="right", vertical="bottom")
    table.add_column("threshold", justify="right")
    for outcome in run.outcomes:
        judged = [outcome.judged[part] for part in SHOWN]
        cells = [value_text(problem.objective, point.objective) for point in judged]
        cells += [_bounded(constraint, point) for constraint in problem.constraints for point in judged]
        table.add_row(outcome.method, *cells, threshold_text(outcome.point, brief=True))
    return table


def trials_table(run: TableRun) -> Table:
    """What `auto` chose from, by held-out rows."""
    objective = run.problem.objective
    rows = []
    for trial in run.chosen.comparison:
        value = "-" if trial.point is None else value_text(objective, trial.point.objective)
        name = f"{trial.name}{' (chosen)' if trial.chosen else ''}"
        rows.append([name, value, f"{trial.seconds:.1f}", trial.note])
    table = grid(["auto chose from", f"{objective}\nheld-out", "seconds", "note"], rows)
    table.columns[-1].justify = "left"
    for column in table.columns:
        column.vertical = "top"
    return table


def sentences(run: TableRun) -> list[str]:
    """The rows, the positive class, the point, whether its bounds held on test, and how cross-entropy did."""
    target, test = run.schema.target, run.chosen.judged["test"]
    change = "" if target.why == "as asked" else "; --positive changes it"
    bounds = [
        f", {c.quantity} {value_text(c.quantity, test.rates[str(c.quantity)])} for a bound of {bound_text(c)}"
        for c in run.problem.constraints
    ]
    sizes = ", ".join(f"{size['rows']} {part.replace('_', '-')}" for part, size in run.sizes.items())
    star = "; * is beyond the bound" if bounds else ""
    return [
        f"Rows: {sizes}{star}.",
        f"Positive is {target.positive!r} in {target.name!r}, {target.why}{change}.",
        f"Run at threshold {threshold_text(run.chosen.point)}: {objective_text(test)} on test{''.join(bounds)}.",
        *_promise(run),
        *_comparison(run),
    ]


def value_text(quantity: Quantity, value: float) -> str:
    """A share in percent, any other quantity as it is."""
    return f"{100 * value:.2f}%" if quantity.is_share else f"{value:.4g}"


def bound_text(constraint: Constraint) -> str:
    return percent(constraint.bound) if constraint.quantity.is_share else f"{constraint.bound:.4g}"


def _bounded(constraint: Constraint, point: OperatingPoint) -> str:
    value = point.rates[str(constraint.quantity)]
    beyond = {"<=": value > constraint.bound, ">=": value < constraint.bound, "==": True}[constraint.relation]
    text = value_text(constraint.quantity, value)
    return f"[red]{text}*[/red]" if beyond and not point.feasible else text


def threshold_text(point: OperatingPoint, *, brief: bool = False) -> str:
    """The threshold, those of groups by name unless the text is to be brief, and of several the lowest and highest."""
    return point.thresholds.briefly() if brief else point.thresholds.describe()


def objective_text(point: OperatingPoint) -> str:
    problem = point.problem
    over = "" if problem.over is None else f" over {problem.over.rate}"
    return f"{problem.objective}{over} {value_text(problem.objective, point.objective)}"


def _promise(run: TableRun) -> list[str]:
    point, held = run.chosen.point, run.chosen.judged["test"].feasible
    estimates = [f"On the calibration rows: {estimate}." for estimate in point.estimates]
    if not point.problem.constraints:
        return estimates
    if not point.feasible:
        return [f"On the calibration rows {point.outcome.removeprefix('infeasible: ')}."]
    verdict = f"The bound {'held' if held else 'did not hold'} on test"
    if not run.certifiable:
        return [f"{verdict}; no data can certify such a bound.", *estimates]
    if run.chosen.refusal is not None:
        return [f"{verdict}, but nothing promises it: {run.chosen.refusal}."]
    if point.certificate is None:
        why = "but nothing promises it" if held else "as happens to about half of all uncertified thresholds"
        return [f"{verdict}, {why}; --confidence 0.95 sets a threshold that keeps it 95 times in 100."]
    promise = f"{point.certificate.statement} is certified with confidence {percent(point.certificate.confidence)}"
    doubt = "" if held else f", where {run.sizes['test']['rows']} rows have noise of their own"
    return [f"{verdict}{doubt}; {promise}, from {point.certificate.samples} calibration samples."]


def _comparison(run: TableRun) -> list[str]:
    if len(run.outcomes) == 1:
        return []
    ours, theirs = run.chosen.best_on_test, run.outcomes[-1].best_on_test
    if not (ours.feasible and theirs.feasible):
        return ["No threshold meets the bounds on the test rows, so there is nothing to compare there."]
    first, second, size = ours.objective, theirs.objective, run.sizes["test"]
    smaller = min(size["positives"], size["rows"] - size["positives"])
    # Two standard errors of a share of the smaller class: generous, since both models see the same rows.
    noise = 2 * (max(first * (1 - first), 0.0) / smaller) ** 0.5
    verdict, remark = "worse", ""
    if first == second:
        verdict = "just as well"
    elif abs(first - second) <= noise:
        verdict, remark = "about as well", f" (a difference within the noise of {size['rows']} rows)"
    elif run.problem.better(second, first):
        verdict, remark = "better", f"; --solver {BASELINE} takes it"
    return [
        f"Plain cross-entropy did {verdict} on test: {objective_text(theirs)} against "
        f"{value_text(run.problem.objective, first)}, each at its best threshold there{remark}."
    ]
