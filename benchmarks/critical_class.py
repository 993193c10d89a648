"""A rare critical class: base losses alone and with the augmented Lagrangian, on a CIFAR-10 pair at 1:100.

    python -m benchmarks.critical_class [--data DIR] [--quick] [--all] [--seeds N]

FPR at 98, 95 and 92 % TPR and AUC on the 2,000 test images of two classes, as in Table 1 of the augmented-Lagrangian
paper. A seed draws the training set (all but 100 images of the majority class, 49 of the minority), the validation set
(100 of each), the weights and the order; both methods of a pair see the same. A narrow ResNet-10, Adam, cosine, flips;
the epoch with the best validation AUC is kept. Nothing is tuned: the augmented Lagrangian has the settings below for
every base loss. Each finished run is one line of `results/critical_class.jsonl`, and is not run again.
"""

from __future__ import annotations

import argparse
import base64
import copy
import io
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

import setpoint as sp
from benchmarks.data import load_arrays, paired
from benchmarks.harness import RESULTS, finished, write_result
from setpoint.measure.area import roc_area
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.losses import LDAM, ClassBalanced, Focal, Margin, MiniBatchAUC
from setpoint.solve.solver import Solver

NEGATIVE, POSITIVE, RATIO, HELD_OUT = 8, 0, 100, 100
TPRS = (0.98, 0.95, 0.92)
AUGMENTED = {"margin": 0.1, "mu": 1e-3}
#: The published LDAM has cosines as logits and multiplies them; here the head does that.
COSINE_SCALE = 30.0
FIRST = ("BCE", "A-FL", "LDAM")


@dataclass(frozen=True)
class Settings:
    """What a run depends on beside its loss and seed."""

    epochs: int = 20
    width: int = 16
    batch: int = 128
    negatives: int | None = None


@dataclass(frozen=True)
class Images:
    """Pixels (uint8, channels first) and labels of one part."""

    x: Tensor
    labels: Tensor


def base_losses(counts: tuple[int, int], steps: int) -> dict[str, Callable[[], Solver]]:
    """The losses of Table 1, with the settings of their papers where those are given."""
    return {
        "BCE": sp.CrossEntropy,
        "S-ML": lambda: Margin(0.5),
        "S-FL": lambda: Focal(2.0),
        "A-ML": lambda: Margin(0.5, critical=1),
        "A-FL": lambda: Focal(2.0, critical=1),
        "CB-BCE": lambda: ClassBalanced(counts, beta=0.999),
        "W-BCE": lambda: sp.CrossEntropy("balanced"),
        "LDAM": lambda: LDAM(counts, max_margin=0.5 * COSINE_SCALE, reweight_after=round(0.8 * steps)),
        "MBAUC": MiniBatchAUC,
    }


class Residual(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
            nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters),
        )  # fmt: skip
        same = stride == 1 and channels == filters
        self.short = nn.Identity() if same else nn.Conv2d(channels, filters, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x))


class CosineHead(nn.Module):
    """A logit that is the cosine between features and weights, times a scale."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x: Tensor) -> Tensor:
        return COSINE_SCALE * F.cosine_similarity(x, self.weight.unsqueeze(0)).unsqueeze(-1)


def resnet10(width: int, cosine: bool) -> nn.Sequential:
    """Four residual blocks at 16, 8, 4 and 2 pixels: the stem halves the image, which pays for two cores."""
    blocks = [Residual(width, width, 1), *(Residual(width * 2**i, width * 2 ** (i + 1), 2) for i in range(3))]
    stem = (nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    head = CosineHead(8 * width) if cosine else nn.Linear(8 * width, 1)
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)


def load_pair(folder: str) -> tuple[Images, Images]:
    """Training and test images of the two classes, decoded; label 1 is the minority class."""
    arrays = load_arrays("cifar10_jpeg", folder)
    parts = []
    for part in ("train", "test"):
        labels, offsets, data = arrays[f"y_{part}"], arrays[f"offsets_{part}"], arrays[f"jpeg_{part}"]
        chosen = np.flatnonzero((labels == NEGATIVE) | (labels == POSITIVE))
        images = [np.asarray(Image.open(io.BytesIO(data[offsets[i] : offsets[i + 1]].tobytes()))) for i in chosen]
        pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()
        parts.append(Images(pixels, torch.from_numpy((labels[chosen] == POSITIVE).astype(np.float32))))
    return parts[0], parts[1]


def draw(whole: Images, seed: int, negatives: int | None) -> tuple[Images, Images]:
    """Training rows at 1:100 and a balanced validation set."""
    order = torch.randperm(len(whole.labels), generator=torch.Generator().manual_seed(seed))
    of = {label: order[whole.labels[order] == label] for label in (0, 1)}
    validation = torch.cat([of[label][:HELD_OUT] for label in (0, 1)])
    majority = of[0][HELD_OUT:][:negatives]
    minority = of[1][HELD_OUT:][: max(1, len(majority) // RATIO)]
    train = torch.cat([majority, minority])
    return Images(whole.x[train], whole.labels[train]), Images(whole.x[validation], whole.labels[validation])


def floats(x: Tensor) -> Tensor:
    return (x.float() - 127.5) / 64


@torch.no_grad()
def logits(model: nn.Module, x: Tensor) -> Tensor:
    model.eval()
    return torch.cat([model(floats(part)).squeeze(-1) for part in x.split(500)])


def train(images: Images, validation: Images, name: str, augmented: bool, seed: int, settings: Settings) -> nn.Module:
    """One run; the epoch of the best validation AUC."""
    torch.manual_seed(seed)
    model = resnet10(settings.width, cosine=name == "LDAM")
    n_positive = int(images.labels.sum())
    per_epoch = math.ceil(len(images.labels) / settings.batch)
    base = base_losses((len(images.labels) - n_positive, n_positive), per_epoch * settings.epochs)[name]()
    solver = AugmentedLagrangian(base, n_samples=len(images.labels), **AUGMENTED) if augmented else base
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.epochs)
    shuffle = torch.Generator().manual_seed(seed)
    best, state = -1.0, model.state_dict()
    for _ in range(settings.epochs):
        model.train()
        for rows in torch.randperm(len(images.labels), generator=shuffle).split(settings.batch):
            flipped = torch.rand(len(rows), generator=shuffle) < 0.5
            x = torch.where(flipped.view(-1, 1, 1, 1), images.x[rows].flip(-1), images.x[rows])
            loss = solver(model(floats(x)).squeeze(-1), images.labels[rows], index=rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        area = float(roc_area(logits(model, validation.x), validation.labels))
        if isinstance(solver, AugmentedLagrangian):
            solver.step_metric(area)
        if area > best:
            best, state = area, copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    return model


def table_row(scores: Tensor, labels: Tensor) -> dict[str, float]:
    """Table 1's columns, in percent."""
    row = {
        f"FPR @ {tpr:.0%} TPR": 100 * sp.evaluate(sp.minimize(sp.fpr, sp.recall >= tpr), scores, labels).objective
        for tpr in TPRS
    }
    return {**row, "AUC": 100 * float(roc_area(scores, labels))}


