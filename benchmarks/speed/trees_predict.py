"""Scoring 10^6 rows with trees: the time as a ratio to LightGBM's own predict of the same boosters, in one process.

    python -m benchmarks.speed.trees_predict [--rows 1000000] [--quick]

The model is that of `setpoint fit --model trees` on 20,000 rows of twenty numbers, and the same with four columns of
words and missing values in two numbers: five boosters. LightGBM predicts with each booster on the same rows as it takes
them, an array of numbers or a pandas frame with categories, and the five are averaged. `model` starts from encoded
features, `frame` from the table, as `SavedRun.scores` does. The three take turns, and each ratio is the median over the
turns, on the wall and by the time of the processor: other programs on the machine disturb the wall alone. The claim is
judged on the wall.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars as pl

import setpoint as sp
from benchmarks.common.harness import seconds, write_result
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.scoring import score_rows

TRAINED, TARGET = 20_000, 1.2
WORDS = ("north", "east", "south", "west")


def table(rows: int, mixed: bool, seed: int) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 20))
    y = draw.random(rows) < 1 / (1 + np.exp(2 - x[:, 0] * x[:, 1] - x[:, 2:5].sum(1)))
    columns: dict[str, Any] = {f"x{place}": x[:, place] for place in range(20)}
    if mixed:
        columns |= {f"w{place}": np.array(WORDS)[draw.integers(0, 4, rows)] for place in range(4)}
        for place in (0, 1):
            columns[f"x{place}"] = np.where(draw.random(rows) < 0.1, np.nan, x[:, place])
    return pl.DataFrame({**columns, "y": y.astype(np.int64)}).fill_nan(None)


def for_lightgbm(frame: pl.DataFrame) -> Any:
    """The rows as LightGBM takes them: an array of numbers, or a pandas frame whose words are categories."""
    names = [name for name in frame.columns if name != "y"]
    if not any(frame[name].dtype == pl.String for name in names):
        return frame.select(names).to_numpy()
    return pd.DataFrame(
        {
            name: pd.Categorical(frame[name].to_numpy(), categories=sorted(WORDS))
            if frame[name].dtype == pl.String
            else frame[name].to_numpy()
            for name in names
        }
    )


def own_boosters(frame: pl.DataFrame, like: list[lightgbm.Booster]) -> list[lightgbm.Booster]:
    """Boosters of as many trees and leaves, trained by LightGBM alone on the rows as it takes them."""
    x = for_lightgbm(frame)
    found = []
    for booster in like:
        leaves = int(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"])
        how = {"objective": "binary", "num_leaves": leaves, "learning_rate": 0.05, "verbose": -1}
        found.append(lightgbm.train(how, lightgbm.Dataset(x, frame["y"].to_numpy()), booster.num_trees()))
    return found


def one(mixed: bool, rows: int, turns: int) -> dict[str, Any]:
    seen, new = table(TRAINED, mixed, 0), table(rows, mixed, 1)
    run = fit_table(seen, "y", sp.ask("minimize fnr where fpr <= 5%"), Settings(model="trees"))
    model, schema = run.chosen.model, run.schema
    boosters = own_boosters(seen, model.boosters)
    theirs, x, features = for_lightgbm(new), new.drop("y"), schema.encode(new.drop("y"))

    def lightgbm_alone() -> Any:
        return sum(booster.predict(theirs, raw_score=True) for booster in boosters) / len(boosters)

    ways = {"model": lambda: score_rows(model, features), "frame": lambda: score_rows(model, schema.encode(x))}
    taken = [{"alone": spent(lightgbm_alone), **{name: spent(way) for name, way in ways.items()}} for _ in range(turns)]
    found: dict[str, Any] = {
        "columns": "numbers and words" if mixed else "numbers", "rows": rows, "boosters": len(boosters),
        "trees": sum(booster.num_trees() for booster in boosters), "target": TARGET,
        "seconds of LightGBM": min(turn["alone"][0] for turn in taken),
    }  # fmt: skip
    for name in ways:
        for clock, place in (("", 0), (", processor", 1)):
            found[name + clock] = statistics.median(turn[name][place] / turn["alone"][place] for turn in taken)
    return found


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """The seconds of one call on the wall and of the processor."""
    processor = time.process_time()
    return seconds(work), time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    options = parser.parse_args()
    rows = []
    for mixed in (False, True):
        rows.append(one(mixed, 100_000 if options.quick else options.rows, 3))
        rows[-1]["met"] = rows[-1]["frame"] <= TARGET
        print(rows[-1], flush=True)
    write_result("trees_predict", {"rows": rows}, options.quick)


if __name__ == "__main__":
    main()
