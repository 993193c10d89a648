"""Training in several processes and in half precision: is it exact, what does it send, what does it cost, does it last?

    python -m benchmarks.speed.distributed [--quick] [--only exact communication overhead autocast saturation kill]

Processes are on one machine and speak by gloo. *exact*: 50 steps of every solver on parts of each batch (uneven, empty,
without positives, without some groups) against one process on the whole, in float64. *communication*: numbers that a
process sends a step. *overhead*: a step of the five-convolution net under DistributedDataParallel with implicit
thresholds, as a ratio to binary cross-entropy there, both in turn. *autocast*: FNR at FPR 1 % on fresh rows, bfloat16
against float32, 5 seeds. *saturation*: 10^4 steps with scores far out on the flat of every step. *kill*: runs under
`torchrun` of which a worker is killed at a random moment, against one that is left alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.distributed.cases import CASES, train
from tests.distributed.launch import launch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import setpoint as sp
from benchmarks.common.harness import load_figures, write_result
from benchmarks.speed.step_cost import convolutional_net
from setpoint.measure.pairs import Hinge
from setpoint.run.artefact import load_run
from setpoint.serve.stored import STATE, UNFINISHED

ASK = "minimize fnr where fpr <= 1%"
CLOSE, OVERHEAD = 1e-6, 1.10


def of_all(rank: int, size: int, steps: int) -> dict[str, Any]:
    return {name: train(name, size, rank, steps) for name in CASES}


def farthest(found: Any, wanted: Any) -> float:
    if isinstance(wanted, dict):
        return max((farthest(found[key], value) for key, value in wanted.items()), default=0.0)
    both = [torch.as_tensor(value).double() for value in (found, wanted)]
    return float((both[0] - both[1]).abs().max()) if both[0].numel() else 0.0


def exact(quick: bool) -> dict[str, Any]:
    steps, rows = (10 if quick else 50), []
    for size in (2, 4):
        with tempfile.TemporaryDirectory() as place:
            answers = launch(of_all, size, Path(place), steps)
        for name in CASES:
            alone = train(name, size, None, steps)
            parameters = max(farthest(answer[name]["model"], alone["model"]) for answer in answers)
            state = max(farthest(answer[name]["solver"], alone["solver"]) for answer in answers)
            rows.append({"solver": name, "processes": size, "parameters": parameters, "state": state})
        worst = max(row["parameters"] for row in rows if row["processes"] == size)
        print(f"{size} processes, {len(CASES)} solvers, {steps} steps: parameters differ by at most {worst:.1e}")
    return {"steps": steps, "rows": rows, "target": CLOSE, "met": all(row["parameters"] <= CLOSE for row in rows)}


class Sent:
    """Numbers handed to collectives by this process: those of the gathered batch, and all others."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = defaultdict(int)
        self.calls = 0
        self.reduce, self.gather = dist.all_reduce, dist.all_gather

    def __enter__(self) -> Sent:
        def all_reduce(tensor: Tensor, *args: Any, **named: Any) -> Any:
            self.numbers["other"] += tensor.numel()
            self.calls += 1
            return self.reduce(tensor, *args, **named)

        def all_gather(parts: list[Tensor], tensor: Tensor, *args: Any, **named: Any) -> Any:
            self.numbers["memory" if tensor.dim() == 2 else "other"] += tensor.numel()
            self.calls += 1
            return self.gather(parts, tensor, *args, **named)

        dist.all_reduce, dist.all_gather = all_reduce, all_gather
        return self

    def __exit__(self, *_: Any) -> None:
        dist.all_reduce, dist.all_gather = self.reduce, self.gather


def of_communication(rank: int, size: int) -> list[dict[str, Any]]:
    rows = []
    draw = torch.Generator().manual_seed(rank)
    scores, labels = torch.randn(256, generator=draw), (torch.rand(256, generator=draw) < 0.3).float()
    solvers: dict[str, tuple[sp.losses.Solver, int]] = {
        "implicit": (sp.ImplicitThreshold(sp.ask(ASK)), 1),
        **{
            f"implicit area, {m} points": (
                sp.ImplicitThreshold(sp.ask(f"maximize recall over fpr in [0%, 5%] with {m} points")), m,
            )
            for m in (5, 20, 100)
        },
        "lagrangian": (sp.Lagrangian(sp.ask(ASK)), 1),
        "cross-entropy": (sp.CrossEntropy(), 0),
    }  # fmt: skip
    for name, (solver, thresholds) in solvers.items():
        solver(scores.clone().requires_grad_(), labels)
        with Sent() as sent:
            solver(scores.clone().requires_grad_(), labels).backward()
        rows.append({
            "solver": name, "thresholds": thresholds, "batch": len(scores), "memory": sent.numbers["memory"],
            "besides": sent.numbers["other"], "rounds": sent.calls, "allowed": 4 * thresholds + 8,
        })  # fmt: skip
    return rows


