"""The layout of a text file: its encoding, the separator of its values, and the line that holds the names.

Whatever the user does not set is found from the first lines of the file, and a note says what was found.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from setpoint.errors import BadSetting, BadTable

MARKS = (",", ";", "\t", "|")
#: Characters that separate values in some files; they are used only when the user names them.
_RARE = (" ", ":", "^", "~", "\x01")
_SPOKEN = {"\t": "tabs", " ": "blanks", "\x01": r"\x01"}
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "blank": " "}
_ENCODINGS = (
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "latin-1",
    "cp1252",
    "cp1250",
    "cp1251",
    "mac-roman",
)
_NUMBER = re.compile(r"\s*[-+]?[\d.,'\s]*\d[\d.,'\s]*(?:[eE][-+]?\d+)?\s*%?\s*")
_SEP_LINE = re.compile(r'"?sep=(.)"?[,;\t|]*\s*', re.IGNORECASE)
#: The rows of a file that its layout is found from.
LOOKED_AT = 200


@dataclass(frozen=True)
class TextFormat:
    """How text files are written. None is found out from each file.

    Args:
        separator: The character between two values; also "tab", "comma", "semicolon", "pipe" or "space".
        encoding: The encoding of the text, such as "utf-8" or "latin-1".
        header: Whether the first line holds the names of the columns. If not, they are column_1, column_2 and so on.

    Raises:
        BadSetting: If the separator is not one character, or there is no such encoding.

    Example:
        >>> from setpoint.data.text_format import TextFormat
        >>> TextFormat(separator="tab").separator
        '\\t'
    """

    separator: str | None = None
    encoding: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if self.separator is not None:
            mark = _NAMED.get(self.separator.lower(), self.separator)
            if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in "\"'\r\n.-+\0":
                raise BadSetting(f"separator must be one character such as ';', or tab, got {self.separator!r}")
            object.__setattr__(self, "separator", mark)
        if self.encoding is not None:
            try:
                "a".encode(self.encoding)
                object.__setattr__(self, "encoding", codecs.lookup(self.encoding).name)
            except (LookupError, UnicodeError, ValueError) as cause:
                near = difflib.get_close_matches(self.encoding.lower(), _ENCODINGS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it may be {', '.join(_ENCODINGS)}"
                raise BadSetting(f"no encoding {self.encoding!r}; {hint}") from cause


@dataclass(frozen=True)
class TextHead:
    """The start of a text file.

    Attributes:
        separator: The character between two values.
        names: The names of the columns, as they stand there.
        above: The number of lines above the line of names.
        trailing: Whether each row has one separator more than the line of names, with nothing after it.
        blanks: Whether blanks stand before quotes, which parsers take for a part of the value.
        notes: Findings that are not plain from the file's ending; the name of the file goes before each.
    """

    separator: str
    names: tuple[str, ...]
    above: int = 0
    trailing: bool = False
    blanks: bool = False
    notes: tuple[str, ...] = ()


def spoken(separator: str) -> str:
    """A separator in a sentence."""
    return _SPOKEN.get(separator, repr(separator))


def find_head(sample: str, name: str, layout: TextFormat, usual: str | None) -> TextHead:
    """Find the separator and the line of names.

    Args:
        sample: The first lines of the text, each of them whole.
        name: The name of the file, for errors.
        layout: The settings of the user.
        usual: The separator that the ending of the file stands for, if it stands for one.

    Raises:
        BadTable: If there are no names, or values seem to be separated by a character that must be named.
    """
    lines = sample.split("\n")
    above = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    if above == len(lines):
        raise BadTable(f"{name} is empty where the names of its columns should be, in the first line")
    notes: list[str] = []
    if sep_line := _SEP_LINE.fullmatch(lines[above]):
        notes.append(f"begins with the line {lines[above].strip()!r}, which is skipped")
        layout, above = replace(layout, separator=layout.separator or sep_line[1]), above + 1
    if comments := _comments(lines[above:], layout):
        notes.append(f"begins with {comments} line{'s' * (comments > 1)} of comments (#), skipped")
        above += comments
    rest = "\n".join(lines[above:])
    separator = layout.separator or _separator(rest, name, usual)
    rows = _rows(rest, separator)
    names = tuple(rows[0]) if rows else ()
    if separator != usual and layout.separator is None and len(names) > 1:
        notes.append(f"is separated by {spoken(separator)}; --separator sets another")
    if not layout.header:
        names = tuple(f"column_{place}" for place in range(1, len(names) + 1))
    body = [row for row in rows[1:] if row]
    trailing = layout.header and bool(body) and not any("\n" in one for one in names)
    trailing = trailing and all(len(row) == len(names) + 1 and not row[-1] for row in body)
    mark = re.escape(separator)
    blanks = separator != " " and re.search(rf'(?:^|{mark}) +"', _outside_quotes(rest), re.M) is not None
    if layout.header and 2 * sum(map(is_number, names)) > len(names) > 0:
        notes.append(
            f"has numbers such as {next(filter(is_number, names))!r} in its line of names; if that line is a row, "
            "use --no-header"
        )
    return TextHead(separator, names, above, trailing, blanks, tuple(notes))


def is_number(text: str) -> bool:
    """Whether a text is a number, however it is written."""
    return _NUMBER.fullmatch(text) is not None


def _comments(lines: Sequence[str], layout: TextFormat) -> int:
    """The number of lines above the names that start with #; the last of them may be the names themselves."""
    count = next((place for place, line in enumerate(lines) if not line.startswith("#")), 0)
    if count == 0:
        return 0
    rest = "\n".join(lines[count:])
    separator = layout.separator or _best(rest, None) or ","
    rows = _rows(rest, separator)
    held = any(is_number(value) for row in rows[1:] for value in row)
    below_names = held and not any(is_number(value) for value in rows[0])
    same = bool(rows) and len(_rows(lines[count - 1], separator)[0]) == len(rows[0])
    return count if below_names or not same else count - 1


