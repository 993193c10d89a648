"""Parts of the data: what a training is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from setpoint.data.pooled import Pooled


@dataclass(frozen=True)
class Data:
    """Loaders of rows to learn from, to choose by, to set the threshold on, and to judge the result on.

    `group_names` are the names of the groups that the rows number, where they have any.
    """

    train: Iterable[Any]
    held_out: Iterable[Any]
    calibration: Iterable[Any] | None = None
    test: Iterable[Any] | None = None
    group_names: tuple[str, ...] = ()

    def pooled(self) -> Data:
        """Training and held-out rows together to learn from; the held-out rows choose nothing any more."""
        return replace(self, train=Pooled(self.train, self.held_out))
