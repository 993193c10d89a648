"""The start of a training: a model at its initial parameters, as often as it is asked for."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn


class InPlace:
    """Gives the same model at each call, set back to the parameters that it had at the first call."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.start: dict[str, Any] | None = None

    def __call__(self) -> nn.Module:
        if self.start is None:
            self.start = copy.deepcopy(self.model.state_dict())
        else:
            self.model.load_state_dict(self.start)
        return self.model
