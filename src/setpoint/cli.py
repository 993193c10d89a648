"""The command line: `setpoint fit`, `predict`, `report`. Thin: what it does is in `run`, `artefact` and `table`."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from setpoint.errors import BadSetting, SetpointError
from setpoint.problem.language import ask as read_ask

MISSING: str | None = None
try:
    import typer

    from setpoint.artefact import check_place, load_run, save_run, version
    from setpoint.report_run import write_report
    from setpoint.run import fit_table
    from setpoint.settings import Settings
    from setpoint.show import console, progress, result_table, sentences
    from setpoint.table.frame import read_table, write_csv
except ModuleNotFoundError as cause:
    if cause.name not in ("polars", "rich", "safetensors", "typer"):
        raise
    MISSING = cause.name

FIT_HELP = """Train a model for an operating point and write it, with its threshold, to a directory.

setpoint fit loans.csv --target default --ask "minimize fnr where fpr <= 1%"

setpoint fit scans.parquet --target finding --ask "maximize tnr where recall >= 95%" --confidence 0.95

setpoint fit mail.csv --target spam --ask "maximize precision where recall >= 90%" --model mlp --out mail-run

The rows are split at random: train, held-out (chooses the epoch), calibration (sets the threshold), test. Plain
cross-entropy is trained beside the solver and shown with it. Missing values, words and numbers are all welcome.
"""
PREDICT_HELP = """Score the rows of a table: a CSV with a score and a decision a row, 1 for the positive class.

setpoint predict run new.csv

setpoint predict run new.parquet --out decisions.csv
"""
REPORT_HELP = """Write the report of a run: one HTML file with curves, a slider for the threshold, and all figures.

setpoint report run

setpoint report run --png --open
"""


def fit(
    data: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.", show_default=False)],
    target: Annotated[str, typer.Option(help="The column to predict; it holds two classes.", show_default=False)],
    ask: Annotated[str, typer.Option(help="What to train for: 'minimize fnr where fpr <= 1%'.", show_default=False)],
    positive: Annotated[
        str | None,
        typer.Option(help="The positive class; if not given: the larger number, yes, or the rarer class."),
    ] = None,
    model: Annotated[str, typer.Option(help="linear, or mlp (two hidden layers of 64).")] = "linear",
    solver: Annotated[
        str,
        typer.Option(
            help="default (what has been measured to work for the model), implicit, weighted or cross-entropy."
        ),
    ] = "default",
    epochs: Annotated[int | None, typer.Option(help="Passes over the rows; if not given, some 2,000 steps.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows a step; if not given, 512, or all of them up to 4,096.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the split, the first parameters and the order.")] = 0,
    confidence: Annotated[
        float | None, typer.Option(help="Certify the bound with this probability, such as 0.95.")
    ] = None,
    shares: Annotated[
        str, typer.Option(help="Shares of train, held-out, calibration and test rows.")
    ] = "0.5,0.15,0.15,0.2",
    ensemble: Annotated[int, typer.Option(help="Models trained from different seeds, their logits averaged.")] = 1,
    out: Annotated[Path, typer.Option(help="The directory to write.")] = Path("run"),
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run in that directory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    problem = read_ask(ask)
    settings = Settings(model, solver, epochs, batch_size, seed, confidence, _shares(shares), ensemble)
    check_place(out, force=force)
    screen, aside = console(), console(stderr=True)
    with progress(aside) as on_epoch:
        run = fit_table(read_table(data), target, problem, settings, positive=positive, on_epoch=on_epoch)
    save_run(out, run, force=force)
    for note in run.notes:
        aside.print(f"note: {note}", markup=False, soft_wrap=True)
    if as_json:
        print(json.dumps({"out": str(out), **run.to_dict()}, indent=2))
        return
    screen.print(result_table(run))
    for sentence in [*sentences(run), f"Written to {out}; score new rows with: setpoint predict {out} new.csv"]:
        screen.print(sentence, markup=False, soft_wrap=True)


def predict(
    run: Annotated[Path, typer.Argument(help="A directory that `setpoint fit` wrote.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.", show_default=False)],
    out: Annotated[str, typer.Option(help="The CSV file to write; - for standard output.")] = "-",
) -> None:
    saved = load_run(run)
    frame = read_table(data)
    scores = saved.scores(frame)
    for note in saved.schema.notes(frame):
        print(f"note: {note}", file=sys.stderr)
    decisions = saved.point.predict(scores).reshape(len(scores), -1).T.numpy()
    names = ["decision"] if len(decisions) == 1 else [f"decision_{i + 1}" for i in range(len(decisions))]
    write_csv({"score": scores.numpy(), **dict(zip(names, decisions))}, None if out == "-" else Path(out))


def report(
    run: Annotated[Path, typer.Argument(help="A directory that `setpoint fit` wrote.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The HTML file; if not given, report.html in the run.")] = None,
    png: Annotated[bool, typer.Option("--png", help="Write a picture beside it (needs matplotlib).")] = False,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    written = write_report(run, out, png=png)
    print(f"Written to {' and '.join(map(str, written))}.")
    if show:
        webbrowser.open(written[0].absolute().as_uri())


def _shares(text: str) -> tuple[float, float, float, float]:
    try:
        train, held_out, calibration, test = (float(share) for share in text.split(","))
    except ValueError as cause:
        raise BadSetting(f"shares must be four numbers such as 0.5,0.15,0.15,0.2, got {text!r}") from cause
    return train, held_out, calibration, test


def _version(wanted: bool) -> None:
    if wanted:
        print(f"setpoint {version()}")
        raise typer.Exit


def _about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Train the model for the operating point it will be judged at."""


def main(arguments: list[str] | None = None) -> None:
    """The console entry point. The user's mistakes end in one sentence and exit code 2."""
    if MISSING is not None:
        _stop(f"the command line needs {MISSING}; install it with: pip install 'setpoint[cli]'")
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_about)
    app.command(help=FIT_HELP)(fit)
    app.command(help=PREDICT_HELP)(predict)
    app.command(help=REPORT_HELP)(report)
    try:
        app(arguments, prog_name="setpoint")
    except SetpointError as cause:
        _stop(str(cause))
    except BrokenPipeError:
        # The reader has had enough (| head): no more output, not even when Python closes its files.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as cause:
        _stop(f"{cause.strerror or cause}: {cause.filename}")


def _stop(sentence: str) -> None:
    print(f"setpoint: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
