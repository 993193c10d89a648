"""Docstrings: their examples run, and those of public names have every section."""

from __future__ import annotations

import ast
import doctest
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import setpoint
from setpoint.decide import calibrate, shift_point, tally
from setpoint.measure import constraint
from setpoint.problem import check

SOURCE = Path(setpoint.__file__).parent
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text()]
#: Rooms whose public names have every section; add a room when its docstrings are done.
ROOMS = (
    "setpoint.data", "setpoint.decide", "setpoint.errors", "setpoint.integrations", "setpoint.measure",
    "setpoint.problem.language", "setpoint.problem.problem", "setpoint.report",
)  # fmt: skip
#: Names that the reference lists are public too, wherever they are; errors but for the base need no example each.
REFERENCE = [
    name
    for page in sorted((SOURCE.parents[1] / "docs" / "reference").glob("*.md"))
    for name in re.findall(r"^::: (?!setpoint.errors)(\S+)", page.read_text(), re.MULTILINE)
]
PLACES = (setpoint, setpoint.classes, setpoint.losses, setpoint.methods, setpoint.steps)
OTHERS = (constraint.Constraint, check.Check)


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
    """The public classes and functions of the rooms that are done."""
    names = [(place, name) for place in PLACES for name in dir(place) if not name.startswith("_")]
    found = [getattr(place, name) for place, name in names]
    found += [pkgutil.resolve_name(name) for name in REFERENCE if name.startswith(ROOMS)]
    things = [thing for thing in found if inspect.isclass(thing) or inspect.isfunction(thing)]
    done = [thing for thing in things if thing.__module__.startswith(ROOMS)]
    return sorted({*done, *OTHERS}, key=lambda thing: thing.__qualname__)


def parameters(thing: object) -> list[str]:
    try:
        return [name for name in inspect.signature(thing).parameters if name not in ("args", "kwargs")]
    except ValueError:
        return []  # An exception has no signature of its own.


def lacks(thing: object) -> list[str]:
    """The sections that a docstring should have and has not."""
    text = inspect.getdoc(thing) or ""
    summary = text.partition("\n\n")[0]
    missing = [] if summary.endswith(".") and not summary.startswith(("What ", "Of ")) else ["a sentence to begin with"]
    if parameters(thing) and not ("Args:" in text or (inspect.isclass(thing) and "Attributes:" in text)):
        missing.append("Args")
    if inspect.isfunction(thing) and inspect.signature(thing).return_annotation != "None" and "Returns:" not in text:
        missing.append("Returns")
    # An example that takes a training by another package is shown, not run.
    if "Example:" not in text or not (">>>" in text or ("```python" in text and "integrations" in thing.__module__)):
        missing.append("Example")
    return missing


def test_public_names_have_every_section():
    things = public_things()
    assert {calibrate.calibrate, shift_point.ShiftPoint, tally.ScoreTally, constraint.Constraint} <= set(things)
    assert {thing.__qualname__: lacks(thing) for thing in things if lacks(thing)} == {}


def test_every_argument_is_described():
    lost = {
        f"{thing.__qualname__}({name})"
        for thing in public_things()
        for name in parameters(thing)
        if f" {name}: " not in (inspect.getdoc(thing) or "").replace("*", " ")
    }
    assert lost == set()


def test_a_section_that_is_missing_is_named():
    def bare(numbers: list[int]) -> int:
        """What there is"""

    assert lacks(bare) == ["a sentence to begin with", "Args", "Returns", "Example"]
