"""Odd lines of a text file: names that are there twice, rows of another length, quotes that do not match up.

The errors here come before or in place of a parser's own, which rarely name the line.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import TextIO

from setpoint.data.opened import Opened
from setpoint.errors import BadTable


def column_names(file: Opened) -> list[str]:
    """The names of the columns, no two alike."""
    _refuse_bare_returns(file)
    names = [name.strip() for name in file.head.names] + [""] * file.head.trailing
    if not any(names):
        raise BadTable(f"{file.name} is empty where the names of its columns should be, in the first line")
    twice = [name or "(no name)" for name, times in Counter(names).items() if times > 1]
    if twice:
        raise BadTable(f"{file.name} has more than one column named {twice[0]!r}; rename them")
    return names


def _refuse_bare_returns(file: Opened) -> None:
    """Refuse lines that end in a carriage return alone, which parsers take for a part of a value."""
    quoted, held = False, b""
    with file.path.open("rb") as content:
        while block := held + content.read(1 << 20):
            # The line feed after a return may be the first byte of the next block.
            held = b"\r" if block.endswith(b"\r") and len(block) > 1 else b""
            block = block.removesuffix(held)
            if block.count(b"\r") > block.count(b"\r\n"):
                outside = block.split(b'"')[int(quoted) :: 2]
                if any(re.search(rb"\r(?!\n)", part) for part in outside):
                    raise BadTable(f"{file.name} ends lines in carriage returns alone; save it with ordinary line ends")
            quoted ^= block.count(b'"') % 2 == 1


def why_unreadable(file: Opened, columns: int) -> str | None:
    """A sentence on the first line that cannot be read, if it can be found."""
    above = file.head.above
    number, stray = 1, None
    try:
        with file.path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, delimiter=file.head.separator, strict=True)
            for row in reader:
                if len(row) > columns:
                    return _uneven(file, above + number, len(row), columns)
                if stray is None and any(value.count('"') % 2 for value in row):
                    stray = above + number
                number = reader.line_num + 1
    except csv.Error:
        stray = above + number
    if stray is None:
        return None
    return f"the quotes in line {stray} do not match up; put the value in quotes and write each quote within it twice"


def blank_rows(file: Opened, columns: int) -> list[int]:
    """The rows, counted from 0 after the names, that are nothing but an empty line; short rows are refused."""
    with file.path.open(encoding="utf-8-sig", newline="") as lines:
        return blank_rows_of(lines, file, columns)


def blank_rows_of(lines: TextIO, file: Opened, columns: int, first: int | None = None) -> list[int]:
    """The same for some lines of the file, of which the first is number `first`; if that is None, they are all."""
    reader = csv.reader(lines, delimiter=file.head.separator)
    blank, above = [], file.head.above + (0 if first is None else first - 1)
    try:
        if first is None:
            next(reader)
        number = above + reader.line_num + 1
        for place, row in enumerate(reader):
            if not row:
                blank.append(place)
            elif len(row) < columns:
                raise BadTable(f"{file.name} is ragged: {_uneven(file, number, len(row), columns)}")
            number = above + reader.line_num + 1
    except csv.Error:
        # Values too long for this reader, which the other one has read: such a table has no short rows to find.
        return []
    return blank


def _uneven(file: Opened, number: int, values: int, columns: int) -> str:
    quoted = f"put values that hold {file.head.separator!r} in quotes"
    remedy = quoted if values > columns else "fill in the missing ones"
    return f"line {number} holds {values} value{'' if values == 1 else 's'} for {columns} columns; {remedy}"
