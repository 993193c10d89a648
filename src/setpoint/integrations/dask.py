"""Tables that Dask holds: a `dask.dataframe` is fitted, answered, judged, calibrated and watched by its workers.

Its partitions are the chunks of `setpoint fit --workers`, so there is one pipeline: sums and tallies of partitions are
added up in their order, and the answer is the same for any number of workers, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from setpoint.data.dask_frame import Partitions, answered_lazily
from setpoint.data.exchange import refuse_kept
from setpoint.data.frame import as_frame, named_columns
from setpoint.data.partitions import workers_of
from setpoint.decide.settle import Confidence
from setpoint.errors import BadSetting, TooFewSamples
from setpoint.lock import locked
from setpoint.measure.in_first import LISTS
from setpoint.problem.certificate import AUTO
from setpoint.problem.language import ask as read_ask
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.watch import Watch
from setpoint.run.artefact import check_place, load_run, save_run
from setpoint.run.labelled_rows import labelled_rows
from setpoint.run.recalibrate import recalibrate
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream
from setpoint.run.tallies import JudgedRun, judged_in_chunks
from setpoint.run.watching import Batch, WatchedRun
from setpoint.serve.run import ServedRun
from setpoint.serve.run import load_run as load_served

Where = str | os.PathLike[str]


def fit(
    frame: Any,
    target: str,
    problem: str | Problem,
    run: Where,
    settings: Settings | None = None,
    *,
    positive: str | None = None,
    force: bool = False,
    client: Any = None,
) -> ServedRun:
    """Train on a `dask.dataframe` and write the run, as `setpoint fit --workers` does for files.

    Linear models are trained by exact sums over partitions, trees by LightGBM's Dask estimator. Every pass computes the
    partitions anew, so persist a frame that took long to make.

    Args:
        frame: The `dask.dataframe`.
        target: The column to predict.
        problem: The ask.
        run: The directory of the run.
        settings: How to train; `Settings(model="trees")` grows trees.
        positive: The positive class. None finds it.
        force: Whether to replace an earlier run there.
        client: The `distributed.Client` whose workers do the work. None takes the client in use; without one, threads
            of this process do it.

    Returns:
        The run, as `sp.load_run` gives it.

    Raises:
        BadTable: If the target or a column cannot be used.
        BadSetting: If the ask or a setting needs all rows in memory.
        MissingPackage: If Dask is not installed.

    Example:
        ```python
        frame = dask.dataframe.read_parquet("loans/*.parquet")
        run = fit(frame, "default", "minimize fnr where fpr <= 1%", "run")
        ```
    """
    check_place(run, force=force)
    asked = read_ask(problem) if isinstance(problem, str) else problem
    with workers_of(client) as workers:
        table = fit_stream(Partitions(frame, workers), target, asked, settings, positive=positive)
    return load_served(save_run(run, replace(table, data={**table.data, "files": [_NAME]}), force=force))


def predict(run: Where | ServedRun, frame: Any, *, keep: Sequence[str] = (), ignore_extra: bool = False) -> Any:
    """Scores and decisions of a `dask.dataframe`, as another one with the same index; nothing is computed yet.

    Args:
        run: The directory of a run, or the run that `sp.load_run` gave.
        frame: The `dask.dataframe`.
        keep: Columns of the frame to stand before the answers.
        ignore_extra: Whether to allow columns that training never had.

    Returns:
        A `dask.dataframe` with the columns that `setpoint predict` writes.

    Raises:
        BadSetting: If the ask is about lists, which partitions may cut.
        BadTable: If there is no such column to keep, or it is named as an answer is.

    Example:
        ```python
        predict("run", frame, keep=["customer"]).to_parquet("decisions")
        ```
    """
    saved = run if isinstance(run, ServedRun) else load_served(run)
    if saved.point.problem.kind == LISTS:
        raise BadSetting("rows are ranked within whole lists, and partitions may cut a list; predict a frame in memory")
    names = [str(name) for name in getattr(frame, "columns", keep)]
    kept = tuple(named_columns([str(name) for name in ([keep] if isinstance(keep, str) else keep)], names, "keep"))
    return answered_lazily(frame, _answered, saved, kept, ignore_extra)


def evaluate(
    run: Where, frame: Any, *, level: float = 0.05, ignore_extra: bool = False, client: Any = None
) -> JudgedRun:
    """Judge a run on new labelled rows, as `setpoint evaluate --workers` does.

    Args:
        run: The directory of the run.
        frame: The `dask.dataframe`, with the target.
        level: The level of the test.
        ignore_extra: Whether to allow columns that training never had.
        client: The `distributed.Client`, as in `fit`.

    Returns:
        The point on these rows (`here`), the exact test of each bound (`check`), the best cut and notes. Rows without a
        label are left out if training left them out.

    Example:
        ```python
        evaluate("run", january).check.holds
        ```
    """
    saved = load_run(run)
    with workers_of(client) as workers:
        rows, _ = labelled_rows(saved, Partitions(frame, workers))
        return judged_in_chunks(saved, rows, level, ignore_extra=ignore_extra)


def calibrate(
    run: Where, frame: Any, confidence: Confidence = AUTO, *, ignore_extra: bool = False, client: Any = None
) -> OperatingPoint:
    """Set the threshold of a run anew on fresh labelled rows, as `setpoint calibrate --workers` does.

    Args:
        run: The directory of the run, whose record gets the new point; the model stays.
        frame: The `dask.dataframe`, with the target.
        confidence: The confidence of the certificate; "auto" is 0.95 where the rows suffice, None asks for none.
        ignore_extra: Whether to allow columns that training never had.
        client: The `distributed.Client`, as in `fit`.

    Returns:
        The new point.

    Raises:
        TooFewSamples: If a certificate that `confidence` demands cannot be given; the run stays as it was.

    Example:
        ```python
        print(calibrate("run", january, 0.95).certificate)
        ```
    """
    path = Path(run)
    with locked(path), workers_of(client) as workers:
        batch = _batch(Partitions(frame, workers), _NAME, ignore_extra)
        fresh = recalibrate(path, batch, confidence, in_chunks=True)
    if not fresh.is_set:
        raise TooFewSamples(f"{fresh.settled.refusal}; {path} keeps its threshold")
    return fresh.point


def watch(run: Where, frame: Any, name: str, *, labelled: bool = True, client: Any = None) -> Watch:
    """One more look at a run in use, as `setpoint watch --workers` takes it.

    Args:
        run: The directory of the run, whose record gets the look; rows that were counted before are not counted again.
        frame: The `dask.dataframe`, with the target or without.
        name: The name of the look in the record.
        labelled: Whether the rows have labels.
        client: The `distributed.Client`, as in `fit`.

    Returns:
        The record: `broken` says whether the promise is.

    Example:
        ```python
        watch("run", january, "January").broken
        ```
    """
    path = Path(run)
    with locked(path), workers_of(client) as workers:
        batch, watched = _batch(Partitions(frame, workers), name), WatchedRun(path, load_run(path))
        if watched.known(batch) is None:
            watched.look(batch, watched.saved.schema.notes(), labelled=labelled)
            watched.write()
    return watched.watch


_NAME = "a Dask frame"


def _batch(scan: Partitions, name: str, ignore_extra: bool = False) -> Batch:
    return Batch(scan, scan.fingerprint()["sha256"], name, ignore_extra)


def _answered(part: Any, saved: ServedRun, keep: tuple[str, ...], ignore_extra: bool) -> Any:
    """The answers to a pandas frame, with its index."""
    used = {column.name for column in saved.schema.columns}
    rows = as_frame(part)
    scores = saved.scores(rows.drop([name for name in keep if name not in used]), ignore_extra=ignore_extra)
    answers = saved.columns(rows, scores)
    refuse_kept(keep, answers)
    own = {str(name): name for name in part.columns}
    return part[[own[name] for name in keep]].assign(**answers)
