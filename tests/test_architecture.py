"""Rooms import only to their left, optional packages stay in their own files, no import hides in a function."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "setpoint"
FILES = sorted(SOURCE.rglob("*.py"))
#: Rooms from left to right; each imports rooms to its left only. `base` is the files at the root that know no room.
ROOMS = ("base", "measure", "problem", "decide", "lp", "solve", "data", "serve", "train", "run")
#: The doors, and what they import beside the rooms: no door imports another, but for the command line.
DOORS = {
    "estimator": set(), "integrations": set(), "report": set(), "export": set(),
    "commands": {"report", "export"}, "cli": {"commands"},
    "__main__": {"cli"},
}  # fmt: skip
#: Files that only gather public names.
NAMES = ("__init__", "losses", "classes", "rates", "steps", "methods")
BASE = ("errors", "files", "lock", "capacity", "processes", "plain", "lazy", "on_use", "shown")
#: What a room to the left is not for: programs stand beside the solvers, tables know no problem.
LEFT_OF = {
    **{room: set(ROOMS[:place]) for place, room in enumerate(ROOMS)},
    "lp": {"base", "measure"},
    **{door: set(ROOMS) | more for door, more in DOORS.items()},
    "cli": {"base", "commands"},
    "__main__": {"cli"},
}
#: Each optional package and the rooms, or the single files, that may import it.
OPTIONAL = {
    "polars": {"data"}, "typer": {"cli", "commands/declared.py", "commands/help.py", "commands/options.py"},
    "rich": {"commands/show.py", "commands/terminal.py"}, "safetensors": {"run/artefact.py", "serve/run.py"},
    "sklearn": {"estimator"}, "matplotlib": {"report"}, "accelerate": set(), "tensorboard": set(),
    "pytorch_lightning": set(), "optuna": {"train"},
    "lightning": {"integrations/lightning.py"}, "transformers": {"integrations/huggingface.py"},
    "onnx": {"export"}, "onnxruntime": {"export"}, "skl2onnx": {"export"}, "onnxmltools": {"export"},
    "torchmetrics": {"integrations/torchmetrics.py"}, "mlflow": {"integrations/trackers.py", "integrations/mlflow.py"},
    "sentence_transformers": {"data/encoders.py"}, "timm": {"data/encoders.py"},
    "dask": {"data/partitions.py"}, "distributed": {"data/partitions.py"},
}  # fmt: skip


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "base" if first in BASE else first


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


def own_imports(path: Path) -> list[list[str]]:
    names = [name.split(".") for name in imports_of(ast.parse(path.read_text()))]
    return [parts for parts in names if parts[0] == "setpoint"]


def test_rooms_import_only_to_their_left():
    wrong = []
    for path in FILES:
        room = room_of(path)
        if path.parent == SOURCE and path.stem in NAMES:
            continue
        for parts in own_imports(path):
            other = "setpoint" if len(parts) == 1 else "base" if parts[1] in BASE else parts[1]
            allowed = {room, *LEFT_OF[room], *(["setpoint"] if room == "cli" else [])}
            if other not in allowed:
                wrong.append(f"{path.relative_to(SOURCE)} imports {'.'.join(parts)}")
    assert wrong == []


def test_no_own_import_inside_a_function():
    wrong = []
    for path in FILES:
        functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
        hidden = [name for function in functions for name in imports_of(function) if name.startswith("setpoint")]
        wrong += [f"{path.relative_to(SOURCE)}: {name}" for name in hidden]
    assert wrong == []


def test_optional_packages_stay_in_their_own_files():
    wrong = []
    for path in FILES:
        places = {room_of(path), path.relative_to(SOURCE).as_posix()}
        packages = {name.split(".")[0] for name in imports_of(ast.parse(path.read_text()))}
        wrong += [f"{path}: {package}" for package in packages & set(OPTIONAL) if not places & OPTIONAL[package]]
    assert wrong == []


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
