"""The changes that `benchmarks.faults.mutation` tries: those of mutmut, and which of them are left out."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from libcst import Module
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, create_mutations

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True, eq=False)
class Mutant:
    """A file with one change in it."""

    path: Path
    tree: Module
    change: Mutation

    @cached_property
    def source(self) -> str:
        return self.tree.deep_replace(self.change.original_node, self.change.mutated_node).code  # type: ignore[union-attr]

    @cached_property
    def line(self) -> int:
        """The first line that differs."""
        lines, changed = self.tree.code.splitlines(), self.source.splitlines()
        differs = (i for i, (a, b) in enumerate(zip(lines, changed)) if a != b)
        return next(differs, min(len(lines), len(changed)) - 1) + 1

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")

    @cached_property
    def name(self) -> str:
        before, after = (
            self.tree.code_for_node(node).strip() for node in (self.change.original_node, self.change.mutated_node)
        )
        return f"{self.path.relative_to(SOURCE / 'setpoint')}:{self.line}: {_short(before)} -> {_short(after)}"

    @cached_property
    def function(self) -> range | None:
        """The lines of the function in whose body the change is, if it is in one."""
        around = [
            range(node.lineno, (node.end_lineno or node.lineno) + 1)
            for node in ast.walk(ast.parse(self.tree.code))
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= self.line <= (node.end_lineno or 0)
        ]
        return max(around, key=len, default=None)

    @cached_property
    def statement(self) -> range:
        """The lines of the smallest statement that the change is in."""
        around = [
            range(node.lineno, (node.end_lineno or node.lineno) + 1)
            for node in ast.walk(ast.parse(self.tree.code))
            if isinstance(node, ast.stmt) and node.lineno <= self.line <= (node.end_lineno or 0)
        ]
        return min(around, key=len, default=range(self.line, self.line + 1))

    def take_effect(self, module: ModuleType) -> None:
        """Give the functions of a module that is already in use the code that they have in the mutant."""
        changed = ModuleType(module.__name__)
        exec(compile(self.source, str(self.path), "exec"), changed.__dict__)
        pairs = [(vars(module), vars(changed))]
        for old, new in pairs:
            for name, value in old.items():
                other = new.get(name)
                if isinstance(value, type) and isinstance(other, type) and value.__module__ == module.__name__:
                    pairs.append((vars(value), vars(other)))  # type: ignore[arg-type]
                for one, two in zip(_functions(value), _functions(other)):
                    if one.__module__ == module.__name__ and _written_in(two.__code__, self.path):
                        one.__code__ = two.__code__


def _functions(value: Any) -> list[FunctionType]:
    if isinstance(value, property):
        return [value.fget] if isinstance(value.fget, FunctionType) else []
    inner = getattr(value, "__func__", value)
    return [inner] if isinstance(inner, FunctionType) else []


def _written_in(code: CodeType, path: Path) -> bool:
    return code.co_filename == str(path)


def _short(code: str) -> str:
    text = " ".join(code.split())
    return text if len(text) <= 70 else text[:67] + "..."


def mutants(path: Path) -> tuple[list[Mutant], Counter[str]]:
    """Every change of a file but those left out, and how many of those there were, by reason."""
    code = path.read_text()
    tree, changes, *_ = create_mutations(str(path), code)
    places = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)
    raised = [(n.lineno, n.end_lineno or n.lineno) for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Raise)]
    found: list[Mutant] = []
    left_out: Counter[str] = Counter()
    for change in changes:
        line = places[change.original_node].start.line
        if any(first <= line <= last for first, last in raised):
            left_out["messages"] += 1
        else:
            found.append(Mutant(path, tree, change))
    return found, left_out
