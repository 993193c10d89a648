"""`setpoint fit`: from a table and an ask to a run on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setpoint.artefact import check_place, save_run
from setpoint.commands.settings import read_settings
from setpoint.problem.language import ask as read_ask
from setpoint.run import fit_table
from setpoint.show import console, progress, result_table, say, sentences, write_json
from setpoint.table.frame import read_table


def main(
    *,
    data: Path,
    target: str,
    ask: str,
    positive: str | None,
    out: Path,
    force: bool,
    as_json: bool,
    quiet: bool,
    **how: Any,
) -> None:
    problem, settings = read_ask(ask), read_settings(**how)
    check_place(out, force=force)
    aside = console(stderr=True, quiet=quiet)
    with progress(aside) as on_epoch:
        run = fit_table(read_table(data), target, problem, settings, positive=positive, on_epoch=on_epoch)
    save_run(out, run, force=force)
    say(aside, *(f"note: {note}" for note in run.notes))
    if as_json:
        write_json({"out": str(out), **run.to_dict()})
        return
    screen = console(quiet=quiet)
    screen.print(result_table(run))
    say(
        screen,
        *sentences(run),
        f"Written to {out}; score new rows with: setpoint predict {out} new.csv",
        f"Check the promise on later rows with: setpoint evaluate {out} labelled.csv",
    )
