"""How often promises are broken where rows depend on each other or come from another population than the promise.

    python -m benchmarks.studies.dependence [--quick] [--repeats 1000]

Certificates at 95 % in worlds whose true rates are known, each made twice: with clusters or weights (`told`), and as if
rows were independent and of the same population (`naive`).

- `clusters`: 200 patients of 1 to 39 rows; four fifths of the variance of a score is shared by the rows of a patient.
- `clusters that say something`: the same, and patients of more than 20 rows score one higher. The promise is about a
  random row of a random patient.
- `shift`: the scores of the population are normal around 0.5, those of the calibration rows around 0, between -2 and 2;
  the ratio of the two densities is known and at most exp(0.875) times a constant.
- `design`: rows that score below 1 were labelled with probability 1/4, all others were labelled.
- `rare positives`: independent rows, 5 % positive, for the objective given up by a bound on precision.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.errors import TooFewSamples

CONFIDENCE = 0.95
FPR, RECALL = "minimize fnr where fpr <= 10%", "maximize tnr where recall >= 90%"
PRECISION = "maximize recall where precision >= 80%"
#: Parts of the noise of a score that are shared by a patient, and its own.
SHARED, OWN = math.sqrt(0.8), math.sqrt(0.2)
#: The mass of a normal distribution around 0 and around 0.5 between -2 and 2.
MASS = [float(norm.cdf(2 - middle) - norm.cdf(-2 - middle)) for middle in (0.0, 0.5)]
Draw = np.random.Generator


@dataclass(frozen=True)
class World:
    """Rows with what is known of them, and the true rate of the bound and the true objective at a threshold."""

    name: str
    ask: str
    rows: Callable[[Draw], tuple[np.ndarray, np.ndarray, dict[str, Any]]]
    rate: Callable[[float], float]
    objective: Callable[[float], float]
    ways: tuple[str, ...] = ("told", "naive")


def patients(draw: Draw, informative: bool, positive: float) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    sizes = draw.integers(1, 40, 200)
    of = np.repeat(np.arange(200), sizes)
    labels = (draw.random(len(of)) < positive).astype(int)
    shared = SHARED * draw.normal(size=200) + informative * (sizes > 20)
    return shared[of] + OWN * draw.normal(size=len(of)) + 3 * labels, labels, {"clusters": of}


def mixed(threshold: float) -> float:
    """P(score > threshold) of a random negative row of a random patient: 19 of 39 sizes are above 20."""
    return float(20 * norm.sf(threshold) + 19 * norm.sf(threshold - 1)) / 39


def ratio(x: np.ndarray | float) -> np.ndarray:
    """The density of the population over that of the calibration rows."""
    return np.exp(0.5 * np.asarray(x) - 0.125) * MASS[0] / MASS[1]


def shifted(draw: Draw) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    x = draw.normal(size=2500)
    x = x[np.abs(x) < 2][:2000]
    labels = (draw.random(len(x)) < 0.3).astype(int)
    weights = np.where(labels == 1, 1.0, ratio(x))
    return x + 3 * labels, labels, {"weights": sp.PopulationWeights(weights, most=float(ratio(2.0)))}


def designed(draw: Draw) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    labels = (draw.random(4000) < 0.3).astype(int)
    scores = draw.normal(size=4000) + 2 * labels
    chance = np.where(scores < 1, 0.25, 1.0)
    drawn = draw.random(4000) < chance
    return scores[drawn], labels[drawn], {"weights": sp.PopulationWeights(1 / chance[drawn], most=4)}


def rare(draw: Draw) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    labels = (draw.random(2000) < 0.05).astype(int)
    return draw.normal(size=2000) + 2.5 * labels, labels, {}


def precision_of_rare(threshold: float) -> float:
    right, wrong = 0.05 * norm.sf(threshold - 2.5), 0.95 * norm.sf(threshold)
    return float(right / (right + wrong))


WORLDS = (
    World("clusters", FPR, lambda draw: patients(draw, False, 0.3), norm.sf, lambda t: norm.cdf(t - 3)),
    World(
        "clusters that say something", RECALL, lambda draw: patients(draw, True, 0.5),
        lambda t: mixed(t - 3), lambda t: 1 - mixed(t),
    ),
    World(
        "shift", FPR, shifted, lambda t: (norm.cdf(1.5) - norm.cdf(t - 0.5)) / MASS[1],
        lambda t: (norm.cdf(t - 3) - norm.cdf(-2)) / MASS[0],
    ),
    World("design", RECALL, designed, lambda t: norm.sf(t - 2), norm.cdf),
    World("rare positives", PRECISION, rare, precision_of_rare, lambda t: norm.sf(t - 2.5), ("told",)),
)  # fmt: skip


def cell(world: World, repeats: int) -> dict[str, Any]:
    """Broken promises, refusals and the mean true objective, as told and naive."""
    problem = sp.ask(world.ask)
    (bound,) = problem.constraints
    found: dict[str, list[tuple[bool, float]]] = {way: [] for way in world.ways}
    for repeat in range(repeats):
        scores, labels, known = world.rows(np.random.default_rng((len(world.name), repeat)))
        for way, made in found.items():
            given = known if way == "told" else {}
            try:
                point = sp.calibrate(problem, scores, labels, confidence=CONFIDENCE, **given)
            except TooFewSamples:
                continue
            at = float(point.threshold)  # type: ignore[arg-type]
            excess = world.rate(at) - bound.bound
            made.append(((excess if bound.relation == "<=" else -excess) > 1e-12, world.objective(at)))
    row: dict[str, Any] = {"world": world.name, "ask": world.ask, "repeats": repeats}
    for way, made in found.items():
        row[way] = {
            "broken": float(sum(broken for broken, _ in made)) / repeats, "refused": 1 - len(made) / repeats,
            "objective": float(np.mean([value for _, value in made])) if made else None,
        }  # fmt: skip
    limit = 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
    return {**row, "limit": limit, "met": row["told"]["broken"] <= limit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fifty repeats")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--data", help="not used: all rows are made here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells = []
    for world in WORLDS:
        cells.append(cell(world, 50 if options.quick else options.repeats))
        print(cells[-1], flush=True)
    figures = {"confidence": CONFIDENCE, "cells": cells, "met": all(cell["met"] for cell in cells)}
    print(write_result("dependence", figures, options.quick))
    if not figures["met"]:
        sys.exit("promises are broken more often than their confidence allows")
