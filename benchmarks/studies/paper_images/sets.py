"""The image sets of the papers' comparison that can be had, one class against the rest, and their parts by seed.

Images are uint8, channels first, 32x32: those of 28x28 get a rim of zeros. All images of a set are pooled, and each
seed draws parts of its own, class by class.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.common.data import load_arrays
from benchmarks.common.sets import decode

#: Where Debian's package puts them.
FASHION = "/usr/share/datasets/fashion-mnist"
PARTS = ("train", "validation", "calibration", "test")


@dataclass(frozen=True)
class Folders:
    """Where the files are."""

    data: str
    fashion: str = FASHION


@dataclass(frozen=True)
class Images:
    """Pixels and 0/1 labels of one part."""

    x: Tensor
    labels: Tensor

    def floats(self, rows: Tensor | slice = slice(None)) -> Tensor:
        return (self.x[rows].float() - 127.5) / 64

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class ImageSet:
    """How to read a set, which class is positive, how many images a part gets, and how long to train."""

    read: Callable[[Folders], tuple[Tensor, Tensor]]
    positive: int
    sizes: tuple[int, int, int, int]
    epochs: int
    splits: int


def cifar(folders: Folders) -> tuple[Tensor, Tensor]:
    return decode(folders.data)


def medical(name: str) -> Callable[[Folders], tuple[Tensor, Tensor]]:
    def read(folders: Folders) -> tuple[Tensor, Tensor]:
        arrays = load_arrays(name, folders.data)
        pixels = np.concatenate([arrays[f"X_{part}"] for part in ("train", "val", "test")])
        classes = np.concatenate([arrays[f"y_{part}"] for part in ("train", "val", "test")])
        return grey(pixels), torch.from_numpy(classes.astype(np.int64)).flatten()

    return read


def fashion(folders: Folders) -> tuple[Tensor, Tensor]:
    pixels = [read_idx(Path(folders.fashion) / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    classes = [read_idx(Path(folders.fashion) / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k")]
    return grey(np.concatenate(pixels)), torch.from_numpy(np.concatenate(classes).astype(np.int64))


def read_idx(path: Path) -> np.ndarray:
    """The bytes of an idx file in their shape."""
    whole = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(whole, ">u4", count=whole[3], offset=4)
    return np.frombuffer(whole, np.uint8, offset=4 + 4 * whole[3]).reshape([int(size) for size in shape])


def grey(pixels: np.ndarray) -> Tensor:
    """One channel, 28x28 brought to 32x32."""
    images = torch.from_numpy(pixels.reshape(len(pixels), 1, *pixels.shape[1:3]).copy())
    return F.pad(images, (2, 2, 2, 2))


IMAGE_SETS = {
    "CIFAR-10, cat": ImageSet(cifar, 3, (6000, 2000, 2000, 6000), epochs=10, splits=3),
    "CIFAR-10, truck": ImageSet(cifar, 9, (6000, 2000, 2000, 6000), epochs=10, splits=3),
    "Fashion-MNIST, shirt": ImageSet(fashion, 6, (6000, 2000, 2000, 6000), epochs=10, splits=3),
    "pneumoniamnist, normal": ImageSet(medical("pneumoniamnist"), 0, (2928, 878, 878, 1172), epochs=12, splits=4),
    "breastmnist, malignant": ImageSet(medical("breastmnist"), 0, (390, 117, 117, 156), epochs=30, splits=6),
}


def missing(name: str, folders: Folders) -> str | None:
    """Why a set cannot be read here and what to do; None if it can. Only Debian's package may be absent."""
    if IMAGE_SETS[name].read is not fashion or (Path(folders.fashion) / "train-images-idx3-ubyte.gz").is_file():
        return None
    return (
        f"{name} is left out: {folders.fashion} has no train-images-idx3-ubyte.gz. apt-get install "
        "dataset-fashion-mnist, or apt-get download it, dpkg -x it and pass --fashion DIR"
    )


@cache
def pooled(name: str, folders: Folders) -> tuple[Tensor, Tensor]:
    """All images of a set, and which are positive."""
    one = IMAGE_SETS[name]
    pixels, classes = read_once(one.read, folders)
    return pixels, (classes == one.positive).float()


@cache
def read_once(read: Callable[[Folders], tuple[Tensor, Tensor]], folders: Folders) -> tuple[Tensor, Tensor]:
    return read(folders)


def draw_parts(pixels: Tensor, labels: Tensor, sizes: tuple[int, ...], seed: int) -> dict[str, Images]:
    """Disjoint parts by `seed`, each with the set's share of positives."""
    draw = torch.Generator().manual_seed(seed)
    chosen: list[list[Tensor]] = [[] for _ in sizes]
    for label in (0, 1):
        rows = (labels == label).nonzero().squeeze(-1)
        rows = rows[torch.randperm(len(rows), generator=draw)]
        ends = [round(sum(sizes[: part + 1]) * len(rows) / len(labels)) for part in range(len(sizes))]
        for part, (start, end) in enumerate(zip([0, *ends], ends)):
            chosen[part].append(rows[start:end])
    joined = [torch.cat(rows) for rows in chosen]
    return {part: Images(pixels[rows], labels[rows]) for part, rows in zip(PARTS, joined)}
