"""The networks of the network study, their data in four parts, and a plain training loop that keeps the best epoch.

An MLP 64-64 for the tables, three strided convolutions for the images. Adam on a cosine, batches of 32 to 256; after
each epoch the loss on held-out rows, at the best scale and shift of the scores, and the best epoch is kept: of the
parameters, and of their running average.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.common.data import Parts, halves_of, load_arrays, split, split_rows
from benchmarks.common.sets import TABLES, decode, floats, read_table
from setpoint.measure.sample import Sample
from setpoint.train.kinds import build_model
from setpoint.train.refined import refined_loss

#: One class of CIFAR-10 against the rest; so many rows of each part.
CIFAR = {"CIFAR-10, truck": 9}
CIFAR_SIZES = (6_000, 2_000, 2_000, 6_000)
IMAGES = (*CIFAR, "pneumoniamnist")
SETS = (*TABLES, *IMAGES)
#: At most so many training rows, and of held-out and calibration rows, so that they are no more than the shares say.
SHARES, MOST, MOST_BESIDE = (0.5, 0.3), 10_000, 3_000
#: Of Adam: for stacks of linear layers, as in the library, and for convolutions.
RATE, CONVOLUTION_RATE, DECAY = 3e-3, 1e-3, 1e-4
#: The running average of the parameters forgets after about this many epochs.
HORIZON = 4


def load_parts(name: str, seed: int, data: str, cache_folder: str) -> Parts:
    """One stratified split of 50/15/15/20, at most 10,000 training rows."""
    if name in IMAGES:
        pixels, labels = read_images(name, data, cache_folder)
        train, both, test = split_rows(labels.numpy(), seed, SHARES)
        halves = [torch.from_numpy(both[half.numpy()]) for half in halves_of(labels[both])]
        rows = [torch.from_numpy(train), *halves, torch.from_numpy(test)]
        if name in CIFAR:
            rows = [own[:size] for own, size in zip(rows, CIFAR_SIZES)]
        return Parts(*((floats(pixels[own]), labels[own].float()) for own in rows))
    three = split(*read_table(name, data), seed, SHARES, MOST)
    parts = Parts.of(three, MOST_BESIDE)
    return Parts(*((own.float(), its.float()) for own, its in vars(parts).values()))


@cache
def read_images(name: str, data: str, cache_folder: str) -> tuple[Tensor, Tensor]:
    """Pixels (uint8, channels first) and 0/1 labels of all images of a set."""
    if name in CIFAR:
        pixels, classes = read_cifar(data, cache_folder)
        return pixels, (classes == CIFAR[name]).double()
    arrays = load_arrays(name, data)
    pixels, labels = (np.concatenate([arrays[f"{kind}_{part}"] for part in ("train", "val", "test")]) for kind in "Xy")
    return torch.from_numpy(pixels).unsqueeze(1), torch.from_numpy(labels.astype(np.float64))


@cache
def read_cifar(data: str, cache_folder: str) -> tuple[Tensor, Tensor]:
    path = Path(cache_folder) / "cifar10_pixels.npz"
    if not path.is_file():
        pixels, classes = decode(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, pixels=pixels.numpy(), classes=classes.numpy())
    with np.load(path) as arrays:
        return torch.from_numpy(arrays["pixels"]), torch.from_numpy(arrays["classes"])


def make_net(parts: Parts, seed: int) -> nn.Module:
    """A network for these rows, drawn from `seed`."""
    torch.manual_seed(seed)
    x = parts.train[0]
    if not parts.is_image:
        return build_model("mlp", x.shape[1])
    channels = [x.shape[1], 16, 32, 64]
    stages = [
        layer
        for before, after in itertools.pairwise(channels)
        for layer in (nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
    ]
    side = x.shape[-1]
    for _ in range(3):
        side = -(-side // 2)
    return nn.Sequential(*stages, nn.Flatten(), nn.Linear(64 * side**2, 64), nn.ReLU(), nn.Linear(64, 1))


def net_epochs(parts: Parts) -> int:
    return 15 if parts.is_image else 60


@torch.no_grad()
def score(model: nn.Module, x: Tensor) -> Tensor:
    """The logits of all rows, in evaluation mode."""
    model.eval()
    return torch.cat([model(some).squeeze(-1) for some in x.split(2000)])


class Shuffled:
    """Batches of the training rows in a new order every pass; every other image is mirrored, by chance."""

    def __init__(self, parts: Parts, seed: int) -> None:
        self.x, self.labels = parts.train
        # Small sets too have steps enough to converge.
        self.flips, self.size = parts.is_image, min(256, max(32, len(self.labels) // 40))
        self.draw = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return math.ceil(len(self.labels) / self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, labels, _ in self.indexed():
            yield x, labels

    def indexed(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for rows in torch.randperm(len(self.labels), generator=self.draw).split(self.size):
            x = self.x[rows]
            if self.flips:
                turned = (torch.rand(len(rows), generator=self.draw) < 0.5).view(-1, 1, 1, 1)
                x = torch.where(turned, x.flip(-1), x)
            yield x, self.labels[rows], rows


#: Scores, labels and row numbers to a loss; and a model's scores on held-out rows to what is to be small there.
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
HeldOutLoss = Callable[[Tensor], float]


@dataclass(frozen=True)
class Trained:
    """The best epoch, the best epoch of the running average, what it took, and after how many passes each was best."""

    model: nn.Module
    average: nn.Module
    seconds: float
    epochs: int
    best_after: tuple[int, int] = (0, 0)


def train(
    model: nn.Module,
    batches: Shuffled,
    loss_of: Loss,
    held_out: tuple[Tensor, HeldOutLoss] | None,
    *,
    epochs: int,
    rate: float | None = None,
    patience: int | None = None,
    stop_after: int | None = None,
) -> Trained:
    """Train in place; with no held-out loss the last epoch is kept. `stop_after` ends the cosine of `epochs` early."""
    started = time.process_time()
    if rate is None:
        rate = CONVOLUTION_RATE if any(isinstance(layer, nn.Conv2d) for layer in model.modules()) else RATE
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=DECAY, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(batches))
    average = copy.deepcopy(model)
    pairs = [(mean, own) for mean, own in zip(_values(average), _values(model)) if own.is_floating_point()]
    means, owns = [mean for mean, _ in pairs], [own for _, own in pairs]
    keep = 1 - 1 / (HORIZON * len(batches))
    best: dict[nn.Module, tuple[float, dict[str, Tensor]]] = {}
    last = {model: 0, average: 0}
    steps = 0
    for epoch in range(stop_after or epochs):
        model.train()
        for x, labels, rows in batches.indexed():
            loss = loss_of(model(x).squeeze(-1), labels, rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            steps += 1
            # From the first steps on it is the mean of what there is.
            torch._foreach_lerp_(means, owns, 1 - min(keep, steps / (steps + 10)))
        for one in (model, average) if held_out is not None else ():
            value = held_out[1](score(one, held_out[0]))
            if one not in best or value < best[one][0]:
                best[one], last[one] = (value, copy.deepcopy(one.state_dict())), epoch
        if held_out is not None and patience is not None and epoch - max(last.values()) >= patience:
            break
    for one, (_, state) in best.items():
        one.load_state_dict(state)
    return Trained(
        model.eval(), average.eval(), time.process_time() - started, epoch + 1, (last[model] + 1, last[average] + 1)
    )


def _values(model: nn.Module) -> list[Tensor]:
    return [own.detach() for own in (*model.parameters(), *model.buffers())]


def weighted_loss(weight: float, labels: Tensor) -> Loss:
    """Cross-entropy with positives `weight` times as heavy, the mean weight 1 on `labels`."""
    mean = float(torch.where(labels > 0, weight, 1.0).mean())

    def loss(scores: Tensor, labels: Tensor, rows: Tensor | None = None) -> Tensor:
        return F.binary_cross_entropy_with_logits(scores, labels, torch.where(labels > 0, weight / mean, 1 / mean))

    return loss


def train_weighted(parts: Parts, weight: float, seed: int, epochs: int | None = None) -> Trained:
    """Class-weighted cross-entropy from scratch, stopped early by its refined loss on held-out rows, as the library."""
    loss = weighted_loss(weight, parts.train[1])
    x, labels = parts.held_out
    epochs = epochs or net_epochs(parts)
    return train(
        make_net(parts, seed), Shuffled(parts, seed), loss, (x, lambda scores: refined_loss(Sample(scores, labels))),
        epochs=epochs, patience=max(5, epochs // 4),
    )  # fmt: skip
