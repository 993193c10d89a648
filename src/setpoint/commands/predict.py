"""`setpoint predict`: scores and decisions for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setpoint.artefact import SavedRun, load_run
from setpoint.show import console, say
from setpoint.table.exchange import beside, read_anywhere, refuse_pipe, writing
from setpoint.table.frame import Frame
from setpoint.table.groups import group_names
from setpoint.table.scan import scan_table


def main(
    *, run: Path, data: Path, out: Path, keep: list[str] | None, stream: bool, ignore_extra: bool, quiet: bool
) -> None:
    saved, kept = load_run(run), keep or []
    if stream:
        refuse_pipe(data)
        with writing(out) as write:
            for _, frame in scan_table(data).frames():
                write(beside(frame, kept, _answers(saved, frame, kept, ignore_extra)[0]))
        return
    frame = read_anywhere(data)
    answers, scored = _answers(saved, frame, kept, ignore_extra)
    with writing(out) as write:
        write(beside(frame, kept, answers))
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in saved.schema.notes(scored)))


def _answers(saved: SavedRun, frame: Frame, keep: list[str], ignore_extra: bool) -> tuple[dict[str, Any], Frame]:
    """A score and the decisions of every row, and the columns that they were made from."""
    used = {column.name for column in saved.schema.columns}
    # A column that is only copied need not be one that training had.
    scored = frame.drop([name for name in keep if name not in used], strict=False)
    scores = saved.scores(scored, ignore_extra=ignore_extra)
    group = saved.point.problem.group
    groups = None if group is None else group_names(frame, group)
    decisions = saved.point.predict(scores, groups).reshape(len(scores), -1).T.numpy()
    names = ["decision"] if len(decisions) == 1 else [f"decision_{i + 1}" for i in range(len(decisions))]
    return {"score": scores.numpy(), **dict(zip(names, decisions))}, scored
