"""Damage: bytes flipped, cut and doubled; JSON whose leaves, keys and types have been changed."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(
        [10**400, -1, 2**63, 1e308, [], {}, [[]], [1, "a"], {"a": 1}, "__class__", "minimize fnr", "linear"]
    ),
)


@st.composite
def mutated_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """The same bytes with a few of them changed, cut out, doubled or put in."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            data[place : place + 1] = bytes([draw(st.integers(0, 255))])
        elif kind == 1:
            del data[place : place + draw(st.integers(1, 64))]
        elif kind == 2:
            data[place:place] = draw(st.binary(max_size=8))
        elif kind == 3:
            data[place:place] = data[place : place + draw(st.integers(1, 64))]
        else:
            del data[place:]
    return bytes(data)


def paths(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every leaf and branch of some JSON is."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [here, *(path for key in keys for path in paths(data[key], (*here, key)))]


@st.composite
def mutated_json(draw: st.DrawFn, whole: bytes) -> bytes:
    """Damaged JSON: mostly still JSON, with a value replaced, a key lost or added; else bytes that may not be."""
    if draw(st.sampled_from([False, False, False, True])):
        return draw(mutated_bytes(whole))
    data = json.loads(whole)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(paths(data)))
        if not path:
            continue
        place = data
        for key in path[:-1]:
            place = place[key]
        kind = draw(st.integers(0, 3))
        if kind == 0:
            del place[path[-1]]
        elif kind == 1 and isinstance(place, dict):
            place[draw(st.text(max_size=5))] = copy.deepcopy(place[path[-1]])
        else:
            place[path[-1]] = copy.deepcopy(draw(LEAVES))
    return json.dumps(data).encode()
