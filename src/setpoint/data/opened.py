"""Files as they come: compressed, in any encoding, under any name. Opened, each is a plain file of a known kind.

A text file that is not plain (compressed, not UTF-8, with lines above its names) is written out plain in a temporary
directory, which is removed with the object that holds it.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from setpoint.data.arrays import write_arrays
from setpoint.data.encoding import find_encoding, write_utf8
from setpoint.data.text_format import TextFormat, TextHead, find_head
from setpoint.data.unpack import PACKED, packer_of, unpack
from setpoint.errors import BadFile, BadTable

TEXT, PARQUET, ARROW, ARROW_STREAM, JSON = "text", "Parquet", "Arrow", "Arrow stream", "JSON lines"
#: NumPy files, which are written out as Arrow files.
NUMPY = "NumPy"
#: The kind of a file that its ending stands for.
ENDINGS = {
    ".csv": TEXT, ".tsv": TEXT, ".txt": TEXT, ".parquet": PARQUET, ".pq": PARQUET, ".arrow": ARROW, ".feather": ARROW,
    ".ipc": ARROW, ".jsonl": JSON, ".ndjson": JSON, ".npy": NUMPY, ".npz": NUMPY,
}  # fmt: skip
READABLE = ".csv, .tsv, .txt, .parquet, .arrow, .feather, .jsonl, .npy and .npz"
_USUAL = {".csv": ",", ".tsv": "\t"}
_KINDS = {b"PAR1": PARQUET, b"ARROW1": ARROW, b"\xff\xff\xff\xff": ARROW_STREAM}
_FOREIGN = {
    b"%PDF": "a PDF; export its table as CSV",
    b"FEA1": "a Feather file of version 1; write it again with version 2",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save its sheet as CSV",
    b"SQLite format 3": "a database; export the table as CSV",
}
_BLOCK = 1 << 20
#: The end of the name of a file that holds what came through standard input.
PIPED = "standard input.csv"
#: Bytes at the start of a text file in which its separator and its names are looked for.
_START = 1 << 18


@dataclass
class Opened:
    """A file that is ready to be read.

    Attributes:
        name: The name of the file in sentences.
        path: Where its content is, unpacked.
        kind: Text, Parquet, Arrow or JSON lines.
        head: The separator and the names of a text file.
        notes: Sentences on findings; the name of the file goes before each.
    """

    name: str
    path: Path
    kind: str = TEXT
    head: TextHead = field(default_factory=lambda: TextHead(",", ()))
    notes: list[str] = field(default_factory=list)
    held: tempfile.TemporaryDirectory[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process reads the files of this one, and removes none of them."""
        return {**self.__dict__, "held": None}

    def aside(self) -> Path:
        """A new path in the temporary directory of this file."""
        if self.held is None:
            self.held = tempfile.TemporaryDirectory(prefix="setpoint-")
        return Path(self.held.name) / f"{len(list(Path(self.held.name).iterdir()))}"


def open_file(path: Path, layout: TextFormat, *, lean: bool = False) -> Opened:
    """Unpack a file and find its kind; of a text file also its encoding, its separator and its names.

    Args:
        path: The file.
        layout: The settings of the user for text files.
        lean: Whether the file may be larger than memory.

    Raises:
        BadFile: If there is no such file, or its ending stands for nothing that can be read.
        BadTable: If the file is empty, damaged, or of a kind that cannot be read.
    """
    file = Opened("standard input" if path.name.endswith(PIPED) else str(path), path)
    expected = _check(path, file.name)
    if expected == NUMPY:
        file.path, file.kind = file.aside(), ARROW
        write_arrays(path, file.name, file.path)
        return file
    packed = ""
    while packer := packer_of(file.path):
        packed, plain = packer, file.aside()
        unpack(file.path, packer, file.name, plain, lean=lean)
        file.path = plain
    if packed and not path.name.lower().endswith(PACKED):
        file.notes.append(f"is compressed ({packed}) whatever its name, and was unpacked")
    with file.path.open("rb") as content:
        start = content.read(4096)
    if not start.strip():
        raise BadTable(f"{file.name} is empty; it should hold column names and rows")
    file.kind = _kind(file, start, expected)
    if file.kind not in (expected, ARROW_STREAM):
        file.notes.append(f"is {_article(file.kind)} whatever its name, and is read as one")
    if file.kind in (ARROW, JSON) and set("*?[") & set(str(file.path)):
        # To the readers of these kinds, such a path is a pattern.
        linked = file.aside()
        linked.symlink_to(file.path.absolute())
        file.path = linked
    if file.kind == TEXT:
        encoding, note = find_encoding(file.path, file.name, layout.encoding)
        if encoding != "utf-8":
            plain = file.aside()
            write_utf8(file.path, file.name, encoding, plain)
            file.path = plain
        file.notes.extend([note] if note else [])
        _find_head(file, layout, _USUAL.get(_ending(path)))
    return file


