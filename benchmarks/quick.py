"""docs/evidence/quick.md: how long the short form of every study takes."""

from __future__ import annotations

from benchmarks.common.harness import load_figures
from benchmarks.common.words import table

NAME = "quick_studies"


def page() -> str:
    figures = load_figures(NAME)
    seconds: dict[str, float] = figures.get("seconds", {})
    rows = [
        [f"`python -m benchmarks.{'' if study == 'peers' else 'studies.'}{study} --quick`", f"{spent:.0f}"]
        for study, spent in sorted(seconds.items(), key=lambda one: -one[1])
    ]
    long = sum(spent > figures.get("most seconds", 0) for spent in seconds.values())
    minutes = figures.get("minutes")
    whole = f"took {minutes:.1f} minutes" if minutes else "was not timed as a whole"
    return (
        "# How long the short forms take\n\nSeconds of the processor of each study with `--quick`, one thread each, "
        "measured by `python -m benchmarks.speed.quick_studies`; other work on the machine does not change them. "
        f"{len(rows) - long} of {len(rows)} take at most {figures.get('most seconds', 0)} seconds. All of them two at "
        f"a time, as `make evidence QUICK=1` runs them, {whole} on two idle cores; the limit is "
        f"{figures.get('most minutes', 0)}. "
        "Figures of a short form are rough, go to a temporary folder, and stand on no page.\n\n"
        f"{table(['command', 'seconds'], rows)}\n"
    )
