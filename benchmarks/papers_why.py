"""Why figures differ from the papers': per table or figure one plain sentence, then the experiments behind it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.common.words import gain
from benchmarks.studies.critical_class import page as critical_class
from benchmarks.studies.critical_class.page_ladder import why_lower
from benchmarks.studies.long_tailed import page as long_tailed
from benchmarks.studies.lp_training import page as lp_training
from benchmarks.studies.paper_fashion import page_changes as changes
from benchmarks.studies.paper_figures import page as paper_figures
from benchmarks.studies.paper_images import page as paper_images
from benchmarks.studies.paper_programs import page as paper_programs
from benchmarks.studies.paper_programs import page_no_choice
from benchmarks.studies.paper_programs.page_rates import best_of_rates
from benchmarks.studies.paper_programs.published import TABLE_1, TABLE_4
from benchmarks.studies.paper_programs.verdict import COLUMN

Figures = dict[str, Any]
Rows = list[dict[str, Any]]
#: Below so many points of AUC a setting counts as making no difference.
SMALL = 1.0


@dataclass(frozen=True)
class Why:
    """The reason in one sentence, and the facts behind it."""

    lead: str
    facts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join([f"**{self.lead}**", "", *(f"- {fact}" for fact in self.facts)]).strip()


def of_fnr(figures: Figures, fashion: Figures) -> Why:
    """Table 2 of 000: five sets of images, and the published form on Fashion-MNIST."""
    own = paper_images.of_method(figures, "implicit")
    cells = {(row["set"], row["ask"]) for row in own}
    plain, longer = (
        [row for row in paper_images.of_method(figures, method) if (row["set"], row["ask"]) in cells]
        for method in ("cross-entropy", "twice the epochs")
    )
    mean = paper_images.mean_of
    ours, same = mean(own, "over warm start"), mean(plain, "over warm start")
    lead = "training for longer, which helps cross-entropy as much" if same > ours / 2 else "the criterion itself"
    by_set = ", ".join(
        f"{name} {mean([row for row in longer if row['set'] == name], 'over cross-entropy'):+.2f}"
        for name in dict.fromkeys(row["set"] for row in longer)
    )
    at = mean(own, "at threshold, over cross-entropy")
    over = sum(row["fpr"] > paper_images.bound_of(row["ask"]) for row in own)
    return Why(
        f"Most of the gain is {lead}{f'; {own_lack}' if (own_lack := lacks(fashion, False)) else ''}.",
        (
            f"*Training time.* Over the net that both began from, pooled over {len(own)} cells: implicit thresholds "
            f"{ours:+.2f} points of FNR, cross-entropy of the same epochs {same:+.2f}. Beside it implicit "
            f"thresholds {pooled(figures, 'implicit')}.",
            "*Is cross-entropy converged?* Beside the same epochs, twice the epochs "
            f"{pooled(figures, 'twice the epochs')}: {by_set}.",
            "*Class weights.* Beside plain cross-entropy, the best of five "
            f"{pooled(figures, paper_images.TUNED, one=True)}; beside the best of five, implicit thresholds "
            f"{pooled(figures, 'implicit', paper_images.TUNED)}.",
            "*The threshold.* Set on calibration rows, not on test rows, the difference to cross-entropy is "
            f"{at:+.2f}, and the mean FPR is above its bound in {over} of {len(own)} cells.",
            *changes.reasons(fashion, False),
        ),
    )


def pooled(figures: Figures, method: str, rival: str = "cross-entropy", one: bool = False) -> str:
    """The pooled gain of a method in FNR in words."""
    found = paper_images.pooled_of(figures, method, rival)
    return paper_images.in_points(found, one=one) if found else "was not run"


def lacks(fashion: Figures, area: bool) -> str:
    """The change that the published form needs most, without figures."""
    rows = changes.stepwise(fashion, area)
    return f"on Fashion-MNIST the published form lacks most: {changes.worth_most(rows)[0]}" if rows else ""


def of_area(fashion: Figures, pairs: str) -> Why:
    lead = lacks(fashion, True) or "no experiment shows the reason"
    return Why(f"{lead[0].upper()}{lead[1:]}.",
               (*changes.reasons(fashion, True),
                f"The paper's pairwise baseline on Fashion-MNIST, over cross-entropy: {pairs}."))  # fmt: skip


def of_precision(ours: Rows) -> Why:
    """Table 5 of 000."""
    tuned = statistics.mean(row["minus best of 21 weights"]["mean"] for row in ours)
    ahead = sum(row["minus cross-entropy"]["mean"] > 0 for row in ours)
    lead = ("Tuned class weights, which the paper does not try, have the gain too." if tuned <= 0 else
            "Tuned class weights have a part of the gain only.")  # fmt: skip
    return Why(lead, (
        f"The gain over cross-entropy is above zero on {ahead} of {len(ours)} sets; the paper claims it for Letter and "
        "ijcnn1, finds all methods similar where classes are balanced, and its own behind on Communities.",
        "Where the level of cross-entropy is not the published one, [one change at a time](paper_levels.md) shows "
        "which change moves it.",
    ))  # fmt: skip


def of_picture(figures: Figures, number: str) -> Why:
    rows = paper_figures.of(figures, number)
    if "curves" not in rows[0]:
        one = rows[0]["rank 1, one object"] > rows[0]["rank 1"]
        lead = "At rank 1 the only map shows one object of two." if one else "The map at rank 1 shows no object well."
        return Why(lead, (paper_figures.differs(figures, number),))
    methods = (paper_figures.NARROW, paper_figures.PROGRAM) if number == "001, 1" else (paper_figures.IMPLICIT,)
    behind = [len(rows) - paper_figures.ahead(figures, number, method) for method in methods]
    where = f"{behind[0]} of {len(rows)} panels"
    if number == "001, 1":
        where += f" at the published margin, in {behind[1]} of {len(rows)} at margin 1"
    return Why(f"Cross-entropy has the larger area in {where}; its table has the reasons.",
               (paper_figures.differs(figures, number),))  # fmt: skip


def of_halves(figures: Figures) -> Why:
    """Table 1 of 001: is the published baseline trained too little, or too long?"""
    found = page_no_choice.trained()
    facts = (too_weak(figures), *page_no_choice.short(found), *best_of_rates(figures, "halves", 91))
    return Why(page_no_choice.lead(found), facts)


def too_weak(figures: Figures) -> str:
    """The program at the rate at which cross-entropy is as weak as published."""
    rows = [row for row in figures["by rate"] if (row["table"], row["level"]) == ("halves", 91)]
    published = TABLE_1[91]
    weak = min((row for row in rows if row["method"] == "cross-entropy"),
               key=lambda row: abs(row["value"]["mean"] - published["cross-entropy"]))  # fmt: skip
    there = [row for row in rows if row["pace"] == weak["pace"]
             and COLUMN.get(row["method"]) == "program"]  # fmt: skip
    rate = dict(zip(sorted({row["pace"] for row in rows}), figures["rates"]))[weak["pace"]]
    none = all(row["minus cross-entropy"]["mean"] <= 0 for row in there)
    alone = " So a weak baseline alone does not make the gain." if none else ""
    return (
        f"*A weak baseline?* Published at 91 % positive: cross-entropy {published['cross-entropy']:.1f}, the program "
        f"{published['program']:.1f}. At the rate where ours is nearest to as weak, {rate:g}, cross-entropy has "
        f"{weak['value']['mean']:.1f}; gains over it: {gains_of(there)}.{alone}"
    )


def gains_of(rows: Iterable[dict[str, Any]]) -> str:
    return "; ".join(f"{row['method']} {gain(row['minus cross-entropy'], 1)}" for row in rows)


def of_newton(figures: Figures, solved: Figures, areas: dict[float, float]) -> Why:
    """Table 2 of 001: epsilon as the tolerance of Newton's method, and as the margin."""
    moved = max(areas.values()) - min(areas.values())
    lead = ("Newton's epsilon makes no difference here; the margin, which the paper calls epsilon too, does."
            if moved < SMALL else f"Newton's epsilon moves the AUC by {moved:.1f} points here.")  # fmt: skip
    return Why(
        lead, (lp_training.EPSILON_TWICE, lp_training.of_epsilon(solved), paper_programs.of_margin(figures["rows"]))
    )


