"""`setpoint compare`: several solvers on several random splits, and what of it is more than noise."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from setpoint.commands.asks import read_asks
from setpoint.commands.fit import UNCERTIFIED, read_settings
from setpoint.commands.show import grid, progress, write_json
from setpoint.commands.terminal import console, say
from setpoint.data.exchange import read_anywhere
from setpoint.data.text_format import TextFormat
from setpoint.decide.settle import demanded
from setpoint.problem.caution import cautions_of_ask
from setpoint.problem.problem import Problem
from setpoint.report.explained import difference, legend, verdict
from setpoint.report.words import has_best_cut, show_value
from setpoint.run.compare import Comparison, Standing, compare_table, usual_solvers
from setpoint.run.side_by_side import MODEL
from setpoint.train.default import BASELINE
from setpoint.train.kinds import kinds_for


def main(
    *,
    data: list[Path],
    target: str,
    ask: str,
    trials: int,
    solvers: str | None,
    models: str | None,
    model: str | None,
    positive: str | None,
    as_json: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
    **how: Any,
) -> int:
    problem = read_asks(ask)
    if solvers is None and models is None and model is None:
        models = ",".join(kinds_for(problem))
    usual = "auto" if models is not None and how.get("minutes") else "linear"
    settings = read_settings(solver=BASELINE, model=model or usual, **how)
    names = [f"{MODEL}{name}" for name in _listed(models)]
    if solvers is not None or not names:
        names += usual_solvers(problem, settings.model) if solvers is None else _listed(solvers)
    settings.refuse_other_lists(problem)
    aside = console(stderr=True, quiet=quiet)
    notes: list[str] = []
    frame = read_anywhere(data, TextFormat(separator, encoding, not no_header), notes)
    say(aside, *(f"note: {note}" for note in notes))
    with progress(aside) as on_split:
        found = compare_table(frame, target, problem, settings, names, trials, positive=positive, on_split=on_split)
    say(aside, *(f"note: {note}" for note in found.notes))
    code = 0
    if demanded(settings.confidence) is not None and found.refusal is not None:
        print(f"setpoint: no certificate: {found.refusal}", file=sys.stderr)
        code = UNCERTIFIED
    if as_json:
        write_json({**found.to_dict(), "verdict": verdict(found), "notes": [*notes, *found.notes]})
        return code
    screen = console()
    if not quiet:
        say(screen, str(found.problem))
        screen.print(grid(_head(found), [_row(found.problem, standing) for standing in found.standings]))
        say(screen, *legend(found))
    if not quiet:
        say(screen, *(f"warning: {caution.sentence}" for caution in cautions_of_ask(problem)))
    say(screen, verdict(found))
    return code


def _listed(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _head(found: Comparison) -> list[str]:
    name = str(found.problem.objective)
    held = ["bounds\nheld"] if found.problem.constraints else []
    best = [f"{name}\nbest cut"] if has_best_cut(found.problem) else []
    return ["solver", f"{name}\nshipped", "difference\nfrom c.-e.", *held, *best, "seconds"]


def _row(problem: Problem, standing: Standing) -> list[str]:
    best = "-" if standing.mean_best is None else show_value(problem.objective, standing.mean_best)
    shipped = show_value(problem.objective, standing.mean_shipped)
    held = [f"{sum(standing.held)} of {len(standing.held)}"] if problem.constraints else []
    row = [standing.solver, shipped, difference(problem, standing), *held, *([best] if has_best_cut(problem) else [])]
    return [*row, f"{statistics.fmean(standing.seconds):.1f}"]
