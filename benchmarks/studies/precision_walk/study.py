"""Certificates of precision where precision is broken, kept and broken again along the walk.

    python -m benchmarks.studies.precision_walk [--quick] [--repeats 1000]

The walk of a bound on precision starts at a fixed number of flagged samples (22 for 80 % at 95 %), so its first
threshold depends on the scores. Each world is made to hurt such a walk: scores are uniform, and the share of positives
is constant on pieces of them. The worlds are fixed here, before any of them was run. In worlds with ties the scores are
rounded.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.errors import TooFewSamples

CONFIDENCE, BOUND, START = 0.95, 0.8, 22
ASK = "maximize recall where precision >= 80%"
SIZES = (500, 2000)


@dataclass(frozen=True)
class World:
    """Pieces of the scores from the top: the number of rows in units of the start, and the share of positives there.

    The lowest piece is of all other rows. `step` rounds scores down to its multiples.
    """

    name: str
    pieces: tuple[tuple[float, float], ...]
    rest: float = 0.05
    step: float | None = None

    def parts(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The mass of each piece from the top, and its share of positives."""
        unit = START / (0.8 * n)
        mass = np.array([rows * unit for rows, _ in self.pieces])
        return np.append(mass, 1 - mass.sum()), np.array([*(share for _, share in self.pieces), self.rest])

    def rows(self, draw: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        mass, shares = self.parts(n)
        depth = draw.random(n)
        labels = draw.random(n) < shares[np.minimum(np.searchsorted(np.cumsum(mass), depth), len(mass) - 1)]
        return self.shown(1 - depth), labels.astype(int)

    def shown(self, scores: np.ndarray) -> np.ndarray:
        return scores if self.step is None else np.floor(scores / self.step) * self.step

    def precision(self, threshold: float, n: int) -> float:
        """The true precision of all rows whose score is above the threshold."""
        if self.step is not None:
            # Rounded down, a score passes if it lies above the next multiple.
            threshold = (math.floor(threshold / self.step + 1e-9) + 1) * self.step
        mass, shares = self.parts(n)
        depth = min(max(1 - threshold, 0.0), 1.0)
        inside = np.clip(depth - np.append(0.0, np.cumsum(mass)[:-1]), 0.0, mass)
        return float((inside * shares).sum() / inside.sum()) if inside.sum() else 1.0


WORLDS = (
    World("kept, then broken", ((3, 0.95),)),
    World("broken up to the start, then kept, then broken", ((1, 0.7), (3, 0.95))),
    World("broken up to half of the start, then kept", ((0.5, 0.5), (4, 0.95))),
    World("broken just beyond the start", ((1, 0.85), (0.5, 0.3), (4, 0.95))),
    World("broken at the start, kept before and after", ((0.8, 0.85), (0.4, 0.5), (4, 0.95))),
    World("at the bound, then a little broken", ((2, 0.8),), 0.78),
    World("around the bound in turns", ((0.5, 0.7), (0.5, 0.9)) * 4, 0.3),
    World("a little broken everywhere", ((0.5, 0.79),), 0.79),
    World("broken everywhere but for a short stretch", ((0.9, 0.75), (0.3, 0.97), (3, 0.6))),
    World("at the bound from the start on", ((1, 0.8),), 0.8 - 1e-6),
    World("ties: broken at the top", ((1, 0.7), (3, 0.95)), step=0.02),
    World("ties: around the bound in turns", ((0.5, 0.7), (0.5, 0.9)) * 4, 0.3, step=0.01),
    World("ties that samples hardly show", ((1, 0.79),), 0.79, step=1e-5),
)


def cell(world: World, n: int, repeats: int) -> dict[str, Any]:
    """The share of repeats with a broken promise, and with none made."""
    broken = refused = 0
    for repeat in range(repeats):
        scores, labels = world.rows(np.random.default_rng((n, repeat)), n)
        try:
            point = sp.calibrate(ASK, scores, labels, confidence=CONFIDENCE)
        except TooFewSamples:
            refused += 1
            continue
        broken += world.precision(float(point.threshold), n) < BOUND - 1e-9  # type: ignore[arg-type]
    limit = 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
    row = {"world": world.name, "n": n, "repeats": repeats, "broken": broken / repeats, "refused": refused / repeats}
    return {**row, "limit": limit, "met": broken / repeats <= limit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fifty repeats")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--data", help="not used: all rows are made here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells = []
    for world in WORLDS:
        for n in SIZES:
            cells.append(cell(world, n, 50 if options.quick else options.repeats))
            print(cells[-1], flush=True)
    figures = {"confidence": CONFIDENCE, "ask": ASK, "cells": cells, "met": all(cell["met"] for cell in cells)}
    print(write_result("precision_walk", figures, options.quick))
    if not figures["met"]:
        sys.exit("promises are broken more often than their confidence allows")
