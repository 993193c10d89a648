"""Exported runs: decisions that differ from those of Python and of the streamed command; times beside onnxruntime.

Rows are made from the schema of each run: usual, huge, tiny and missing values, levels that training never saw, blanks
around words, repeated rows, and rows one step of a float64 from the threshold. Times are of the processor, on one
thread.

    python -m benchmarks.speed.exported --rows 1000000
    python -m benchmarks.speed.exported --alone   # predict.py in a new environment of onnxruntime and numpy alone
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import statistics
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import polars as pl
import torch

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.cli import main as command_line
from setpoint.data.frame import as_frame
from setpoint.export.feeds import feeds_of
from setpoint.export.made_rows import at_the_cut, columns_of, joined, made_rows
from setpoint.export.of_run import export_graph
from setpoint.run.artefact import save_run, with_module
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.serve.run import ServedRun

KINDS = ("linear", "mlp", "trees", "auto")
ASK = "minimize fnr where fpr <= 5%"
CHUNK, PAIRS = 100_000, 400


def table(rows: int = 6000) -> pl.DataFrame:
    """Numbers with heavy tails, missing values, levels, a boolean and dates, and a target that depends on some."""
    draw = np.random.default_rng(0)
    amount, rate = draw.standard_t(3, rows), draw.normal(size=rows)
    job = draw.choice(["clerk", "nurse", "new york", "pilot"], rows, p=[0.4, 0.3, 0.2, 0.1])
    income = np.where(draw.random(rows) < 0.2, np.nan, np.exp(amount + draw.normal(size=rows)))
    signal = 0.8 * amount + rate * (job == "nurse") + draw.logistic(size=rows)
    days = pl.date_range(pl.date(2022, 1, 1), pl.date(2024, 12, 31), eager=True)
    return pl.DataFrame({
        "amount": amount, "rate": rate,
        "income": pl.Series(income).fill_nan(None),
        "age": draw.integers(18, 90, rows), "job": job, "region": draw.choice(["a", "b", "c", ""], rows),
        "married": draw.random(rows) < 0.5, "since": days.sample(rows, with_replacement=True, seed=0),
        "street": draw.choice([f"street {k}" for k in range(60)], rows), "rooms": draw.integers(1, 6, rows),
        "y": (signal > 1).astype(int),
    })  # fmt: skip


def fitted(kind: str) -> Any:
    """A run of this kind of model; the street is target-encoded, the rooms are levels."""
    settings = Settings(model=kind, kinds={"street": "target-encode", "rooms": "categorical"})
    return fit_table(table(), "y", sp.ask(ASK), settings)


def session(content: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def compared(place: Path, saved: ServedRun, rows: int) -> dict[str, int]:
    """How many decisions and scores differ, in all rows, between Python, ONNX and the streamed command."""
    exported = export_graph(with_module(saved))
    run, draw = session(exported.content), np.random.default_rng(1)
    counts = {"rows": 0, "at_the_threshold": 0, "decisions_differ_onnx": 0, "decisions_differ_streamed": 0,
              "scores_differ_onnx": 0, "scores_differ_streamed": 0, "flagged": 0}  # fmt: skip
    parts, decide = [], lambda some: saved.predict(columns_of(some))
    first = made_rows(saved, exported.given, 5000, draw)
    cut = joined(at_the_cut(first, list(first), decide, PAIRS, draw))
    counts["at_the_threshold"] = len(next(iter(cut.values())))
    for start in range(0, rows, CHUNK):
        some = made_rows(saved, exported.given, min(CHUNK, rows - start) // 2, draw)
        # Every row twice: ties of scores, and the same answer whatever stands beside a row.
        frame = as_frame(columns_of(joined([some, some, cut] if start == 0 else [some, some])))
        frame = frame.with_columns(pl.col("income", "age", "rooms").cast(pl.Float64))
        scores, decisions = run.run(["score", "decision"], feeds_of(frame, exported.given, saved.schema.readings))
        answer = saved.scores(frame)
        decided = saved.decide(answer, frame)
        counts["rows"] += frame.height
        counts["flagged"] += int(decided.sum())
        counts["decisions_differ_onnx"] += int((decisions != decided).sum())
        counts["scores_differ_onnx"] += int((scores != answer).sum())
        part = place / f"part-{start}.parquet"
        frame.write_parquet(part)
        parts.append((part, answer, decided))
    out = place / "out.parquet"
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        command_line(
            ["predict", str(place / "run"), *(str(p) for p, _, _ in parts), "--stream", "--quiet", "--out", str(out)]
        )
    streamed = pl.read_parquet(out)
    counts["decisions_differ_streamed"] = int(
        (streamed["decision"].to_numpy() != np.concatenate([d for *_, d in parts])).sum()
    )
    counts["scores_differ_streamed"] = int(
        (streamed["score"].to_numpy() != np.concatenate([s for _, s, _ in parts])).sum()
    )
    for part, *_ in parts:
        part.unlink()
    return counts


def processor_seconds(act: Any, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        before = time.process_time()
        act()
        times.append(time.process_time() - before)
    return statistics.median(times)


def wide(rows: int) -> dict[str, float]:
    """`predict` of many rows of 50 numbers, and of one row, beside onnxruntime alone on rows that are ready for it."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(4000, 50))
    frame = pl.DataFrame({f"x{k}": x[:, k] for k in range(50)}).with_columns(
        y=pl.Series(x[:, 0] + draw.normal(size=4000) > 1)
    )
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(model="linear", solver="cross-entropy")
        saved = sp.load_run(save_run(Path(place) / "run", fit_table(frame, "y", sp.ask(ASK), settings)))
    exported = export_graph(with_module(saved))
    run = session(exported.content)
    many = pl.DataFrame({f"x{k}": draw.normal(size=rows) for k in range(50)})
    feeds = feeds_of(many, exported.given, saved.schema.readings)
    one, single = many.row(0, named=True), {name: values[:1] for name, values in feeds.items()}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    python = processor_seconds(lambda: saved.predict(many), 3)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    alone = processor_seconds(lambda: run.run(None, feeds), 3)
    one_by_one = {
        "one_row_python_ms": lambda: [saved.predict(one) for _ in range(50)],
        "one_answer_python_ms": lambda: [saved.answer([one]) for _ in range(50)],
        "one_row_onnxruntime_ms": lambda: [run.run(None, single) for _ in range(50)],
    }
    return {
        "rows": rows, "columns": 50, "python_seconds": round(python, 3), "onnxruntime_seconds": round(alone, 3),
        "ratio": round(python / alone, 3), "peak_megabytes": round(after / 1024),
        "grown_by_megabytes": round((after - before) / 1024),
        **{name: round(20 * processor_seconds(act, 5), 3) for name, act in one_by_one.items()},
    }  # fmt: skip


