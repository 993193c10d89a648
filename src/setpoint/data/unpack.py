"""Unpacking: gzip, zstd, bzip2, xz and zip archives of one file, known by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import polars as pl

from setpoint.errors import BadTable
from setpoint.files import naming

#: Endings of compressed files.
PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_PACKERS = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip",
}  # fmt: skip
_BLOCK = 1 << 20
Unpacker = Callable[[Path, str, IO[bytes]], None]


def packer_of(path: Path) -> str:
    """The program that packed a file, by its first bytes; an empty text if none did."""
    with path.open("rb") as content:
        start = content.read(8)
    return next((packer for mark, packer in _PACKERS.items() if start.startswith(mark)), "")


def unpack(path: Path, packer: str, name: str, out: Path, *, lean: bool) -> None:
    """Unpack a file.

    Args:
        path: The compressed file.
        packer: The program that packed it.
        name: Its name in sentences.
        out: The file to write.
        lean: Whether the file may be larger than memory.

    Raises:
        BadTable: If the file is damaged, or is not one compressed table.
    """
    if lean and packer == "zstd":
        raise BadTable(f"{name} cannot be streamed while it is compressed by zstd; unpack it first: zstd -d")
    try:
        with out.open("wb") as plain, naming(out):
            _UNPACKERS[packer](path, name, plain)
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, NotImplementedError) as cause:
        raise _damaged(name, packer) from cause


def _damaged(name: str, packer: str) -> BadTable:
    return BadTable(f"{name} is damaged: its compressed data ({packer}) end early or make no sense; copy it again")


def _copier(opened: Callable[[Path], Any]) -> Unpacker:
    def copy(path: Path, name: str, out: IO[bytes]) -> None:
        with opened(path) as content:
            while block := _next(content):
                out.write(block)

    return copy


def _next(content: Any) -> bytes:
    try:
        return bytes(content.read(_BLOCK))
    except OSError as cause:
        # Damaged data are an OSError without a number to bz2.
        if cause.errno is None:
            raise EOFError from cause
        raise


def _unpack_zip(path: Path, name: str, out: IO[bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        inside = [entry for entry in archive.namelist() if not entry.endswith("/")]
        if "[Content_Types].xml" in inside or "mimetype" in inside:
            raise BadTable(f"{name} is a workbook or another document of an office program; save its sheet as CSV")
        if len(inside) != 1:
            raise BadTable(f"{name} is a zip archive of {len(inside)} files; unpack it and give the files")
        with archive.open(inside[0]) as content:
            shutil.copyfileobj(content, out, _BLOCK)


def _unpack_zstd(path: Path, name: str, out: IO[bytes]) -> None:
    """Let polars unpack the file: as a table of one value, all of the text."""
    try:
        whole = pl.read_csv(
            path, has_header=False, separator="\x02", eol_char="\x01", quote_char=None, infer_schema=False
        )
    except pl.exceptions.NoDataError:
        return
    except (OSError, pl.exceptions.PolarsError) as cause:
        if "utf" in str(cause):
            raise BadTable(f"{name} is no UTF-8 text once unpacked; unpack it first: zstd -d") from cause
        raise _damaged(name, "zstd") from cause
    if whole.shape != (1, 1):
        raise BadTable(f"{name} holds control characters; unpack it first: zstd -d")
    out.write(str(whole.item()).encode())


_UNPACKERS: dict[str, Unpacker] = {
    "gzip": _copier(gzip.open), "bzip2": _copier(bz2.open), "xz": _copier(lzma.open), "zip": _unpack_zip,
    "zstd": _unpack_zstd,
}  # fmt: skip
