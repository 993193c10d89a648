"""The page on how often certified bounds are broken."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import kept, ranged, without
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, short, table, verdict, wide

TITLE = "How often promises are broken"

WAYS = ("certified", "plug-in", "MAPIE")
QUESTION = "Is a bound that is certified with a confidence of 95 % broken in at most 5 % of cases?"
THREATS = (
    "Worlds of three kinds of scores with known truth; real data may differ in more ways than these.",
    "Rows are independent here; [clusters and weights](dependence.md) are a study of their own.",
    "MAPIE has a grid of quantiles as its parameters. Its refusals with gaps are not compared: it has no such control.",
    "The gap and precision cells were computed anew after the certificates became sharper; the figures of MAPIE and of "
    "the plain threshold in those cells are older, on the same worlds.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    cells, confidence = figures["cells"], figures["confidence"]
    worst = max(cells, key=lambda cell: cell["certified"]["broken"])
    found = share_error(worst["certified"]["broken"], worst["repeats"])
    plain = 100 * max(cell["plug-in"]["broken"] for cell in cells)
    effect = f"{found[0]:.1f} ± {found[1]:.1f} % in the worst cell; without a certificate {plain:.0f} %"
    on = f"{len(cells)} cells, {worst['repeats']:,} repeats"
    limit = f"the promised {100 * (1 - confidence):.0f} %"
    return [
        Claim("promises of rates are kept", effect, all(cell["met"] for cell in cells), limit, on, True, None, found)
    ]


def answer(figures: dict[str, Any]) -> str:
    """Whether the bound is kept, how often it is broken without a certificate, and how MAPIE does."""
    cells = figures["cells"]
    told = [
        kept([{**cell, "broken": cell["certified"]["broken"]} for cell in cells]),
        without([cell["plug-in"]["broken"] for cell in cells],
                "Under the threshold that is best on the same rows without a certificate, the bound"),
        f"The price is a worse objective than that threshold has, in {costs(cells)} of {len(cells)} cells.",
        *beside_mapie(cells),
    ]  # fmt: skip
    return " ".join(told)


def better_by(cell: dict[str, Any], ours: str, rival: str) -> float | None:
    """By how much one way has the better mean objective; None if one of them has none."""
    pair = [cell[way]["objective"] for way in (ours, rival) if way in cell and cell[way]["objective"] is not None]
    sign = 1 if cell["ask"].startswith("maximize") else -1
    return sign * (pair[0] - pair[1]) if len(pair) == 2 else None


def costs(cells: list[dict[str, Any]]) -> int:
    """In how many cells the certificate has a worse mean objective than no certificate."""
    return sum((better_by(cell, "certified", "plug-in") or 0) < 0 for cell in cells)


def beside_mapie(cells: list[dict[str, Any]]) -> list[str]:
    """MAPIE's share of broken bounds, and in how many cells each has the better objective."""
    gains = [gain for cell in cells if (gain := better_by(cell, "certified", "MAPIE")) is not None]
    if not gains:
        return []
    broken = [100 * cell["MAPIE"]["broken"] for cell in cells if "MAPIE" in cell]
    ours, theirs = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    return [
        f"MAPIE, the strongest rival, breaks its bound in {ranged(broken)} % of repeats; our mean objective is better "
        f"in {ours} and worse in {theirs} of the {len(gains)} cells that it can do (means without errors, over the "
        "repeats that each certifies; [another study](beside_mapie.md) has paired errors).",
        "Not shown: real data, and rows that depend on each other.",
    ]


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [
        Line(f"{short(cell['ask'])}, {cell['scores']}, n = {cell['n']:,}",
             *share_error(cell["certified"]["broken"], cell["repeats"]))
        for cell in figures["cells"]
    ]  # fmt: skip
    return [Panel("Certified bounds that the truth breaks", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    first = figures["cells"][0]
    return (
        f"{first['repeats']:,} repeats per cell, confidence {100 * figures['confidence']:.0f} %; at most "
        f"{100 * first['limit']:.1f} % may be broken, noise included. The truth is known exactly. *Plug-in* is the "
        "threshold that is best on the same rows without a certificate. A refusal, where these samples certify "
        "nothing, breaks no promise; *among those issued* divides by the certificates that were issued, which no "
        "confidence limits. Objectives are true ones at the thresholds that were set."
    )


def among_issued(found: dict[str, float]) -> float | None:
    """The share of the promises made that are wrong; `broken` is that of all repeats, refusals among them."""
    return found["broken"] / (1 - found["refused"]) if found["refused"] < 1 else None


def section(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        found = [cell.get(method) for method in ("certified", "plug-in", "MAPIE")]
        shown = [("" if f is None else f"{100 * f['broken']:.1f} %") for f in found]
        given = ["" if f is None or f["objective"] is None else f"{100 * f['objective']:.1f} %" for f in found]
        refused, among = f"{100 * cell['certified']['refused']:.0f} %", share(among_issued(cell["certified"]))
        shown.insert(1, among)
        rows.append([cell["ask"], cell["scores"], f"{cell['n']:,}", *shown, *given, refused, verdict(cell["met"])])
    header = ["ask", "scores", "n", "broken: certified", "among those issued", "plug-in", "MAPIE"]
    header += ["objective: certified", "plug-in", "MAPIE"]
    return f"{by_ask(figures['cells'])}\n\n{wide('cells', table([*header, 'refused', 'met'], rows))}"


def by_ask(cells: list[dict[str, Any]]) -> str:
    """A row per ask, over its kinds of scores and numbers of rows, from the least to the most."""
    rows = []
    for ask in dict.fromkeys(cell["ask"] for cell in cells):
        own = [cell for cell in cells if cell["ask"] == ask]
        shown = [[100 * cell[way][what] for cell in own if way in cell]
                 for what, ways in (("broken", WAYS), ("refused", (WAYS[0], WAYS[2]))) for way in ways]  # fmt: skip
        gains = [gain for cell in own if (gain := better_by(cell, "certified", "MAPIE")) is not None]
        beside = f"{sum(gain > 0 for gain in gains)}, {sum(gain < 0 for gain in gains)}" if gains else ""
        rows.append([short(ask), str(len(own)), *(f"{ranged(values)} %" if values else "" for values in shown), beside])
    head = ["ask", "cells", "broken: certified", "no certificate", "MAPIE", "refused: certified", "MAPIE",
            "objective better, worse than MAPIE's"]  # fmt: skip
    return table(head, rows)
