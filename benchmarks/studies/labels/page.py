"""The page on several labels."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import kept, ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, short, table, verdict, wide

TITLE = "Several labels: promises for all of them at once"

QUESTION = "Several labels per row: are the promises for all of them kept at once?"
THREATS = (
    "MAPIE runs on each label at the shared level, over 100 quantiles of the scores.",
    "The labels with known truth are of one world with five labels; the real tables are run without a certificate.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    worst = max(figures["cells"], key=lambda cell: cell["certified, broken"])
    found = share_error(worst["certified, broken"], worst["repeats"])
    alone = max(cell["each label by itself, broken"] for cell in figures["cells"])
    effect = f"{found[0]:.1f} ± {found[1]:.1f} % in the worst cell; each by itself {share(alone)}"
    return [Claim("promises for several labels at once are kept", effect, all(cell["met"] for cell in figures["cells"]),
                  "the promised 5 %", f"{len(figures['cells'])} cells, {worst['repeats']:,} repeats", True, None,
                  found)]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """Whether all promises are kept at once, what sharing the level is for, and how MAPIE and the solvers do."""
    cells = figures["cells"]
    alone = [100 * cell["each label by itself, broken"] for cell in cells]
    told = [
        kept(cells, "certified, broken", "the certified bound of any label"),
        f"With every label certified by itself at the whole level, some bound is broken in {ranged(alone)} % of "
        "repeats.",
        *beside_mapie(figures["mapie"] or []),
    ]
    solvers = [row for row in figures["tables"] if row["difference"] is not None]
    better = sum(row["clear"] and row["difference"] < 0 for row in solvers)
    worse = sum(row["clear"] and row["difference"] > 0 for row in solvers)
    tables = len({row["table"] for row in figures["tables"]})
    unseen = "promises on real labels are" if better else "promises on real labels, and a gain by training, are"
    told.append(
        f"On {tables} real tables, where no promise is made, the solvers tried are better than plain cross-entropy "
        f"beyond noise in {better} of {len(solvers)} cells and worse in {worse}; {unseen} not shown."
    )
    return " ".join(told)


def beside_mapie(rows: list[dict[str, Any]]) -> list[str]:
    """How the strongest rival does for the same promise."""
    if not rows:
        return []
    better, worse = (sum(side * row["gain"] > 2 * row["error"] for row in rows) for side in (1, -1))
    return [
        f"MAPIE at the shared level, the strongest rival, breaks some bound in "
        f"{ranged([100 * row['MAPIE, broken'] for row in rows])} % of repeats; our objective is better beyond two "
        f"standard errors in {better} of {len(rows)} cells and worse in {worse} (differences of "
        f"{ranged([100 * row['gain'] for row in rows], '+.1f')} points)."
    ]


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [
        Line(f"{short(cell['ask'])}, correlation {cell['correlation']:g}, {way}",
             *share_error(cell[f"{way}, broken"], cell["repeats"]))
        for cell in figures["cells"] for way in ("certified", "each label by itself")
    ]  # fmt: skip
    return [Panel("The bound of any label is broken", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    return (
        f"{figures['labels']} labels, {figures['rows']:,} rows, {100 * figures['missing']:.0f} % of the labels not "
        f"known; a certificate at {100 * figures['confidence']:.0f} % for the bounds of all labels together. "
        "*Broken* is the share of repeats in which the bound of any label does not hold in truth: with the level "
        "shared among the labels, with each label certified at the whole level by itself, and without a certificate."
    )


def section(figures: dict[str, Any]) -> str:
    return "\n\n".join([_promises(figures), _mapie(figures), _tables(figures)])


def _promises(figures: dict[str, Any]) -> str:
    ways = ("certified", "each label by itself", "plug-in")
    rows = [
        [f"`{cell['ask']}`", f"{cell['correlation']:g}", f"{cell['repeats']:,}", share(cell["issued"]),
         *(share(cell[f"{way}, broken"]) for way in ways), share(cell["limit"]), verdict(cell["met"]),
         *(share(cell[f"{way}, objective"]) for way in ("certified", "plug-in"))]
        for cell in figures["cells"]
    ]  # fmt: skip
    head = ["ask for each label", "correlation", "repeats", "certified", "broken", "by itself", "plug-in", "limit",
            "met", "true objective", "plug-in"]  # fmt: skip
    shown = ("certified, broken", "each label by itself, broken", "plug-in, broken", "issued")
    brief = [
        [f"`{short(cell['ask'])}`", f"{cell['correlation']:g}", *(share(cell[name]) for name in shown)]
        for cell in figures["cells"]
    ]
    names = ["ask for each label", "correlation", "broken", "each by itself", "no certificate", "certified"]
    return f"{table(names, brief)}\n\n{wide('cells', table(head, rows))}"


def _mapie(figures: dict[str, Any]) -> str:
    if not figures["mapie"]:
        return "MAPIE was not installed."
    rows = [
        [f"`{row['ask']}`", f"{row['repeats']:,}", share(row["ours, objective"]), share(row["MAPIE, objective"]),
         f"{100 * row['gain']:+.2f} ± {100 * row['error']:.2f}", share(row["MAPIE, refused"]),
         share(row["ours, broken"]), share(row["MAPIE, broken"]),
         share(row["one threshold, objective"]) if "one threshold, objective" in row else "-",
         share(row["one threshold, broken"]) if "one threshold, broken" in row else "-"]
        for row in figures["mapie"]
    ]  # fmt: skip
    note = (
        "MAPIE 1.6 on the same rows, correlation 0.9. For the same promise its binary controller runs on each label at "
        "the shared level, over 100 quantiles of the scores (fixed sequence; for precision its default, Bonferroni and "
        "Holm). *Gain* is our true objective less theirs in points, in the direction that is better, ± one standard "
        "error, paired. The last columns are its multi-label controller, which sets one threshold and promises the "
        "recall averaged over rows: how often some label's own bound is then broken."
    )
    head = ["ask for each label", "repeats", "ours", "MAPIE", "gain", "MAPIE refused", "ours broken", "MAPIE broken",
            "one threshold", "one threshold broken"]  # fmt: skip
    brief = table(
        ["ask for each label", "ours", "MAPIE", "gain", "ours broken", "MAPIE broken"],
        [[row[0], *row[2:5], *row[6:8]] for row in rows],
    )
    return f"{note}\n\n{brief}\n\n{wide('beside-mapie', table(head, rows))}"


def _tables(figures: dict[str, Any]) -> str:
    rows = [
        [row["table"], f"{row['rows']:,}", str(row["labels"]), share(row["known"]), row["solver"],
         share(row["objective"]), _difference(row), "-" if row["best cut"] is None else share(row["best cut"])]
        for row in figures["tables"]
    ]  # fmt: skip
    note = (
        f"`{figures['table ask']}` for each label of three real tables, a threshold per label without a certificate, "
        f"means over {figures['trials']} random splits. The difference is in points from plain cross-entropy on the "
        "same split, ± one standard error, corrected for rows that splits share; * is beyond noise."
    )
    head = ["table", "rows", "labels", "known", "solver", "mean fnr", "difference", "best cut"]
    return f"{note}\n\n{table(head, rows)}"


def _difference(row: dict[str, Any]) -> str:
    if row["difference"] is None or row["error"] is None:
        return "-"
    return f"{100 * row['difference']:+.2f} ± {100 * row['error']:.2f}{'*' if row['clear'] else ''}"
