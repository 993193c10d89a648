"""Solvers trained on a part of each batch a process, and the very same on whole batches in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import setpoint as sp
from setpoint.measure.pairs import Hinge

FNR = sp.ask("minimize fnr where fpr <= 20%")
ROWS, CLASSES, FEATURES = 200, 3, 5


@dataclass(frozen=True)
class Case:
    """A solver for a model, and which of the made data it is given."""

    make: Callable[[nn.Sequential], sp.losses.Solver]
    kind: str = "binary"
    extras: tuple[str, ...] = ()
    follow: bool = False


def plain(make: Callable[[], sp.losses.Solver], *extras: str, kind: str = "binary") -> Case:
    return Case(lambda model: make(), kind, extras)


CASES: dict[str, Case] = {
    "cross-entropy": plain(sp.CrossEntropy),
    "cross-entropy balanced": plain(lambda: sp.CrossEntropy("balanced"), "weights"),
    "cross-entropy weighted": plain(lambda: sp.CrossEntropy(0.2)),
    "implicit": plain(lambda: sp.ImplicitThreshold(FNR)),
    "implicit with weights": plain(lambda: sp.ImplicitThreshold(FNR), "weights"),
    "implicit without memory": plain(lambda: sp.ImplicitThreshold(FNR, memory=0)),
    "implicit in a small memory": plain(lambda: sp.ImplicitThreshold(FNR, memory=50)),
    "implicit precision": plain(lambda: sp.ImplicitThreshold(sp.ask("maximize precision where recall >= 80%"))),
    "implicit area": plain(lambda: sp.ImplicitThreshold(sp.ask("maximize recall over fpr in [0%, 30%] with 5 points"))),
    "implicit f1": plain(lambda: sp.ImplicitThreshold(sp.ask("maximize f1"))),
    "implicit by group": plain(
        lambda: sp.ImplicitThreshold(sp.ask("minimize error where recall.gap(site) <= 10%"), n_groups=3), "groups"
    ),
    "implicit corrected now and then": plain(
        lambda: sp.ImplicitThreshold(FNR, correction=sp.losses.Correction(3, latest=2))
    ),
    "implicit that follows": Case(lambda _: sp.ImplicitThreshold(FNR, correction=sp.losses.Correction(4)), follow=True),
    "implicit with slack and slope": plain(
        lambda: sp.ImplicitThreshold(FNR, correction=sp.losses.Correction(slack=sp.losses.Slack()), slope_penalty=0.1)
    ),
    "penalty": plain(lambda: sp.losses.Penalty(FNR)),
    "last layer": Case(lambda model: sp.losses.ImplicitLastLayer(FNR, model[-1])),
    "last layer, second method": Case(
        lambda model: sp.losses.ImplicitLastLayer(FNR, model[-1], below=sp.losses.Penalty(FNR))
    ),
    "with an anchor": plain(lambda: sp.losses.WithAnchor(sp.ImplicitThreshold(FNR))),
    "lagrangian": plain(lambda: sp.Lagrangian(FNR)),
    "lagrangian damped": plain(
        lambda: sp.Lagrangian(FNR, climb=sp.losses.Climb(control=sp.losses.NuPI(), penalty=2.0)), "weights"
    ),
    "lagrangian by group": plain(
        lambda: sp.Lagrangian(sp.ask("minimize error where recall.gap(site) <= 10%"), n_groups=3), "groups"
    ),
    "proxy-lagrangian": plain(lambda: sp.losses.ProxyLagrangian(FNR)),
    "augmented": plain(lambda: sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=ROWS, mu=0.1), "index"),
    "augmented per negative": plain(
        lambda: sp.AugmentedLagrangian(sp.losses.Focal(), n_samples=ROWS, mu=0.1, side=sp.losses.PerNegative()),
        "weights",
    ),
    "augmented of many classes": plain(
        lambda: sp.classes.AugmentedMulticlass(sp.losses.ClassCrossEntropy(), n_samples=ROWS, critical=2, mu=0.1),
        "index",
        kind="classes",
    ),
    "pairwise area": plain(lambda: sp.losses.PairwiseArea(sp.ask("maximize recall over fpr in [0%, 30%]"))),
    "pairwise two-way": plain(
        lambda: sp.losses.PairwiseArea(sp.fpr.between(0, 0.3), sp.recall.between(0.5, 1), surrogate=Hinge(), memory=0)
    ),
    "program: area": plain(sp.losses.AUCLoss),
    "program: f-score": plain(sp.losses.FScoreLoss, "weights"),
    "program: jaccard": plain(sp.losses.JaccardLoss),
    "program: precision at recall": plain(lambda: sp.losses.PrecisionAtRecallLoss(0.8)),
    "program: recall at precision": plain(lambda: sp.losses.RecallAtPrecisionLoss(0.5)),
    "program: area of many classes": plain(sp.losses.MulticlassAUCLoss, kind="classes"),
    "class cross-entropy": plain(sp.losses.ClassCrossEntropy, "weights", kind="classes"),
    "margin": plain(sp.losses.Margin),
    "focal": plain(sp.losses.Focal, kind="classes"),
    "class-balanced": plain(lambda: sp.losses.ClassBalanced((150, 50))),
    "ldam": plain(lambda: sp.losses.LDAM((150, 50), reweight_after=5)),
    "ldam, normalised": plain(lambda: sp.losses.LDAM((150, 50), reweight_after=0, normalised=True)),
    "mini-batch auc": plain(sp.losses.MiniBatchAUC),
    "shifts": plain(
        lambda: sp.classes.ImplicitShifts(
            sp.minimize(sp.classes.Micro(sp.fnr), sp.classes.OfClass(sp.flagged, 0) <= 0.3),
            CLASSES,
            memory=100,
            every=3,
        ),
        kind="classes",
    ),
    "one against the rest": plain(lambda: sp.classes.OneVsRest(FNR, CLASSES), kind="labels"),
    "top k": plain(lambda: sp.losses.ImplicitTopK(sp.precision, 2), kind="lists"),
}

#: What four processes are asked for in the tests; `benchmarks.speed.distributed` asks them for everything.
OF_FOUR = [
    "cross-entropy balanced", "implicit by group", "with an anchor", "lagrangian damped", "augmented", "top k",
]  # fmt: skip


def world() -> dict[str, Tensor]:
    """Rows to train on; the labels depend on the features, but not only."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, FEATURES, generator=draw, dtype=torch.float64)
    noise = torch.randn(ROWS, CLASSES, generator=draw, dtype=torch.float64)
    sides = x[:, :CLASSES] + noise
    return {
        "x": x,
        "binary": (sides[:, 0] > 0.7).double(),
        "classes": sides.argmax(1),
        "labels": (sides > 0.5).double(),
        "weights": torch.rand(ROWS, generator=draw, dtype=torch.float64) + 0.5,
        "groups": torch.randint(0, 3, (ROWS,), generator=draw),
        "index": torch.arange(ROWS),
    }


