"""The page on `sp.Auto()`."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import counted_sides, ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import ERRORS, counted, mean_and_error, short, table, verdict, wide
from benchmarks.common.words import gain as gain_text
from benchmarks.studies.default_study.verdict import sides

STRICT = "corrected_standard_error"
RIVALS = ("cross-entropy", "best of 21 weights", "LightGBM")
TITLE = "Auto against cross-entropy, tuned weights and trees"

QUESTION = "Is `sp.Auto()`, which tries several solvers, ever worse than cross-entropy?"
THREATS = (
    "Few splits per cell, which overlap.",
    "Trees are far ahead on most of these tables; `setpoint fit` tries them as well.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    told: list[Claim] = []
    for model in dict.fromkeys(row["model"] for row in figures["rows"]):
        rows = [row for row in figures["rows"] if row["model"] == model]
        gains = gains_of(rows, "cross-entropy")
        better = sum(sides(gain, "standard_error") > 0 for gain in gains)
        effect = counted(gains, better, sum(not row["never worse"] for row in rows))
        sets = len({row["set"] for row in rows})
        told.append(Claim(f"`sp.Auto()`, {model}: worse in no cell", effect, all(row["never worse"] for row in rows),
                          "cross-entropy", f"{sets} sets, {splits_of(rows)} splits", False,
                          mean_and_error(gains)))  # fmt: skip
    return told


def gains_of(rows: list[dict[str, Any]], rival: str) -> list[dict[str, Any]]:
    """The gains over a rival where it was run; cells of one set share rows, which two sets are too few to count by."""
    own = [row for row in rows if rival in row["gain, best cut"]]
    many = len({row["set"] for row in own}) > 2
    return [{**row["gain, best cut"][rival], **({"of": row["set"]} if many else {})} for row in own]


def splits_of(rows: list[dict[str, Any]]) -> str:
    return ranged([row["splits"] for row in rows], ".0f")


def answer(figures: dict[str, Any]) -> str:
    """Whether it is ever worse, what it gains over cross-entropy and tuned weights, trees, and its time."""
    rows = figures["rows"]
    if not rows:
        return ""
    worse = sum(not row["never worse"] for row in rows)
    word = "No" if not worse else "Yes"
    each = ", ".join(f"{model} {gained(own, 'cross-entropy')}" for model, own in by_model(rows))
    where = dict.fromkeys(row["set"] for row in rows if sides(row["gain, best cut"]["cross-entropy"], STRICT) > 0)
    trees = [row["gain, best cut"]["LightGBM"] for row in rows if "LightGBM" in row["gain, best cut"]]
    won, lost = zip(*(counted_sides(trees, error) for error in ERRORS))
    same, kept = unmoved(rows)
    return " ".join(
        [
            f"{word}: in {worse} of {len(rows)} cells it is worse than cross-entropy by two standard errors; in {same} "
            f"the gain is exactly 0, in {kept} of these because it kept cross-entropy in every split.",
            f"Its mean gains are {each}; gains beyond two corrected errors are on {' and '.join(where) or 'no set'} "
            "alone.",
            f"Over the best of 21 weights, the strongest linear rival, it has {gained(rows, 'best of 21 weights')}"
            f"{worse_than(rows, 'best of 21 weights')}.",
            f"LightGBM is better in {lost[0]} and worse in {won[0]} of {len(trees)} cells by plain errors, in "
            f"{lost[1]} and {won[1]} by corrected ones."
            if trees else "",
            f"Its time, as a multiple of that of one cross-entropy, is {'; '.join(times_of(rows))}; "
            f"{splits_of(rows)} splits per cell cannot rule out small losses.",
        ]
    ).replace("  ", " ")  # fmt: skip


def by_model(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    models = dict.fromkeys(row["model"] for row in rows)
    return [(model, [row for row in rows if row["model"] == model]) for model in models]


def times_of(rows: list[dict[str, Any]]) -> list[str]:
    """The time of auto as a multiple of that of cross-entropy, from the least to the most of every model."""
    return [
        f"{model} {ranged([row['seconds']['auto'] / row['seconds']['cross-entropy'] for row in own], '.0f')}"
        for model, own in by_model(rows)
    ]


def unmoved(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """In how many cells every split is as good as under cross-entropy, and in how many of these it was kept."""
    same = [row for row in rows if (gain := row["gain, best cut"]["cross-entropy"])["mean"] == 0 == gain[STRICT]]
    return len(same), sum(set(row["chosen"]) == {"CrossEntropy"} for row in same)


def gained(rows: list[dict[str, Any]], rival: str) -> str:
    """The mean gain over a rival, where it was run, and the counts by both errors."""
    gains = gains_of(rows, rival)
    mean, error = mean_and_error(gains)
    (better, worse), (surely, sure) = counted_sides(gains), counted_sides(gains, STRICT)
    noise = "" if abs(mean) > 2 * error else ", within noise in the mean"
    return (
        f"{mean:+.2f} ± {error:.2f} points{noise} ({better} better, {worse} worse of {len(gains)} cells by plain "
        f"errors, {surely} and {sure} by corrected ones)"
    )


def worse_than(rows: list[dict[str, Any]], rival: str) -> str:
    """The cells that lose to a rival by two plain standard errors, named, as the end of a sentence."""
    lost = [
        f"{row['set']} ({short(row['ask'])}, {gain_text(row['gain, best cut'][rival])})"
        for row in rows
        if rival in row["gain, best cut"] and sides(row["gain, best cut"][rival], "standard_error") < 0
    ]
    return f"; by plain errors it is worse on {', '.join(lost)}" if lost else ""


def forest(figures: dict[str, Any]) -> list[Panel]:
    """A panel per rival."""
    return [
        Panel(f"sp.Auto() against {rival}, best cut", "points",
              [Line.of(f"{row['model']}, {row['set']}: {short(row['ask'])}", row["gain, best cut"][rival])
               for row in figures["rows"] if rival in row["gain, best cut"]])
        for rival in RIVALS
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    note = (
        "In percent on test, at the best cut of the test rows; gains in points, in brackets the standard error "
        "corrected for overlapping splits. Not worse: not below converged cross-entropy by more than two standard "
        "errors. Time is of one processor thread."
    )
    return note + "".join(f" {name}: {why}." for name, why in figures["notes"].items())


def by_set(figures: dict[str, Any]) -> str:
    """A row per model and set: the gains over every rival, from the least to the most of its asks."""
    rows = []
    for model, name in dict.fromkeys((row["model"], row["set"]) for row in figures["rows"]):
        own = [row for row in figures["rows"] if (row["model"], row["set"]) == (model, name)]
        gains = [[100 * one["mean"] for one in gains_of(own, rival)] for rival in RIVALS]
        times = [row["seconds"]["auto"] / row["seconds"]["cross-entropy"] for row in own]
        rows.append([f"{model}, {name}", str(len(own)), *(ranged(one, "+.1f") if one else "" for one in gains),
                     ranged(times, ".0f")])  # fmt: skip
    head = ["model, set", "asks", *(f"over {rival}" for rival in RIVALS), "time, of one cross-entropy"]
    return f"Gains of `sp.Auto()` in points, from the least to the most of the asks:\n\n{table(head, rows)}"


def section(figures: dict[str, Any]) -> str:
    """Two tables: models at the best cut of the test rows, and what is run, at the calibrated threshold."""

    def gain(found: dict[str, float]) -> str:
        corrected = found["corrected_standard_error"]
        return f"{100 * found['mean']:+.2f} ± {100 * found['standard_error']:.2f} ({100 * corrected:.2f})"

    def mean(row: dict[str, Any], judged: str, name: str) -> str:
        return f"{100 * row[judged][name]:.2f}" if name in row[judged] else ""

    best, run = [], []
    for row in figures["rows"]:
        who = [row["model"], row["set"], row["ask"]]
        rivals = ["cross-entropy", "balanced", "best of 21 weights", "LightGBM", "auto"]
        over = row["gain, best cut"]
        best.append(
            [*who, *(mean(row, "best cut", name) for name in rivals), gain(over["cross-entropy"]),
             gain(over["best of 21 weights"]) if "best of 21 weights" in over else "",
             verdict(row["never worse"]), f"{row['seconds']['auto']:.1f} s"]
        )  # fmt: skip
        if row["bounds at the calibrated threshold"]["auto"]:
            met = row["bounds at the calibrated threshold"]
            shown = [f"{100 * next(iter(met[name].values())):.2f}" for name in ("cross-entropy", "auto")]
            figures_at = [mean(row, "calibrated", name) for name in ("cross-entropy", "auto")]
            run.append([*who, *figures_at, gain(row["gain, calibrated"]["cross-entropy"]), *shown])
    header = ["model", "set", "ask", "cross-entropy", "balanced", "best of 21 weights", "LightGBM", "auto",
              "better than cross-entropy by", "than the weights by", "not worse", "time of auto"]  # fmt: skip
    calibrated = ["model", "set", "ask", "cross-entropy", "auto", "better by", "bounded rate, cross-entropy", "auto"]
    full = [wide("best-cut", table(header, best)), wide("calibrated-threshold", table(calibrated, run))]
    return "\n\n".join([by_set(figures), *full])
