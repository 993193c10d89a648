"""Locks on directories: one process writes at a time, and the second is told which process holds the lock."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import socket
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from setpoint.errors import BadFile
from setpoint.files import make_directory, naming, remove_empty

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there.
    fcntl = None  # type: ignore[assignment]

#: The file in the directory that is locked; it says who holds the lock, and is removed with it.
LOCK = ".lock"
_UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


@contextlib.contextmanager
def locked(place: Path) -> Iterator[None]:
    """Hold a directory for this process alone, and make it if it is not there; one that stays empty is removed.

    The lock is the kernel's (`flock`): it ends with its process, however that ends, so that none is ever left behind.

    Raises:
        BadFile: another process holds the directory; the sentence says which, and since when.
    """
    made = make_directory(place)
    try:
        with contextlib.nullcontext() if fcntl is None else _held(place / LOCK):
            yield
    finally:
        remove_empty(made)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    handle = _take(path)
    try:
        with naming(path):
            _sign(handle)
        yield
    finally:
        # Removed while it is held: whoever has opened it meanwhile finds that it is not the file in its place.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _take(path: Path) -> int:
    """Open and lock the lock file, and make sure that it was not removed meanwhile."""
    while True:
        make_directory(path.parent)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            # Whoever held the directory has removed it.
            continue
        try:
            _lock(handle, path)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as cause:
        raise BadFile(
            f"{path.parent} is being written to by {_holder(handle)}; wait for it to end, or choose another place"
        ) from cause
    except OSError as cause:
        if cause.errno not in _UNSUPPORTED:
            raise
        warnings.warn(
            f"the file system of {path.parent} has no locks; write one run at a time into that directory", stacklevel=2
        )


def _sign(handle: int) -> None:
    """Write down who holds the lock; what a killed process wrote is overwritten."""
    since = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    text = json.dumps({"process": os.getpid(), "machine": socket.gethostname(), "since": since})
    os.ftruncate(handle, 0)
    os.write(handle, text.encode())


def _holder(handle: int) -> str:
    """Who holds a lock, in words, as far as the file says it."""
    for _ in range(20):
        # It is written right after the lock is taken.
        if os.fstat(handle).st_size:
            break
        time.sleep(0.01)
    try:
        said = json.loads(os.pread(handle, 1000, 0))
        machine = "this machine" if said["machine"] == socket.gethostname() else f"the machine {said['machine']!r}"
        return f"process {int(said['process'])} on {machine} since {said['since']!s:.40}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
