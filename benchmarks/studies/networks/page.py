"""The page on networks: what was screened, what was confirmed, and what failed."""

from __future__ import annotations

import itertools
import math
from typing import Any

from benchmarks.common import words as gains
from benchmarks.common.answers import beyond_both, side
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import slug, table, verdict, wide
from benchmarks.studies.networks.methods import METHODS
from benchmarks.studies.networks.nets import SHARES
from benchmarks.studies.networks.verdict import ALLOWED, ERRORS, HELPED, PLAIN, WEIGHTS

TITLE = "The default, networks"
QUESTION = "Does `sp.fit` with no solver beat cross-entropy and the best of seven class weights in networks?"
THREATS = (
    "The gain comes from training (rate, stopping rule, running average, half the weight on positives, a second "
    "training on held-out rows), not from implicit thresholds. See [small networks](small_nets.md) for these.",
    "Over the grid with the same average and the same rows most of the gain is gone; the sentence with "
    "*averaged, all rows* has the figure.",
    "Eight sets, at most 10,000 training rows each; no large network was trained.",
    "Two standard errors of the wider kind, corrected for overlapping splits, are about as large as the mean gains.",
)
JUDGED = {"test": "best cut of the test curve", "at threshold": "threshold set on calibration rows"}
SHORT = {"test": "best cut", "at threshold": "as shipped"}


def gain(found: dict[str, float]) -> str:
    """With its errors, if there is more than one split of every set."""
    return f"{100 * found['mean']:+.2f}" if math.isnan(found["standard_error"]) else gains.gain(found)


def claims(figures: dict[str, Any]) -> list[Claim]:
    told: list[Claim] = []
    for rival in (PLAIN, WEIGHTS, HELPED) if figures.get("confirmation") else ():
        by_ask = {ask: own["test"]["default"].get(rival) for ask, own in figures["confirmation"]["together"].items()}
        if None in by_ask.values():
            continue
        lost = any(one["lost a point on"] for one in by_ask.values())
        first = next(iter(by_ask.values()))
        effect = f"{gain(first)}; ahead on {first['ahead on']} of {first['sets']} sets"
        on = f"{first['sets']} sets, {figures['confirmation']['done']} pairs of set and split"
        points = (100 * first["mean"], 100 * first["standard_error"])
        claim = f"networks, FPR 1 %: mean worse by {100 * ALLOWED:g} point on no set"
        # The index has the strongest rival alone.
        told.append(Claim(claim, effect, not lost, rival, on, rival == HELPED, points))
    return told


def answer(figures: dict[str, Any]) -> str:
    """The gain over both rivals and over the strongest one, whether any set is lost, and what makes the gain."""
    if not figures.get("confirmation"):
        return ""
    by_ask = figures["confirmation"]["together"]
    ask = next(iter(by_ask))
    found = by_ask[ask]["test"]["default"]
    lost = sorted({name for one in by_ask.values() for rival in (PLAIN, WEIGHTS)
                   for name in one["test"]["default"].get(rival, {}).get("lost a point on", [])})  # fmt: skip
    sets = found[WEIGHTS]["sets"]
    told = [
        f"{'Yes' if found[WEIGHTS]['mean'] > 0 and found[PLAIN]['mean'] > 0 else 'No'}, in the mean of {sets} sets at "
        f"an FPR of 1 % the default {over(found[PLAIN], 'cross-entropy')} and {over(found[WEIGHTS], WEIGHTS)}; at the "
        f"best cut it is behind either by a point on {', '.join(lost) or 'no set'}."
    ]
    if HELPED in found:
        names = ", ".join(found[HELPED]["lost a point on"])
        behind = f"; on {names} it is behind by a point or more" if names else ""
        told.append(
            f"It {over(found[HELPED], 'the strongest rival')}: the same grid with a running average, trained on all "
            f"rows as the default is{behind}."
        )
    shipped = [*beside_plain(by_ask), *at_thresholds(by_ask)]
    return " ".join([*told, *shipped, "Not shown: large networks, and a gain by implicit thresholds."])


def over(found: dict[str, float], rival: str) -> str:
    mean = 100 * found["mean"]
    return f"{'gains' if mean > 0 else 'loses'} {abs(mean):.1f} points over {rival} ({beyond_both(found)})"


def bound_of(ask: str) -> str:
    return ask.rsplit(" ", maxsplit=1)[-1].replace("%", " %")


