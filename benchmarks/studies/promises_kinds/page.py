"""The page on promises of bands, classes and worth."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import kept, ranged, without
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, table, verdict, wide

TITLE = "Promises of bands, classes and worth"

QUESTION = "Are promises kept for decisions with two cuts, for several classes, and for rates weighted by an amount?"
THREATS = (
    "MAPIE's setup was corrected in its favour after first figures had been seen; it has few repeats.",
    "One population per kind.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    worst = max(figures["cells"], key=lambda cell: cell["broken"])
    found = share_error(worst["broken"], worst["repeats"])
    return [
        Claim(
            "promises of bands, classes and worth are kept",
            f"{found[0]:.1f} ± {found[1]:.1f} % in the worst cell",
            all(cell["met"] for cell in figures["cells"]),
            "the promised 5 %",
            f"{len(figures['cells'])} cells, {worst['repeats']:,} repeats",
            True,
            None,
            found,
        )
    ]


def answer(figures: dict[str, Any]) -> str:
    """Whether the promises are kept, what happens without, and how MAPIE does."""
    cells = figures["cells"]
    told = [kept(cells), without([cell["bare broken"] for cell in cells]), *beside_mapie(cells)]
    return " ".join([*told, "Not shown: real data, and more than one population of each kind."])


def beside_mapie(cells: list[dict[str, Any]]) -> list[str]:
    """How the strongest rival does: its broken bounds, its objective, and how often it certifies."""
    found = [cell["mapie"] for cell in cells if "mapie" in cell]
    if len(found) < len(cells):
        return []
    both = [one for one in found if one["standard_error"] is not None]
    better, worse = (sum(side * one["gain"] > 2 * one["standard_error"] for one in both) for side in (1, -1))
    more, less = (sum(side * (cell["issued"] - cell["mapie"]["issued"]) > 0 for cell in cells) for side in (1, -1))
    return [
        f"MAPIE, the strongest rival, breaks its bound in {ranged([100 * one['broken'] for one in found])} % of "
        f"{found[0]['repeats']:,} repeats; where both certify, our objective is better beyond two standard errors in "
        f"{better} of {len(both)} cells and worse in {worse}.",
        f"Ours certifies more often in {more} of {len(cells)} cells and less often in {less} (shares without errors).",
    ]


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line(cell["cell"], *share_error(cell["broken"], cell["repeats"])) for cell in figures["cells"]]
    return [Panel("Certified bounds that the truth breaks", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    return (
        f"Certificates at {100 * figures['confidence']:.0f} % of decisions with two cuts, shifts of three classes, or "
        "rates weighted by an amount, judged by a population whose true rates are known exactly. *Broken* is the share "
        "of all repeats whose certified bounds do not all hold there. The objective is written so that lower is better "
        "(the share of positives, or of their worth, that is missed, where recall is asked for)."
    )


def section(figures: dict[str, Any]) -> str:
    cells = figures["cells"]
    rows = [
        [f"`{cell['ask']}`", f"{cell['rows']:,}", f"{cell['repeats']:,}",
         *(share(cell[name]) for name in ("issued", "broken", "limit", "bare broken")), verdict(cell["met"]),
         share(cell["objective"]), share(cell["bare objective"])]
        for cell in cells
    ]  # fmt: skip
    head = ["ask", "rows", "repeats", "certified", "broken", "limit", "broken without a certificate", "met",
            "true objective", "without a certificate"]  # fmt: skip
    brief = [[cell["cell"], *(share(cell[name]) for name in ("issued", "broken", "bare broken")),
              *(share(cell[name]) for name in ("objective", "bare objective"))] for cell in cells]  # fmt: skip
    names = ["cell", "certified", "broken", "broken without a certificate", "true objective", "without a certificate"]
    return f"{table(names, brief)}\n\n{wide('cells', table(head, rows))}{_beside(cells)}"


def _beside(cells: list[dict[str, Any]]) -> str:
    if not all("mapie" in cell for cell in cells):
        return ""
    rows = []
    for cell in cells:
        found = cell["mapie"]
        error = found["standard_error"]
        gain = "-" if error is None else f"{100 * found['gain']:+.2f} ± {100 * error:.2f}"
        rows.append(
            [cell["cell"], f"{found['repeats']:,}", share(cell["issued"]), share(found["issued"]),
             share(found["broken"]), str(found["both"]), share(found["ours"]), share(found["theirs"]), gain]
        )  # fmt: skip
    head = ["cell", "repeats", "certified, ours", "certified, MAPIE", "broken, MAPIE", "both certified",
            "objective, ours", "objective, MAPIE", "MAPIE minus ours, points"]  # fmt: skip
    note = (
        "MAPIE 1.6 on the same rows and at the same confidence: quantiles of the scores as its parameters, "
        "`split_fixed_sequence` with a quarter of the rows to learn the order, `fixed_sequence` for review and FPR. "
        "Its setup was corrected in its favour after first figures had been seen (see the study). Objectives are "
        "compared on the repeats for which both gave a promise; above 0 ours is better."
    )
    brief = table([head[0], *head[2:5], head[8]], [[row[0], *row[2:5], row[8]] for row in rows])
    return f"\n\n{note}\n\n{brief}\n\n{wide('beside-mapie', table(head, rows))}"
