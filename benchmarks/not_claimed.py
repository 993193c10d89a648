"""docs/evidence/not_claimed.md: the claims that setpoint does not make, each with the figure that forbids it."""

from __future__ import annotations

import statistics

from benchmarks import looks, papers, passages
from benchmarks.common.answers import counted_sides
from benchmarks.common.chance import by_chance
from benchmarks.common.harness import load_figures
from benchmarks.common.words import counted, mean_and_error, share
from benchmarks.studies.auto import page as auto
from benchmarks.studies.default_study.verdict import AGAIN, DEFAULT
from benchmarks.studies.default_study.verdict import TUNED as BEST
from benchmarks.studies.networks.page import gain
from benchmarks.studies.networks.verdict import HELPED
from benchmarks.studies.small_nets.page import bound_of, gains_of, of_ask
from benchmarks.studies.small_nets.study import ASKS, RIVALS
from benchmarks.studies.tables import fresh, page_fresh
from benchmarks.studies.text_heads.page import told


def networks() -> str:
    together = load_figures("networks")["confirmation"]["together"]["minimize fnr where fpr <= 1%"]["test"]["default"]
    return (
        "**That a new loss is why networks get better.** The default for networks is cross-entropy with half the "
        "weight on positives, a running average and a second training on held-out rows. Over the best of seven weights "
        f"with the same average and rows its gain is {gain(together[HELPED])} points ([networks](networks.md))."
    )


def small_networks() -> str:
    figures = load_figures("small_nets")
    shown = []
    for ask in ASKS:
        gains = gains_of(of_ask(figures, ask, RIVALS[1]), RIVALS[1])
        better, worse = (
            sum(side * one["mean"] > 2 * one["corrected_standard_error"] for one in gains) for side in (1, -1)
        )
        shown.append(f"at FPR {bound_of(ask)} {counted(gains, better, worse)}")
    return (
        "**That implicit thresholds replace training longer.** Against cross-entropy with 7/3 as many steps, which is "
        f"as many batches as a grid of seven weights sees: {'; '.join(shown)} cells ([small networks](small_nets.md))."
    )


def tables() -> str:
    figures = load_figures(fresh.NAME)
    again, own = (page_fresh.sides(figures, rival, fresh.CERTIFIED, "corrected_standard_error")
                  for rival in fresh.STRONGEST)  # fmt: skip
    alone, other = (page_fresh.sides(figures, rival, fresh.ALONE, "corrected_standard_error")
                    for rival in fresh.STRONGEST)  # fmt: skip
    mean = page_fresh.pm(page_fresh.gains_of(figures, page_fresh.OWN, fresh.ALONE))
    earlier = len(load_figures(looks.NAME)["tables"])
    return (
        "**That it is the best tool for every table.** As shipped, by errors corrected for overlapping splits, it is "
        f"better than tuned LightGBM that is trained again on held-out rows in {again['better']} of {again['cells']} "
        f"cells and worse in {again['worse']}, and than `{page_fresh.OWN}` in {own['better']} of {own['cells']} and "
        f"worse in {own['worse']}; the rest cannot be told from noise. Of the {alone['cells']} cells with a "
        f"certificate {alone['better']} are better and {alone['worse']} worse than the first, "
        f"{other['better']} and {other['worse']} than the second (mean {mean}). One of the tables is "
        f"made here: without it the gain over the first is {page_fresh.without_made(figures)} points. The earlier ten "
        f"splits were looked at {earlier} times. {passages.fits_taken()} ([Tables](tables.md).)"
    )


def linear() -> str:
    """Where linear models gain, what that costs, and what trees do beside them."""
    figures, rows = load_figures("default_study"), load_figures("auto")["rows"]
    corrected = figures["counts"][f"{DEFAULT} | {BEST + AGAIN} | test | corrected_standard_error"]
    times = [cell["seconds"][DEFAULT] / cell["seconds"][BEST + AGAIN] for cell in figures["cells"]]
    over, trees = (auto.gains_of([row for row in rows if row["model"] == "linear"], rival)
                   for rival in (BEST, "LightGBM"))  # fmt: skip
    mean, error = mean_and_error(over)
    return (
        f"**That linear models for the ask gain everywhere.** Over the {BEST} the default gains by corrected errors in "
        f"{corrected['better']} of {corrected['cells']} cells and takes {statistics.median(times):.1f} times the "
        f"seconds of the grid, the median ([linear models](default_study.md)); `sp.Auto()` has {mean:+.1f} ± "
        f"{error:.1f} points over them. A LightGBM model is better than `sp.Auto()` in {counted_sides(trees)[1]} of "
        f"{len(trees)} cells ([Auto](auto.md)): on tables, use the default of the command line."
    )


