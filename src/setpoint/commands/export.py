"""`setpoint export`: a run as one ONNX file, and the script that runs it."""

from __future__ import annotations

from pathlib import Path

from setpoint.commands.terminal import tell
from setpoint.data.exchange import read_anywhere
from setpoint.export.write import export_onnx, write_script


def main(*, run: Path, out: Path, data: list[Path] | None, script: bool, quiet: bool) -> None:
    tried = export_onnx(run, out, read_anywhere(data) if data else None)
    written = [out, *([write_script(out)] if script else [])]
    tell(f"Tried on {tried}.", f"Written to {' and '.join(map(str, written))}.", quiet=quiet)
