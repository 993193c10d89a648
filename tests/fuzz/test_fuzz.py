"""Every public name, with whatever somebody will pass to it one day; a few hundred cases each, more by `make fuzz`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from fuzz.laws import run_case
from fuzz.targets import ROOMS, TARGETS
from marks import cases, slow

#: Cases in the tests, where a case is dear; else 60.
FEW = {
    "fitting": 15,
    "choosing": 4,
    "implicit_shifts": 30,
    "shifting": 30,
    "solving_programs": 40,
    "metrics_as_programs": 30,
}


@pytest.mark.parametrize("name", TARGETS)
@slow
def test_a_clear_refusal_or_finite_numbers(name):
    @cases(FEW.get(name, 60))
    @given(st.data())
    def tried(data):
        run_case(TARGETS[name], data.draw)

    tried()


def test_every_public_name_is_fuzzed():
    used = set()
    for room in ROOMS:
        for node in ast.walk(ast.parse(Path(str(room.__file__)).read_text())):
            if isinstance(node, ast.Attribute) and re.match(r"sp(\.\w+)?$", ast.unparse(node.value)):
                used.add(node.attr)
    places = [sp.losses, sp.classes, sp.rates, sp.steps]
    assert {*sp.__all__, *(name for place in places for name in place.__all__)} - {"methods"} - used == set()
