"""The command line: the options of each command. Its work is done in `commands`, which is loaded when it runs.

Hence `--help` and shell completion load neither torch nor polars, and answer at once.
"""

from __future__ import annotations

import functools
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

MISSING: str | None = None
try:
    import typer
except ModuleNotFoundError as cause:
    if cause.name != "typer":
        raise
    MISSING = cause.name

#: Packages of the extra `cli`; a library installed without it lacks them.
EXTRA = ("polars", "rich", "safetensors", "typer")
MISTAKE, FAULT, STOPPED, DEAF = 2, 70, 130, 141

#: The panel of the help for options about the table.
READING = "The table"

if MISSING is None:
    Files = typer.Argument(
        help="The table: text (.csv, .tsv, .txt), Parquet, Arrow (.arrow, .feather) or JSON lines (.jsonl), also "
        "compressed (.gz, .zst). Several files, or a folder of files, make one table. - is standard input.",
        show_default=False,
    )
    Data = Annotated[list[Path], Files]
    Separator = Annotated[
        str | None,
        typer.Option(
            help="The character between two values of a text file, or tab. If not given: found from the file.",
            rich_help_panel=READING,
        ),
    ]
    Encoding = Annotated[
        str | None,
        typer.Option(
            help="The encoding of a text file, such as latin-1. If not given: found from the file.",
            rich_help_panel=READING,
        ),
    ]
    NoHeader = Annotated[
        bool,
        typer.Option(
            "--no-header",
            help="The first line of a text file is a row; the columns are named column_1, column_2 and so on.",
            rich_help_panel=READING,
        ),
    ]
    Drop = Annotated[
        list[str] | None,
        typer.Option(
            help="A column not to learn from; for several, write commas between them or repeat the option.",
            rich_help_panel=READING,
        ),
    ]
    Columns = Annotated[
        list[str] | None,
        typer.Option(
            help="The only columns to learn from, with commas between them, or the option repeated.",
            rich_help_panel=READING,
        ),
    ]
    DropMissing = Annotated[
        bool,
        typer.Option(
            "--drop-missing-target",
            help="Leave out rows without a label; they are an error otherwise.",
            rich_help_panel=READING,
        ),
    ]
    Lists = Annotated[
        str | None,
        typer.Option(
            help="For asks such as 'maximize precision in the first 5': the column that names the list of each row.",
            rich_help_panel=READING,
        ),
    ]
    Relevant = Annotated[
        float | None,
        typer.Option(
            help="With --lists, if the target holds grades: the grade from which on a row is positive.",
            rich_help_panel=READING,
        ),
    ]
    RunPlace = Annotated[Path, typer.Argument(help="A directory that `setpoint fit` wrote.", show_default=False)]
    TargetName = Annotated[str, typer.Option("--target", help="The column to predict.", show_default=False)]
    Ask = Annotated[
        str,
        typer.Option(
            "--ask", help="The goal and its bounds, such as 'minimize fnr where fpr <= 1%'.", show_default=False
        ),
    ]
    Positive = Annotated[
        str | None,
        typer.Option(
            help="The class to find; all others are negative. If not given, of two classes: the larger number, the "
            "word for yes, or the rarer class."
        ),
    ]
    Model = Annotated[
        str | None,
        typer.Option(
            help="auto (cross-fit all kinds and their stack, keep the best), linear, trees, or mlp (a network with two "
            "hidden layers of 64). If not given: auto, or linear if --solver, --tune, --epochs or --batch-size is.",
            show_default=False,
        ),
    ]
    ComparedModel = Annotated[
        str | None,
        typer.Option(help="The kind of model that --solvers train; linear if not given.", show_default=False),
    ]
    Minutes = Annotated[
        float | None, typer.Option(help="The time that --model auto may take. If not given: as long as it needs.")
    ]
    Epochs = Annotated[
        int | None, typer.Option(help="Passes over the training rows. If not given: about 2,000 steps in all.")
    ]
    BatchSize = Annotated[
        int | None,
        typer.Option(help="Rows per step. If not given: all rows up to 4,096, above that 512, for large tables 4,096."),
    ]
    Confidence = Annotated[
        str,
        typer.Option(
            help="Set a threshold that keeps the bounds on new data with this probability, such as 0.95; exit code 3 "
            "if the rows do not allow it. auto: 0.95 where the rows suffice; none: the bare cut."
        ),
    ]
    Shares = Annotated[
        str, typer.Option(help="How much of the table goes to train, held-out, calibration and test rows.")
    ]
    Categorical = Annotated[
        list[str] | None,
        typer.Option(help="A column whose numbers are names, such as a region code; may be given several times."),
    ]
    Number = Annotated[
        list[str] | None,
        typer.Option("--numeric", help="A column of numbers to use although it looks like an identifier."),
    ]
    Hash = Annotated[
        list[str] | None,
        typer.Option("--hash", help="A column of very many values to use by a hash of each value."),
    ]
    FreeText = Annotated[
        list[str] | None, typer.Option("--text", help="A column of free text to use by hashes of its words.")
    ]
    TargetEncode = Annotated[
        list[str] | None,
        typer.Option("--target-encode", help="A column of very many values to use by the labels of each value."),
    ]
    Members = Annotated[int, typer.Option(help="Train this many models from different seeds and average their scores.")]
    Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
    IgnoreExtra = Annotated[
        bool,
        typer.Option(
            "--ignore-extra", help="Ignore columns that the training table did not have; they are an error otherwise."
        ),
    ]
    Weight = Annotated[
        str | None,
        typer.Option(help="The column of weights: the number of rows that each row stands for, as --plan wrote it."),
    ]
    MostWeight = Annotated[
        float | None,
        typer.Option(help="The largest weight that can occur; not needed for the weights of a plan."),
    ]
    Strict = Annotated[
        bool,
        typer.Option("--strict", help="Stop with exit code 1 if most rows of any column are unlike those of training."),
    ]
    Cluster = Annotated[
        str | None,
        typer.Option(
            help="A column such as patient: all rows of one value are in one part, and the certificate is over them.",
            rich_help_panel=READING,
        ),
    ]
    Time = Annotated[
        str | None,
        typer.Option(
            help="A column of dates or numbers: the first rows train, later ones set the threshold, the last test.",
            rich_help_panel=READING,
        ),
    ]
    Streamed = Annotated[bool, typer.Option("--stream", help="Read the table in chunks, if it is larger than memory.")]
    Quiet = Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no progress and no notes; errors are still printed.")
    ]

