"""How text spells numbers, booleans, dates, times and lists, in plain forms and as people write them.

A form is an example of itself: numbers of the form `1.234,5` have a decimal comma, dates of the form `31/12/2024` name
the day first. Each value is read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from setpoint.data.frame import Column, levels

#: The two forms of numbers, apart from plain ones such as 1234.5 or -1e3, and what is said about each.
POINT, COMMA = "1,234.5", "1.234,5"
#: The forms of dates, apart from 2024-12-31.
DAY_FIRST, MONTH_FIRST, DOTTED = "31/12/2024", "12/31/2024", "31.12.2024"
YEAR_FIRST, NAMED = "2024/12/31", "31 Dec 2024"
MEANING = {
    POINT: "a comma stands between thousands, so that 1,234 is 1234",
    COMMA: "the comma is the decimal point, so that 1,5 is 1.5",
    DAY_FIRST: "the day comes first",
    MONTH_FIRST: "the month comes first",
    DOTTED: "the day comes first",
    YEAR_FIRST: "the year comes first",
    NAMED: "the month has its English name, behind the day or before it",
}
#: Signs and codes that may stand before or behind a number, one kind per column; a percent sign stands behind.
UNITS = (
    *"%$€£¥₹₩₽₺", "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "ILS", "INR", "JPY",
    "KRW", "MXN", "NOK", "NZD", "PLN", "RUB", "SEK", "SGD", "THB", "TRY", "USD", "ZAR", "kr", "zł",
)  # fmt: skip
_UNIT = "(?:" + "|".join(unit.replace("$", r"\$") for unit in UNITS if unit != "%") + ")"
#: Opening brackets, signs and units around the digits of a number.
_DRESSED = (
    rf"^(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>{_UNIT})?\s*(?P<then>[-+])?\s*(?P<late>\()?\s*"
    rf"(?P<digits>\d[\d.,'\s]*(?:[eE][-+]?\d+)?|[.,]\d+)\s*(?P<closed>\))?\s*(?P<behind>{_UNIT}|%)?\s*(?P<end>\))?$"
)
#: Day, month and year in some order, and a time behind them.
_DATED = r"^(\d{1,2})SEPARATOR(\d{1,2})SEPARATOR(\d{4})(?:[T ](\S.*))?$"
_DATES = {
    DAY_FIRST: _DATED.replace("SEPARATOR", "[/-]"),
    MONTH_FIRST: _DATED.replace("SEPARATOR", "[/-]"),
    DOTTED: _DATED.replace("SEPARATOR", r"\."),
    YEAR_FIRST: r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})(?:[T ](\S.*))?$",
}
#: The day before the name of the month, and behind it.
_NAMED = (
    r"^(\d{1,2})[-./\s]\s*([A-Za-z]{3,9})\.?[-,./\s]\s*(\d{4})(?:[,T ]\s*(\S.*))?$",
    r"^([A-Za-z]{3,9})\.?[-\s]\s*(\d{1,2})[-,\s]\s*(\d{4})(?:[,T ]\s*(\S.*))?$",
)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
#: The number of each month, by its whole name and by the start of it.
_MONTH_OF = {
    **{own: f"{place:02d}" for place, name in enumerate(_MONTHS, 1) for own in (name, name[:3])}, "sept": "09",
}  # fmt: skip
#: A time of day, with hours up to 12 and am or pm behind them or not.
_CLOCK = r"^(\d{1,2}):(\d{2})(:\d{2}(?:\.\d+)?)?\s*(?:([AaPp])\.?[Mm]\.?)?$"
_MINUTES = r"(:\d\d(?::\d\d(?:\.\d+)?)?)"
#: What makes dates of `_plain_dates` plain: two digits, hours up to 24, no space at the end.
_PLAIN_TIMES = (
    (r"^(\d{4})-0(\d\d)-", r"\1-\2-"),
    (r"^(\d{4}-\d\d)-0(\d\d)", r"\1-\2"),
    (rf"^(.{{10}} )(\d{_MINUTES}\s*(?:[AaPp]\.?[Mm]\.?)?)$", r"\g<1>0\2"),
    *((rf"^(.{{10}} ){hour:02d}{_MINUTES}\s*[Pp]\.?[Mm]\.?$", rf"\g<1>{hour + 12}\2") for hour in range(1, 12)),
    (rf"^(.{{10}} )12{_MINUTES}\s*[Aa]\.?[Mm]\.?$", r"\g<1>00\2"),
    (rf"^(.{{10}} (?:0[1-9]|1[0-2])){_MINUTES}\s*[AaPp]\.?[Mm]\.?$", r"\1\2"),
    (r" $", ""),
)
_ZONE = r"(?:Z|[+-]\d{2}:?\d{2})$"
_LIKE_A_NUMBER = r"^[-+(]?[$€£]?\s?\d[\d.,'\s]*[%$€£]?\)?$"


def _shape(thousands: str, decimal: str) -> str:
    grouped = "|".join(rf"[1-9]\d{{0,2}}(?:{sign}\d{{3}})+" for sign in (thousands, "'", r"\s"))
    return rf"^(?:(?:{grouped}|\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?$"


_SHAPES = {POINT: _shape(",", r"\."), COMMA: _shape(r"\.", ",")}


def parse_plain(text: Column) -> Column:
    """Plain numbers, null where the text is none."""
    return text.cast(pl.Float64, strict=False)


def parse_boolean(text: Column) -> Column:
    """Booleans, null where the text is none."""
    lower = text.str.to_lowercase()
    return (lower == "true").set(~lower.is_in(["true", "false"]).fill_null(False), None)


def parse_time(text: Column) -> Column:
    """ISO 8601: a day, or a day and a time to the minute, second or fraction of it."""
    whole = _to_the_second(text)
    return whole.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def parse_zoned(text: Column) -> Column:
    """ISO 8601 with a time zone, as UTC."""
    zone = text.str.extract(f"({_ZONE})").str.replace("Z", "+00:00", literal=True)
    whole = _to_the_second(text.str.replace(_ZONE, "")) + zone.str.replace(r"^(...)(\d\d)$", "${1}:${2}")
    return whole.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", strict=False)


def _to_the_second(text: Column) -> Column:
    spaced = text.str.replace(r"^(\d{4}-\d{2}-\d{2})[T ]", "${1} ").str.replace(r"^(.{10})$", "${1} 00:00")
    return spaced.str.replace(r"^(.{10} \d{2}:\d{2})$", "${1}:00")


def parse_clock(text: Column) -> Column:
    """Times of day to the minute, second or fraction of it."""
    return text.str.replace(r"^(\d{2}:\d{2})$", "${1}:00").str.to_time("%H:%M:%S%.f", strict=False)


def parse_list(text: Column) -> Column:
    """Lists of numbers in brackets."""
    inside = text.str.extract(r"^\[(.*)\]$").str.split(",")
    values = inside.list.eval(pl.element().str.strip_chars().cast(pl.Float64, strict=False))
    # A list with anything in it that is no number is no list of numbers.
    odd = values.list.eval(pl.element().is_null()).list.any()
    return values.set(odd.fill_null(True), None)


def parse_number(text: Column, form: str, unit: str | None = None) -> tuple[Column, Column]:
    """Numbers of a form, null where the text is none, and the unit of each; None allows every unit."""
    plain = text.str.replace_all("[\u2012\u2013\u2212]", "-").str.replace_all("[\u2019\u02bc]", "'")
    parts = plain.str.extract_groups(_DRESSED).struct.unnest()
    digits = parts["digits"].str.strip_chars()
    whole = digits.str.replace_all(r"[,'\s]" if form == POINT else r"[.'\s]", "")
    values = whole.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    values = values.set(~digits.str.contains(_SHAPES[form]).fill_null(False), None)
    found = parts.select(
        signs=pl.sum_horizontal(pl.col("sign", "then").is_not_null()),
        units=pl.sum_horizontal(pl.col("before", "behind").is_not_null()),
        opened=pl.sum_horizontal(pl.col("open", "late").is_not_null()),
        closed=pl.sum_horizontal(pl.col("closed", "end").is_not_null()),
        unit=pl.coalesce("before", "behind").fill_null(""),
        minus=pl.coalesce("sign", "then", pl.lit("+")) == "-",
    )
    odd = (found["units"] > 1) | (found["signs"] + found["opened"] > 1) | (found["opened"] != found["closed"])
    if unit is not None:
        # A share without its sign could be 0.05 or 5 for 5 %.
        odd |= ~found["unit"].is_in([unit] if unit == "%" else ["", unit])
    values = values.set(odd.fill_null(True), None)
    values = values.zip_with(~(found["minus"] | (found["opened"] > 0)), -values)
    # Words for infinity, as plain numbers have them.
    words = plain.str.contains(r"^[-+]?[A-Za-z]+$").fill_null(False)
    return values.zip_with(~words, plain.cast(pl.Float64, strict=False)).alias(text.name), found["unit"]


def is_word(text: str) -> bool:
    """Whether a text is seen at once to spell no number, boolean, time or list: it has no digit, and no such word."""
    lower = text.lower()
    return not any(map(str.isdigit, lower)) and not any(part in lower for part in ("inf", "nan", "true", "false", "["))


def may_be_number(plain: Column, form: str) -> bool:
    """Whether the first of some plain numbers is one of this form too."""
    return bool(plain[:1].str.strip_chars_start("+-").str.contains(_SHAPES[form]).all())


def to_iso(text: Column, form: str) -> Column:
    """Dates of a form, with times behind them if there are any, as 2024-12-31 spells them; null where it is none."""
    if form == NAMED:
        (day, month, year, time), (name, number, later, clock) = (_groups(text, pattern) for pattern in _NAMED)
        first = day.is_not_null()
        spelled = month.zip_with(first, name).str.to_lowercase()
        month = spelled.replace_strict(_MONTH_OF, default=None, return_dtype=pl.String)
        day, year, time = (own.zip_with(first, other) for own, other in ((day, number), (year, later), (time, clock)))
    else:
        one, two, three, time = _groups(text, _DATES[form])
        orders = {MONTH_FIRST: (three, one, two), YEAR_FIRST: (one, two, three)}
        year, month, day = orders.get(form, (three, two, one))
    iso = year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2)
    return (iso + (" " + _in_24_hours(time)).fill_null("")).alias(text.name)


def _groups(text: Column, pattern: str) -> list[Column]:
    return text.str.extract_groups(pattern).struct.unnest().get_columns()


def _in_24_hours(time: Column) -> Column:
    """Times as 17:45 spells them; others stay as they are."""
    hour, minute, second, half = _groups(time, _CLOCK)
    number = hour.cast(pl.Int64)
    # Noon and midnight are 12 on a clock with two halves.
    of_day = (number % 12 + 12 * (half.str.to_lowercase() == "p").cast(pl.Int64)).set(half.is_null(), None)
    whole = of_day.fill_null(number).cast(pl.String).str.zfill(2) + ":" + minute + second.fill_null("")
    odd = half.is_not_null() & ((number < 1) | (number > 12))
    return whole.set(odd.fill_null(False), None).fill_null(time)


def plain_spelling(form: str, unit: str) -> tuple[tuple[str, str], ...]:
    """Patterns of Python's `re`, each with what takes its place: one after the other they make text of a form plain.

    Numbers become such as -1234.5, dates such as 2024-12-31. Text that spells no number or date of the form becomes
    text that spells none at all, in numbers with "_"; words for missing values and for infinity stay. For programs
    that have no setpoint.
    """
    if form in (*_DATES, NAMED):
        return (r"^\d{4}-.*", r"no date: \g<0>"), *_plain_dates(form), *_PLAIN_TIMES
    thousands, decimal = (",", r"\.") if form == POINT else (r"\.", ",")
    digits, sign = _shape(thousands, decimal)[1:-1], r"[-+]?\s*"
    digits = rf"(?:(?!{decimal}\d+[eE][-+]?\d){digits})"
    before, behind = (rf"(?:{re.escape(unit)})" if some else "(?!)" for some in (unit not in ("", "%"), unit))
    optional = "" if unit == "%" else "?"
    bare = (
        rf"{sign}{digits}(?:\s*{behind}){optional}", rf"{sign}{before}\s*{digits}", rf"{before}\s*{sign}{digits}",
        rf"\(\s*(?:{before}\s*){optional}{digits}\s*\)", rf"{before}\s*\(\s*{digits}\s*\)",
        rf"\(\s*{digits}\s*(?:{behind}\s*\)|\)\s*{behind})", r"[-+]?[A-Za-z]+", r"n/a|\?|",
    )  # fmt: skip
    return (
        ("[\u2012\u2013\u2212]", "-"), ("[\u2019\u02bc]", "'"),
        (rf"(?s)^(?!(?:{'|'.join(bare)})$).*", r"_\g<0>"),
        (r"^[^_\d.,]*[-(][^\d.,]*(?=[\d.,])", "-"), (r"^[^-_\d.,][^\d.,]*(?=[\d.,])", ""),
        (r"(?<=[\d.,])[^\d.,]+$", ""), (rf"[{thousands}'\s]", ""), (",", "."),
    )  # fmt: skip


def _plain_dates(form: str) -> Iterator[tuple[str, str]]:
    """Days and months with a zero before them, however many digits they have, and a space before the time."""
    if form == NAMED:
        for number in sorted(set(_MONTH_OF.values())):
            names = "|".join(name for name, own in _MONTH_OF.items() if own == number)
            for pattern in _NAMED:
                yield pattern.replace("([A-Za-z]{3,9})", f"(?i:{names})"), rf"\2-{number}-0\1 \3"
    else:
        orders = {MONTH_FIRST: r"\3-0\1-0\2 \4", YEAR_FIRST: r"\1-0\2-0\3 \4"}
        yield _DATES[form], orders.get(form, r"\3-0\2-0\1 \4")


def odd_numbers(column: Column, codes: int) -> tuple[int, str] | None:
    """Count the values that keep a column from being read as numbers, and show one, if most look like numbers.

    Up to `codes` different ones are taken as words on purpose.
    """
    if column.dtype != pl.String or column.n_unique() <= codes:
        return None
    text = levels(column).drop_nulls()
    reads = text.cast(pl.Float64, strict=False).is_not_null()
    for form in (POINT, COMMA):
        reads |= parse_number(text, form)[0].is_not_null()
    looks = text.filter(reads | text.str.contains(_LIKE_A_NUMBER))
    if 2 * len(looks) <= len(text) or looks.n_unique() <= codes:
        return None
    # If every value is a number in some form, those that are not plain ones are in the way of the others.
    odd = text.filter(~reads if not reads.all() else text.cast(pl.Float64, strict=False).is_null())
    return (len(odd), str(odd[0])) if len(odd) else None


def may_be_two_dates(column: Column) -> bool:
    """Whether every value is a date whose day and month could be either way round."""
    if column.dtype != pl.String:
        return False
    text = levels(column.unique()).drop_nulls()
    days = _groups(text, _DATES[DAY_FIRST])[:2]
    return len(text) > 0 and all((own.cast(pl.Int64) <= 12).fill_null(False).all() for own in days)
