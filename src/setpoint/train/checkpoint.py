"""Checkpoints: a directory from which a training that was killed at any moment can be resumed.

    state.pt        a hash, then the last state as torch writes it; replaced in one move
    NAME/           the checkpoint of a part, such as a member of an ensemble

Only tensors, numbers, texts, lists and dicts are stored, and reading executes no code (`weights_only`).
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
from setpoint.serve.stored import STATE

FORMAT = 1
State = dict[str, Any]


class Checkpoint:
    """Where and how often `fit(..., checkpoint=)` keeps its state.

    The state is saved after every epoch, and within an epoch every `seconds`; saving takes about ten milliseconds. The
    directory is removed when `fit` is done.

    Args:
        path: The directory. None keeps nothing.
        seconds: The time between two states within an epoch.
        gap: The least time between two states: epochs that end sooner save none, and a kill loses that much work.
        keep: Leave the directory when `fit` is done; the same call then returns the same result at once.
        anew: Start over, whatever state is there.
        about: Plain data to store with the state.
        processes: The processes that train together. Only the first reads and writes; all must ask at the same time.

    Raises:
        BadSetting: If `seconds` or `gap` is negative.

    Example:
        >>> import tempfile, torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> model, ask = torch.nn.Linear(1, 1), "minimize fnr where fpr <= 10%"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept = sp.Checkpoint(folder + "/state", keep=True)
        ...     result = sp.fit(model, ask, train, held_out, calibration=rest, checkpoint=kept)
        ...     (kept.path / "state.pt").is_file()
        True
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
        """A checkpoint from a path, or the checkpoint itself."""
        return given if isinstance(given, Checkpoint) else cls(given)

    def part(self, name: str) -> Checkpoint:
        """The checkpoint of a part of the work, kept until the whole is done."""
        path = None if self.path is None else self.path / name
        return Checkpoint(path, seconds=self.seconds, gap=self.gap, keep=True, processes=self.processes)

    def open(self, identity: Mapping[str, Any]) -> State | None:
        """The stored state, or None. The state of other work, which has another identity, is refused."""
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
            # A removal was interrupted: the state goes first, so the rest is of no use.
            self.remove()
            return None
        found = read_state(self.path)
        with refusing_damage(self.path):
            for name, now in self.identity.items():
                if name not in found["identity"] or found["identity"][name] != now:
                    then = found["identity"].get(name, "nothing")
                    raise BadFile(
                        f"the checkpoint at {self.path} belongs to another call: its {name} was {_brief(then)}, now it "
                        f"is {_brief(now)}; delete it to start anew, or give another path"
                    )
            self.spent_before = float(found["spent"])
            state: State = found["state"]
        return state

    @property
    def is_on(self) -> bool:
        """Whether states are kept."""
        return self.path is not None

    def is_due(self, *, epoch_ended: bool = False) -> bool:
        """Whether to save a state now: `gap` after the last one at the end of an epoch, `seconds` within an epoch."""
        if self.path is None:
            return False
        age = time.monotonic() - self.saved
        due = age >= (self.gap if epoch_ended else self.seconds)
        # The clock of the first process decides for all, because a state has parts of all processes.
        return self.processes.largest(float(due and self.processes.leads))[0] > 0

    @property
    def spent(self) -> float:
        """Seconds of work, including the time before a kill."""
        return self.spent_before + time.monotonic() - self.opened

    def save(self, state: State) -> None:
        """Replace the state in one move. A full disk raises OSError and leaves the previous state."""
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
        """Remove the checkpoint after the work is done, unless `keep` is set."""
        if not self.keep:
            self.remove()

    def remove(self) -> None:
        """Delete the files of the checkpoint, the state first, and nothing else."""
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
    """All that `save` wrote, including the identity and `about`."""
    try:
        data = torch.load(io.BytesIO(_unsealed((path / STATE).read_bytes())), map_location="cpu", weights_only=True)
        kind = data["format"]
    except Exception as cause:  # torch raises many kinds of errors for a damaged file
        reason = str(cause).partition("\n")[0][:100] or type(cause).__name__
        raise BadFile(f"the checkpoint at {path} is damaged ({reason}); delete it to start anew") from cause
    if kind != FORMAT:
        raise BadFile(f"the checkpoint at {path} is of format {kind!r}, this version reads {FORMAT}; upgrade setpoint")
    return dict(data)


def _sealed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest() + data


def _unsealed(data: bytes) -> bytes:
    """The data without their hash, which is checked because torch does not notice a changed byte."""
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        raise ValueError("its hash differs")
    return data[32:]


@contextlib.contextmanager
def refusing_damage(path: Path | None) -> Iterator[None]:
    """Turn the errors of a state with missing or odd entries into one BadFile."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError, ValueError) as cause:
        if isinstance(cause, BadFile):
            raise
        reason = str(cause).partition("\n")[0][:100]
        raise BadFile(f"the checkpoint at {path} is damaged ({reason}); delete it to start anew") from cause


def plain(value: Any, name: str = "state") -> Any:
    """The value as tensors, numbers, texts, lists, tuples and dicts; anything else is refused by name."""
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
