"""The help of a command as plain text: the options in groups, each with its description in the full width."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: The widest name of an option that has its description on the same line.
NAMES = 26
#: The group of options that name none.
OTHERS = "Options"


class _Plain:
    """Writes the docstring as it stands, then arguments, then groups of options."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        for line in ["", *inspect.cleandoc(self.help).splitlines()]:  # type: ignore[attr-defined]
            wrapped = textwrap.wrap(line, formatter.width - 1) if len(line) >= formatter.width else [line]
            formatter.write("".join(f" {part}".rstrip() + "\n" for part in wrapped))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):  # type: ignore[attr-defined]
            if one.param_type_name == "argument":
                groups.setdefault("Arguments", []).append((one.name, one.help))
            elif record := one.get_help_record(ctx):
                groups.setdefault(one.rich_help_panel or OTHERS, []).append(record)
        for title in sorted(groups, key=lambda title: title == OTHERS):
            with formatter.section(title):
                formatter.write_dl(groups[title], col_max=NAMES)


class PlainCommand(_Plain, TyperCommand):
    """A command whose help is plain text."""


class PlainGroup(_Plain, TyperGroup):
    """The whole command line: the help lists the commands with their first sentences."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            firsts = [
                (name, inspect.cleandoc(one.help or "").partition("\n")[0]) for name, one in self.commands.items()
            ]
            formatter.write_dl(firsts, col_max=NAMES)
        super().format_options(ctx, formatter)
