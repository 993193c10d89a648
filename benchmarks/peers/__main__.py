"""The peers, run: three contests, each on the same rows, with the same budget and the same rule of choice.

    python -m benchmarks.peers.environments      # once: an environment for each peer
    python -m benchmarks.peers [--data DIR] [--cache DIR] [--quick]

`fnr_at_fpr`, `error_at_gap` and `best_f_score` say who is asked what. Splits of 60/20/20, at most 10,000 training rows,
features standardised and clipped to +-5. Of all settings and of the iterates of every 25 steps the best on validation
rows, by the exact metric, is judged on test rows. Every method runs in a process of its own, on one thread. Each
finished run is a row of `results/rows/peers.parquet`, and not run again.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import CACHE
from benchmarks.peers import best_f_score, error_at_gap, fnr_at_fpr
from benchmarks.peers.contest import Contest
from benchmarks.peers.environments import PEERS
from benchmarks.peers.summing import summary

CONTESTS: dict[str, Contest] = {
    "fnr at fpr": fnr_at_fpr.CONTEST,
    "error at gap": error_at_gap.CONTEST,
    "best f score": best_f_score.CONTEST,
}


def hold(contest: Contest, journal: Journal, options: argparse.Namespace) -> None:
    """Run what is not written down yet."""
    for name, seed in ((name, seed) for name in contest.sets for seed in contest.seeds):
        missing = [
            method for method in contest.methods
            if (key := contest.key(name, seed, method)) not in journal or (options.again and "error" in journal[key])
        ]  # fmt: skip
        if not missing:
            continue
        case = contest.load(name, seed, options.data, options.cache)
        with tempfile.TemporaryDirectory() as folder:
            task = Path(folder) / "task.npz"
            contest.write_task(case, task)
            for method in missing:
                key = contest.key(name, seed, method)
                found = contest.run(method, task, case, options.cache)
                row = journal.add(key, {"set": name, "seed": seed, **found})
                told = row.get("error") or f"{100 * row['test']:.2f} in {row['seconds']:.1f} s ({row['chosen']})"
                print(f"{key}: {told}", flush=True)


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--cache", default=str(CACHE), help="where the environments are")
    parser.add_argument("--again", action="store_true", help="run again what did not run")
    parser.add_argument("--so-far", action="store_true", help="run nothing, sum up the sets that are done")
    options = parser.parse_args()
    torch.set_num_threads(1)
    journal = Journal("peers", options.quick)
    figures = {}
    for title, whole in CONTESTS.items():
        contest = whole.small() if options.quick else whole
        if not options.so_far:
            hold(contest, journal, options)
        figures[title] = summary(contest, journal)
    journal.fold()
    write_result("peers", {"contests": figures, "environments": PEERS}, options.quick)


if __name__ == "__main__":
    main()
