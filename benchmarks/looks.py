"""How often a confirming study was summed up, and what it said each time: its counts in every commit that wrote them.

    python -m benchmarks.looks

Splits are fresh once. Whoever sums them up, changes what is judged for another reason and sums them up again has looked
at them; the pages of these studies therefore show all looks, read from the history of the repository.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from benchmarks.common.harness import RESULTS, ROOT, load_figures, write_result
from benchmarks.common.words import table

NAME = "looks"
#: By study, the counts that are shown: in words, and under which key they stand in its summary.
SHOWN = {
    "tables": {
        "against tuned LightGBM, best cut": "LightGBM tuned | test | standard_error",
        "at a set threshold": "LightGBM tuned | at threshold | standard_error",
        "against cross-entropy, best cut": "cross-entropy | test | standard_error",
        "at a set threshold, cross-entropy": "cross-entropy | at threshold | standard_error",
    },
    "default_study": {
        "against the best of 21 weights": "default | best of 21 weights, again | test | standard_error",
        "against cross-entropy": "default | cross-entropy, again | test | standard_error",
    },
}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def looks_of(study: str) -> list[dict[str, Any]]:
    """A row per change of the counts, the oldest first."""
    path = (RESULTS / f"{study}.summary.json").relative_to(ROOT)
    found: list[dict[str, Any]] = []
    for line in reversed(git("log", "--format=%h %cs", "--", str(path)).splitlines()):
        commit, day = line.split()
        figures = json.loads(git("show", f"{commit}:{path}"))["figures"]
        if set(SHOWN[study].values()) <= set(figures.get("counts", ())):
            counts = {words: [figures["counts"][key][side] for side in ("better", "worse", "cells")]
                      for words, key in SHOWN[study].items()}  # fmt: skip
            if not found or found[-1]["counts"] != counts:
                seeds = f"{figures['seeds'][0]} to {figures['seeds'][-1]}"
                found.append({"commit": commit, "day": day, "splits": seeds, "counts": counts})
    return found


def told(study: str) -> list[str]:
    """A paragraph and a table of all looks at a study; nothing where they were not read."""
    rows = load_figures(NAME).get(study, [])
    if len(rows) < 2:
        return []
    lines = [
        [row["day"], row["commit"], row["splits"], *(f"{b} / {w} of {n}" for b, w, n in row["counts"].values())]
        for row in rows
    ]
    head = ["day", "commit", "splits", *(f"better / worse {words}" for words in SHOWN[study])]
    return [
        f"*Looked at {len(rows)} times.* Splits are fresh at their first look alone. What is judged was changed "
        "between the looks, by what other splits said, and the last counts are not those of a single look "
        f"(`python -m benchmarks.looks`):\n\n{table(head, lines)}"
    ]


if __name__ == "__main__":
    print(write_result(NAME, {study: looks_of(study) for study in SHOWN}))
