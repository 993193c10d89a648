"""How often promises are broken: thresholds set on n samples, judged by the true distribution.

    python -m benchmarks.studies.certificates [--quick] [--repeats 1000]

Worlds whose true rates are known in closed form: scores of negatives and positives from one family, three in ten
positive; continuous (normal), tied (the same, rounded to quarters) and heavy-tailed (Student's t with 1.5 degrees,
whose precision falls again at high thresholds). Beside the certificate at 95 %: the plug-in threshold, and MAPIE's
controller, where it is installed, over 100 quantiles of the calibration scores; by fixed sequence from the safe end,
or, for precision, which has none, by its default (Bonferroni and Holm). `objective` is the true objective at the
thresholds that were set, `refused` the share of repeats in which no promise was made. Each finished cell is one row
of `results/rows/certificates.parquet`, and is not run again.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import norm
from scipy.stats import t as student

import setpoint as sp
from benchmarks.common.harness import Journal, write_result
from setpoint.errors import TooFewSamples

CONFIDENCE, SHARE, WIDER = 0.95, 0.3, 1.5
SIZES = (500, 2000, 20000)
ASKS = (
    "minimize fnr where fpr <= 1%",
    "maximize tnr where recall >= 95%",
    "maximize recall where precision >= 80%",
    "minimize error where recall.gap(group) <= 10%",
)


@dataclass(frozen=True)
class World:
    """Scores: noise, moved by the shift for positives; with groups, the noise of the second is wider by half."""

    name: str

    @property
    def shift(self) -> float:
        return 12.0 if self.name == "heavy-tailed" else 2.5

    def noise(self, draw: np.random.Generator, n: int) -> np.ndarray:
        return draw.standard_t(1.5, n) if self.name == "heavy-tailed" else draw.normal(size=n)

    def above(self, threshold: float) -> float:
        """P(noise, as scored, > threshold)."""
        if self.name == "tied":
            return float(norm.sf((math.floor(threshold * 4) + 0.5) / 4))
        return float(student.sf(threshold, 1.5) if self.name == "heavy-tailed" else norm.sf(threshold))

    def sample(self, draw: np.random.Generator, n: int, grouped: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels, groups = (draw.random(n) < SHARE).astype(int), draw.integers(0, 2, n)
        noise = self.noise(draw, n)
        noise = np.round(noise * 4) / 4 if self.name == "tied" else noise
        return noise * np.where(groups * grouped, WIDER, 1.0) + self.shift * labels, labels, groups

    def rates(self, threshold: float, width: float = 1.0) -> dict[str, float]:
        recall, fpr = self.above((threshold - self.shift) / width), self.above(threshold / width)
        flagged = SHARE * recall + (1 - SHARE) * fpr
        return {
            "recall": recall, "fnr": 1 - recall, "fpr": fpr, "tnr": 1 - fpr,
            "precision": SHARE * recall / flagged if flagged else 0.0,
            "error": SHARE * (1 - recall) + (1 - SHARE) * fpr,
        }  # fmt: skip


def true_rates(world: World, point: sp.OperatingPoint | float) -> dict[str, float]:
    if isinstance(point, float):
        return world.rates(point)
    if not isinstance(point.threshold, dict):
        return world.rates(float(point.threshold))  # type: ignore[arg-type]
    each = [world.rates(point.threshold["0"]), world.rates(point.threshold["1"], WIDER)]
    pooled = {name: (each[0][name] + each[1][name]) / 2 for name in each[0]}
    return {**pooled, "recall.gap(group)": abs(each[0]["recall"] - each[1]["recall"])}


def by_mapie(problem: sp.Problem, scores: np.ndarray, labels: np.ndarray) -> float | None:
    """The threshold of MAPIE's controller, or None where it finds none."""
    from mapie.risk_control import BinaryClassificationController  # noqa: PLC0415

    bound = problem.constraints[0]
    cuts = np.unique(np.quantile(scores, np.linspace(0.005, 0.995, 100), method="higher"))
    shares, grid = (0.5 + np.arctan(values) / np.pi for values in (scores, cuts))
    rising = str(bound.quantity) == "recall"
    controller = BinaryClassificationController(
        lambda x: np.stack([1 - x[:, 0], x[:, 0]], axis=1), str(bound.quantity), bound.bound, CONFIDENCE,
        list_predict_params=grid if rising else grid[::-1],
        fwer_method="bonferroni_holm" if str(bound.quantity) == "precision" else "fixed_sequence",
    )  # fmt: skip
    controller.calibrate(shares[:, None], labels)
    best = controller.best_predict_param
    # Its decision is score >= threshold; ours is strictly above.
    return None if best is None else float(cuts[np.abs(grid - best).argmin()]) - 1e-9