def communication(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        rows = launch(of_communication, 2, Path(place))[0]
    for row in rows:
        print(f"{row['solver']:26s} sends {row['besides']} numbers a step besides {row['memory']} for the memory")
    return {"rows": rows, "met": all(row["besides"] <= row["allowed"] for row in rows)}


def of_overhead(rank: int, size: int, batch: int, repeats: int) -> dict[str, list[tuple[float, float]]]:
    torch.manual_seed(rank)
    x, labels = torch.randn(batch, 3, 32, 32), (torch.rand(batch) < 0.3).float()
    criteria = {
        "plain": nn.BCEWithLogitsLoss(),
        "implicit": sp.ImplicitThreshold(sp.ask(ASK)),
        "implicit area, 10 points": sp.ImplicitThreshold(sp.ask("maximize recall over fpr in [0%, 5%] with 10 points")),
        "cross-entropy": sp.CrossEntropy(),
    }
    torch.manual_seed(0)
    model = DistributedDataParallel(convolutional_net())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in criteria}
    for turn in range(repeats + 1):
        # Each is the first in its turn: whatever comes after a pause is slower.
        for place in range(len(criteria)):
            name = [*criteria][(turn + place) % len(criteria)]
            criterion = criteria[name]
            dist.barrier()
            start, spent = time.perf_counter(), time.process_time()
            loss = criterion(model(x).squeeze(-1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if turn:
                seconds[name].append((time.perf_counter() - start, time.process_time() - spent))
    return seconds


def overhead(quick: bool) -> dict[str, Any]:
    batch, repeats = (16, 3) if quick else (32, 15)
    with tempfile.TemporaryDirectory() as place:
        seconds = launch(of_overhead, 2, Path(place), batch, repeats)[0]
    plain, rows = seconds.pop("plain"), []
    for name, own in seconds.items():
        wall, work = (statistics.median(a[kind] / b[kind] for a, b in zip(own, plain)) for kind in (0, 1))
        rows.append({
            "criterion": name, "ratio": wall, "processor time": work, "target": OVERHEAD,
            "met": wall <= OVERHEAD and work <= OVERHEAD,
        })  # fmt: skip
        print(f"{name:26s} {wall:.3f}x the step of plain cross-entropy, {work:.3f}x its processor time")
    return {
        "batch a process": batch, "steps": repeats, "plain seconds": statistics.median(a for a, _ in plain),
        "rows": rows,
    }  # fmt: skip


def made_rows(size: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    return torch.randn(size, 10, generator=draw) + 0.7 * labels.unsqueeze(-1), labels


def trained(make: Any, seed: int, dtype: torch.dtype | None, steps: int) -> float:
    """The objective on fresh rows of a small network, trained with or without autocast."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    x, labels = made_rows(8000, seed)
    solver = make()
    optimizer = torch.optim.Adam([*model.parameters(), *solver.parameters()], lr=1e-3)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (256,), generator=draw)
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = solver(model(x[rows]).squeeze(-1), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    fresh, truth = made_rows(40_000, 1000 + seed)
    with torch.no_grad():
        return sp.evaluate(ASK, model(fresh).squeeze(-1), truth).objective


def autocast(quick: bool) -> dict[str, Any]:
    seeds, steps = (2, 100) if quick else (5, 600)
    makers = {
        "implicit": lambda: sp.losses.WithAnchor(sp.ImplicitThreshold(sp.ask(ASK))),
        "lagrangian": lambda: sp.losses.WithAnchor(sp.Lagrangian(sp.ask(ASK))),
        "cross-entropy": sp.CrossEntropy,
    }
    rows = []
    for name, make in makers.items():
        wide = [trained(make, seed, None, steps) for seed in range(seeds)]
        half = [trained(make, seed, torch.bfloat16, steps) for seed in range(seeds)]
        gaps = [b - a for a, b in zip(wide, half)]
        mean, noise = statistics.mean(gaps), statistics.stdev(gaps) / len(gaps) ** 0.5
        spread = statistics.stdev(wide)
        met = abs(mean) <= max(2 * noise, spread)
        rows.append({
            "solver": name, "float32": wide, "bfloat16": half, "mean gap": mean, "standard error": noise,
            "spread of seeds": spread, "met": met,
        })  # fmt: skip
        print(f"{name:14s} FNR {statistics.mean(wide):.4f} in float32; bfloat16 {mean:+.4f} ± {noise:.4f}")
    return {"seeds": seeds, "steps": steps, "rows": rows}


def saturation(quick: bool) -> dict[str, Any]:
    """Features a thousand times too large and a large step: scores lie far out on the flat of every smooth step."""
    steps, rows = (500 if quick else 10_000), []
    problem = sp.ask(ASK)
    makers = {
        "implicit": lambda: sp.ImplicitThreshold(problem, temperature=1.0),
        "lagrangian": lambda: sp.Lagrangian(problem, temperature=1.0, climb=sp.losses.Climb(ceiling=100.0)),
        "cross-entropy": sp.CrossEntropy,
        "pairwise area": lambda: sp.losses.PairwiseArea(
            sp.ask("maximize recall over fpr in [0%, 5%]"), surrogate=Hinge()
        ),
    }
    x, labels = made_rows(4096, 0)
    for name, make in makers.items():
        torch.manual_seed(0)
        model, solver = nn.Linear(10, 1), make()
        with torch.no_grad():
            model.weight.mul_(1000)
        optimizer = torch.optim.SGD([*model.parameters(), *solver.parameters()], lr=1.0)
        draw = torch.Generator().manual_seed(0)
        odd, largest = 0, 0.0
        for _ in range(steps):
            chosen = torch.randint(0, len(x), (128,), generator=draw)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = model(x[chosen]).squeeze(-1)
                loss = solver(scores, labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            odd += not all(bool(value.isfinite().all()) for value in (loss, model.weight, model.bias))
            largest = max(largest, float(scores.detach().abs().max()))
        rows.append({"solver": name, "steps": steps, "steps not finite": odd, "largest score": largest, "met": not odd})
        print(f"{name:14s} {odd} of {steps} steps not finite, scores up to {largest:.3g}")
    return {"rows": rows}


def torchrun(table: Path, out: Path, restarts: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "--max-restarts", str(restarts), "-m", "setpoint.cli", "fit", str(table), "--target", "label", "--ask",
        "minimize fnr where fpr <= 10%", "--model", "mlp", "--solver", "implicit", "--epochs", "30", "--batch-size",
        "64", "--checkpoint-seconds", "0.5", "--quiet", "--out", str(out),
    ]  # fmt: skip
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    found = [
        int(pid) for each in Path(f"/proc/{process.pid}/task").glob("*/children") for pid in each.read_text().split()
    ]
    return sorted(pid for pid in found if b"setpoint.cli" in Path(f"/proc/{pid}/cmdline").read_bytes())


def kill(quick: bool) -> dict[str, Any]:
    """Workers killed once a run, at a moment drawn from the time between the first state and the end."""
    runs, equal, killed = (1 if quick else 3), 0, 0
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "made.csv"
        x, labels = made_rows(2400, 0)
        with table.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow([*(f"x{i}" for i in range(10)), "label"])
            out.writerows([*row, int(label)] for row, label in zip(x.tolist(), labels.tolist()))
        assert torchrun(table, Path(place) / "whole", 0).wait() == 0
        whole = load_run(Path(place) / "whole")
        for turn in range(runs):
            out = Path(place) / f"killed-{turn}"
            process = torchrun(table, out, 3)
            state = out / UNFINISHED / "implicit" / STATE
            while process.poll() is None and not state.exists():
                time.sleep(0.05)
            time.sleep(draw.uniform(0, 4))
            workers = workers_of(process) if process.poll() is None else []
            if workers and (out / UNFINISHED).exists():
                os.kill(draw.choice(workers), signal.SIGKILL)
                killed += 1
            assert process.wait() == 0
            same = load_run(out).model.state_dict()
            equal += all(torch.equal(same[name], value) for name, value in whole.model.state_dict().items())
    print(f"{killed} workers killed in {runs} runs; {equal} of {runs} runs equal the undisturbed one, bit by bit")
    return {"runs": runs, "killed": killed, "equal": equal, "met": equal == runs}


PARTS = {
    "exact": exact, "communication": communication, "overhead": overhead, "autocast": autocast,
    "saturation": saturation, "kill": kill,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps and seeds; the figures are then noisy")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], help="parts to measure; others are kept")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for name in asked.only:
        print(f"-- {name}", flush=True)
        found = {**PARTS[name](asked.quick), "quick": asked.quick}
        kept = load_figures("distributed")
        write_result("distributed", {part: {**kept, name: found}[part] for part in PARTS if part in {*kept, name}})


if __name__ == "__main__":
    main()
