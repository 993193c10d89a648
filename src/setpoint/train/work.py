"""The circumstances of a training: the processes, the store of its state, and the listener to its progress."""

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
    """The circumstances of a training, which every method is given.

    Args:
        store: Where the state is kept; None keeps nothing.
        processes: The processes that train together.
        tell: A function that is called with each new row of history.
        identity: Describes the work in plain data. A store that holds other work is refused.

    Example:
        >>> import setpoint as sp
        >>> work = sp.methods.Work(tell=print)
        >>> work.once("sum", lambda: 1 + 2)
        3
        >>> work.tell({"epoch": 0})
        {'epoch': 0}
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
        """The work on a part of the training, with its own store inside this one, kept until the whole is done."""
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
        """Pass a row of history to the listener."""
        if self._tell is not None:
            self._tell(row)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make`: computed and stored now, or read back if it was stored before a kill."""
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
        """Set the random generators of these loaders to their state at the start of this work.

        The order of the rows decides the last digits of their sums, so a resumed training draws the same order.
        """
        if self.store.is_on:
            draws = Draws(loaders)
            state = self.once("draws", draws.state)
            with refusing_damage(self.store.path):
                draws.load(state)