def few_repeats() -> str:
    few, many = (f"{100 * by_chance(repeats):.0f} %" for repeats in (3, 5))
    return (
        f"**That every counted cell is real.** With 3 repeats {few} of the cells without any effect are beyond two "
        f"standard errors, with 5 {many}; so read means before counts, and corrected errors before plain ones."
    )


def certificates() -> str:
    figures = load_figures("promises")
    looked, tried = figures["looks"], figures["tries"]
    return (
        "**That a certificate covers what it does not say.** It holds for rows drawn like the calibration rows, once. "
        f"With {tried['tries']} tries on the same rows {share(tried['wrong'])} of useless scores get one; a bound that "
        f"is looked at {looked['looks']} times without `sp.Watch` is called broken at least once in "
        f"{share(looked['called broken at least once'])} of runs ([rare groups, many tries](promises.md)). "
        f"{page_fresh.price(load_figures(fresh.NAME))} ([tables](tables.md)). Nothing is "
        "promised under drift, for labels that are wrong, or for rows that depend on each other without `clusters=`."
    )


def dependence() -> str:
    naive = max(cell["naive"]["broken"] for cell in load_figures("dependence")["cells"] if "naive" in cell)
    return (
        "**That rows may be treated as independent.** Where they come in clusters or from another population and "
        f"nobody says so, up to {share(naive)} of the promises are broken ([dependence](dependence.md))."
    )


def published() -> str:
    listed = papers.entries()
    good = sum(one.state in (papers.REPRODUCED, papers.DIRECTION) for one in listed)
    return (
        f"**That the papers' figures are reproduced.** Of {len(listed)} tables and figures {good} are, at least in "
        "their direction; the rest are not, or their data cannot be had ([list](papers.md)). Our networks are smaller "
        "than the published ones, and a gain that is absent here may be there in theirs."
    )


def rare_events() -> str:
    cells = load_figures("rare_events")["cells"]
    nothing = sum(cell["default"]["refused"] == 1 for cell in cells)
    return (
        "**That a rare class can always be found under a promise.** With one positive in 500 rows and linear models, "
        f"in {nothing} of {len(cells)} cells of real tables no certified cut flags anything, ours as little as the "
        "others ([rare events](rare_events.md))."
    )


def text_heads() -> str:
    cells = load_figures("text_heads")["cells"]
    sets = len({cell["set"] for cell in cells})
    return (
        f"**That a linear head for the ask is the best on any embeddings.** On {sets} sets of texts it is not "
        f"([guardrails](../recipes/guardrails.md)). {told(cells)}"
    )


def classes() -> str:
    cells = [cell for cell in load_figures("classes")["cells"] if cell["way"] == "implicit shifts"]
    behind = sum(cell["gain"] < 0 for cell in cells)
    return (
        "**That training through the decision helps with several classes or lists.** Implicit shifts are behind "
        f"cross-entropy with tuned shifts in {behind} of {len(cells)} cells of real tables ([classes](classes.md)); on "
        "MQ2008 no loss for the first k is better beyond two standard errors ([lists](lists.md))."
    )


def fairness() -> str:
    return (
        "**That a bound on a gap is fairness**, or that training for a gap beats cross-entropy with a threshold per "
        "group: on the two sets where both were run it does not ([peers](../peers.md#measured-beside-them))."
    )


def maturity() -> str:
    return (
        "**That it has been used.** There are no users outside of its tests, no GPU was at hand, one version of "
        "PyTorch is tested, and every study was run by its makers. Many of the real tables are small and old."
    )


def page() -> str:
    parts = [tables(), linear(), networks(), small_networks(), rare_events(), text_heads(), classes(), certificates(),
             dependence(), fairness(), published(), few_repeats(), maturity()]  # fmt: skip
    listed = "\n".join(f"- {part}" for part in parts if part)
    return (
        "# What we do not claim\n\nFor the sceptic: statements that one might read into these pages and that the "
        f"figures do not support. Written by `python -m benchmarks.evidence`.\n\n{listed}\n"
    )
