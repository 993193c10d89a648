"""`setpoint predict`: scores and decisions for the rows of a table."""

from __future__ import annotations

from pathlib import Path

from setpoint.artefact import load_run
from setpoint.show import console, say
from setpoint.table.exchange import read_anywhere, write_anywhere
from setpoint.table.groups import group_names


def main(*, run: Path, data: Path, out: Path, keep: list[str] | None, ignore_extra: bool, quiet: bool) -> None:
    saved = load_run(run)
    frame = read_anywhere(data)
    used = {column.name for column in saved.schema.columns}
    # A column that is only copied need not be one that training had.
    scored = frame.drop([name for name in keep or [] if name not in used], strict=False)
    scores = saved.scores(scored, ignore_extra=ignore_extra)
    group = saved.point.problem.group
    groups = None if group is None else group_names(frame, group)
    decisions = saved.point.predict(scores, groups).reshape(len(scores), -1).T.numpy()
    names = ["decision"] if len(decisions) == 1 else [f"decision_{i + 1}" for i in range(len(decisions))]
    write_anywhere(frame, keep or [], {"score": scores.numpy(), **dict(zip(names, decisions))}, out)
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in saved.schema.notes(scored)))
