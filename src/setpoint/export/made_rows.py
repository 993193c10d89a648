"""Rows made from a schema to try an exported model on: usual and odd values, and rows on both sides of the cut."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from setpoint.data.column import Categorical, Numeric
from setpoint.data.several import Times, Vector
from setpoint.data.target_mean import TargetMean
from setpoint.export.columns import Input
from setpoint.measure.in_first import LISTS
from setpoint.run.artefact import SavedRun

#: Columns by name, each an array of Python values, None where missing.
MadeRows: TypeAlias = dict[str, NDArray[Any]]
#: The decisions on some rows.
Decide: TypeAlias = Callable[[MadeRows], NDArray[np.int64]]

UNSEEN = "never seen before"
#: Into how many parts the stretch around a cut is divided in one step.
AT_ONCE = 16
_START = datetime.datetime(1970, 1, 1)
_DAYS = (-700_000, 2_900_000)


def made_rows(saved: SavedRun, given: Sequence[Input], rows: int, draw: Generator) -> MadeRows:
    """Rows in which each column has values as in training, huge and tiny ones, unseen levels and missing values."""
    about = {column.name: column for column in saved.schema.columns}
    made = {each.column: _values(about.get(each.column), each, rows, draw) for each in given}
    group = saved.point.problem.group
    if group is not None and saved.point.thresholds.by_group:
        kind = next(each.kind for each in given if each.column == group)
        names = [None if name == "(missing)" else name for name in saved.point.thresholds.by_group]
        made[group] = _picked([_as_kind(name, kind) for name in names], rows, draw)
    if saved.point.problem.kind == LISTS:
        return _in_lists(made, saved.about["settings"]["lists"], given, draw)
    return made


def _in_lists(made: MadeRows, column: str, given: Sequence[Input], draw: Generator) -> MadeRows:
    """The rows in lists of about ten, a third of them twice in the same list: their scores tie."""
    rows = len(made[column])
    kind = next(each.kind for each in given if each.column == column)
    numbers = draw.integers(0, 1 + rows // 10, rows)
    made = {**made, column: numbers.astype(float if kind == "number" else str).astype(object)}
    return take(made, np.where(draw.random(rows) < 0.3, draw.permutation(rows), np.arange(rows)))


def take(rows: MadeRows, places: Any) -> MadeRows:
    """Some of the rows."""
    return {name: values[places] for name, values in rows.items()}


def joined(parts: Sequence[MadeRows]) -> MadeRows:
    """All rows of several parts."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def columns_of(rows: MadeRows) -> dict[str, list[Any]]:
    """The columns as lists, for a frame."""
    return {name: values.tolist() for name, values in rows.items()}


def at_the_cut(rows: MadeRows, free: Sequence[str], decide: Decide, pairs: int, draw: Generator) -> list[MadeRows]:
    """Pairs of rows that are decided differently and differ in one number alone, by the least step of a float64.

    Args:
        rows: Rows to start from.
        free: The columns that may differ.
        decide: The decision on each row.
        pairs: The number of pairs to start from; fewer are found.
        draw: The source of random numbers.
    """
    decisions = decide(rows)
    first, second = (draw.integers(0, len(decisions), 20 * pairs) for _ in range(2))
    differ = np.flatnonzero(decisions[first] != decisions[second])[:pairs]
    if not len(differ):
        return []
    here, there = take(rows, first[differ]), take(rows, second[differ])
    found: list[tuple[MadeRows, str, NDArray[Any]]] = []
    for name in free:
        # From here to there, a column after the other; the column that changes the decision is looked at closely.
        moved = {**here, name: there[name]}
        rest = decide(moved) == decide(here)
        close = ~rest & np.array([_is_finite(a) and _is_finite(b) for a, b in zip(here[name], there[name])])
        if close.any():
            found.append(_apart_in_one(take(here, close), name, there[name][close], decide))
        here, there = take(moved, rest), take(there, rest)
        if not rest.any():
            break
    return _bisected(found, decide) if found else []


def _is_finite(value: Any) -> bool:
    return isinstance(value, (float, list)) and bool(np.isfinite(value).all())


def _apart_in_one(rows: MadeRows, name: str, ends: NDArray[Any], decide: Decide) -> tuple[MadeRows, str, NDArray[Any]]:
    """The rows, the column and its other values; of lists, which change the decision, one number alone is another."""
    if not isinstance(ends[0], list):
        return rows, name, ends
    one, other = np.array(rows[name].tolist()), np.array(ends.tolist())
    start, low, high = decide(rows), np.zeros(len(one), dtype=int), np.full(len(one), one.shape[1])

    def until(places: NDArray[np.int64]) -> NDArray[Any]:
        """Lists whose first numbers are those of the other list."""
        return _as_lists(np.where(np.arange(one.shape[1]) < places[:, None], other, one))

    while (high - low > 1).any():
        middle = (low + high) // 2
        differs = decide({**rows, name: until(middle)}) != start
        low, high = np.where(differs, low, middle), np.where(differs, middle, high)
    return {**rows, name: until(low)}, name, until(low + 1)


def _as_lists(values: NDArray[np.float64]) -> NDArray[Any]:
    lists = np.empty(len(values), dtype=object)
    lists[:] = values.tolist()
    return lists


