"""What a training step costs with implicit thresholds, as a ratio to cross-entropy, from one run.

    python -m benchmarks.step_cost [--quick]

The net of the implicit-threshold paper: five 3x3 convolutions (128, 256, 256, 512, 512 filters) with batch
normalisation, ReLU and pooling, on 32x32x3 images, batch 128. Both criteria take turns, step by step.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import setpoint as sp
from benchmarks.harness import ratio, write_result

TARGET = 1.06
ASKS = {
    "fnr at fpr": "minimize fnr where fpr <= 1%",
    "precision at recall": "maximize precision where recall >= 95%",
    "partial roc area, 10 points": "maximize recall over fpr in [0%, 5%] with 10 points",
}


def convolutional_net() -> nn.Sequential:
    """Five convolutions, pooled down to one pixel, and a linear head."""
    layers: list[nn.Module] = []
    channels = 3
    for filters in (128, 256, 256, 512, 512):
        layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)]
        channels = filters
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 1))


def stepper(model: nn.Module, criterion: nn.Module, x: torch.Tensor, labels: torch.Tensor):
    """One optimizer step of the model under a criterion, as a function without arguments."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        loss = criterion(model(x).squeeze(-1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few steps only; the ratios are then noisy")
    repeats = 3 if parser.parse_args().quick else 15
    torch.manual_seed(0)
    x, labels = torch.randn(128, 3, 32, 32), (torch.rand(128) < 0.3).float()
    rows = []
    for name, ask in ASKS.items():
        model = convolutional_net()
        plain = stepper(model, nn.BCEWithLogitsLoss(), x, labels)
        implicit = stepper(model, sp.ImplicitThreshold(sp.ask(ask)), x, labels)
        measured = ratio(implicit, plain, repeats=repeats)
        rows.append({"problem": name, "ask": ask, "ratio": measured, "target": TARGET, "met": measured <= TARGET})
        print(f"{name:30s} {measured:5.3f}x the cross-entropy step (target {TARGET})", flush=True)
    write_result("step_cost", {"batch": 128, "steps_each": repeats, "rows": rows})


if __name__ == "__main__":
    main()
