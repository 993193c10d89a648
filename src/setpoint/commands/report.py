"""`setpoint report`: one page about a run, or about the scores of any model."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from setpoint.commands.fit import read_sure
from setpoint.data.exchange import read_anywhere
from setpoint.data.frame import Frame, nearest, read_table
from setpoint.data.reading import learn_readings
from setpoint.data.scan import fingerprint
from setpoint.data.target import Target
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadSetting, BadTable, SetpointError
from setpoint.report.of_run import write_report
from setpoint.report.of_scores import report
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
        written = [_of_scores(scores, ask, target, confidence, out or Path("report.html"))]
    else:
        assert run is not None
        written = write_report(run, out, png=png, data=read_table(data) if data else _table_of(run))
    print(f"Written to {' and '.join(map(str, written))}.")
    if show:
        webbrowser.open(written[0].absolute().as_uri())


def _of_scores(path: Path, ask: str | None, target: str, confidence: str, out: Path) -> Path:
    """Write the page of a file with a column of scores and one of labels."""
    if ask is None:
        raise BadSetting("--scores needs --ask, such as --ask 'minimize fnr where fpr <= 1%'")
    frame = learn_readings(read_anywhere([path], TextFormat(), []))[1]
    for name in (SCORE, target):
        if name not in frame.columns:
            raise BadTable(f"{path} has no column {name!r}; {nearest(name, frame.columns)}")
    if not frame[SCORE].dtype.is_numeric():
        raise BadTable(f"column {SCORE!r} of {path} holds {frame[SCORE].dtype}; scores are numbers, one per row")
    labels = Target.of(frame, target).labels(frame)
    page = report(ask, frame[SCORE].to_numpy(), labels, confidence=read_sure(confidence), data=path.name)
    return page.save(out)


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
