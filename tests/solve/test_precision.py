"""Half precision in, float32 at least inside; what makes a device wait; what torch.compile cannot look into."""

import collections

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import setpoint as sp

FNR = sp.ask("minimize fnr where fpr <= 5%")
SOLVERS = {
    "cross-entropy": lambda: sp.CrossEntropy("balanced"),
    "implicit": lambda: sp.ImplicitThreshold(FNR),
    "implicit area": lambda: sp.ImplicitThreshold(sp.ask("maximize recall over fpr in [0%, 5%] with 5 points")),
    "with an anchor": lambda: sp.WithAnchor(sp.ImplicitThreshold(FNR)),
    "lagrangian": lambda: sp.Lagrangian(FNR),
    "proxy-lagrangian": lambda: sp.ProxyLagrangian(FNR),
    "augmented": lambda: sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=3000, mu=0.1),
    "pairwise": lambda: sp.PairwiseArea(sp.ask("maximize recall over fpr in [0%, 30%]")),
    "f-score": sp.FScoreLoss,
    "area": sp.AUCLoss,
    "mini-batch auc": sp.MiniBatchAUC,
    "focal": sp.Focal,
}


def half_scores(dtype, size=3000):
    draw = torch.Generator().manual_seed(0)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    return (torch.randn(size, generator=draw) + labels).to(dtype), labels


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS)
def test_half_precision_is_counted_in_full(make, dtype):
    scores, labels = half_scores(dtype)
    half, wide = scores.clone().requires_grad_(), scores.float().requires_grad_()
    with torch.autocast("cpu", dtype=dtype):
        inside = make()(half, labels)
    outside = make()(wide, labels)
    assert inside.dtype in (torch.float32, torch.float64)
    assert float(inside.detach()) == float(outside.detach())
    (1000 * inside).backward()
    (1000 * outside).backward()
    assert half.grad.dtype == dtype
    torch.testing.assert_close(half.grad, wide.grad.to(dtype), rtol=0.02, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [*SOLVERS, "last layer"])
def test_training_under_autocast_with_a_grad_scaler(name, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    solver = sp.ImplicitLastLayer(FNR, model[-1]) if name == "last layer" else SOLVERS[name]()
    optimizer = torch.optim.Adam([*model.parameters(), *solver.parameters()], lr=0.01)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(400, 6, generator=draw)
    labels = (x[:, 0] + x[:, 1] + 0.5 * torch.randn(400, generator=draw) > 1).float()
    before = sp.evaluate("maximize recall over fpr in [0%, 100%]", model(x).squeeze(-1).detach(), labels).objective
    for _ in range(40):
        with torch.autocast("cpu", dtype=dtype):
            loss = solver(model(x).squeeze(-1), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    after = sp.evaluate("maximize recall over fpr in [0%, 100%]", model(x).squeeze(-1).detach(), labels).objective
    assert all(bool(p.isfinite().all()) for p in model.parameters())
    assert after > max(before, 0.8)


#: How often a step waits for a device, and what for: three checks of the input and one of the loss; for implicit
#: thresholds also the places at which the length of the memory, ties and the chosen cut decide what comes next.
WAITS = {"cross-entropy": 4, "implicit": 18, "lagrangian": 13}


class Waits(TorchDispatchMode):
    """Counts what would make a CUDA device be waited for: numbers read from it, and shapes that depend on them."""

    def __init__(self):
        super().__init__()
        self.found = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").split(".")[0]
        by_mask = name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        if by_mask or name in ("_local_scalar_dense", "nonzero", "equal", "_unique2", "masked_select"):
            self.found[name] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", WAITS)
def test_a_step_waits_for_its_device_no_more_often_than_said(name):
    solver = SOLVERS[name]()
    scores, labels = half_scores(torch.float32, 128)
    for _ in range(5):
        solver(scores.clone().requires_grad_(), labels)
    leaf = scores.clone().requires_grad_()
    with Waits() as waits:
        solver(leaf, labels).backward()
    assert 0 < sum(waits.found.values()) <= WAITS[name], waits.found


def test_a_compiled_step_breaks_once_where_the_solver_stands():
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    solver = torch.compiler.disable(sp.ImplicitThreshold(FNR))
    x, labels = torch.randn(64, 4), (torch.arange(64) % 3 == 0).float()

    def step(x, labels):
        return 2 * solver(model(x).squeeze(-1), labels)

    explained = torch._dynamo.explain(step)(x, labels)
    assert explained.graph_break_count == 1
    loss = torch.compile(step, backend="eager")(x, labels)
    loss.backward()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())
    torch._dynamo.reset()
