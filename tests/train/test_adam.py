"""Our Adam against torch's, on its cosine schedule, to the last bit."""

import copy

import pytest
import torch
from torch import nn

from setpoint.train.adam import Adam

EPOCHS, STEPS = 4, 7


def model(dtype):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 1), nn.Linear(1, 1)).to(dtype)


def batches(dtype):
    draw = torch.Generator().manual_seed(1)
    return [torch.randn(8, 5, generator=draw, dtype=dtype) for _ in range(EPOCHS * STEPS)]


def trained(net, optimizer, end_epoch, given):
    for place, x in enumerate(given):
        optimizer.zero_grad()
        # The last layer has no gradient at first, as the thresholds of a solver during its warm start.
        (net(x) if place >= 5 else net[:3](x)).square().mean().backward()
        optimizer.step()
        if (place + 1) % STEPS == 0:
            end_epoch()
    return [p.detach() for p in net.parameters()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_step_is_that_of_torch_to_the_last_bit(dtype):
    ours, theirs = model(dtype), model(dtype)
    given = batches(dtype)
    own = Adam([([*ours[:3].parameters()], 1e-2), ([*ours[3].parameters()], 0.0)], 0.03, EPOCHS)
    groups = [{"params": [*theirs[:3].parameters()], "weight_decay": 1e-2}, {"params": [*theirs[3].parameters()]}]
    torchs = torch.optim.Adam(groups, lr=0.03)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(torchs, EPOCHS)
    pairs = zip(trained(ours, own, own.end_epoch, given), trained(theirs, torchs, schedule.step, given), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_state_goes_on_as_if_nothing_had_happened():
    net, given = model(torch.float32), batches(torch.float32)
    optimizer = Adam([([*net.parameters()], 1e-3)], 0.03, EPOCHS)
    trained(net, optimizer, optimizer.end_epoch, given[: 2 * STEPS])
    again = copy.deepcopy(net)
    resumed = Adam([([*again.parameters()], 1e-3)], 0.03, EPOCHS)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    rest = given[2 * STEPS :]
    pairs = zip(trained(net, optimizer, optimizer.end_epoch, rest), trained(again, resumed, resumed.end_epoch, rest))
    assert all(torch.equal(a, b) for a, b in pairs)
