"""The part of the page on tables that tells of the fresh splits."""

from __future__ import annotations

from typing import Any

from scipy.stats import norm

from benchmarks.common.forest import Line, Panel
from benchmarks.common.harness import load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import ERRORS, counted, gain, mean_and_error, table, wide
from benchmarks.studies.tables.fresh import ALONE, CERTIFIED, HELD, JUDGED, NAME, SEEDS, STRONGEST
from benchmarks.studies.tables.tables import MADE
from benchmarks.studies.tables.verdict import AUTO, LEAST_SPLITS, PLAIN, TUNED, counted_gains
from setpoint.run.settings import Settings

AGAIN, OWN = STRONGEST
ERROR = "corrected_standard_error"
COMMAND = "studies.tables.fresh"
WORDS = {"test": "best cut", "at threshold": "bare threshold", CERTIFIED: "as shipped", ALONE: "certified runs alone"}
#: The claims: where they are judged, against whom, in how many of the cells ours must be better, and whether the index
#: has them.
ASKED = (
    ("test", TUNED, 0.5, True),
    (CERTIFIED, TUNED, 0.5, False),
    ("test", AGAIN, 0.0, False),
    (CERTIFIED, AGAIN, 0.0, True),
    (ALONE, OWN, 0.0, True),
    (CERTIFIED, OWN, 0.0, False),
    (CERTIFIED, PLAIN, 0.0, False),
)
PLAINLY = {TUNED: "tuned LightGBM", AGAIN: "tuned LightGBM, trained again", OWN: OWN, PLAIN: "cross-entropy"}


def figures_of() -> dict[str, Any]:
    """What the fresh splits have found; empty until enough of them have run to count a cell."""
    found = load_figures(NAME)
    return found if len(found.get("seeds", ())) >= LEAST_SPLITS else {}


def sides(figures: dict[str, Any], rival: str, judged: str, error: str = "standard_error") -> dict[str, Any]:
    counts: dict[str, Any] = figures["counts"][f"{rival} | {judged} | {error}"]
    return counts


def effect(figures: dict[str, Any], rival: str, judged: str) -> str:
    plain, corrected = (sides(figures, rival, judged, error) for error in ERRORS)
    told = counted(counted_gains(figures["cells"], rival, judged), plain["better"], plain["worse"])
    return f"{told} (corrected {corrected['better']}, {corrected['worse']})"


def claims() -> list[Claim]:
    """What is claimed of the default on splits that were looked at once."""
    figures, told = figures_of(), []
    for judged, rival, share, index in ASKED if figures else ():
        found = sides(figures, rival, judged)
        half = "better in half of the cells, " if share else ""
        met = found["better"] >= share * found["cells"] and found["worse"] == 0
        told.append(Claim(f"tables, {WORDS[judged]}: {half}worse in none", effect(figures, rival, judged), met,
                          PLAINLY[rival], f"{figures['tables']} tables, {len(figures['seeds'])} fresh splits", index,
                          mean_and_error(counted_gains(figures["cells"], rival, judged)), command=COMMAND))  # fmt: skip
    return told


def gains_of(
    figures: dict[str, Any], rival: str, judged: str = CERTIFIED, *, made: bool = True
) -> list[dict[str, Any]]:
    """The gains of all counted cells; without those of tables that were made here if `made` is false."""
    return counted_gains([cell for cell in figures["cells"] if made or cell["table"] not in MADE], rival, judged)


def pm(gains: list[dict[str, Any]]) -> str:
    mean, error = mean_and_error(gains)
    return f"{mean:+.1f} ± {error:.1f}"


def without_made(figures: dict[str, Any]) -> str:
    """The gain over tuned LightGBM that is trained again, where only real tables count."""
    return pm(gains_of(figures, AGAIN, made=False))


def price(figures: dict[str, Any]) -> str:
    """What a certificate costs, in a sentence."""
    mean, median = (100 * figures["cost"][what] for what in ("mean", "median"))
    most = max(figures["cost"]["by table"].items(), key=lambda one: float(one[1]))
    return (
        f"A certificate costs {mean:.1f} points in the mean (median {median:.1f}; {100 * most[1]:.0f} on {most[0]}) "
        "against the bare threshold of the same model"
    )


def gaining(figures: dict[str, Any]) -> list[str]:
    """The tables that gain by themselves over tuned LightGBM that is trained again, beyond two corrected errors."""
    return [name for name, own in figures["by table"][AGAIN].items() if own["mean"] > 2 * own[ERROR]]


def where_certified(figures: dict[str, Any]) -> str:
    """What holds in the runs in which ours has a certificate, and what is left of the gain over the second rival."""
    alone, own = (pm(gains_of(figures, rival, ALONE)) for rival in STRONGEST)
    kept = {name: [f"{100 * figures['held where'][name][where]:.0f} %" for where in ("with a certificate", "without")]
            for name in (AUTO, OWN)}  # fmt: skip
    every, _ = mean_and_error(gains_of(figures, OWN))
    certified, _ = mean_and_error(gains_of(figures, OWN, ALONE))
    bought = figures["held where"][AUTO]["without"] < figures["held where"][OWN]["without"] and certified < every / 2
    return (
        f"Where it has a certificate ({100 * figures['certificates']['of thresholds']:.0f} % of the runs with a "
        f"threshold) it has {alone} over that rival and {own} over `{OWN}`, and keeps its bounds in {kept[AUTO][0]} of "
        f"these runs, `{OWN}` in {kept[OWN][0]}. In the others our bare threshold kept its bound in "
        f"{kept[AUTO][1]} and theirs in {kept[OWN][1]}"
        + (f", so that the gain over all runs, {pm(gains_of(figures, OWN))}, is bought by broken bounds." if bought
           else f"; over all runs the gain is {pm(gains_of(figures, OWN))}.")
    )  # fmt: skip


