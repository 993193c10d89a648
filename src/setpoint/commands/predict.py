"""`setpoint predict`: scores and decisions for the rows of a table."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from setpoint.commands.terminal import tell, unlike_training
from setpoint.data.exchange import PIPE, beside, formulas, frames_at, on_each, writing
from setpoint.data.frame import Frame, named_columns
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
    workers: str | None,
    ignore_extra: bool,
    strict: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
) -> int:
    saved, kept = load_run(run), keep or []
    if (stream or workers) and saved.point.problem.kind == LISTS:
        raise BadSetting(
            "rows are ranked within whole lists, and --stream reads a table in chunks that may cut a list; leave it out"
        )
    found: list[str] = []
    layout = TextFormat(separator, encoding, not no_header)
    answer = partial(_answered, saved, kept, ignore_extra)
    with frames_at(data, stream=stream, workers=workers, layout=layout, notes=found) as frames:
        tell(*(f"note: {note}" for note in found), stderr=True, quiet=quiet)
        if strict:
            # Before anything is written: in a pass of its own, since a stream is never held whole.
            seen = saved.schema.notes()
            for _, here, _ in on_each(frames, answer):
                seen.merge(here)
            if unlike_training(seen.alarms()):
                return 1
        notes, risky, height = saved.schema.notes(), Counter[str](), 0
        with writing(out) as write:
            for rows, here, counts in on_each(frames, answer):
                write(rows)
                height += rows.height
                notes.merge(here)
                risky.update(counts)
    told = [
        f"column {name!r}: {count} kept values start with =, +, - or @, which a spreadsheet may run as a formula"
        for name, count in risky.items()
        if count
    ]
    tell(*(f"note: {note}" for note in [*notes.sentences(), *told]), stderr=True, quiet=quiet)
    if out != PIPE:
        tell(f"Written to {out}: {height:,} rows.", quiet=quiet)
    return 0


def _answered(
    saved: ServedRun, keep: list[str], ignore_extra: bool, first: int, frame: Frame
) -> tuple[Frame, Notes, dict[str, int]]:
    """The answers beside the kept columns, what training never saw, and the kept texts that look like formulas."""
    notes = saved.schema.notes()
    keep = named_columns(keep, frame.columns, "keep")
    rows = beside(frame, keep, _answers(saved, frame, keep, ignore_extra, notes))
    return rows, notes, {name: formulas(frame[name]) for name in keep}


def _answers(saved: ServedRun, frame: Frame, keep: list[str], ignore_extra: bool, notes: Notes) -> dict[str, Any]:
    """A score (or one per class or label) and the decisions of every row; in lists its rank, too."""
    used = {column.name for column in saved.schema.columns}
    # A column that is only copied need not be one that training had.
    scored = frame.drop([name for name in keep if name not in used], strict=False)
    scores = saved.scores(scored, ignore_extra=ignore_extra, notes=notes)
    return saved.columns(frame, scores)
