"""The three smooth forms of "a score passes the threshold 0" that every method with prices may choose from.

They are TFCO's losses: the hinge, its cross-entropy, and its softmax. A missed positive is one whose negated score
passes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

PASSING: dict[str, Callable[[Tensor], Tensor]] = {
    "hinge": lambda scores: torch.relu(1 + scores),
    "softplus": torch.nn.functional.softplus,
    "sigmoid": torch.sigmoid,
}