def alone(place: Path) -> dict[str, Any]:
    """`predict.py` in an environment that has onnxruntime and numpy alone, beside `setpoint predict`."""
    frame = table(3000)
    frame.drop("y").write_csv(place / "new.csv")
    for arguments in (
        ["export", "run", "model.onnx", "--quiet"],
        ["predict", "run", "new.csv", "--quiet", "--out", "own.csv"],
    ):
        here = [
            str(place / part) if part in ("run", "new.csv", "model.onnx", "own.csv") else part for part in arguments
        ]
        with contextlib.suppress(SystemExit):
            command_line(here)
    venv.create(place / "venv", with_pip=True)
    python = place / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "onnxruntime", "numpy"], check=True)
    # Without PYTHONPATH, so that nothing of setpoint is in reach.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    written = subprocess.run(
        [python, place / "predict.py", place / "model.onnx", place / "new.csv"],
        check=True, capture_output=True, text=True, env=bare, cwd=place,
    ).stdout  # fmt: skip
    own = (place / "own.csv").read_text()
    return {"rows": frame.height, "lines_differ": sum(a != b for a, b in zip(written.splitlines(), own.splitlines())),
            "same_length": len(written.splitlines()) == len(own.splitlines())}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if given.alone:
            save_run(Path(folder) / "run", fitted("trees"))
            figures = alone(Path(folder))
        else:
            figures["kinds"], exports = {}, []
            for kind in KINDS:
                place = Path(folder) / kind
                saved = sp.load_run(save_run(place / "run", fitted(kind)))
                wall, before = time.perf_counter(), time.process_time()
                for _ in range(5):
                    sp.export_onnx(saved, place / "model.onnx")
                exports.append((time.process_time() - before, time.perf_counter() - wall))
                figures["kinds"][kind] = {
                    "model": type(with_module(saved).model).__name__,
                    **compared(place, saved, given.rows),
                }
                print(kind, figures["kinds"][kind], flush=True)
            spent = [round(sum(each), 1) for each in zip(*exports)]
            figures["exports"] = {"runs": 5 * len(KINDS), "processor_seconds": spent[0], "seconds": spent[1]}
            figures["predict"] = wide(given.rows)
    print({name: value for name, value in figures.items() if name != "kinds"})
    print(write_result("exported_alone" if given.alone else "exported", figures))


if __name__ == "__main__":
    main()
