"""What travels along every training: who takes part, where its state is kept, and who is told of its progress."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from setpoint.processes import ALONE, Processes
from setpoint.train.checkpoint import Checkpoint, refusing_damage
from setpoint.train.draws import Draws

Tell = Callable[[dict[str, Any]], None]
T = TypeVar("T")


class Work:
    """The processes that train together, the store of what is done, and whom to tell of each row of history.

    `identity` says what the work is: a store that holds other work is refused.
    """

    def __init__(
        self,
        store: Checkpoint | None = None,
        *,
        processes: Processes = ALONE,
        tell: Tell | None = None,
        identity: dict[str, Any] | None = None,
    ) -> None:
        self.store = store or Checkpoint(None)
        self.processes, self._tell, self.identity = processes, tell, identity or {}
        self.done: dict[str, Any] | None = None

    def part(self, name: str, *, tell: Tell | None = None, **identity: Any) -> Work:
        """The work on a part, in a store of its own inside this one; it lasts until the whole is done."""
        return Work(
            self.store.part(name), processes=self.processes, tell=tell or self._tell,
            identity={**self.identity, **identity},
        )  # fmt: skip

    def by(self, processes: Processes) -> Work:
        """The same work, done by these processes."""
        store = copy.copy(self.store)
        store.processes = processes
        return Work(store, processes=processes, tell=self._tell, identity=self.identity)

    def tell(self, row: dict[str, Any]) -> None:
        """Tell whoever listens of a row of history."""
        if self._tell is not None:
            self._tell(row)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` returns: made and stored now, or read back if an earlier process has made it."""
        if self.done is None:
            state = self.store.open(self.identity)
            with refusing_damage(self.store.path):
                self.done = {} if state is None else dict(state["done"])
        if name not in self.done:
            self.done[name] = make()
            if self.store.is_on:
                self.store.save({"done": self.done})
        found: T = self.done[name]
        return found

    def redraw(self, loaders: Iterable[Any]) -> None:
        """Set the random generators of these loaders to where they stood when this work began.

        The order of the rows decides the last digits of their sums, so a resumed training draws the same order.
        """
        if self.store.is_on:
            draws = Draws(loaders)
            state = self.once("draws", draws.state)
            with refusing_damage(self.store.path):
                draws.load(state)