SHARES = "0.5,0.15,0.15,0.2"


def fit(
    context: typer.Context,
    data: Annotated[list[Path] | None, Files] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.", show_default=False)] = None,
    ask: Annotated[
        str | None,
        typer.Option(help="The goal and its bounds, such as 'minimize fnr where fpr <= 1%'.", show_default=False),
    ] = None,
    positive: Positive = None,
    drop: Drop = None,
    columns: Columns = None,
    drop_missing_target: DropMissing = False,
    lists: Lists = None,
    relevant: Relevant = None,
    cluster: Cluster = None,
    time: Time = None,
    separator: Separator = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    model: Model = None,
    minutes: Minutes = None,
    monotone: Annotated[
        str | None,
        typer.Option(help="For --model trees: columns with which the score may only rise or fall, as in +age,-income."),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            help="The training method of --model linear or mlp: default (the method that did best in our studies for "
            "this model), auto (try a dozen, keep the best on held-out rows), implicit, weighted, cross-entropy; a "
            "wrong name lists them all."
        ),
    ] = "default",
    tune: Annotated[int, typer.Option(help="Let optuna try this many settings more; implies --solver auto.")] = 0,
    confidence: Confidence = "auto",
    out: Annotated[Path, typer.Option(help="The directory to write the run to.")] = Path("run"),
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run in that directory.")] = False,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Annotated[
        int, typer.Option(help="The seed of the split, of the first parameters and of the order of rows.")
    ] = 0,
    shares: Shares = SHARES,
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="Train again on train and held-out rows, once held-out rows have chosen the epoch or the method. "
            "If not given: yes for --solver default, and for auto with --model linear.",
            show_default=False,
        ),
    ] = None,
    ensemble: Members = 1,
    over_splits: Annotated[
        bool,
        typer.Option(
            "--over-splits", help="With --ensemble: give each model another random split into train and held-out rows."
        ),
    ] = False,
    categorical: Categorical = None,
    numeric: Number = None,
    hashed: Hash = None,
    text: FreeText = None,
    target_encode: TargetEncode = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the run in this directory, which was killed; only --json and --quiet may go with it."
        ),
    ] = None,
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between two checkpoints in a long epoch.")] = 30.0,
    stream: Streamed = False,
    as_json: Json = False,
    quiet: Quiet = False,
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
    positive: Positive = None,
    drop: Drop = None,
    columns: Columns = None,
    drop_missing_target: DropMissing = False,
    lists: Lists = None,
    relevant: Relevant = None,
    cluster: Cluster = None,
    time: Time = None,
    separator: Separator = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    model: ComparedModel = None,
    minutes: Minutes = None,
    confidence: Confidence = "auto",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Annotated[int, typer.Option(help="The seed of the first split.")] = 0,
    shares: Shares = SHARES,
    ensemble: Members = 1,
    categorical: Categorical = None,
    numeric: Number = None,
    hashed: Hash = None,
    text: FreeText = None,
    target_encode: TargetEncode = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    r"""Train several solvers on several random splits and say which differences from cross-entropy are real.

    setpoint compare loans.csv --target default \
      --ask "minimize fnr where fpr <= 1%"

    setpoint compare loans.csv --target default --ask "maximize f1" --trials 10 \
      --solvers weighted,implicit

    Every solver sees the same splits, so differences are taken split by split;
    their standard errors are corrected for rows that splits share.
    """


