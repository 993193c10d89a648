"""A method of one's own, all of it: `CONTRIBUTING.md` shows this file, and `tests/run/test_own_method.py` tries it."""

from dataclasses import dataclass

import torch

import setpoint as sp


class Neighbours(torch.nn.Module):
    """The share of positives among the nearest rows that are kept: a model, since it gives scores."""

    def __init__(self, x, labels, k):
        super().__init__()
        for name, value in (("x", x), ("labels", labels), ("k", torch.tensor(k))):
            self.register_buffer(name, value)

    def forward(self, x):
        near = torch.cdist(x, self.x.to(x)).topk(int(self.k), largest=False).indices
        return self.labels.to(x)[near].mean(-1)


@dataclass(frozen=True)
class KNeighbours:
    """Keep the training rows, up to `most` of them, and let the `k` nearest ones vote."""

    k: int = 15
    most: int = 5000

    def refuses(self, problem, data):
        return None if hasattr(data.train, "resident") and data.train.resident else "neighbours need rows in memory"

    def train(self, problem, data, work):
        rows = data.train.resident
        kept = work.once("kept", lambda: [rows.x[: self.most].clone(), rows.labels[: self.most].clone()])
        return sp.methods.trained_once(self, Neighbours(*kept, self.k), problem, data, work)


def register():
    sp.methods.register("k-neighbours", KNeighbours, lambda state: Neighbours(**{**state, "k": int(state["k"])}))
