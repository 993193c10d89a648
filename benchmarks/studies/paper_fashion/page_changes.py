"""Why the published form is behind: more time, and one change at a time towards the anchored form."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import gain as written
from benchmarks.common.words import table
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.paper_fashion.study import (
    ANCHORED,
    AREAS,
    FNR_ASKS,
    LONG,
    LONGEST,
    OURS_WARM,
    PLAIN,
    PUBLISHED,
    STEPWISE,
    TENTH,
    TIMED,
    WARM_TENTH,
)

Row = dict[str, Any]


def rows_of(figures: dict[str, Any], method: str, area: bool = False) -> list[Row]:
    return [row for row in figures["rows"] if row["method"] == method and (row["ask"] in AREAS) == area]


def gains(figures: dict[str, Any], method: str, area: bool) -> list[dict[str, float]]:
    """Over cross-entropy of the same steps."""
    return [row["gain"][PLAIN] for row in rows_of(figures, method, area)]


def sides_of(gains: list[dict[str, float]]) -> tuple[int, int]:
    """In how many cells there is a gain and in how many a loss, beyond two corrected errors."""
    found = [sides(one, "corrected_standard_error") for one in gains]
    return found.count(1), found.count(-1)


def worth_most(rows: list[Row]) -> tuple[str, float, float]:
    """The change from the published form to the anchored one that is worth most, its points, and those of all."""
    means = [100 * row["gain"][PLAIN]["mean"] for row in rows]
    worth = {change: after - before for change, before, after in zip(CHANGES.values(), means, means[1:])}
    most = max(worth, key=lambda change: worth[change])
    return most, worth[most], means[-1] - means[0]


def worth_of(rows: list[Row]) -> str:
    change, points, whole = worth_most(rows)
    return f"{change}, {points:+.1f} of {whole:+.1f} points"


def asked(ask: str) -> str:
    """A bound or a range in words."""
    return f"area, FPR up to {AREAS[ask]} %" if ask in AREAS else f"FNR at an FPR of {FNR_ASKS[ask]} %"


def more_time(figures: dict[str, Any], area: bool) -> list[str]:
    """Does the published form only need more steps? Both with nine times as many."""
    return [
        f"*More time* ({asked(row['ask'])}): as published {written(before)} points over cross-entropy of the same "
        f"steps; with nine times the steps for both, {row['seeds']} seeds, {written(after)}. "
        f"{closed(before['mean'], after['mean'])}"
        for row, before, after in timed(figures, area)
    ]


def timed(figures: dict[str, Any], area: bool) -> list[tuple[Row, dict[str, float], dict[str, float]]]:
    """The runs with nine times the steps, with the gain before and after."""
    first = {row["ask"]: row["gain"][PLAIN] for row in rows_of(figures, PUBLISHED, area)}
    return [
        (row, first[row["ask"]], row["gain"][LONGEST])
        for row in rows_of(figures, LONG, area) if LONGEST in row["gain"]
    ]  # fmt: skip


def closed(before: float, after: float) -> str:
    """The rest of a gap, in words."""
    left = after / before
    if left <= 0:
        return "With time it catches up: the gap was one of training time."
    return f"So time closes {100 * (1 - left):.0f} % of the gap."


def time_closes(figures: dict[str, Any]) -> str:
    """How much of the gap nine times the steps close, in one sentence with a space after it."""
    left = [100 * (1 - after["mean"] / before["mean"]) for area in (False, True)
            for _, before, after in timed(figures, area)]  # fmt: skip
    told = " and ".join(f"{one:.0f} %" for one in left)
    return f"Nine times the steps for both close {told} of these gaps. " if left else ""


#: What each row of `STEPWISE` changes in the row before it.
CHANGES = {
    TENTH: "thresholds corrected every 10 steps",
    WARM_TENTH: "cross-entropy for the first quarter of the steps",
    OURS_WARM: "our form, thresholds found in every step on remembered scores, one temperature",
    ANCHORED: "cross-entropy kept beside it",
}


def stepwise(figures: dict[str, Any], area: bool) -> list[Row]:
    """The rows from the published form to the anchored one; none unless all have been run."""
    for ask in TIMED:
        rows = {row["method"]: row for row in figures["rows"] if row["ask"] == ask}
        if (ask in AREAS) == area and rows.keys() >= set(STEPWISE):
            return [rows[method] for method in STEPWISE]
    return []


def one_change_at_a_time(figures: dict[str, Any], area: bool) -> list[str]:
    """From the published form to the anchored one: the gain over cross-entropy after each change."""
    rows = stepwise(figures, area)
    if not rows:
        return []
    first, *rest = rows
    changes = "; ".join(f"{CHANGES[row['method']]} {written(row['gain'][PLAIN])}" for row in rest)
    return [
        f"*One change at a time* ({asked(first['ask'])}, {min(row['seeds'] for row in rows)} seeds), over "
        f"cross-entropy of the same steps: as published {written(first['gain'][PLAIN])}; then, each on top of the "
        f"last, {changes}. Worth most: {worth_of(rows)}."
    ]


def changes_table(figures: dict[str, Any]) -> list[str]:
    """One change at a time as a table: the gain after each change, and what the change is worth."""
    both = [rows for area in (False, True) if (rows := stepwise(figures, area))]
    if not both:
        return []
    lines = []
    for at, method in enumerate(STEPWISE):
        cells = [f"and {CHANGES[method]}" if at else "as published"]
        for rows in both:
            gains = [100 * row["gain"][PLAIN]["mean"] for row in rows]
            cells += [written(rows[at]["gain"][PLAIN]), f"{gains[at] - gains[at - 1]:+.1f}" if at else ""]
        lines.append(cells)
    head = ["form", *(cell for rows in both for cell in (asked(rows[0]["ask"]), "worth"))]
    return [
        "**One change at a time**, from the published form to the anchored one, "
        f"{min(row['seeds'] for row in both[0])} seeds: the gain in points over cross-entropy of the same steps, in "
        "brackets the corrected error, and what the change is worth:",
        table(head, lines),
    ]


def reasons(figures: dict[str, Any], area: bool) -> list[str]:
    """Why the published form is behind cross-entropy: one change at a time, and more time."""
    return [*one_change_at_a_time(figures, area), *more_time(figures, area)]
