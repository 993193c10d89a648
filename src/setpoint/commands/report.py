"""`setpoint report`: one page about a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from setpoint.report.of_run import write_report


def main(*, run: Path, out: Path | None, png: bool, show: bool) -> None:
    written = write_report(run, out, png=png)
    print(f"Written to {' and '.join(map(str, written))}.")
    if show:
        webbrowser.open(written[0].absolute().as_uri())
