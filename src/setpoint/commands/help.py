"""The help of a command as plain text, and its texts and paths as they are given.

The options of the help are in groups, each with its description in the full width. Typer loads pydantic to read a
command; a command of texts, paths and flags is read without it, since loading it is a sixth of the start of `predict`.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

from typer.core import TyperCommand, TyperGroup

#: The widest name of an option that has its description on the same line.
NAMES = 26
#: The group of options that name none.
OTHERS = "Options"
#: Types of values that need no check.
AS_GIVEN = (str, Path, list[str], list[Path])


class _Plain:
    """Writes the docstring as it stands, then arguments, then groups of options."""

    def get_params(self, ctx: Any) -> list[Any]:
        every: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in every:
            if "process_value" not in vars(one):
                one.process_value = partial(_value, one, one.process_value)
        return every

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        for line in ["", *inspect.cleandoc(self.help).splitlines()]:  # type: ignore[attr-defined]
            wrapped = textwrap.wrap(line, formatter.width - 1) if len(line) >= formatter.width else [line]
            formatter.write("".join(f" {part}".rstrip() + "\n" for part in wrapped))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            if one.param_type_name == "argument":
                groups.setdefault("Arguments", []).append((one.name, one.help))
            elif record := one.get_help_record(ctx):
                groups.setdefault(one.rich_help_panel or OTHERS, []).append(record)
        for title in sorted(groups, key=lambda title: title == OTHERS):
            with formatter.section(title):
                formatter.write_dl(groups[title], col_max=NAMES)


def _value(one: Any, process: Callable[..., Any], ctx: Any, given: Any) -> Any:
    """The value of a parameter: a text, a path, a list of these or nothing as it was given, all else by typer."""
    # Typers that do not load pydantic do not know this name.
    kind = getattr(getattr(one, "type_descriptor", None), "annotation", None)
    missing = one.value_is_missing(given)
    if kind is None or (one.required if missing else kind not in AS_GIVEN):
        return process(ctx, given)
    several = one.multiple or one.nargs == -1
    if missing:
        value: Any = () if several else None
    else:
        value = [get_args(kind)[0](each) for each in given] if several else kind(given)
    return value if one.callback is None else one.callback(ctx, one, value)


class PlainCommand(_Plain, TyperCommand):
    """A command whose help is plain text, and whose texts and paths are taken as they are given."""


class PlainGroup(_Plain, TyperGroup):
    """The whole command line: the help lists the commands with their first sentences."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            firsts = [
                (name, inspect.cleandoc(one.help or "").partition("\n")[0]) for name, one in self.commands.items()
            ]
            formatter.write_dl(firsts, col_max=NAMES)
        super().format_options(ctx, formatter)
