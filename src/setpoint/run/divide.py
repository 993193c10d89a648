"""How the rows of a table are divided into parts: at random, by clusters of rows, or by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.data.cluster_column import column_of_clusters, refuse_missing
from setpoint.data.frame import Column, Frame
from setpoint.data.reading import is_text, nearest_reading, spoken_kind
from setpoint.data.spelling import may_be_two_dates
from setpoint.data.split import split, split_by_time, split_clusters
from setpoint.errors import BadSetting, BadTable
from setpoint.measure.sample import name_groups
from setpoint.run.settings import Settings
from setpoint.serve.description import PARTS


@dataclass(frozen=True)
class Divided:
    """The row numbers of each part, the cluster of each row where there are clusters, and sentences that say it."""

    rows: dict[str, Tensor]
    clusters: Tensor | None = None
    notes: tuple[str, ...] = ()


def divide(
    frame: Frame, labels: Tensor, settings: Settings, classes: Sequence[str] = (), lists: Tensor | None = None
) -> Divided:
    """The rows of each part, as the settings ask for; `lists` stay whole.

    Raises:
        BadSetting: If rows of several labels are to be split by clusters or by time.
        BadTable: If the column of clusters or of times has missing values, or times are neither dates nor numbers.
        TooFewSamples: If a part would lack a class.
    """
    if labels.dim() == 2 and (settings.cluster or settings.time):
        raise BadSetting("--cluster and --time split rows of one target; leave them out for several labels")
    if settings.cluster is not None:
        codes = name_groups(column_of_clusters(frame, settings.cluster))[0]
        rows = _named(split_clusters(labels, settings.shares, settings.seed, codes, classes))
        sizes = ", ".join(f"{len(codes[own].unique())} {_word(part)}" for part, own in rows.items())
        note = f"rows of one {settings.cluster!r} stay in one part: {sizes}"
        return Divided(rows, codes, (note,))
    if settings.time is not None:
        times = _times(frame, settings.time, len(settings.shares))
        rows = _named(split_by_time(labels, settings.shares, times, classes))
        column = frame[settings.time]
        spans = [f"{_word(part)} {_span(column[own.numpy()])}" for part, own in rows.items()]
        return Divided(rows, None, (f"rows are split by {settings.time!r}: {', '.join(spans)}",))
    return Divided(_named(split(labels, settings.shares, settings.seed, names=classes, lists=lists)))


def _named(parts: list[Tensor]) -> dict[str, Tensor]:
    return dict(zip(PARTS, parts))


def _span(times: Column) -> str:
    """The first and the last of some times; midnight is a day."""
    return " to ".join(str(end).removesuffix(" 00:00:00") for end in (times.min(), times.max()))


def _word(part: str) -> str:
    return part.replace("_", "-")


def _times(frame: Frame, name: str, parts: int) -> Tensor:
    refuse_missing(frame, name, "each row needs its time")
    column = frame[name]
    if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        raise BadTable(f"--time {name!r} holds {_no_time(column)}")
    if (known := column.n_unique()) < parts:
        raise BadTable(
            f"--time {name!r} holds {known} different value{'s' * (known > 1)}, too few for {parts} parts; name a "
            "column that tells more times apart"
        )
    values = column.to_physical().to_numpy()
    return torch.from_numpy(values.copy())


def _no_time(column: Column) -> str:
    """The end of the sentence on a column that holds no times."""
    if not is_text(column):
        return f"{spoken_kind(column)}; rows are split by dates, times or numbers"
    if may_be_two_dates(column):
        return f"dates such as {column[0]!r}, of which the day or the month may come first; write them as 2024-12-31"
    spoken, fitting, odd = nearest_reading(column)
    if fitting is None or odd is None:
        return f"words such as {column[0]!r}; rows are split by dates, times or numbers"
    return f"{odd!r} beside {spoken} such as {fitting!r}; write every row in one form"
