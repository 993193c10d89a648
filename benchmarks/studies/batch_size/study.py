"""Batches of 512 or of 4,096 rows for large tables: what the larger ones cost in quality, and what they save in time.

    python -m benchmarks.studies.batch_size [--data DIR] [--quick]

`setpoint fit --solver implicit` on ijcnn1 (141,691 rows) and on a made table of 500,000, each with both batch sizes and
three seeds (which draw the split and the order), about 2,000 steps or ten epochs, whatever is more. FNR on test rows at
the best cut of the test curve, the same rows for both. Seconds are of the processor.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import setpoint as sp
from benchmarks.common.data import arguments, load_table, paired
from benchmarks.common.harness import Journal, write_result
from benchmarks.speed.spine import made
from setpoint.data.frame import Frame, read_table
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table

ASKS = ("minimize fnr where fpr <= 1%", "minimize fnr where fpr <= 0.1%")
SIZES, SEEDS, ROWS = (512, 4096), range(600, 603), 500_000


def tables(data: str, rows: int) -> dict[str, Frame]:
    """The tables by name."""
    x, y = load_table("ijcnn1", data)
    named = {f"x{i}": x[:, i] for i in range(x.shape[1])}
    found = {"ijcnn1": pl.DataFrame({**named, "label": y.astype(np.int8)})}
    with tempfile.TemporaryDirectory() as folder:
        made(rows, path := Path(folder) / "made.parquet")
        found[f"made, {rows:,} rows"] = read_table(path)
    return found


def one(frame: Frame, ask: str, size: int, seed: int) -> dict[str, Any]:
    """One run: the FNR of the implicit model, and the seconds of its training."""
    settings = Settings(solver="implicit", batch_size=size, seed=seed)
    start = time.process_time()
    run = fit_table(frame, "label", sp.ask(ask), settings)
    return {"fnr": run.chosen.best("test").objective, "seconds": time.process_time() - start}


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0]).parse_args()
    journal = Journal("batch_size", options.quick)
    seeds, rows = (SEEDS[:1], 50_000) if options.quick else (SEEDS, ROWS)
    cells = []
    for name, frame in tables(options.data, rows).items():
        for ask in ASKS:
            found = {
                size: [
                    journal.row(f"{name} | {ask} | {size} | {seed}", lambda: one(frame, ask, size, seed))  # noqa: B023
                    for seed in seeds
                ]
                for size in SIZES
            }
            small, large = ([run["fnr"] for run in found[size]] for size in SIZES)
            cell = {
                "set": name, "ask": ask, "fnr": {str(size): statistics.mean(run["fnr"] for run in found[size])
                                                 for size in SIZES},
                "larger batches miss more by": paired([b - a for a, b in zip(small, large)], 0.2, 0.5),
                "time of the larger": statistics.median(
                    b["seconds"] / a["seconds"] for a, b in zip(found[SIZES[0]], found[SIZES[1]])
                ),
            }  # fmt: skip
            cells.append(cell)
            print(cell, flush=True)
    journal.fold()
    write_result("batch_size", {"seeds": list(seeds), "cells": cells}, options.quick)
