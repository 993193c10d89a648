"""The encoding of a text file: UTF-8, or found out and written out as UTF-8."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from setpoint.errors import BadTable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_BLOCK = 1 << 20
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def find_encoding(path: Path, name: str, wanted: str | None) -> tuple[str, str]:
    """The encoding of a text, and a note if it is not UTF-8 and was found out; the name of the file goes before it.

    Args:
        path: The file.
        name: Its name in sentences.
        wanted: The encoding that the user has set, if any.

    Raises:
        BadTable: If the file holds bytes that no text holds, or is not in the encoding that the user has set.
    """
    if wanted is not None:
        if wanted == "utf-8" and (line := _not_utf8(path, name)[0]):
            raise BadTable(f"{name} is not UTF-8 text (line {line}); leave out --encoding, or set another")
        return wanted, ""
    with path.open("rb") as content:
        start = content.read(4096)
    marked = next((encoding for mark, encoding in _MARKS if start.startswith(mark)), None) or _wide(start)
    if marked not in (None, "utf-8"):
        return str(marked), f"is {str(marked).upper()}; --encoding sets another"
    line, odd = _not_utf8(path, name)
    if not line:
        return "utf-8", ""
    if _CONTROL.search(start):
        raise BadTable(f"{name} is no text but some other kind of file; export it as CSV")
    encoding = _western(path)
    read = bytes([odd]).decode(encoding)
    where = f"in line {line}, byte 0x{odd:02x} is {read!r}"
    return encoding, f"is not UTF-8 and is read as {encoding} ({where}); --encoding sets another"


def write_utf8(path: Path, name: str, encoding: str, out: Path) -> None:
    """Write a text of another encoding out as UTF-8."""
    try:
        with path.open(encoding=encoding, newline="") as text, out.open("w", encoding="utf-8", newline="") as plain:
            while block := text.read(_BLOCK):
                plain.write(block.removeprefix("\ufeff"))
    except UnicodeError as cause:
        raise BadTable(f"{name} is not {encoding} text ({cause}); set another --encoding") from cause
    _not_utf8(out, name)


def _wide(start: bytes) -> str | None:
    """UTF-16 without a mark: every other byte is zero in most texts."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    half = len(start) // 2
    if half and min(even, odd) == 0 and max(even, odd) > 0.6 * half:
        return "utf-16-le" if odd else "utf-16-be"
    return None


def _western(path: Path) -> str:
    """Windows-1252, unless a byte stands there that it does not know."""
    with path.open("rb") as content:
        while block := content.read(_BLOCK):
            try:
                block.decode("cp1252")
            except UnicodeDecodeError:
                return "latin-1"
    return "cp1252"


def _not_utf8(path: Path, name: str) -> tuple[int, int]:
    """The first line that is not UTF-8 and the byte in it; (0, 0) if all is. Zero bytes are refused."""
    decoder, lines = codecs.getincrementaldecoder("utf-8")(), 1
    with path.open("rb") as content:
        while block := content.read(_BLOCK):
            if b"\0" in block:
                line = lines + block.count(b"\n", 0, block.index(b"\0"))
                raise BadTable(f"{name} is no text: line {line} holds a zero byte; export it as CSV anew")
            held = len(decoder.getstate()[0])
            try:
                if held or not block.isascii():
                    decoder.decode(block)
            except UnicodeDecodeError as cause:
                place = max(cause.start - held, 0)
                return lines + block.count(b"\n", 0, place), cause.object[cause.start]
            lines += block.count(b"\n")
    left = decoder.getstate()[0]
    return (lines, left[0]) if left else (0, 0)
