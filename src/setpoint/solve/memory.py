"""Memory: a ring of recent scores, so that a rare class or a rare bound is seen by every batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from setpoint.errors import BadSetting
from setpoint.measure.looks import may_look
from setpoint.measure.sample import Sample


class Memory(nn.Module):
    """The last `size` detached scores with labels, weights, groups and the batch they came in.

    Empty places have weight 0.

    `size` 0 remembers nothing: every batch then stands for itself, as full-batch training wants it.
    """

    scores: Tensor
    labels: Tensor
    weights: Tensor
    groups: Tensor
    batch: Tensor
    head: Tensor
    batches: Tensor
    _plain = False

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 0:
            raise BadSetting(f"memory must hold 0 or more scores, got {size}")
        self.size = size
        for name in ("scores", "labels", "weights"):
            self.register_buffer(name, torch.zeros(size))
        for name in ("groups", "batch"):
            self.register_buffer(name, torch.zeros(size, dtype=torch.long))
        for name in ("head", "batches"):
            self.register_buffer(name, torch.zeros((), dtype=torch.long))

    def joined(self, batch: Sample, newest: int = 0) -> Sample:
        """The batch together with the remembered scores; a batch that fills the memory stands alone.

        With `newest` = k only the last k batches, this one among them, are taken: the others weigh nothing.
        """
        batch = batch.detach()
        room = self.size - len(batch.scores)
        if room <= 0 or newest == 1:
            return batch
        # The oldest places are the ones that this batch is about to take.
        kept = (self.head + len(batch.scores) + torch.arange(room, device=self.head.device)) % self.size
        remembered = self.weights[kept]
        if newest:
            remembered = torch.where(self.batch[kept] > self.batches - newest + 1, remembered, 0.0)
        weights = batch.weights if batch.weights is not None else torch.ones_like(batch.scores)
        return Sample(
            torch.cat([batch.scores, self.scores[kept].to(batch.scores.dtype)]),
            torch.cat([batch.labels, self.labels[kept].to(batch.labels.dtype)]),
            torch.cat([weights, remembered.to(weights.dtype)]),
            None if batch.groups is None else torch.cat([batch.groups, self.groups[kept]]),
            batch.n_groups,
        )

    def taking(self, batch: Sample, keep: bool) -> Sample:
        """The batch together with the remembered scores; with `keep` the batch is remembered from now on."""
        alike = (batch.scores.dtype, batch.labels.dtype) == (self.scores.dtype, self.labels.dtype)
        if keep and alike and len(batch.scores) < self.size:
            # What is left beside the batch is what `joined` would have taken, in another order, and nothing is copied.
            self.push(batch)
            groups = None if batch.groups is None else self.groups
            plain = batch.weights is None and may_look(self.weights) and self._is_plain()
            return Sample(self.scores, self.labels, None if plain else self.weights, groups, batch.n_groups)
        reference = self.joined(batch)
        if keep:
            self.push(batch)
        return reference

    def place_of(self, batch: Sample, reference: Sample) -> slice | None:
        """Where the batch that came last stands in what `taking` made of it; None if not there in one piece."""
        end = int(self.head) or self.size
        start = end - len(batch.scores)
        return slice(start, end) if reference.scores is self.scores and start >= 0 else None

    def _is_plain(self) -> bool:
        """Whether the memory is full of rows of weight 1, as most are: it then stays so until a weight comes."""
        if not self._plain:
            self._plain = bool((self.weights.numpy() == 1).all())
        return self._plain

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._plain = False

    def push(self, batch: Sample) -> None:
        """Remember a batch over the oldest scores."""
        size, given_rows = self.size, len(batch.scores)
        if size == 0:
            self.batches.add_(1)
            return
        columns: list[tuple[Tensor, Tensor | None]] = [
            (self.scores, batch.scores.detach()),
            (self.labels, batch.labels),
        ]
        if not self._plain or batch.weights is not None:
            self._plain = False
            columns.append((self.weights, batch.weights))
        if batch.groups is not None:
            columns.append((self.groups, batch.groups))
        count = min(given_rows, size)
        first = given_rows - count
        if not may_look(self.head) or self.scores.dtype == torch.bfloat16:
            self.batches.add_(1)
            places = (self.head + torch.arange(count, device=self.head.device)) % size
            for own, given in columns:
                own[places] = 1.0 if given is None else given[first:].to(own.dtype)
            self.batch[places] = self.batches
            self.head.copy_((self.head + count) % size)
            return
        # Arrays are written to in a fraction of the time that a tensor takes.
        place, number, of_batch = self.head.numpy(), self.batches.numpy(), self.batch.numpy()
        number[...] = number.item() + 1
        head = place.item()
        end = min(head + count, size)
        parts = [(slice(head, end), slice(first, first + end - head))]
        if end - head < count:
            parts.append((slice(0, count - end + head), slice(first + end - head, given_rows)))
        arrays = [(own.numpy(), None if given is None else given.numpy()) for own, given in columns]
        for into, taken in parts:
            of_batch[into] = number
            for array, rows in arrays:
                array[into] = 1.0 if rows is None else rows[taken]
        place[...] = (head + count) % size


def memory_size(tightest: float | None) -> int:
    """2,048 scores, more for rarer bounds: about twenty samples beyond the tightest bound, at most 65,536."""
    if not tightest:
        return 2048
    return int(min(max(2048.0, 20 / tightest), 65536.0))
