"""The layout of encoded rows: which neighbouring features come from one value of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Block:
    """Neighbouring features that come from one value of a row.

    Attributes:
        name: The column, or the value derived from it, such as "joined: month".
        kind: "amount" for one feature; "missable" for an amount, then a 0/1 feature that says whether it is missing;
            "levels" for 0/1 features, one per level, missing and other among them.
        width: The number of features.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.schema import Schema, Target
        >>> frame = pl.DataFrame({"amount": [1.5, None, 2.0, 4.0], "job": ["a", "b", "a", "b"], "paid": [0, 1, 0, 1]})
        >>> [(block.name, block.kind, block.width) for block in Schema.of(frame, Target.of(frame, "paid")).blocks]
        [('amount', 'missable', 2), ('job', 'levels', 2)]
    """

    name: str
    kind: Literal["amount", "missable", "levels"]
    width: int
