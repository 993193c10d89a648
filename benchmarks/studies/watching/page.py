"""The page of this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share_error, table, verdict

TITLE = "Watching a promise"

QUESTION = "Does watching a promise raise few false alarms over any number of looks, and notice a broken one soon?"
THREATS = (
    "MAPIE saw few streams of each cell, since it is slow; the watch on the same streams stands beside it.",
    "Bonferroni over 24 looks, decided beforehand, notices a bound that is broken twofold a little sooner.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    level, kept, broken = figures["level"], figures["kept"], figures["broken"]
    worst = max(kept, key=lambda row: row["alarms"])
    found: list[Claim] = [
        Claim(
            "watching: a kept promise is rarely called broken, over all looks",
            "{:.1f} ± {:.1f} % of streams in the worst cell".format(*share_error(worst["alarms"], worst["streams"])),
            all(row["met"] for row in kept),
            f"a level of {100 * level:.0f} %",
            f"{len(kept)} cells",
            True,
            None,
            share_error(worst["alarms"], worst["streams"]),
        )
    ]
    beside = [row for row in broken if "MAPIE" in row]
    if beside:
        later = [row for row in beside if _mean(row["watch on these"]) > _mean(row["MAPIE"])]
        streams = beside[0]["MAPIE"]["streams"]
        found.append(
            Claim(
                "watching: a broken bound is noticed no later",
                f"later in {len(later)} of {len(beside)} cells",
                not later,
                "MAPIE's monitor",
                f"{len(beside)} cells, {streams} streams each",
            )
        )
        times = min(row["MAPIE"]["seconds"] for row in beside) / figures["seconds"]
        found.append(Claim("watching: a look takes 1/100 of the time", f"1/{times:.0f}", times >= 100, "MAPIE"))
    many = figures["many"]
    found.append(
        Claim(
            f"watching: {many['rows']:.0e} scores within 1 GB", f"{many['megabytes']:.0f} MB", many["megabytes"] <= 1024
        )
    )
    return found


def answer(figures: dict[str, Any]) -> str:
    """False alarms, the delay beside the rivals, and the price of the faster ones."""
    kept, broken = figures["kept"], figures["broken"]
    worst = max(kept, key=lambda row: row["alarms"])
    found, error = share_error(worst["alarms"], worst["streams"])
    few = "Few false alarms" if all(row["met"] for row in kept) else "Too many false alarms"
    return " ".join(
        [
            f"{few}: a kept promise is ever called broken in {found:.1f} ± {error:.1f} % of streams in the worst of "
            f"{len(kept)} cells, over {worst['looks']:,} looks, at a level of {100 * figures['level']:.0f} %.",
            f"A broken one is noticed after {ranged([_mean(row['watch']) for row in broken])} months, the means of "
            "the streams with an alarm.",
            *_beside_mapie([row for row in broken if "MAPIE" in row]),
            _beside_tests(figures),
            "Not shown: real streams.",
        ]
    )


def _beside_mapie(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    ours, theirs = (ranged([_mean(row[way]) for row in rows]) for way in ("watch on these", "MAPIE"))
    later = sum(_mean(row["watch on these"]) > _mean(row["MAPIE"]) for row in rows)
    return [
        f"MAPIE's monitor takes {theirs} months on {rows[0]['MAPIE']['streams']} streams of each cell, ours on the "
        f"same streams {ours}: later in {later} of {len(rows)} cells (means without errors)."
    ]


def _beside_tests(figures: dict[str, Any]) -> str:
    """Tests whose looks are fixed beforehand: sooner in some cells, at their price."""
    rows = figures["broken"]
    sooner, later = (
        sum(side * (_mean(row["Bonferroni"]) - _mean(row["watch"])) > 0 for row in rows) for side in (-1, 1)
    )
    return (
        f"Bonferroni over 24 looks that are fixed beforehand, the strongest rival, is sooner in {sooner} and later in "
        f"{later} of {len(rows)} cells; a monthly test takes {ranged([_mean(row['monthly test']) for row in rows])} "
        f"months, and calls {100 * figures['monthly_alarms']:.0f} % of streams at the bound broken."
    )


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line(row["cell"], *share_error(row["alarms"], row["streams"])) for row in figures["kept"]]
    return [Panel("Streams of kept promises that are ever called broken", "percent of streams", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    return (
        "Streams in which the promise is kept, at its bound: the share that is ever called broken, or drifting, over "
        "all looks. Streams in which the bound breaks in month 7: months until the alarm. The monthly test at 5 % is "
        f"no rival: it raises a false alarm in {100 * figures['monthly_alarms']:.0f} % of streams at the bound."
    )


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
            "Kept promises:",
            table(["cell", "streams", "looks", "alarms", "met"], kept),
            "Broken from month 7 on: the mean number of months until the alarm, and in brackets the streams with an "
            "alarm before month 7 and those without any in 24 months. *Watch on these* is ours on MAPIE's streams.",
            table(["cell", *columns], broken),
        ]
    )
