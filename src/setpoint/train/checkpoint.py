"""Checkpoints: a directory that training can go on from after it was killed at any moment.

    state.pt        a hash, then the last state as torch writes it; replaced in one move
    NAME/           a checkpoint of its own for each part, such as a member of an ensemble

Only tensors, numbers, texts, lists and dicts are stored, and reading executes nothing (`weights_only`).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadFile, BadSetting, SetpointError
from setpoint.files import PENDING, make_directory, remove_empty, write_whole
from setpoint.processes import ALONE, Processes

FORMAT = 1
STATE = "state.pt"
State = dict[str, Any]


class Checkpoint:
    """Where `fit(..., checkpoint=)` keeps its state, and how often: after every epoch, and every so many `seconds`.

    A state costs some ten milliseconds; with `gap`, epochs that end within so many seconds of the last state leave
    none, and a kill costs that much work. The directory is removed when `fit` is done, unless `keep` is set; `fit`
    then goes on from its end, that is, it returns the same result at once. `anew` starts over whatever is there.
    `about` is stored along, for whoever reads it back. Without a path nothing is kept. Of several `processes` the first
    alone reads and writes; all of them must ask at the same time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        seconds: float = 30.0,
        gap: float = 0.0,
        keep: bool = False,
        anew: bool = False,
        about: State | None = None,
        processes: Processes = ALONE,
    ) -> None:
        if not seconds >= 0 or not gap >= 0:
            raise BadSetting(f"a checkpoint needs seconds and a gap of 0 or more, got {seconds!r} and {gap!r}")
        self.path = None if path is None else Path(path)
        self.seconds, self.gap, self.keep, self.anew, self.about = seconds, gap, keep, anew, about
        self.processes = processes
        self.identity: State = {}
        self.spent_before = 0.0
        self.begun = False
        self.opened = self.saved = time.monotonic()

    @classmethod
    def of(cls, given: str | os.PathLike[str] | Checkpoint | None) -> Checkpoint:
        """What was given, as a checkpoint."""
        return given if isinstance(given, Checkpoint) else cls(given)

    def part(self, name: str) -> Checkpoint:
        """The checkpoint of a part of the work; it lasts until the whole is done."""
        path = None if self.path is None else self.path / name
        return Checkpoint(path, seconds=self.seconds, gap=self.gap, keep=True, processes=self.processes)

    def open(self, identity: Mapping[str, Any]) -> State | None:
        """The state that is there, or None. One that is of other work, by its identity, is refused."""
        if self.processes.alone or self.path is None:
            return self._open(identity)
        answer: tuple[State | None, float, SetpointError | None] = (None, 0.0, None)
        if self.processes.leads:
            try:
                answer = (self._open(identity), self.spent_before, None)
            except SetpointError as cause:
                answer = (None, 0.0, cause)
        state, self.spent_before, refusal = self.processes.from_first(answer)
        if refusal is not None:
            raise refusal
        return state

    def _open(self, identity: Mapping[str, Any]) -> State | None:
        self.opened = self.saved = time.monotonic()
        self.identity = dict(identity)
        if self.path is None:
            return None
        if self.anew:
            self.remove()
        if not os.path.lexists(self.path):
            return None
        self._refuse_foreign(self.path)
        if not (self.path / STATE).is_file():
            # Removed by halves: the state goes first, so what is left belongs to nothing.
            self.remove()
            return None
        found = read_state(self.path)
        with refusing_damage(self.path):
            for name, now in self.identity.items():
                if name not in found["identity"] or found["identity"][name] != now:
                    then = found["identity"].get(name, "nothing")
                    raise BadFile(
                        f"the checkpoint at {self.path} is of other work: its {name} was {_brief(then)}, now it is "
                        f"{_brief(now)}; delete it to start anew, or give another path"
                    )
            self.spent_before = float(found["spent"])
            state: State = found["state"]
        return state

    @property
    def is_on(self) -> bool:
        """Whether anything is kept at all."""
        return self.path is not None

    def is_due(self, *, epoch_ended: bool = False) -> bool:
        """Whether the last state is old enough for another: after an epoch older than the gap, within one `seconds`."""
        if self.path is None:
            return False
        age = time.monotonic() - self.saved
        due = age >= (self.gap if epoch_ended else self.seconds)
        # One clock for all: a state is made of the parts of all processes.
        return self.processes.largest(float(due and self.processes.leads))[0] > 0

    @property
    def spent(self) -> float:
        """Seconds of work, those of earlier processes included."""
        return self.spent_before + time.monotonic() - self.opened

    def save(self, state: State) -> None:
        """Replace the state in one move. A full disk raises OSError, and the state before it stays."""
        if self.path is None or not self.processes.leads:
            return
        whole = {
            "format": FORMAT, "identity": self.identity, "about": self.about, "spent": self.spent, "state": state,
        }  # fmt: skip
        written = io.BytesIO()
        torch.save(plain(whole), written)
        made = make_directory(self.path)
        self.begun = True
        try:
            write_whole(self.path / STATE, _sealed(written.getvalue()))
        except BaseException:
            remove_empty(made)
            raise
        self.saved = time.monotonic()

    def close(self) -> None:
        """The work is done: remove the checkpoint, unless it is to be kept."""
        if not self.keep:
            self.remove()

    def remove(self) -> None:
        """Delete what a checkpoint wrote, the state first, and nothing else."""
        if self.path is not None and self.path.is_dir() and self.processes.leads:
            _remove(self.path)

    @staticmethod
    def _refuse_foreign(path: Path) -> None:
        if not path.is_dir():
            raise BadFile(f"{path} is not a directory, so no checkpoint is kept there; give another path")
        for entry in path.iterdir():
            if not (entry.is_dir() or entry.name == STATE or entry.name.startswith(PENDING)):
                raise BadFile(f"{path} holds {entry.name!r}, which no checkpoint wrote; give another path")


