"""The schema: what training saw in each column, and how a frame becomes features and labels."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadFile, BadTable
from setpoint.table.column import Categorical, Numeric, describe, read_column, typed
from setpoint.table.frame import Frame, LevelCounts, holds_levels, holds_numbers, level_codes, level_counts, levels

#: Columns with rows beyond their range that are named one by one.
SHOWN = 5
#: Rows that are encoded at a time.
AT_ONCE = 65_536
_YES = ("1", "true", "t", "yes", "y", "positive", "pos")


@dataclass(frozen=True)
class Target:
    """The column to predict and its two classes; `why` says how the positive one was chosen."""

    name: str
    negative: str
    positive: str
    why: str

    @classmethod
    def of(cls, frame: Frame, name: str, positive: str | None = None) -> Target:
        """The classes of a column. Unless told, the positive one is the larger number, the one that says yes or
        true, or else the rarer one."""
        refuse_odd_target(frame, name)
        found = level_counts(frame[name], most=4)
        if found.missing:
            raise missing_labels(name, found.missing, frame.height)
        return cls.with_classes(name, found, frame[name].dtype.is_numeric(), positive)

    @classmethod
    def with_classes(cls, name: str, found: LevelCounts, numeric: bool, positive: str | None = None) -> Target:
        """The same for a column whose classes have been counted."""
        counts = found.times
        if found.different != 2:
            listed = ", ".join(map(repr, counts)) + (", ..." if found.different > 4 else "")
            remedy = "keep two of them" if found.different > 2 else "add rows of the other"
            raise BadTable(f"target {name!r} must hold two classes, but holds {found.different}: {listed}; {remedy}")
        common, rare = counts
        says_yes = [level for level in counts if level.lower() in _YES]
        if positive is not None:
            exact = [level for level in counts if level == positive]
            same = exact or [level for level in counts if level.lower() == positive.strip().lower()]
            if len(same) != 1:
                raise BadTable(f"no class {positive!r} in target {name!r}, which holds {common!r} and {rare!r}")
            chosen, why = same[0], "as asked"
        elif numeric:
            chosen, why = max(counts, key=float), "the larger number"
        elif len(says_yes) == 1:
            chosen, why = says_yes[0], "the one that says yes"
        else:
            chosen, why = rare, "the rarer class"
        return cls(name, rare if chosen == common else common, chosen, why)

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, float32."""
        refuse_odd_target(frame, self.name)
        codes = level_codes(frame[self.name], (self.negative, self.positive))
        if missing := int((codes == 2).sum()):
            raise missing_labels(self.name, missing, frame.height)
        if (codes < 0).any():
            unknown = levels(frame[self.name])[int((codes < 0).argmax())]
            raise BadTable(f"target {self.name!r} holds {unknown!r}; known are {self.negative!r} and {self.positive!r}")
        return torch.from_numpy(codes.astype(np.float32))


def missing_labels(name: str, missing: int, rows: int) -> BadTable:
    """What to say of a target that is not there in every row."""
    return BadTable(f"target {name!r} is missing in {missing} of {rows} rows; fill it in or drop those rows")


def refuse_odd_target(frame: Frame, name: str) -> None:
    """The column is there, and of a type that can hold classes."""
    if name not in frame.columns:
        raise BadTable(f"no column {name!r} to predict; {_instead(name, frame)}")
    column = frame[name]
    if not (holds_numbers(column) or holds_levels(column)):
        raise BadTable(f"target {name!r} holds values of type {column.dtype}; it must hold numbers, words or booleans")


