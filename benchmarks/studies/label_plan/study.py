"""Labels by a plan beside labels at random: false alarms, and labels until a broken bound is noticed.

    python -m benchmarks.studies.label_plan [--quick]

Every month has 20,000 scored rows, of which about 200 get labels, by `watch.plan` or at random. The plan was made on
5,000 older rows. In worlds where the bound is kept the true rates are exactly at their bounds, and 1,000 streams are
watched for 24 months. In the others it is broken from the first month on, and 200 streams are watched until the alarm,
for 100 months at most.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

import setpoint as sp
from benchmarks.common.harness import Journal, write_result

LEVEL, ROWS, LABELS, MONTHS, MOST, KNOWN = 0.05, 20_000, 200, 24, 100, 5000


@dataclass(frozen=True)
class World:
    """Normal scores, moved by the shift for positives; the bounds are the true rates at the threshold."""

    name: str
    bounds: tuple[str, ...]
    share: float
    shift: float
    threshold: float
    broken_share: float
    broken_shift: float

    def rows(self, draw: np.random.Generator, n: int, broken: bool = False) -> tuple[np.ndarray, np.ndarray]:
        labels = draw.random(n) < (self.broken_share if broken else self.share)
        return draw.normal(size=n) + (self.broken_shift if broken else self.shift) * labels, labels.astype(int)

    @property
    def rates(self) -> dict[str, float]:
        recall, fpr = float(norm.sf(self.threshold - self.shift)), float(norm.sf(self.threshold))
        right, wrong = self.share * recall, (1 - self.share) * fpr
        return {"recall": recall, "precision": right / (right + wrong), "fpr": fpr}

    def point(self, scores: np.ndarray, labels: np.ndarray) -> sp.OperatingPoint:
        relation = {"fpr": "<="}
        bounds = " and ".join(f"{n} {relation.get(n, '>=')} {100 * self.rates[n]:.6f}%" for n in self.bounds)
        stored = sp.calibrate(f"minimize error where {bounds}", scores, labels).to_dict()
        return sp.OperatingPoint.from_dict({**stored, "threshold": self.threshold})


WORLDS = (
    World("recall, 2 % positive", ("recall",), 0.02, 3.0, 1.7, 0.02, 2.6),
    World("recall, 10 % positive", ("recall",), 0.1, 2.0, 0.7, 0.1, 1.6),
    World("precision, 5 % positive", ("precision",), 0.05, 3.0, 2.0, 0.035, 3.0),
    World("recall and precision", ("recall", "precision"), 0.05, 3.0, 2.0, 0.05, 2.6),
    World("fpr, 20 % positive", ("fpr",), 0.2, 3.0, 2.3, 0.2, 3.0),
)


def is_broken(watch: sp.Watch) -> bool:
    """Whether the watch is broken, without the intervals that take most of its time."""
    return any(followed.peak[0] >= -math.log(followed.level) for followed in watch._followed)


def stream(world: World, way: str, broken: bool, months: int, seed: int) -> tuple[bool, int]:
    """Whether there is an alarm, and the number of labels up to then."""
    draw = np.random.default_rng((seed, int(broken)))
    known = world.rows(draw, KNOWN)
    watch = world.point(*known).watch(LEVEL)
    plan = watch.plan(*known, share=LABELS / ROWS)
    spent = 0
    for _ in range(months):
        scores, labels = world.rows(draw, ROWS, broken)
        if world.bounds == ("fpr",) and broken:
            scores = scores + 0.25 * (labels == 0)
        if way == "plan":
            rows, weights = plan.draw(scores, int(draw.integers(2**62)))
            watch.update(scores[rows], labels[rows], weights=weights)
        else:
            rows = np.flatnonzero(draw.random(ROWS) < LABELS / ROWS)
            watch.update(scores[rows], labels[rows])
        spent += len(rows)
        if is_broken(watch):
            return True, spent
    return False, spent


def cell(world: World, streams: tuple[int, int]) -> dict[str, Any]:
    """False alarms and labels until the alarm, by a plan and at random."""
    row: dict[str, Any] = {"world": world.name, "streams": streams[0], "until_alarm": streams[1]}
    for way in ("plan", "random"):
        false = np.mean([stream(world, way, False, MONTHS, seed)[0] for seed in range(streams[0])])
        alarms, labels = map(np.array, zip(*(stream(world, way, True, MOST, seed) for seed in range(streams[1]))))
        row[way] = {"alarms": float(false), "labels": float(labels.mean()), "missed": float((~alarms).mean()),
                    "error": float(labels.std() / math.sqrt(len(labels)))}  # fmt: skip
    limit = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / streams[0])
    return {**row, "limit": limit, "met": row["plan"]["alarms"] <= limit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 and 5 streams")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--data", help="not used: all rows are made here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    streams = (10, 5) if options.quick else (options.streams, max(1, options.streams // 5))
    journal, rows = Journal("label_plan", options.quick), []
    for world in WORLDS:
        start = time.process_time()
        made = journal.row(f"{world.name} | {streams}", lambda world=world: cell(world, streams))  # type: ignore[misc]
        rows.append({name: value for name, value in made.items() if name not in ("key", "torch")})
        print(rows[-1], f"{time.process_time() - start:.0f} s", flush=True)
    journal.fold()
    print(
        write_result("label_plan", {"level": LEVEL, "cells": rows, "met": all(r["met"] for r in rows)}, options.quick)
    )