def evaluate(
    run: RunPlace,
    data: Data,
    level: Annotated[
        float, typer.Option(help="The probability, each time you look, of calling a bound broken that holds.")
    ] = 0.05,
    weight: Weight = None,
    most_weight: MostWeight = None,
    separator: Separator = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    stream: Streamed = False,
    ignore_extra: IgnoreExtra = False,
    strict: Strict = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test a saved run on new labelled rows: its rates there, and whether its bounds still hold.

    setpoint evaluate run january.csv

    setpoint evaluate run january.csv --quiet || echo "the model needs attention"

    Every bound has an exact test, so that bad luck alone is rarely taken for a
    broken bound. Exit code 0: no bound is found broken; 1: a bound is found
    broken; 2: a mistake in the command or the file.
    """


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
    separator: Separator = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    stream: Streamed = False,
    ignore_extra: IgnoreExtra = False,
    as_json: Json = False,
    quiet: Quiet = False,
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


def calibrate(
    run: RunPlace,
    data: Data,
    confidence: Annotated[
        str, typer.Option(help="As in setpoint fit: auto, none, or a probability such as 0.95.")
    ] = "auto",
    weight: Weight = None,
    most_weight: MostWeight = None,
    separator: Separator = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    ignore_extra: IgnoreExtra = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the threshold of a run anew, on fresh labelled rows; the model and the earlier points are kept.

    setpoint calibrate run fresh.csv

    setpoint calibrate run fresh.csv --confidence 0.95

    The rows must be new: neither those of the training nor rows that were
    watched. predict, evaluate and watch use the new threshold from then on.
    Exit code 3: no certificate although --confidence demands one.
    """


def predict(
    run: RunPlace,
    data: Data,
    out: Annotated[
        Path, typer.Option(help="The .csv, .tsv or .parquet file to write; - writes CSV to standard output.")
    ] = Path("-"),
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to copy to the output, such as an identifier; may be given several times. Texts that a "
            "spreadsheet may run as formulas are copied too, with a note."
        ),
    ] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    stream: Streamed = False,
    ignore_extra: IgnoreExtra = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Score the rows of a table: one score and one decision per row, 1 for the positive class.

    setpoint predict run new.csv

    setpoint predict run new.parquet --keep customer --out decisions.parquet

    zcat new.csv.gz | setpoint predict run - > decisions.csv
    """


def report(
    run: RunPlace,
    out: Annotated[Path | None, typer.Option(help="The HTML file. If not given: report.html in the run.")] = None,
    png: Annotated[
        bool, typer.Option("--png", help="Write a PNG picture beside the HTML file (needs matplotlib).")
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Write the report of a run: one HTML file with its curves, its numbers and a slider for the threshold.

    setpoint report run

    setpoint report run --png --open
    """


