"""What docs/measured.md says of speed and memory."""

from __future__ import annotations

from typing import Any

from benchmarks.common.harness import load_figures
from benchmarks.common.words import table, verdict


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


def steps(figures: dict[str, Any]) -> str:
    rows = [
        [name, f"{row['before']:.2f}" if "before" in row else "", f"{row['figure']:.2f}", row["unit"],
         "" if row["target"] is None else f"<= {row['target']:g}", "" if row["target"] is None else verdict(row["met"])]
        for name, row in figures["rows"].items()
        if row["figure"] != 1
    ]  # fmt: skip
    return table(["what", "before", "now", "unit", "target", "met"], rows)


def refine_newton(figures: dict[str, Any]) -> str:
    """Newton steps beside the Adam steps that were taken before."""
    rows = [
        [name, ask, f"{gain:+.2f} ± {error:.2f}", f"{refinement:.1f}", f"{recipe:.1f}"]
        for name, asks in figures["sets"].items()
        for ask, gain, error, refinement, recipe in zip(figures["asks"], asks[::4], asks[1::4], asks[2::4], asks[3::4])
    ]  # fmt: skip
    splits = ", ".join(map(str, figures["splits"]))
    told = (
        f"{figures['steps']} Newton steps instead of 250 of Adam, on screening splits {splits} of the default study; "
        "sets were measured in several runs (`--sets`). The gain is in points on test rows, a "
        "positive one in favour of Newton's steps, with its standard error over the splits; times are how many times "
        "as fast it is."
    )
    return f"{told}\n\n{table(['set', 'ask', 'gain', 'refinement', 'whole recipe'], rows)}"


