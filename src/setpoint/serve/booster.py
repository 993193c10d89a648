"""Boosted trees by LightGBM's own library, without its Python package, which loads pandas and scikit-learn first."""

from __future__ import annotations

import ctypes
import os
import weakref
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadFile, missing

#: Numbers of LightGBM's C interface: float64 values, and scores before the sigmoid.
_FLOAT64, _RAW_SCORE = 1, 1
#: The variable that tells how the threads of OpenMP wait for work; a user's own choice stays.
_WAITING = "OMP_WAIT_POLICY"


class Booster:
    """One booster, read from the text that LightGBM wrote.

    Args:
        text: The text.

    Raises:
        BadFile: If LightGBM cannot read the text.
        MissingPackage: If LightGBM is not installed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._library, self._place, trees = _library(), ctypes.c_void_p(), ctypes.c_int()
        self._call("LGBM_BoosterLoadModelFromString", text.encode(), ctypes.byref(trees), ctypes.byref(self._place))
        weakref.finalize(self, self._library.LGBM_BoosterFree, self._place)
        outputs, width = ctypes.c_int(), ctypes.c_int()
        self._call("LGBM_BoosterGetNumClasses", self._place, ctypes.byref(outputs))
        self._call("LGBM_BoosterGetNumFeature", self._place, ctypes.byref(width))
        self.outputs, self.width = outputs.value, width.value

    def __reduce__(self) -> tuple[type[Booster], tuple[str]]:
        """A copy in another process reads the text again: the library knows a booster by its place in memory."""
        return Booster, (self.text,)

    def raw_scores(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The logits of rows `(n, width)`: `(n,)`, or `(n, K)` for K classes. Threads may call this at once."""
        rows = np.ascontiguousarray(values, dtype=np.float64)
        if rows.shape[1] != self.width:
            raise BadFile(f"its trees take {self.width} values per row, not {rows.shape[1]}")
        found, written = np.empty(len(rows) * self.outputs), ctypes.c_int64()
        # Threads for a single row cost more than the row.
        name, count = ("ForMatSingleRow", ()) if len(rows) == 1 else ("ForMat", (ctypes.c_int32(len(rows)),))
        self._call(
            f"LGBM_BoosterPredict{name}", self._place, ctypes.c_void_p(rows.ctypes.data), ctypes.c_int(_FLOAT64),
            *count, ctypes.c_int32(self.width), ctypes.c_int(1), ctypes.c_int(_RAW_SCORE), ctypes.c_int(0),
            ctypes.c_int(-1), b"", ctypes.byref(written), ctypes.c_void_p(found.ctypes.data),
        )  # fmt: skip
        return found if self.outputs == 1 else found.reshape(-1, self.outputs)

    def _call(self, name: str, *arguments: Any) -> None:
        if getattr(self._library, name)(*arguments) != 0:
            raise BadFile(f"LightGBM cannot read its trees: {self._library.LGBM_GetLastError().decode()}")


@cache
def _library() -> ctypes.CDLL:
    """The library inside the installed package; looking for the package does not import it."""
    found = find_spec("lightgbm")
    places = [] if found is None else map(Path, found.submodule_search_locations or ())
    files = [file for place in places for file in sorted(place.rglob("lib_lightgbm.*")) if file.suffix != ".lib"]
    if not files:
        raise missing("lightgbm", "trees", ImportError("no lib_lightgbm")) from None
    # OpenMP reads this when it is loaded. By default its threads spin after every call: for ten rows, most of the time.
    chosen = os.environ.get(_WAITING)
    os.environ[_WAITING] = chosen or "passive"
    try:
        library = ctypes.CDLL(str(files[0]))
    finally:
        if chosen is None:
            del os.environ[_WAITING]
    library.LGBM_GetLastError.restype = ctypes.c_char_p
    # Messages on what a text holds beyond the trees are for those who train.
    silent = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda message: None)
    library.LGBM_RegisterLogCallback(silent)
    _KEPT.append(silent)
    return library


#: The function that the library calls, which must not be collected.
_KEPT: list[Any] = []