def of_groups(figures: Figures) -> Why:
    """Table 3 of 001."""
    small = [row["minus cross-entropy"]["mean"] for row in figures["by rate"]
             if (row["table"], row["level"]) == ("groups", 90) and row["method"].endswith("margin 0.01")]  # fmt: skip
    lead = ("The published margin of 0.01 loses to cross-entropy at every rate tried." if small and max(small) < 0 else
            "The rate of the baseline decides which loss is ahead.")  # fmt: skip
    return Why(lead, tuple(best_of_rates(figures, "groups", 90)))


def of_f_score(figures: Figures, peers: str) -> Why:
    """Table 4 of 001: only the program tunes a threshold."""
    at = {row["figure"]: row["value"]["mean"] for row in figures["rows"]
          if row["table"] == "f-score" and row["method"] == "cross-entropy"}  # fmt: skip
    tuned, published = (
        at["F at the held-out threshold"] - at["F at zero"],
        TABLE_4["program"] - TABLE_4["cross-entropy"],
    )
    as_much = "as much as the published gain" if tuned >= published else "a part of the published gain"
    return Why(
        f"A tuned threshold alone, which the published cross-entropy does not have, is worth {as_much}.",
        (
            paper_programs.found_out(figures["rows"])[1],
            *best_of_rates(figures, "f-score", 50),
            f"Through solvers, F at zero ([study](lp_training.md)): {peers}.",
        ),
    )


