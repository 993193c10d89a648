"""Docstrings of the public names of `solve` and `lp`: every section is there, and every example runs."""

import doctest
import enum
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import griffe
import pytest

import setpoint as sp
import setpoint.lp
import setpoint.solve
from setpoint.lp import closed, forms

ROOMS = ("setpoint.solve", "setpoint.lp")
MODULES = [
    importlib.import_module(f"{room.__name__}.{module.name}")
    for room in (setpoint.solve, setpoint.lp)
    for module in pkgutil.iter_modules(room.__path__)
]
PUBLIC = {
    f"{where.__name__}.{name}": getattr(where, name)
    for where in (sp, sp.losses, sp.classes, sp.lp, closed, forms)
    for name in where.__all__
    if getattr(getattr(where, name), "__module__", "").startswith(ROOMS)
}


def settings(thing):
    """The names that a caller can give."""
    if isinstance(thing, type) and (issubclass(thing, enum.Enum) or getattr(thing, "_is_protocol", False)):
        return []
    return list(inspect.signature(thing).parameters)


def test_all_public_names_are_looked_at():
    assert len(PUBLIC) > 80
    assert {"setpoint.Lagrangian", "setpoint.losses.Climb", "setpoint.classes.OneVsRest"} <= set(PUBLIC)
    assert {"setpoint.lp.solve", "setpoint.lp.closed.auc", "setpoint.lp.forms.auc"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_section_is_there(name):
    thing = PUBLIC[name]
    # Not that of a parent class: it speaks of another one.
    text = inspect.cleandoc(vars(thing).get("__doc__") or "" if isinstance(thing, type) else thing.__doc__ or "")
    summary, _, rest = text.partition("\n\n")
    assert re.fullmatch(r"\S.*\.", summary), "a summary is one line that ends with a full stop"
    assert ">>> " in text.partition("\nExample:\n")[2], "an example is missing"
    told = re.findall(r"^    (\w+): \S", rest, flags=re.MULTILINE)
    assert set(settings(thing)) <= set(told), "an argument is not explained"
    if inspect.isfunction(thing):
        assert "\nReturns:\n" in text
    assert not re.search(r"(^|[.:] |\n\n)(What|Of) ", text), "a sentence that starts with What or Of is a riddle"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_example_runs(module):
    tried = doctest.testmod(module)
    assert tried.failed == 0
    own = [thing for thing in PUBLIC.values() if thing.__module__ == module.__name__]
    assert tried.attempted >= 2 * len(own)


def test_the_site_draws_examples_as_code():
    here = Path(__file__).parents[2]
    reader = griffe.load_extensions(str(here / "docs" / "hooks.py") + ":Examples")
    module = griffe.load("setpoint.solve.ascent", search_paths=[here / "src"], extensions=reader)
    kinds = [section.kind.value for section in module["Climb"].docstring.parse("google")]
    assert kinds == ["text", "parameters", "raises", "examples"]
