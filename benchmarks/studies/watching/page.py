"""The page of this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import Claims, table, verdict

TITLE = "Watching a promise"


def claims(figures: dict[str, Any]) -> Claims:
    level, kept, broken = figures["level"], figures["kept"], figures["broken"]
    worst = max(kept, key=lambda row: row["alarms"])
    found: Claims = [
        (
            f"a promise that is kept is called broken in {100 * level:.0f} % of streams at most, over all looks",
            f"{100 * worst['alarms']:.1f} % in the worst of {len(kept)} cells",
            all(row["met"] for row in kept),
        )
    ]
    beside = [row for row in broken if "MAPIE" in row]
    if beside:
        later = [row for row in beside if _mean(row["watch on these"]) > _mean(row["MAPIE"])]
        streams = beside[0]["MAPIE"]["streams"]
        found.append(
            (
                "a broken bound is noticed no later than by MAPIE's monitor",
                f"later in {len(later)} of {len(beside)} cells, {streams} streams each",
                not later,
            )
        )
        times = min(row["MAPIE"]["seconds"] for row in beside) / figures["seconds"]
        found.append(("a look takes 1/100 of the time of MAPIE's or less", f"1/{times:.0f}", times >= 100))
    many = figures["many"]
    found.append(
        (f"{many['rows']:.0e} scores are watched within 1 GB", f"{many['megabytes']:.0f} MB", many["megabytes"] <= 1024)
    )
    return found


def _mean(found: dict[str, Any]) -> float:
    """The mean delay; endless if no stream has an alarm."""
    return float("inf") if found["mean"] is None else found["mean"]


def _delay(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    mean = "none" if found["mean"] is None else f"{found['mean']:.1f}"
    return f"{mean} ({100 * found['early']:.0f} % / {100 * found['missed']:.0f} %)"


def section(figures: dict[str, Any]) -> str:
    kept = [
        [row["cell"], f"{row['streams']:,}", f"{row['looks']:,}", f"{100 * row['alarms']:.1f} %", verdict(row["met"])]
        for row in figures["kept"]
    ]
    columns = ("watch", "monthly test", "Bonferroni", "watch on these", "MAPIE")
    broken = [[row["cell"], *(_delay(row.get(column)) for column in columns)] for row in figures["broken"]]
    return "\n\n".join(
        [
            "Streams in which the promise is kept: the share that is ever called broken, or drifting.",
            table(["cell", "streams", "looks", "alarms", "met"], kept),
            "Streams in which the bound breaks in month 7: the mean number of months until the alarm, and in brackets "
            "the streams with an alarm before month 7 and those without any in 24 months. The monthly test at 5 % is "
            f"no rival: it raises a false alarm in {100 * figures['monthly_alarms']:.0f} % of streams at the bound. "
            "MAPIE is slow, so it saw a few streams of each cell; beside it stands the watch on the same streams.",
            table(["cell", *columns], broken),
        ]
    )
