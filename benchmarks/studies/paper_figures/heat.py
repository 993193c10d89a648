"""Figure 2 of paper 001: the activations of a layer, factored by a linear program, as heat maps.

The images are made here, so that it is known which pixels belong to an object: one or two of a striped disc, a
chequered square and a dotted triangle on noise. A small net learns which are there, by cross-entropy; its 20 channels
of 8 x 8, as many as published, are V, and `setpoint.lp.factorize` finds V = F W with one or two rows of V as W. Fixed
before the first look: 20 new images with a disc and a square. A map is good if its values tell pixels of the object
from others: the AUC of the map of rank 1 against both objects, and of the two maps of rank 2, in the order that fits
better, each against one of them. Added after the result, to see why rank 1 is behind: the AUC of its one map against
the object that it fits better.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setpoint import lp
from setpoint.measure.curve import roc_area

SIDE, CELL, CHANNELS, KINDS = 32, 4, 20, 3
STEPS, BATCH, SHOWN = 300, 64, 4
DISC, SQUARE = 0, 1


def drawn(present: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images `(n, 1, 32, 32)` with the kinds that `present` (n, 3) tells, and where each kind is, `(n, 3, 32, 32)`."""
    count = len(present)
    down, right = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    # Each kind has a corner of its own in an image, so that none hides another.
    corner = torch.rand(count, 4, generator=draw).argsort(1)[:, :KINDS]
    jitter = torch.randint(0, 4, (count, KINDS, 2), generator=draw)
    y, x = (16 * part + jitter[..., axis] + 6 for axis, part in enumerate((corner // 2, corner % 2)))
    away = [axis - middle[..., None, None] for axis, middle in ((down, y), (right, x))]
    shapes = [away[0][:, 0] ** 2 + away[1][:, 0] ** 2 <= 36, torch.maximum(*(one[:, 1].abs() for one in away)) <= 5,
              (away[0][:, 2] <= 5) & (away[1][:, 2].abs() * 2 <= away[0][:, 2] + 6)]  # fmt: skip
    where = torch.stack(shapes, 1) & (present[..., None, None] > 0)
    textures = torch.stack([(down % 4 < 2), (down // 2 + right // 2) % 2 > 0, (down % 3 + right % 3) == 0]).float()
    noise = 0.25 * torch.randn(count, SIDE, SIDE, generator=draw)
    return (noise + (where * (0.4 + textures)).sum(1)).unsqueeze(1), where.float()


def trained(steps: int) -> nn.Sequential:
    """Layers up to the 20 channels of 8 x 8, then the mean and a score per kind."""
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(1)
    body = (nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, CHANNELS, 3, padding=1),
            nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU())  # fmt: skip
    net = nn.Sequential(nn.Sequential(*body), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, KINDS))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(steps):
        present = (torch.rand(BATCH, KINDS, generator=draw) < 0.5).float()
        x, _ = drawn(present, draw)
        loss = F.binary_cross_entropy_with_logits(net(x), present)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.eval()


def maps(net: nn.Sequential, image: Tensor, rank: int) -> tuple[Tensor, bool]:
    """The rows of W as maps, and whether the factorisation is exact; channels that are silent here are left out."""
    with torch.no_grad():
        activation = net[0](image.unsqueeze(0))[0].reshape(CHANNELS, -1)
    found = lp.factorize(activation[activation.sum(1) > 1e-3 * activation.sum(1).amax()], rank)
    return found.W.reshape(rank, SIDE // CELL, SIDE // CELL), found.exact


def against(heat: Tensor, mask: Tensor) -> float:
    """The AUC by which a map tells cells that an object covers by half or more."""
    covered = F.avg_pool2d(mask[None, None], CELL)[0, 0] >= 0.5
    return float(roc_area(heat.reshape(-1), covered.reshape(-1).float()))


def found(images: int, steps: int = STEPS) -> dict[str, Any]:
    net, draw = trained(steps), torch.Generator().manual_seed(2)
    present = torch.zeros(images, KINDS)
    present[:, [DISC, SQUARE]] = 1
    x, where = drawn(present, draw)
    present_again = (torch.rand(500, KINDS, generator=draw) < 0.5).float()
    seen, _ = drawn(present_again, draw)
    right = float(((net(seen) > 0) == (present_again > 0)).float().mean())
    one, single, two, exact, shown = [], [], [], [], []
    for number in range(images):
        (whole,), first = maps(net, x[number], 1)
        both, second = maps(net, x[number], 2)
        disc, square = where[number, DISC], where[number, SQUARE]
        one.append(against(whole, torch.maximum(disc, square)))
        single.append(max(against(whole, disc), against(whole, square)))
        orders = [(against(both[a], disc), against(both[1 - a], square)) for a in (0, 1)]
        two.append(max(sum(order) / 2 for order in orders))
        exact.append((first + second) / 2)
        if number < SHOWN:
            shown.append({"image": F.avg_pool2d(x[number][None], 2)[0, 0].tolist(), "rank 1": whole.tolist(),
                          "rank 2": both.tolist()})  # fmt: skip
    mean = [sum(values) / images for values in (one, two, exact, single)]
    return {"images": images, "channels": CHANNELS, "kinds told right": right, "rank 1": mean[0], "rank 2": mean[1],
            "worst rank 1": min(one), "worst rank 2": min(two), "exact": mean[2], "rank 1, one object": mean[3],
            "shown": shown}  # fmt: skip
