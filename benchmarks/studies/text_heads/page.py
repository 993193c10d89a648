"""The table of this study in docs/recipes/guardrails.md."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.words import table


def told(cells: list[dict[str, Any]]) -> str:
    """How many cells our head wins and loses, in a sentence per rival."""
    said = []
    for rival in ("best of 21 weights", "cross-entropy"):
        gains = [cell[f"gain over {rival}"] for cell in cells]
        ahead = sum(gain["mean"] > 0 for gain in gains)
        counts = []
        for error in ("standard_error", "corrected_standard_error"):
            better = sum(gain["mean"] > 2 * gain[error] for gain in gains)
            worse = sum(gain["mean"] < -2 * gain[error] for gain in gains)
            counts.append(f"better in {better} and worse in {worse}")
        said.append(
            f"Against {rival} our head is ahead in {ahead} of {len(gains)} cells; beyond two standard errors it is "
            f"{counts[0]}, beyond two corrected ones {counts[1]}."
        )
    return " ".join(said)


def section(figures: dict[str, Any]) -> str:
    """FNR of each head, and the paired gains of ours."""
    rows = []
    for cell in figures["cells"]:
        means = {name: 100 * statistics.mean(values) for name, values in cell["figures"].items()}
        gains = [cell[f"gain over {rival}"] for rival in ("best of 21 weights", "cross-entropy")]
        said = [(100 * g["mean"], 100 * g["standard_error"], 100 * g["corrected_standard_error"]) for g in gains]
        rows.append(
            [
                f"{cell['set']}, {cell['rows']} texts",
                cell["ask"],
                *(f"{means[name]:.2f}" for name in ("cross-entropy", "best of 21 weights", "default")),
                *(f"{mean:.2f} ± {error:.2f} ({corrected:.2f})" for mean, error, corrected in said),
            ]
        )  # fmt: skip
    header = ["set", "ask", "cross-entropy", "best of 21 weights", "default", "gain over the weights, in points",
              "gain over cross-entropy"]  # fmt: skip
    return (
        f"{told(figures['cells'])}\n\n"
        + table(header, rows)
        + f"\n\nFNR in percent on test, {figures['splits']} splits; in brackets the standard error corrected for "
        f"overlapping splits. The embeddings are those of `{figures['encoder']}`, of the first {figures['characters']} "
        "characters of each text; spam, tweets about disasters and negative reviews are to be found."
    )
