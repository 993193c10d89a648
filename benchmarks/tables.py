"""Writes docs/measured.md from the results on disk: every figure with the command that makes it.

python -m benchmarks.tables
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "measured.md"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdict(met: bool | None) -> str:
    return "" if met is None else "yes" if met else "no"


def kernels(figures: dict[str, Any]) -> str:
    rows = [
        [row["what"], f"{row['n']:,}", f"{row['figure']:.3g} {row['unit']}", row["target"], verdict(row["met"])]
        for row in figures["rows"]
    ]
    return table(["what", "n", "figure", "target", "met"], rows)


def step_cost(figures: dict[str, Any]) -> str:
    rows = [
        [row["criterion"], f"{row['ratio']:.3f}", f"<= {row['target']}", verdict(row["met"])] for row in figures["rows"]
    ]
    cached = figures["cached"]
    rows.append(
        [
            "an epoch of the whole net / of its head on cached features",
            f"{cached['whole / cached epoch']:.0f}",
            f">= {cached['target']}",
            verdict(cached["met"]),
        ]
    )
    return table(["step, as a ratio to cross-entropy", "ratio", "target", "met"], rows)


def default(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        means = {name: 100 * sum(values) / len(values) for name, values in cell["figures"].items()}
        gain = cell["gain over best of 21 weights"]
        rows.append(
            [
                cell["set"],
                cell["ask"],
                *(f"{means[name]:.2f}" for name in ("cross-entropy", "best of 21 weights", "default")),
                f"{100 * gain['mean']:.2f} ± {100 * gain['standard_error']:.2f} "
                f"({100 * gain['corrected_standard_error']:.2f})",
                *(f"{cell['seconds'][name]:.1f} s" for name in ("best of 21 weights", "default")),
            ]
        )
    header = ["set", "ask", "cross-entropy", "best of 21 weights", "default", "gain over the weights, in points",
              "time of the grid", "of the default"]  # fmt: skip
    return (
        table(header, rows)
        + "\n\nFNR in percent on test; in brackets the standard error corrected for overlapping splits."
    )


def letter(figures: dict[str, Any]) -> str:
    rows = [
        [name, f"{100 * mean:.2f}", "" if name not in figures["default minus"] else
         f"{100 * figures['default minus'][name]['mean']:+.2f} ± "
         f"{100 * figures['default minus'][name]['standard_error']:.2f}"]
        for name, mean in figures["means"].items()
    ]  # fmt: skip
    ratios = "; ".join(f"default / {name}: {r['ratio']:.3f}" for name, r in figures["ratios"].items())
    return table(["method", "area x 100", "default minus it"], rows) + f"\n\n{ratios}."


def mq2008(figures: dict[str, Any]) -> str:
    rows = []
    for study, found in figures["studies"].items():
        for queries in ("all queries", "queries with relevant documents"):
            cell = found[queries]
            gap = cell["difference over queries"]
            rows.append(
                [
                    study,
                    f"{queries} ({cell['queries']})",
                    f"{cell['mean of cross-entropy']:.4f}",
                    f"{cell['mean of implicit top-k']:.4f}",
                    f"{gap['mean']:+.4f} ± {gap['standard_error']:.4f}",
                ]
            )
    return table(["seeds vary", "queries", "cross-entropy", "implicit top-k", "paired difference"], rows)


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "default": ("The default for linear models: FNR at a fixed FPR", default),
    "letter": ("Letter: mean precision over recall 95 % to 100 %", letter),
    "mq2008": ("MQ2008: precision at 5, linear models, official fold 1", mq2008),
    "step_cost": ("What a step costs", step_cost),
    "kernels": ("Curves and pairs", kernels),
}


def page() -> str:
    """The whole page, from the json files."""
    parts = [
        "# Measured\n\nWritten by `python -m benchmarks.tables` from `benchmarks/results/`; nothing here is typed."
    ]
    for name, (title, render) in SECTIONS.items():
        result = json.loads((RESULTS / f"{name}.json").read_text())
        machine = result["machine"]
        note = f"`{result['command']}`, torch {result['versions']['torch']}, {machine['cpu_count']} cores."
        parts.append(f"## {title}\n\n{note}\n\n{render(result['figures'])}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
