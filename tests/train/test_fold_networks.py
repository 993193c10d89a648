"""The networks of all folds at once learn what each would learn by itself, and what PyTorch's Adam teaches."""

import math

import pytest
import torch

import setpoint as sp
from setpoint.data.rows import Rows
from setpoint.train.cross_fit import folds_of
from setpoint.train.fold_networks import DECAY, FoldNetworks, NetworkPlan, _Group
from setpoint.train.models import drawn, mlp

PLAN = NetworkPlan(epochs=12, patience=3, batch=64, ratio=0.5, seed=7)


def two_moons(size=601, weighted=False):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(size, 3, generator=draw)
    labels = (x[:, 0] * x[:, 1] + 0.3 * torch.randn(size, generator=draw) > 0.3).float()
    return Rows(x, labels, torch.rand(size, generator=draw) + 0.5 if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_is_that_of_adam_on_the_weighted_cross_entropy(weighted):
    rows = two_moons(weighted=weighted)
    models = [drawn(mlp, 3, seed) for seed in range(2)]
    group, x, labels = _Group(models), rows.x[:128].view(2, 64, 3), rows.labels[:128].view(2, 64)
    weights = (rows.weights_or_ones[:128] * torch.where(rows.labels[:128] > 0, 0.5, 1.0)).view(2, 64) / 64
    makers = [torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=DECAY) for model in models]
    for _ in range(5):
        group.step(x, labels, weights, 0.01)
        for place, (model, optimizer) in enumerate(zip(models, makers)):
            optimizer.zero_grad()
            scores = model(x[place]).squeeze(-1)
            torch.nn.functional.binary_cross_entropy_with_logits(
                scores, labels[place], weights[place], reduction="sum"
            ).backward()
            optimizer.step()
    for place, model in enumerate(models):
        for name, value in model.state_dict().items():
            torch.testing.assert_close(group.state(place)[name], value, rtol=1e-4, atol=1e-5)


def test_a_network_without_rows_in_a_batch_stays_as_it_is():
    group = _Group([drawn(mlp, 3, seed) for seed in range(2)])
    before = group.flat.clone()
    group.step(torch.randn(2, 8, 3), torch.zeros(2, 8), torch.stack([torch.ones(8), torch.zeros(8)]), 0.01)
    assert torch.equal(group.flat[1], before[1])
    assert not torch.equal(group.flat[0], before[0])
    assert group.taken.tolist() == [[1.0], [0.0]]


def test_every_fold_has_a_network_that_tells_its_rows_apart():
    rows = two_moons()
    folds = folds_of(rows, 5, 0)
    networks = FoldNetworks(rows, folds, PLAN)
    for fold in range(5):
        model = mlp(3)
        model.load_state_dict(networks.state(fold))
        inside = folds == fold
        with torch.no_grad():
            scores = model(rows.x[inside]).squeeze(-1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, rows.labels[inside])
        share = float(rows.labels.mean())
        guess = -share * math.log(share) - (1 - share) * math.log(1 - share)
        assert float(loss) < 0.9 * guess


def test_the_same_rows_give_the_same_networks_again():
    rows = two_moons()
    folds = folds_of(rows, 5, 0)
    one, two = (FoldNetworks(rows, folds, PLAN).state(3) for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_auto_cross_fits_networks_for_asks_at_a_cut(monkeypatch):
    monkeypatch.setattr("setpoint.train.best_kind.NETWORK_ROWS", 100)
    rows = two_moons(1200)
    train, held_out, rest = (sp.Batches(rows.x[k::3], rows.labels[k::3]) for k in range(3))
    result = sp.fit(None, "minimize fnr where fpr <= 10%", train, held_out, sp.methods.BestKind(), calibration=rest)
    (trial,) = (one for one in result.comparison if one.name == "mlp")
    assert trial.point is not None or "first fold" in trial.note
