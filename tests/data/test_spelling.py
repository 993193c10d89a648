"""Numbers and dates as people write them, against readings by hand and by the datetime module."""

from __future__ import annotations

import datetime
import json
import math
import re

import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from marks import cases
from setpoint.data.frame import read_table, tidy
from setpoint.data.reading import Guess, Reading, learn_readings
from setpoint.data.scan import learn_readings_of, scan_table
from setpoint.data.schema import Schema
from setpoint.data.spelling import (
    DAY_FIRST,
    DOTTED,
    MONTH_FIRST,
    NAMED,
    YEAR_FIRST,
    is_word,
    odd_numbers,
    parse_boolean,
    parse_clock,
    parse_list,
    parse_number,
    parse_plain,
    parse_time,
    parse_zoned,
    plain_spelling,
    to_iso,
)
from setpoint.data.target import Target
from setpoint.errors import BadTable

POINT, COMMA = "1,234.5", "1.234,5"


def guessed(values):
    """The reading of a column of text, and its values."""
    readings, read = learn_readings(pl.DataFrame({"a": pl.Series(values, dtype=pl.String)}))
    again = Reading(**json.loads(json.dumps(readings["a"].to_dict())))
    assert again.read(pl.Series("a", values, dtype=pl.String)).equals(read["a"])
    return readings["a"], read["a"].to_list()


