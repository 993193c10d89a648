"""The house in numbers, beside version 0.1.0 and the plan: `python tools/house.py`, from any directory.

`--json` prints the same as JSON. `--trace` runs four small fits and counts their frames and files, too.
`--picture` draws the rooms and their imports to docs/images/rooms.svg. A number is a place to look, never a verdict.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import json
import subprocess
import time
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import frames
import picture

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "setpoint"


@dataclass(frozen=True)
class Row:
    """One line of the table: version 0.1.0, the plan, and what is measured now; None is not known here."""

    name: str
    before: str
    planned: str
    now: int | str | None


def python_files(source: Path) -> list[Path]:
    return sorted(source.rglob("*.py"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def code_lines_of(path: Path) -> int:
    """Lines that hold code: neither blank, nor a comment or a docstring alone."""
    text = path.read_text()
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes_of(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def most_arguments(files: Iterable[Path]) -> tuple[int, str]:
    """The longest list of arguments of a function, and where it is; `self`, `cls`, *args and **kwargs do not count."""
    found = [(0, "")]
    for path in files:
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                own = [argument.arg for argument in named if argument.arg not in ("self", "cls")]
                found.append((len(own), f"{path.parent.name}/{path.name}:{node.name}"))
    return max(found)


def shared_class_names(files: Iterable[Path]) -> dict[str, list[str]]:
    """Public names of classes that stand in more than one file, with those files."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in files:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(f"{path.parent.name}/{path.name}")
    return {name: sorted(where) for name, where in sorted(places.items()) if len(where) > 1}


def elements_of(path: Path, name: str) -> int:
    """How many elements a list, a tuple or a dictionary has that a file assigns to `name`; 0 if it does not."""
    for node in nodes_of(path):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            if isinstance(node.value, ast.List | ast.Tuple):
                return len(node.value.elts)
            if isinstance(node.value, ast.Dict):
                return len(node.value.keys)
    return 0


def result_lines(root: Path) -> int | None:
    """Lines of the text files that git holds in benchmarks/results; None where there is no git."""
    asked = ["git", "-C", str(root), "ls-files", "-z", "benchmarks/results"]
    try:
        listed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        return None
    files = [root / name for name in listed if name and not name.endswith(".parquet")]
    return sum(lines_of(path) for path in files if path.exists())


def table(since: float | None = None, *, trace: bool = False) -> list[Row]:
    """All rows; `since` is when `make test` began, in seconds since 1970. `trace` runs fits to count their frames."""
    files = python_files(SOURCE)
    library = [path for path in files if path.name not in ("declared.py", "options.py")]
    arguments, where = most_arguments(library)
    shared = shared_class_names(files)
    architecture = ROOT / "tests" / "test_architecture.py"
    traced = frames.traces(SOURCE) if trace else {}
    depths = " / ".join(str(own.loss) for own in traced.values()) or None
    touched = len(traced["command line"].touched) if trace else None
    minutes = None if since is None else f"{(time.time() - since) / 60:.1f} min"
    return [
        Row("files in src", "167", "about 110", len(files)),
        Row("lines in src", "20,800", "at most 16,500", sum(map(lines_of, files))),
        Row("lines without docstrings, comments and blanks", "14,665", "", sum(map(code_lines_of, files))),
        Row(f"frames to the loss: {' / '.join(frames.PLACES)}", "24 / 12 / 9 / 4", "10 / 7 / 6 / 4", depths),
        Row("files that `setpoint fit` touches", "58", "at most 38", touched),
        Row("most arguments of a library function (options of commands apart)", "18", "8", f"{arguments} ({where})"),
        Row("top-level names", "86", "about 38", elements_of(SOURCE / "__init__.py", "__all__")),
        Row(
            "rooms in the architecture test",
            "26",
            "about 12",
            elements_of(architecture, "ROOMS") + elements_of(architecture, "DOORS"),
        ),
        Row("class names that mean two things", "5", "0", f"{len(shared)} ({', '.join(shared)})" if shared else 0),
        Row("`make test`, from its start", "12 min", "under 4 min", minutes),
        Row("lines of results in git", "90,000", "under 5,000", result_lines(ROOT)),
    ]


def shown(value: int | str | None) -> str:
    return "not measured (--trace)" if value is None else f"{value:,}" if isinstance(value, int) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.add_argument("--picture", action="store_true", help="write docs/images/rooms.svg, and no table")
    parser.add_argument("--since", type=float, help="when `make test` began, in seconds since 1970")
    parser.add_argument("--trace", action="store_true", help="count frames and files of four small fits, in seconds")
    asked = parser.parse_args()
    if asked.picture:
        picture.FILE.write_text(picture.draw(SOURCE))
        print(f"wrote {picture.FILE.relative_to(ROOT)}")
        return
    rows = table(asked.since, trace=asked.trace)
    if asked.json:
        print(
            json.dumps(
                {row.name: {"before": row.before, "planned": row.planned, "now": row.now} for row in rows}, indent=1
            )
        )
        return
    cells = [("", "0.1.0", "planned", "now"), *((r.name, r.before, r.planned, shown(r.now)) for r in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


if __name__ == "__main__":
    main()
