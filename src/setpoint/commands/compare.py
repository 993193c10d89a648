"""`setpoint compare`: several solvers on several random splits, and what of it is more than noise."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from setpoint.commands.settings import read_settings
from setpoint.commands.show import console, grid, progress, say, value_text, write_json
from setpoint.data.frame import read_table
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem
from setpoint.run.compare import Comparison, Standing, compare_table, usual_solvers, verdict
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
) -> None:
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
    if as_json:
        write_json(found.to_dict())
        return
    screen = console()
    if not quiet:
        say(screen, str(problem))
        screen.print(grid(_head(found), [_row(problem, standing) for standing in found.standings]))
        say(screen, *_legend(found))
    say(screen, verdict(found))


def _head(found: Comparison) -> list[str]:
    name = str(found.problem.objective)
    head = ["solver", f"{name}\nbest cut", "difference\nfrom c.-e.", f"{name} at\nthreshold"]
    return [*head, *(["bounds\nheld"] if found.problem.constraints else []), "seconds"]


def _row(problem: Problem, standing: Standing) -> list[str]:
    best = "-" if standing.mean_best is None else value_text(problem.objective, standing.mean_best)
    row = [standing.solver, best, _difference(problem, standing)]
    row.append(value_text(problem.objective, statistics.fmean(standing.at_threshold)))
    if problem.constraints:
        row.append(f"{sum(standing.held)} of {len(standing.held)}")
    return [*row, f"{statistics.fmean(standing.seconds):.1f}"]


def _difference(problem: Problem, standing: Standing) -> str:
    if standing.difference is None:
        return ""
    size = 100 if problem.objective.is_share else 1
    text = f"{size * standing.difference:+.2f}"
    if standing.standard_error is not None:
        text += f" ± {size * standing.standard_error:.2f}"
    return f"{text}{'*' if standing.is_clear else ' '}"


def _legend(found: Comparison) -> list[str]:
    seeds = f"{found.seeds[0]}" if len(found.seeds) == 1 else f"{found.seeds[0]} to {found.seeds[-1]}"
    points = "in points, " if found.problem.objective.is_share else ""
    legend = [
        f"Means over {len(found.seeds)} random splits (seeds {seeds}); {found.rows['train']} training and "
        f"{found.rows['test']} test rows each.",
        f"Best cut: at the best threshold of the test rows. Difference: {points}± one standard error, corrected for "
        "rows that splits share; * is beyond noise (95%, all solvers together).",
    ]
    if found.problem.constraints:
        sure = found.settings.confidence
        how = f"certified at {sure:g}" if sure else "uncertified, so about half of the splits may break a bound"
        legend.append(f"Bounds held: on the test rows, at the threshold set on calibration rows, {how}.")
    lost = sum(value is None for standing in found.standings for value in standing.best)
    if lost:
        legend.append(f"{lost} times no threshold met the bounds on the test rows; those are left out of the means.")
    return legend
