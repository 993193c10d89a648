"""Pairs and curves against what they replace: `python -m benchmarks.speed.kernels`.

n is the number of all scores, half of them positives and half negatives, standard normal in float32, the
positives one higher. Pairs are timed forward and backward: the per-positive sums, then the gradient with respect
to both sides for a random upstream vector. The naive form lays out all pairs in float32 and leaves the rest to
autograd. Memory is the rise of the resident peak of a fresh process. Torch sorts one list with one thread, so all
get one by default.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.harness import ratio, write_result
from setpoint.measure.curve import curve
from setpoint.measure.pairs import Hinge, SquaredHinge, Surrogate, pairs_per_positive

SURROGATES: dict[str, Surrogate] = {"hinge": Hinge(), "squared hinge": SquaredHinge()}
MILLION = 1_000_000


def world(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Positives, negatives, and an upstream gradient for the positives."""
    torch.manual_seed(0)
    half = n // 2
    positives, negatives = torch.randn(half) + 1, torch.randn(half)
    return positives.requires_grad_(), negatives.requires_grad_(), torch.rand(half)


def sorted_pairs(surrogate: Surrogate, n: int) -> Callable[[], tuple[Tensor, ...]]:
    positives, negatives, upstream = world(n)

    def work() -> tuple[Tensor, ...]:
        sums = pairs_per_positive(positives, negatives, surrogate)
        return sums.detach(), *torch.autograd.grad(sums, (positives, negatives), upstream)

    return work


def naive_pairs(surrogate: Surrogate, n: int) -> Callable[[], tuple[Tensor, ...]]:
    positives, negatives, upstream = world(n)

    def work() -> tuple[Tensor, ...]:
        sums = surrogate(surrogate.margin - (positives.unsqueeze(1) - negatives)).sum(dim=1)
        return sums.detach(), *torch.autograd.grad(sums, (positives, negatives), upstream)

    return work


def sort_only(n: int) -> Callable[[], object]:
    scores = torch.randn(n, generator=torch.Generator().manual_seed(1))
    return lambda: torch.sort(scores)


def curve_only(n: int) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(n, generator=generator)
    labels = torch.rand(n, generator=generator) < 0.5
    return lambda: curve(scores, labels)


def worst_error(surrogate: Surrogate, n: int, samples: int = 100) -> float:
    """The largest relative error of sums and both gradients, on sampled and on extreme scores, against float64."""
    positives, negatives, upstream = (x.detach().double() for x in world(n))
    found = [x.double() for x in sorted_pairs(surrogate, n)()]
    degree, worst = surrogate.degree or 0, 0.0
    for side, others in ((positives, negatives), (negatives, positives)):
        ends = side.argsort()
        chosen = torch.cat([torch.randperm(len(side))[:samples], ends[:20], ends[-20:]])
        for i in chosen.tolist():
            gap = side[i] - others if side is positives else others - side[i]
            short = (surrogate.margin - gap).relu()
            slope = degree * short ** (degree - 1) * (short > 0)
            if side is positives:
                truth = [(found[0], short**degree), (found[1], -upstream[i] * slope)]
            else:
                truth = [(found[2], upstream * slope)]
            for values, terms in truth:
                exact = float(terms.sum())
                error = abs(float(values[i]) - exact)
                worst = max(worst, error / abs(exact) if exact else error)
    return worst


def resident_peak() -> float:
    """The most memory this process has held, in MB (of 2^20 bytes)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmHWM in /proc/self/status; memory is measured on Linux only")


def print_extra_memory(name: str, n: int) -> None:
    sorted_pairs(SURROGATES[name], 10_000)()
    work = sorted_pairs(SURROGATES[name], n)
    before = resident_peak()
    work()
    print(resident_peak() - before)


def extra_memory(name: str, n: int) -> float:
    threads = str(torch.get_num_threads())
    command = [sys.executable, "-m", "benchmarks.speed.kernels", "--memory", name, "--n", str(n), "--threads", threads]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def row(what: str, n: int, figure: float, unit: str, *, at_most: float = 0.0, at_least: float = 0.0) -> None:
        met = figure <= at_most if at_most else figure >= at_least
        target = f"<= {at_most:g}" if at_most else f">= {at_least:g}"
        rows.append({"what": what, "n": n, "figure": figure, "unit": unit, "target": target, "met": met})
        print(f"{what:<52} {n:>9,} {figure:>10.3g} {unit:<9} {target:>9}  {'yes' if met else 'MISSED'}", flush=True)

    print(f"{'what':<52} {'n':>9} {'figure':>10} {'unit':<9} {'target':>9}  met")
    for name, surrogate in SURROGATES.items():
        for n, repeats, target in ((4_096, 15, 8.0), (32_768, 5, 200.0)):
            naive, ours = naive_pairs(surrogate, n), sorted_pairs(surrogate, n)
            row(f"{name}: naive / pairs", n, ratio(naive, ours, repeats), "x", at_least=target)
        times = ratio(sorted_pairs(surrogate, MILLION), sort_only(MILLION))
        row(f"{name}: pairs / one torch.sort of n", MILLION, times, "x", at_most=3.0)
        row(f"{name}: extra memory", MILLION, extra_memory(name, MILLION), "MB", at_most=120.0)
        row(f"{name}: worst relative error", MILLION, worst_error(surrogate, MILLION), "", at_most=2e-7)
    for n, repeats in ((32_768, 101), (262_144, 31), (MILLION, 15)):
        row("curve / one torch.sort of n", n, ratio(curve_only(n), sort_only(n), repeats), "x", at_most=1.6)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", choices=list(SURROGATES), help="print the extra memory of one kernel and stop")
    parser.add_argument("--n", type=int, default=MILLION)
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        print_extra_memory(options.memory, options.n)
        return
    rows = measure()
    write_result("kernels", {"about": " ".join((__doc__ or "").split()), "rows": rows})


if __name__ == "__main__":
    main()
