"""Tables that Dask holds: the partitions of a `dask.dataframe` are chunks, which the workers compute."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import polars as pl

from setpoint.data.frame import Frame, as_frame
from setpoint.data.partitions import DaskWorkers, Reader, dask_packages
from setpoint.data.scan import Chunk, Scan, fingerprint
from setpoint.errors import BadTable


class Partitions(Scan):
    """A `dask.dataframe` whose partitions are the chunks of a table; workers compute each where it is needed.

    Args:
        frame: The `dask.dataframe`. Its partitions are computed once per pass, always with the same rows.
        workers: The workers.

    Raises:
        BadTable: If it is no `dask.dataframe`, or has no rows.
    """

    def __init__(self, frame: Any, workers: DaskWorkers) -> None:
        dask, distributed = dask_packages()
        refuse_other_frames(frame)
        self.paths, self.workers, self.client = [], workers, workers.client
        # The types of made rows, since words without any row have none; values of any type are read as text is.
        made = as_frame(frame._meta_nonempty).schema
        self.schema = pl.Schema({name: pl.String() if kind == pl.Object else kind for name, kind in made.items()})
        persisted = bool(distributed.futures_of(frame))
        self.parts: dict[Chunk, Partition] = {}
        first = 0
        lengths = workers.client.compute(frame.map_partitions(len)).result()
        for part, rows in zip(frame.to_delayed(), lengths):
            if rows:
                chunk = Chunk(first, int(rows))
                # Each by itself, so that a worker is sent the graph of one partition, not that of all.
                (alone,) = dask.optimize(part)
                self.parts[chunk] = Partition(alone, chunk.rows, self.schema, persisted)
                first += chunk.rows
        if not first:
            raise BadTable("the Dask frame has no rows")
        self.chunks = list(self.parts)

    def read(self, chunk: Chunk) -> Frame:
        part = self.parts[chunk]
        return part.checked(self.client.compute(part.delayed).result())

    def reader(self, chunk: Chunk) -> Reader:
        return self.parts[chunk]

    def fingerprint(self) -> dict[str, Any]:
        """The number of rows and columns, and a SHA-256 of the partitions in order, of their values."""
        found = hashlib.sha256("".join(self.map(_hash)).encode())
        return {"rows": self.rows, "columns": len(self.columns), "sha256": found.hexdigest()}


class Partition:
    """A function that computes one partition, in the worker that calls it.

    Args:
        delayed: The partition as a `dask.delayed` object.
        rows: Its number of rows.
        schema: The types of its columns.
        persisted: Whether it depends on data that workers hold, for which the scheduler must be asked.
    """

    def __init__(self, delayed: Any, rows: int, schema: pl.Schema, persisted: bool) -> None:
        self.delayed, self.rows, self.schema, self.persisted = delayed, rows, schema, persisted

    def __call__(self) -> Frame:
        if not self.persisted:
            return self.checked(self.delayed.compute(scheduler="synchronous"))
        _, distributed = dask_packages()
        with distributed.worker_client() as client:
            return self.checked(client.compute(self.delayed).result())

    def checked(self, values: Any) -> Frame:
        """The partition as a frame with the types of the whole, if it has as many rows as before."""
        try:
            frame = as_frame(values).select(self.schema.names()).cast(self.schema)
        except pl.exceptions.PolarsError as cause:
            raise BadTable(
                f"a partition of the Dask frame has other columns or types than the frame says ({cause}); "
                "set them with astype, or check the meta of map_partitions"
            ) from cause
        if frame.height != self.rows:
            raise BadTable(
                f"a partition of the Dask frame had {self.rows} rows and has {frame.height} now; persist the frame, or "
                "write it to files, so that every pass sees the same rows"
            )
        return frame


def answered_lazily(frame: Any, answer: Callable[..., Any], *given: Any) -> Any:
    """The `dask.dataframe` of a function of each partition, computed when it is asked for.

    Args:
        frame: The `dask.dataframe`.
        answer: A function of a pandas frame that gives one with as many rows, also of a frame without rows.
        given: Further arguments of the function.
    """
    refuse_other_frames(frame)
    return frame.map_partitions(answer, *given, meta=answer(frame._meta, *given))


def refuse_other_frames(frame: Any) -> None:
    """Refuse what is no `dask.dataframe`."""
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "map_partitions") or not hasattr(frame, "columns"):
        name = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise BadTable(f"a dask.dataframe is expected, got {name}; tables in memory go to setpoint.run.table.fit_table")


def _hash(chunk: Chunk, frame: Frame) -> str:
    return str(fingerprint(frame)["sha256"])
