"""Lines for people on the terminal. A command that has nothing to say does not load rich."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

#: The width of what is printed when nobody says how wide the screen is, as in a pipe or a log.
WIDE = 140


def console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that does not squeeze the table of a run when its output goes to a file; a quiet one is mute."""
    from rich.console import Console  # noqa: PLC0415  (slow to import, and most answers come without words)

    screen = Console(stderr=stderr, highlight=False, quiet=quiet)
    return screen if screen.is_terminal else Console(stderr=stderr, highlight=False, quiet=quiet, width=WIDE)


def say(screen: Console, *lines: str) -> None:
    """Plain lines, folded where the screen ends only if it is a terminal."""
    for line in lines:
        screen.print(line, markup=False, soft_wrap=not screen.is_terminal)


def tell(*lines: str, stderr: bool = False, quiet: bool = False) -> None:
    """Plain lines on a console of their own; none if there are no lines, or if nobody wants to read them."""
    if lines and not quiet:
        say(console(stderr=stderr), *lines)


def unlike_training(alarms: Sequence[str]) -> bool:
    """Whether most rows of some column are unlike those of training; says so on standard error if they are."""
    if alarms:
        more = f" (and {len(alarms) - 1} more columns)" if len(alarms) > 1 else ""
        print(
            f"setpoint: {alarms[0]}{more}; nothing was written: check the file, or leave out --strict", file=sys.stderr
        )
    return bool(alarms)