def parts_of(step: int, size: int, rows: dict[str, Tensor]) -> list[Tensor]:
    """The rows of a step, a part a process: even or not, one without any, one without positives or some groups."""
    draw = torch.Generator().manual_seed(step)
    chosen = torch.randperm(ROWS, generator=draw)[: 0 if step == 7 else 24]
    kind = step % 4
    if kind == 3:
        order = (10 * (1 - rows["binary"][chosen]) + rows["groups"][chosen]).argsort()
        return list(chosen[order].tensor_split(size))
    if kind == 0:
        return list(chosen.tensor_split(size))
    cuts = torch.randint(0, len(chosen) + 1, (size - 1,), generator=draw).sort().values
    if kind == 2:
        cuts[-1] = len(chosen)
    return list(chosen.tensor_split(cuts))


def new_model(kind: str) -> nn.Sequential:
    torch.manual_seed(1)
    outputs = CLASSES if kind in ("classes", "labels") else 1
    return nn.Sequential(nn.Linear(FEATURES, 6), nn.Tanh(), nn.Linear(6, outputs)).double()


def loss_of(solver: sp.losses.Solver, model: nn.Module, case: Case, rows: dict[str, Tensor], taken: Tensor) -> Tensor:
    extras = {name: rows[name][taken] for name in case.extras}
    if case.kind == "lists":
        # Four rows a query, so that a part is cut to whole queries by whoever makes it.
        scores = model(rows["x"][taken]).reshape(-1, 4)
        return solver(scores, rows["binary"][taken].reshape(-1, 4), **extras)
    scores = model(rows["x"][taken])
    return solver(scores.squeeze(-1) if case.kind == "binary" else scores, rows[case.kind][taken], **extras)


def train(name: str, size: int, rank: int | None, steps: int) -> dict[str, Any]:
    """Parameters, solver state and losses after some steps: of one of `size` processes, or (None) of one for all."""
    case, rows = CASES[name], world()
    model = new_model(case.kind)
    solver = case.make(model).double()
    runner = model if rank is None else DistributedDataParallel(model)
    optimizer = torch.optim.SGD([*model.parameters(), *solver.parameters()], lr=0.1, momentum=0.5)
    if case.follow:
        solver.follow(optimizer)
    losses = []
    for step in range(steps):
        parts = parts_of(step, size, rows)
        if case.kind == "lists":
            parts = [part.repeat_interleave(4).add(torch.arange(4).repeat(len(part))) % ROWS for part in parts]
        loss = loss_of(solver, runner, case, rows, torch.cat(parts) if rank is None else parts[rank])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return {
        "losses": losses,
        "model": {key: value.clone() for key, value in model.state_dict().items()},
        "solver": {key: value.clone() for key, value in solver.state_dict().items()},
    }
