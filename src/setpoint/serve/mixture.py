"""Which member of a mixture scores a row: a hash of the bits of its features chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Odd numbers from which the hash of a row is made.
_FIRST, _SECOND = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9


def chosen_members(x: Tensor, shares: Tensor) -> Tensor:
    """The number of the member of each row; over rows that differ, each member has its share."""
    return torch.bucketize(_between_0_and_1(x), shares.cumsum(0)[:-1], right=True)


def _between_0_and_1(x: Tensor) -> Tensor:
    """A number for each row, from the bits of its features alone: whole numbers have no rounding to depend on."""
    # 0 and -0 are one number with two patterns of bits.
    bits = (x.detach().float() + 0.0).flatten(1).contiguous().view(torch.int32).long()
    draw = torch.Generator().manual_seed(0)
    odd = 2 * torch.randint(2**40, (bits.shape[1],), generator=draw).to(bits.device) + 1
    found = (bits * odd).sum(1)
    for number in (_FIRST, _SECOND):
        found = (found ^ ((found >> 29) & (2**35 - 1))) * number
    return ((found >> 11) & (2**40 - 1)).double() / 2**40