def run_all(options: argparse.Namespace, settings: Settings, path: Path) -> list[dict[str, Any]]:
    names = [*base_losses((2, 1), 1)] if options.all else list(FIRST)
    # The paper's mini-batch AUC stands alone: it is what the augmented Lagrangian is compared with.
    wanted = [
        (seed, n, a) for seed in range(options.seeds) for n in names for a in (False, True) if n != "MBAUC" or not a
    ]
    done, chosen, images = finished(path), [], None
    for seed, name, augmented in wanted:
        key = f"{NEGATIVE}-{POSITIVE} 1:{RATIO} {settings} {AUGMENTED} {name} augmented={augmented} seed={seed}"
        if key not in done:
            images = images or load_pair(options.data)
            whole, test = images
            start = time.perf_counter()
            model = train(*draw(whole, seed, settings.negatives), name, augmented, seed, settings)
            scores = logits(model, test.x)
            done[key] = {
                "key": key, "loss": name, "augmented": augmented, "seed": seed, **table_row(scores, test.labels),
                "seconds": time.perf_counter() - start, "logits": pack(scores), "labels": pack(test.labels),
            }  # fmt: skip
            with path.open("a") as file:
                file.write(json.dumps(done[key]) + "\n")
            print(f"seed {seed} {'ALM + ' * augmented}{name}: {done[key]['seconds']:.0f} s", flush=True)
        chosen.append(done[key])
    return chosen


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a method: means over seeds, the ensemble of all seeds by mean logit, and augmented minus alone."""
    rows = []
    labels = unpack(runs[0]["labels"])
    columns = [*table_row(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]))]
    for name in dict.fromkeys(run["loss"] for run in runs):
        of = {a: [run for run in runs if run["loss"] == name and run["augmented"] == a] for a in (False, True)}
        for augmented, group in of.items():
            if not group:
                continue
            means = {column: statistics.mean(run[column] for run in group) for column in columns}
            together = sum(unpack(run["logits"]) for run in group) / len(group)
            row = {"method": f"{'ALM + ' * augmented}{name}", **means, "ensemble": table_row(together, labels)}
            if augmented:
                row["minus alone"] = {
                    column: paired([b[column] - a[column] for a, b in zip(of[False], group)], 0.0, 1.0)
                    for column in columns
                }
            rows.append(row)
    return rows


def pack(values: Tensor) -> str:
    """Half-precision numbers as text, so that a summary needs neither the data nor the models."""
    return base64.b64encode(values.half().numpy().tobytes()).decode()


def unpack(packed: str) -> Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(packed), dtype=np.float16).astype(np.float32))


def show(rows: list[dict[str, Any]]) -> None:
    columns = [name for name in rows[0] if name not in ("method", "ensemble", "minus alone")]
    print(f"{'':14s}" + "".join(f"{column:>18s}" for column in columns))
    for row in rows:
        print(f"{row['method']:14s}" + "".join(f"{row[column]:18.1f}" for column in columns))
        print(f"{'  ensemble':14s}" + "".join(f"{row['ensemble'][column]:18.1f}" for column in columns))
        if "minus alone" in row:
            cells = (row["minus alone"][column] for column in columns)
            print(f"{'  minus alone':14s}" + "".join(f"{c['mean']:+11.1f} +-{c['standard_error']:4.1f}" for c in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--data", default="../shared/data", help="the folder with cifar10_jpeg.npz")
    parser.add_argument("--quick", action="store_true", help="one seed, two epochs, few images: only to see it run")
    parser.add_argument("--all", action="store_true", help="all eight base losses and mini-batch AUC")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    settings = Settings(epochs=options.epochs)
    path = RESULTS / "critical_class.jsonl"
    if options.quick:
        options.seeds, settings = 1, Settings(epochs=2, width=8, negatives=1000)
        path = Path(tempfile.gettempdir()) / "critical_class_quick.jsonl"
    RESULTS.mkdir(exist_ok=True)
    runs = run_all(options, settings, path)
    rows = summary(runs)
    show(rows)
    if not options.quick:
        write_result("critical_class", {"settings": str(settings), "augmented": AUGMENTED, "rows": rows})


if __name__ == "__main__":
    main()
