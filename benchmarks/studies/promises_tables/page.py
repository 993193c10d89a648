"""The page on promises end to end."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import kept, without
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, table, verdict, wide

TITLE = "Promises, end to end: a table in, a certified decision out"

QUESTION = "A table in, a certified decision out: is the promise kept when everything runs as a user runs it?"
THREATS = ("One population, of 6,400 kinds of rows that are all equally likely; tables of one size.",)


def claims(figures: dict[str, Any]) -> list[Claim]:
    worst = max(figures["cells"], key=lambda cell: cell["broken"])
    found = share_error(worst["broken"], worst["repeats"])
    bare = max(cell["bare broken"] for cell in figures["cells"])
    effect = f"{found[0]:.1f} ± {found[1]:.1f} % at worst; without a certificate {share(bare)}"
    return [Claim("promises from table to decision are kept", effect, all(cell["met"] for cell in figures["cells"]),
                  "the promised 5 %", f"{len(figures['cells'])} models, {worst['repeats']:,} tables each", True, None,
                  found)]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """Whether the promise is kept, what happens without it, and its price."""
    cells = figures["cells"]
    price = ", ".join(
        f"{cell['model']} {share(cell['shipped, fnr'])} with it and {share(cell['bare, fnr'])} without"
        for cell in cells
    )
    return (
        f"{kept(cells).replace(' cells', ' models')} {without([cell['bare broken'] for cell in cells])} "
        f"The price is in the FNR: {price}. "
        "Not shown: a real population, and a rival; no other library is run here."
    )


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line(f"{cell['model']}, {words}", *share_error(cell[key], cell["repeats"])) for cell in figures["cells"]
             for key, words in (("broken", "certified"), ("bare broken", "without a certificate"))]  # fmt: skip
    return [Panel("Bounds that the population breaks", "percent of all tables", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    return (
        f"`{figures['ask']}` with a certificate at {100 * figures['confidence']:.0f} %, on tables of 1,200 rows (180 "
        "to set the threshold) drawn from a population whose true rates are known exactly. *Broken* is the share of "
        "all repeats whose certified bound does not hold in the population; *without a certificate* is how often the "
        "bound does not hold at the plain threshold of the same calibration rows. The last columns are means of true "
        "rates: what the certificate costs is the difference of the two FNR."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [cell["model"], f"{cell['repeats']:,}",
         *(share(cell[name]) for name in ("issued", "broken", "limit", "bare broken")), verdict(cell["met"]),
         *(share(cell[name]) for name in ("shipped, fpr", "shipped, fnr", "bare, fnr"))]
        for cell in figures["cells"]
    ]  # fmt: skip
    head = ["model", "repeats", "certified", "broken", "limit", "broken without a certificate", "met", "true FPR",
            "true FNR", "FNR without a certificate"]  # fmt: skip
    return f"{short_table(figures)}\n\n{wide('cells', table(head, rows))}"


def short_table(figures: dict[str, Any]) -> str:
    names = ("broken", "bare broken", "shipped, fnr", "bare, fnr")
    rows = [[cell["model"], *(share(cell[name]) for name in names)] for cell in figures["cells"]]
    head = ["model", "broken", "broken without a certificate", "true FNR", "true FNR without a certificate"]
    return table(head, rows)
