"""Writes the tables of docs/scale.md from the results on disk, between the lines that mark them.

python -m benchmarks.scale_page
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS
from benchmarks.tables import table, verdict

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
COMMAND = "python -m benchmarks.distributed"
MARKED = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.S)


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
    "exact": (exact, "exact"), "communication": (communication, "communication"), "overhead": (overhead, "overhead"),
    "precision": (precision, "autocast"), "saturation": (saturation, "saturation"), "kill": (kill, "kill"),
}  # fmt: skip


def page() -> str:
    """The page as it stands, its tables written anew."""
    figures = json.loads((RESULTS / "distributed.json").read_text())["figures"]

    def write(found: re.Match[str]) -> str:
        writer, part = WRITERS[found[1]]
        command = f"{COMMAND} --only {part}" + (" --quick" if figures[part]["quick"] else "")
        return f"<!-- {found[1]} -->\n`{command}`\n\n{writer(figures[part])}\n<!-- end -->"

    return MARKED.sub(write, PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
