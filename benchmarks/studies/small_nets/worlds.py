"""The rows of the study of small networks: ijcnn1, a stated mixture of Gaussians, and shirts of Fashion-MNIST."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.data import Part, Parts, halves_of, load_arrays, split_rows
from benchmarks.studies.paper_images.sets import Folders, fashion

SHARES = (0.5, 0.3)
#: Of the mixture: features, components per class, share of positives, and rows of the held-out and the test part.
FEATURES, COMPONENTS, POSITIVES, BESIDE = 10, {0: 12, 1: 4}, 0.05, (100_000, 400_000)
#: Fashion-MNIST's class "shirt", the one that is most often mistaken.
SHIRT = 6
#: The same images as rows of 784 numbers, for nets of linear layers.
IMAGES, PIXELS = "Fashion-MNIST", "Fashion-MNIST, pixels"


def load(name: str, seed: int, rows: int, folders: Folders) -> Parts:
    """At most `rows` training rows; held-out rows choose the weight, test rows judge, nothing else is set."""
    if name == "mixture":
        return mixture(seed, rows)
    x, labels = ijcnn1(folders.data) if name == "ijcnn1" else shirts(folders)
    train, both, test = (torch.from_numpy(part) for part in split_rows(labels.numpy(), seed, SHARES, rows))
    first, second = halves_of(labels[both])
    parts = [(x[own], labels[own]) for own in (train, both[first], both[second], test)]
    if name == "ijcnn1":
        mean, spread = parts[0][0].mean(0), parts[0][0].std(0).clamp_min(1e-6)
        parts = [(((x - mean) / spread).clamp(-5, 5), labels) for x, labels in parts]
    else:
        parts = [((x.float() - 127.5) / 64, labels) for x, labels in parts]
    if name == PIXELS:
        parts = [(x.flatten(1), labels) for x, labels in parts]
    return Parts(*parts)


@cache
def ijcnn1(data: str) -> tuple[Tensor, Tensor]:
    """All 141,691 rows: at an FPR of 0.1 % the 49,990 of the papers leave too few negatives."""
    arrays = load_arrays("ijcnn1", data)
    return torch.from_numpy(arrays["X"].astype(np.float32)), torch.from_numpy((arrays["y"] > 0).astype(np.float32))


@cache
def shirts(folders: Folders) -> tuple[Tensor, Tensor]:
    """28 x 28 bytes, without the rim that `fashion` adds."""
    pixels, classes = fashion(folders)
    return pixels[:, :, 2:-2, 2:-2], (classes == SHIRT).float()


def mixture(seed: int, rows: int) -> Parts:
    """Components with means from N(0, I) and spreads from exp(N(0, 1/4)); another world for each seed."""
    draw = np.random.default_rng([seed, 26])
    worlds = {label: (draw.normal(size=(count, FEATURES)), np.exp(0.5 * draw.normal(size=(count, 1))))
              for label, count in COMPONENTS.items()}  # fmt: skip

    def part(size: int) -> Part:
        labels = (draw.random(size) < POSITIVES).astype(np.float32)
        x = np.empty((size, FEATURES), np.float32)
        for label, (means, spreads) in worlds.items():
            own = np.flatnonzero(labels == label)
            which = draw.integers(len(means), size=len(own))
            x[own] = means[which] + spreads[which] * draw.standard_normal((len(own), FEATURES))
        return torch.from_numpy(x), torch.from_numpy(labels)

    held_out, test = (part(size) for size in BESIDE)
    return Parts(part(rows), held_out, held_out, test)
