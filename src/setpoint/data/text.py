"""A text file before it is a table: its encoding, its separator, the names in its first line, odd lines.

The errors here come before or in place of a parser's own, which rarely name the line.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import TextIO

from setpoint.errors import BadTable

_MARKS = (",", ";", "\t", "|")
_KINDS = {
    b"PAR1": "a Parquet file; name it .parquet",
    b"PK\x03\x04": "a zip archive or an Excel workbook; export it as CSV",
    b"\x1f\x8b": "compressed; unpack it first",
    b"%PDF": "a PDF; export its table as CSV",
}


def column_names(path: Path, separator: str) -> list[str]:
    """The names in the first line, one per column and no two alike."""
    _refuse_other_files(path)
    _refuse_bare_returns(path)
    try:
        names = _first_row(path, separator)
    except UnicodeDecodeError as cause:
        raise not_utf8(path) from cause
    except csv.Error as cause:
        raise BadTable(f"{path} does not start with a line of column names ({cause}); is it a table?") from cause
    names = [name.strip() for name in names]
    if not any(names):
        raise BadTable(f"{path} is empty where the names of its columns should be, in the first line")
    _refuse_other_separators(path, separator, names)
    twice = [name or "(no name)" for name, times in Counter(names).items() if times > 1]
    if twice:
        raise BadTable(f"{path} has more than one column named {twice[0]!r}; rename them")
    return names


def _refuse_bare_returns(path: Path) -> None:
    """Refuse lines that end in a carriage return alone, which parsers take for a part of a value."""
    quoted, held = False, b""
    with path.open("rb") as file:
        while block := held + file.read(1 << 20):
            # The line feed after a return may be the first byte of the next block.
            held = b"\r" if block.endswith(b"\r") and len(block) > 1 else b""
            block = block.removesuffix(held)
            if block.count(b"\r") > block.count(b"\r\n"):
                outside = block.split(b'"')[int(quoted) :: 2]
                if any(re.search(rb"\r(?!\n)", part) for part in outside):
                    raise BadTable(f"{path} ends lines in carriage returns alone; save it with ordinary line ends")
            quoted ^= block.count(b'"') % 2 == 1


def _first_row(path: Path, separator: str) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=separator), [])


def not_utf8(path: Path) -> BadTable:
    """The error that names the first line that is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as cause:
                odd = line[cause.start]
                return BadTable(
                    f"{path} is not UTF-8 text (byte 0x{odd:02x} in line {number}; it may be Latin-1 or Windows-1252); "
                    "save it as UTF-8"
                )
    return BadTable(f"{path} is not UTF-8 text; save it as UTF-8")


def why_unreadable(path: Path, separator: str, columns: int) -> str | None:
    """A sentence on the first line that cannot be read, if it can be found."""
    number, stray = 1, None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            for row in reader:
                if len(row) > columns:
                    return _uneven(number, len(row), columns, separator)
                if stray is None and any(value.count('"') % 2 for value in row):
                    stray = number
                number = reader.line_num + 1
    except csv.Error:
        stray = number
    if stray is None:
        return None
    return f"the quotes in line {stray} do not match up; put the value in quotes and write each quote within it twice"


def blank_rows(path: Path, separator: str, columns: int) -> list[int]:
    """The rows, counted from 0 after the names, that are nothing but an empty line; short rows are refused."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return blank_rows_of(file, path, separator, columns)


def blank_rows_of(lines: TextIO, path: Path, separator: str, columns: int, first: int | None = None) -> list[int]:
    """The same for some lines of the file, of which the first is number `first`; if that is None, they are all."""
    reader = csv.reader(lines, delimiter=separator)
    blank, above = [], 0 if first is None else first - 1
    try:
        if first is None:
            next(reader)
        number = above + reader.line_num + 1
        for place, row in enumerate(reader):
            if not row:
                blank.append(place)
            elif len(row) < columns:
                raise BadTable(f"{path} is ragged: {_uneven(number, len(row), columns, separator)}")
            number = above + reader.line_num + 1
    except csv.Error:
        # Values too long for this reader, which the other one has read: such a table has no short rows to find.
        return []
    return blank


def _uneven(number: int, values: int, columns: int, separator: str) -> str:
    remedy = f"put values that hold {separator!r} in quotes" if values > columns else "fill in the missing ones"
    return f"line {number} holds {values} value{'' if values == 1 else 's'} for {columns} columns; {remedy}"


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(4096)
    for mark, kind in _KINDS.items():
        if start.startswith(mark):
            raise BadTable(f"{path} is not UTF-8 text but {kind}")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or 0.3 < start.count(0) / max(len(start), 1) < 0.6:
        raise BadTable(f"{path} is not UTF-8 text but seems to be UTF-16; save it as UTF-8")
    if b"\0" in start:
        raise BadTable(f"{path} is not UTF-8 text but holds bytes of some other kind of file; export it as CSV")


def _refuse_other_separators(path: Path, separator: str, names: list[str]) -> None:
    found = {mark: len(_first_row(path, mark)) for mark in _MARKS if mark != separator}
    mark = max(found, key=lambda mark: found[mark])
    hint = f"it seems to be separated by {mark!r}, write it with {separator!r}"
    if len(names) == 1:
        raise BadTable(f"{path} has everything in one column, {names[0]!r}" + (f"; {hint}" if found[mark] > 1 else ""))
    if found[mark] > len(names):
        raise BadTable(f"{path} has {len(names)} columns, such as {names[0]!r}; {hint}")
