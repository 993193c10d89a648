"""`setpoint compare`: several methods on several random splits, and which differences are more than noise."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setpoint.commands.asks import read_asks
from setpoint.commands.fit import UNCERTIFIED, read_settings
from setpoint.commands.show import grid, redrawn, write_json
from setpoint.commands.terminal import console, say
from setpoint.data.exchange import read_anywhere
from setpoint.data.text_format import TextFormat
from setpoint.decide.settle import demanded
from setpoint.problem.caution import cautions_of_ask
from setpoint.problem.problem import Problem
from setpoint.report.explained import difference, legend, verdict
from setpoint.report.names import compared_names
from setpoint.report.words import has_best_cut, show_value
from setpoint.run.compare import News, Trials, compare_table, usual_solvers
from setpoint.run.side_by_side import MODEL
from setpoint.run.standing import Standing
from setpoint.train.default import BASELINE
from setpoint.train.kinds import kinds_for


def main(*, data: list[Path], target: str, ask: str, positive: str | None, **given: Any) -> int:
    layout = TextFormat(given.pop("separator"), given.pop("encoding"), not given.pop("no_header"))
    as_json, quiet = given.pop("as_json"), given.pop("quiet")
    problem = read_asks(ask)
    trials, settings = _asked(problem, **given)
    settings.refuse_other_lists(problem)
    aside = console(stderr=True, quiet=quiet)
    notes: list[str] = []
    frame = read_anywhere(data, layout, notes)
    say(aside, *(f"note: {note}" for note in notes))
    with running_table(aside, problem, trials) as on_news:
        found = compare_table(frame, target, problem, settings, trials, positive=positive, on_news=on_news)
    say(aside, *(f"note: {note}" for note in found.notes))
    code = 0
    if demanded(settings.confidence) is not None and found.refusal is not None:
        print(f"setpoint: no certificate: {found.refusal}", file=sys.stderr)
        code = UNCERTIFIED
    if as_json:
        answer = found.to_dict()
        for one, label in zip(answer["solvers"], compared_names([one.solver for one in found.standings])):
            one["label"] = label
        write_json({**answer, "verdict": verdict(found), "notes": [*notes, *found.notes]})
        return code
    screen = console()
    if not quiet:
        say(screen, str(found.problem))
        screen.print(_table(found.problem, found.standings, trials))
        say(screen, *legend(found), *(f"warning: {caution.sentence}" for caution in cautions_of_ask(problem)))
    say(screen, verdict(found))
    return code


def _asked(
    problem: Problem,
    *,
    trials: int,
    solvers: str | None,
    models: str | None,
    model: str | None,
    all_trials: bool,
    **how: Any,
) -> tuple[Trials, Any]:
    """The trials and their settings, from options."""
    if solvers is None and models is None and model is None:
        models = ",".join(kinds_for(problem))
    usual = "auto" if models is not None and how.get("minutes") else "linear"
    settings = read_settings(solver=BASELINE, model=model or usual, **how)
    names = [f"{MODEL}{name}" for name in _listed(models)]
    if solvers is not None or not names:
        names += usual_solvers(problem, settings.model) if solvers is None else _listed(solvers)
    # A certificate that was asked for can be refused on any split, and the exit code says so: all of them run.
    stop_early = not all_trials and demanded(settings.confidence) is None
    return Trials(names, trials, stop_early=stop_early), settings


def _listed(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


@contextmanager
def running_table(screen: Any, problem: Problem, trials: Trials) -> Iterator[Callable[[News], None] | None]:
    """The table as it grows; where the screen is no terminal, a line for each training that ends."""
    words = dict(zip([BASELINE, *trials.names], compared_names([BASELINE, *trials.names])))
    if screen.quiet:
        yield None
        return
    if not screen.is_terminal:
        yield lambda news: say(screen, *_line(problem, trials, words, news))
        return
    with redrawn(screen) as draw:

        def on_news(news: News) -> None:
            doing = f"split {news.split} of {trials.number}: {words[news.solver]}, {100 * news.share:.0f}% trained"
            draw(str(problem), _table(problem, news.standings, trials), doing)

        yield on_news


def _line(problem: Problem, trials: Trials, words: dict[str, str], news: News) -> list[str]:
    if not news.ended:
        return []
    standing = next(one for one in news.standings if one.solver == news.solver)
    shipped = show_value(problem.objective, standing.shipped[-1])
    took = f"{standing.seconds[-1]:.1f} seconds"
    return [f"split {news.split} of {trials.number}: {words[news.solver]}, {problem.objective} {shipped}, {took}"]


def _table(problem: Problem, standings: Sequence[Standing], trials: Trials) -> Any:
    name = str(problem.objective)
    held = ["bounds\nheld"] if problem.constraints else []
    best = [f"{name}\nbest cut"] if has_best_cut(problem) else []
    head = [
        "method",
        f"{name}\nshipped",
        "difference\nfrom c.-e.",
        *held,
        *best,
        "seconds",
        f"splits\nof {trials.number}",
    ]
    words = dict(zip([BASELINE, *trials.names], compared_names([BASELINE, *trials.names])))
    return grid(head, [_row(problem, one, words[one.solver], trials) for one in standings])


def _row(problem: Problem, standing: Standing, name: str, trials: Trials) -> list[str]:
    best = "-" if standing.mean_best is None else show_value(problem.objective, standing.mean_best)
    shipped = show_value(problem.objective, standing.mean_shipped)
    held = [f"{sum(standing.held)} of {len(standing.held)}"] if problem.constraints else []
    row = [name, shipped, difference(problem, standing), *held, *([best] if has_best_cut(problem) else [])]
    splits = f"stopped: {standing.trials}" if standing.stopped else f"{standing.trials}"
    return [*row, f"{statistics.fmean(standing.seconds):.1f}", splits]
