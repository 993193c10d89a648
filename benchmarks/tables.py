"""Writes docs/measured.md from the results on disk, every figure with the command that makes it, and fills the tables
that stand in other pages (`benchmarks.passages`).

python -m benchmarks.tables
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "measured.md"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdict(met: bool | None) -> str:
    return "" if met is None else "yes" if met else "no"


def kernels(figures: dict[str, Any]) -> str:
    rows = [
        [row["what"], f"{row['n']:,}", f"{row['figure']:.3g} {row['unit']}", row["target"], verdict(row["met"])]
        for row in figures["rows"]
    ]
    return table(["what", "n", "figure", "target", "met"], rows)


def step_cost(figures: dict[str, Any]) -> str:
    rows = [
        [row["criterion"], f"{row['ratio']:.3f}", f"<= {row['target']}", verdict(row["met"])] for row in figures["rows"]
    ]
    cached = figures["cached"]
    rows.append(
        [
            "an epoch of the whole net / of its head on cached features",
            f"{cached['whole / cached epoch']:.0f}",
            f">= {cached['target']}",
            verdict(cached["met"]),
        ]
    )
    return table(["step, as a ratio to cross-entropy", "ratio", "target", "met"], rows)


def default(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        means = {name: 100 * sum(values) / len(values) for name, values in cell["figures"].items()}
        gain = cell["gain over best of 21 weights"]
        rows.append(
            [
                cell["set"],
                cell["ask"],
                *(f"{means[name]:.2f}" for name in ("cross-entropy", "best of 21 weights", "default")),
                f"{100 * gain['mean']:.2f} ± {100 * gain['standard_error']:.2f} "
                f"({100 * gain['corrected_standard_error']:.2f})",
                *(f"{cell['seconds'][name]:.1f} s" for name in ("best of 21 weights", "default")),
            ]
        )
    header = ["set", "ask", "cross-entropy", "best of 21 weights", "default", "gain over the weights, in points",
              "time of the grid", "of the default"]  # fmt: skip
    return (
        table(header, rows)
        + "\n\nFNR in percent on test; in brackets the standard error corrected for overlapping splits."
    )


def auto(figures: dict[str, Any]) -> str:
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
              "better than cross-entropy by", "than the weights by", "never worse", "time of auto"]  # fmt: skip
    calibrated = ["model", "set", "ask", "cross-entropy", "auto", "better by", "bounded rate, cross-entropy", "auto"]
    note = (
        "In percent on test, at the best cut of the test rows; gains in points, in brackets the standard error "
        "corrected for overlapping splits. Never worse: not below converged cross-entropy by more than two standard "
        "errors. Time is of one processor thread."
    )
    if figures["notes"]:
        note += " " + "; ".join(f"{name}: {why}" for name, why in figures["notes"].items()) + "."
    at_threshold = f"At the calibrated threshold, without a confidence:\n\n{table(calibrated, run)}"
    return f"{table(header, best)}\n\n{note}\n\n{at_threshold}"


def letter(figures: dict[str, Any]) -> str:
    rows = [
        [name, f"{100 * mean:.2f}", "" if name not in figures["default minus"] else
         f"{100 * figures['default minus'][name]['mean']:+.2f} ± "
         f"{100 * figures['default minus'][name]['standard_error']:.2f}"]
        for name, mean in figures["means"].items()
    ]  # fmt: skip
    ratios = "; ".join(f"default / {name}: {r['ratio']:.3f}" for name, r in figures["ratios"].items())
    return table(["method", "area x 100", "default minus it"], rows) + f"\n\n{ratios}."


def mq2008(figures: dict[str, Any]) -> str:
    rows = []
    for study, found in figures["studies"].items():
        for queries in ("all queries", "queries with relevant documents"):
            cell = found[queries]
            gap = cell["difference over queries"]
            rows.append(
                [
                    study,
                    f"{queries} ({cell['queries']})",
                    f"{cell['mean of cross-entropy']:.4f}",
                    f"{cell['mean of implicit top-k']:.4f}",
                    f"{gap['mean']:+.4f} ± {gap['standard_error']:.4f}",
                ]
            )
    return table(["seeds vary", "queries", "cross-entropy", "implicit top-k", "paired difference"], rows)


def lp_programs(figures: dict[str, Any]) -> str:
    rows = []
    for group in ("families", "beyond"):
        for name, found in figures[group].items():
            outcomes = ", ".join(f"{count} {outcome.lower()}" for outcome, count in found["outcomes"].items())
            median, most = found["steps, median and most"]
            wrong = str(found["wrong silently"])
            rows.append([name, str(found["programs"]), outcomes, wrong, f"{median:g}", f"{most:g}"])
    basis = [
        [name, f"{found['share of the optimum held']:.0%}", found["reduced program"].lower(),
         found["full program after fallback"].lower()]
        for name, found in figures["reduction"].items()
    ]  # fmt: skip
    header = ["programs", "number", "outcomes", "wrong silently", "steps, median", "most"]
    reduced = table(["reduction to a basis", "of the optimum held", "reduced program", "after the fallback"], basis)
    return f"{table(header, rows)}\n\n{reduced}"


def lp_gradients(figures: dict[str, Any]) -> str:
    closed = [
        [name, str(found["cases"]), f"{found['worst relative error of the value']:.0e}",
         f"{found['worst relative error of the gradient']:.0e}"]
        for name, found in figures["closed forms against HiGHS"].items()
    ]  # fmt: skip
    exact = figures["F-score batches of 64"]["to the exact gradient"]
    cosines = [[name, f"{found['mean']:.6f}", f"{found['least']:.6f}"] for name, found in exact.items()]
    return "\n\n".join(
        [
            table(["closed form against HiGHS", "cases", "worst error of the value", "of the gradient"], closed),
            table(["cosine to the exact gradient, F-score, 64 samples", "mean", "least"], cosines),
        ]
    )


def lp_speed(figures: dict[str, Any]) -> str:
    rows = []
    for size, found in figures["F-score, forward and backward"].items():
        fastest = found["fastest cvxpylayers"]
        times = [f"{found[name]['milliseconds']:.3g}" for name in ("closed form", "structured engine", fastest)]
        faster = [f"{found[f'{name} is faster by']:.3g}x" for name in ("closed form", "structured engine")]
        rows.append([size, *times, *faster])
    memory = [[name, f"{value:.3g}"] for name, value in figures["peak memory at n = 1024, MB"].items()]
    areas = [
        [batch, name, *([found, ""] if isinstance(found, str) else
         [f"{found['milliseconds']:.3g}", f"{found['peak memory, MB']:.3g}"])]
        for batch, forms in figures["AUC"].items() for name, found in forms.items()
    ]  # fmt: skip
    header = ["F-score, ms", "closed form", "structured engine", "fastest cvxpylayers", "closed faster by", "engine by"]
    peers = ", ".join(f"{name} {version}" for name, version in figures["peers"].items())
    return "\n\n".join(
        [
            f"Peers: {peers}.",
            table(header, rows),
            table(["peak memory at n = 1,024", "MB"], memory),
            table(["AUC", "form", "ms", "MB"], areas),
        ]
    )


def augmented_cost(figures: dict[str, Any]) -> str:
    rows = [
        [f"{row['positives']:.0%}", row["step"], f"{row['ratio']:.3f}", f"<= {figures['target']}", verdict(row["met"])]
        for row in figures["rows"]
    ]
    return table(["positives", f"step at {figures['scores']:,} scores", "ratio to the pair sum", "target", "met"], rows)


def critical_class(figures: dict[str, Any]) -> str:
    columns = ["FPR @ 98% TPR", "FPR @ 95% TPR", "FPR @ 92% TPR", "AUC"]
    rows = []
    for row in figures["rows"]:
        rows.append([row["method"], *(f"{row[name]:.1f}" for name in columns)])
        if "minus alone" in row:
            gaps = [row["minus alone"][name] for name in columns]
            rows.append(["minus alone", *(f"{gap['mean']:+.1f} ± {gap['standard_error']:.1f}" for gap in gaps)])
    return table(["method", *columns], rows) + f"\n\n{figures['settings']}, 3 seeds; nothing was tuned."


def among_issued(found: dict[str, float]) -> float | None:
    """The share of the promises made that are wrong; `broken` is that of all repeats, refusals among them."""
    return found["broken"] / (1 - found["refused"]) if found["refused"] < 1 else None


def certificates(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        found = [cell.get(method) for method in ("certified", "plug-in", "MAPIE")]
        shown = [("" if f is None else f"{100 * f['broken']:.1f} %") for f in found]
        given = ["" if f is None or f["objective"] is None else f"{100 * f['objective']:.1f} %" for f in found]
        refused, among = f"{100 * cell['certified']['refused']:.0f} %", share_text(among_issued(cell["certified"]))
        shown.insert(1, among)
        rows.append([cell["ask"], cell["scores"], f"{cell['n']:,}", *shown, *given, refused, verdict(cell["met"])])
    header = ["ask", "scores", "n", "broken: certified", "among those issued", "plug-in", "MAPIE"]
    header += ["objective: certified", "plug-in", "MAPIE"]
    first = figures["cells"][0]
    note = (
        f"Of {first['repeats']:,} repeats, promises with confidence {100 * figures['confidence']:.0f} % that the true "
        f"distribution breaks (at most {100 * first['limit']:.1f} % is asked, noise included), and the true "
        "objective at the thresholds that were set. A refusal, where these samples certify nothing, breaks no promise; "
        "the next column divides by the certificates that were issued, which no confidence limits."
    )
    return note + "\n\n" + table([*header, "refused", "met"], rows)


def share_text(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def promises(figures: dict[str, Any]) -> str:
    """Gap certificates where one group is rare, and certificates of useless scores."""
    head = ["repeats", "issued", "wrong", "wrong among those issued", "limit of wrong", "met"]
    rows = []
    for cell in (*figures["gaps"], figures["useless"]):
        what = cell.get("ask") or f"{cell['positives']} positives in the rarest group"
        shown = [share_text(cell[name]) for name in ("issued", "wrong", "wrong among those issued", "limit")]
        rows.append([what, f"{cell['repeats']:,}", *shown, verdict(cell["met"])])
    note = (
        f"Certificates at {100 * figures['confidence']:.0f} %: of "
        "`recall.gap(g) <= 10%` over three groups, and of an accuracy that useless scores do not have."
    )
    return f"{note}\n\n{table(['certificate', *head], rows)}\n\n{tries_and_looks(figures)}"


def tries_and_looks(figures: dict[str, Any]) -> str:
    """Sentences on what happens to those who try again, and to those who look again."""
    tried, looked = figures["tries"], figures["looks"]
    return (
        f"Scores that know nothing of the labels: {share_text(figures['useless']['issued'])} of all runs issue a "
        f"certificate, and all of these are wrong; with {tried['tries']} tries on random halves of the same rows, "
        f"{share_text(tried['wrong'])} do.\n\n"
        f"A rate exactly at its bound: each look calls it broken in {share_text(looked['called broken per look'])} of "
        f"cases, and {looked['looks']} looks call it broken at least once in "
        f"{share_text(looked['called broken at least once'])} of {looked['runs']:,} runs."
    )


def scale(figures: dict[str, Any]) -> str:
    """Memory and time of streaming, carried on to 10^10 rows; tallies; the bare loop; a table ten times larger."""
    parts, found = [], {name: part["found"] for name, part in figures.items() if isinstance(part, dict)}
    rows = []
    for kind in (found[name] for name in ("parquet", "csv") if name in found):
        for task in ("fit", "predict", "evaluate"):
            days = kind[task]["seconds"] / kind["rows"] * 1e10 / 86_400
            peak = f"{kind[task]['peak_bytes'] / 1e6:.0f} MB"
            rows.append([f"{task} --stream", kind["file"], f"{kind['rows']:,}", peak, f"<= {kind[task]['target']}",
                         verdict(kind[task]["met"]), f"{kind[task]['seconds']:.0f} s", f"{days:.1f} days"])  # fmt: skip
    if rows:
        header = ["command", "file", "rows", "peak memory", "target", "met", "time", "on paper, 10^10 rows"]
        stated = f"The budget that is stated: {figures['stated_bytes'] / 1e6:.0f} MB."
        parts.append(f"{table(header, rows)}\n\nOne epoch, batches of 4,096. {stated}")
    if "tally" in found:
        tally = found["tally"]
        same = "the same threshold as" if tally["same threshold"] else "ANOTHER threshold than"
        parts.append(
            f"`ScoreTally`, {tally['scores']:,} scores, certified at 95 %: two looks in {tally['seconds']:.0f} s, of "
            f"which making the scores takes {2 * tally['seconds of making the scores, once']:.0f} s; peak memory "
            f"{tally['peak_bytes'] / 1e6:.0f} MB; {tally['kept one by one']:,} scores kept one by one; after one look "
            f"short of the best by {tally['short of the best after one look, at most']:.1g} at most; on "
            f"{tally['scores compared']:,} of them {same} `sp.calibrate`."
        )
    if "tensors" in found:
        rows = [
            [f"{row['rows']:,} x 50", str(row["batch_size"]), row["solver"], f"{row['ratio_processor']:.2f}",
             f"{row['ratio_wall']:.2f}", f"<= {row['target']}", verdict(row["met"])]
            for row in found["tensors"]
        ]  # fmt: skip
        header = ["`sp.fit` on tensors", "batch", "solver", "processor time / bare loop", "wall", "target", "met"]
        parts.append(
            f"{table(header, rows)}\n\nFive epochs, a linear model, beside the barest loop with cross-entropy on the "
            "same tensors; judging every epoch and setting the threshold are part of it."
        )
    if "command" in found:
        whole = found["command"]
        rows = [
            [solver, f"{whole[solver]['wall']['seconds']['on all']:.1f}",
             *(f"{whole[solver]['wall'][f'beside the bare loop on {which}']:.2f}" for which in
               ("its rows, 512", "its rows", "all rows")),
             verdict(whole[solver]["wall"]["beside the bare loop on its rows"] <= 1.5),
             f"{whole[solver]['processor']['ten times the rows']:.2f}",
             verdict(whole[solver]["processor"]["ten times the rows"] <= 11)]
            for solver in ("cross-entropy", "implicit")
        ]  # fmt: skip
        header = ["`setpoint fit --epochs 5`", "seconds", "over a bare loop on its training rows, batches of 512",
                  f"batches of {whole['batch_size']:,}", "on all rows, so too", "<= 1.5", "ten times the rows",
                  "<= 11"]  # fmt: skip
        parts.append(
            f"{table(header, rows)}\n\nThe whole command on {whole['rows']:,} rows of 50 columns, by the wall: "
            f"reading, splitting, the solver in batches of {whole['batch_size']:,} and converged cross-entropy beside "
            "it, judging, writing; a bare loop has its tensors ready and does nothing else. The verdict is on the "
            "strictest of the three: the same rows, the same batches. Ten times the rows in processor time."
        )
    if "processes" in found:
        whole = found["processes"]
        rows = [
            [solver, f"{statistics.median(whole['seconds'][solver]):.1f}", f"{statistics.median(bare):.1f}",
             f"{ratio:.2f}", f"<= {whole['target']}", verdict(ratio <= whole["target"])]
            for bare in [whole["seconds"]["bare"]] for solver, ratio in whole["ratios"].items()
        ]  # fmt: skip
        header = ["`setpoint fit --epochs 5`, a process", "seconds", "of the barest script", "ratio", "target", "met"]
        parts.append(
            f"{table(header, rows)}\n\nProcess against process, from the start of Python to its end, on the same file "
            f"of {whole['rows']:,} rows in batches of {whole['batch_size']:,}, medians of "
            f"{len(whole['seconds']['bare'])} turns: the script (`benchmarks/bare_script.py`) reads, standardises and "
            "trains on all rows by cross-entropy, and sets nothing aside; ours trains on half of them and judges, "
            "certifies and compares on the rest."
        )
    rough = [name for name, part in figures.items() if isinstance(part, dict) and part["rough"]]
    parts.append(
        "Each part was measured by itself (`--only`), once, on a machine that others were using; wall times, and "
        f"what is carried on from them, are rough{', and so are those made with `--quick`: ' if rough else ''}"
        f"{', '.join(rough)}."
    )
    return "\n\n".join(parts)


def spine(figures: dict[str, Any]) -> str:
    before = json.loads((RESULTS / "spine_before.json").read_text())["figures"]
    rows = [
        [case, f"{before[case]['seconds']:.2f}", f"{now['seconds']:.2f}",
         f"{before[case]['seconds'] / now['seconds']:.2f}x", now["own time"][0]["function"]]
        for case, now in figures.items()
    ]  # fmt: skip
    note = "Processor seconds of the whole command; the profiles are in `benchmarks/results/spine_*.json`."
    return f"{table(['setpoint fit', 'before', 'after', 'faster by', 'dearest now'], rows)}\n\n{note}"


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "default": ("The default for linear models: FNR at a fixed FPR", default),
    "auto": ("Auto against cross-entropy, tuned weights and trees", auto),
    "certificates": ("How often promises are broken", certificates),
    "promises": ("Rare groups, useless scores, many tries and many looks", promises),
    "letter": ("Letter: mean precision over recall 95 % to 100 %", letter),
    "mq2008": ("MQ2008: precision at 5, linear models, official fold 1", mq2008),
    "step_cost": ("What a step costs", step_cost),
    "kernels": ("Curves and pairs", kernels),
    "augmented_cost": ("What the augmented Lagrangian costs", augmented_cost),
    "critical_class": ("CIFAR-10, one pair at 1:100: the augmented Lagrangian on three base losses", critical_class),
    "lp_programs": ("Linear programs: certified, or named", lp_programs),
    "lp_gradients": ("Linear programs: closed forms and gradients", lp_gradients),
    "lp_speed": ("Linear programs: speed and memory", lp_speed),
    "scale": ("Large tables", scale),
    "spine_after": ("Where the time of a fit goes", spine),
}


def page() -> str:
    """The whole page, from the json files."""
    parts = [
        "# Measured\n\nWritten by `python -m benchmarks.tables` from `benchmarks/results/`; nothing here is typed."
    ]
    for name, (title, render) in SECTIONS.items():
        result = json.loads((RESULTS / f"{name}.json").read_text())
        machine = result["machine"]
        note = f"`{result['command']}`, torch {result['versions']['torch']}, {machine['cpu_count']} cores."
        parts.append(f"## {title}\n\n{note}\n\n{render(result['figures'])}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    from benchmarks import passages

    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
    for path in passages.pages():
        path.write_text(passages.filled(path.read_text()))
        print(f"filled {path.name}")
