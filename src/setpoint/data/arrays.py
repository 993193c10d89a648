"""NumPy files as tables: each array of an .npz file, or each field of an .npy file, is a column."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from setpoint.errors import BadTable

#: The column that an .npy file of plain numbers becomes.
PLAIN = "X"
#: The kinds of values that become columns: booleans, integers, floats, text, bytes, dates and durations.
_KINDS = "biufUSMm"


def write_arrays(path: Path, name: str, out: Path) -> None:
    """Write the arrays of an .npy or .npz file as the columns of an Arrow file.

    An array of one value per row is a column. An array of several values per row, such as embeddings `(n, d)` or
    images `(n, h, w)`, is a column of lists.

    Args:
        path: The file.
        name: Its name in sentences.
        out: The Arrow file to write.

    Raises:
        BadTable: If the file is damaged, holds Python objects, or its arrays differ in their number of rows.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else _fields(loaded)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as cause:
        if "pickle" in str(cause):
            raise BadTable(
                f"{name} holds Python objects, which could run code when they are read; save arrays of numbers or text"
            ) from cause
        raise BadTable(f"{name} is no NumPy file, or is damaged ({cause}); save it again with np.savez") from cause
    _refuse_odd(arrays, name)
    pl.DataFrame([_column(key, array) for key, array in arrays.items()]).write_ipc(out)


def _fields(array: Any) -> dict[str, Any]:
    """The fields of a structured array, or the array itself."""
    return {field: array[field] for field in array.dtype.names} if array.dtype.names else {PLAIN: array}


def _refuse_odd(arrays: dict[str, Any], name: str) -> None:
    if not arrays:
        raise BadTable(f"{name} holds no array; save some with np.savez, such as X= and y=")
    first = next(iter(arrays))
    for key, array in arrays.items():
        if array.ndim == 0 or array.dtype.kind not in _KINDS:
            what = "a single value" if array.ndim == 0 else f"values of type {array.dtype}"
            raise BadTable(f"array {key!r} of {name} holds {what}; give numbers or text, one or more per row")
        if len(array) != len(arrays[first]):
            raise BadTable(
                f"arrays {first!r} and {key!r} of {name} have {len(arrays[first])} and {len(array)} rows; all arrays "
                "of a table need the same number"
            )
        if array.ndim > 1 and (array.dtype.kind not in "biuf" or array[:1].size == 0):
            raise BadTable(f"array {key!r} of {name} holds {array.dtype} in rows of {array.shape[1:]}; give numbers")


def _column(name: str, array: Any) -> pl.Series:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    if array.ndim == 1:
        return pl.Series(name, array.tolist() if array.dtype.kind == "U" else array)
    flat = np.ascontiguousarray(array.reshape(len(array), -1))
    flat = flat.astype(np.uint8) if flat.dtype.kind == "b" else flat
    return pl.Series(name, flat, dtype=pl.Array(pl.Series(flat[:0, 0]).dtype, flat.shape[1]))
