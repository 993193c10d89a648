"""`setpoint report`: one page about a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from setpoint.data.frame import Frame, read_table
from setpoint.data.scan import fingerprint
from setpoint.errors import SetpointError
from setpoint.report.of_run import write_report
from setpoint.run.artefact import load_run


def main(*, run: Path, data: list[Path] | None, out: Path | None, png: bool, show: bool) -> None:
    written = write_report(run, out, png=png, data=read_table(data) if data else _table_of(run))
    print(f"Written to {' and '.join(map(str, written))}.")
    if show:
        webbrowser.open(written[0].absolute().as_uri())


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
