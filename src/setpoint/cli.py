"""The command line: from the words of a command to its exit code. `commands/declared.py` holds the options.

The work of a command is loaded when the command runs, so that `--help` loads neither torch nor polars.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from setpoint import __version__
from setpoint.errors import SetpointError
from setpoint.files import naming

COMMANDS: tuple[Callable[..., None], ...] = ()
MISSING: str | None = None
try:
    import typer

    from setpoint.commands.declared import COMMANDS
    from setpoint.commands.help import PlainCommand, PlainGroup
except ModuleNotFoundError as cause:
    if cause.name != "typer":
        raise
    MISSING = cause.name

# Typer loads pydantic, which looks for plugins among all packages that are installed.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
#: Packages of the extra `cli`; a library installed without it lacks them.
EXTRA = ("polars", "rich", "safetensors", "typer")
MISTAKE, FAULT, STOPPED, DEAF = 2, 70, 130, 141

#: Where to begin, for those who type `setpoint` alone.
FIRST_STEPS = """\
setpoint trains a model for the operating point it will be judged at.

What does a question mean, and how many rows does its proof need?
  setpoint explain "minimize fnr where fpr <= 1%"

Train, set the threshold, certify; then look at the result, and use it:
  setpoint fit data.csv --target label --ask "minimize fnr where fpr <= 1%"
  setpoint report run --open
  setpoint predict run new.csv --out decisions.csv

Scores of a model that you have already, in a file with columns score and label:
  setpoint report --scores scores.csv --ask "minimize fnr where fpr <= 1%"

All commands: setpoint --help"""
#: Words that people try, and the command that does it.
MEANT = {
    "train": "fit", "run": "fit", "learn": "fit", "score": "predict", "apply": "predict", "test": "evaluate",
    "check": "evaluate", "validate": "evaluate", "show": "report", "monitor": "watch", "threshold": "calibrate",
    "onnx": "export", "benchmark": "compare", "describe": "explain", "ask": "explain",
}  # fmt: skip


def command_line(only: str = "") -> Any:
    """The application, ready to be called; with one command alone, if there is a command of this name."""
    app = typer.Typer(
        cls=PlainGroup, rich_markup_mode=None, pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_about)
    for declared in [one for one in COMMANDS if one.__name__ == only] or COMMANDS:
        app.command(cls=PlainCommand)(_with_body(declared))
    return app


def _with_body(declared: Callable[..., None]) -> Callable[..., int]:
    """The command as declared, doing what its module does; the answer is the exit code."""

    @functools.wraps(declared)
    def run(**given: Any) -> int:
        body = importlib.import_module(f"setpoint.commands.{declared.__name__}").main
        gc.enable()
        if given.get("out") is not None and declared.__name__ != "fit":  # It writes a directory, over no file at all.
            importlib.import_module("setpoint.commands.inputs").refuse_to_overwrite(given)
        return int(body(**given) or 0)

    return run


def _version(wanted: bool) -> None:
    if wanted:
        print(f"setpoint {__version__}")
        raise typer.Exit


def _about(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Train a model for the threshold it will run at.

    setpoint explain "minimize fnr where fpr <= 1%"

    setpoint fit loans.csv --target default --ask "minimize fnr where fpr <= 1%"

    setpoint predict run new.csv

    Exit codes: 0 done; 1 evaluate or watch found the promise broken; 2 a mistake
    in the command or a file; 3 no certificate although --confidence demands one
    (the run is kept); 4 watch found drift alone; 70 a fault in setpoint; 130
    stopped; 141 nobody reads on.
    """
    if context.invoked_subcommand is None:
        print(FIRST_STEPS)


def main(arguments: list[str] | None = None) -> None:
    """The console entry point. The user's mistakes end in one sentence and exit code 2.

    If the reader of the output stops reading (| head), the exit code is 141, whatever the command had found.
    """
    # Until the work begins: what is loaded is kept, so looking for garbage in it is a tenth of the start.
    gc.disable()
    try:
        code = _exit_code(arguments)
        with naming("standard output"):
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as cause:
        # rich ends the program with code 1 at a closed pipe; that code would say that a promise is broken.
        if isinstance(cause, SystemExit) and not isinstance(cause.__context__, BrokenPipeError):
            raise
        _print_no_more()
        code = DEAF
    except OSError as cause:
        _print_no_more()
        code = _stopped(f"{cause.filename or 'a file'} cannot be written or read: {cause.strerror or cause}")
    finally:
        gc.enable()
        if arguments is None:
            # The process ends: to look for garbage in all that was loaded takes a tenth of a second.
            gc.freeze()
    sys.exit(code)


def _exit_code(arguments: list[str] | None) -> int:
    """Run a command; every mistake has been told."""
    if MISSING is not None:
        return _stopped(f"the command line needs {MISSING}; install it with: pip install 'setpoint[cli]'")
    try:
        first = (sys.argv[1:] if arguments is None else arguments)[:1]
        return command_line(*first)(arguments, prog_name="setpoint", standalone_mode=False) or 0
    except (SetpointError, ModuleNotFoundError) as cause:
        package = getattr(cause, "name", None)
        if package in EXTRA:
            return _stopped(f"the command line needs {package}; install it with: pip install 'setpoint[cli]'")
        if not isinstance(cause, SetpointError):
            raise
        return _stopped(str(cause))
    except (KeyboardInterrupt, typer.Abort):
        print("setpoint: stopped", file=sys.stderr)
        return STOPPED
    except Exception as cause:
        if isinstance(cause, OSError):
            raise
        # The message of typer itself on a wrong option.
        if hasattr(cause, "format_message"):
            return _stopped(_usage(cause))
        traceback.print_exc()
        print("setpoint: this is a fault in setpoint itself; please report it with the lines above", file=sys.stderr)
        return FAULT


def _print_no_more() -> None:
    """Forget what a closed stream has not taken: Python would try once more, and fail, when it closes its files."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _usage(cause: Any) -> str:
    context = getattr(cause, "ctx", None)
    place = context.command_path if context is not None else "setpoint"
    message = " ".join(cause.format_message().split()).rstrip(".")
    unknown = message.startswith("No such command") and message.split("'")[1]
    if unknown and Path(unknown).suffix:
        return f'{message}; to train on a table: setpoint fit {unknown} --target COLUMN --ask "..."'
    if unknown and unknown.lower() in MEANT:
        return f"{message}. Did you mean {MEANT[unknown.lower()]!r}? See {place} --help"
    if unknown and not message.endswith("?"):
        return f"{message}; the commands are {', '.join(one.__name__ for one in COMMANDS)}; see {place} --help"
    return f"{message} See {place} --help" if message.endswith("?") else f"{message}; see {place} --help"


def _stopped(sentence: str) -> int:
    print(f"setpoint: {sentence}", file=sys.stderr)
    return MISTAKE


if __name__ == "__main__":
    main()