def beside_plain(by_ask: dict[str, Any]) -> list[str]:
    """What the default gains over one training of cross-entropy at the lowest bound, at the threshold it ships."""
    ask = list(by_ask)[-1]
    found = by_ask[ask].get("at threshold", {}).get("default", {})
    if len(by_ask) < 2 or PLAIN not in found:
        return []
    plain = found[PLAIN]
    word = {1: "gains", 0: f"gains nothing{' beyond noise' * (plain['mean'] > 0)}", -1: "loses"}[side(plain)]
    more = f"; over *{HELPED}* it has {gain(found[HELPED])}" if HELPED in found else ""
    return [
        f"At an FPR of {bound_of(ask)} ({plain['sets']} sets), as shipped, at the threshold set on calibration rows, "
        f"it {word} over plain cross-entropy: {gain(plain)} points{more}."
    ]


def at_thresholds(by_ask: dict[str, Any]) -> list[str]:
    """Where the default is behind a rival by a point at the threshold set on calibration rows."""
    behind = []
    for ask, own in by_ask.items():
        found = own.get("at threshold", {}).get("default", {})
        lost = [f"*{rival}* on {', '.join(found[rival]['lost a point on'])}" for rival in (PLAIN, WEIGHTS, HELPED)
                if found.get(rival, {}).get("lost a point on")]  # fmt: skip
        if lost:
            behind.append(f"at an FPR of {bound_of(ask)} behind {' and '.join(lost)}")
    where = "nowhere behind" if not behind else "; ".join(behind)
    return [f"As shipped it is {where} by a point or more."]


def targets(figures: dict[str, Any], names: tuple[str, ...]) -> str:
    """What was asked of networks, and whether it holds."""
    rows = []
    for ask, by_kind in figures["together"].items():
        for name, rival in itertools.product(names, (PLAIN, WEIGHTS)):
            found = by_kind["test"].get(name, {}).get(rival)
            if found is not None:
                lost, clearly = found["lost a point on"], found["clearly on"]
                worst = found["worst"]
                rows.append([ask, name, rival, verdict(not lost), verdict(not clearly), ", ".join(lost),
                             f"{worst['set']}: {gain(worst)}"])  # fmt: skip
    header = ["ask", "method", "against", "met", "or within noise", "lost on", "the worst set, gain in points"]
    return (
        f"Not worse than cross-entropy or tuned weights by more than {100 * ALLOWED:g} point on any set; *within noise*"
        f": no such loss is beyond two standard errors.\n\n{wide('targets', table(header, rows))}"
    )


def over_sets(figures: dict[str, Any], ask: str, judged: str) -> str:
    """Every method over all sets, each as heavy."""
    rows = []
    found = figures["together"][ask][judged]
    for name, rivals in found.items():
        row = [name, f"{METHODS[name].trainings:.3g}", str(METHODS[name].networks)]
        for rival in (PLAIN, WEIGHTS):
            if rival not in rivals:
                row += ["", ""]
                continue
            one = rivals[rival]
            counts = [one[f"sets by {error}"] for error in ERRORS]
            better, worse = ("/".join(str(count[side]) for count in counts) for side in ("better", "worse"))
            row += [gain(one), f"{one['ahead on']} of {one['sets']}; {better}; {worse}"]
        rows.append(row)
    header = ["method", "trainings", "nets in use", "over cross-entropy", "sets ahead; better; worse (plain/corrected)",
              "over the best of 7 weights", "sets ahead; better; worse (plain/corrected)"]  # fmt: skip
    return table(header, rows)


def beside_weights(figures: dict[str, Any]) -> str:
    """Every method over all sets against the strongest rival, at both bounds, at the best cut and as shipped."""
    places = [(ask, judged) for ask, own in figures["together"].items() for judged in own]
    rows = []
    for name in figures["cells"][0]["test"]:
        own = [figures["together"][ask][judged].get(name, {}).get(WEIGHTS) for ask, judged in places]
        if any(own):
            sets = {ask: str(one["sets"]) if one else "0" for (ask, _), one in zip(places, own)}
            rows.append([name, f"{METHODS[name].trainings:.3g}", ", ".join(sets.values()),
                         *(gain(one) if one else "" for one in own)])  # fmt: skip
    head = [f"FPR {bound_of(ask)}, {SHORT[judged]}" for ask, judged in places]
    return table(["method", "trainings", "sets", *head], rows)


def by_set(figures: dict[str, Any], ask: str, judged: str = "test") -> str:
    """Every method set by set, with what it gains over cross-entropy."""
    cells = [cell for cell in figures["cells"] if cell["ask"] == ask]
    names = dict.fromkeys(name for cell in cells for name in cell[judged])
    rows = [[name, *(on_set(cell, name, judged) for cell in cells)] for name in names]
    return table([f"{ask}, percent", *(f"{cell['set']} ({cell['splits']})" for cell in cells)], rows)


def on_set(cell: dict[str, Any], name: str, judged: str) -> str:
    if name not in cell[judged]:
        return ""
    gained = cell[f"gain, {judged}"][name].get(PLAIN)
    return ", ".join([f"{100 * cell[judged][name]:.2f}", *([gain(gained)] if gained else [])])


