"""Blocks: the features that come from one value of a row, in the order of the features."""

from __future__ import annotations

import datetime

import polars as pl

from setpoint.data.layout import Block
from setpoint.data.schema import Schema
from setpoint.data.target import Target

FRAME = pl.DataFrame(
    {
        "amount": [1.5, 2.0, 3.0, 4.5] * 60,
        "hole": [1.5, None, 3.0, 4.5] * 60,
        "word": ["a", "b", "c", None] * 60,
        "flag": [True, False, True, True] * 60,
        "list": [[1.0, 0.5], [2.0, 0.5], None, [4.0, 0.7]] * 60,
        "many": [f"level {row // 2 % 110}" for row in range(240)],
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=row) for row in range(239)] + [None],
        "note": [f"paid {row} late" for row in range(240)],
        "street": [f"street {row}" for row in range(239)] + [None],
        "code": [1, 2, 3, 4] * 60,
        "y": [0, 1] * 120,
    }
)


def learned() -> Schema:
    return Schema.of(FRAME, Target.of(FRAME, "y"), kinds={"note": "text", "street": "hash", "code": "categorical"})


def test_blocks_say_which_features_come_from_one_value():
    schema = learned()
    assert schema.blocks[:6] == [
        Block("amount", "amount", 1), Block("hole", "missable", 2), Block("word", "levels", 4),
        Block("flag", "levels", 2), Block("list[0]", "missable", 2), Block("list[1]", "missable", 2),
    ]  # fmt: skip
    assert schema.blocks[6:10] == [
        Block("many", "levels", 101), Block("day: days", "missable", 2), Block("day: month", "amount", 1),
        Block("day: weekday", "amount", 1),
    ]  # fmt: skip
    assert schema.blocks[10] == Block("note: words 0", "amount", 1)
    assert schema.blocks[-2:] == [Block("street", "levels", 257), Block("code", "levels", 4)]


def test_every_feature_is_in_one_block_of_its_kind():
    schema = learned()
    assert sum(block.width for block in schema.blocks) == len(schema.features)
    features, start = schema.encode(FRAME), 0
    for block in schema.blocks:
        names, values = schema.features[start : start + block.width], features[:, start : start + block.width]
        start += block.width
        assert all(name.startswith(block.name) for name in names)
        assert block.width == 1 or block.kind != "amount"
        if block.kind == "levels":
            assert (values.sum(1) == 1).all()
        if block.kind == "missable":
            assert (values[values[:, 1] == 1, 0] == 0).all()
            assert set(values[:, 1].tolist()) == {0.0, 1.0}
