"""The columns of a table as training saw them, and how rows become features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import Frame, nearest
from setpoint.data.kinds import AnyColumn
from setpoint.data.layout import Block
from setpoint.data.learn import ENCODER, TAKEN_AS, describe
from setpoint.data.one_row import OneRow
from setpoint.data.reading import Readings, apply_readings, learn_readings
from setpoint.data.seen import Notes
from setpoint.data.target_mean import TargetMean, Truth, out_of_fold
from setpoint.errors import BadTable
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Rows that are encoded at a time.
AT_ONCE = 65_536


@dataclass(frozen=True)
class Columns:
    """The columns of the training rows, and how a table becomes features.

    Attributes:
        columns: The columns that training used, in order.
        dropped: The name of each column that is not used, and why.
        readings: How each column is read, by name.
    """

    columns: tuple[AnyColumn, ...]
    dropped: tuple[tuple[str, str], ...]
    readings: Readings

    @classmethod
    def learned(
        cls,
        frame: Frame,
        readings: Readings | None = None,
        kinds: Mapping[str, str] | None = None,
        truth: Truth | None = None,
    ) -> Columns:
        """Learn the columns of training rows, which no target is among; their `truth` if there are two classes."""
        readings, kinds = learn_readings(frame)[0] if readings is None else readings, kinds or {}
        refuse_odd_kinds(frame, (), kinds)
        read = apply_readings(frame, readings)
        found = {c.name: describe(c, readings.get(c.name), kinds.get(c.name), truth) for c in read}
        return cls.used_of(found, readings)

    @classmethod
    def used_of(cls, found: Mapping[str, AnyColumn | str], readings: Readings, goal: str = "") -> Columns:
        """The columns of which each was described, or refused with a reason; one at least must be of use."""
        used = tuple(column for column in found.values() if not isinstance(column, str))
        dropped = tuple((name, why) for name, why in found.items() if isinstance(why, str))
        if not used:
            reasons = "; ".join(f"{name!r}: {why}" for name, why in dropped) or "there is no other column"
            raise BadTable(f"no column to learn {goal + ' ' if goal else ''}from ({reasons})")
        return Columns(used, dropped, readings)

    @property
    def features(self) -> list[str]:
        """The name of every feature that `encode` makes."""
        return [feature for column in self.columns for feature in column.features]

    @property
    def blocks(self) -> list[Block]:
        """The features that come from one value each, in the order of `features`."""
        return [block for column in self.columns for block in column.blocks]

    def encode(self, frame: Frame, *, ignore_extra: bool = False, notes: Notes | None = None) -> Tensor:
        """`encoded` as a tensor."""
        return torch.from_numpy(self.encoded(frame, ignore_extra=ignore_extra, notes=notes))

    def encoded(self, frame: Frame, *, ignore_extra: bool = False, notes: Notes | None = None) -> NDArray[np.float32]:
        """Features `(n, d)`, float32, each row by itself, as the columns were read in training.

        Args:
            frame: Rows with columns in any order. A column that is missing or of another kind is refused by name, and
                so is one that training never had; the target and columns that training dropped may be there.
            ignore_extra: Let columns that training never had be there.
            notes: Takes note of what training never saw.
        """
        present = set(frame.columns)
        absent = [column.name for column in self.columns if column.name not in present]
        if absent:
            listed = ", ".join(map(repr, absent[:20])) + (", ..." if len(absent) > 20 else "")
            raise BadTable(
                f"the table lacks {listed}, which the model was trained on; {nearest(absent[0], frame.columns)}"
            )
        known = self._known()
        # A column without a name, as a separator at the end of each line makes, is never used.
        extra = [name for name in frame.columns if name and name not in known]
        if extra and not ignore_extra:
            raise BadTable(
                f"the table has {', '.join(map(repr, extra))}, which training never had; drop it, or let it be "
                "ignored with --ignore-extra (ignore_extra=True)"
            )
        read = apply_readings(frame.select([column.name for column in self.columns]), self.readings)
        if notes is not None:
            percents = [name for name in read.columns if self.readings[name].unit == "%"]
            notes.add(read, extra, [name for name in percents if frame[name].dtype.is_numeric()])
        widths = [len(column.features) for column in self.columns]
        features = np.empty((frame.height, sum(widths)), dtype=np.float32)
        # A column after the other, and then all of them turned at once: writing each across the rows is slow.
        turned = np.empty((sum(widths), min(frame.height, AT_ONCE)), dtype=np.float32)
        for first in range(0, frame.height, AT_ONCE):
            some, start = read[first : first + AT_ONCE], 0
            for column, width in zip(self.columns, widths):
                end = start + width
                turned[start:end, : some.height] = column.encode(some[column.name]).T
                start = end
            features[first : first + AT_ONCE] = turned[:, : some.height].T
        return features

    def encoded_row(self, row: Mapping[str, Any], notes: Notes | None = None) -> NDArray[np.float32] | None:
        """`encoded` for a single row, which is quicker; None if it must be read as a frame, or is to be refused."""
        if not row.keys() >= self._one_row.names or not self._names >= row.keys():
            return None
        return self._one_row.encoded(row, notes)

    @cached_property
    def _one_row(self) -> OneRow:
        return OneRow(self.columns, self.readings)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self._known())

    def of_training(self, features: Tensor, frame: Frame, truth: Truth) -> Tensor:
        """The features of the training rows as models train on them: no row's own label is in its features.

        Args:
            features: The same rows by `encode`; they are left as they are.
            frame: The training rows, all of them.
            truth: Their labels.
        """
        found, start = features, 0
        for column in self.columns:
            if isinstance(column, TargetMean):
                read = apply_readings(frame.select(column.name), self.readings)[column.name]
                found = features.clone() if found is features else found
                found[:, start : start + 1] = torch.from_numpy(out_of_fold(read, truth))
            start += len(column.features)
        return found

    def _known(self) -> set[str]:
        """The names that a table may have."""
        return {*(column.name for column in self.columns), *(name for name, _ in self.dropped)}

    def notes(self) -> Notes:
        """An empty set of notes, to be filled by `encode`."""
        return Notes(self.columns)

    def spellings(self) -> list[str]:
        """Sentences on the columns whose numbers or dates are written in another form than 1234.5 or 2024-12-31."""
        return [said for column in self.columns if (said := self.readings[column.name].spelling(column.name))]


def refuse_odd_kinds(frame: Frame, target: Sequence[str], kinds: Mapping[str, str]) -> None:
    """Refuse an unknown kind, or a kind for a column that is not there or is the target."""
    for name, kind in kinds.items():
        if kind not in TAKEN_AS and not kind.startswith(ENCODER):
            raise BadTable(f"column {name!r} cannot be taken as {kind!r}; choose one of {', '.join(TAKEN_AS)}")
        if name in target:
            raise BadTable(f"column {name!r} is the target, and cannot be taken as {kind}")
        if name not in frame.columns:
            raise BadTable(f"no column {name!r} to take as {kind}; {nearest(name, frame.columns)}")
