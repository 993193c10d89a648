"""The page on promises that look safe."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, table, verdict

TITLE = "Rare groups, useless scores, many tries and many looks"

QUESTION = "Are promises kept where a group is rare or scores are useless, and what do many tries and many looks cost?"
THREATS = (
    "Whoever tries many times on the same rows, or looks many times, is not covered by one certificate; the last "
    "sentences say how much that costs.",
)


def cells(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(cell.get("ask") or f"gap, {cell['positives']} positives in the rarest group", cell)
            for cell in (*figures["gaps"], figures["useless"])]  # fmt: skip


def claims(figures: dict[str, Any]) -> list[Claim]:
    found = [cell for _, cell in cells(figures)]
    worst = max(found, key=lambda cell: cell["wrong"])
    share, error = share_error(worst["wrong"], worst["repeats"])
    return [Claim("promises with a rare group or useless scores are kept", f"{share:.1f} ± {error:.1f} % at worst",
                  all(cell["met"] for cell in found), "the promised 5 %",
                  f"{len(found)} cells, {worst['repeats']:,} repeats", False, None, (share, error))]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line(name, *share_error(cell["wrong"], cell["repeats"])) for name, cell in cells(figures)]
    return [Panel("Certificates that are wrong", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    return (
        f"Certificates at {100 * figures['confidence']:.0f} %: of `recall.gap(g) <= 10%` over three groups, and of an "
        "accuracy that useless scores do not have."
    )


def section(figures: dict[str, Any]) -> str:
    """Gap certificates where one group is rare, and certificates of useless scores."""
    head = ["repeats", "issued", "wrong", "wrong among those issued", "limit of wrong", "met"]
    rows = []
    for what, cell in cells(figures):
        shown = [share(cell[name]) for name in ("issued", "wrong", "wrong among those issued", "limit")]
        rows.append([what, f"{cell['repeats']:,}", *shown, verdict(cell["met"])])
    return f"{table(['certificate', *head], rows)}\n\n{tries_and_looks(figures)}"


def tries_and_looks(figures: dict[str, Any]) -> str:
    """Sentences on what happens to those who try again, and to those who look again."""
    tried, looked = figures["tries"], figures["looks"]
    return (
        f"Scores that know nothing of the labels: {share(figures['useless']['issued'])} of all runs issue a "
        f"certificate, and all of these are wrong; with {tried['tries']} tries on random halves of the same rows, "
        f"{share(tried['wrong'])} do.\n\n"
        f"A rate exactly at its bound: each look calls it broken in {share(looked['called broken per look'])} of "
        f"cases, and {looked['looks']} looks call it broken at least once in "
        f"{share(looked['called broken at least once'])} of {looked['runs']:,} runs."
    )
