"""`setpoint compare`: several solvers on several random splits, and what of it is more than noise."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from setpoint.commands.fit import read_settings
from setpoint.commands.show import console, grid, progress, say, write_json
from setpoint.data.exchange import read_anywhere
from setpoint.data.layout import Layout
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem
from setpoint.report.explained import difference, legend, verdict
from setpoint.report.words import show_value
from setpoint.run.compare import Comparison, Standing, compare_table, usual_solvers
from setpoint.train.default import BASELINE


def main(
    *,
    data: list[Path],
    target: str,
    ask: str,
    trials: int,
    solvers: str | None,
    positive: str | None,
    as_json: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
    **how: Any,
) -> None:
    problem, settings = read_problem(ask), read_settings(solver=BASELINE, **how)
    names = usual_solvers(problem, settings.model)
    if solvers is not None:
        names = [name.strip() for name in solvers.split(",") if name.strip()]
    aside = console(stderr=True, quiet=quiet)
    notes: list[str] = []
    frame = read_anywhere(data, Layout(separator, encoding, not no_header), notes)
    say(aside, *(f"note: {note}" for note in notes))
    with progress(aside) as on_split:
        found = compare_table(frame, target, problem, settings, names, trials, positive=positive, on_split=on_split)
    say(aside, *(f"note: {note}" for note in found.notes))
    if as_json:
        write_json({**found.to_dict(), "verdict": verdict(found), "notes": [*notes, *found.notes]})
        return
    screen = console()
    if not quiet:
        say(screen, str(problem))
        screen.print(grid(_head(found), [_row(problem, standing) for standing in found.standings]))
        say(screen, *legend(found))
    say(screen, verdict(found))


def _head(found: Comparison) -> list[str]:
    name = str(found.problem.objective)
    head = ["solver", f"{name}\nbest cut", "difference\nfrom c.-e.", f"{name} at\nthreshold"]
    return [*head, *(["bounds\nheld"] if found.problem.constraints else []), "seconds"]


def _row(problem: Problem, standing: Standing) -> list[str]:
    best = "-" if standing.mean_best is None else show_value(problem.objective, standing.mean_best)
    at_threshold = show_value(problem.objective, statistics.fmean(standing.at_threshold))
    held = [f"{sum(standing.held)} of {len(standing.held)}"] if problem.constraints else []
    row = [standing.solver, best, difference(problem, standing), at_threshold, *held]
    return [*row, f"{statistics.fmean(standing.seconds):.1f}"]
