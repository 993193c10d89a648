"""The section of docs/measured.md on promises end to end."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import share, table, verdict

TITLE = "Promises, end to end: a table in, a certified decision out"


def section(figures: dict[str, Any]) -> str:
    rows = [
        [cell["model"], f"{cell['repeats']:,}",
         *(share(cell[name]) for name in ("issued", "broken", "limit", "bare broken")), verdict(cell["met"]),
         *(share(cell[name]) for name in ("shipped, fpr", "shipped, fnr", "bare, fnr"))]
        for cell in figures["cells"]
    ]  # fmt: skip
    note = (
        f"`{figures['ask']}` with a certificate at {100 * figures['confidence']:.0f} %, on tables of 1,200 rows (180 "
        "to set the threshold) drawn from a population whose true rates are known exactly. *Broken* is the share of "
        "all repeats whose certified bound does not hold in the population; *without a certificate* is how often the "
        "bound does not hold at the plain threshold of the same calibration rows. The last columns are means of true "
        "rates: what the certificate costs is the difference of the two FNR."
    )
    head = ["model", "repeats", "certified", "broken", "limit", "broken without a certificate", "met", "true FPR",
            "true FNR", "FNR without a certificate"]  # fmt: skip
    return f"{note}\n\n{table(head, rows)}"
