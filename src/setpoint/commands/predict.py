"""`setpoint predict`: scores and decisions for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setpoint.commands.terminal import console, say, unlike_training
from setpoint.data.exchange import beside, formulas, frames_of, writing
from setpoint.data.frame import Frame
from setpoint.data.seen import Notes
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadSetting
from setpoint.measure.in_first import LISTS
from setpoint.serve.run import ServedRun, load_run


def main(
    *,
    run: Path,
    data: list[Path],
    out: Path,
    keep: list[str] | None,
    stream: bool,
    ignore_extra: bool,
    strict: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
) -> int:
    saved, kept = load_run(run), keep or []
    if stream and saved.point.problem.kind == LISTS:
        raise BadSetting(
            "rows are ranked within whole lists, and --stream reads a table in chunks that may cut a list; leave it out"
        )
    found: list[str] = []
    frames = frames_of(data, stream=stream, layout=TextFormat(separator, encoding, not no_header), notes=found)
    aside = console(stderr=True, quiet=quiet)
    say(aside, *(f"note: {note}" for note in found))
    if strict:
        # Before anything is written: in a pass of its own, since a stream is never held whole.
        seen = saved.schema.notes()
        for frame in frames:
            _answers(saved, frame, kept, ignore_extra, seen)
        if unlike_training(seen.alarms()):
            return 1
    notes, risky = saved.schema.notes(), dict.fromkeys(kept, 0)
    with writing(out) as write:
        for frame in frames:
            write(beside(frame, kept, _answers(saved, frame, kept, ignore_extra, notes)))
            for name in kept:
                risky[name] += formulas(frame[name])
    told = [
        f"column {name!r}: {count} kept values start with =, +, - or @, which a spreadsheet may run as a formula"
        for name, count in risky.items()
        if count
    ]
    say(aside, *(f"note: {note}" for note in [*notes.sentences(), *told]))
    return 0


def _answers(saved: ServedRun, frame: Frame, keep: list[str], ignore_extra: bool, notes: Notes) -> dict[str, Any]:
    """A score (or one per class or label) and the decisions of every row; in lists its rank, too."""
    used = {column.name for column in saved.schema.columns}
    # A column that is only copied need not be one that training had.
    scored = frame.drop([name for name in keep if name not in used], strict=False)
    scores = saved.scores(scored, ignore_extra=ignore_extra, notes=notes)
    return saved.columns(frame, scores)
