"""The part of the page on tables that tells of the fresh splits."""

from __future__ import annotations

from typing import Any

from scipy.stats import norm

from benchmarks.common.chance import by_chance
from benchmarks.common.harness import load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import ERRORS, counted, gain, mean_and_error, table, wide
from benchmarks.studies.tables.fresh import CERTIFIED, JUDGED, NAME, SEEDS
from benchmarks.studies.tables.verdict import AUTO, LEAST_SPLITS, PLAIN, TUNED, counted_gains
from setpoint.run.settings import Settings

AGAIN = f"{TUNED}, again"
COMMAND = "studies.tables.fresh"
WORDS = {"test": "best cut", "at threshold": "bare threshold", CERTIFIED: "certified"}
#: The claims: where they are judged, against whom, in how many of the cells ours must be better, and whether the index
#: has them.
ASKED = (
    ("test", TUNED, 0.5, True),
    (CERTIFIED, TUNED, 0.5, False),
    ("test", AGAIN, 0.0, False),
    (CERTIFIED, AGAIN, 0.0, True),
    (CERTIFIED, PLAIN, 0.0, True),
)
PLAINLY = {TUNED: "tuned LightGBM", AGAIN: "tuned LightGBM, trained again", PLAIN: "cross-entropy"}


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


def answer() -> str:
    """The gain over the strongest rivals at what is shipped, how many cells differ, and what chance makes of them."""
    figures = figures_of()
    if not figures:
        return ""
    gains = {rival: mean_and_error(counted_gains(figures["cells"], rival, CERTIFIED)) for rival in PLAINLY}
    tuned, again, plain = (f"{mean:+.1f} ± {error:.1f} points" for mean, error in gains.values())
    found = {rival: sides(figures, rival, CERTIFIED) for rival in PLAINLY}
    splits, strict = len(figures["seeds"]), sides(figures, AGAIN, CERTIFIED, "corrected_standard_error")
    return (
        f"Over {figures['tables']} tables and {splits} fresh splits, at certified thresholds, the default has "
        f"{tuned} over tuned LightGBM, {again} over the strongest rival, the same trained again on held-out rows, and "
        f"{plain} over linear cross-entropy. Over the strongest it is better in {found[AGAIN]['better']} and worse "
        f"in {found[AGAIN]['worse']} of {found[AGAIN]['cells']} cells (corrected {strict['better']} and "
        f"{strict['worse']}); {100 * by_chance(splits):.0f} % of cells without any effect would differ as much with "
        f"{splits} splits. So the gain in the mean is {'' if gains[AGAIN][0] > 2 * gains[AGAIN][1] else 'not '}shown, "
        "which single tables gain is not, and the price is the time."
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
    held = figures["held"]
    rows = [
        [f"{rival} ({sides(figures, rival, 'test')['cells']})",
         *(f"{sides(figures, rival, judged)['better']} / {sides(figures, rival, judged)['worse']} "
           f"({sides(figures, rival, judged, 'corrected_standard_error')['better']} / "
           f"{sides(figures, rival, judged, 'corrected_standard_error')['worse']})" for judged in JUDGED),
         *(f"{100 * held[rival][judged]:.0f} %" for judged in JUDGED[1:])]
        for rival in held if rival != AUTO
    ]  # fmt: skip
    ours = [AUTO, "", "", "", *(f"{100 * held[AUTO][judged]:.0f} %" for judged in JUDGED[1:])]
    head = ["against (cells)", *(f"better / worse (corrected), {WORDS[judged]}" for judged in JUDGED),
            *(f"bound held, {WORDS[judged]}" for judged in JUDGED[1:])]  # fmt: skip
    cells = [
        [cell["table"], cell["ask"], WORDS[judged], rival, str(own["splits"]), gain(own)]
        for cell in figures["cells"] for judged in JUDGED for rival, own in cell["gain"][judged].items()
    ]  # fmt: skip
    return [
        "## Fresh splits, and the certificate",
        f"Splits {SEEDS[0]} to {figures['seeds'][-1]}, looked at after three and when all were run; nothing was "
        f"changed in between (`python -m benchmarks.{COMMAND}`). *Certified*: at the threshold with a certificate of "
        "95 %, which `setpoint fit` ships by default, put on the scores of every method alike; in "
        f"{100 * figures['certificates']:.0f} % of the runs rows and ask allow one, else the bare threshold stays. "
        "`TunedThresholdClassifierCV` keeps its own. *Bound held*: the share of cells and splits whose bound holds on "
        "the test rows, for *certified* of those with a certificate. Test rows are few as well: with certificates that "
        f"are exact, about {100 * seen_to_hold():.0f} % would be seen to hold.",
        table(head, [*rows, ours]),
        wide("fresh", table(["table", "ask", "judged at", "against", "splits", "gain"], cells)),
    ]
