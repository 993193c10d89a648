"""The section on the peers, run in their own environments."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.gains import gain
from benchmarks.tables import table

TITLE = "Peers, run"


def section(figures: dict[str, Any]) -> str:
    rows = []
    for row in figures["rows"]:
        if "error" in row:
            rows.append(
                [row["set"], row["peer"], row["version"], "did not run", f"`{row['error']}`", "", "", "", "", ""]
            )
            continue
        rows.append(
            [row["set"], row["peer"], row["version"], f"{100 * row['test']:.2f}", gain(row["ours minus it"])
             if "ours minus it" in row else "", f"{100 * row['at threshold']:.2f}", f"{100 * row['fpr']:.2f}",
             f"{row['candidates']:.0f}", f"{row['seconds']:.1f}",
             f"{row['peak megabytes']:.0f}" if "peak megabytes" in row else ""]
        )  # fmt: skip
    seeds = figures["seeds"]
    note = (
        f"`{figures['ask']}`, {len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}, of 60/20/20, at most "
        f"{figures['most training rows']:,} training rows. Each peer in an environment of its own, made by `python -m "
        "benchmarks.peers.environments`; the same rows, the same number of full-batch steps where it takes steps, and "
        "of several settings the best on validation rows. FNR in percent: at the best cut of the test curve, and at "
        "the threshold set on validation rows, with the FPR there. Seconds are by the wall, of all settings tried; "
        "memory, where it was measured, is the peak of the process. TFCO had three losses to choose from, ours the "
        "three steps that these are; what ours chooses from, and where it starts, was changed after looks at eight "
        "other splits. A linear model each, but for LightGBM. fairlearn is not here: its reductions bound differences "
        "between groups, not a rate."
    )
    header = ["set", "method", "version", "FNR, best cut", "better than it by our Lagrangian", "FNR at threshold",
              "FPR there", "models to choose from", "seconds", "MB"]  # fmt: skip
    return f"{note}\n\n{table(header, rows)}"