def _article(kind: str) -> str:
    return {ARROW: "an Arrow file", PARQUET: "a Parquet file", JSON: "a file of JSON lines"}.get(kind, f"a {kind} file")


def _ending(path: Path) -> str:
    """The ending that says what a file holds, once it is unpacked."""
    *_, last = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED] or [""]
    return last


def is_readable(path: Path) -> bool:
    """Whether the ending of a path stands for a table."""
    return _ending(path) in ENDINGS


def _check(path: Path, name: str) -> str:
    """The kind of table that a path stands for, if a file is there."""
    if not path.is_file():
        raise BadFile(f"no file at {name}; give the path of a file that ends in {READABLE.replace(' and ', ' or ')}")
    ending = _ending(path)
    if ending not in ENDINGS:
        remedy = "; save its sheet as CSV" if ending in (".xlsx", ".xls", ".ods", ".xlsm") else ""
        remedy = "; write one object per line and name it .jsonl" if ending == ".json" else remedy
        raise BadFile(
            f"{name} ends in {path.suffix or 'nothing'}; setpoint reads {READABLE}, also as .gz or .zst{remedy}"
        )
    if not os.access(path, os.R_OK):
        raise BadFile(f"{name} may not be read; change its permissions or copy it")
    if path.stat().st_size == 0:
        raise BadTable(f"{name} is empty; it should hold column names and rows")
    return ENDINGS[ending]


def _kind(file: Opened, start: bytes, expected: str) -> str:
    """The kind of a file by its first bytes."""
    for mark, foreign in _FOREIGN.items():
        if start.startswith(mark):
            raise BadTable(f"{file.name} is {foreign}")
    found = next((kind for mark, kind in _KINDS.items() if start.startswith(mark)), None)
    if found is not None:
        return found
    if expected in (PARQUET, ARROW):
        raise BadTable(f"{file.name} is no {expected} file, whatever its name; if it is text, name it .csv")
    begin = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if begin[:1] == b"<":
        raise BadTable(f"{file.name} is a web page or XML; save its table as CSV")
    if begin[:1] in (b"[", b"{"):
        if _is_object(file.path):
            return JSON
        if _is_json(begin) or expected == JSON:
            raise BadTable(
                f"{file.name} is JSON but not one object per line; write it so: jq -c '.[]' FILE > table.jsonl"
            )
    if expected == JSON:
        raise BadTable(f"{file.name} is not JSON lines, one object per line; if it is text, name it .csv")
    return TEXT


def _is_object(path: Path) -> bool:
    """Whether the first line that is not blank is a JSON object."""
    with path.open("rb") as lines:
        first = next((line for line in lines if line.strip()), b"")
    try:
        return isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except ValueError:
        return False


def _is_json(start: bytes) -> bool:
    """Whether a text starts as JSON that spans lines does."""
    return "".join(start[:200].decode(errors="replace").split())[:2] in ('{"', "[{", "[[", "{}", "[]")


def _find_head(file: Opened, layout: TextFormat, usual: str | None) -> None:
    """Find the separator and the names, and write the text out with the names in its first line if they are not."""
    with file.path.open("rb") as content:
        start = content.read(_START)
    if len(start) == _START:
        start = start[: start.rfind(b"\n") + 1] or start
    sample = start.decode("utf-8-sig", errors="replace")
    try:
        head = find_head(sample, file.name, layout, usual)
    except csv.Error as cause:
        raise BadTable(f"{file.name} does not start with a line of column names ({cause}); is it a table?") from cause
    # Without a line of names, one is written above the first line of the file.
    file.head = head if layout.header else replace(head, above=head.above - 1)
    file.notes.extend(head.notes)
    if not (head.above or head.trailing or head.blanks or not layout.header):
        return
    plain = file.aside()
    with file.path.open("rb") as content, plain.open("wb") as out:
        content.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
        for _ in range(head.above):
            content.readline()
        if head.blanks:
            try:
                _without_blanks(content, out, head.separator, [] if layout.header else list(head.names))
            except csv.Error as cause:
                raise BadTable(f"{file.name} has blanks before quotes ({cause}); remove those blanks") from cause
        else:
            if not layout.header:
                out.write(head.separator.join(head.names).encode() + b"\n")
            elif head.trailing:
                out.write(content.readline().rstrip(b"\r\n") + head.separator.encode() + b"\n")
            shutil.copyfileobj(content, out, _BLOCK)
    file.path = plain


def _without_blanks(content: IO[bytes], out: IO[bytes], separator: str, names: list[str]) -> None:
    """Rows written again, without the blanks between a separator and a quote."""
    lines = (line.decode() for line in content)
    written = codecs.getwriter("utf-8")(out)
    writer = csv.writer(written, delimiter=separator, lineterminator="\n")
    writer.writerows([names] if names else [])
    for row in csv.reader(lines, delimiter=separator, skipinitialspace=True):
        # A blank line stays one: the writer would write a row of one empty value.
        writer.writerow(row) if row else written.write("\n")
