"""The contest with fairlearn: the error where the recalls of the sexes differ by at most 2 % (equal opportunity).

An answer is flags, or the chance of one in each row, for fairlearn's reductions and post-processing draw at random. Its
`difference_bound` is to the recall of all, not between groups, so the reductions may choose from it and tighter ones.
Ours start from plain cross-entropy and have 150 full-batch steps for each of nine settings, and set a threshold a
group on validation rows, where fairlearn's post-processing sets its own too. The features hold the sex. The splits 800
and 801 of adult were run once before on rows standardised again after clipping, and anew without that.
"""

from __future__ import annotations

import setpoint as sp
from benchmarks.common.data import load_arrays, split, split_rows
from benchmarks.common.sets import read_table
from benchmarks.peers.contest import MOST, SHARES, Case, Contest, Method, numbered
from benchmarks.peers.judging import judge_flags


def load(name: str, seed: int, data: str, cache: str) -> Case:
    """A split as `load_split` makes it, and the sex of each of its rows."""
    x, labels = read_table(name, data)
    sex = numbered(load_arrays(name, data)["sex"])
    train, validation, test = (sex[rows] for rows in split_rows(labels, seed, SHARES, MOST))
    return Case(split(x, labels, seed, SHARES, MOST), (train, validation, test))


CONTEST = Contest(
    name="gap",
    problem=sp.minimize(sp.error, sp.recall.gap("sex") <= 0.02),
    sets=("adult", "german_credit"),
    seeds=range(800, 805),
    quick_set="german_credit",
    methods={
        "setpoint, default": Method("by_setpoint_gap", more=("default",)),
        "setpoint, ImplicitThreshold": Method("by_setpoint_gap", more=("implicit",)),
        "setpoint, Lagrangian": Method("by_setpoint_gap", more=("lagrangian",)),
        "fairlearn, ExponentiatedGradient": Method("by_fairlearn", "fairlearn", ("exponentiated",)),
        "fairlearn, GridSearch": Method("by_fairlearn", "fairlearn", ("grid",)),
        "fairlearn, ThresholdOptimizer": Method("by_fairlearn", "fairlearn", ("thresholds",)),
        "cross-entropy, group thresholds": Method("by_setpoint_gap", more=("group thresholds",)),
        "cross-entropy, one threshold": Method("by_setpoint_gap", more=("one threshold",)),
    },
    ours="setpoint, default",
    load=load,
    judge=judge_flags,
    averaged=(
        "test", "gap", "held", "test, one draw", "gap, one draw", "held, one draw", "on validation",
        "gap on validation", "noise of the gap",
    ),
    compared=("test", "gap"),
    start=1.0,
    quick_methods=(
        "setpoint, default", "fairlearn, ExponentiatedGradient", "fairlearn, ThresholdOptimizer",
        "cross-entropy, group thresholds",
    ),
    quick_budget={"steps": 25},
)  # fmt: skip