def _numbers_apart(here: NDArray[Any], there: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """The numbers in which values differ, and their places in lists."""
    if not isinstance(here[0], list):
        return here, there, np.zeros(len(here), dtype=np.int64)
    one, other = np.array(here.tolist()), np.array(there.tolist())
    places, each = (one != other).argmax(1), np.arange(len(one))
    return one[each, places], other[each, places], places


def _bisected(found: list[tuple[MadeRows, str, NDArray[Any]]], decide: Decide) -> list[MadeRows]:
    """The rows, each with the two neighbouring values of its own column between which the decision changes."""
    rows = joined([own for own, _, _ in found])
    own = np.concatenate([np.full(len(ends), name, dtype=object) for _, name, ends in found])
    apart = [_numbers_apart(part[name], ends) for part, name, ends in found]
    low, high, place = (np.concatenate(each) for each in zip(*apart))
    low, high = _ordered(low), _ordered(high)
    start = decide(rows)

    def at(places: NDArray[Any], whose: NDArray[np.int64]) -> MadeRows:
        values = _numbers(places)
        moved = {name: column[whose] for name, column in rows.items()}
        for row, (name, value) in enumerate(zip(own[whose], values)):
            some, at_place = moved[name][row], place[whose[row]]
            of_list = isinstance(some, list)
            moved[name][row] = [*some[:at_place], value, *some[at_place + 1 :]] if of_list else value
        return moved

    whose = np.arange(len(own))
    steps, each = np.arange(1, AT_ONCE).astype(object), np.repeat(whose, AT_ONCE - 1)
    while (abs(high - low) > 1).any():
        # Several places between the ends at once; the ends of the next step are the first two that differ.
        between = low[:, None] + (high - low)[:, None] * steps // AT_ONCE
        differs = decide(at(between.reshape(-1), each)).reshape(between.shape) != start[:, None]
        tried = np.concatenate([low[:, None], between, high[:, None]], axis=1)
        first = np.where(differs.any(1), differs.argmax(1), AT_ONCE - 1)
        low, high = tried[whose, first], tried[whose, first + 1]
    return [at(low, whose), at(high, whose)]


def _ordered(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the order of the values; neighbours are neighbouring float64 numbers."""
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits).astype(object)


def _numbers(ordered: NDArray[Any]) -> NDArray[Any]:
    whole = ordered.astype(np.int64)
    return np.where(whole < 0, np.int64(-(2**63)) - whole, whole).view(np.float64).astype(object)


def _values(about: Any, given: Input, rows: int, draw: Generator) -> NDArray[Any]:
    if isinstance(about, (Categorical, TargetMean)):
        return _levels(about, given, rows, draw)
    if isinstance(about, Times):
        span = draw.uniform(about.amounts[0].low - 400, about.amounts[0].high + 400, rows)
        zone = datetime.timezone.utc if given.kind == "time with a zone" else None
        times = [(_START + datetime.timedelta(days=float(d))).replace(tzinfo=zone) for d in np.clip(span, *_DAYS)]
        return _with_missing(np.array(times, dtype=object), draw)
    if isinstance(about, Vector):
        each = np.stack([_usual(amount, rows, draw) for amount in about.amounts], axis=1)
        wide = draw.normal(size=(rows, about.length))
        wide[:, list(about.places)] = each
        return _with_missing(_as_lists(wide), draw)
    if isinstance(about, Numeric) and given.kind == "time of day":
        parts = draw.integers(0, (24, 60, 60, 10**6), (rows, 4)).tolist()
        clocks = [datetime.time(*each) for each in parts]
        return _with_missing(np.array(clocks, dtype=object), draw)
    if isinstance(about, Numeric) and given.kind == "duration":
        spans = draw.uniform(about.low, about.high, rows).round()
        return _with_missing(np.array([datetime.timedelta(microseconds=float(s)) for s in spans], dtype=object), draw)
    assert isinstance(about, Numeric) or about is None
    return _picked([None], rows, draw) if about is None else _odd_numbers(about, rows, draw)


def _usual(about: Numeric, rows: int, draw: Generator) -> NDArray[np.float64]:
    return draw.normal(about.mean, about.deviation, rows)


def _odd_numbers(about: Numeric, rows: int, draw: Generator) -> NDArray[Any]:
    """Numbers of which a tenth is missing, infinite, huge, tiny, at an end of the range or where the tails begin."""
    values = _usual(about, rows, draw).astype(object)
    tail = [about.mean + side * 5 * about.deviation for side in (-1, 1)]
    ends = [about.low, about.high, about.mean, *tail, *about.levels, 0.0, -0.0, 1e-310, None]
    ends += [side * size for side in (-1, 1) for size in (1e30, 1e300, np.inf)]
    odd = draw.random(rows) < 0.1
    values[odd] = _picked(ends, int(odd.sum()), draw)
    return values


def _levels(about: Categorical | TargetMean, given: Input, rows: int, draw: Generator) -> NDArray[Any]:
    known = [_as_kind(level, given.kind) for level in about.levels]
    values = _picked(known, rows, draw)
    usual = [None, "", "NA", " n/a ", UNSEEN, f" {about.levels[0]}\t", about.levels[-1].upper()]
    odd_of: dict[str, list[Any]] = {"number": [None, 12345.75, -1.0], "boolean": [True, False], "boolean text": [None]}
    rare = draw.random(rows) < 0.1
    values[rare] = _picked(odd_of.get(given.kind, usual), int(rare.sum()), draw)
    return values


def _as_kind(level: str | None, kind: str) -> Any:
    if level is None or kind == "words":
        return level
    return float(level) if kind == "number" else level == "true"


def _picked(values: Sequence[Any], rows: int, draw: Generator) -> NDArray[Any]:
    known = np.empty(len(values), dtype=object)
    known[:] = list(values)
    return known[draw.integers(0, len(values), rows)]


def _with_missing(values: NDArray[Any], draw: Generator) -> NDArray[Any]:
    values[draw.random(len(values)) < 0.05] = None
    return values
