"""docs/evidence/papers.md: every table and figure of results in the papers, and what became of it here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import papers_why as why
from benchmarks.common.harness import load_figures
from benchmarks.common.words import counted, repeated, table, turned
from benchmarks.studies.critical_class import page as critical_class
from benchmarks.studies.long_tailed import page as long_tailed
from benchmarks.studies.lp_training import page as lp_training
from benchmarks.studies.paper_fashion.page_changes import gains as fashion_gains
from benchmarks.studies.paper_fashion.study import PAIRS, PUBLISHED
from benchmarks.studies.paper_figures import page as paper_figures
from benchmarks.studies.paper_images import page as paper_images
from benchmarks.studies.paper_programs import page as paper_programs
from benchmarks.studies.paper_tabular.page import CLAIMED
from benchmarks.studies.paper_tabular.study import AS_PUBLISHED

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
NO_DATA, NO_RESULT = "data not to be had", "shows no measurement"
Figures = dict[str, Any]
#: How a paper is called in the table.
AUTHORS = {"000": "Kumar", "001": "programs", "003": "Sangalli", "004": "Chen"}


@dataclass(frozen=True)
class Entry:
    """A table or figure of a paper: which study stands for it, what was found, and why it differs."""

    paper: str
    what: str
    state: str
    study: str = ""
    found: str = ""
    why: why.Why | None = None

    @property
    def cells(self) -> list[str]:
        command = f"[`{self.study}`]({self.study}.md)" if self.study else ""
        return [f"{AUTHORS[self.paper]} ({self.paper})", self.what, self.state, self.found, command]

    @property
    def reasons(self) -> str:
        """Why it differs, under the name of the table."""
        return f"### {self.paper}, {self.what.split(':')[0]}\n\n{self.why.text if self.why else ''}"


def direction(gains: list[dict[str, float]]) -> str:
    """Reproduced if every gain is beyond two standard errors, the direction if most are above zero and none is lost."""
    if all(gain["mean"] > 2 * gain["standard_error"] for gain in gains):
        return REPRODUCED
    lost = any(gain["mean"] < -2 * gain["standard_error"] for gain in gains)
    return DIRECTION if sum(gain["mean"] > 0 for gain in gains) > len(gains) / 2 and not lost else NOT


def told(gains: list[dict[str, float]], scale: float = 1) -> str:
    better, worse = (sum(side * gain["mean"] > 2 * gain["standard_error"] for gain in gains) for side in (1, -1))
    return counted(gains, better, worse, scale)


def elsewhere(state: str) -> str:
    """What was found on other data where the paper's own cannot be had."""
    return f"{NO_DATA} (elsewhere {state})"


def of_images(figures: Figures, fashion: Figures) -> list[Entry]:
    """Tables 2 to 4 of 000, and Table 1 of 004, on images that can be had."""
    figures = {**figures, "rows": paper_images.rows_of(figures)}

    def gains(method: str, area: bool) -> list[dict[str, float]]:
        return [row["over cross-entropy"] for row in paper_images.of_method(figures, method, area)]

    told_of = {name: paper_images.pooled_told(figures, name) for name in ("implicit", "method 2")}
    area = gains("implicit", True)
    sets = "over cross-entropy on five other sets"
    as_published = [told(fashion_gains(fashion, PUBLISHED, area), 100) for area in (False, True)]
    there = "; as published on Fashion-MNIST "
    return [
        Entry("000", "Table 2: FNR at FPR, CelebA", elsewhere(direction(gains("implicit", False))), "paper_images",
              f"{told_of['implicit']} {sets}{there}{as_published[0]}", why.of_fnr(figures, fashion)),
        Entry("000", "Table 3: partial ROC area, CelebA", elsewhere(direction(area)), "paper_fashion",
              f"{told(area)} {sets}, one of five ranges{there}{as_published[1]}, all five ranges",
              why.of_area(fashion, told(fashion_gains(fashion, PAIRS, True), 100))),
        Entry("000", "Table 4: partial ROC area, BigEarthNet", NO_DATA),
        Entry("004", "Table 1: FNR at FPR, CelebA, last layer", elsewhere(direction(gains("method 2", False))),
              "paper_images", f"{told_of['method 2']} {sets}", why.of_last_layer(figures)),
    ]  # fmt: skip


