"""How costs grow: rows 10^3 to 10^7, columns 10 to 10^4, thresholds 2 to 1,000, classes 2 to 100, groups 2 to 100.

    python -m benchmarks.speed.growth [--quick] [--only KIND]

A figure is the least processor time of a call, one thread. An exponent is the slope of a straight line through the
upper half of the sizes on logarithmic axes: 1 is in proportion. The picture goes to `docs/images/growth.svg`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from torch import nn

import setpoint as sp
from benchmarks.common.harness import ROOT, load_figures, write_result

mpl.use("Agg")
from matplotlib import pyplot as plt

Work = Callable[[], object]
PICTURE = ROOT / "docs" / "images" / "growth.svg"
LIMIT, SECONDS = 1.1, 1.0


def rows_of(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, generator=draw) < 0.1).float()
    return torch.randn(n, generator=draw) + labels, labels


def step_of(solver: nn.Module, scores: torch.Tensor, labels: torch.Tensor, **more: torch.Tensor) -> Work:
    """A forward and backward pass."""
    own = scores.clone().requires_grad_()
    return lambda: solver(own, labels, **more).backward()


def calibrated(n: int) -> Work:
    scores, labels = rows_of(n)
    return lambda: sp.calibrate("minimize fnr where fpr <= 1%", scores, labels)


def calibrated_by_sort(n: int) -> Work:
    scores, labels = rows_of(n)
    problem = sp.ask("maximize f1 where recall >= 60%")
    return lambda: sp.calibrate(problem, scores, labels)


def implicit_step(n: int) -> Work:
    return step_of(sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 1%")), *rows_of(n))


def augmented_step(n: int) -> Work:
    solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=n)
    return step_of(solver, *rows_of(n), index=torch.arange(n))


def linear_step(columns: int) -> Work:
    """An optimizer step of a linear model on 512 rows."""
    torch.manual_seed(0)
    x, model = torch.randn(512, columns), nn.Linear(columns, 1)
    labels = (x[:, 0] > 1).float()
    solver = sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 1%"))
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        solver(model(x).squeeze(-1), labels).backward()
        optimizer.step()

    return step


def area_step(points: int) -> Work:
    solver = sp.ImplicitThreshold(sp.ask(f"maximize recall over fpr in [0%, 5%] with {points} points"))
    return step_of(solver, *rows_of(4096))


def classes_step(classes: int) -> Work:
    torch.manual_seed(0)
    labels = torch.randint(classes, (4096,))
    scores = torch.randn(4096, classes) + 2 * nn.functional.one_hot(labels, classes)
    solver = sp.classes.ImplicitShifts(sp.maximize(sp.classes.Macro(sp.recall)), classes, memory=0)
    return step_of(solver, scores, labels)


def groups_step(groups: int) -> Work:
    solver = sp.ImplicitThreshold(sp.ask("minimize error where fpr.gap(group) <= 5%"), n_groups=groups, memory=0)
    return step_of(solver, *rows_of(20_000), groups=torch.arange(20_000) % groups)


#: By kind of size: what is measured, at which sizes.
GROWTHS: dict[str, tuple[dict[str, Callable[[int], Work]], tuple[int, ...]]] = {
    "rows": (
        {"calibrate, by rank": calibrated, "calibrate, by a sort": calibrated_by_sort,
         "step, implicit": implicit_step, "step, augmented": augmented_step},
        (10**3, 10**4, 10**5, 10**6, 10**7),
    ),
    "columns": ({"step of a linear model, 512 rows": linear_step}, (10, 100, 1000, 10_000)),
    "thresholds": ({"step of an area, 4,096 rows": area_step}, (2, 10, 30, 100, 300, 1000)),
    "classes": ({"step of shifts, 4,096 rows": classes_step}, (2, 5, 10, 20, 50, 100)),
    "groups": ({"step of a gap, 20,000 rows": groups_step}, (2, 5, 10, 20, 50, 100)),
}  # fmt: skip


def least_seconds(work: Work) -> float:
    """The least processor time of a call, over about a second of calls, after one that goes unused."""
    work()
    found: list[float] = []
    while not found or (sum(found) < SECONDS and len(found) < 200):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope through the upper half of the sizes, on logarithmic axes."""
    upper = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[upper:]), np.log(seconds[upper:]), 1)[0])


def measured(kind: str, quick: bool) -> dict[str, Any]:
    works, sizes = GROWTHS[kind]
    most = sizes[-1] if not quick else sizes[-1] // 100 if kind == "rows" else sizes[-1] // 10
    taken = [size for size in sizes if size <= most]
    found = {}
    for name, make in works.items():
        seconds = [least_seconds(make(size)) for size in taken]
        grows = exponent(taken, seconds)
        found[name] = {"sizes": taken, "seconds": seconds, "exponent": grows, "met": grows <= LIMIT}
        told = ", ".join(f"{size:,}: {1e3 * one:.3g} ms" for size, one in zip(taken, seconds))
        print(f"{kind:10s} {name:34s} exponent {grows:5.2f}   {told}", flush=True)
    return found


def draw(figures: dict[str, Any]) -> None:
    """Each kind of size in a panel of its own, on logarithmic axes, with a line in proportion."""
    mpl.rcParams.update({"svg.hashsalt": "setpoint", "svg.fonttype": "none", "font.size": 8})
    across = 3
    figure, panels = plt.subplots(math.ceil(len(figures) / across), across, figsize=(9, 5.6), squeeze=False)
    for panel in panels.ravel()[len(figures) :]:
        panel.axis("off")
    for panel, (kind, works) in zip(panels.ravel(), figures.items()):
        for name, row in works.items():
            line = [1e3 * one for one in row["seconds"]]
            panel.loglog(row["sizes"], line, marker="o", markersize=3, label=f"{name}: {row['exponent']:.2f}")
        sizes = next(iter(works.values()))["sizes"]
        panel.loglog(sizes, [line[-1] * size / sizes[-1] for size in sizes], ":", color="grey", label="in proportion")
        panel.set(xlabel=kind, ylabel="milliseconds of the processor")
        panel.legend(fontsize=6, loc="upper left")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; the exponents are then rough")
    parser.add_argument("--only", choices=GROWTHS, help="measure this kind anew, keep the others")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kinds = [options.only] if options.only else list(GROWTHS)
    found = {kind: measured(kind, options.quick) for kind in kinds}
    kept = load_figures("growth").get("growths", {}) if options.only and not options.quick else {}
    figures = {kind: row for kind in GROWTHS if (row := found.get(kind, kept.get(kind)))}
    write_result("growth", {"limit": LIMIT, "growths": figures}, options.quick)
    if not options.quick:
        draw(figures)


if __name__ == "__main__":
    main()
