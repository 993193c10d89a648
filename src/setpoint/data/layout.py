"""The layout of encoded rows: which neighbouring features come from one value of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Block:
    """Neighbouring features that come from one value of a row.

    Attributes:
        name: The column, or the value derived from it, such as "joined: month".
        kind: "amount" for an amount; "missable" for an amount, then a 0/1 feature that says whether it is missing;
            either may have more features behind, of single values of the amount. "levels" for 0/1 features, one per
            level, missing and other among them.
        width: The number of features.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.schema import Schema
        >>> from setpoint.data.target import Target
        >>> frame = pl.DataFrame({"amount": [1.5, None, 2.0, 4.0], "job": ["a", "b", "a", "b"], "paid": [0, 1, 0, 1]})
        >>> [(block.name, block.kind, block.width) for block in Schema.of(frame, Target.of(frame, "paid")).blocks]
        [('amount', 'missable', 2), ('job', 'levels', 2)]
    """

    name: str
    kind: Literal["amount", "missable", "levels"]
    width: int


class Layout:
    """The blocks of the features of a row, in order, and the values that the features were made of.

    Args:
        blocks: The blocks; none for rows whose features are all amounts.

    Example:
        >>> import numpy as np
        >>> from setpoint.data.layout import Block, Layout
        >>> layout = Layout([Block("age", "missable", 2), Block("region", "levels", 3)])
        >>> layout.values(np.array([[0.5, 0, 0, 1, 0], [0.0, 1, 0, 0, 0]])).tolist()
        [[0.5, 1.0], [nan, nan]]
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        starts = np.cumsum([0, *(block.width for block in blocks)])
        self.width = int(starts[-1])
        self.starts = starts[:-1]
        kinds = [block.kind for block in blocks]
        self.levels = [place for place, kind in enumerate(kinds) if kind == "levels"]
        self.missable = [place for place, kind in enumerate(kinds) if kind == "missable"]

    def values(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """One value per block `(n, blocks)`: an amount, or the number of a level; NaN where there is none.

        A level that training never saw has no feature, so it is missing as well.
        """
        if not self.levels and not self.missable:
            return x
        found = x[:, self.starts]
        for place in self.missable:
            found[x[:, self.starts[place] + 1] > 0, place] = np.nan
        for place in self.levels:
            own = x[:, self.starts[place] : self.starts[place] + self.blocks[place].width]
            found[:, place] = own.argmax(1)
            found[own.max(1) <= 0, place] = np.nan
        return found

    def names(self, width: int) -> list[str]:
        """The name of each value; numbers for rows without blocks."""
        return [block.name for block in self.blocks] or [str(place) for place in range(width)]

    def to_json(self) -> str:
        """Text from which `from_json` makes the layout."""
        return json.dumps([(block.name, block.kind, block.width) for block in self.blocks])

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """The layout that `to_json` wrote."""
        return cls([Block(*block) for block in json.loads(text)])
