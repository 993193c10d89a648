"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "The default for linear models: FNR at a fixed FPR"


def section(figures: dict[str, Any]) -> str:
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
