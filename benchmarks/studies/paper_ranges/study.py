"""Figure 3 of the implicit-thresholds paper: partial PR area over recall from beta to 100 %, for several beta.

    python -m benchmarks.studies.paper_ranges [--data DIR] [--seeds N] [--so-far] [--quick]

Methods, splits of 50/25/25 and what is tuned are those of `paper_tabular`; every method is trained and
judged anew for each range. Each finished row is a row of `results/rows/paper_ranges.parquet`, not run again.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.common.data import arguments, paired, split
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import read_table
from benchmarks.studies.paper_tabular.study import AS_PUBLISHED, FOLLOWING, METHODS, MOST, SHARES, Study

SETS, BETAS, SEEDS = ("letter", "ijcnn1"), (0.5, 0.7, 0.8, 0.9, 0.95, 0.99), range(560, 570)
RIVALS = ("cross-entropy", "best of 21 weights")


def ask_of(beta: float) -> str:
    return f"maximize precision over recall in [{100 * beta:g}%, 100%] with 5 points"


def row_key(name: str, beta: float, seed: int, method: str) -> str:
    return f"{name} | {beta:g} | {seed} | {method}"


def summary(journal: Journal, seeds: range, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """A row a set, range and method, of the splits that are done: the area, and by how much it beats the baselines."""
    rows = []
    for name in SETS:
        for beta in BETAS:
            done = [s for s in seeds if all(row_key(name, beta, s, method) in journal for method in methods)]
            if len(done) < 2:
                continue
            areas = {
                method: [100 * journal[row_key(name, beta, seed, method)]["test"] for seed in done]
                for method in methods
            }
            for method, values in areas.items():
                row: dict[str, Any] = {"set": name, "beta": beta, "method": method, "splits": len(done)}
                row["area"] = paired(values, 0.25, 0.5)
                for rival in (*RIVALS, *([FOLLOWING] if method == AS_PUBLISHED and FOLLOWING in areas else [])):
                    row[f"minus {rival}"] = paired([a - b for a, b in zip(values, areas[rival])], 0.25, 0.5)
                rows.append(row)
    return rows


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0], len(SEEDS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    sets, betas, seeds, methods = SETS, BETAS, SEEDS[: options.seeds], tuple(METHODS)
    if options.quick:
        sets, betas, seeds, methods = ("letter",), (0.7, 0.95), range(2), methods[:4]
    journal = Journal("paper_ranges", options.quick)
    for name in () if options.so_far else sets:
        for seed in seeds:
            missing = [
                (beta, method) for beta in betas for method in methods
                if row_key(name, beta, seed, method) not in journal
            ]  # fmt: skip
            parts = split(*read_table(name, options.data), seed, SHARES, most=MOST) if missing else None
            for beta, method in missing:
                assert parts is not None
                study, key = Study(parts, ask_of(beta)), row_key(name, beta, seed, method)
                row = journal.add(key, {"set": name, "beta": beta, **study.best(METHODS[method](study))})
                print(f"{key}: {100 * row['test']:.2f} ({row['chosen']}), {row['seconds']:.1f} s", flush=True)
    journal.fold()
    write_result("paper_ranges", {"seeds": list(seeds), "rows": summary(journal, seeds, methods)}, options.quick)


if __name__ == "__main__":
    main()
