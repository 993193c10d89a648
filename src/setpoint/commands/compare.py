"""`setpoint compare`: several solvers on several random splits, and what of it is more than noise."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from setpoint.commands.fit import UNCERTIFIED, read_settings
from setpoint.commands.show import console, grid, progress, say, write_json
from setpoint.data.frame import read_table
from setpoint.decide.settle import demanded
from setpoint.problem.caution import cautions_of_ask
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem
from setpoint.report.explained import difference, legend, verdict
from setpoint.report.words import show_value
from setpoint.run.compare import Comparison, Standing, compare_table, usual_solvers
from setpoint.train.default import BASELINE


def main(
    *,
    data: Path,
    target: str,
    ask: str,
    trials: int,
    solvers: str | None,
    positive: str | None,
    as_json: bool,
    quiet: bool,
    **how: Any,
) -> int:
    problem, settings = read_problem(ask), read_settings(solver=BASELINE, **how)
    names = usual_solvers(problem, settings.model)
    if solvers is not None:
        names = [name.strip() for name in solvers.split(",") if name.strip()]
    aside = console(stderr=True, quiet=quiet)
    with progress(aside) as on_split:
        found = compare_table(
            read_table(data), target, problem, settings, names, trials, positive=positive, on_split=on_split
        )
    say(aside, *(f"note: {note}" for note in found.notes))
    code = 0
    if demanded(settings.confidence) is not None and found.refusal is not None:
        print(f"setpoint: no certificate: {found.refusal}", file=sys.stderr)
        code = UNCERTIFIED
    if as_json:
        write_json({**found.to_dict(), "verdict": verdict(found), "notes": list(found.notes)})
        return code
    screen = console()
    if not quiet:
        say(screen, str(problem))
        screen.print(grid(_head(found), [_row(problem, standing) for standing in found.standings]))
        say(screen, *legend(found))
    if not quiet:
        say(screen, *(f"warning: {caution.sentence}" for caution in cautions_of_ask(problem)))
    say(screen, verdict(found))
    return code


def _head(found: Comparison) -> list[str]:
    name = str(found.problem.objective)
    held = ["bounds\nheld"] if found.problem.constraints else []
    return ["solver", f"{name}\nshipped", "difference\nfrom c.-e.", *held, f"{name}\nbest cut", "seconds"]


def _row(problem: Problem, standing: Standing) -> list[str]:
    best = "-" if standing.mean_best is None else show_value(problem.objective, standing.mean_best)
    shipped = show_value(problem.objective, standing.mean_shipped)
    held = [f"{sum(standing.held)} of {len(standing.held)}"] if problem.constraints else []
    row = [standing.solver, shipped, difference(problem, standing), *held, best]
    return [*row, f"{statistics.fmean(standing.seconds):.1f}"]