#: A column as it stands in a file, the form and unit that are found, and its numbers.
NUMBERS = {
    "decimal commas": (["3,5", "-2", "0,25", "1000"], COMMA, "", [3.5, -2, 0.25, 1000]),
    "German thousands": (["1.234,56", "12", "-1.234.567"], COMMA, "", [1234.56, 12, -1234567]),
    "English thousands": (["1,234.56", "12", "-1,234,567"], POINT, "", [1234.56, 12, -1234567]),
    "thousands alone": (["1,234", "12,500", "999"], POINT, "", [1234, 12500, 999]),
    "three digits behind a zero": (["0,123", "1,250"], COMMA, "", [0.123, 1.25]),
    "Swiss": (["1'234.50", "1\u2019234\u2019567", "5"], POINT, "", [1234.5, 1234567, 5]),
    "blanks": (["1 234,5", "1\u00a0234", "12\u202f345,75"], COMMA, "", [1234.5, 1234, 12345.75]),
    "percent": (["5 %", "12.5%", "-1%"], POINT, "%", [5, 12.5, -1]),
    "percent with commas": (["5 %", "12,5%", "100 %"], COMMA, "%", [5, 12.5, 100]),
    "dollars": (["$ 1,200", "$3.50", "-$7", "$-7", "12"], POINT, "$", [1200, 3.5, -7, -7, 12]),
    "euros": (["1.200 €", "3,50 €", "-7€"], COMMA, "€", [1200, 3.5, -7]),
    "codes": (["EUR 12", "12.5 EUR", "EUR 1,000"], POINT, "EUR", [12, 12.5, 1000]),
    "accounting": (["(12.50)", "12.50", "(1,000.00)", "$(3)"], POINT, "$", [-12.5, 12.5, -1000, -3]),
    "brackets around all": (["($12.50)", "$4.25"], POINT, "$", [-12.5, 4.25]),
    "minus signs": (["\u22125,5", "\u20132", "3"], COMMA, "", [-5.5, -2, 3]),
    "exponents": (["1,5e3", "2E-1", "4"], COMMA, "", [1500, 0.2, 4]),
    "holes": (["3,5", "NA", "", None, "?"], COMMA, "", [3.5, None, None, None, None]),
    "nothing before the comma": ([",5", "1,5"], COMMA, "", [0.5, 1.5]),
    "plain": (["1.234", "-1e3", "inf"], "", "", [1.234, -1000, math.inf]),
    "whole": (["1234", "5"], "", "", [1234, 5]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_people_write_them(name):
    values, form, unit, expected = NUMBERS[name]
    reading, found = guessed(values)
    assert reading == Reading("number", form=form, unit=unit)
    assert found == expected


#: Columns that stay words.
WORDS = {
    "leading zeros": ["007", "012", "100"],
    "leading zeros behind a unit": ["$ 007", "$ 12"],
    "two units": ["$ 5", "5 €"],
    "percent or not": ["5 %", "0.05"],
    "two forms": ["1,5", "2.5"],
    "a range": ["1-2", "3-4"],
    "groups of two": ["1,23,456", "2"],
    "two signs": ["--5", "4"],
    "an open bracket": ["(5", "4"],
    "a sign within brackets": ["(-5)", "4"],
    "unit twice": ["$5 $", "4"],
    "about": ["about 3", "4"],
    "another code": ["ABC 12", "ABC 13"],
    "nothing but signs": ["-", "$"],
}


@pytest.mark.parametrize("name", WORDS)
def test_values_that_agree_on_no_form_are_words(name):
    assert guessed(WORDS[name])[0] == Reading("words")


@st.composite
def written(draw):
    """Numbers in cents, and the same written in a form that is drawn; the digits are put together by hand."""
    form = draw(st.sampled_from([POINT, COMMA]))
    cents = draw(st.lists(st.integers(-(10**11), 10**11), min_size=2, max_size=6))
    unit = draw(st.sampled_from(["", "€", "CHF", "%"]))
    group = draw(st.sampled_from([form[1], "'", " ", "\u00a0", "\u202f"]))
    bracketed = draw(st.booleans())
    texts = []
    for number in cents:
        digits = str(abs(number) // 100)
        parts = [digits[max(i - 3, 0) : i] for i in range(len(digits), 0, -3)][::-1]
        text = group.join(parts) + form[-2] + f"{abs(number) % 100:02d}"
        text = {"": text, "€": f"€ {text}"}.get(unit, f"{text}{unit}")
        texts.append(text if number >= 0 else f"({text})" if bracketed else f"\u2212{text}")
    return form, cents, texts


@settings(deadline=None)
@given(written())
def test_whatever_is_written_is_read_back(case):
    form, cents, texts = case
    reading, found = guessed(texts)
    assert (reading.kind, reading.form or POINT) == ("number", form)
    assert found == [number / 100 for number in cents]


FORMATS = {
    "31.12.2024": "%d.%m.%Y", "12/31/2024": "%m/%d/%Y", "31/12/2024": "%d/%m/%Y", "2024/12/31": "%Y/%m/%d",
    "31 Dec 2024": "%d %B %Y", "": "%Y-%m-%d",
}  # fmt: skip


@settings(deadline=None)
@given(
    days=st.lists(st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)), min_size=1, max_size=6),
    form=st.sampled_from(sorted(FORMATS)),
    clock=st.sampled_from(["", " %H:%M", " %H:%M:%S"]),
    padded=st.booleans(),
)
def test_dates_are_those_of_the_datetime_module(days, form, clock, padded):
    decisive = [*days, datetime.date(2024, 5, 31)]
    written = [datetime.datetime(d.year, d.month, d.day, 17, 45).strftime(FORMATS[form] + clock) for d in decisive]
    if not padded and form and form[2] in "./" and not clock:
        written = [form[2].join(part.lstrip("0") for part in text.split(form[2])) for text in written]
    reading, found = guessed(written)
    assert reading == Reading("time", form=form)
    assert found == [datetime.datetime.strptime(text, FORMATS[form] + clock) for text in written]


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("31 Dec 2024", ["31-Dec-2024", "1-jan-2025", "05-SEP-2024", "7 Sept. 2024"]),
        ("31 Dec 2024", ["December 31, 2024", "Jan 1, 2025", "Sep. 5, 2024", "Sept 7 2024"]),
        ("31/12/2024", ["31-12-2024", "1-1-2025", "05-09-2024", "07-09-2024"]),
        ("12/31/2024", ["12-31-2024", "1/1/2025", "9/5/2024", "09-07-2024"]),
        ("2024/12/31", ["2024/12/31", "2025/1/1", "2024.09.05", "2024/09/07"]),
    ],
)
def test_dates_as_programs_and_people_write_them(form, written):
    days = [datetime.datetime(2024, 12, 31), datetime.datetime(2025, 1, 1)]
    reading, found = guessed(written)
    assert reading == Reading("time", form=form)
    assert found == [*days, datetime.datetime(2024, 9, 5), datetime.datetime(2024, 9, 7)]


def test_clocks_with_two_halves_of_the_day_stand_behind_dates():
    clocks = ["12:00 AM", "1:05 am", "11:59:30 a.m.", "12:00 PM", "5:45PM", "7:30"]
    reading, found = guessed([f"12/31/2024 {clock}" for clock in clocks])
    assert reading.form == "12/31/2024"
    times = [(0, 0), (1, 5), (11, 59, 30), (12, 0), (17, 45), (7, 30)]
    assert found == [datetime.datetime(2024, 12, 31, *own) for own in times]
    for odd in ("13:00 PM", "0:30 AM", "25:00", "5:45 XM"):
        assert guessed([f"12/31/2024 {odd}"])[0].kind == "words"


def test_names_that_are_no_month_are_words():
    assert guessed(["31 Dez 2024", "1 Foo 2025"])[0].kind == "words"


def test_dates_that_may_be_read_in_two_ways_are_words_with_a_note():
    texts = ["01/02/2024", "03/04/2024", "12/12/2024"] * 5
    assert guessed(texts)[0] == Reading("words")
    names = [f"{i % 12 + 1:02d}/{i // 12 + 1:02d}/2024" for i in range(40)]
    frame = pl.DataFrame({"day": names, "x": [0.5 * i for i in range(40)], "y": [0, 1] * 20})
    (why,) = dict(Schema.of(frame, Target.of(frame, "y")).dropped).values()
    assert "'01/01/2024' may name the day or the month first; write dates as 2024-12-31" in why


