"""A single row is encoded, remarked on and refused as a frame of that row is, to the last bit."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from export.runs import FRAME, SCHEMA
from setpoint.data.frame import as_frame
from setpoint.errors import SetpointError

#: Values that are put into every column in turn.
ODD = [
    None, 0.0, -0.0, 1, 2.0, 2.5, 7, -3, 10**17, 10**25, 1e300, -1e300, 1e-310, float("nan"), float("inf"), True, False,
    "", " ",
    "NA", " n/a\t", "a", " a", "a\x1f", "A", "\u00a0new york ", "odd  blanks", "true", "False", "1", "1.0", " 2 ",
    "1_000", "12:30", "2024-02-30", "2024-03-01", "2024-03-01T12:30", "2024-03-01T12:30:00+01:00", "[1, 2, 3]",
    "\u212a", "city 3", "CITY 3", datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 12),
    datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1969, 7, 20, 20, 17, 40, 123457), datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.timezone.utc),
    datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), "0001-01-01",
    "1969-07-20 20:17", "1969-07-20 20:17:41", "2024-03-01 24:00", "2024-03-01T12", "\u0662024-03-01",
    datetime.time(12, 30), datetime.timedelta(days=2), np.float64(0.5), np.int64(3), np.str_("a"),
]  # fmt: skip
#: The list of numbers is what a column may be, so that the row is read as a frame; it is left out here.
OWN = [column.name for column in SCHEMA.columns if column.name != "list"]
PLAIN = SCHEMA.with_columns(
    SCHEMA.target, {c.name: c for c in SCHEMA.columns if c.name in OWN}, {n: SCHEMA.readings[n] for n in OWN}
)
ROWS = FRAME.select(OWN).rows(named=True)


def both(row):
    """Features and notes, or the refusal, of the row and of a frame of it."""
    found = []
    for encode in (PLAIN.encoded_row, lambda row, notes: PLAIN.encoded(as_frame(row), notes=notes)):
        notes = PLAIN.notes()
        try:
            x = encode(row, notes)
        except SetpointError as refusal:
            found.append(str(refusal))
        else:
            found.append(x if x is None else (x.tobytes(), notes.sentences(), notes.alarms()))
    return found


def test_usual_rows():
    for row in ROWS[:100]:
        one, frame = both(row)
        assert one is not None
        assert one == frame


@pytest.mark.parametrize("column", OWN)
def test_odd_values(column):
    by_row = 0
    for value in ODD:
        one, frame = both({**ROWS[0], column: value})
        assert one in (None, frame), value
        by_row += one is not None
    assert by_row > 30


def test_rows_that_lack_a_column_or_have_one_more_are_left_to_the_frame():
    assert PLAIN.encoded_row({**ROWS[0], "more": 1.0}) is None
    assert PLAIN.encoded_row({name: value for name, value in ROWS[0].items() if name != "amount"}) is None
    assert PLAIN.encoded_row({**ROWS[0], "amount": [1.0, 2.0]}) is None
