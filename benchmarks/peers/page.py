"""The page on the peers, run in their own environments: a part for each contest."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import wide
from benchmarks.peers.page_f_score import f_notes, f_section
from benchmarks.peers.page_gap import gap_notes, gap_section
from benchmarks.peers.page_rows import COST, better_by, clearly, percent, pivoted, rows_table, scope

TITLE = "Peers, run"

QUESTION = "Is another library better at the same ask, each in its own environment, on the same rows?"
THREATS = (
    "Settings of ours were changed after looks at 18 other splits; those of the peers were taken from their docs.",
    "LightGBM is not linear and wins where linear models cannot; `setpoint fit` tries trees as well.",
    "Seconds are by the wall, on a machine that was busy with other work.",
    "AutoGluon takes no part in these contests; what its threshold does is among the [states of peers](../peers.md).",
)


def section(figures: dict[str, Any]) -> str:
    contests = figures["contests"]
    told = [
        f"## {title}\n\n{write(contests[name]) if contests[name]['rows'] else 'Not run yet.'}"
        for title, (name, write) in PARTS.items()
    ]
    return "\n\n".join(told)


def claims(figures: dict[str, Any]) -> list[Claim]:
    """Ours against every peer that ran, by two corrected standard errors."""
    told: list[Claim] = []
    for name, what in (
        ("fnr at fpr", "peers: none misses fewer than our Lagrangian, FPR 1 %"),
        ("error at gap", "peers: none errs less than our default, gap 2 %"),
        ("best f score", "peers: none has a higher F-score than our closed form"),
    ):
        rows = rivals(figures, name)
        if rows:
            better, worse = (clearly(rows, "test", side) for side in (1, -1))
            # No mean: its cells are different libraries on two sets.
            effect = f"{len(better)} better, {len(worse)} worse of {len(rows)} (corrected)"
            sets = len({row["set"] for row in rows})
            lost = dict.fromkeys(name.split(" (")[0] for name in worse)
            peers = f"{len({row['peer'] for row in rows})} peers" + (f"; lost to {', '.join(lost)}" if worse else "")
            on = f"{sets} sets, {len(figures['contests'][name]['seeds'])} splits"
            told.append(Claim(what, effect, not worse, peers, on, name == "fnr at fpr"))
    return told


#: A contest, ours in it, and what is asked for.
CONTESTS = {
    "fnr at fpr": ("our Lagrangian", "FNR at an FPR of 1 %"),
    "error at gap": ("Our default", "the error at a gap of 2 % (gaps on test rows differ)"),
    "best f score": ("Our closed form", "the F-score"),
}


def rivals(figures: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The rows of other libraries that ran, without other methods of ours and without plain cross-entropy."""
    rows = [row for row in figures["contests"][name]["rows"] if "better by" in row]
    return [row for row in rows if not row["peer"].startswith(("setpoint", "cross-entropy"))]


def answer(figures: dict[str, Any]) -> str:
    """Contest by contest: how often a peer is better, and which."""
    told = []
    for name, (ours, what) in CONTESTS.items():
        rows = rivals(figures, name)
        if rows:
            ahead, behind = (clearly(rows, "test", side) for side in (1, -1))
            told.append(
                f"{ours}, for {what}, is better than {len({row['peer'] for row in rows})} libraries in {len(ahead)} of "
                f"{len(rows)} cells and worse in {len(behind)}{lost_to(rows)}{same_as(figures, name)}."
            )
    if not told:
        return ""
    lost = sum(bool(clearly(rivals(figures, name), "test", -1)) for name in CONTESTS)
    word = f"Yes, in {lost} of {len(told)} contests" if lost else "Not here"
    told[0] = f"{word}, counted beyond two corrected standard errors: {told[0]}"
    return " ".join([*told, "Not shown: differences within the noise of few splits, and peers tuned by their authors."])


GROUPED = "cross-entropy, group thresholds"


