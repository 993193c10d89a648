"""Notes on rows to be predicted: how they differ from what training saw, counted chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from setpoint.data.frame import Column, Frame

#: Columns with rows outside the range of training that are named one by one.
SHOWN = 5


@dataclass(frozen=True)
class Seen:
    """Counts of what training never saw in one column; `+` joins the counts of two chunks."""

    rows: int = 0
    infinite: int = 0
    missing: int = 0
    unseen: int = 0
    outside: int = 0
    example: str = ""

    def __add__(self, other: Seen) -> Seen:
        example = min(filter(None, (self.example, other.example)), default="")
        return Seen(
            self.rows + other.rows, self.infinite + other.infinite, self.missing + other.missing,
            self.unseen + other.unseen, self.outside + other.outside, example,
        )  # fmt: skip

    def share(self, count: int) -> str:
        """A count among all rows, in words."""
        return f"{count:,} of {self.rows:,} rows"


class Described(Protocol):
    """A column as training saw it, held against new rows."""

    @property
    def name(self) -> str: ...

    def look(self, column: Column) -> Seen:
        """Count what training never saw."""

    def notes(self, seen: Seen) -> list[str]:
        """Sentences on these counts for the user, apart from ranges."""

    def beyond(self, seen: Seen) -> str | None:
        """A sentence on the rows outside the range that training saw, if there are any."""

    def mostly(self, seen: Seen) -> str | None:
        """A sentence that says why most rows are unlike those of training, if they are."""


class Notes:
    """Notes for the user on how some rows, given at once or in chunks, differ from those of training."""

    def __init__(self, columns: Sequence[Described]) -> None:
        self.columns = columns
        self.seen = {column.name: Seen() for column in columns}
        self.extra: dict[str, None] = {}
        self.bare: dict[str, None] = {}

    def add(self, frame: Frame, extra: Sequence[str], bare: Sequence[str] = ()) -> None:
        """Take rows into account, as read by the schema.

        Args:
            frame: The rows.
            extra: Columns that training never had.
            bare: Columns of plain numbers that had percent signs in training.
        """
        self.extra.update(dict.fromkeys(extra))
        self.bare.update(dict.fromkeys(bare))
        for column in self.columns:
            self.seen[column.name] += column.look(frame[column.name])

    def merge(self, other: Notes) -> None:
        """Take the rows of other notes on the same columns into account."""
        self.extra |= other.extra
        self.bare |= other.bare
        self.seen = {name: seen + other.seen[name] for name, seen in self.seen.items()}

    def sentences(self, *, ranges: bool = True) -> list[str]:
        """The notes; without `ranges`, for the rows of training themselves, none about ranges and percent signs."""
        ignored = [f"column {name!r} was not there in training and is ignored" for name in self.extra]
        notes = [note for column in self.columns for note in column.notes(self.seen[column.name])]
        beyond = [column.beyond(self.seen[column.name]) for column in self.columns if ranges]
        outside = [note for note in beyond if note]
        if len(outside) > SHOWN + 1:
            outside[SHOWN:] = [f"{len(outside) - SHOWN} more columns have rows outside the range that training saw"]
        taken = "its numbers here have none and are taken as percent: 5 is 5 %"
        bare = [f"column {name!r} had percent signs in training; {taken}" for name in self.bare if ranges]
        return ignored + notes + bare + outside

    def alarms(self) -> list[str]:
        """One sentence per column whose rows are mostly unlike those of training."""
        found = [column.mostly(self.seen[column.name]) for column in self.columns]
        return [alarm for alarm in found if alarm]
