"""The time of `setpoint fit --model auto` and `setpoint compare` on tables, ratios to one LightGBM fit in the same run.

    python -m benchmarks.speed.auto_time [--data DIR] [--packages DIR] [--tables a,b] [--repeats N] [--again] [--quick]

Each table of `benchmarks.studies.tables` is fitted for FNR at FPR 5 % by `auto`, and by one LightGBM of 31 leaves with
early stopping and its own number of threads, in turns; the least time of each counts, on the wall and of the processor.
Then three made tables are fitted: 20,000 x 50 and 300 x 3,000 by `auto`, and 5,000 x 20 by `compare` with its usual
solvers and five trials. Processor times have a meaning on a busy machine too; wall times are to be taken on an idle
one. With `--quick` there are three small tables, one repeat, and the smaller made tables. Tables that are not named or
whose files are not there are left out, and listed. With `--again` only the named tables are run, and take the places
of their figures in the last result: for a run in which something else disturbed the yardstick.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import load_result, spent, write_result
from benchmarks.studies.tables import rivals
from benchmarks.studies.tables.rows import Table
from benchmarks.studies.tables.study import fitted
from benchmarks.studies.tables.tables import TABLES, Folders
from setpoint.run.compare import Trials, compare_table, usual_solvers
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table

#: The ask whose time is measured.
TIMED = "minimize fnr where fpr <= 5%"
#: The most single fits in the median over tables, and the most seconds of each made table on two idle cores.
MOST_FITS = 8
MADE = {
    "auto 20,000 x 50": (20_000, 50, 30.0),
    "auto 300 x 3,000": (300, 3_000, 3.0),
    "compare 5,000 x 20": (5_000, 20, 60.0),
}
QUICK_TABLES = ("breast_cancer", "german_credit", "fair")
QUICK_MADE = ("auto 300 x 3,000",)
SEED = 20


def made_table(rows: int, columns: int) -> pl.DataFrame:
    """Normal columns; five matter in a sum, two by their product, with noise; about a fifth is positive."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, columns))
    y = x[:, :5].sum(1) + 2 * x[:, 5] * x[:, 6] + 1.5 * draw.normal(size=rows) > 2.5
    return pl.DataFrame({**{f"x{place}": x[:, place] for place in range(columns)}, "y": y.astype(np.int64)})


def fits_of(table: Table, repeats: int) -> dict[str, float]:
    """The time of `auto` in single fits, and its seconds."""
    rivals.stopped(table, rivals.SINGLE), fitted(table, "auto", TIMED)  # Imports, threads, memory.
    single, own = [], []
    for _ in range(repeats):
        single += [spent(lambda: rivals.stopped(table, rivals.SINGLE)) for _ in range(3)]
        own.append(spent(lambda: fitted(table, "auto", TIMED)))
    least = {kind: min(one[place] for one in own) for place, kind in enumerate(("wall", "processor"))}
    fit = {kind: min(one[place] for one in single) for place, kind in enumerate(("wall", "processor"))}
    return {**{kind: least[kind] / fit[kind] for kind in least}, "seconds": least["wall"], "fit": fit["wall"]}


def run_made(name: str) -> dict[str, float]:
    """One made table, in seconds."""
    rows, columns, most = MADE[name]
    frame = made_table(rows, columns)
    work: Callable[[], Any] = lambda: fit_table(frame, "y", sp.ask(TIMED), Settings(model="auto"))  # noqa: E731
    if name.startswith("compare"):
        trials = Trials(usual_solvers(sp.ask(TIMED), "linear"), stop_early=False)
        work = lambda: compare_table(frame, "y", sp.ask(TIMED), Settings(), trials)  # noqa: E731
    wall, processor = spent(work)
    return {"wall": wall, "processor": processor, "most": most}


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--packages", default="packages", help="the folder with the downloaded wheels")
    parser.add_argument("--tables", help="some of the tables, separated by commas; the empty word for none")
    parser.add_argument("--repeats", type=int, default=3, help="how often each is timed; the least time counts")
    parser.add_argument(
        "--again", action="store_true", help="renew the named tables in the last result, and nothing else"
    )
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn|lightgbm")
    folders, tables, left_out = Folders(options.data, options.packages), {}, []
    named = TABLES if options.tables is None else options.tables.split(",")
    left_out += [f"{name}: not run" for name in TABLES if name not in named and not options.quick]
    for name in QUICK_TABLES if options.quick else [name for name in TABLES if name in named]:
        try:
            table = Table(name, TABLES[name](folders), SEED)
        except (SystemExit, OSError) as why:
            left_out.append(f"{name}: {str(why).splitlines()[0]}")
            continue
        tables[name] = fits_of(table, 1 if options.quick else options.repeats)
        print(
            f"{name}: {tables[name]['wall']:.1f} fits on the wall, {tables[name]['processor']:.1f} of the processor",
            flush=True,
        )
    made = {}
    if options.again:
        last = load_result("auto_time", options.quick)["figures"]
        tables, made, left_out = {**last["tables"], **tables}, last["made"], last["left out"]
    for name in QUICK_MADE if options.quick else () if options.again else MADE:
        made[name] = run_made(name)
        print(
            f"{name}: {made[name]['wall']:.1f} s on the wall, {made[name]['processor']:.1f} of the processor",
            flush=True,
        )
    medians = (
        {kind: statistics.median(own[kind] for own in tables.values()) for kind in ("wall", "processor")}
        if tables
        else {}
    )
    print(f"median: {medians}; most {MOST_FITS}", *left_out, sep="\n")
    found = {"most fits": MOST_FITS, "median": medians, "tables": tables, "left out": left_out, "made": made}
    write_result("auto_time", {**found, "taken": time.strftime("%Y-%m-%d")}, options.quick)


if __name__ == "__main__":
    main()
