"""Several files that make one table: files that are named one by one or by a pattern, or all tables of a folder."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from setpoint.data.opened import Opened, is_readable, open_file
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadFile, BadTable

#: One path, or several: files, or a folder of files.
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def open_files(paths: Paths, layout: TextFormat, notes: list[str] | None, *, lean: bool = False) -> list[Opened]:
    """Open every file of a table, in the order in which they are given; those of a folder in the order of their names.

    Args:
        paths: One path, or several.
        layout: The settings of the user for text files.
        notes: Takes a sentence on each thing that was found out.
        lean: Whether the files may be larger than memory.

    Raises:
        BadFile: If there is no such file, or a folder holds no table.
        BadTable: If a file cannot be read as a table.
    """
    told: list[tuple[str, str]] = []
    files = [open_file(path, layout, lean=lean) for path in files_of(paths, told)]
    told += [(file.name, note) for file in files for note in file.notes]
    if notes is not None:
        for note in dict.fromkeys(note for _, note in told):
            names = [name for name, same in told if same == note]
            more = f" (and {len(names) - 1} more file{'s' * (len(names) > 2)})" if len(names) > 1 else ""
            notes.append(f"{names[0]}{more} {note}")
    return files


def files_of(paths: Paths, told: list[tuple[str, str]]) -> list[Path]:
    """The files of a table: those that are named, those of a folder, and those that fit a pattern (part-*.parquet).

    Args:
        paths: One path, or several; a path that exists is no pattern.
        told: Takes the name of each file that is left out, and the reason.
    """
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    found: list[Path] = []
    for path in given:
        fitting = [path]
        if glob.has_magic(str(path)) and not path.exists():
            fitting = sorted(map(Path, glob.glob(str(path), recursive=True)))
            if not fitting:
                raise BadFile(
                    f"no file fits the pattern {str(path)!r}; give the path of a file or of a folder of files"
                )
        for one in fitting:
            found += _inside(one, told) if one.is_dir() else [one]
    first: dict[str, Path] = {}
    for path in found:
        if first.setdefault(os.path.realpath(path), path) is not path:
            same = "" if first[os.path.realpath(path)] == path else f" (as {first[os.path.realpath(path)]})"
            raise BadFile(
                f"{path} is given twice{same}, which would put each of its rows in the table twice; leave one out"
            )
    return found


def _inside(folder: Path, told: list[tuple[str, str]]) -> list[Path]:
    """The tables in a folder; other files are told of, and folders in it are refused."""
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    below = [path for path in inside if path.is_dir()]
    if below and "=" in below[0].name:
        raise BadFile(
            f"{folder} is partitioned into folders such as {below[0].name!r}; write it as one file first, for example "
            f"with polars: pl.scan_parquet({str(folder)!r}, hive_partitioning=True).sink_parquet('table.parquet')"
        )
    if below:
        raise BadFile(f"{folder} holds the folder {below[0].name!r}; give one folder that holds files alone")
    tables = [path for path in inside if is_readable(path)]
    if not tables:
        raise BadFile(f"{folder} is a directory that holds no table; give the path of a file or of a folder of them")
    told += [(str(path), "is no table and is not read") for path in inside if not is_readable(path)]
    return tables


def common_schema(schemas: Sequence[pl.Schema], files: Sequence[Opened]) -> pl.Schema:
    """The columns and types of all files together: the columns of the first, in types that hold the values of all.

    Raises:
        BadTable: If a file has other columns than the first, or values of another kind in a column.
    """
    first, name = schemas[0], files[0].name
    for schema, file in zip(schemas[1:], files[1:]):
        lacking = [column for column in first if column not in schema]
        more = [column for column in schema if column not in first]
        if lacking or more:
            other = f"lacks {lacking[0]!r}" if lacking else f"also has {more[0]!r}"
            raise BadTable(f"{file.name} {other}, unlike {name}; all files of a table need the same columns")
        odd = [column for column in first if {first[column], schema[column]} - {pl.Null} > {pl.String}]
        if odd:
            raise BadTable(f"column {odd[0]!r} is text in one of {name} and {file.name} only; write both the same way")
    empty = [pl.DataFrame(schema=schema).select(first.names()) for schema in schemas]
    try:
        return pl.concat(empty, how="vertical_relaxed").schema
    except pl.exceptions.PolarsError as cause:
        why = str(cause).splitlines()[0]
        raise BadTable(
            f"the files from {name} on hold other types of values ({why}); write all the same way"
        ) from cause
