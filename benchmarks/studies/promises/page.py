"""The section of docs/measured.md on promises that look safe."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import share, table, verdict

TITLE = "Rare groups, useless scores, many tries and many looks"


def section(figures: dict[str, Any]) -> str:
    """Gap certificates where one group is rare, and certificates of useless scores."""
    head = ["repeats", "issued", "wrong", "wrong among those issued", "limit of wrong", "met"]
    rows = []
    for cell in (*figures["gaps"], figures["useless"]):
        what = cell.get("ask") or f"{cell['positives']} positives in the rarest group"
        shown = [share(cell[name]) for name in ("issued", "wrong", "wrong among those issued", "limit")]
        rows.append([what, f"{cell['repeats']:,}", *shown, verdict(cell["met"])])
    note = (
        f"Certificates at {100 * figures['confidence']:.0f} %: of "
        "`recall.gap(g) <= 10%` over three groups, and of an accuracy that useless scores do not have."
    )
    return f"{note}\n\n{table(['certificate', *head], rows)}\n\n{tries_and_looks(figures)}"


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
