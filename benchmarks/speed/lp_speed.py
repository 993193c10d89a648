"""The F-score program, forward and backward, against cvxpylayers and qpth.

    python -m benchmarks.peers.environments cvxpylayers
    ~/.cache/setpoint/peers/cvxpylayers/bin/python -m benchmarks.speed.lp_speed [--quick]

Run it with the Python of the environment of cvxpylayers, which sees setpoint if PYTHONPATH names its source.

One run times all of them, taking turns, in float64 with one thread; the figure is the median of the ratios of
neighbouring calls, once in time on the wall and once in time on the processor, which other jobs on a shared machine
disturb less. The value of each is compared with the closed form, so that speed is not bought with digits. The
peers get their problem built beforehand, outside the timing; ours builds its program in every call. Memory is the
rise of the resident peak in a fresh process, from before the problem is built to after the backward pass. A peer
that is not installed, or fails, is reported as that.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.harness import ROOT, write_result
from setpoint import lp

Work = Callable[[], tuple[Tensor, Tensor]]
BACKENDS = ("Clarabel", "ECOS", "SCS")
OURS = ("closed form", "structured engine", "structured engine, warm")
SIZES = (32, 64, 128, 256, 512, 1024, 4096, 16384)


def batch(n: int, share: float = 0.3) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(n)
    labels = (torch.rand(n, generator=draw) < share).double()
    labels[0] = 1
    return torch.randn(n, generator=draw, dtype=torch.float64) + labels - 0.5, labels


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """How long one call takes, on the wall and on the processor: the mean of about 20 milliseconds of calls.

    One call goes unused, so that nobody pays for what the one before left in the caches.
    """
    start = time.perf_counter()
    work()
    calls = max(1, round(0.02 / (time.perf_counter() - start)))
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        work()
    return (time.perf_counter() - wall) / calls, (time.process_time() - processor) / calls


def medians(taken: list[tuple[float, float]]) -> dict[str, float]:
    wall, processor = zip(*taken)
    return {
        "milliseconds": 1e3 * statistics.median(wall),
        "milliseconds on the processor": 1e3 * statistics.median(processor),
    }


def both(value: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    return value.detach(), torch.autograd.grad(value, scores)[0]


def closed(n: int) -> Work:
    scores, labels = batch(n)
    scores.requires_grad_()
    return lambda: both(lp.closed.f_score(scores, labels), scores)


def structured(n: int) -> Work:
    scores, labels = batch(n)
    scores.requires_grad_()

    def work() -> tuple[Tensor, Tensor]:
        found = lp.solve(lp.forms.f_score(scores, labels))
        assert found.status is lp.Status.SOLVED, found.message
        return both(-found.value, scores)

    return work


def warm(n: int) -> Work:
    """The engine in a training: scores move by some thousandths per step, and the last solution is the start."""
    scores, labels = batch(n)
    moves = 0.003 * torch.randn(16, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found: list[lp.Solution | None] = [None]
    turn = itertools.count()

    def work() -> tuple[Tensor, Tensor]:
        # The first call, by which the value is judged, is at the scores themselves.
        move = 0.0 if found[0] is None else moves[next(turn) % len(moves)]
        own = (scores + move).requires_grad_()
        found[0] = lp.solve(lp.forms.f_score(own, labels), start=found[0])
        assert found[0].status is lp.Status.SOLVED, found[0].message
        return both(-found[0].value, own)

    return work


def many(programs: int, n: int) -> tuple[Work, Work]:
    """A batch of programs by our engine, and the same programs in a loop of the fastest small backend."""
    draw = torch.Generator().manual_seed(n)
    labels = (torch.rand(programs, n, generator=draw) < 0.3).double()
    labels[:, 0] = 1
    scores = (torch.randn(programs, n, generator=draw, dtype=torch.float64) + labels - 0.5).requires_grad_()

    def ours() -> tuple[Tensor, Tensor]:
        found = lp.solve(lp.forms.f_score(scores, labels))
        assert found.status is lp.Status.SOLVED, found.message
        return -found.value.detach(), torch.autograd.grad(-found.value.sum(), scores)[0]

    # The loop solves one program as often: its layer is made once, which flatters it.
    one = cvxpylayers(n, "ECOS")

    def loop() -> tuple[Tensor, Tensor]:
        for _ in range(programs):
            found = one()
        return found

    return ours, loop


def batches(programs: int, n: int, repeats: int) -> dict[str, Any]:
    ours, loop = many(programs, n)
    taken = [(seconds(ours), seconds(loop)) for _ in range(repeats)]
    figures = {
        "ours": medians([own for own, _ in taken]),
        "cvxpylayers, ECOS, in a loop": medians([peer for _, peer in taken]),
        "faster by": statistics.median(peer[0] / own[0] for own, peer in taken),
        "faster by, on the processor": statistics.median(peer[1] / own[1] for own, peer in taken),
        "target": 10.0,
    }
    print(f"{programs} programs of n = {n}: {figures}", flush=True)
    return figures


def cvxpylayers(n: int, backend: str) -> Work:
    import cvxpy as cp  # noqa: PLC0415
    from cvxpylayers.torch import CvxpyLayer  # noqa: PLC0415

    scores, labels = batch(n)
    scores.requires_grad_()
    total = float(labels.sum())
    z, t, squashed = cp.Variable(n, nonneg=True), cp.Variable(nonneg=True), cp.Parameter(n)
    rows = [cp.sum(z) + total * t == total, z <= t, squashed * t <= z, z <= t + squashed * t]
    problem = cp.Problem(cp.Minimize(-2 * (labels.numpy() @ z) / total), rows)
    layer = CvxpyLayer(problem, parameters=[squashed], variables=[z, t])

    def work() -> tuple[Tensor, Tensor]:
        flagged, _ = layer(torch.tanh(scores), solver_args={"solve_method": backend})
        return both(2 * (labels @ flagged) / total, scores)

    return work


def qpth(n: int) -> Work:
    from qpth.qp import QPFunction  # noqa: PLC0415

    scores, labels = batch(n)
    scores.requires_grad_()
    total = float(labels.sum())
    # It needs a quadratic term; 1e-6 is the least at which its factorisations go through.
    ridge = 1e-6 * torch.eye(n + 1, dtype=torch.float64)

    def work() -> tuple[Tensor, Tensor]:
        program = lp.forms.f_score(scores, labels)
        assert isinstance(program.matrix, lp.Entries)
        assert isinstance(program.equality_matrix, Tensor)
        rows = torch.cat([program.matrix.to_dense(), -torch.eye(n + 1, dtype=torch.float64)])
        bounds = torch.cat([program.bound, torch.zeros(n + 1, dtype=torch.float64)])
        solve = QPFunction(verbose=-1, maxIter=60)
        x = solve(ridge, program.cost, rows, bounds, program.equality_matrix, program.equality_bound)
        return both(2 * (labels @ x[0, :n]) / total, scores)

    return work


def makers(n: int) -> dict[str, Callable[[int], Work]]:
    found: dict[str, Callable[[int], Work]] = {
        "closed form": closed, "structured engine": structured, "structured engine, warm": warm,
    }  # fmt: skip
    for backend in BACKENDS:
        found[f"cvxpylayers, {backend}"] = lambda n, backend=backend: cvxpylayers(n, backend)
    if n <= 256:
        found["qpth"] = qpth
    return found


def timed(n: int, repeats: int) -> dict[str, Any]:
    """Milliseconds and errors of all that run, and ratios of neighbouring calls."""
    scores, labels = batch(n)
    scores.requires_grad_()
    exact, exact_gradient = both(lp.closed.f_score(scores, labels), scores)
    works: dict[str, Work] = {}
    figures: dict[str, Any] = {}
    for name, make in makers(n).items():
        try:
            work = make(n)
            value, gradient = work()
        except Exception as failure:  # a peer may fail in any way: report it, go on
            figures[name] = f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"
            continue
        works[name] = work
        figures[name] = {
            "error of the value": abs(float(value - exact)),
            "cosine of the gradient": float(torch.cosine_similarity(gradient, exact_gradient, dim=0)),
        }
    # One look at each backend: those far from the fastest need no further turns.
    looks = {name: seconds(work) for name, work in works.items()}
    fastest = min((t[1] for name, t in looks.items() if name.startswith("cvxpylayers")), default=0.0)
    late = [name for name, t in looks.items() if name not in OURS and t[1] > 1.7 * fastest]
    for name in late:
        figures[name] |= medians([looks[name]]) | {"turns": 1}
        del works[name]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(seconds(work))
    for name, taken in times.items():
        figures[name] |= medians(taken) | {"turns": repeats}
    for clock, kind in enumerate(("", ", on the processor")):
        peers = {name: taken for name, taken in times.items() if name.startswith("cvxpylayers")}
        if not peers:
            break
        best = min(peers, key=lambda name, clock=clock: statistics.median(t[clock] for t in peers[name]))
        figures[f"fastest cvxpylayers{kind}"] = best
        for ours in OURS:
            ratios = [theirs[clock] / mine[clock] for theirs, mine in zip(peers[best], times[ours])]
            figures[f"{ours} is faster by{kind}"] = statistics.median(ratios)
    for name, row in figures.items():
        print(f"n = {n:6d}  {name:32s} {row}", flush=True)
    return figures


def peak_rise(work: str, n: int) -> float | str:
    """Megabytes by which the resident peak of a fresh process rises while it builds, solves and differentiates."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.lp_speed", "--memory-of", work, "--n", str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = done.stdout.strip().splitlines()
    return float(lines[-1]) if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1][:200]}"


