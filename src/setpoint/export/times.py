"""Dates and times in a graph: text such as 2024-03-01T12:30:00 becomes microseconds, and these years to hours."""

from __future__ import annotations

import numpy as np

from setpoint.export.graph import DOUBLE, INT, Graph
from setpoint.export.levels import is_missing

DAY, HOUR, MINUTE, SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
_ZONE = r"(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)"
#: The text of each kind of time.
SHAPES = {
    "time": f"{_DATE}(?:[T ]{_CLOCK})?",
    "time with a zone": f"{_DATE}(?:[T ]{_CLOCK})?{_ZONE}",
    "time of day": _CLOCK,
}
#: What stands in for a missing time while the graph runs.
_STANDS_IN = {"time": "1970-01-01", "time with a zone": "1970-01-01Z", "time of day": "00:00"}
_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def moments(graph: Graph, text: str, kind: str) -> tuple[str, str]:
    """Microseconds since 1970 in UTC, or nanoseconds since midnight, int64 `(n, 1)`; and whether each is missing.

    Text that is no time makes the graph fail, as it makes Python refuse the table.
    """
    absent = is_missing(graph, text)
    known = graph.add("Where", absent, graph.constant(np.array([_STANDS_IN[kind]], dtype=object)), text)
    odd = graph.add("Not", graph.add("RegexFullMatch", known, pattern=SHAPES[kind]))
    known = graph.add("Where", odd, graph.constant(np.array([_STANDS_IN[kind]], dtype=object)), known)
    if kind == "time of day":
        micros = _clock(graph, known, 1000)
    else:
        shift = None
        if kind == "time with a zone":
            known, shift = _without_zone(graph, known)
        first, second = _split(graph, known, " ", 2)
        date, clock = _split(graph, _joined(graph, first, "T", second), "T", 2)
        days, beyond = _days(graph, date)
        odd = graph.add("Or", odd, beyond)
        empty = graph.add("Equal", clock, graph.constant(np.array([""], dtype=object)))
        clock = graph.add("Where", empty, graph.constant(np.array(["00:00"], dtype=object)), clock)
        micros = graph.add("Add", _times(graph, days, DAY), _clock(graph, clock))
        if shift is not None:
            micros = graph.add("Sub", micros, shift)
    return graph.refuse(micros, odd), absent


def time_part(graph: Graph, micros: str, part: str) -> str:
    """One part of every moment, float64: "days", "year", "month", "weekday" or "hour"."""
    if part == "days":
        return graph.add("Div", graph.cast(micros, DOUBLE), graph.number(DAY))
    of_day = graph.add("Mod", micros, _whole(graph, DAY))
    if part == "hour":
        hour = graph.cast(_div(graph, of_day, HOUR), DOUBLE)
        minute = graph.cast(_div(graph, graph.add("Mod", of_day, _whole(graph, HOUR)), MINUTE), DOUBLE)
        return graph.add("Add", hour, graph.add("Div", minute, graph.number(60)))
    day = _div(graph, graph.add("Sub", micros, of_day), DAY)
    if part == "weekday":
        return graph.cast(_plus(graph, graph.add("Mod", _plus(graph, day, 3), _whole(graph, 7)), 1), DOUBLE)
    year, month = _civil(graph, day)
    return graph.cast(year if part == "year" else month, DOUBLE)


def _days(graph: Graph, date: str) -> tuple[str, str]:
    """Days since 1970 of dates such as 2024-03-01, and whether the day is beyond the end of its month."""
    year, month, day = (graph.cast(part, INT) for part in _split(graph, date, "-", 3))
    divides = {n: _is_zero(graph, graph.add("Mod", year, _whole(graph, n))) for n in (4, 100, 400)}
    century = graph.add("And", divides[100], graph.add("Not", divides[400]))
    leap = graph.cast(graph.add("And", divides[4], graph.add("Not", century)), INT)
    february = graph.cast(graph.add("Equal", month, _whole(graph, 2)), INT)
    last = graph.add("Add", graph.add("Gather", graph.constant(_LENGTHS), month), graph.add("Mul", leap, february))
    # Years that start in March end with the leap day (Howard Hinnant's days_from_civil).
    early = graph.cast(graph.add("Less", month, _whole(graph, 3)), INT)
    year = graph.add("Sub", year, early)
    era = _div(graph, year, 400)
    of_era = graph.add("Sub", year, _times(graph, era, 400))
    from_march = graph.add("Mod", _plus(graph, month, 9), _whole(graph, 12))
    of_year = _plus(graph, graph.add("Add", _div(graph, _plus(graph, _times(graph, from_march, 153), 2), 5), day), -1)
    leaps = graph.add("Sub", _div(graph, of_era, 4), _div(graph, of_era, 100))
    in_era = graph.add("Add", graph.add("Add", _times(graph, of_era, 365), leaps), of_year)
    days = _plus(graph, graph.add("Add", _times(graph, era, 146_097), in_era), -719_468)
    return days, graph.add("Greater", day, last)