def test_a_day_above_12_anywhere_decides_which_comes_first():
    assert guessed(["01/02/2024", "13/02/2024"])[0].form == "31/12/2024"
    assert guessed(["01/02/2024", "02/13/2024"])[0].form == "12/31/2024"
    assert guessed(["13/02/2024", "02/13/2024"])[0].kind == "words"
    assert guessed(["31.02.2024"])[0].kind == "words"


def test_new_rows_are_read_as_training_was_whatever_else_they_could_be():
    euros = Reading("number", form=COMMA, unit="€")
    assert euros.read(pl.Series("a", ["1.234", "1,5", "7 €", "(2)"])).to_list() == [1234, 1.5, 7, -2]
    assert euros.read(pl.Series("a", [1234, 2])).to_list() == [1234, 2]
    for odd in ("1,234.5", "$ 5", "5 %", "x"):
        with pytest.raises(BadTable, match=r"^column 'a' held numbers in training but holds .*; give it as numbers"):
            euros.read(pl.Series("a", [odd]))
    percents = Reading("number", form=COMMA, unit="%")
    assert percents.read(pl.Series("a", ["7,5 %", None, "-2%"])).to_list() == [7.5, None, -2]
    for odd in ("7,5", "0,075", "(7)", "7 €"):
        with pytest.raises(BadTable, match=r"held percentages .* with their sign, such as 34,5 %$"):
            percents.read(pl.Series("a", [odd]))
    first = Reading("time", form="31/12/2024")
    assert first.read(pl.Series("a", ["01/02/2024"])).to_list() == [datetime.datetime(2024, 2, 1)]
    with pytest.raises(BadTable, match=r"'12/31/2024'; give it as dates .* such as 31/12/2024"):
        first.read(pl.Series("a", ["12/31/2024"]))


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "number", "form": "31.12.2024"}, {"kind": "time", "form": POINT}, {"kind": "number", "unit": "€"},
        {"kind": "number", "form": POINT, "unit": "x"}, {"kind": "words", "form": COMMA}, {"kind": "number", "form": 3},
    ],
)  # fmt: skip
def test_an_odd_form_in_a_file_is_refused(odd):
    with pytest.raises(TypeError):
        Reading(**odd)


TEXTS = [
    "1,234",
    "1,5",
    "1.234",
    "1.5",
    "12",
    "5 %",
    "$ 3",
    "inf",
    "01/02/2024",
    "13/02/2024",
    "02/13/2024",
    "07",
    "NA",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6), st.data())
def test_chunks_are_found_to_hold_what_the_whole_column_holds(values, data):
    cut = data.draw(st.integers(0, len(values)))
    whole, parts = Guess(), Guess()
    whole.add(pl.Series("a", values))
    for part in (values[:cut], values[cut:]):
        parts.add(pl.Series("a", part, dtype=pl.String))
    assert whole.found() == parts.found()