def of_figures(figures: Figures) -> list[Entry]:
    """What became of the papers' pictures; a plan of a network shows no measurement."""
    names = {"000, 1": "ROC curves, CelebA", "000, 2": "PR curves, Letter and ijcnn1", "001, 1": "ROC curves, STL10",
             "001, 2": "heat maps of an NMF layer", "003, 1": "a toy example"}  # fmt: skip
    listed = []
    for number, name in names.items():
        good = REPRODUCED if number == "003, 1" else DIRECTION
        state = good if figures["true"][number] else NOT
        state = elsewhere(state) if "CelebA" in name or "STL10" in name else state
        reason = None if figures["true"][number] else why.of_picture(figures, number)
        listed.append(Entry(number[:3], f"Figure {number[-1]}: {name}", state, "paper_figures",
                            paper_figures.found(figures, number), reason))  # fmt: skip
    return [*listed, Entry("004", "Figure 1: the last layer of a network", NO_RESULT)]


def of_areas(figures: Figures, ranges: Figures) -> list[Entry]:
    ours = [row for row in figures["rows"] if row["method"] == AS_PUBLISHED]
    plain, tuned = ([row[f"minus {rival}"] for row in ours] for rival in ("cross-entropy", "best of 21 weights"))
    claim = [row["minus cross-entropy"] for row in ours if row["set"] in CLAIMED]
    found = (
        f"over cross-entropy on the two sets where the paper claims a gain {told(claim)}, on all five {told(plain)}; "
        f"over the best of 21 weights {told(tuned)}"
    )
    rows = [row for row in ranges["rows"] if row["method"] == AS_PUBLISHED]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    most = [max((row for row in rows if row["set"] == name), key=lambda row: row["minus cross-entropy"]["mean"])
            for name in sets]  # fmt: skip
    state = DIRECTION if all(row["beta"] >= 0.95 for row in most) else NOT
    at = "; ".join(f"{row['set']}: most ahead from {row['beta']:g}" for row in most)
    return [
        Entry("000", "Table 5: partial PR area, five tables", direction(claim), "paper_tabular", found,
              why.of_precision(ours)),
        Entry("000", "Figure 3: the gain by the start of the range", state, "paper_ranges",
              f"{at}; the paper prints a plot without figures, so that only the direction compares"),
    ]  # fmt: skip


def of_programs(figures: Figures, solved: Figures) -> list[Entry]:
    """Tables 1 to 4 of 001, by the closed forms of its programs and by a network trained through the solver."""

    def gains(name: str, figure: str, levels: tuple[int, ...]) -> tuple[str, str]:
        """The state and the gains, at the shares of positives at which the paper claims one."""
        rows = paper_programs.of_program(figures["rate chosen"], name, figure, levels)
        state = direction([row["minus cross-entropy"] for row in rows])
        return state, f"{figure}, rates chosen: {paper_programs.effect_of(rows)}"

    (first, area), (third, many), (fourth, score) = (
        gains(name, figure, levels) for name, figure, _, levels in paper_programs.CLAIMED
    )
    at_50 = paper_programs.where_it_loses(figures["rate chosen"])
    sweep = {
        epsilon: lp_training.of(solved, "AUC")[f"penalty, epsilon {epsilon:g}"]["AUC"]["mean"]
        for epsilon in lp_training.EPSILONS
    }
    best = max(sweep, key=lambda one: sweep[one])
    listed = ", ".join(f"{epsilon:g}: {value:.1f}" for epsilon, value in sweep.items())
    peers = ", ".join(f"{name} {row['F at zero']['mean']:.1f}"
                      for name, row in lp_training.of(solved, "F at zero").items())  # fmt: skip
    return [
        Entry("001", "Table 1: AUC of halves (CIFAR-10; the other three sets are not here)", first, "paper_programs",
              f"at 91 % positive {area}.{at_50}", why.of_halves(figures)),
        Entry("001", "Table 2: Newton's epsilon, Cat&Dog", elsewhere(DIRECTION if best == 0.01 else NOT),
              "lp_training", f"AUC through the solver by epsilon, CIFAR-10 at 91 % positive: {listed}",
              why.of_newton(figures, solved, sweep)),
        Entry("001", "Table 3: AUC of three groups, STL10 and CIFAR-100", elsewhere(third), "paper_programs",
              f"CIFAR-10, {many}", why.of_groups(figures)),
        Entry("001", "Table 4: F-score of halves (CIFAR-10)", fourth, "paper_programs",
              f"{score}, the program as published", why.of_f_score(figures, peers)),
    ]  # fmt: skip