def answer() -> str:
    """The gain over the strongest rivals, where there is a certificate and over all, what it costs, and chance."""
    figures = figures_of()
    if not figures:
        return ""
    again = gains_of(figures, AGAIN)
    found, strict = (sides(figures, AGAIN, CERTIFIED, error) for error in ERRORS)
    mean, error = mean_and_error(again)
    splits, alone = len(figures["seeds"]), gaining(figures)
    names = f" ({', '.join(alone)})" if alone else ""
    return " ".join(
        [
            f"Over {figures['tables']} tables and {splits} fresh splits the default, as shipped, has {pm(again)} "
            "points over tuned LightGBM that is trained again on held-out rows "
            f"({without_made(figures)} without the one table made here); it is better in {found['better']} and worse "
            f"in {found['worse']} of {found['cells']} cells, by corrected errors in {strict['better']} and "
            f"{strict['worse']}.",
            where_certified(figures),
            f"{price(figures)}.",
            f"So the mean gain over LightGBM is {'' if mean > 2 * error else 'not '}shown; beyond two corrected errors "
            f"{len(alone)} of the tables gain by themselves{names}.",
        ]
    )


def seen_to_hold() -> float:
    """How often test rows show a bound kept whose certificate of 95 % is exact, to first order.

    The certified threshold lies 1.64 standard deviations of calibration rows inside the bound; what the test rows show
    varies by the noise of both.
    """
    _, _, calibration, test = Settings().shares
    return float(norm.cdf(norm.ppf(0.95) / (1 + calibration / test) ** 0.5))


def section() -> list[str]:
    """Counts against every rival and how often bounds held; the cells as CSV."""
    figures = figures_of()
    if not figures:
        return []
    held, shares = figures["held"], figures["certificates"]
    rows = []
    for rival in (name for name in held if name != AUTO):
        row = [f"{rival} ({sides(figures, rival, 'test')['cells']})"]
        for judged in JUDGED:
            plain, corrected = (sides(figures, rival, judged, error) for error in ERRORS)
            row.append(f"{plain['better']} / {plain['worse']} ({corrected['better']} / {corrected['worse']})")
        rows.append([*row, *(f"{100 * held[rival][judged]:.0f} %" for judged in HELD)])
    ours = [AUTO, *[""] * len(JUDGED), *(f"{100 * held[AUTO][judged]:.0f} %" for judged in HELD)]
    head = ["against (cells)", *(WORDS[judged] for judged in JUDGED), *(f"bound held, {word}"
            for word in ("bare", "shipped"))]  # fmt: skip
    cells = [
        [cell["table"], cell["ask"], WORDS[judged], rival, str(own["splits"]), gain(own)]
        for cell in figures["cells"] for judged in JUDGED for rival, own in cell["gain"][judged].items()
    ]  # fmt: skip
    alone = sides(figures, AGAIN, ALONE)["cells"]
    return [
        "## Five fresh splits, as shipped",
        f"Splits {SEEDS[0]} to {figures['seeds'][-1]}, looked at after three and when all were run; nothing was "
        f"changed in between (`python -m benchmarks.{COMMAND}`). *As shipped*: at the threshold with a certificate of "
        "95 %, which `setpoint fit` gives by default, put on the scores of every method alike. Rows and ask allow one "
        f"in {100 * shares['of runs']:.0f} % of the runs; areas have no threshold, and the rest of the runs the bare "
        f"one. *Certified runs alone*: {alone} cells, where at least three splits have a certificate; this and the "
        f"costs were added after the results. `{OWN}` keeps its own threshold. *Bound held*: the share of cells and "
        "splits whose bound holds on the test rows, for *shipped* of those with a certificate. Test rows are few as "
        f"well: with certificates that are exact, about {100 * seen_to_hold():.0f} % would be seen to hold. Cells "
        "better / worse, in brackets by corrected errors:",
        table(head, [*rows, ours]),
        wide("fresh", table(["table", "ask", "judged at", "against", "splits", "gain"], cells)),
    ]


def forest() -> list[Panel]:
    """A panel per strongest rival with a line per table, the mean of its asks, with errors over the splits."""
    figures = figures_of()
    panels = []
    for rival in STRONGEST if figures else ():
        lines = [Line.of(name, found) for name, found in figures["by table"][rival].items()]
        title = f"As shipped against {PLAINLY[rival]}, mean over the asks of a table, {len(figures['seeds'])} splits"
        panels.append(Panel(title, "points", sorted(lines, key=lambda line: -line.mean)))
    return panels
