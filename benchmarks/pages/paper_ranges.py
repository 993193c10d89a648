"""The section on Figure 3 of the implicit-thresholds paper."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.gains import gain
from benchmarks.tables import table

TITLE = "Figure 3 of the implicit-thresholds paper"


def section(figures: dict[str, Any]) -> str:
    note = (
        "The area under the precision-recall curve over recall from beta to 100 %, in percent, trained and judged anew "
        f"for each beta; splits of 50/25/25, seeds {figures['seeds'][0]} to {figures['seeds'][-1]}, and what is "
        "tuned as in Table 5. Published, as a plot without figures: implicit thresholds are most ahead for "
        "beta near 1."
    )
    rows = figures["rows"]
    if not rows:
        return note
    methods = list(dict.fromkeys(row["method"] for row in rows))
    areas, gains = [], []
    for name, beta in dict.fromkeys((row["set"], row["beta"]) for row in rows):
        own = {row["method"]: row for row in rows if (row["set"], row["beta"]) == (name, beta)}
        splits = next(iter(own.values()))["splits"]
        shown = [f"{found['mean']:.2f} ± {found['standard_error']:.2f}" for found in (own[m]["area"] for m in methods)]
        areas.append([name, f"{beta:g}", str(splits), *shown])
        for method in [method for method in ("default", "implicit, as published", "auto") if method in own]:
            gains.append([name, f"{beta:g}", method, gain(own[method]["minus cross-entropy"], 1),
                          gain(own[method]["minus best of 21 weights"], 1)])  # fmt: skip
    of_gains = table(["set", "beta", "method", "over cross-entropy", "over the weights"], gains)
    picture = "![Gain over cross-entropy by the start of the range of recall](images/paper_ranges.svg)"
    return "\n\n".join([note, picture, table(["set", "beta", "splits", *methods], areas), of_gains])
