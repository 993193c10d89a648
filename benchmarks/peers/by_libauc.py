"""LibAUC: its partial-AUC loss over the bounded FPR, on batches of half positives, with its own optimizer."""

from __future__ import annotations

import sys
import types
from importlib.metadata import version

import torch

from benchmarks.peers.exchange import Task

# It imports torchvision for one isinstance; a torch without a matching torchvision needs a stand-in.
for name in ("torchvision", "torchvision.datasets", "torchvision.transforms"):
    sys.modules.setdefault(name, types.ModuleType(name))
vars(sys.modules["torchvision"]).update(
    {name: sys.modules[f"torchvision.{name}"] for name in ("datasets", "transforms")}
)
vars(sys.modules["torchvision.datasets"])["ImageFolder"] = type("ImageFolder", (), {})

from libauc.losses.auc import pAUC_CVaR_Loss  # noqa: E402
from libauc.optimizers.sopa import SOPA  # noqa: E402

BATCH = 256


def main() -> None:
    torch.set_num_threads(1)
    task = Task()
    x, labels = torch.tensor(task.x, dtype=torch.float32), torch.tensor(task.labels, dtype=torch.float32)
    of = [(labels == label).nonzero().squeeze(-1) for label in (0, 1)]
    for rate in (0.001, 0.01, 0.1):
        for eta in (0.1, 1.0, 10.0):
            model = torch.nn.Linear(x.shape[1], 1)
            with torch.no_grad():
                model.weight.copy_(torch.tensor(task.start[:-1], dtype=torch.float32).reshape(1, -1))
                model.bias.fill_(task.start[-1])
            loss_of = pAUC_CVaR_Loss(len(x), len(of[1]), beta=task.bound, eta=eta, device=torch.device("cpu"))
            optimizer = SOPA(model.parameters(), lr=rate, mode="adam", device=torch.device("cpu"))
            draw = torch.Generator().manual_seed(0)
            for step in range(1, task.steps + 1):
                half = [rows[torch.randint(len(rows), (BATCH // 2,), generator=draw)] for rows in of]
                rows = torch.cat(half)
                loss = loss_of(torch.sigmoid(model(x[rows])), labels[rows], rows)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if step % task.look_every == 0:
                    weight = model.weight.detach()[0].double().numpy().copy()
                    task.add(f"{rate:g}, {eta:g}, step {step}", weight, float(model.bias.detach()))
    task.answer(version("libauc"), f"batches of {BATCH}")


if __name__ == "__main__":
    main()
