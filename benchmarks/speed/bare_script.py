"""The barest script for a table: read it, standardise it, train a linear model by cross-entropy, keep the weights.

    python -m benchmarks.speed.bare_script TABLE.parquet TARGET WEIGHTS.pt BATCH_SIZE

`benchmarks.speed.scale` holds `setpoint fit` against it, process against process.
"""

from __future__ import annotations

import sys

import polars as pl
import torch
from torch.nn import functional as F

EPOCHS = 5


def bare_loop(x: torch.Tensor, labels: torch.Tensor, batch_size: int) -> torch.nn.Linear:
    """What a person would write: a linear model, Adam, cross-entropy, a new order every epoch."""
    model = torch.nn.Linear(x.shape[1], 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(batch_size):
            loss = F.binary_cross_entropy_with_logits(model(x[rows]).squeeze(-1), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def main() -> None:
    table, target, out, batch_size = sys.argv[1:]
    frame = pl.read_parquet(table).cast(pl.Float32)
    labels = torch.from_numpy(frame[target].to_numpy(writable=True))
    # Of the ways to get there from polars the quickest; rows that lie in one piece are quicker to gather.
    x = torch.from_numpy(frame.drop(target).to_numpy(order="c", writable=True))
    x = (x - x.mean(0)) / x.std(0)
    torch.save(bare_loop(x, labels, int(batch_size)).state_dict(), out)


if __name__ == "__main__":
    main()
