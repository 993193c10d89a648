"""The commands of the command line, each declared with its options and its help; `commands/NAME.py` does the work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint.commands.options import (
    QUESTION,
    TRAINING,
    WRITING,
    Ask,
    ComparedModel,
    Data,
    Files,
    IgnoreExtra,
    Json,
    Model,
    MostWeight,
    Quiet,
    RunPlace,
    Strict,
    TargetName,
    Weight,
    as_text,
    in_chunks,
    of_output,
    of_table,
    of_training,
    takes,
)


@takes(of_table, as_text, of_training, in_chunks, of_output)
def fit(
    context: typer.Context,
    data: Annotated[list[Path] | None, Files] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column to predict.",
            metavar="COLUMN",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option(
            help="The goal and its bounds, such as 'minimize fnr where fpr <= 1%'.",
            metavar="ASK",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    model: Model = None,
    monotone: Annotated[
        str | None,
        typer.Option(
            help="For --model trees: columns with which the score may only rise or fall, as in +age,-income.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            help="The training method of --model linear or mlp: default (the method that did best in our studies for "
            "this model), auto (try a dozen, keep the best on held-out rows), implicit, weighted, cross-entropy; a "
            "wrong name lists them all.",
            rich_help_panel=TRAINING,
        ),
    ] = "default",
    tune: Annotated[
        int,
        typer.Option(
            help="Let optuna try this many settings more; implies --solver auto.",
            rich_help_panel=TRAINING,
        ),
    ] = 0,
    out: Annotated[
        Path,
        typer.Option(
            help="The directory to write the run to.",
            rich_help_panel=WRITING,
        ),
    ] = Path("run"),
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace an earlier run in that directory.",
            rich_help_panel=WRITING,
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            help="The seed of the split, of the first parameters and of the order of rows.", rich_help_panel=TRAINING
        ),
    ] = 0,
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="Train again on train and held-out rows, once held-out rows have chosen the epoch or the method. "
            "If not given: yes for --solver default, and for auto with --model linear.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    over_splits: Annotated[
        bool,
        typer.Option(
            "--over-splits",
            help="With --ensemble: give each model another random split into train and held-out rows.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the run in this directory, which was killed; only --json and --quiet may go with it.",
            rich_help_panel=WRITING,
        ),
    ] = None,
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            help="Seconds between two checkpoints in a long epoch.",
            rich_help_panel=WRITING,
        ),
    ] = 30.0,
    **shared: Any,
) -> None:
    r"""Train a model for an operating point and write it, with its threshold, to a directory.

    setpoint fit loans.csv --target default --ask "minimize fnr where fpr <= 1%"

    setpoint fit scans.parquet --target finding --confidence 0.95 --out scans \
      --ask "maximize tnr where recall >= 95%"

    setpoint fit mail.csv --target spam --model mlp --out mail-run \
      --ask "maximize precision where recall >= 90%"

    The rows are split at random into four parts: train, held-out (they choose the
    epoch, and are then trained on too), calibration (they set the threshold) and
    test (they judge the result). Plain cross-entropy is trained as well, for
    comparison. Columns may hold numbers, words, dates and missing values.
    A run that was killed goes on, to the very same result, with

    setpoint fit --resume mail-run
    """


@takes(of_table, as_text, of_training, of_output)
def compare(
    data: Data,
    target: TargetName,
    ask: Ask,
    trials: Annotated[
        int, typer.Option(help="How many random splits; their seeds are --seed, --seed + 1 and so on.")
    ] = 5,
    solvers: Annotated[
        str | None, typer.Option(help="Solvers, such as weighted,implicit. If not given: those that suit the ask.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(help="Kinds of models, each by its default. If neither models nor solvers are given: all kinds."),
    ] = None,
    model: ComparedModel = None,
    all_trials: Annotated[
        bool,
        typer.Option(
            "--all-trials",
            help="Run every trial. If not given, a method is stopped once the trials left cannot change the verdict.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="The seed of the first split.")] = 0,
    **shared: Any,
) -> None:
    r"""Train several methods on several random splits and say which differences from cross-entropy are real.

    setpoint compare loans.csv --target default \
      --ask "minimize fnr where fpr <= 1%"

    setpoint compare loans.csv --target default --ask "maximize f1" --trials 10 \
      --solvers weighted,implicit

    Every method sees the same splits, so differences are taken split by split;
    their standard errors are corrected for rows that splits share. The table
    grows as methods end. A method is stopped early if no result of its trials
    that are left could change the verdict; its row says after how many.
    """


@takes(as_text, in_chunks, of_output)
def evaluate(
    run: RunPlace,
    data: Data,
    level: Annotated[
        float, typer.Option(help="The probability, each time you look, of calling a bound broken that holds.")
    ] = 0.05,
    weight: Weight = None,
    most_weight: MostWeight = None,
    ignore_extra: IgnoreExtra = False,
    strict: Strict = False,
    **shared: Any,
) -> None:
    """Test a saved run on new labelled rows: its rates there, and whether its bounds still hold.

    setpoint evaluate run january.csv

    setpoint evaluate run january.csv --quiet || echo "the model needs attention"

    Every bound has an exact test, so that bad luck alone is rarely taken for a
    broken bound. Exit code 0: no bound is found broken; 1: a bound is found
    broken; 2: a mistake in the command or the file.
    """


@takes(as_text, in_chunks, of_output)
def watch(
    run: RunPlace,
    data: Data,
    scores: Annotated[
        bool, typer.Option("--scores", help="The rows have no labels yet: look for drift, and keep their scores.")
    ] = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="The table holds the labels of rows that were scored before.")
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="The column by which late labels find their rows, such as id.")
    ] = None,
    weight: Weight = None,
    most_weight: MostWeight = None,
    plan: Annotated[
        int | None, typer.Option(help="Draw about so many rows to label, those that tell most about the bounds.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file of the rows to label, with their weights.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for the look, such as 2026-07; else the file's.")] = None,
    level: Annotated[
        float | None,
        typer.Option(help="The probability of ever calling a promise broken that is kept, over all looks; 0.05."),
    ] = None,
    ignore_extra: IgnoreExtra = False,
    **shared: Any,
) -> None:
    """Take one more look at a run in use: is a bound broken, does it hold, or do the scores drift?

    setpoint watch run july.csv

    setpoint watch run july.csv --scores --key id

    setpoint watch run july-labels.csv --labels --key id

    setpoint watch run july.csv --plan 500 --out to_label.csv

    setpoint watch run to_label.csv --weight weight

    Look as often as you like: the level is that of all looks together. A batch
    that was counted before is not counted again. Exit code 0: the bounds hold,
    or it is open; 1: a bound is broken; 4: drift only; 2: a mistake.
    """


@takes(as_text, in_chunks, of_output)
def calibrate(
    run: RunPlace,
    data: Data,
    confidence: Annotated[
        str, typer.Option(help="As in setpoint fit: auto, none, or a probability such as 0.95.")
    ] = "auto",
    weight: Weight = None,
    most_weight: MostWeight = None,
    ignore_extra: IgnoreExtra = False,
    **shared: Any,
) -> None:
    """Set the threshold of a run anew, on fresh labelled rows; the model and the earlier points are kept.

    setpoint calibrate run fresh.csv

    setpoint calibrate run fresh.csv --confidence 0.95

    The rows must be new: neither those of the training nor rows that were
    watched. predict, evaluate and watch use the new threshold from then on.
    Exit code 3: no certificate although --confidence demands one.
    """


@takes(as_text, in_chunks)
def predict(
    run: RunPlace,
    data: Data,
    out: Annotated[
        Path, typer.Option(help="The .csv, .tsv or .parquet file to write; - writes CSV to standard output.")
    ] = Path("-"),
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to copy to the output, such as an identifier; for several, write commas between them or "
            "repeat the option. Texts that a spreadsheet may run as formulas are copied too, with a note."
        ),
    ] = None,
    ignore_extra: IgnoreExtra = False,
    strict: Strict = False,
    quiet: Quiet = False,
    **shared: Any,
) -> None:
    """Score the rows of a table: one score and one decision per row, 1 for the positive class.

    setpoint predict run new.csv

    setpoint predict run new.parquet --keep customer --out decisions.parquet

    zcat new.csv.gz | setpoint predict run - > decisions.csv
    """


def report(
    run: Annotated[
        Path | None, typer.Argument(help="A directory that `setpoint fit` wrote.", show_default=False)
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="The table that the run was trained on, to show what drives the score and where it errs. If not "
            "given: the same file, if it lies here or beside the run."
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="In the place of a run: a table with the columns score and label, of any model's new rows."),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option(help="With --scores: the goal and its bounds, such as 'minimize fnr where fpr <= 1%'."),
    ] = None,
    target: Annotated[str, typer.Option(help="With --scores: the column of the labels.")] = "label",
    positive: Annotated[
        str | None,
        typer.Option(
            help="With --scores: the class that high scores stand for. If not given, of two classes: the larger "
            "number, the word for yes, or the rarer class.",
            metavar="CLASS",
        ),
    ] = None,
    confidence: Annotated[
        str, typer.Option(help="With --scores: as in setpoint fit; auto, none, or a probability such as 0.95.")
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; report.html in the run, or here, if not given.")
    ] = None,
    png: Annotated[
        bool, typer.Option("--png", help="Write a PNG picture beside the HTML file (needs matplotlib).")
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    r"""Write the report of a run, or of any model's scores: one HTML file with curves, numbers and a slider.

    setpoint report run

    setpoint report run --png --open

    setpoint report --scores scores.csv --positive bad \
      --ask "minimize fnr where fpr <= 1%"

    With --scores half of the rows set the threshold and its certificate, and the
    other half judge it.
    """


def export(
    run: RunPlace,
    out: Annotated[Path, typer.Argument(help="The .onnx file to write.", show_default=False)],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A table whose rows are tried too, such as the training table; may be repeated."),
    ] = None,
    script: Annotated[
        bool, typer.Option("--script/--no-script", help="Write predict.py beside the file: CSV in, decisions out.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Write a run as one ONNX file: columns in, scores and decisions out.

    setpoint export run model.onnx

    setpoint export run model.onnx --data loans.csv

    The file is run before it is written, on made rows, rows at the threshold and
    the rows of --data. If one decision differs from that of `setpoint predict`,
    the file is not written. predict.py needs onnxruntime and numpy alone.
    """


def explain(
    ask: Annotated[str, typer.Argument(help="The goal and its bounds, in quotes.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Explain an ask: its meaning in words, the samples that a certificate needs, the solver of each model.

    setpoint explain "minimize fnr where fpr <= 1%"

    setpoint explain "maximize precision where recall >= 95%"
    """


#: In the order of the help. A command named NAME is `setpoint.commands.NAME.main`.
COMMANDS: tuple[Callable[..., None], ...] = (
    fit, compare, evaluate, predict, watch, calibrate, export, report, explain,
)  # fmt: skip
