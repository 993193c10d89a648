"""Exported runs: decisions that differ from those of Python and of the streamed command; times beside onnxruntime.

Rows are made from the schema of each run: usual, huge, tiny and missing values, levels that training never saw, blanks
around words, repeated rows, and rows one step of a float64 from the threshold, which are also decided one by one.

    python -m benchmarks.speed.exported                         # all parts
    python -m benchmarks.speed.exported --part equal --kind trees --rows 1000000
    python -m benchmarks.speed.exported --part times            # 20 exports, `predict` of a million rows, single rows
    python -m benchmarks.speed.exported --part alone            # predict.py beside onnxruntime and numpy alone

A kind that was compared anew takes the place of its figures in the summary; the others stay.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import polars as pl
import torch

import setpoint as sp
from benchmarks.common.harness import load_figures, result_path, write_result
from setpoint.cli import main as command_line
from setpoint.data.frame import as_frame
from setpoint.export.feeds import feeds_of
from setpoint.export.made_rows import MadeRows, at_the_cut, columns_of, joined, made_rows
from setpoint.export.of_run import export_graph
from setpoint.export.verify import as_one_number
from setpoint.run.artefact import save_run, with_module
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.serve.run import ServedRun

ASK = "minimize fnr where fpr <= 5%"
CHUNK, PAIRS = 100_000, 400
PARTS = ("equal", "times", "alone")


@dataclass(frozen=True)
class Kind:
    """A kind of model and of question."""

    model: str = "linear"
    ask: str = ASK
    target: str = "y"


KINDS = {
    "linear": Kind(),
    "mlp": Kind("mlp"),
    "trees": Kind("trees"),
    "auto": Kind("auto"),
    "groups": Kind("trees", "minimize error where recall.gap(region) <= 20%"),
    "bands": Kind("trees", "minimize review where fpr <= 5% and fnr <= 20%"),
    "range": Kind(ask="maximize recall over fpr in [1%, 20%] with 4 points"),
    "classes": Kind("trees", "minimize error where recall of class low >= 60%", "level"),
    "labels": Kind("linear", "minimize fnr where fpr <= 10% for each of y, late", "y,late"),
}
#: The kinds of models: 20 exports are timed on five of each.
MODELS = ("linear", "mlp", "trees", "auto")


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
        "y": (signal > 1).astype(int), "late": (rate - 0.3 * amount + draw.logistic(size=rows) > 1).astype(int),
        "level": np.array(["low", "middle", "high"])[np.digitize(signal, [-1, 1])],
    })  # fmt: skip


def fitted(kind: Kind) -> Any:
    """A run of this kind; the street is target-encoded where there are two classes, the rooms are levels."""
    street = "target-encode" if kind.target == "y" else "categorical"
    others = tuple({"y", "late", "level"} - {*kind.target.split(",")})
    settings = Settings(model=kind.model, kinds={"street": street, "rooms": "categorical"}, drop=others)
    return fit_table(table(), kind.target, sp.ask(kind.ask), settings)


def session(content: bytes, threads: int = 1) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def compared(place: Path, saved: ServedRun, rows: int) -> dict[str, Any]:
    """How many rows differ in a decision or a score between Python, ONNX and the streamed command."""
    exported = export_graph(with_module(saved))
    run, draw = session(exported.content), np.random.default_rng(1)
    counts = dict.fromkeys(("rows", "at_the_threshold", "decisions_differ_onnx", "scores_differ_onnx"), 0)

    def fed(frame: pl.DataFrame) -> dict[str, Any]:
        return feeds_of(frame, exported.given, saved.schema.readings)

    first = made_rows(saved, exported.given, 5000, draw)
    free = [name for name in first if name != saved.point.problem.group]
    cut = joined(at_the_cut(first, free, lambda some: as_one_number(saved.predict(columns_of(some))), PAIRS, draw))
    counts["at_the_threshold"] = len(next(iter(cut.values())))
    one_by_one = alone_differ(saved, session(exported.content, 2), fed, typed(cut))
    parts, wanted = [], []
    for start in range(0, rows, CHUNK):
        some = made_rows(saved, exported.given, min(CHUNK, rows - start) // 2, draw)
        # Every row twice: ties of scores, and the same answer whatever stands beside a row.
        frame = typed(joined([some, some, cut] if start == 0 else [some, some]))
        scores, decisions = run.run(["score", "decision"], fed(frame))
        answer = saved.scores(frame)
        counts["rows"] += frame.height
        counts["decisions_differ_onnx"] += rows_that_differ(decisions, saved.decide(answer, frame))
        counts["scores_differ_onnx"] += rows_that_differ(scores, answer)
        parts.append(place / f"part-{start:07d}.parquet")
        wanted.append(pl.DataFrame(saved.columns(frame, answer)))
        frame.write_parquet(parts[-1])
    out = place / "out.parquet"
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
        command_line(["predict", str(place / "run"), *map(str, parts), "--stream", "--quiet", "--out", str(out)])
    streamed, own = pl.read_parquet(out), pl.concat(wanted)
    for part in parts:
        part.unlink()
    for what in ("decision", "score"):
        names = [name for name in own.columns if name.startswith(what)]
        both = (frame.select(names).to_numpy() for frame in (streamed, own))
        counts[f"{what}s_differ_streamed"] = rows_that_differ(*both)
    decided = own[next(name for name in own.columns if name.startswith("decision"))].cast(pl.String).value_counts()
    return {**counts, **one_by_one, "decided": dict(sorted(decided.iter_rows()))}


def typed(rows: MadeRows) -> pl.DataFrame:
    """The rows as a frame; a column of whole numbers is one of numbers all the same."""
    frame = as_frame(columns_of(rows))
    return frame.with_columns(pl.col("income", "age", "rooms").cast(pl.Float64))


def rows_that_differ(one: Any, other: Any) -> int:
    assert one.shape == other.shape
    return int((one != other).reshape(len(one), -1).any(1).sum())


def alone_differ(saved: ServedRun, run: Any, fed: Callable[[pl.DataFrame], Any], cut: pl.DataFrame) -> dict[str, int]:
    """Rows at the threshold whose decision changes when they are decided alone, by Python or by ONNX on two threads."""
    together = saved.predict(cut)
    python = [saved.predict(row) for row in cut.iter_rows(named=True)]
    onnx = [run.run(["decision"], fed(cut[place : place + 1]))[0] for place in range(cut.height)]
    return {
        "alone_differ_python": rows_that_differ(np.concatenate(python), together),
        "alone_differ_onnx": rows_that_differ(np.concatenate(onnx), together),
    }


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
    frame.drop("y", "late", "level").write_csv(place / "new.csv")
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


def equal(place: Path, kind: Kind, rows: int) -> dict[str, Any]:
    """The comparison for one kind."""
    saved = sp.load_run(save_run(place / "run", fitted(kind)))
    return {"model": type(with_module(saved).model).__name__, "ask": kind.ask, **compared(place, saved, rows)}


def times(folder: Path, rows: int) -> dict[str, Any]:
    """Seconds of 20 exports, of many rows and of single rows."""
    runs = [sp.load_run(save_run(folder / name / "run", fitted(KINDS[name]))) for name in MODELS]
    wall, before = time.perf_counter(), time.process_time()
    for number in range(20):
        sp.export_onnx(runs[number % len(runs)], folder / "model.onnx")
    exports = {"runs": 20, "seconds": round(time.perf_counter() - wall, 1),
               "processor_seconds": round(time.process_time() - before, 1)}  # fmt: skip
    row = {**table(1).drop("y", "late", "level").row(0, named=True)}
    written = {**row, "since": str(row["since"])}
    single = {
        f"{name}, {what}": round(1000 * processor_seconds(lambda: [run.predict(one) for _ in range(100)], 9) / 100, 3)  # noqa: B023
        for name, run in zip(MODELS, runs)
        for what, one in (("a date", row), ("a date as text", written))
    }
    return {"exports": exports, "predict": wide(rows), "one_row_with_words_and_dates_ms": single}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--kind", choices=KINDS, action="append")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part in given.part or PARTS:
            if part == "equal":
                for name in given.kind or KINDS:
                    found = {name: equal(folder / name, KINDS[name], given.rows)}
                    kept = load_figures("exported") if result_path("exported").is_file() else {}
                    write_result(
                        "exported", {each: {**kept, **found}[each] for each in KINDS if each in {**kept, **found}}
                    )
                    print(found, flush=True)
            elif part == "times":
                print(write_result("exported_times", times(folder, given.rows)))
            else:
                save_run(folder / "run", fitted(KINDS["trees"]))
                print(write_result("exported_alone", alone(folder)))


if __name__ == "__main__":
    main()