def read_state(path: Path) -> State:
    """Everything that `save` wrote, the identity and `about` included."""
    try:
        data = torch.load(io.BytesIO(_unsealed((path / STATE).read_bytes())), map_location="cpu", weights_only=True)
        kind = data["format"]
    except Exception as cause:  # torch raises a dozen kinds for a damaged file
        reason = str(cause).partition("\n")[0][:100] or type(cause).__name__
        raise BadFile(f"the checkpoint at {path} is damaged ({reason}); delete it to start anew") from cause
    if kind != FORMAT:
        raise BadFile(f"the checkpoint at {path} is of format {kind!r}, this version reads {FORMAT}; upgrade setpoint")
    return dict(data)


def _sealed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest() + data


def _unsealed(data: bytes) -> bytes:
    """torch alone does not notice a changed byte."""
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        raise ValueError("its hash differs")
    return data[32:]


@contextlib.contextmanager
def refusing_damage(path: Path | None) -> Iterator[None]:
    """One sentence for a state that can be read but does not hold what it should."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError, ValueError) as cause:
        if isinstance(cause, BadFile):
            raise
        reason = str(cause).partition("\n")[0][:100]
        raise BadFile(f"the checkpoint at {path} is damaged ({reason}); delete it to start anew") from cause


def plain(value: Any, name: str = "state") -> Any:
    """The same in tensors, numbers, texts, lists, tuples and dicts alone; anything else is refused by name."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {plain(key, f"a key of {name}"): plain(part, f"{name}.{key}") for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [plain(part, f"{name}[{place}]") for place, part in enumerate(value)]
        return parts if isinstance(value, list) else tuple(parts)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise BadSetting(
        f"{name} is a {type(value).__name__}, which a checkpoint cannot hold; keep it in tensors or numbers"
    )


def _remove(path: Path) -> None:
    (path / STATE).unlink(missing_ok=True)
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _remove(entry)
        elif entry.name.startswith(PENDING):
            entry.unlink(missing_ok=True)
    remove_empty([path])


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
