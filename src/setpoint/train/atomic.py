"""Files that are whole or not there: written aside, flushed to the disk, then moved into place."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

#: How the name of a file that is still being written begins.
PENDING = ".writing-"


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one move: a kill, a crash or a full disk leaves the old one or the new one."""
    aside = path.with_name(f"{PENDING}{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as cause:
        aside.unlink(missing_ok=True)
        raise OSError(cause.errno, cause.strerror, str(path)) from cause
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Flush the names in a directory; where directories cannot be opened, as on Windows, nothing."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directory(path: Path) -> list[Path]:
    """Make a directory and those above it; the ones that were made, the deepest first."""
    made = missing_directories(path)
    for place in reversed(made):
        place.mkdir(exist_ok=True)
        sync_directory(place.parent)
    return made


def missing_directories(path: Path) -> list[Path]:
    """The directory and those above it, as far as they are not there, the deepest first."""
    return list(itertools.takewhile(lambda place: not place.is_dir(), (path, *path.parents)))


def remove_empty(directories: list[Path]) -> None:
    """Remove these directories, the deepest first, as far as they are empty."""
    for place in directories:
        try:
            place.rmdir()
        except OSError:
            return