def trees_predict(figures: dict[str, Any]) -> str:
    ways = ("model", "frame")
    rows = [
        [row["columns"], f"{row['rows']:,}", f"{row['boosters']}, {row['trees']:,} trees",
         f"{row['seconds of LightGBM']:.1f}", *(f"{row[name]:.2f} ({row[f'{name}, processor']:.2f})" for name in ways),
         f"<= {row['target']}", verdict(row["met"])]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["columns", "rows", "boosters", "LightGBM alone, s", "ratio from features (of the processor)",
            "ratio from the table (of the processor)", "target", "met"]  # fmt: skip
    return table(head, rows)


def auto_time(figures: dict[str, Any]) -> str:
    """The time of auto per table in single fits of LightGBM, and of the made tables in seconds."""
    rows = [
        [name, f"{own['seconds']:.2f}", f"{own['fit']:.3f}", f"{own['wall']:.1f}", f"{own['processor']:.1f}"]
        for name, own in figures["tables"].items()
    ]
    made = [
        [name, f"{own['wall']:.1f}", f"{own['processor']:.1f}", f"<= {own['most']:g}",
         verdict(own["wall"] <= own["most"])]
        for name, own in figures["made"].items()
    ]  # fmt: skip
    median, most = figures["median"]["wall"], figures["most fits"]
    missing = [one.split(":")[0] for one in figures["left out"]]
    left_out = f" {', '.join(missing)} are not among them." if missing else ""
    head = ["table", "auto, s", "one LightGBM fit, s", "fits on the wall", "fits of the processor"]
    told = f"The median is {median:.1f} fits on the wall over {len(rows)} tables, asked are {most}: "
    seconds = table(["what", "wall, s", "processor, s", "target, s", "met"], made)
    return f"{told}{verdict(median <= most)}.{left_out}\n\n{table(head, rows)}\n\n{seconds}"


def kernels(figures: dict[str, Any]) -> str:
    rows = [
        [row["what"], f"{row['n']:,}", f"{row['figure']:.3g} {row['unit']}", row["target"], verdict(row["met"])]
        for row in figures["rows"]
    ]
    return table(["what", "n", "figure", "target", "met"], rows)


def augmented_cost(figures: dict[str, Any]) -> str:
    rows = [
        [f"{row['positives']:.0%}", row["step"], f"{row['ratio']:.3f}", f"<= {figures['target']}", verdict(row["met"])]
        for row in figures["rows"]
    ]
    return table(["positives", f"step at {figures['scores']:,} scores", "ratio to the pair sum", "target", "met"], rows)


def lp_speed(figures: dict[str, Any]) -> str:
    found = figures["F-score, forward and backward"]
    names = {"closed form": "closed form", "structured engine": "structured engine",
             "structured engine, warm": "from the last step"}  # fmt: skip
    ours = [name for name in names if all(name in row for row in found.values())]
    rows = [
        [size, *(f"{row[name]['milliseconds']:.3g}" for name in (*ours, row["fastest cvxpylayers"])),
         *(f"{row[f'{name} is faster by']:.3g}x" for name in ours)]
        for size, row in found.items()
    ]  # fmt: skip
    memory = [[name, f"{value:.3g}"] for name, value in figures["peak memory at n = 1024, MB"].items()]
    areas = [
        [batch, name, *([found, ""] if isinstance(found, str) else
         [f"{found['milliseconds']:.3g}", f"{found['peak memory, MB']:.3g}"])]
        for batch, forms in figures["AUC"].items() for name, found in forms.items()
    ]  # fmt: skip
    told = [names[name] for name in ours]
    header = ["F-score, ms", *told, "fastest cvxpylayers", *(f"{name}, faster by" for name in told)]
    peers = ", ".join(f"{name} {version}" for name, version in figures["peers"].items())
    parts = [f"Peers: {peers}.", table(header, rows)]
    if many := figures.get("a batch of F-score programs"):
        parts.append(
            f"A batch of 256 programs of n = 64: {many['ours']['milliseconds']:.3g} ms, "
            f"{many['faster by']:.3g}x as fast as a loop of cvxpylayers (target {many['target']:.0f}x)."
        )
    parts += [table(["peak memory at n = 1,024", "MB"], memory), table(["AUC", "form", "ms", "MB"], areas)]
    return "\n\n".join(parts)


def beside_peers(figures: dict[str, Any]) -> str:
    rows = [
        [width, name, found["error"], "", "", ""] if "error" in found else
        [width, name, f"{found['seconds']:.2f}", f"{found['milliseconds per step']:.3g}",
         f"{100 * found['FNR on test rows']:.2f} %",
         f"{found['our step beside theirs']:.2f}" if "our step beside theirs" in found else ""]
        for width, methods in figures["widths"].items() for name, found in methods.items()
    ]  # fmt: skip
    head = ["table", "method", "seconds", "ms per step", "FNR on test rows", "our step beside theirs (target 1.00)"]
    return f"{figures['rows']:,} rows to train on, full batches, one thread.\n\n{table(head, rows)}"


def before_after(figures: dict[str, Any]) -> str:
    rows = [
        [row["what"], f"{row['seconds before']:.3g}", f"{row['seconds after']:.3g}",
         f"{row['ratio']:.2f} ({row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f})",
         f"{row['ratio on the wall']:.2f}", str(row["rounds"])]
        for row in figures["rows"]
    ]  # fmt: skip
    versions, slower = figures["versions"], sum(row["slower"] for row in figures["rows"])
    above = sum(row["ratio"] > figures["most"] for row in figures["rows"])
    note = (
        f"Version {versions['before']} and version {versions['after']} take turns, each probe in a process of its own "
        "on one thread. Seconds are of the processor; a ratio is the median over the rounds, with its quartiles. "
        f"Lower quartile above {figures['most']}: {slower} of {len(rows)} probes; median above it: {above}. "
        "`--before DIR` names a checkout of the earlier version; `--only` measures one group of probes again and "
        "keeps the rows of the others, so the command above may be that of one group alone."
    )
    sides = [f"{versions[side]}, s" for side in ("before", "after")]
    head = ["probe", *sides, "ratio (quartiles)", "on the wall", "rounds"]
    return f"{note}\n\n{table(head, rows)}"


def spine(figures: dict[str, Any]) -> str:
    before = load_figures("spine_before")
    rows = [
        [case, f"{before[case]['seconds']:.2f}", f"{now['seconds']:.2f}",
         f"{before[case]['seconds'] / now['seconds']:.2f}x", now["own time"][0]["function"]]
        for case, now in figures.items()
    ]  # fmt: skip
    profile = "`benchmarks/results/spine_after.summary.json`"
    note = f"Processor seconds of the whole command; the profile of the later state is in {profile}."
    return f"{table(['setpoint fit', 'before', 'after', 'faster by', 'dearest now'], rows)}\n\n{note}"
