"""The tables of docs/scale.md on several processes and half precision: the results of `speed/distributed.py`."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.harness import load_figures
from benchmarks.common.words import table, verdict


def exact(figures: dict[str, Any]) -> str:
    rows = []
    for size in sorted({row["processes"] for row in figures["rows"]}):
        own = [row for row in figures["rows"] if row["processes"] == size]
        worst = max(own, key=lambda row: row["parameters"])
        rows.append([
            str(size), str(len(own)), str(figures["steps"]), f"{worst['parameters']:.1e} ({worst['solver']})",
            f"{max(row['state'] for row in own):.1e}", f"<= {figures['target']:g}",
            verdict(worst["parameters"] <= figures["target"]),
        ])  # fmt: skip
    head = ["processes", "solvers", "steps", "parameters differ by", "solver state by", "target", "met"]
    return table(head, rows)


def communication(figures: dict[str, Any]) -> str:
    rows = [
        [
            row["solver"], str(row["thresholds"]), str(row["batch"]), str(row["memory"]), str(row["besides"]),
            f"<= {row['allowed']}", str(row["rounds"]), verdict(row["besides"] <= row["allowed"]),
        ]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["solver", "thresholds m", "batch a process", "numbers for memory", "besides", "4 m + 8", "rounds", "met"]
    return table(head, rows)


def overhead(figures: dict[str, Any]) -> str:
    rows = [
        [
            row["criterion"], f"{row['ratio']:.3f}", f"{row['processor time']:.3f}", f"<= {row['target']}",
            verdict(row["met"]),
        ]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["step, as a ratio to plain cross-entropy, both under DDP", "time", "processor time", "target", "met"]
    return table(head, rows)


def precision(figures: dict[str, Any]) -> str:
    rows = [
        [
            row["solver"], f"{statistics.mean(row['float32']):.4f}", f"{statistics.mean(row['bfloat16']):.4f}",
            f"{row['mean gap']:+.4f} ± {row['standard error']:.4f}", f"{row['spread of seeds']:.4f}",
            verdict(row["met"]),
        ]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["solver", "FNR, float32", "bfloat16", "gap", "spread of seeds", "within noise"]
    return table(head, rows)


def saturation(figures: dict[str, Any]) -> str:
    rows = [
        [row["solver"], f"{row['steps']:,}", f"{row['largest score']:.3g}", str(row["steps not finite"])]
        for row in figures["rows"]
    ]
    return table(["solver", "steps", "largest score", "steps not finite"], rows)


def kill(figures: dict[str, Any]) -> str:
    rows = [[str(figures["runs"]), str(figures["killed"]), str(figures["equal"])]]
    return table(["runs", "workers killed", "equal to the undisturbed run, bit by bit"], rows)


WRITERS = {
    "exact": exact, "communication": communication, "overhead": overhead, "autocast": precision,
    "saturation": saturation, "kill": kill,
}  # fmt: skip


def of_part(part: str) -> str:
    """A table and the command that makes its figures."""
    figures = load_figures("distributed")[part]
    command = f"python -m benchmarks.speed.distributed --only {part}" + (" --quick" if figures["quick"] else "")
    return f"`{command}`\n\n{WRITERS[part](figures)}"
