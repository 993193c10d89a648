"""The real data sets of the studies: read from `--data DIR`, split by seed, scaled on the training rows only."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

Part = tuple[Tensor, Tensor]

#: Where each set comes from, for those who do not have the file.
ORIGIN = {
    "letter": "UCI Letter Recognition, positive = the letter U",
    "ijcnn1": "LIBSVM ijcnn1, training and validation rows with split 0 and 1",
    "adult": "UCI Adult, one-hot, positive = income above 50K",
    "spambase": "UCI Spambase, positive = spam",
    "communities_crime": "UCI Communities and Crime, positive = ViolentCrimesPerPop above its 70th percentile",
    "german_credit": "UCI Statlog German Credit, one-hot, positive = bad credit",
    "cifar10_jpeg": "CIFAR-10 as JPEG bytes: jpeg_*, offsets_*, y_* for train and test",
    "mq2008": "LETOR 4.0 MQ2008",
}


@dataclass(frozen=True)
class Split:
    """Train, validation and test rows: features (standardised on train, clipped to +-5) and labels, float64."""

    train: Part
    validation: Part
    test: Part


@dataclass(frozen=True)
class Parts:
    """Train, held-out (to stop and to choose on), calibration (for the threshold alone) and test rows."""

    train: Part
    held_out: Part
    calibration: Part
    test: Part

    @classmethod
    def of(cls, three: Split, most: int | None = None) -> Parts:
        """Of a split whose validation rows are halved, each class apart; at most so many rows in a half."""
        x, labels = three.validation
        held_out, calibration = ((x[half[:most]], labels[half[:most]]) for half in halves_of(labels))
        return cls(three.train, held_out, calibration, three.test)

    @property
    def is_image(self) -> bool:
        return self.train[0].dim() == 4


def halves_of(labels: Tensor) -> list[Tensor]:
    """Every other row of each class, in an order of their own that mixes the classes."""
    found = []
    for side in (0, 1):
        rows = torch.cat([(labels == label).nonzero().squeeze(-1)[side::2] for label in (0, 1)])
        found.append(rows.sort().values)
    return found


def arguments(description: str, seeds: int | None = None) -> argparse.ArgumentParser:
    """The flags that every study has; one with so many `seeds` may also take fewer, or sum up those that are done."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default="../shared/data", help="the folder with the .npz files")
    parser.add_argument("--quick", action="store_true", help="fewer splits; the figures are then rough")
    if seeds is not None:
        parser.add_argument("--so-far", action="store_true", help="run nothing, sum up what is done")
        parser.add_argument("--seeds", type=int, default=seeds, help="how many of the seeds")
    return parser


def load_arrays(name: str, folder: str) -> dict[str, np.ndarray]:
    """The arrays of one file; a missing one ends the study with its name and what to do."""
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        origin = ORIGIN.get(name)
        made = f", or make it with arrays X, y, names and split from {origin}" if origin else ""
        raise SystemExit(f"{path} is missing: pass --data DIR with the folder that holds {name}.npz{made}")
    with np.load(path, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def load_table(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and 0/1 labels; of ijcnn1 the 49,990 rows that the papers use (`split < 2`)."""
    arrays = load_arrays(name, folder)
    x, y = arrays["X"].astype(np.float64), (arrays["y"] > 0).astype(np.float64)
    if name == "ijcnn1":
        kept = arrays["split"] < 2
        x, y = x[kept], y[kept]
    return x, y


def split_rows(y: np.ndarray, seed: int, shares: tuple[float, float], most: int | None = None) -> list[np.ndarray]:
    """Row numbers of a stratified split by `seed`: train (at most `most`), validation, and the rest for test."""
    draw = np.random.default_rng(seed)
    parts: list[list[np.ndarray]] = [[], [], []]
    for label in (0, 1):
        rows = draw.permutation(np.flatnonzero(y == label))
        first, second = round(shares[0] * len(rows)), round((shares[0] + shares[1]) * len(rows))
        for part, chosen in zip(parts, (rows[:first], rows[first:second], rows[second:])):
            part.append(chosen)
    train, validation, test = (draw.permutation(np.concatenate(part)) for part in parts)
    return [train[:most], validation, test]


def split(x: np.ndarray, y: np.ndarray, seed: int, shares: tuple[float, float], most: int | None = None) -> Split:
    """A stratified split by `seed`: `shares` for train and validation, the rest for test; `most` training rows."""
    rows = split_rows(y, seed, shares, most)
    mean, spread = x[rows[0]].mean(0), x[rows[0]].std(0)
    scaled = np.clip((x - mean) / np.where(spread > 0, spread, 1), -5, 5)
    return Split(*((torch.tensor(scaled[part]), torch.tensor(y[part])) for part in rows))


def with_ones(x: Tensor) -> Tensor:
    """The features with a last column of ones, for the bias."""
    return torch.cat([x, torch.ones_like(x[:, :1])], dim=1)


def paired(differences: list[float], test_share: float, train_share: float) -> dict[str, float]:
    """Mean and standard errors of paired differences over splits; `corrected` for splits that overlap.

    The corrected one is Nadeau and Bengio's: variance x (1 / splits + test / train).
    """
    values = np.array(differences)
    variance = float(values.var(ddof=1)) if len(values) > 1 else float("nan")
    return {
        "mean": float(values.mean()),
        "standard_error": (variance / len(values)) ** 0.5,
        "corrected_standard_error": (variance * (1 / len(values) + test_share / train_share)) ** 0.5,
    }
