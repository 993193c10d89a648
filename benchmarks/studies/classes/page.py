"""The section of docs/measured.md on several classes."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import share, table

TITLE = "Several classes"


def section(figures: dict[str, Any]) -> str:
    rows = [
        [cell["table"], f"`{cell['ask']}`", cell["way"], str(cell["splits"]), share(cell["mean"]), share(cell["held"]),
         "" if cell["way"] == figures["rival"] else f"{100 * cell['gain']:+.2f} ± {100 * cell['standard_error']:.2f}"]
        for cell in figures["cells"]
    ]  # fmt: skip
    note = (
        "On test rows, at the shifts set on calibration rows without a certificate; *held* is the share of splits in "
        "which the bound held on the test rows. The gain is over a linear model by cross-entropy with tuned shifts, in "
        "points, paired over fresh splits, ± one plain standard error; above 0 is better. A way that breaks its bound "
        "more often may show a gain for that reason alone."
    )
    return f"{note}\n\n{table(['table', 'ask', 'way', 'splits', 'objective', 'held', 'gain'], rows)}"
