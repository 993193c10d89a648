"""Docstrings: their examples run, and those of public names have every section."""

from __future__ import annotations

import ast
import doctest
import enum
import inspect
import pkgutil
import re
from pathlib import Path

import griffe
import pytest

import setpoint
from setpoint.decide import calibrate, tally
from setpoint.lp import closed, forms
from setpoint.measure import constraint
from setpoint.run.fit import FitSettings
from setpoint.train.choose import How

SOURCE = Path(setpoint.__file__).parent
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text()]
#: Names that the reference lists are public too, wherever they are; errors but for the base need no example each.
REFERENCE = [
    name
    for page in sorted((SOURCE.parents[1] / "docs" / "reference").glob("*.md"))
    for name in re.findall(r"^::: (?!setpoint.errors)(\S+)", page.read_text(), re.MULTILINE)
]
PLACES = (
    setpoint, setpoint.classes, setpoint.losses, setpoint.lp, setpoint.methods, setpoint.steps, closed, forms,
)  # fmt: skip
#: A sentence that starts so is a riddle.
RIDDLE = re.compile(r"(^|[.:] |\n\n)(What|Of) ")


def docstrings(path: Path) -> list[tuple[int, str]]:
    """The line and the text of every string that stands alone: of modules, classes, functions and attributes."""
    alone = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Expr))
    return [(n.lineno - 1, n.value) for n in alone if isinstance(n, ast.Constant) and isinstance(n.value, str)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_examples_run(path):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    printed = []
    for line, text in docstrings(path):
        test = doctest.DocTestParser().get_doctest(text, {}, path.stem, str(path), line)
        runner.run(test, out=printed.append)
    assert runner.summarize(verbose=False).attempted > 0
    assert runner.failures == 0, "".join(printed)


def public_things() -> list[object]:
    """The public classes and functions."""
    names = [(place, name) for place in PLACES for name in getattr(place, "__all__", dir(place)) if name[0] != "_"]
    found = [*(getattr(place, name) for place, name in names), *map(pkgutil.resolve_name, REFERENCE)]
    things = {thing for thing in found if inspect.isclass(thing) or inspect.isfunction(thing)}
    return sorted(things, key=lambda thing: (thing.__qualname__, thing.__module__))


def parameters(thing: object) -> list[str]:
    if isinstance(thing, type) and (issubclass(thing, enum.Enum) or getattr(thing, "_is_protocol", False)):
        return []
    try:
        given = inspect.signature(thing).parameters
    except ValueError:
        return []  # An exception has no signature of its own.
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in given.items() if one.kind not in many and not name.startswith("_")]


def own_text(thing: object) -> str:
    """The docstring of a function or class itself, not that of a parent class."""
    return inspect.cleandoc(vars(thing).get("__doc__") or "" if isinstance(thing, type) else thing.__doc__ or "")


def lacks(thing: object) -> list[str]:
    """The sections that a docstring should have and has not."""
    text = own_text(thing)
    summary = text.partition("\n\n")[0]
    missing = [] if re.fullmatch(r"\S.*\.", summary) else ["a sentence of one line to begin with"]
    if RIDDLE.search(text):
        missing.append("plain words in place of a sentence that starts with What or Of")
    if inspect.isfunction(thing) and inspect.signature(thing).return_annotation != "None" and "Returns:\n" not in text:
        missing.append("Returns")
    # An example that takes a training by another package is shown, not run.
    shown = "```python" if thing.__module__.startswith("setpoint.integrations") else ">>> "
    if not any(mark in text.partition("Example:\n")[2] for mark in (">>> ", shown)):
        missing.append("Example")
    told = re.findall(r"^    (\w+): \S", text, re.MULTILINE)
    return [*missing, *(f"the argument {name}" for name in parameters(thing) if name not in told)]


def test_public_names_have_every_section():
    things = public_things()
    assert {calibrate.calibrate, tally.ScoreTally, constraint.Constraint} <= set(things)
    assert {setpoint.fit, setpoint.Tuned, setpoint.methods.Race, setpoint.lp.solve, closed.auc, forms.auc} <= set(
        things
    )
    assert len(things) > 140
    assert {f"{thing.__module__}.{thing.__qualname__}": lacks(thing) for thing in things if lacks(thing)} == {}


def test_a_section_that_is_missing_is_named():
    def bare(numbers: list[int]) -> int:
        """What there is"""

    sentence, plain, *rest = lacks(bare)
    assert "to begin with" in sentence
    assert "plain words" in plain
    assert rest == ["Returns", "Example", "the argument numbers"]


def test_fit_describes_every_setting():
    told = set(re.findall(r"^    (\w+): \S", own_text(setpoint.fit), re.MULTILINE))
    assert set(FitSettings.__annotations__) <= told
    assert set(inspect.signature(How).parameters) <= set(FitSettings.__annotations__)


def test_the_site_draws_examples_as_code():
    here = Path(__file__).parents[1]
    reader = griffe.load_extensions(str(here / "docs" / "hooks.py") + ":Examples")
    module = griffe.load("setpoint.solve.ascent", search_paths=[here / "src"], extensions=reader)
    kinds = [section.kind.value for section in module["Climb"].docstring.parse("google")]
    assert kinds == ["text", "parameters", "raises", "examples"]
