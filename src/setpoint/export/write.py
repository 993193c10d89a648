"""Writing an exported model, and the script that runs it, to files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from setpoint.errors import BadFile, CannotExport
from setpoint.export.of_run import export_graph
from setpoint.export.of_tuned import export_tuned
from setpoint.export.verify import Verified, verify
from setpoint.files import write_whole
from setpoint.run.artefact import SavedRun, load_run, with_module
from setpoint.serve.run import ServedRun

#: The script beside an exported model.
SCRIPT = "predict.py"


def export_onnx(model: Any, path: str | os.PathLike[str], example: Any = None) -> Verified:
    """Write a run, or a classifier with its threshold, as one ONNX file that takes rows and gives scores and decisions.

    The file is run by onnxruntime before it is written; if one decision differs from Python's, it is not written. See
    `docs/serving.md` for the inputs and outputs of the file.

    Args:
        model: The directory of a run, a run that `sp.load_run` read, or a fitted `sp.Tuned`.
        path: The file to write, which ends in .onnx.
        example: Rows to try the file on too, as a frame. A `Tuned` needs some: rows as its `predict` takes them.

    Returns:
        The number of rows on which the file was tried.

    Raises:
        CannotExport: If no ONNX file can hold the model, or a decision would differ; the message shows the row.
        MissingPackage: If onnx or onnxruntime is not installed.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tried = sp.export_onnx(save_run(folder + "/run", table), folder + "/model.onnx")
        >>> tried.rows, tried.differing_scores
        (2000, 0)
    """
    path = Path(path)
    if path.suffix.lower() != ".onnx":
        raise BadFile(f"{path} ends in {path.suffix or 'nothing'}; an exported model ends in .onnx")
    if hasattr(model, "operating_point_") and hasattr(model, "estimator_"):
        content, tried = export_tuned(model, example)
    else:
        saved = model if isinstance(model, SavedRun) else _saved(model)
        exported = export_graph(saved)
        content, tried = exported.content, verify(saved, exported, example)
    write_whole(path, content)
    return tried


def write_script(beside: Path) -> Path:
    """Write the script that runs an exported model, beside it."""
    script = beside.with_name(SCRIPT)
    write_whole(script, Path(__file__).with_name(SCRIPT).read_bytes())
    return script


def _saved(model: Any) -> SavedRun:
    if isinstance(model, ServedRun):
        return with_module(model)
    if not isinstance(model, (str, os.PathLike)):
        raise CannotExport(
            f"expected the directory of a run, a run that sp.load_run read, or a fitted sp.Tuned, got "
            f"{type(model).__name__}"
        )
    return load_run(model)
