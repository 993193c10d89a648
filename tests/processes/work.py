"""What the processes do, all in one go."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import setpoint as sp
from processes.cases import CASES, loss_of, new_model, parts_of, train, world
from processes.fits import ASK, fitted
from setpoint.errors import SetpointError

SHARDED_STEPS = 12
BY_GROUP = "minimize error where recall.gap(site) <= 10%"


def judged(rank: int, size: int) -> dict[str, Any]:
    """Points of what all processes have, the last of which has nothing."""
    scores, labels, weights, groups = made_scores()
    own = torch.arange(len(scores)).tensor_split(size - 1) if size > 1 else [torch.arange(len(scores))]
    mine = own[rank] if rank < len(own) else torch.arange(0)
    names = [f"site {g}" for g in groups[mine].tolist()]
    answers: dict[str, Any] = {
        "evaluated": sp.evaluate(ASK, scores[mine], labels[mine], weights=weights[mine], process_group=True),
        "certified": sp.calibrate(ASK, scores[mine], labels[mine], confidence=0.9, process_group=True),
        "by group": sp.evaluate(BY_GROUP, scores[mine], labels[mine], groups=names, process_group=True),
        "own": sp.evaluate(ASK, scores, labels),
    }
    bad = labels[mine] + (5 if rank == 0 else 0)
    try:
        sp.evaluate(ASK, scores[mine], bad, process_group=True)
    except SetpointError as cause:
        answers["refused"] = str(cause)
    return answers


def chosen(rank: int, size: int) -> dict[str, Any]:
    """The gradient of a batch of which each process has a part, under each way to choose who takes part."""
    scores, labels, _, _ = made_scores()
    rows = torch.arange(len(scores)).tensor_split(size)[rank]
    pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    ways = {"automatic": {}, "alone": {"process_group": False}, "all": {"process_group": True},
            "added up": {"averaged": False}, "pair": {"process_group": pairs[rank // 2]}}  # fmt: skip
    found = {}
    for name, how in ways.items():
        for kind, solver in (("implicit", sp.ImplicitThreshold(sp.ask(ASK))), ("cross-entropy", sp.CrossEntropy())):
            own = scores[rows].clone().requires_grad_()
            loss = copy.deepcopy(solver.double().across(**how))(own, labels[rows])
            loss.backward()
            found[name, kind] = (float(loss.detach()), own.grad)
    return {"gradients": found}


def made_scores() -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(0)
    labels = (torch.rand(600, generator=draw) < 0.4).double()
    scores = torch.randn(600, generator=draw, dtype=torch.float64) + labels
    return scores, labels, torch.rand(600, generator=draw).double() + 0.5, torch.randint(0, 3, (600,), generator=draw)


def sharded(rank: int, size: int) -> dict[str, torch.Tensor]:
    """Parameters after some steps of a model whose parameters are spread over the processes."""
    rows, model = world(), new_model("binary")
    mesh = init_device_mesh("cpu", (size,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    solver = CASES["implicit"].make(model).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for step in range(SHARDED_STEPS):
        part = parts_of(step, size, rows)[rank]
        loss = loss_of(solver, model, CASES["implicit"], rows, part)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: p.full_tensor().detach() for name, p in model.named_parameters()}


def accumulated(rank: int | None, size: int) -> dict[str, torch.Tensor]:
    """Gradients of parts of parts: micro-batches of unequal sizes on each process, or all in one."""
    rows, model = world(), new_model("binary")
    parts = torch.arange(90).tensor_split(size)
    solver = CASES["lagrangian"].make(model).double()
    runner = model if rank is None else DistributedDataParallel(model)
    own = torch.cat(parts) if rank is None else parts[rank]
    batches = [(rows["x"][some], rows["binary"][some]) for some in own.split(own.numel() if rank is None else 17)]
    sp.methods.accumulate(runner, solver, batches)
    return {name: p.grad.clone() for name, p in [*model.named_parameters(), *solver.named_parameters()]}


def everything(rank: int, size: int, steps: int, cases: Sequence[str], fits: Sequence[str]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    return {
        **judged(rank, size),
        **chosen(rank, size),
        "sharded": sharded(rank, size),
        "accumulated": accumulated(rank, size),
        "trained": {name: train(name, size, rank, steps) for name in cases},
        "fitted": {name: fitted(name, rank, size) for name in fits},
    }
