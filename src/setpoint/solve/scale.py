"""The scale of the scores: how steep the smooth step is when nothing is said."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from setpoint.errors import BadSetting
from setpoint.measure.looks import may_look

#: Temperature times the spread of the scores, when nothing else is known of their scale.
SPREADS = 4.0
#: The steepest step that is set by itself.
STEEPEST = 1e12


def temperature_buffer(temperature: float | None) -> Tensor:
    """The given temperature, or 0 for one that is still to be set."""
    if temperature is not None and not 0 < temperature < float("inf"):
        raise BadSetting(f"temperature must be above 0, got {temperature!r}")
    return torch.tensor(temperature or 0.0)


@torch.no_grad()
def settle_temperature(buffer: Tensor, spread: Callable[[], Tensor], dtype: torch.dtype, *, keep: bool) -> Tensor:
    """The temperature in the buffer; the first time that scores have a spread, one over it, kept if asked to."""
    if may_look(buffer) and float(buffer) > 0:
        return buffer.to(dtype)
    found = spread()
    # Scores that differ in their last digits only would make it infinite.
    new = torch.where(found > 0, (SPREADS / found).clamp(max=STEEPEST), 0.0).to(dtype)
    temperature = torch.where(buffer > 0, buffer.to(dtype), new)
    if keep:
        buffer.copy_(temperature)
    return torch.where(temperature > 0, temperature, 1.0)