def of_pair(main: Figures, ladder: Figures) -> Why:
    """Table 1 of 003."""
    rows = critical_class.constrained(main)
    weak, others = critical_class.weak_losses(rows)
    lead = "No experiment shows the reason."
    if weak and others and critical_class.gains_of(weak)[0] > critical_class.gains_of(others)[0]:
        lead = ("The largest published gain is over a base loss that is weaker there than here; for the others no "
                "experiment shows the reason.")  # fmt: skip
    return Why(lead, (
        critical_class.gains_told(main),
        f"{critical_class.over_weak_losses(rows)}{critical_class.named_weak(main)}",
        critical_class.levels_told(main),
        why_lower(ladder),
    ))  # fmt: skip


def of_last_layer(figures: Figures) -> Why:
    """Table 1 of 004: no experiment changes anything about thresholds on the last layer."""
    own, plain = (paper_images.of_method(figures, method) for method in ("method 2", "cross-entropy"))
    mean = paper_images.mean_of
    return Why("No experiment shows the reason.", (
        "The experiments of Table 2 of 000 are on thresholds of all layers.",
        f"*Training time.* Over the net that both began from, pooled over {len(own)} cells: thresholds on the last "
        f"layer {mean(own, 'over warm start'):+.2f} points of FNR, cross-entropy of the same epochs "
        f"{mean(plain, 'over warm start'):+.2f}.",
    ))  # fmt: skip


def of_tail(rows: Rows) -> Why:
    """Table 4 of 003: what the ranking does beside what the constraints do."""
    more, many = long_tailed.ranking_matters_more(rows)
    ranking = "; how images are ranked moves the level more than the constraints do" * (more == many)
    lead = f"No experiment shows the reason{ranking}."
    return Why(
        lead, (*long_tailed.found_out(rows)[1:3], f"{long_tailed.on_the_strongest()} ([Study](long_tailed.md).)")
    )
