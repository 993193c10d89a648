"""The values of columns that an ask counts, such as the amount of each transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from setpoint.errors import BadWeights, ShapeMismatch
from setpoint.measure.sample import read_numbers, refuse_odd_weights
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


def stack_values(columns: Mapping[str, Any]) -> Tensor:
    """The values of several columns, `(n, C)` in float64; values below 0 and missing ones are refused by name."""
    stacked = []
    for name, given in columns.items():
        values = read_numbers(given, f"values of {name!r}", BadWeights).detach().cpu().double()
        if values.dim() != 1:
            raise ShapeMismatch(f"values of {name!r} have shape {tuple(values.shape)}; give one per row")
        refuse_odd_weights(values, f"values of {name!r}")
        stacked.append(values)
    if len({len(values) for values in stacked}) > 1:
        sizes = " and ".join(str(len(values)) for values in stacked)
        raise ShapeMismatch(f"the columns {', '.join(map(repr, columns))} have {sizes} values; give one per row each")
    return torch.stack(stacked, dim=1)
