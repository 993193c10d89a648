"""Parts of the data: what a training is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from setpoint.data.batch import Batches
from setpoint.data.pooled import Pooled


@dataclass(frozen=True)
class Data:
    """Loaders of rows to learn from, to choose by, to set the threshold on, and to judge the result on.

    `group_names` are the names of the groups that the rows number, where they have any. `seen` are training rows to
    judge the result on, where `train` is too large to be kept; None judges on all of them.
    """

    train: Iterable[Any]
    held_out: Iterable[Any]
    calibration: Iterable[Any] | None = None
    test: Iterable[Any] | None = None
    group_names: tuple[str, ...] = ()
    seen: Iterable[Any] | None = None

    @property
    def comes_whole(self) -> bool:
        """Whether all training rows come in one batch, as far as their loader says."""
        size = getattr(self.train, "batch_size", None)
        rows = getattr(self.train, "rows", None)
        return size is not None and rows is not None and size >= rows

    @property
    def is_on_each(self) -> bool:
        """Whether several processes each hold all training rows, and share out every batch."""
        return isinstance(self.train, Batches) and not self.train.processes.alone

    def on_each(self) -> Data:
        """The same where a process holds all rows and keeps them to itself."""

        def alone(loader: Any) -> Any:
            return loader.whole_on_each() if isinstance(loader, Batches) else loader

        return replace(
            self, train=alone(self.train), held_out=alone(self.held_out), calibration=alone(self.calibration),
            test=alone(self.test),
        )  # fmt: skip

    def pooled(self) -> Data:
        """Training and held-out rows together to learn from; the held-out rows choose nothing any more."""
        return replace(self, train=Pooled(self.train, self.held_out))
