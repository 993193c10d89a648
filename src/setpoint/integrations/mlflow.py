"""A run as an MLflow model: logged with its signature and certificate, loaded and served by MLflow's own tools.

MLflow loads the model by `_load_pyfunc` of this file; what is stored is the run itself, and no pickle.
"""

from __future__ import annotations

import inspect
import json
import os
from typing import Any

from setpoint.data.schema import Schema
from setpoint.errors import CannotExport, missing
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Band
from setpoint.serve.run import ServedRun, answer_columns, load_run

try:
    import mlflow
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType
    from mlflow.types import Schema as Columns
    from mlflow.types.schema import Array
except ImportError as cause:
    raise missing(cause.name or "mlflow", "mlflow", cause) from None

#: The type of each kind of column in a signature; all other kinds are text, as JSON has them.
_TYPES = {"number": DataType.double, "boolean": DataType.boolean}


def log_run(path: str | os.PathLike[str], name: str = "model", registered_model_name: str | None = None) -> Any:
    """Log a run of setpoint as a model of the active MLflow run, with its ask and certificate as tags.

    `mlflow.pyfunc.load_model` and `mlflow models serve` then answer as `setpoint predict` does: a frame with the scores
    and decisions of the rows.

    Args:
        path: The directory of the run.
        name: The name of the model.
        registered_model_name: The name in the registry of models, if it is to be registered.

    Returns:
        MLflow's `ModelInfo`, whose `model_uri` names the model.

    Raises:
        BadFile: If there is no finished run, or it is damaged.
        CannotExport: If a column holds durations, which no signature has.
        MissingPackage: If MLflow or pandas is not installed.

    Example:
        ```python
        with mlflow.start_run():
            logged = log_run("run")
        mlflow.pyfunc.load_model(logged.model_uri).predict(frame)
        ```
    """
    run = load_run(path)
    about = tags_of(run)
    named = "name" if "name" in inspect.signature(mlflow.pyfunc.log_model).parameters else "artifact_path"
    version = run.about["versions"]["setpoint"]
    needed = f"setpoint[cli]=={version}" if version[:1].isdigit() else "setpoint[cli]"
    logged = mlflow.pyfunc.log_model(
        **{named: name}, loader_module=__name__, data_path=os.fspath(path), signature=signature_of(run),
        pip_requirements=[needed, "pandas"], metadata=about, registered_model_name=registered_model_name,
    )  # fmt: skip
    mlflow.set_tags(about)
    return logged


def tags_of(run: ServedRun) -> dict[str, str]:
    """The ask, the threshold, the certificate and the hash of the model, as tags."""
    certificate = run.point.certificate
    return {
        "setpoint.ask": str(run.point.problem),
        "setpoint.threshold": json.dumps(run.point.thresholds.stored()),
        "setpoint.certificate": "none" if certificate is None else str(certificate),
        "setpoint.model": run.about["files"]["model.safetensors"]["sha256"],
        "setpoint.version": run.about["versions"]["setpoint"],
    }


def signature_of(run: ServedRun) -> ModelSignature:
    """The columns that a run takes and gives; numbers and text may be missing, and dates are text."""
    given = [_column(run.schema, name) for name in _needed(run)]
    texts = isinstance(run.point.thresholds, (Shifts, Band))
    types = {"score": DataType.float, "rank": DataType.long, "decision": DataType.string if texts else DataType.long}
    found = [ColSpec(types[what], name) for what, names in answer_columns(run.point).items() for name in names]
    return ModelSignature(inputs=Columns(given), outputs=Columns(found))


def _needed(run: ServedRun) -> list[str]:
    names = [column.name for column in run.schema.columns]
    more = [run.point.problem.group, run.about["settings"].get("lists")]
    return [*names, *(name for name in more if name is not None and name not in names)]


def _column(schema: Schema, name: str) -> ColSpec:
    reading = schema.readings.get(name)
    kind = "words" if reading is None else reading.kind
    if kind == "duration":
        raise CannotExport(f"column {name!r} holds durations, which no signature of MLflow has; fit them as numbers")
    if kind == "list of numbers":
        return ColSpec(Array(DataType.double), name, required=False)
    own = next((column for column in schema.columns if column.name == name), None)
    if kind == "boolean" and getattr(own, "missing", True):
        kind = "words"
    return ColSpec(_TYPES.get(kind, DataType.string), name, required=kind == "boolean")


class PyFunc:
    """The model as MLflow calls it: `predict` takes and gives frames of pandas."""

    def __init__(self, run: ServedRun) -> None:
        self.run = run

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """Scores and decisions of the rows, in the columns that `setpoint predict` writes."""
        rows = data if isinstance(data, pd.DataFrame) else pd.DataFrame(data)
        return pd.DataFrame(self.run.columns(rows, self.run.scores(rows, ignore_extra=True)), index=rows.index)


def _load_pyfunc(path: str) -> PyFunc:
    """The model that MLflow stored; MLflow calls this by its name."""
    return PyFunc(load_run(path))
