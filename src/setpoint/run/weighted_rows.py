"""Rows of a table that carry weights: labelled by a plan of the run's watch, or of another population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint.data.frame import Frame
from setpoint.data.weight_column import column_of_weights
from setpoint.errors import BadSetting, BadWeights
from setpoint.problem.label_plan import LabelPlan
from setpoint.problem.population import PopulationWeights

#: The kind of an entry that keeps a plan.
PLANNED = "planned"


def read_weights(
    frame: Frame, column: str | None, most: float | None, entries: Sequence[Mapping[str, Any]] = ()
) -> tuple[Frame, PopulationWeights | None]:
    """The table without its column of weights, and the weights; None without such a column.

    Args:
        frame: The table.
        column: The column of weights, if there is one.
        most: The largest weight that can occur; None if the weights are those of a plan.
        entries: The entries of the record of the run, which hold its plans.

    Raises:
        BadSetting: If the largest weight is not known, or given without a column.
        BadTable: If the column is missing, or holds anything but numbers above 0.
    """
    if column is None:
        if most is not None:
            raise BadSetting("--most-weight is the largest weight of a column; name the column with --weight")
        return frame, None
    rest, weights = column_of_weights(frame, column)
    if most is not None:
        return rest, PopulationWeights(weights, most)
    for entry in reversed(entries):
        if entry["kind"] == PLANNED:
            plan = LabelPlan(entry["threshold"], tuple(entry["edges"]), tuple(entry["chances"]))
            known = 1 / np.array(plan.chances)
            if (np.abs(weights[:, None] / known - 1).min(1) < 1e-9).all():
                # As they were drawn, whatever the file has rounded.
                return rest, plan.weights(known[np.abs(weights[:, None] / known - 1).argmin(1)])
    raise BadSetting(
        f"the weights of {column!r} are not those of a plan of this run; give the largest weight that can occur in the "
        "population with --most-weight"
    )


def refuse_weighted_columns(weights: PopulationWeights | None, columns: Sequence[str]) -> None:
    """Refuse weights of rows in asks that count the values of columns."""
    if weights is not None and columns:
        raise BadWeights(f"the ask counts the values of {', '.join(columns)}, beside which rows cannot have weights")
