"""Rooms import only to their left, optional packages stay in their own files, no import hides in a function."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "setpoint"
FILES = sorted(SOURCE.rglob("*.py"))
CORE = {"errors", "files", "lock", "plain", "capacity", "processes", "measure", "problem", "lp", "solve", "train"}
#: Each room and the rooms that it may import.
LEFT_OF = {
    "errors": set(),
    "lazy": set(),
    "files": {"errors"},
    "plain": set(),
    "lock": {"errors", "files"},
    "capacity": {"errors"},
    "processes": {"errors"},
    "measure": {"errors", "processes"},
    "problem": {"errors", "files", "plain", "measure"},
    "lp": {"errors", "capacity", "measure"},
    "solve": {"errors", "processes", "measure", "problem", "lp"},
    "train": CORE,
    "table": {"errors", "files"},
    "solvers": CORE,
    "settings": {*CORE, "solvers"},
    "estimator": {*CORE, "solvers", "settings"},
    "outcome": {*CORE, "solvers", "settings"},
    "run": {*CORE, "table", "solvers", "settings", "outcome"},
    "stream": {*CORE, "table", "settings", "outcome", "run"},
    "description": {*CORE, "solvers", "settings"},
    "artefact": {*CORE, "table", "solvers", "settings", "description", "outcome", "run"},
    "compare": {*CORE, "table", "solvers", "settings", "outcome", "run"},
    "show": {*CORE, "solvers", "settings", "outcome", "run"},
    "unfinished": {*CORE, "table", "solvers", "settings", "outcome", "run", "stream", "artefact"},
    "report": {"errors", "files", "measure", "problem"},
    "report_run": {"errors", "files", "lock", "plain", "problem", "report", "artefact"},
    "commands": {
        *CORE,
        "table",
        "solvers",
        "settings",
        "outcome",
        "run",
        "stream",
        "compare",
        "artefact",
        "unfinished",
        "show",
        "report_run",
    },
    "cli": {"errors", "files"},
    "__main__": {"cli"},
    "integrations": CORE,
}
#: Each optional package and the rooms, or the single files, that may import it.
OPTIONAL = {
    "polars": {"table"}, "typer": {"cli"}, "rich": {"show"}, "safetensors": {"artefact"},
    "sklearn": {"estimator"}, "matplotlib": {"report"}, "accelerate": set(), "tensorboard": set(),
    "pytorch_lightning": set(), "optuna": {"train"},
    "lightning": {"integrations/lightning.py"}, "transformers": {"integrations/huggingface.py"},
    "torchmetrics": {"integrations/torchmetrics.py"}, "mlflow": {"integrations/mlflow.py"},
}  # fmt: skip


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports_of(tree: ast.AST) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which room is entered"
            names.append(str(node.module))
    return names


def test_every_file_was_found():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_import_only_to_their_left(path):
    if path == SOURCE / "__init__.py":
        return
    room = room_of(path)
    own = [name.split(".") for name in imports_of(ast.parse(path.read_text())) if name.split(".")[0] == "setpoint"]
    for parts in own:
        if len(parts) == 1:
            assert room == "cli", f"{path.name} imports the package as a whole"
            continue
        assert parts[1] == room or parts[1] in LEFT_OF[room], f"{room} must not import {parts[1]}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_own_import_inside_a_function(path):
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    hidden = [name for function in functions for name in imports_of(function) if name.startswith("setpoint")]
    assert hidden == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_optional_packages_stay_in_their_own_files(path):
    for name in imports_of(ast.parse(path.read_text())):
        package = name.split(".")[0]
        if package in OPTIONAL:
            places = {room_of(path), path.relative_to(SOURCE).as_posix()}
            assert places & OPTIONAL[package], f"{path.name} imports {package}"


def test_optuna_is_imported_by_the_file_that_tunes_alone():
    importing = [path.name for path in FILES if "optuna" in imports_of(ast.parse(path.read_text()))]
    assert importing == ["tune.py"]


def test_the_words_we_do_not_use():
    banned = {"util", "utils", "helper", "helpers", "manager", "misc"}
    for path in FILES:
        nodes = ast.walk(ast.parse(path.read_text()))
        names = [path.stem, *(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef))]
        words = {word for name in names for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name.lower())}
        assert not words & banned, path