def words(names: list[str]) -> str:
    return "\n".join(f"- *{name}*: {METHODS[name].words}." for name in names)


def screened_methods(names: list[str]) -> str:
    return wide("screened-methods", table(["method", "what it is"], [[name, METHODS[name].words] for name in names]))


def part(figures: dict[str, Any], name: str) -> list[str]:
    seeds = figures["seeds"]
    found = [f"{figures['done']} of {figures['planned']} planned pairs of a set and a split, seeds {seeds[0]} to "
             f"{seeds[-1]}. Set by set, and over all sets, each as heavy:"]  # fmt: skip
    for ask in figures["together"]:
        found.append(wide(f"{name}-{slug(ask)}", by_set(figures, ask)))
        for judged in figures["together"][ask]:
            place = "-as-shipped" if judged != "test" else ""
            found.append(wide(f"{name}-over-sets-{slug(ask)}{place}", over_sets(figures, ask, judged)))
        helped = figures["together"][ask]["test"].get("default", {}).get(HELPED)
        if helped is not None:
            found.append(
                f"To be fair to the grid, it may train on all rows as well, with the running average (*{HELPED}*, "
                f"{METHODS[HELPED].trainings} trainings). Over that the default, with "
                f"{METHODS['default'].trainings}, is better by {gain(helped)} points."
            )
    return found


def forest(figures: dict[str, Any]) -> list[Panel]:
    """The mean of all sets against every rival, and a line per set at an FPR of 1 %."""
    confirmed = figures.get("confirmation")
    if not confirmed:
        return []
    means = [
        Line.of(f"FPR {bound_of(ask)}: {rival}", own["test"]["default"][rival])
        for ask, own in confirmed["together"].items() for rival in (PLAIN, WEIGHTS, HELPED)
        if rival in own["test"]["default"]
    ]  # fmt: skip
    sets = [Line.of(f"{cell['set']} ({cell['splits']} splits)", cell["gain, test"]["default"][PLAIN])
            for cell in confirmed["cells"] if cell["ask"].endswith(" 1%")]  # fmt: skip
    return [
        Panel("The default against each rival, FNR, mean of all sets", "points", means),
        Panel(f"The default against {PLAIN} on each set, FNR at FPR 1 %", "points", sets),
    ]


def design(figures: dict[str, Any]) -> str:
    told = (
        "An MLP 64-64 for tables, three strided convolutions for images; splits of 50/15/15/20 (train, at most "
        f"{figures['most training rows']:,} rows; held-out rows that stop and choose; calibration rows that only set "
        "the threshold; test). Every net is trained by Adam on a cosine and stopped early by its loss on held-out "
        "rows, at the best scale and shift of its scores; the class weight of seven is chosen there by the exact "
        "metric. *Trainings* is how many nets are trained from scratch. A set is worse by a point if its mean is, "
        f"whatever its error. Corrected errors go by shares of the splits, {100 * (1 - sum(SHARES)):.0f} % to test on "
        f"over {100 * SHARES[0]:.0f} % to train on, on sets too whose training rows are capped: by counts of rows they "
        "would be larger there.\n\n"
        "The default (rate 0.003 for stacks of linear layers and 0.001 for others, weight decay 0.0001, half of the "
        "weight on positives, then once more on held-out rows too) was set on the splits 690 to 730, after "
        "confirmations on 800 to 804, 900 to 909 and some from 1000 on, each of which changed something; its weight on "
        "those from 1200 on."
    )
    if figures.get("confirmation"):
        told += f" The figures are of splits from {figures['confirmation']['seeds'][0]} on, which chose nothing."
    return told


def section(figures: dict[str, Any]) -> str:
    confirmed, weighted, screened = (figures.get(phase) for phase in ("confirmation", "weights", "screening"))
    parts = []
    if confirmed:
        parts += [targets(confirmed, ("default", "default, refit=False")),
                  f"Over {WEIGHTS}, each set as heavy: at the {JUDGED['test']}, and as shipped, at the "
                  f"{JUDGED['at threshold']}. Points of FNR, in brackets the corrected error; *sets* is how many, "
                  f"first at an FPR of {', then at '.join(map(bound_of, confirmed['together']))}:",
                  beside_weights(confirmed)]  # fmt: skip
        parts.append(words([name for name in confirmed["cells"][0]["test"] if name not in (PLAIN, WEIGHTS)]))
        parts += part(confirmed, "confirmed")
    if weighted:
        parts += ["## Which weight", *part(weighted, "weights")]
    if screened:
        parts += ["## Screened", "All that was tried on other splits, the failures too:"]
        parts.append(screened_methods([*dict.fromkeys(name for cell in screened["cells"] for name in cell["test"])]))
        parts += part(screened, "screened")
    return "\n\n".join(parts)
