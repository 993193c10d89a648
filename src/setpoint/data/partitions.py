"""Chunks of a table worked on by the processes of a Dask cluster. Only this file imports Dask.

Each worker reads the chunks that it is given from the files, so all machines must see the files at the same paths
(`dask_frame.py` has chunks of a `dask.dataframe`). The results come back in the order of the chunks, a few at a time. A
chunk whose worker dies is given to another worker.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import Frame
from setpoint.data.scan import Chunk, Result
from setpoint.errors import BadSetting, missing

#: Chunks that are under way or waiting to be taken, per thread of the workers.
AHEAD = 3
#: Seconds to wait for the answer of a scheduler.
PATIENCE = 20
#: Seconds to wait for workers if all of them are gone or paused; a worker that was killed is soon replaced by another
#: process, but Dask pauses a worker near its memory limit for good if the packages alone take that much.
ABSENCE = 300
Reader = Callable[[], Frame]


def dask_packages() -> tuple[Any, Any]:
    """`dask` with its arrays, and `distributed`; or the error that says how to install them."""
    try:
        import dask.array  # noqa: PLC0415
        import distributed  # noqa: PLC0415
    except ImportError as cause:
        raise missing("distributed", "dask", cause) from None
    return dask, distributed


@contextmanager
def workers_at(where: str) -> Iterator[DaskWorkers]:
    """The workers of the scheduler at an address, or so many processes of this machine.

    Args:
        where: An address such as tcp://10.0.0.7:8786, or a number of processes.

    Raises:
        BadSetting: If this is neither, or nobody answers at the address.
        MissingPackage: If Dask is not installed.
    """
    is_number = where.isascii() and where.isdigit() and int(where) > 0
    if not is_number and "://" not in where:
        raise BadSetting(
            f"--workers takes a number of processes or an address such as tcp://10.0.0.7:8786, got {where!r}"
        )
    _, distributed = dask_packages()
    with ExitStack() as stack:
        address: Any = where
        if is_number:
            address = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=int(where), threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
                )
            )
        try:
            client = stack.enter_context(distributed.Client(address, timeout=PATIENCE))
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as cause:
            raise BadSetting(
                f"no Dask scheduler with workers answers at {where} ({cause}); start one, or give a number"
            ) from cause
        yield DaskWorkers(client)


@contextmanager
def workers_of(client: Any = None) -> Iterator[DaskWorkers]:
    """The workers of a client; without one those of the client in use, or else the threads of this process."""
    _, distributed = dask_packages()
    with ExitStack() as stack:
        if client is None:
            try:
                client = distributed.default_client()
            except ValueError:
                client = stack.enter_context(
                    distributed.Client(processes=False, dashboard_address=None, silence_logs=logging.ERROR)
                )
        yield DaskWorkers(client)


class DaskWorkers:
    """The workers of a Dask client, as `Scan.workers` takes them.

    Args:
        client: A `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def map(
        self, function: Callable[[Chunk, Frame], Result], readers: Iterable[tuple[Chunk, Reader]]
    ) -> Iterator[Result]:
        """The result of the function for every chunk, in the order given; an error in one is raised here."""
        # Sent once, not with every chunk. A task, unlike scattered data, is done again if its worker dies.
        sent = self.client.submit(_itself, function, key=f"function-{uuid.uuid4().hex}")
        most = AHEAD * max(sum(self.client.nthreads().values()), 1)
        under_way: deque[Any] = deque()
        try:
            for chunk, read in readers:
                under_way.append(self.client.submit(_work, sent, chunk, read, pure=False))
                if len(under_way) >= most:
                    yield self._result(under_way.popleft())
            while under_way:
                yield self._result(under_way.popleft())
        except Exception as cause:
            # A client that has lost its scheduler has errors of several classes, some of them new.
            if self.client.status == "running" and not isinstance(cause, CancelledError):
                raise
            raise BadSetting("the Dask scheduler is gone, and the work with it; start it again") from cause

    def _result(self, future: Any) -> Any:
        """The result of a task; an error if there has been no worker to do it for some time."""
        _, distributed = dask_packages()
        since = None
        while True:
            try:
                return future.result(timeout=1)
            except distributed.TimeoutError:
                # A task that is done may have lost its result with its worker: it is done again. An error is its own.
                if future.status == "error":
                    raise
                known = self.client.scheduler_info()["workers"].values()
                at_work = any(worker["status"] == "running" for worker in known)
                since = None if at_work else since or time.monotonic()
                if since is not None and time.monotonic() - since > ABSENCE:
                    raise BadSetting(
                        f"no Dask worker has taken work for {ABSENCE} seconds: {len(known)} are there, all of them "
                        "paused near their memory limit; start workers with more memory"
                        if known
                        else f"there has been no Dask worker for {ABSENCE} seconds; start workers, with more memory if "
                        "they came to their limit"
                    ) from None

    def grow(
        self,
        parts: Sequence[tuple[Callable[[], tuple[NDArray[Any], NDArray[Any]]], int]],
        width: int,
        fit: Callable[[Any, Any, Any], Any],
    ) -> Any:
        """The result of `fit(client, x, y)` for Dask arrays whose parts stay on the workers.

        Args:
            parts: For each part a function that gives its features and labels, and its number of rows.
            width: The number of features.
            fit: The function.
        """
        dask, _ = dask_packages()
        x, y = [], []
        for make, rows in parts:
            both = dask.delayed(_call, nout=2)(make)
            x.append(dask.array.from_delayed(both[0], (rows, width), dtype=np.float32))
            y.append(dask.array.from_delayed(both[1], (rows,), dtype=np.float32))
        return fit(self.client, dask.array.concatenate(x), dask.array.concatenate(y))


def _itself(value: Any) -> Any:
    return value


def _call(make: Callable[[], Any]) -> Any:
    return make()


def _work(function: Callable[[Chunk, Frame], Any], chunk: Chunk, read: Reader) -> Any:
    return function(chunk, read())
