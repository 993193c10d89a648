"""Files that are written whole or not at all.

A file is written aside, under a name that nobody can guess, flushed to the disk and moved into its place. A kill, a
crash or a full disk leaves the old file or the new one, never a part. Where the path is a link, the link stays and the
file that it points to is replaced. Pipes and devices are written straight, since they hold nothing to replace.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: How the name of a file that is still being written begins.
PENDING = ".writing-"
#: The open files of this process, under names that the system gives them: never replaced, only written to.
_OPEN = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_ALONE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file by these bytes in one move; directories that are missing are made.

    Raises:
        OSError: the disk is full, the place is not writable, ...; it names `path`, and the old file stays.
    """
    with whole(path) as file:
        file.write(data)


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """An open file whose content takes the place of `path` in one move, once the block has ended without an error."""
    path = Path(path)
    with naming(path):
        if is_stream(path):
            with path.open("ab") as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        made = make_directory(target.parent)
        aside = target.with_name(f"{PENDING}{secrets.token_hex(8)}")
        try:
            with open(os.open(aside, _ALONE, 0o666), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(OSError):
                os.chmod(aside, stat.S_IMODE(target.stat().st_mode))
            os.replace(aside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            remove_empty(made)
            raise
        sync_directory(target.parent)


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe, a device or an open file of this process: written to, never replaced."""
    return str(path.absolute()).startswith(_OPEN) or (path.exists() and not path.is_file() and not path.is_dir())


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make a system error name this path if it names no file, or a file that is still being written."""
    try:
        yield
    except OSError as cause:
        if cause.errno is None or (cause.filename is not None and PENDING not in str(cause.filename)):
            raise
        raise OSError(cause.errno, cause.strerror, str(path)) from cause


def sync_directory(path: Path) -> None:
    """Flush the names in a directory; does nothing where directories cannot be opened, as on Windows."""
    if os.name != "posix":
        return
    with naming(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_directory(path: Path) -> list[Path]:
    """Make a directory and those above it; gives the directories that were made, the deepest first."""
    made = list(itertools.takewhile(lambda place: not place.is_dir(), (path, *path.parents)))
    for place in reversed(made):
        place.mkdir(exist_ok=True)
        sync_directory(place.parent)
    return made


def remove_empty(directories: list[Path]) -> None:
    """Remove these directories, the deepest first, as far as they are empty."""
    for place in directories:
        try:
            place.rmdir()
        except OSError:
            return