def test_a_table_of_such_columns_in_memory_and_in_chunks(tmp_path):
    lines = [f'"{i},5","{i * i * 1000:,}.00 $",{i % 28 + 1}/3/2024,{i % 2}' for i in range(1, 101)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c,y", *lines]) + "\n", encoding="utf-8")
    frame = read_table(path)
    readings, _ = learn_readings(frame)
    assert learn_readings_of(scan_table(path, 200)) == readings
    schema = Schema.of(frame, Target.of(frame, "y"))
    assert schema.spellings() == [
        "column 'a' holds numbers written as 1.234,5: the comma is the decimal point, so that 1,5 is 1.5",
        "column 'b' holds numbers written as 1,234.5: a comma stands between thousands, so that 1,234 is 1234, with $ "
        "around it or not",
        "column 'c' holds dates or times without a time zone written as 31/12/2024: the day comes first",
    ]
    together = schema.encode(frame)
    for i in (0, 37, 99):
        assert torch.equal(schema.encode(frame[i : i + 1]), together[i : i + 1])
    plain = pl.DataFrame({
        "a": [i + 0.5 for i in range(1, 101)], "b": [1000.0 * i * i for i in range(1, 101)],
        "c": [datetime.date(2024, 3, i % 28 + 1) for i in range(1, 101)],
    })  # fmt: skip
    assert torch.equal(schema.encode(plain), together)


def test_numbers_without_the_percent_signs_of_training_are_remarked_on():
    frame = pl.DataFrame({"a": [f"{i % 40 / 2} %" for i in range(200)], "y": [i % 2 for i in range(200)]})
    schema = Schema.of(frame, Target.of(frame, "y"))
    said = "column 'a' had percent signs in training; its numbers here have none and are taken as percent: 5 is 5 %"
    for value, notes in (("7 %", []), (7.0, [said]), (None, ["column 'a': missing in 1 of 1 rows"])):
        for encode in (schema.encoded_row, lambda row, notes: schema.encoded(pl.DataFrame([row]), notes=notes)):
            seen, joined = schema.notes(), schema.notes()
            features = encode({"a": value}, seen)
            if features is None:
                features = schema.encoded(pl.DataFrame({"a": [value]}), notes=seen)
            joined.merge(seen)
            assert len(joined.sentences()) == len(notes)
            assert all(map(str.startswith, joined.sentences(), notes))
            if value:
                assert features.tolist() == schema.encoded(pl.DataFrame({"a": ["7 %"]})).tolist()
    schema.encode(pl.DataFrame({"a": [7.0]}), notes=(training := schema.notes()))
    assert training.sentences(ranges=False) == []


@given(st.text("aeinfNAtruls[]-+.%$ \u2212\u0665x9", min_size=1, max_size=8))
@cases(200)
def test_a_text_that_is_seen_to_be_a_word_spells_nothing_else(text):
    column = tidy(pl.Series("a", [text]))
    if is_word(text) and column.null_count() == 0:
        parsed = [parse_plain, parse_boolean, parse_time, parse_zoned, parse_clock, parse_list]
        found = [parse(column) for parse in parsed] + [parse_number(column, form)[0] for form in (POINT, COMMA)]
        found += [to_iso(column, form) for form in (DAY_FIRST, DOTTED)]
        assert all(values.null_count() == 1 for values in found)


def test_words_are_seen_at_once_and_words_for_numbers_are_not():
    assert all(map(is_word, ("north", "n/o", "Zürich", "-")))
    assert not any(map(is_word, ("2nd", "Inf", "-inf", "TRUE", "false", "[a]", "\u0665")))


def test_a_column_of_few_different_words_is_no_column_of_odd_numbers():
    """Codes are words on purpose; from thirteen different ones on they are remarked on."""
    codes = pl.Series("a", [f"{i % 12 + 1}%" for i in range(60)] + ["x"])
    assert odd_numbers(codes, 13) is None
    assert odd_numbers(codes, 11) == (1, "x")


#: Parts of numbers and of dates, as they come.
_PIECES = [*"0.,' -+()€%x_\u2212", "1", "12", "123", "EUR", "e5", "inf"]
_OF_DATES = [
    "1",
    "12",
    "31",
    "2024",
    ".",
    "/",
    "-",
    " ",
    "T",
    "10:30",
    "01.02.2024",
    "1/2/2024",
    "2024-03-01",
    ",",
    "1-2-2024",
    "2024/3/01",
    "2024.3.1",
    "Dec",
    "sept",
    "May",
    "may.",
    "1 Feb 2024",
    "SEPTEMBER 3, 2024",
    "9:05",
    " 5:45 PM",
    " 12:00 am",
    " 12:30:15.5 p.m.",
    " 0:30 PM",
    " 13:00pm",
    "AM",
    "10:30-0530",
]


@given(
    st.lists(st.lists(st.sampled_from([*_PIECES, "1,234.5", "1.234,5", "?"]), max_size=7).map("".join), min_size=1),
    st.sampled_from([POINT, COMMA]),
    st.sampled_from(["", "%", "€", "EUR"]),
)
@cases(300)
def test_patterns_for_other_programs_read_numbers_as_training_does(texts, form, unit):
    column = tidy(pl.Series("x", texts))
    wanted = Reading("number", form=form, unit=unit)._parsed(column)
    for text, missing, number in zip(texts, column.is_null(), wanted):
        plain = _made_plain(text, form, unit)
        if missing:
            assert plain == text.strip()
        elif number is None:
            # As the script refuses it: for Python itself 1_000 is a number.
            with pytest.raises(ValueError, match="could not convert"):
                float(plain.replace("_", "odd"))
        else:
            assert float(plain) == number


@given(
    st.lists(st.lists(st.sampled_from(_OF_DATES), max_size=5).map("".join), min_size=1),
    st.sampled_from([DAY_FIRST, MONTH_FIRST, DOTTED, YEAR_FIRST, NAMED]),
)
@cases(300)
def test_patterns_for_other_programs_read_dates_as_training_does(texts, form):
    column = tidy(pl.Series("x", texts)).fill_null("x")
    wanted = Reading("time", form=form)._parsed(column)
    plain = pl.Series("x", [_made_plain(text, form) for text in column])
    assert parse_time(plain).to_list() == wanted.to_list()


def _made_plain(text, form, unit=""):
    text = text.strip()
    for pattern, instead in plain_spelling(form, unit):
        text = re.sub(pattern, instead, text)
    return text
