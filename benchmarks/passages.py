"""Tables from the results on disk that stand in the middle of a page of the docs.

A page marks the place by `<!-- from benchmarks: NAME -->` and `<!-- end -->`; `python -m benchmarks.evidence` fills it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import setpoint as sp
from benchmarks.common.answers import counted_sides, side
from benchmarks.common.harness import ROOT, load_figures, load_result
from benchmarks.common.words import ERRORS, counted, mean_and_error, table, turned
from benchmarks.common.words import gain as written
from benchmarks.peers.page_f_score import f_table
from benchmarks.peers.page_gap import gap_table
from benchmarks.speed.page_processes import WRITERS, of_part
from benchmarks.studies.auto import page as auto
from benchmarks.studies.critical_class import page as critical_class
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, TUNED
from benchmarks.studies.lists import page as lists
from benchmarks.studies.long_tailed import page as long_tailed
from benchmarks.studies.mq2008 import page as mq2008
from benchmarks.studies.networks.page import over_sets
from benchmarks.studies.networks.verdict import HELPED
from benchmarks.studies.promises.page import tries_and_looks
from benchmarks.studies.small_nets import page as small_nets
from benchmarks.studies.small_nets import page_auto
from benchmarks.studies.tables import fresh, page_fresh
from benchmarks.studies.text_heads import page as text_heads
from setpoint.train.default import explain_default

DOCS = ROOT / "docs"
MARK = re.compile(r"(<!-- from benchmarks: (\w+) -->\n).*?(<!-- end -->)", re.S)
#: Beyond so many standard errors, corrected for overlapping splits, a difference is called clear.
CLEAR = 2.0
#: Methods of the study of Letter, as users call them.
NAMES = {"four strengths": "`sp.Anchored.auto()`"}


def is_clear(gain: dict[str, float]) -> bool:
    return gain["mean"] > CLEAR * gain["corrected_standard_error"]


def spread(values: list[float], digits: int = 1) -> str:
    low, high = (f"{edge:.{digits}f}" for edge in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def decision() -> str:
    """Which solver when: each case with what was measured of it."""
    studied = load_figures("auto")["rows"]
    linear, networks = ([row for row in studied if row["model"] == kind] for kind in ("linear", "mlp"))
    usual = {kind: explain_default(kind, sp.ask("minimize fnr where fpr <= 1%"))[0] for kind in ("linear", "mlp")}
    rows = [
        ["a linear model or head", f"`sp.fit` with no solver: {usual['linear']}, with `calibration=`",
         f"{by_default('default_study')}; {on_texts()}"],
        ["the same, for F-scores, errors or with a bound on precision", "the same", by_default("free_asks")],
        ["the same without rows for the threshold, FPR of 1 % or less", "`sp.fit` with no solver", extreme_bounds()],
        ["a linear model, precision at very high recall", *high_recall()],
        ["a linear model, nothing known of the data", "`solver=sp.Auto()`", by_auto(linear)],
        ["a linear model, a mild bound, time for a grid of fits", "weighted cross-entropy, below", by_weights(linear)],
        ["a linear model that fits well, or few rows", "`solver=sp.Ridge()`: plain cross-entropy", by_plain(linear)],
        ["a table, and no need for a linear model", "`setpoint fit`: it tries all kinds of models", by_trees(linear)],
        ["a network", f"`sp.fit` with no solver: {usual['mlp']}, then all rows", by_networks("default")],
        ["a network, and time for one training", "`refit=False`", by_networks("default, refit=False")],
        ["a network, and few steps", "more steps of cross-entropy before another loss", by_steps("1 %")],
        ["the same, steps that cannot be had, FPR of 0.1 % or less", "implicit thresholds after a warm start, below",
         by_steps("0.1 %")],
        ["a network, nothing known of the data", "`solver=sp.Auto()`", by_auto(networks)],
        ["a network and one rare, critical class", *critical()],
        ["the first k of each list", *first_k()],
    ]  # fmt: skip
    return table(["you have", "use", "measured"], rows)


def by_default(study: str) -> str:
    """The default over all cells of a study, against weights that train on the same rows."""
    found = load_figures(study)
    rival = TUNED + AGAIN
    plain, corrected = (found["counts"][f"{DEFAULT} | {rival} | test | {error}"] for error in ERRORS)
    return (
        f"over the best of 21 class weights, trained again on held-out rows too: better in {plain['better']} of "
        f"{plain['cells']} cells by two standard errors, worse in {plain['worse']}; clearly better in "
        f"{corrected['better']}, clearly worse in {corrected['worse']}"
    )


def on_texts() -> str:
    """Linear heads on texts, where the default loses to weights."""
    cells = load_figures("text_heads")["cells"]
    gains = [cell["gain over best of 21 weights"] for cell in cells]
    plain, corrected = (counted_sides(gains, error)[1] for error in ERRORS)
    return (
        f"on heads of {len({cell['set'] for cell in cells})} sets of texts worse than the weights in {plain} of "
        f"{len(cells)} cells by two standard errors, clearly in {corrected}: try both there"
    )


def extreme_bounds() -> str:
    """The default without its second training, against weights that train on the same rows."""
    found = load_figures("default_study")
    plain, corrected = (found["counts"][f"{DEFAULT}, refit=False | {TUNED} | test | {error}"] for error in ERRORS)
    return (
        f"`refit=False` over the best of 21 class weights: better in {plain['better']} of {plain['cells']} cells by "
        f"two standard errors, worse in {plain['worse']}; clearly better in {corrected['better']}, clearly worse in "
        f"{corrected['worse']}"
    )


def high_recall() -> tuple[str, str]:
    """The advice for precision at very high recall, and the areas on Letter."""
    found = load_figures("letter")
    gap = found["default minus"]["best of 21 weights"]
    use = {
        1: "`sp.fit` with no solver",
        0: "`sp.fit` with no solver, or tuned class weights",
        -1: "tuned class weights",
    }
    areas = ", ".join(f"{NAMES.get(name, name)} {100 * mean:.1f}" for name, mean in found["means"].items())
    return use[side(gap)], (
        f"area on Letter, {len(found['splits'])} splits: {areas}; default less the best of 21 weights "
        f"{written(gap)} points"
    )


def by_auto(rows: list[dict[str, Any]]) -> str:
    gains = [row["gain, best cut"]["cross-entropy"] for row in rows]
    return (
        f"against cross-entropy, worse by two standard errors in {sum(not row['never worse'] for row in rows)} of "
        f"{len(rows)} cells, clearly better in {sum(map(is_clear, gains))}, exactly the same in "
        f"{auto.unmoved(rows)[0]}"
    )


def by_networks(method: str) -> str:
    """A method over all sets of the network study, at FPR 1 %, against all rivals, and as shipped at 0.1 %."""
    together = load_figures("networks")["confirmation"]["together"]
    found = together["minimize fnr where fpr <= 1%"]["test"][method]
    shown = []
    for rival in (name for name in ("cross-entropy", "best of 7 weights", HELPED) if name in found):
        one = found[rival]
        clear = one["sets by corrected_standard_error"]
        shown.append(
            f"{written(one)} points over {rival}, ahead on {one['ahead on']} of {one['sets']} sets, clearly better on "
            f"{clear['better']}, worse on {clear['worse']}"
        )
    extreme = together["minimize fnr where fpr <= 0.1%"]["at threshold"][method]["cross-entropy"]
    return f"FNR at FPR 1 %: {'; '.join(shown)}; at 0.1 %, as shipped, {written(extreme)} over cross-entropy"


def by_steps(bound: str) -> str:
    """Implicit thresholds in small networks, against the best weight and against the same time spent on more steps."""
    found = [f"{claim.effect} against {claim.against}" for claim in small_nets.claims(load_figures("small_nets"))
             if claim.says.startswith(f"small networks, FPR {bound}:")]  # fmt: skip
    return f"implicit thresholds after a warm start, points of FNR at FPR {bound}: {'; '.join(found)}"


def few_steps() -> str:
    """Implicit thresholds in small networks beside both rivals, a sentence for each bound."""
    figures = load_figures("small_nets")
    return " ".join(
        f"At an FPR of {small_nets.bound_of(ask)} they are "
        + " and ".join(ahead_of([row["gain"][rival] for row in small_nets.of_ask(figures, ask, rival)], words)
                       for rival, words in ((small_nets.TUNED, "the best of 7 class weights after the same steps"),
                                            (small_nets.LONGER, "cross-entropy with 7/3 as many steps")))
        + "."
        for ask in small_nets.ASKS
    )  # fmt: skip


def ahead_of(gains: list[dict[str, float]], rival: str) -> str:
    """By how much they are ahead of a rival or behind it, and in how many cells clearly."""
    mean, (better, worse) = mean_and_error(gains)[0], small_nets.sides_of(gains)
    return (
        f"{abs(mean):.1f} points of FNR {'ahead of' if mean > 0 else 'behind'} {rival} (clearly better in {better}, "
        f"clearly worse in {worse} of {len(gains)} cells)"
    )


def networks() -> str:
    """All that was confirmed with networks, over all sets."""
    return over_sets(load_figures("networks")["confirmation"], "minimize fnr where fpr <= 1%", "test")


def by_weights(rows: list[dict[str, Any]]) -> str:
    gains = [row["gain, best cut"]["best of 21 weights"] for row in rows]
    clear = [f"{row['set']} ({row['ask']})" for row, gain in zip(rows, gains) if is_clear(gain)]
    return (
        f"`Auto` is clearly better than the best of 21 weights in {len(clear)} of {len(rows)} cells: {', '.join(clear)}"
    )


def by_plain(rows: list[dict[str, Any]]) -> str:
    kept = [row["set"] for row in rows if not is_clear(row["gain, best cut"]["cross-entropy"])]
    return f"nothing clearly better was found in {len(kept)} of {len(rows)} cells: {', '.join(dict.fromkeys(kept))}"


def by_trees(rows: list[dict[str, Any]]) -> str:
    def ahead(row: dict[str, Any]) -> bool:
        trees, others = row["best cut"]["LightGBM"], [v for name, v in row["best cut"].items() if name != "LightGBM"]
        return bool(trees < min(others) if row["ask"].startswith("minimize") else trees > max(others))

    won = [row["set"] for row in rows if ahead(row)]
    return f"LightGBM is ahead of every linear model in {len(won)} of {len(rows)} cells"


def critical() -> tuple[str, str]:
    """The advice for one critical class, and what the augmented Lagrangian gains over its base losses."""
    gains, better, worse = critical_class.together(critical_class.main_rows(), "AUC")
    use = "`sp.AugmentedLagrangian`" if better > worse else "cross-entropy"
    none = "no gain was found; " * (better <= worse)
    return use, (
        f"{none}`sp.AugmentedLagrangian` over the base loss alone, points of AUC on a pair of CIFAR-10 (positive is "
        f"better): {counted(gains, better, worse, 1)} cells"
    )


def augmented() -> str:
    """What the augmented Lagrangian gains over its base loss alone, in both studies of its paper."""
    rows = critical_class.main_rows()
    lines = []
    for column in ("AUC", critical_class.WORST):
        gains, better, worse = critical_class.together(rows, column)
        published = [row["gain"][column]["published"] for row in rows]
        lines.append(gain_row(f"a pair of CIFAR-10: {column}", gains, (better, worse), published))
    cells = long_tailed.constrained(load_figures("long_tailed")["rows"])
    for how in long_tailed.RANKINGS:
        column = long_tailed.COLUMNS[0]
        published = [] if how else [-row[column]["published minus alone"] for row in cells]
        counts = long_tailed.lowered_and_raised(cells, column + how)
        lines.append(gain_row(f"ten classes of CIFAR-10: {column}{how or long_tailed.BY_LOGIT}",
                              turned(cells, column + how, -1), counts, published))  # fmt: skip
    head = ["measure", "gain", "better", "worse", "cells", "published gain"]
    said = critical_class.verdict_of(*critical_class.together(rows, "AUC")[1:], len(rows))
    return f"{said}\n\n{table(head, lines)}"


def gain_row(name: str, gains: list[dict[str, float]], counts: tuple[int, int], published: list[float]) -> list[str]:
    mean, error = mean_and_error(gains, 1)
    beside = f"{sum(published) / len(published):+.2f}" if published else ""
    return [name, f"{mean:+.2f} ± {error:.2f}", *map(str, counts), str(len(gains)), beside]


def first_k() -> tuple[str, str]:
    """The advice for the first k of lists, and what the loss for them gains over cross-entropy on MQ2008."""
    gaps = [study["all queries"]["difference over queries"] for study in load_figures("mq2008")["studies"].values()]
    shown = ", ".join(f"{100 * gap['mean']:+.2f} ± {100 * gap['standard_error']:.2f}" for gap in gaps)
    noise = all(abs(gap["mean"]) <= 2 * gap["standard_error"] for gap in gaps)
    use = "cross-entropy" if noise else "cross-entropy; try `sp.losses.ImplicitTopK`"
    return use, f"`sp.losses.ImplicitTopK` over it, precision at 5 on MQ2008, points: {shown}{', within noise' * noise}"


def weights_grid() -> str:
    """What a grid of class weights costs and brings beside the default, both trained again on held-out rows."""
    rows, names = [], (BASELINE + AGAIN, TUNED + AGAIN, DEFAULT)
    for cell in load_figures("default_study")["cells"]:
        if cell["ask"] == "minimize fnr where fpr <= 1%" and "features" not in cell["set"]:
            values = [f"{100 * cell['test'][name]:.1f}" for name in names]
            rows.append([cell["set"], *values, *(f"{cell['seconds'][name]:.2f} s" for name in names[1:])])
    return table(["set", "plain", "best of 21 weights", "default", "time of the grid", "of the default"], rows)


def certificates() -> str:
    """How often promises are broken, the worst of all worlds and sizes; nothing while nobody has counted."""
    if not load_figures("certificates"):
        return "Not in the results yet: `python -m benchmarks.studies.certificates` counts it."
    cells, methods = load_figures("certificates")["cells"], ("certified", "plug-in", "MAPIE")
    rows = []
    for ask in dict.fromkeys(cell["ask"] for cell in cells):
        asked = [cell for cell in cells if cell["ask"] == ask]
        shown = []
        for method in methods:
            found = [cell[method] for cell in asked if method in cell]
            worst = f"{100 * max(f['broken'] for f in found):.1f} %" if found else ""
            refused = f"{100 * sum(f['refused'] for f in found) / len(found):.0f} %" if found else ""
            shown += [worst, refused]
        rows.append([ask, *shown])
    header = ["ask", *(f"{method}: {what}" for method in methods for what in ("broken, at worst", "refused"))]
    return table(header, rows)


def estimates() -> str:
    """How often intervals hold the truth, by method."""
    cells = load_figures("estimates")["cells"]
    methods = [name for name in cells[0] if name not in ("n", "weights")]
    rows = [[str(cell["n"]), cell["weights"], *(f"{100 * cell[name]:.0f} %" for name in methods)] for cell in cells]
    return table(["n", "weights", *methods], rows)


def lp_times() -> str:
    found = load_figures("lp_speed")
    rows = []
    for size, times in found["F-score, forward and backward"].items():
        names = ("closed form", "structured engine", times["fastest cvxpylayers"])
        rows.append([size, *(f"{times[name]['milliseconds']:.3g}" for name in names)])
    return table(
        ["F-score program, forward and backward, ms", "closed form", "structured engine", "fastest cvxpylayers"], rows
    )


def step_ratios() -> str:
    return table(
        ["step", "time, as a ratio to cross-entropy"],
        [[row["criterion"], f"{row['ratio']:.3f}"] for row in load_figures("step_cost")["rows"]],
    )


def growth() -> str:
    """How costs grow with each kind of size."""
    found = load_figures("growth")
    if not found:
        return "Not in the results yet: `python -m benchmarks.speed.growth` measures it."
    rows = [
        [kind, name, f"{row['sizes'][0]:,} to {row['sizes'][-1]:,}", f"{1e3 * row['seconds'][0]:.3g}",
         f"{1e3 * row['seconds'][-1]:.3g}", f"{row['exponent']:.2f}", "yes" if row["met"] else "no"]
        for kind, works in found["growths"].items() for name, row in works.items()
    ]  # fmt: skip
    head = ["size", "what", "from, to", "ms, smallest", "ms, largest", "exponent", f"<= {found['limit']}"]
    picture = "![Processor time of each on logarithmic axes, beside a line in proportion](images/growth.svg)"
    return f"`python -m benchmarks.speed.growth`\n\n{table(head, rows)}\n\n{picture}"


def compiled() -> str:
    rows = [
        [row["model"], row["solver"], str(row["graphs"]), str(row["breaks"]), f"{row['ratio']:.2f}",
         f"{row['seconds of compiling']:.0f}"]
        for row in load_figures("compiled")["rows"]
    ]  # fmt: skip
    head = ["model", "solver", "graphs", "breaks", "compiled step, as a ratio to the plain one", "seconds of compiling"]
    return f"`python -m benchmarks.speed.compiled`\n\n{table(head, rows)}"


def batch_sizes() -> str:
    rows = [
        [cell["set"], cell["ask"], *(f"{100 * fnr:.2f}" for fnr in cell["fnr"].values()),
         f"{100 * cell['larger batches miss more by']['mean']:+.2f} ± "
         f"{100 * cell['larger batches miss more by']['standard_error']:.2f}", f"{cell['time of the larger']:.2f}"]
        for cell in load_figures("batch_size")["cells"]
    ]  # fmt: skip
    head = ["set", "ask", "FNR, batches of 512", "of 4,096", "larger minus smaller", "time, as a ratio"]
    return f"`python -m benchmarks.studies.batch_size`\n\n{table(head, rows)}"


def across_workers() -> str:
    """Two and four workers beside one machine, a worker that is killed, and 10^8 scores."""
    found = load_figures("cluster")
    same, scores = found["equal"], found["scores"]
    told = {True: "equal to the last bit", False: "NOT equal"}
    runs = "; ".join(
        f"{name}: {told[one['equal']]}, {one['seconds']:.1f} s" for name, one in same.items() if isinstance(one, dict)
    )
    return (
        f"`python -m benchmarks.speed.cluster`: `fit` of {same['rows']:,} rows in {same['chunks']} chunks, one machine "
        f"{same['one machine, seconds']:.1f} s. Model, schema, threshold, certificate and numbers of rows beside those "
        f"of one machine: {runs}.\n\n"
        f"{scores['scores']:,} scores calibrated, one machine {scores['one machine, seconds']:.0f} s, two workers "
        f"{scores['2 workers, seconds']:.0f} s, four {scores['4 workers, seconds']:.0f} s, after "
        f"{scores['start of 2 workers, seconds']:.0f} and {scores['start of 4 workers, seconds']:.0f} s until they had "
        f"started; points {told[scores['points equal']]}. All workers share {machine_cores('cluster')} cores, so these "
        f"times say nothing of more machines."
    )


def machine_cores(name: str) -> int:
    """The cores of the machine that a summary was made on."""
    return int(load_result(name)["machine"]["cpu_count"])


def beyond_memory() -> str:
    """Commands on a table of ten times the memory of a worker."""
    found = load_figures("cluster")["memory"]
    rows = [
        [name, str(one["exit code"]), ", ".join(map(str, one["peaks of the workers, MB"]))]
        for name, one in found.items()
        if isinstance(one, dict)
    ]
    return (
        f"`python -m benchmarks.speed.cluster --part memory`: {found['rows']:,} rows, {found['files, GB']:.2f} GB of "
        f"Parquet (20 numbers and three texts of 2,000 characters per row), two workers of "
        f"{found['limit of a worker, MB']:.0f} MB each; the table is {found['times the memory of a worker']:.1f} times "
        f"as large. Workers that were ended at their limit: {found['workers that were ended']}. Rows that `predict` "
        f"answered: {found['rows answered']:,}.\n\n"
        f"{table(['command', 'exit code', 'peaks of the workers so far, MB'], rows)}"
    )


def peer_states() -> str:
    """Which of the other peers run today, and what they answer to a bound."""
    rows = [[row["peer"], row["version"], row["tried"], row["answer"]] for row in load_figures("peer_states")["rows"]]
    head = ["peer", "version", "tried", "answer"]
    return f"`python -m benchmarks.peers.states`\n\n{table(head, rows)}"


def contest(name: str, write: Callable[[dict[str, Any]], str]) -> str:
    """A contest among the peers, in short."""
    return write(load_figures("peers")["contests"][name])


#: Ways that people use today, as the study of tables names them, and in words.
TODAY = {
    "cross-entropy": "linear cross-entropy",
    "LightGBM tuned": "tuned LightGBM",
    "LightGBM tuned, again": "the same, trained again on held-out rows",
    "TunedThresholdClassifierCV": "TunedThresholdClassifierCV, its own threshold",
}


def counts_told(figures: dict[str, Any], rival: str, judged: str) -> tuple[str, str]:
    """The cells that are better and worse, each with the count by corrected errors in brackets."""
    plain, corrected = (page_fresh.sides(figures, rival, judged, error) for error in ERRORS)
    better, worse = (f"{plain[side]} ({corrected[side]})" for side in ("better", "worse"))
    return better, worse


def today() -> str:
    """Our default against what people use today, on the fresh splits of the study of tables."""
    figures = load_figures(fresh.NAME)
    rows = []
    for rival, words in TODAY.items():
        row = [words]
        for judged in ("test", fresh.CERTIFIED):
            row += [
                page_fresh.pm(page_fresh.gains_of(figures, rival, judged)),
                ", ".join(counts_told(figures, rival, judged)),
            ]
        rows.append([*row, str(page_fresh.sides(figures, rival, "test")["cells"])])
    told = (
        f"{figures['tables']} tables, {len(figures['seeds'])} fresh splits. Gains in points, at the best cut of the "
        "test rows and as shipped: every method but the last with a certified threshold, where rows and ask allow it "
        f"({100 * figures['certificates']['of runs']:.0f} % of the runs). *Better, worse*: cells (a table and an ask) "
        "beyond two standard errors, in brackets two corrected ones."
    )
    held = figures["held where"]["auto"]["with a certificate"]
    own = page_fresh.pm(page_fresh.gains_of(figures, page_fresh.OWN, fresh.ALONE))
    after = (
        f"One table is made here; without it {page_fresh.without_made(figures)} over LightGBM trained again. Certified "
        f"bounds held in {100 * held:.0f} % of the runs; there the gain over the last is {own}. "
        f"{page_fresh.price(figures)}."
    )
    head = ["`setpoint fit` over", "best cut", "best cut: better, worse", "shipped", "shipped: better, worse", "cells"]
    return f"{told}\n\n{table(head, rows)}\n\n{after}"


def ahead() -> str:
    """On how many tables the default is ahead of LightGBM that is trained again, and beyond two corrected errors."""
    figures = load_figures(fresh.NAME)
    means = figures["by table"][page_fresh.AGAIN].values()
    return (
        f"It is ahead of tuned LightGBM that is trained again on held-out rows on {sum(m['mean'] > 0 for m in means)} "
        f"of {len(means)} tables, beyond two corrected errors on {len(page_fresh.gaining(figures))}. On which tables "
        "it gains, nobody can say beforehand."
    )


def lightgbm() -> str:
    """Our default against LightGBM in sentences: cells won and lost on fresh splits, and the time."""
    figures = load_figures(fresh.NAME)
    told = []
    for rival, words in (("LightGBM tuned", "tuned LightGBM"),
                         ("LightGBM tuned, again", "the same trained again on held-out rows")):  # fmt: skip
        better, worse = counts_told(figures, rival, fresh.CERTIFIED)
        cells = page_fresh.sides(figures, rival, fresh.CERTIFIED)["cells"]
        told.append(f"against {words} better in {better} and worse in {worse} of {cells} cells")
    return f"As shipped, {'; '.join(told)}; in brackets by corrected errors. {fits_taken()}"


def fits_taken() -> str:
    """How long `auto` takes, in LightGBM fits, in a sentence."""
    timed = load_figures("auto_time")
    fits = [own["wall"] for own in timed["tables"].values()]
    return (
        f"It takes as long as {timed['median']['wall']:.0f} LightGBM fits in the median of {len(fits)} tables, "
        f"from {min(fits):.0f} to {max(fits):.0f}, by table."
    )


def kept() -> str:
    """How often the promise of a whole run was broken, with and without a certificate, in a sentence."""
    figures = load_figures("promises_tables")
    broken, bare = (max(cell[name] for cell in figures["cells"]) for name in ("broken", "bare broken"))
    worst = max(cell["certified"]["broken"] for cell in load_figures("certificates")["cells"])
    return (
        f"On {figures['cells'][0]['repeats']:,} made tables, where the truth is known, runs with a certificate of "
        f"{100 * figures['confidence']:.0f} % broke their bound in {100 * broken:.1f} % of cases at worst, over "
        f"{len(figures['cells'])} kinds of models. Thresholds without a certificate broke it in {100 * bare:.1f} %. "
        f"Over the worlds of scores the worst cell has {100 * worst:.1f} %."
    )


PASSAGES: dict[str, Callable[[], str]] = {
    "decision": decision,
    "today": today,
    "lightgbm": lightgbm,
    "ahead": ahead,
    "fits_taken": fits_taken,
    "kept": kept,
    "weights_grid": weights_grid,
    "networks": networks,
    "few_steps": few_steps,
    "small_nets_auto": page_auto.answer,
    "certificates": certificates,
    "promises": lambda: tries_and_looks(load_figures("promises")),
    "estimates": estimates,
    "lp_times": lp_times,
    "step_ratios": step_ratios,
    "compiled": compiled,
    "growth": growth,
    "batch_sizes": batch_sizes,
    "across_workers": across_workers,
    "beyond_memory": beyond_memory,
    "peer_states": peer_states,
    "peers_gap": partial(contest, "error at gap", gap_table),
    "peers_f": partial(contest, "best f score", f_table),
    **{f"processes_{part}": partial(of_part, part) for part in WRITERS},
    "mq2008": lambda: mq2008.section(load_figures("mq2008")),
    "lists": lambda: lists.section(load_figures("lists")),
    "text_heads": lambda: text_heads.section(load_figures("text_heads")),
    "critical_class": augmented,
}


def filled(text: str) -> str:
    """A page with every marked place holding what the results say today."""
    return MARK.sub(lambda found: f"{found[1]}\n{PASSAGES[found[2]]()}\n\n{found[3]}", text)


def pages() -> list[Path]:
    """The pages that have such places."""
    return [path for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if MARK.search(path.read_text())]
