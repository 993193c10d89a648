"""`setpoint report`: one page about a run, or about the scores of any model."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setpoint.commands.fit import read_sure
from setpoint.commands.terminal import tell
from setpoint.data.exchange import read_anywhere
from setpoint.data.frame import Column, Frame, nearest, read_table, tidy
from setpoint.data.reading import is_text, learn_readings, spoken_kind
from setpoint.data.scan import fingerprint
from setpoint.data.spelling import parse_plain
from setpoint.data.target import Target
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadSetting, BadTable, SetpointError
from setpoint.report.of_run import write_report
from setpoint.report.of_scores import report
from setpoint.report.verdict import goal
from setpoint.run.artefact import load_run

#: The column of scores in a file of scores.
SCORE = "score"


def main(
    *,
    run: Path | None,
    data: list[Path] | None,
    scores: Path | None,
    ask: str | None,
    target: str,
    positive: str | None,
    confidence: str,
    out: Path | None,
    png: bool,
    show: bool,
) -> None:
    if (run is None) == (scores is None):
        raise BadSetting(
            "report needs either the directory of a run, or --scores with a file of scores and labels; see setpoint "
            "report --help"
        )
    if scores is not None:
        written = [_of_scores(scores, ask, target, positive, confidence, out or Path("report.html"))]
    else:
        assert run is not None
        written = write_report(run, out, png=png, data=read_table(data) if data else _table_of(run))
    print(f"Written to {' and '.join(map(str, written))}.")
    if show:
        webbrowser.open(written[0].absolute().as_uri())


def _of_scores(path: Path, ask: str | None, target: str, positive: str | None, confidence: str, out: Path) -> Path:
    """Write the page of a file with a column of scores and one of labels."""
    if ask is None:
        raise BadSetting("--scores needs --ask, such as --ask 'minimize fnr where fpr <= 1%'")
    frame = read_anywhere([path], TextFormat(), [])
    if target == SCORE:
        raise BadSetting(f"column {SCORE!r} holds the scores, not the labels; name the column of labels with --target")
    for name in (SCORE, target):
        if name not in frame.columns:
            raise BadTable(f"{path} has no column {name!r}; {nearest(name, frame.columns)}")
    scores, found = _numbers(frame[SCORE], path), Target.of(frame, target, positive)
    page = report(
        ask, scores, found.labels(frame), confidence=read_sure(confidence), data=path.name,
        positive=f"{found.name} = {found.positive} ({found.why})",
    )  # fmt: skip
    about = [caution.sentence for caution in page.material.cautions]
    tell(*(f"note: {sentence}" for sentence in [goal(found).rstrip("."), *about]), stderr=True)
    return page.save(out)


def _numbers(column: Column, path: Path) -> NDArray[np.float64]:
    """The scores in a column of a file; the first row without a finite number is named."""
    where, column = f"column {column.name!r} of {path}", column.cast(str) if is_text(column) else column
    read = learn_readings(column.to_frame())[1][column.name]
    if not read.dtype.is_numeric() and read.null_count() < len(read):
        if not is_text(read):
            held = spoken_kind(read)
            raise BadTable(
                f"{where} holds {held}, but a score is one number per row; write each as a number such as 0.25"
            )
        text = tidy(read)
        odd = text.is_not_null() & parse_plain(text).is_null()
        row = int((odd if odd.any() else text.is_not_null()).arg_max() or 0)
        raise BadTable(f"{where} holds {text[row]!r} in row {row + 1}; write every score as a number such as 0.25")
    numbers = read.cast(float).fill_null(float("nan")).to_numpy()
    for odd_rows, what in ((np.isnan(numbers), "missing"), (np.isinf(numbers), "infinite")):
        if odd_rows.any():
            first = f"first in row {int(odd_rows.argmax()) + 1}"
            raise BadTable(
                f"{where} is {what} in {int(odd_rows.sum()):,} of {len(numbers):,} rows, {first}; give every row a "
                "finite score, or leave such rows out"
            )
    return numbers


def _table_of(run: Path) -> Frame | None:
    """The table that the run was trained on, if its files lie here or beside the run, unchanged."""
    known = load_run(run).about["data"]
    for folder in (Path(), run.parent):
        files = [folder / Path(name).name for name in known.get("files", [])]
        if files and all(file.is_file() for file in files):
            try:
                table = read_table(files)
            except SetpointError:
                continue
            if fingerprint(table)["sha256"] == known["sha256"]:
                return table
    return None
