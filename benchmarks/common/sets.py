"""The sets of the linear studies by name: tables as they are, under random ReLU features, and heads on CIFAR-10.

A head is a linear model on the 64 features of a small convolutional net that was trained on ten classes and on 20,000
other images, for a few epochs. The features are computed once and kept in `--cache DIR`, outside the repository.
"""

from __future__ import annotations

import io
import itertools
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.common.data import Part, Split, load_arrays, load_table, split

RELU = ", 100 ReLU features"
#: One class against the rest.
HEADS = {"CIFAR-10 head, cat": 3, "CIFAR-10 head, truck": 9}
TABLES = ("letter", "ijcnn1", "adult", "spambase", "communities_crime", "german_credit")
SETS = (*TABLES, f"letter{RELU}", f"ijcnn1{RELU}", *HEADS)
CACHE = Path.home() / ".cache" / "setpoint"
BACKBONE_IMAGES, BACKBONE_EPOCHS = 20_000, 6


def load_split(
    name: str, seed: int, shares: tuple[float, float], *, data: str, cache_folder: str, most: int | None = None
) -> Split:
    """One stratified split of a set; random features are drawn once a set, and applied to standardised rows."""
    if name in HEADS:
        features, classes = head_features(data, cache_folder)
        return split(features, (classes == HEADS[name]).astype(np.float64), seed, shares, most)
    parts = split(*read_table(name.removesuffix(RELU), data), seed, shares, most)
    if not name.endswith(RELU):
        return parts
    width = parts.train[0].shape[1]
    draw = torch.Generator().manual_seed(width)
    weight = torch.randn(width, 100, generator=draw, dtype=torch.float64) / width**0.5
    bias = torch.randn(100, generator=draw, dtype=torch.float64)

    def lift(part: Part) -> Part:
        return torch.relu(part[0] @ weight + bias), part[1]

    return Split(lift(parts.train), lift(parts.validation), lift(parts.test))


@cache
def read_table(name: str, data: str) -> tuple[np.ndarray, np.ndarray]:
    return load_table(name, data)


@cache
def head_features(data: str, cache_folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes of the 40,000 images that the net has not seen."""
    path = Path(cache_folder) / f"cifar10_head_{BACKBONE_IMAGES}_{BACKBONE_EPOCHS}.npz"
    if not path.is_file():
        pixels, classes = decode(data)
        order = torch.randperm(50_000, generator=torch.Generator().manual_seed(0))
        net = train_backbone(pixels[order[:BACKBONE_IMAGES]], classes[order[:BACKBONE_IMAGES]])
        rest = torch.cat([order[BACKBONE_IMAGES:], torch.arange(50_000, len(classes))])
        with torch.no_grad():
            found = torch.cat([net[:-1](floats(pixels[rows])) for rows in rest.split(500)])
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, features=found.numpy(), classes=classes[rest].numpy())
    with np.load(path) as arrays:
        return arrays["features"].astype(np.float64), arrays["classes"]


def decode(data: str) -> tuple[Tensor, Tensor]:
    """All 60,000 images as uint8, channels first, the training images first, and their classes."""
    arrays, images = load_arrays("cifar10_jpeg", data), []
    for part in ("train", "test"):
        whole, offsets = arrays[f"jpeg_{part}"], arrays[f"offsets_{part}"]
        images += [np.asarray(Image.open(io.BytesIO(whole[a:b].tobytes()))) for a, b in itertools.pairwise(offsets)]
    classes = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64)
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(classes)


def floats(pixels: Tensor) -> Tensor:
    return (pixels.float() - 127.5) / 64


def train_backbone(pixels: Tensor, classes: Tensor) -> nn.Sequential:
    """Three convolutions, 64 features, ten classes; Adam on a cosine, flips."""
    torch.manual_seed(0)
    stages = [
        layer
        for channels, filters in ((3, 16), (16, 32), (32, 64))
        for layer in (
            nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)
        )
    ]  # fmt: skip
    net = nn.Sequential(*stages, nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
    batches = -(-len(classes) // 128)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, BACKBONE_EPOCHS * batches)
    for _ in range(BACKBONE_EPOCHS):
        for rows in torch.randperm(len(classes)).split(128):
            flipped = (torch.rand(len(rows)) < 0.5).view(-1, 1, 1, 1)
            x = torch.where(flipped, pixels[rows].flip(-1), pixels[rows])
            loss = F.cross_entropy(net(floats(x)), classes[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.eval()