def same_as(figures: dict[str, Any], name: str) -> str:
    """Whether ours has exactly the error of cross-entropy with a threshold for each group."""
    rows = [row for row in figures["contests"][name]["rows"] if row["peer"] == GROUPED and "better by" in row]
    gains = [row["better by"]["test"] for row in rows]
    if not gains or any(one["mean"] or one["standard_error"] for one in gains):
        return ""
    return f"; its error is exactly that of *{GROUPED}*, on {len(gains)} sets (0.00 ± 0.00)"


def lost_to(rows: list[dict[str, Any]]) -> str:
    """The strongest rivals, and by how much ours is behind them; empty without one."""
    behind = [row for row in rows if f"{row['peer']} ({row['set']})" in clearly(rows, "test", -1)]
    names = " and ".join(dict.fromkeys(row["peer"] for row in behind))
    points = ranged([-100 * row["better by"]["test"]["mean"] for row in behind]) if behind else ""
    return f", against {names}, by {points} points" * bool(behind)


def forest(figures: dict[str, Any]) -> list[Panel]:
    names = {
        "fnr at fpr": "FNR at FPR 1 %: our Lagrangian against",
        "error at gap": "Error, gap 2 %: our default against",
        "best f score": "F-score: our closed form against",
    }
    return [
        Panel(title, "points", [Line.of(f"{row['peer']} ({row['set']})", row["better by"]["test"])
                                for row in figures["contests"][name]["rows"] if "better by" in row])
        for name, title in names.items()
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    contests = figures["contests"]
    notes = {"fnr at fpr": fpr_notes, "error at gap": gap_notes, "best f score": f_notes}
    parts = [
        "Each peer in an environment of its own, made by `python -m benchmarks.peers.environments`, with pinned "
        "versions; the same rows, the same number of full-batch steps where it takes steps, and of several settings "
        "the best on validation rows. In short: [peers](../peers.md)."
    ]
    for title, (name, _) in PARTS.items():
        if contests[name]["rows"]:
            parts += [f"### {title}", "\n".join(f"- {note}" for note in notes[name](contests[name]))]
    return "\n\n".join(parts)


def fpr_section(figures: dict[str, Any]) -> str:
    columns = {
        "FNR, best cut": percent("test"), "better than it by our Lagrangian": better_by("test"),
        "FNR at threshold": percent("at threshold"), "FPR there": percent("fpr"), **COST,
    }  # fmt: skip
    brief = {"FNR": percent("test"), "our Lagrangian better by": better_by("test")}
    return "\n\n".join(
        [
            "FNR in percent at the best cut of the test curve; gains in points, in brackets the corrected error. All "
            "models are linear, but for LightGBM.",
            pivoted(figures["rows"], brief),
            wide("fnr-at-fpr", rows_table(figures["rows"], columns)),
        ]
    )


def fpr_notes(figures: dict[str, Any]) -> list[str]:
    """What was fixed, and what was changed after a look."""
    return [
        f"{scope(figures)} FNR in percent: at the best cut of the test curve, and at the threshold set on validation "
        "rows, with the FPR there. A linear model each, but for LightGBM.",
        "Every method with prices chooses among TFCO's three losses; Cooper and humancompatible-train had the sigmoid "
        "alone at first, and were run again.",
        "TFCO's optimizer for graphs never advances the correction of Adam for its first steps, so that its rate "
        "doubles and then falls; ours, Cooper and humancompatible-train take steps at that pace, by which ours and "
        "TFCO learn the same weights up to rounding. With plain Adam ours had been behind TFCO on five other splits.",
        "Our candidates, start and pace were changed after looks at 18 other splits.",
        "Seconds are by the wall, of all settings tried; memory, where it was measured, is the peak of the process.",
    ]


PARTS = {
    "FNR at an FPR": ("fnr at fpr", fpr_section),
    "Error at a gap between groups": ("error at gap", gap_section),
    "F-score": ("best f score", f_section),
}
