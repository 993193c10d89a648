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
    """

    name: str
    kind: Literal["amount", "missable", "levels"]
    width: int