def _instead(name: str, frame: Frame) -> str:
    """The column that a name which is not there may stand for, or else the columns there are."""
    same = [column for column in frame.columns if column.lower() == name.strip().lower()]
    near = same or difflib.get_close_matches(name, frame.columns, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are {', '.join(map(repr, frame.columns[:20]))}{', ...' if frame.width > 20 else ''}"


@dataclass(frozen=True)
class Schema:
    """The columns that training used, in order, those it dropped and why, and the target."""

    target: Target
    columns: tuple[Numeric | Categorical, ...]
    dropped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, frame: Frame, target: Target) -> Schema:
        """The schema of the training rows: hand over those only."""
        return cls.with_columns(target, {c.name: describe(c) for c in frame if c.name != target.name})

    @classmethod
    def with_columns(cls, target: Target, found: Mapping[str, Numeric | Categorical | str]) -> Schema:
        """The schema of columns of which each was described, or refused with a reason."""
        used = tuple(column for column in found.values() if not isinstance(column, str))
        dropped = tuple((name, why) for name, why in found.items() if isinstance(why, str))
        if not used:
            reasons = "; ".join(f"{name!r}: {why}" for name, why in dropped) or "there is no other column"
            raise BadTable(f"no column to learn {target.name!r} from ({reasons})")
        return cls(target, used, dropped)

    @property
    def features(self) -> list[str]:
        """The name of every feature that `encode` makes."""
        return [feature for column in self.columns for feature in column.features]

    def encode(self, frame: Frame, *, ignore_extra: bool = False) -> Tensor:
        """Features `(n, d)`, float32. Columns in any order; one that is missing is refused by name.

        So is one that training never had, unless `ignore_extra`; the target and what training dropped may be there.
        """
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            listed = ", ".join(map(repr, absent[:20])) + (", ..." if len(absent) > 20 else "")
            raise BadTable(f"the table lacks {listed}, which the model was trained on; {_instead(absent[0], frame)}")
        extra = self._extra(frame)
        if extra and not ignore_extra:
            raise BadTable(
                f"the table has {', '.join(map(repr, extra))}, which training never had; drop it, or let it be "
                "ignored with --ignore-extra (ignore_extra=True)"
            )
        features = torch.empty((frame.height, len(self.features)), dtype=torch.float32)
        # A column after the other, and then all of them turned at once: writing each across the rows is slow.
        turned = np.empty((len(self.features), min(frame.height, AT_ONCE)), dtype=np.float32)
        for first in range(0, frame.height, AT_ONCE):
            some, start = frame[first : first + AT_ONCE], 0
            for column in self.columns:
                end = start + len(column.features)
                turned[start:end, : some.height] = column.encode(some[column.name]).T
                start = end
            features[first : first + AT_ONCE] = torch.from_numpy(turned[:, : some.height]).T
        return features

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, float32."""
        return self.target.labels(frame)

    def _extra(self, frame: Frame) -> list[str]:
        known = {self.target.name, *(c.name for c in self.columns), *(name for name, _ in self.dropped)}
        return [name for name in frame.columns if name not in known]

    def notes(self, frame: Frame, *, ranges: bool = True) -> list[str]:
        """What a user should know before trusting the features of this frame.

        Without `ranges`, amounts beyond those of training go unmentioned: among rows drawn from one table some are.
        """
        ignored = [f"column {name!r} was not there in training and is ignored" for name in self._extra(frame)]
        notes = [note for c in self.columns for note in c.notes(frame[c.name])]
        beyond = [c.beyond(frame[c.name]) for c in self.columns if ranges and isinstance(c, Numeric)]
        outside = [note for note in beyond if note]
        if len(outside) > SHOWN + 1:
            outside[SHOWN:] = [f"{len(outside) - SHOWN} more columns have rows outside the range that training saw"]
        return ignored + notes + outside

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "target": asdict(self.target),
            "columns": [{"kind": type(column).__name__.lower(), **asdict(column)} for column in self.columns],
            "dropped": dict(self.dropped),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote."""
        try:
            return cls(
                Target(**{name: typed(str, value) for name, value in data["target"].items()}),
                tuple(read_column(**column) for column in data["columns"]),
                tuple((name, typed(str, why)) for name, why in data["dropped"].items()),
            )
        except (KeyError, TypeError, AttributeError) as cause:
            raise BadFile(f"damaged schema: {cause!r}") from cause