def _civil(graph: Graph, days: str) -> tuple[str, str]:
    """Year and month of days since 1970 (Howard Hinnant's civil_from_days), for years from 0 to 9999."""
    shifted = _plus(graph, days, 719_468)
    era = _div(graph, shifted, 146_097)
    day = graph.add("Sub", shifted, _times(graph, era, 146_097))
    less = graph.add("Sub", graph.add("Sub", day, _div(graph, day, 1460)), _div(graph, day, 146_096))
    of_era = _div(graph, graph.add("Add", less, _div(graph, day, 36_524)), 365)
    before = graph.add("Add", _times(graph, of_era, 365), _div(graph, of_era, 4))
    of_year = graph.add("Sub", day, graph.add("Sub", before, _div(graph, of_era, 100)))
    from_march = _div(graph, _plus(graph, _times(graph, of_year, 5), 2), 153)
    month = _plus(graph, graph.add("Mod", _plus(graph, from_march, 2), _whole(graph, 12)), 1)
    early = graph.cast(graph.add("Less", month, _whole(graph, 3)), INT)
    year = graph.add("Add", graph.add("Add", _times(graph, era, 400), of_era), early)
    return year, month


def _clock(graph: Graph, text: str, finer: int = 1) -> str:
    """Microseconds of 12:30, 12:30:00 or 12:30:00.25, or units so many times finer."""
    hour, minute, second = _split(graph, _joined(graph, text, ":0"), ":", 3)
    whole = graph.add("Add", _times(graph, graph.cast(hour, INT), HOUR), _times(graph, graph.cast(minute, INT), MINUTE))
    # Digits beyond the unit are cut off; the small number makes up for the rounding of the product.
    scaled = graph.add("Mul", graph.cast(second, DOUBLE), graph.number(SECOND * finer))
    parts = graph.cast(graph.add("Floor", graph.add("Add", scaled, graph.number(1e-6 * finer))), INT)
    return graph.add("Add", _times(graph, whole, finer), parts)


def _without_zone(graph: Graph, text: str) -> tuple[str, str]:
    """Times without their zones, and the microseconds that each zone is ahead of UTC."""
    (plain,) = _split(graph, text, "Z", 1)
    plain, east = _split(graph, plain, "+", 2)
    year, month, rest, west = _split(graph, plain, "-", 4)
    ahead, behind = (_offset(graph, zone) for zone in (east, west))
    return _joined(graph, year, "-", month, "-", rest), graph.add("Sub", ahead, behind)


def _offset(graph: Graph, zone: str) -> str:
    """Microseconds of 01:30, 0130 or an empty text."""
    first, second = _split(graph, zone, ":", 2)
    digits = graph.cast(graph.add("StringConcat", graph.constant(np.array(["0"], dtype=object)), first), INT)
    empty = graph.add("Equal", second, graph.constant(np.array([""], dtype=object)))
    hour = graph.add("Where", empty, _div(graph, digits, 100), digits)
    apart = graph.cast(graph.add("StringConcat", graph.constant(np.array(["0"], dtype=object)), second), INT)
    minute = graph.add("Where", empty, graph.add("Mod", digits, _whole(graph, 100)), apart)
    return graph.add("Add", _times(graph, hour, HOUR), _times(graph, minute, MINUTE))


def _split(graph: Graph, text: str, at: str, parts: int) -> list[str]:
    """The first parts of text `(n, 1)` between separators, empty where there is none."""
    # Separators at the end make as many parts of each text as are wanted.
    padded = _joined(graph, text, at * parts)
    pieces = graph.several("StringSplit", 2, padded, delimiter=at)[0]
    return [graph.take(pieces, place, axis=2) for place in range(parts)]


def _joined(graph: Graph, first: str, *rest: str) -> str:
    """Texts one after the other; a text that names no value stands for itself."""
    for part in rest:
        named = part if part.startswith("setpoint/") else graph.constant(np.array([part], dtype=object))
        first = graph.add("StringConcat", first, named)
    return first


def _whole(graph: Graph, value: int) -> str:
    return graph.number(value, np.int64)


def _div(graph: Graph, value: str, by: int) -> str:
    return graph.add("Div", value, _whole(graph, by))


def _times(graph: Graph, value: str, by: int) -> str:
    return graph.add("Mul", value, _whole(graph, by))


def _plus(graph: Graph, value: str, more: int) -> str:
    return graph.add("Add", value, _whole(graph, more))


def _is_zero(graph: Graph, value: str) -> str:
    return graph.add("Equal", value, _whole(graph, 0))
