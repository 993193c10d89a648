"""What docs/measured.md says of large tables."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.words import table, verdict


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
            f"{len(whole['seconds']['bare'])} turns: the script (`benchmarks/speed/bare_script.py`) reads, "
            "standardises and trains on all rows by cross-entropy, and sets nothing aside; ours trains on half of "
            "them and judges, certifies and compares on the rest."
        )
    rough = [name for name, part in figures.items() if isinstance(part, dict) and part["rough"]]
    parts.append(
        "Each part was measured by itself (`--only`), once, on a machine that others were using; wall times, and "
        f"what is carried on from them, are rough{', and so are those made with `--quick`: ' if rough else ''}"
        f"{', '.join(rough)}."
    )
    return "\n\n".join(parts)