def memory_of(work: str, n: int) -> float:
    maker = {**makers(0), **AREAS}[work]
    maker(16)()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    maker(n)()
    return (_status("VmHWM") - before) / 1024


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def dense_auc(n: int) -> Work:
    """The program of the paper as published: a dense matrix with a row and a column a pair, the bare penalty."""
    scores, labels = _balanced(n)

    def work() -> tuple[Tensor, Tensor]:
        program = lp.forms.auc(scores, labels)
        assert isinstance(program.matrix, lp.Entries)
        written = lp.LinearProgram(program.cost, program.matrix.to_dense(), program.bound)
        found = lp.solve(written, lp.ExteriorPenalty(epsilon=0.01 / len(program.bound), steps=10))
        return both(found.value, scores)

    return work


def auc(n: int) -> Work:
    scores, labels = _balanced(n)
    return lambda: both(lp.solve(lp.forms.auc(scores, labels)).value, scores)


def closed_auc(n: int) -> Work:
    scores, labels = _balanced(n)
    return lambda: both(lp.closed.auc(scores, labels), scores)


def _balanced(n: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(n)
    labels = torch.arange(n) % 2
    return (torch.randn(n, generator=draw, dtype=torch.float64) + labels).requires_grad_(), labels


AREAS: dict[str, Callable[[int], Work]] = {
    "dense AUC, as published": dense_auc,
    "AUC, structured": auc,
    "AUC, closed": closed_auc,
}


def areas(batches: list[int], repeats: int) -> dict[str, Any]:
    """AUC of a mini-batch: the published dense program against the structured engine and the closed form."""
    figures: dict[str, Any] = {}
    for n in batches:
        rows: dict[str, Any] = {}
        pairs = (n // 2) ** 2
        needed = 2 * pairs * pairs * 8 / 2**20
        for name, make in (
            ("dense AUC, as published", dense_auc),
            ("AUC, structured", auc),
            ("AUC, closed", closed_auc),
        ):
            if make is dense_auc and needed > 4096:
                rows[name] = f"not run: the matrix alone would take {needed:.0f} MB"
                continue
            work = make(n)
            value, _ = work()
            rows[name] = {
                **medians([seconds(work) for _ in range(min(repeats, 3) if make is dense_auc else repeats)]),
                "peak memory, MB": peak_rise(name, n),
                "error of the value": abs(float(value - closed_auc(n)()[0])),
            }
        figures[f"batch {n}"] = rows
        for name, row in rows.items():
            print(f"batch {n:4d}  {name:24s} {row}", flush=True)
    return figures


def installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def with_one_thread() -> None:
    """Start again with one thread everywhere: idle threads of one competitor spin on into the next one's time."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    if any(os.environ.get(name) != "1" for name in names):
        os.environ |= dict.fromkeys(names, "1")
        os.execv(sys.executable, [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.lp_speed", *sys.argv[1:]])


def main() -> None:
    with_one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats; nothing is written")
    parser.add_argument("--memory-of", help="(used by the benchmark itself)")
    parser.add_argument("--n", type=int, default=64)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory_of:
        print(memory_of(arguments.memory_of, arguments.n))
        return
    sizes = (64, 1024) if arguments.quick else SIZES
    speed = {f"n = {n}": timed(n, 3 if arguments.quick else (25 if n <= 4096 else 9)) for n in sizes}
    memory: dict[str, Any] = {}
    for name in ("closed form", "structured engine", *(f"cvxpylayers, {backend}" for backend in BACKENDS)):
        memory[name] = peak_rise(name, 1024)
    peers = [mb for name, mb in memory.items() if name.startswith("cvxpylayers") and isinstance(mb, float)]
    if peers and isinstance(memory["structured engine"], float):
        memory["structured engine as a share of the leanest cvxpylayers"] = memory["structured engine"] / min(peers)
    print("peak memory at n = 1024, MB:", memory)
    payload = {
        "peers": {name: installed(name) for name in ("cvxpylayers", "diffcp", "clarabel", "ecos", "scs", "qpth")},
        "F-score, forward and backward": speed,
        "a batch of F-score programs": batches(256, 64, 1 if arguments.quick else 5),
        "peak memory at n = 1024, MB": memory,
        "AUC": areas([64] if arguments.quick else [64, 640], 3 if arguments.quick else 9),
    }
    if not arguments.quick:
        write_result("lp_speed", payload)


if __name__ == "__main__":
    main()
