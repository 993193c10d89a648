"""Files that a command reads: none of them may be one that it writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from setpoint.data.exchange import PIPE
from setpoint.data.many_files import files_of
from setpoint.errors import BadFile
from setpoint.files import is_stream
from setpoint.serve.stored import ABOUT, HASHED, RECORD


def refuse_to_overwrite(given: Mapping[str, Any]) -> None:
    """Refuse a command that would write over a file that it reads, by whatever name, link or pattern each is given.

    Args:
        given: The options of the command by name: `out` is written, every other path is read.

    Raises:
        BadFile: If a file that would be written is one that is read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from setpoint.commands.inputs import refuse_to_overwrite
        >>> with tempfile.TemporaryDirectory() as place:
        ...     table = Path(place) / "new.csv"
        ...     _ = table.write_text("x,y")
        ...     try:
        ...         refuse_to_overwrite({"data": [table], "out": table})
        ...     except ValueError as refusal:
        ...         print(str(refusal).partition("new.csv ")[2])
        is read by this command, which would write over it; choose another file to write
    """
    out = given.get("out")
    if not isinstance(out, Path) or out == PIPE:
        return
    for read in _read(given) if out.is_file() and not is_stream(out) else ():
        if read.is_file() and os.path.samefile(out, read):
            same = "" if os.path.abspath(out) == os.path.abspath(read) else f" (as {read})"
            raise BadFile(
                f"{out} is read by this command{same}, which would write over it; choose another file to write"
            )


def _read(given: Mapping[str, Any]) -> Iterator[Path]:
    """The files that a command reads: those of tables, and those of a run that nothing else holds."""
    for option, value in given.items():
        paths = [path for path in (value if isinstance(value, list) else [value]) if isinstance(path, Path)]
        if option == "run":
            yield from (path / name for path in paths for name in (ABOUT, *HASHED, RECORD))
        elif option != "out" and PIPE not in paths and paths:
            try:
                yield from files_of(paths, [])
            except BadFile:
                yield from paths  # The command itself says what is wrong with them.
