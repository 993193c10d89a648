"""Training killed at random moments: every resumed run bit by bit that of a run that was not killed.

    OMP_NUM_THREADS=1 python -m benchmarks.faults.kills [--kills N] [--seed S] [--jobs trees auto]

Each job runs in processes of its own. They are killed (SIGKILL) at moments drawn uniformly over the first 60 % of the
time that the whole job takes, several times a run, and resumed. After every kill what is on the disk must be readable:
the artefact of a run, or a sentence that it is unfinished or not there. At the end all parameters are compared with
those of one process that nobody killed. One job replaces an earlier run, which must stay readable until the new one is
whole.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint import cli
from setpoint.errors import BadFile
from setpoint.run.artefact import load_run
from setpoint.train.checkpoint import Checkpoint

ASK = "minimize fnr where fpr <= 5%"
KILLS_A_RUN = 5


def draw_data(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(rows, generator=draw) < 0.3).float()
    return torch.randn(rows, 10, generator=draw) + 0.6 * labels.unsqueeze(-1), labels


def write_table(path: Path, rows: int) -> None:
    """By hand: the process that forks must not start the threads of a table library."""
    x, labels = draw_data(rows, 0)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*(f"x{i}" for i in range(x.shape[1])), "label"])
        out.writerows([*row, int(label)] for row, label in zip(x.tolist(), labels.tolist()))


@dataclass(frozen=True)
class Command:
    """A run of the command line, in a directory of its own."""

    options: tuple[str, ...]
    replaces: bool = False

    def work(self, place: Path) -> None:
        run = place / "run"
        if (run / "unfinished" / "state.pt").exists():
            _command("fit", "--resume", str(run))
        else:
            table = str(place.parent / "table.csv")
            _command("fit", table, "--target", "label", "--ask", ASK, *self.options, "--out", str(run), "--force")

    def before(self, place: Path) -> None:
        if self.replaces:
            table = str(place.parent / "table.csv")
            _command(
                "fit", table, "--target", "label", "--ask", ASK, "--solver", "weighted", "--out", str(place / "run")
            )

    def found(self, place: Path) -> str:
        """What a reader meets after a kill."""
        try:
            load_run(place / "run")
            return "a run"
        except BadFile as cause:
            for sentence in ("unfinished", "no run"):
                if sentence in str(cause) and not self.replaces:
                    return sentence
            return f"unreadable: {cause}"

    def parameters(self, place: Path) -> dict[str, Tensor]:
        return dict(load_file(place / "run" / "model.safetensors"))


@dataclass(frozen=True)
class Library:
    """`sp.fit` with a checkpoint; the result is written when it is done."""

    solver: Callable[[], Any]
    ensemble: int = 1

    def work(self, place: Path) -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.1), nn.ReLU(), nn.Linear(32, 1))
        result = sp.fit(
            model, ASK, sp.Batches(*draw_data(3000, 0), batch_size=128, shuffle=True), [draw_data(2000, 1)],
            self.solver(), epochs=24 // self.ensemble, ensemble=self.ensemble,
            checkpoint=Checkpoint(place / "checkpoint", seconds=0.1),
        )  # fmt: skip
        torch.save(result.model.state_dict(), place / "writing")
        os.replace(place / "writing", place / "result.pt")

    def before(self, place: Path) -> None:
        pass

    def found(self, place: Path) -> str:
        if (place / "result.pt").exists():
            return "a result"
        state = place / "checkpoint" / "state.pt"
        if not state.exists():
            return "no checkpoint"
        try:
            Checkpoint(place / "checkpoint").open({})
        except BadFile as cause:
            return f"unreadable: {cause}"
        return "a checkpoint"

    def parameters(self, place: Path) -> dict[str, Tensor]:
        return dict(torch.load(place / "result.pt", weights_only=True))


JOBS: dict[str, Command | Library] = {
    "linear, default": Command(("--model", "linear")),
    "trees": Command(("--model", "trees")),
    "auto": Command(("--model", "auto")),
    "mlp, implicit, over an earlier run": Command(
        ("--model", "mlp", "--solver", "implicit", "--epochs", "40", "--checkpoint-seconds", "0.2"), replaces=True
    ),
    "mlp, ensemble of 3": Command(("--model", "mlp", "--epochs", "12", "--ensemble", "3")),
    "library: lagrangian": Library(lambda: sp.Lagrangian(sp.ask(ASK), climb=sp.losses.Climb(control=sp.losses.NuPI()))),
    "library: augmented": Library(lambda: sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=3000, mu=0.01)),
    "library: ensemble, implicit": Library(lambda: sp.ImplicitThreshold(sp.ask(ASK)), ensemble=3),
}


def _command(*arguments: str) -> None:
    try:
        cli.main(list(arguments))
    except SystemExit as ended:
        if ended.code != 0:
            raise RuntimeError(f"setpoint {' '.join(arguments)} ended with {ended.code}") from ended


def fork(work: Callable[[], None]) -> int:
    """The id of a process that does the work, its words unheard."""
    child = os.fork()
    if child:
        return child
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        torch.set_num_threads(1)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def end_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def kill_and_resume(
    job: Command | Library, place: Path, seconds: float, kills: int, draw: random.Random
) -> Counter[str]:
    """Kill the job so many times, resume it to its end, and count what was found after every kill."""
    found: Counter[str] = Counter()
    while True:
        child = fork(lambda: job.work(place))
        if found.total() < kills:
            time.sleep(draw.uniform(0, 0.6 * seconds))
            os.kill(child, signal.SIGKILL)
        ended = end_of(child)
        if ended == 0:
            return found
        assert ended == -signal.SIGKILL, f"a resumed run failed with code {ended}"
        found[job.found(place)] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="how many kills at least, over all jobs")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments")
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="which jobs")
    options = parser.parse_args()
    jobs = {name: JOBS[name] for name in options.jobs}
    draw = random.Random(options.seed)
    torch.set_num_threads(1)
    torch.optim.Adam([nn.Parameter(torch.zeros(1))])  # what torch loads late is loaded before the forks
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write_table(root / "table.csv", 6000)
        whole: dict[str, Path] = {}
        for name, job in jobs.items():
            whole[name] = root / f"whole-{len(whole)}"
            whole[name].mkdir()
            start = time.perf_counter()
            assert end_of(fork(lambda job=job, name=name: job.work(whole[name]))) == 0  # type: ignore[misc]
            rows[name] = {"seconds": time.perf_counter() - start, "runs": 0, "identical": 0, "kills": 0, "found": {}}
        number = 0
        while sum(row["kills"] for row in rows.values()) < options.kills:
            name = list(jobs)[number % len(jobs)]
            job, row, place = jobs[name], rows[name], root / f"run-{number}"
            number += 1
            place.mkdir()
            assert end_of(fork(lambda job=job, place=place: job.before(place))) == 0  # type: ignore[misc]
            found = kill_and_resume(job, place, row["seconds"], KILLS_A_RUN, draw)
            row["runs"] += 1
            row["kills"] += found.total()
            row["found"] = dict(Counter(row["found"]) + found)
            row["identical"] += same(job.parameters(place), job.parameters(whole[name]))
            print(f"{name}: {found.total()} kills, found {dict(found)}, {row['identical']} of {row['runs']} identical",
                  flush=True)  # fmt: skip
    total = {key: sum(row[key] for row in rows.values()) for key in ("kills", "runs", "identical")}
    unreadable = sum(n for row in rows.values() for what, n in row["found"].items() if what.startswith("unreadable"))
    print(f"{total['kills']} kills, {total['identical']} of {total['runs']} runs identical, {unreadable} unreadable")
    write_result(
        "kills" if len(jobs) == len(JOBS) else "kills_of_kinds", {**total, "unreadable": unreadable, "jobs": rows}
    )


if __name__ == "__main__":
    main()
