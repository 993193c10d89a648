"""The columns to predict where each row has several labels: one column of two classes per label, with gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from setpoint.data.frame import Frame, levels, with_labels
from setpoint.data.target import Target, refuse_odd_target
from setpoint.errors import BadTable
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LabelColumns:
    """The columns of several labels. A cell that is empty says that the label of that row is not known.

    Attributes:
        targets: The column of each label, with its two classes.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.label_columns import LabelColumns
        >>> frame = pl.DataFrame({"spam": [1, 0, None], "toxic": ["no", "yes", "no"]})
        >>> LabelColumns.of(frame, ["spam", "toxic"]).labels(frame).tolist()
        [[1.0, 0.0], [0.0, 1.0], [nan, 0.0]]
    """

    targets: tuple[Target, ...]
    #: The labels are no classes of one column.
    classes: ClassVar[tuple[str, ...]] = ()
    rest: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, frame: Frame, names: Sequence[str], positive: str | None = None) -> LabelColumns:
        """Find the two classes of each column, in the rows in which it is not empty.

        Raises:
            BadTable: If there is no such column, or it does not hold two classes.
        """
        for name in names:
            refuse_odd_target(frame, name)
        return cls(tuple(Target.of(with_labels(frame, name), name, positive) for name in names))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns to predict."""
        return tuple(target.name for target in self.targets)

    @property
    def name(self) -> str:
        """All names, for sentences."""
        return ", ".join(self.columns)

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, NaN where the cell is empty: `(n, L)`, float32."""
        found = torch.full((frame.height, len(self.targets)), torch.nan)
        for place, target in enumerate(self.targets):
            refuse_odd_target(frame, target.name)
            known = torch.from_numpy(levels(frame[target.name]).is_not_null().to_numpy())
            found[known, place] = target.labels(with_labels(frame, target.name))
        if len(found) and bool(found.isnan().all()):
            raise BadTable(f"labels {self.name} are empty in all {len(found)} rows; fill them in where they are known")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"labels": [target.to_dict() for target in self.targets]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelColumns:
        """The columns that `to_dict` wrote."""
        return cls(tuple(Target.from_dict(target) for target in data["labels"]))


#: What a table is learned for: one column, or the columns of several labels.
AnyTarget = Target | LabelColumns
