"""TFCO, Cooper by hand and humancompatible-train beside ours on one problem: seconds, steps and quality, in one run.

    python -m benchmarks.peers.environments tfco humancompatible        # once: the environments of the peers
    python -m benchmarks.speed.beside_peers [--cache DIR] [--rounds 3] [--quick]

The problem and the budget are those of the contest `benchmarks.peers.fnr_at_fpr` (FNR where FPR is at most 1 %, a
linear model on full batches, 150 steps for each of nine settings, TFCO and ours for each of three losses), on rows
made by this command: 10,000 to train on, 16 and 105 columns. The methods take turns, each in a process of its own on
one thread. Seconds are those of the processor in which a method trains, its imports aside; ours and TFCO compute in
float32, the two others in float64, of which ours has a row of its own. Quality is the FNR on test rows of the
candidate that is best on validation rows. Cooper and humancompatible-train try one loss, ours and TFCO three, so that
they are held against each other per step.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.data import Split
from benchmarks.common.harness import write_result
from benchmarks.common.sets import CACHE
from benchmarks.peers.contest import Case, Method
from benchmarks.peers.fnr_at_fpr import CONTEST

OURS, DOUBLE = "setpoint, Lagrangian, float32", "setpoint, Lagrangian"
#: Methods, and the number of losses that each of them tries; the row of ours that each is held against.
LOSSES = {OURS: 3, "TFCO": 3, DOUBLE: 3, "Cooper, by hand": 1, "humancompatible-train": 1}
AGAINST = {"TFCO": OURS, "Cooper, by hand": DOUBLE, "humancompatible-train": DOUBLE}
ASKED = replace(CONTEST, methods={**CONTEST.methods, OURS: Method("by_setpoint", more=("lagrangian", "single"))})
WIDTHS, SETTINGS = (16, 105), 9


def made_case(width: int, rows: int) -> Case:
    """Standardised rows of which about one in seven is positive."""
    draw = torch.Generator().manual_seed(width)
    weight = torch.randn(width, generator=draw, dtype=torch.float64) / width**0.5

    def part(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(size, width, generator=draw, dtype=torch.float64)
        noise = torch.randn(size, generator=draw, dtype=torch.float64)
        return x, (2 * x @ weight + noise > 2.4).double()

    return Case(Split(part(rows), part(rows // 3), part(rows // 3)))


def held(width: int, rows: int, rounds: int, cache: str) -> dict[str, Any]:
    """All methods in turn, some rounds."""
    case = made_case(width, rows)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LOSSES}
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.npz"
        ASKED.write_task(case, task)
        for _ in range(rounds):
            for name in LOSSES:
                told = ASKED.run(name, task, case, cache)
                found[name].append(told)
                shown = told.get("error") or f"FNR {100 * told['test']:.2f} % in {told['processor seconds']:.2f} s"
                print(f"{width:4d} columns, {name:24s} {shown}", flush=True)
    figures: dict[str, Any] = {}
    for name, rounds_of in found.items():
        if any("error" in told for told in rounds_of):
            figures[name] = {"error": next(told["error"] for told in rounds_of if "error" in told)}
            continue
        seconds = statistics.median(told["processor seconds"] for told in rounds_of)
        steps = LOSSES[name] * SETTINGS * ASKED.budget["steps"]
        figures[name] = {
            "seconds": seconds, "milliseconds per step": 1e3 * seconds / steps,
            "FNR on test rows": rounds_of[0]["test"], "version": rounds_of[0]["version"],
        }  # fmt: skip
    for name, ours in AGAINST.items():
        mine, theirs = figures[ours], figures[name]
        if "error" not in theirs and "error" not in mine:
            theirs["our step beside theirs"] = mine["milliseconds per step"] / theirs["milliseconds per step"]
            theirs["target"] = 1.0
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--cache", default=str(CACHE), help="where the environments are")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few rows, one round; the figures are then rough")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    rows, rounds = (2000, 1) if options.quick else (10_000, options.rounds)
    figures = {f"{width} columns": held(width, rows, rounds, options.cache) for width in WIDTHS}
    write_result("beside_peers", {"rows": rows, "widths": figures}, options.quick)


if __name__ == "__main__":
    main()