def _separator(text: str, name: str, usual: str | None) -> str:
    """The separator that divides all rows alike; one column needs none."""
    best = _best(text, usual)
    if best is not None:
        return best
    first = (_rows(text, usual or ",") or [[""]])[0]
    for mark in (*MARKS, *_RARE):
        widths = {len(row) for row in _rows(text, mark)[1:] if row}
        if len(widths) == 1 and widths != {1}:
            if len(_rows(text, mark)[0]) in widths:
                option = {"\t": "tab", " ": "space"}.get(mark, mark)
                raise BadTable(
                    f"{name} has everything in one column, {first[0]!r}; if its values are separated by "
                    f"{spoken(mark)}, say so with --separator {option!r}"
                )
            if mark in MARKS:
                raise BadTable(
                    f"{name} has 1 value in its first line, {first[0]!r}, but {widths.pop()} in the lines below; "
                    "delete whatever stands above the names"
                )
    return usual or ","


def _best(text: str, usual: str | None) -> str | None:
    """The separator with two or more names that divides the most rows as it divides the names."""
    ranked = []
    for mark in MARKS:
        rows = _rows(text, mark)
        if not rows or len(rows[0]) < 2:
            continue
        body = [row for row in rows[1:] if row]
        same = sum(len(row) == len(rows[0]) for row in body) / max(len(body), 1)
        others = re.compile("[" + re.escape("".join(set(MARKS) - {mark})) + "]")
        torn = sum(bool(others.search(value)) and not is_number(value) for row in body for value in row)
        ranked.append((same, -torn / max(len(body), 1), len(rows[0]), mark == usual, mark))
    return max(ranked)[-1] if ranked else None


def _rows(text: str, separator: str) -> list[list[str]]:
    """The first rows of a text, quotes respected."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator != " "):
            rows.append(row)
            if len(rows) == LOOKED_AT:
                break
    except csv.Error:
        if not rows:
            raise
    return rows


def _outside_quotes(text: str) -> str:
    """The text without what stands between two quotes; the quotes stay."""
    return '""'.join(text.split('"')[::2])
