"""The rows of a table that have a label, for runs that were fitted with `--drop-missing-target`."""

from __future__ import annotations

from collections.abc import Iterable

from setpoint.data.frame import Frame, with_labels
from setpoint.data.scan import Scan
from setpoint.data.stream import Labelled
from setpoint.errors import BadTable
from setpoint.run.artefact import SavedRun


def labelled_rows(saved: SavedRun, frames: Iterable[Frame]) -> tuple[Iterable[Frame], list[str]]:
    """The rows with a label, if training left the others out, and a note on those that are left out; else all rows.

    Raises:
        BadTable: If no row has a label.
    """
    targets = saved.schema.target.columns
    if not saved.about["settings"].get("drop_missing_target"):
        return frames, []
    kept: Iterable[Frame]
    if isinstance(frames, Scan):
        kept = scan = Labelled(frames, targets[0])
        gone = frames.rows - scan.rows
    else:
        (frame,) = frames
        (own,) = kept = [with_labels(frame, *targets)]
        if own.is_empty():
            raise BadTable(f"target {', '.join(targets)!r} is missing in every row")
        gone = frame.height - own.height
    return kept, [f"{gone} rows without a label are left out, as in training"] if gone else []
