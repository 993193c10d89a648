"""What an optimiser step costs under each solver, as a ratio to torch's own cross-entropy step, from one run.

    python -m benchmarks.speed.steps [--quick] [--before]

A linear model of 50 features, forward, loss, backward and Adam, at batches of 512 and 4,096 on one thread. All steps
take turns in blocks of calls; a figure is the least processor time of a block, nearest to that of an idle machine. Then
steps over many classes and over many lists in milliseconds, calibration as a ratio to one `torch.sort`, and the
five-convolution net of `step_cost`. `--before` writes the figures into the column of the version before; run it with
that version first on the path.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.harness import load_figures, write_result
from benchmarks.speed.step_cost import convolutional_net, stepper

FEATURES, GROUPS = 50, 3
BATCHES = (512, 4096)
ONE = "minimize fnr where fpr <= 1%"
AREA = "maximize recall over fpr in [0%, 5%] with 10 points"
#: By name: the solver of a problem and batch size, and the largest ratio to torch's own cross-entropy.
SOLVERS: dict[str, tuple[Callable[[int], nn.Module], float | None]] = {
    "BCEWithLogitsLoss of torch": (lambda n: nn.BCEWithLogitsLoss(), None),
    "CrossEntropy": (lambda n: sp.CrossEntropy(), 1.15),
    "ImplicitThreshold, one bound": (lambda n: sp.ImplicitThreshold(sp.ask(ONE)), 2.5),
    "ImplicitThreshold, precision at recall": (
        lambda n: sp.ImplicitThreshold(sp.ask("maximize precision where recall >= 80%")), None,
    ),
    "ImplicitThreshold, two bounds": (
        lambda n: sp.ImplicitThreshold(sp.ask("minimize error where fpr <= 5% and recall >= 50%")), None,
    ),
    "ImplicitThreshold, area of 10 points": (lambda n: sp.ImplicitThreshold(sp.ask(AREA)), 4.0),
    "ImplicitThreshold, gap of 3 groups": (
        lambda n: sp.ImplicitThreshold(sp.ask("minimize error where fpr.gap(group) <= 5%"), n_groups=GROUPS), 4.0,
    ),
    "ImplicitThreshold, gap of 3 groups, in force": (
        lambda n: sp.ImplicitThreshold(sp.ask("minimize error where fpr.gap(group) <= 0.2%"), n_groups=GROUPS), 4.0,
    ),
    "Lagrangian": (lambda n: sp.Lagrangian(sp.ask(ONE)), 2.5),
    "Lagrangian, area of 10 points": (lambda n: sp.Lagrangian(sp.ask(AREA)), None),
    "ProxyLagrangian": (lambda n: sp.losses.ProxyLagrangian(sp.ask(ONE)), 2.5),
    "AugmentedLagrangian": (lambda n: sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=n), 2.5),
}  # fmt: skip
Work = Callable[[], object]


def processor(work: Work, times: int = 1) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def in_turns(works: dict[str, Work], blocks: int, calls: int) -> dict[str, float]:
    """The least processor seconds of one call of each over all blocks of `calls`; the works take turns."""
    for work in works.values():
        processor(work, calls)
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(blocks):
        for name, work in works.items():
            found[name].append(processor(work, calls))
    return {name: min(times) for name, times in found.items()}


def linear_step(solver: nn.Module, n: int) -> Work:
    """One optimizer step of a linear model on one batch."""
    torch.manual_seed(0)
    model, x = nn.Linear(FEATURES, 1), torch.randn(n, FEATURES)
    labels = (x[:, 0] + torch.randn(n) > 1).float()
    optimizer = torch.optim.Adam([*model.parameters(), *solver.parameters()], lr=1e-3)
    more: dict[str, Tensor] = {}
    if getattr(solver, "n_groups", None):
        more["groups"] = torch.arange(n) % GROUPS
    if getattr(solver, "needs_index", False):
        more["index"] = torch.arange(n)

    def step() -> None:
        loss = solver(model(x).squeeze(-1), labels, **more)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def linear_rows(blocks: int) -> dict[str, dict[str, Any]]:
    rows = {}
    for n in BATCHES:
        steps = {name: linear_step(make(n), n) for name, (make, _) in SOLVERS.items()}
        times = in_turns(steps, blocks, calls=20)
        plain = next(iter(times.values()))
        for name, (_, target) in SOLVERS.items():
            row = {"milliseconds": 1e3 * times[name], "figure": times[name] / plain, "unit": "x cross-entropy"}
            rows[f"{name}, batch {n:,}"] = {**row, "target": target}
    return rows


def shift_works() -> dict[str, Work]:
    """A forward and backward pass over 512 rows of 50 classes, in the three forms of the ask."""
    torch.manual_seed(0)
    size, rows = 50, 512
    labels = torch.randint(size, (rows,))
    scores = torch.randn(rows, size) + 2 * nn.functional.one_hot(labels, size)
    bounds = [sp.classes.OfClass(sp.flagged, k) <= 0.015 for k in range(0, size, 10)]
    recall, fnr = sp.classes.Macro(sp.recall), sp.classes.Micro(sp.fnr)
    problems = {
        "macro recall, memory": (sp.maximize(recall), None),
        "macro recall, no memory": (sp.maximize(recall), 0),
        "error under 5 coverage bounds, memory": (sp.minimize(fnr, *bounds), None),
        "macro recall under 5 coverage bounds, memory": (sp.maximize(recall, *bounds), None),
    }

    def step(problem: sp.Problem, memory: int | None) -> Work:
        solver = sp.classes.ImplicitShifts(problem, size, memory=memory)
        own = scores.clone().requires_grad_()

        def work() -> None:
            # The scores move a little from step to step, as those of a model do.
            with torch.no_grad():
                own.add_(0.01 * torch.randn_like(own))
            solver(own, labels).backward()

        return work

    return {f"ImplicitShifts of 50 classes, {name}": step(*problem) for name, problem in problems.items()}


def list_works(queries: int = 5000, longest: int = 60) -> dict[str, Work]:
    """A forward and backward pass over lists of 5 to 60 documents."""
    torch.manual_seed(0)
    mask = torch.arange(longest) < torch.randint(5, longest + 1, (queries, 1))
    labels = (torch.rand(queries, longest) < 0.1).float()
    scores = (torch.randn(queries, longest) + labels).requires_grad_()
    solver = sp.losses.ImplicitTopK(sp.precision, k=5)
    return {"ImplicitTopK of 5,000 ragged lists": lambda: solver(scores, labels, mask).backward()}


def calibrate_works(n: int) -> dict[str, Work]:
    torch.manual_seed(0)
    labels = (torch.rand(n) < 0.1).float()
    scores = torch.randn(n) + labels
    problem = sp.ask("maximize f1 where recall >= 60%")
    return {
        "sort": lambda: torch.sort(scores),
        "fnr at fpr": lambda: sp.calibrate(ONE, scores, labels),
        "f1 at recall": lambda: sp.calibrate(problem, scores, labels),
    }


def other_rows(blocks: int, n: int) -> dict[str, dict[str, Any]]:
    rows = {}
    for limit, works in ((20.0, shift_works()), (60.0, list_works())):
        for name, seconds in in_turns(works, blocks, calls=2).items():
            rows[name] = {"figure": 1e3 * seconds, "unit": "ms", "target": limit}
    times = in_turns(calibrate_works(n), blocks=3, calls=1)
    for name in ("fnr at fpr", "f1 at recall"):
        figure = times[name] / times["sort"]
        rows[f"calibrate {n:,} scores, {name}"] = {"figure": figure, "unit": "x torch.sort", "target": 3.0}
    return rows


def network_rows(blocks: int) -> dict[str, dict[str, Any]]:
    """The five-convolution net, batch 128: both steps take turns on one model."""
    torch.manual_seed(0)
    x, labels = torch.randn(128, 3, 32, 32), (torch.rand(128) < 0.3).float()
    model = convolutional_net()
    steps = {
        "plain": stepper(model, nn.BCEWithLogitsLoss(), x, labels),
        "ours": stepper(model, sp.ImplicitThreshold(sp.ask(ONE)), x, labels),
    }
    found = in_turns(steps, blocks, calls=1)
    row = {"figure": found["ours"] / found["plain"], "unit": "x cross-entropy", "target": 1.02}
    return {"ImplicitThreshold, five convolutions, batch 128": row}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps; the figures are then rough")
    parser.add_argument("--before", action="store_true", help="write the figures of the version before")
    parser.add_argument(
        "--only", choices=["linear", "other", "network"], help="measure these rows anew, keep the others"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    quick, only = options.quick, options.only
    makers: dict[str, Callable[[], dict[str, dict[str, Any]]]] = {
        "linear": lambda: linear_rows(5 if quick else 40),
        "other": lambda: other_rows(2 if quick else 15, 10**5 if quick else 10**7),
        "network": lambda: network_rows(2 if quick else 15),
    }
    rows: dict[str, dict[str, Any]] = {} if quick else dict(load_figures("steps").get("rows", {}))
    for kind, make in makers.items():
        for name, row in make().items() if only in (None, kind) else ():
            old = rows.get(name, {})
            if options.before:
                rows[name] = {**row, **old, "before": row["figure"]}
            else:
                met = row["target"] is None or row["figure"] <= row["target"]
                rows[name] = {**row, "met": met, **({"before": old["before"]} if "before" in old else {})}
            print(f"{name:62s} {row['figure']:7.2f} {row['unit']:16s} {row['target'] or ''}", flush=True)
    write_result("steps", {"rows": rows}, quick)


if __name__ == "__main__":
    main()
