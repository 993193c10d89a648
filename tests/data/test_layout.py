"""Blocks: the features that come from one value of a row, in the order of the features."""

from __future__ import annotations

import polars as pl

from setpoint.data.layout import Block
from setpoint.data.schema import Schema, Target

FRAME = pl.DataFrame(
    {
        "amount": [1.5, 2.0, 3.0, 4.5] * 30,
        "hole": [1.5, None, 3.0, 4.5] * 30,
        "word": ["a", "b", "c", None] * 30,
        "flag": [True, False, True, True] * 30,
        "list": [[1.0, 0.5], [2.0, 0.5], None, [4.0, 0.7]] * 30,
        "many": [f"level {min(row, 110)}" for row in range(120)],
        "y": [0, 1] * 60,
    }
)


def test_blocks_say_which_features_come_from_one_value():
    schema = Schema.of(FRAME, Target.of(FRAME, "y"))
    assert schema.blocks[:6] == [
        Block("amount", "amount", 1), Block("hole", "missable", 2), Block("word", "levels", 4),
        Block("flag", "levels", 2), Block("list[0]", "missable", 2), Block("list[1]", "missable", 2),
    ]  # fmt: skip
    assert schema.blocks[6] == Block("many", "levels", 101)


def test_every_feature_is_in_one_block_of_its_kind():
    schema = Schema.of(FRAME, Target.of(FRAME, "y"))
    assert sum(block.width for block in schema.blocks) == len(schema.features)
    features, start = schema.encode(FRAME), 0
    for block in schema.blocks:
        names, values = schema.features[start : start + block.width], features[:, start : start + block.width]
        start += block.width
        assert all(name.startswith(block.name) for name in names)
        if block.kind == "levels":
            assert (values.sum(1) == 1).all()
        if block.kind == "missable":
            assert (values[values[:, 1] == 1, 0] == 0).all()
            assert set(values[:, 1].tolist()) == {0.0, 1.0}
