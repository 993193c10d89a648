"""What a training step costs with implicit thresholds, as a ratio to cross-entropy, from one run.

    python -m benchmarks.speed.step_cost [--quick]

The net of the implicit-threshold paper: five 3x3 convolutions (128, 256, 256, 512, 512 filters) with batch
normalisation, ReLU and pooling, on 32x32x3 images, batch 128. Both criteria take turns, step by step. Then an epoch
of the whole net against an epoch of its head on cached features, same samples, same batches, same criterion.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import setpoint as sp
from benchmarks.common.harness import ratio, write_result

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


def last_layers(model: nn.Sequential, problem: sp.Problem) -> dict[str, sp.losses.Solver]:
    """The three ways to train the last layer apart."""
    head = model[-1]
    return {
        "last layer, method 1": sp.losses.ImplicitLastLayer(problem, head),
        "last layer, method 2": sp.losses.ImplicitLastLayer(problem, head, below=sp.losses.Penalty(problem)),
        "last layer, ablation": sp.losses.ImplicitLastLayer(
            problem, head, below=sp.losses.Penalty(problem), above=sp.losses.Penalty(problem)
        ),
    }


def step_rows(x: torch.Tensor, labels: torch.Tensor, repeats: int) -> list[dict[str, object]]:
    """The cost of a step under each criterion, as a ratio to cross-entropy on the same net."""
    makers: dict[str, Callable[[nn.Module], Any]] = {
        name: lambda model, ask=ask: sp.ImplicitThreshold(sp.ask(ask)) for name, ask in ASKS.items()
    }
    problem = sp.ask("minimize fnr where fpr <= 1%")
    for name in last_layers(convolutional_net(), problem):
        makers[name] = lambda model, name=name: last_layers(model, problem)[name]
    rows: list[dict[str, object]] = []
    for name, make in makers.items():
        model = convolutional_net()
        plain = stepper(model, nn.BCEWithLogitsLoss(), x, labels)
        criterion = make(model)
        measured = ratio(stepper(model, criterion, x, labels), plain, repeats=repeats)
        rows.append({"criterion": name, "ratio": measured, "target": TARGET, "met": measured <= TARGET})
        print(f"{name:30s} {measured:5.3f}x the cross-entropy step (target {TARGET})", flush=True)
    return rows


def cached_row(x: torch.Tensor, labels: torch.Tensor, repeats: int) -> dict[str, object]:
    """An epoch of the whole net against one of its head on cached features."""
    problem = sp.ask("minimize fnr where fpr <= 1%")
    model = convolutional_net()
    images = sp.Batches(x.repeat(4, 1, 1, 1), labels.repeat(4), batch_size=128, shuffle=True)
    features = sp.methods.head_features(model, images, batch_size=128, shuffle=True)

    def epoch(part: nn.Module, loader: sp.Batches):
        criterion = sp.ImplicitThreshold(problem)
        optimizer = torch.optim.Adam(part.parameters(), lr=1e-3)

        def run() -> None:
            for batch in loader:
                loss = criterion(part(batch.x).squeeze(-1), batch.labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        return run

    measured = ratio(epoch(model, images), epoch(model[-1], features), repeats=max(3, repeats // 4))
    print(f"an epoch of the whole net: {measured:.0f}x an epoch of its head on cached features (target 20)")
    return {"whole / cached epoch": measured, "target": 20, "met": measured >= 20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few steps only; the ratios are then noisy")
    repeats = 3 if parser.parse_args().quick else 15
    torch.manual_seed(0)
    x, labels = torch.randn(128, 3, 32, 32), (torch.rand(128) < 0.3).float()
    rows = step_rows(x, labels, repeats)
    write_result("step_cost", {"batch": 128, "steps": repeats, "rows": rows, "cached": cached_row(x, labels, repeats)})


if __name__ == "__main__":
    main()