def of_critical(pair: Figures, tail: Figures, ladder: Figures) -> list[Entry]:
    cells = repeated([row for row in pair["tuned"] if row["way"] == critical_class.CONSTRAINED])
    areas = turned(cells, "AUC", 1)
    nine = load_figures("critical_class_nine")
    whole = critical_class.together(critical_class.constrained(nine), "AUC")[0]
    rows = repeated([row for row in tail["rows"] if row["demand"] != long_tailed.ALONE])
    errors, other = (turned(rows, long_tailed.COLUMNS[0] + how, -1) for how in long_tailed.RANKINGS)
    return [
        Entry("003", "Table 1: a pair of CIFAR-10, 1:100 and 1:200", direction(whole), "critical_class",
              f"AUC {told(whole)}, base losses at the rate where BCE alone is as published at 1:100; three of them at "
              f"the first rate {told(areas)}", why.of_pair(nine, ladder)),
        Entry("003", "Table 2: CIFAR-100", NO_DATA),
        Entry("003", "Table 3: MRI of a hospital", NO_DATA),
        Entry("003", "Table 4: long-tailed CIFAR-10", direction(errors), "long_tailed",
              f"{long_tailed.COLUMNS[0]}: ranked by the logit, as published, {told(errors)}; by the probability "
              f"{told(other)}{long_tailed.not_run(tail['rows'])}",
              why.of_tail(tail["rows"])),
    ]  # fmt: skip


def entries() -> list[Entry]:
    found = [
        *of_areas(load_figures("paper_tabular"), load_figures("paper_ranges")),
        *of_images(load_figures("paper_images"), load_figures("paper_fashion")),
        *of_figures(load_figures("paper_figures")),
        *of_programs(load_figures("paper_programs"), load_figures("lp_training")),
        *of_critical(
            load_figures("critical_class"), load_figures("long_tailed"), load_figures("critical_class_ladder")
        ),
    ]
    return sorted(found, key=lambda one: (one.paper, one.what.startswith("Figure"), one.what))


def page() -> str:
    listed = entries()
    of_kind: Callable[[str], list[Entry]] = lambda kind: [one for one in listed if one.what.startswith(kind)]  # noqa: E731
    counts = "; ".join(
        f"{kind.lower()}s: "
        + ", ".join(f"{number} {state}" for state, number in Counter(one.state for one in of_kind(kind)).items())
        for kind in ("Table", "Figure")
    )
    head = ["paper", "table or figure", "state", "found here: gain in points", "study"]
    differ = "\n\n".join(one.reasons for one in listed if one.why)
    return (
        "---\nhide: [navigation, toc]\n---\n\n# The papers' tables and figures\n\n"
        f"All {len(of_kind('Table'))} tables of results and {len(of_kind('Figure'))} figures of the papers behind the "
        "methods. 000: Kumar, Narasimhan, Cotter 2021 (implicit thresholds). 004: Chen, Kumar, Liu, Amid 2022 (last "
        "layer). 001 / 002: differentiable linear programs (002 adds no table). 003: Sangalli and others 2021 "
        "(critical classes). Table 1 of 000 and Table 5 of 001 describe data and programs and show no results. "
        "*Reproduced*: every cell in which the paper claims a gain has one beyond two standard errors; *direction "
        "reproduced*: most gain and none is lost beyond two; of a figure: what the paper says of it is true of every "
        "panel. A study is run by `python -m benchmarks.studies.NAME`. Written by `python -m benchmarks.evidence` from "
        "the summaries.\n\n"
        f"{counts[0].upper()}{counts[1:]}.\n\n{table(head, [one.cells for one in listed])}\n\n"
        "## Why they differ\n\nThe experiment behind each difference; where none shows the reason, it says so.\n\n"
        f"{differ}\n"
    )
