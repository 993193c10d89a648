"""Half precision in, float32 at least inside."""

import pytest
import torch
from torch import nn

import setpoint as sp

FNR = sp.ask("minimize fnr where fpr <= 5%")
SOLVERS = {
    "cross-entropy": lambda: sp.CrossEntropy("balanced"),
    "implicit": lambda: sp.ImplicitThreshold(FNR),
    "implicit area": lambda: sp.ImplicitThreshold(sp.ask("maximize recall over fpr in [0%, 5%] with 5 points")),
    "with an anchor": lambda: sp.losses.WithAnchor(sp.ImplicitThreshold(FNR)),
    "lagrangian": lambda: sp.Lagrangian(FNR),
    "proxy-lagrangian": lambda: sp.losses.ProxyLagrangian(FNR),
    "augmented": lambda: sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=3000, mu=0.1),
    "pairwise": lambda: sp.losses.PairwiseArea(sp.ask("maximize recall over fpr in [0%, 30%]")),
    "f-score": sp.losses.FScoreLoss,
    "area": sp.losses.AUCLoss,
    "mini-batch auc": sp.losses.MiniBatchAUC,
    "focal": sp.losses.Focal,
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
    solver = sp.losses.ImplicitLastLayer(FNR, model[-1]) if name == "last layer" else SOLVERS[name]()
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


@pytest.mark.parametrize("name", ["implicit", "implicit area", "lagrangian", "proxy-lagrangian"])
def test_a_solver_whose_buffers_are_in_half_precision_takes_scores_in_full(name):
    scores, labels = half_scores(torch.float32)
    solver = SOLVERS[name]().bfloat16()
    loss = solver(scores.requires_grad_(), labels)
    loss.backward()
    assert bool(loss.isfinite())
    assert bool((scores.grad != 0).any())