def export(
    run: RunPlace,
    out: Annotated[Path, typer.Argument(help="The .onnx file to write.", show_default=False)],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A table whose rows are tried too, such as the one that trained; may be repeated."),
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


def command_line() -> Any:
    """The application, ready to be called."""
    app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["--help", "-h"]})
    app.callback(invoke_without_command=True)(_about)
    for declared in COMMANDS:
        app.command()(_with_body(declared))
    return app


def _with_body(declared: Callable[..., None]) -> Callable[..., int]:
    """The command as declared, doing what its module does; the answer is the exit code."""

    @functools.wraps(declared)
    def run(**given: Any) -> int:
        try:
            code = importlib.import_module(f"setpoint.commands.{declared.__name__}").main(**given) or 0
            with naming("standard output"):
                sys.stdout.flush()
            return int(code)
        except BrokenPipeError:
            # The reader has had enough (| head): no more output, not even when Python closes its files.
            _print_no_more()
            return DEAF

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
    """Train a model for the threshold it will run at: say what to minimize and which bounds to keep.

    setpoint explain "minimize fnr where fpr <= 1%"

    setpoint fit loans.csv --target default --ask "minimize fnr where fpr <= 1%"

    setpoint predict run new.csv

    Exit codes: 0 done; 1 evaluate or watch found the promise broken; 2 a mistake
    in the command or a file; 3 no certificate although --confidence demands one
    (the run is kept); 4 watch found drift alone; 70 a fault in setpoint; 130
    stopped; 141 nobody reads on.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """The console entry point. The user's mistakes end in one sentence and exit code 2."""
    if MISSING is not None:
        _stop(f"the command line needs {MISSING}; install it with: pip install 'setpoint[cli]'")
    try:
        code = command_line()(arguments, prog_name="setpoint", standalone_mode=False)
    except (SetpointError, ModuleNotFoundError) as cause:
        package = getattr(cause, "name", None)
        if package in EXTRA:
            _stop(f"the command line needs {package}; install it with: pip install 'setpoint[cli]'")
        if not isinstance(cause, SetpointError):
            raise
        _stop(str(cause))
    except OSError as cause:
        try:
            sys.stdout.flush()
        except OSError:
            _print_no_more()
        _stop(f"{cause.filename or 'a file'} cannot be written or read: {cause.strerror or cause}")
    except (KeyboardInterrupt, typer.Abort):
        print("setpoint: stopped", file=sys.stderr)
        sys.exit(STOPPED)
    except Exception as cause:
        # The message of typer itself on a wrong option.
        if hasattr(cause, "format_message"):
            _stop(_usage(cause))
        traceback.print_exc()
        print("setpoint: this is a fault in setpoint itself; please report it with the lines above", file=sys.stderr)
        sys.exit(FAULT)
    sys.exit(code or 0)


def _print_no_more() -> None:
    """Forget what standard output has not taken: Python would try once more, and fail, when it closes its files."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(cause: Any) -> str:
    context = getattr(cause, "ctx", None)
    place = context.command_path if context is not None else "setpoint"
    message = " ".join(cause.format_message().split()).rstrip(".")
    return f"{message} See {place} --help" if message.endswith("?") else f"{message}; see {place} --help"


def _stop(sentence: str) -> None:
    print(f"setpoint: {sentence}", file=sys.stderr)
    sys.exit(MISTAKE)


if __name__ == "__main__":
    main()