def cell(ask: str, kind: str, n: int, repeats: int) -> dict[str, object]:
    """Broken promises, refusals and the mean true objective of each way to set a threshold."""
    torch.set_num_threads(1)
    world, problem = World(kind), sp.ask(ask)
    bound = problem.constraints[0]
    methods = ["certified", "plug-in"]
    if problem.group is None and importlib.util.find_spec("mapie"):
        methods.append("MAPIE")
    kept: dict[str, list[tuple[bool, float] | None]] = {method: [] for method in methods}
    for repeat in range(repeats):
        draw = np.random.default_rng((n, len(ask), repeat))
        scores, labels, groups = world.sample(draw, n, problem.group is not None)
        for method in methods:
            try:
                if method == "MAPIE":
                    found = by_mapie(problem, scores, labels)
                    if found is None:
                        raise TooFewSamples("no threshold")
                    rates = true_rates(world, found)
                else:
                    confidence = CONFIDENCE if method == "certified" else None
                    rates = true_rates(
                        world, sp.calibrate(problem, scores, labels, groups=groups, confidence=confidence)
                    )
            except TooFewSamples:
                kept[method].append(None)
                continue
            excess = rates[str(bound.quantity)] - bound.bound
            kept[method].append(
                ((excess if bound.relation == "<=" else -excess) > 1e-12, rates[str(problem.objective)])
            )
    limit = 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
    row: dict[str, object] = {"ask": ask, "scores": kind, "n": n, "repeats": repeats, "limit": limit}
    for method, results in kept.items():
        made = [result for result in results if result is not None]
        row[method] = {
            "broken": sum(broken for broken, _ in made) / repeats,
            "refused": 1 - len(made) / repeats,
            "objective": sum(value for _, value in made) / len(made) if made else None,
        }
    row["met"] = row["certified"]["broken"] <= limit  # type: ignore[index]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fifty repeats of the two smaller sizes")
    parser.add_argument("--repeats", type=int, default=1000)
    options = parser.parse_args()
    repeats, sizes = (50, SIZES[:2]) if options.quick else (options.repeats, SIZES)
    started = time.perf_counter()
    cells = [(ask, kind, n) for n in reversed(sizes) for ask in ASKS for kind in ("continuous", "tied", "heavy-tailed")]
    journal = Journal("certificates", options.quick)
    keys = {each: " | ".join(map(str, (*each, repeats))) for each in cells}
    with ProcessPoolExecutor(2) as pool:
        begun = {pool.submit(cell, *each, repeats): key for each, key in keys.items() if key not in journal}
        for number, ended in enumerate(as_completed(begun), 1):
            row = journal.add(begun[ended], ended.result())
            print(f"{number}/{len(begun)} after {time.perf_counter() - started:.0f} s", row, flush=True)
    order = {ask: place for place, ask in enumerate(ASKS)}
    rows = [{name: one for name, one in journal[key].items() if name not in ("key", "torch")} for key in keys.values()]
    rows.sort(key=lambda row: (order[str(row["ask"])], row["n"], row["scores"]))
    journal.fold()
    beside = any("MAPIE" in row for row in rows)
    print(write_result("certificates", {"confidence": CONFIDENCE, "mapie": beside, "cells": rows}, options.quick))


if __name__ == "__main__":
    main()
