"""How promises are broken that look safe: rare groups, useless scores, new tries until one certifies, many looks.

    python -m benchmarks.studies.promises [--quick] [--repeats 1000]

Four counts, each in a world whose true rates are known:

- `gaps`: `recall.gap(g) <= 10%` certified at 95 % from 3,000 rows in three groups, of which the third has 0 to 5
  positives (and 300, so that certificates are issued), which score lower than those of the others.
- `useless`: `accuracy >= 50.1%` certified at 95 % from 500 rows, half of them positive, whose scores know nothing of
  the labels: every certificate that is issued is wrong.
- `tries`: the same world, 1,000 rows, 20 times a random half of the same rows, until one of them certifies.
- `looks`: `point.check` at a level of 5 % on twelve batches of 2,000 negatives whose true FPR is exactly the bound.

"wrong" is the share of all repeats in which a certificate was issued and its statement is false: that is what the
confidence limits. "wrong among those issued" divides by the certificates that were issued, and nothing limits it.
Finished counts are kept in `results/rows/promises.parquet`, and are not run again.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from functools import partial

import numpy as np
import torch
from scipy.stats import norm

import setpoint as sp
from benchmarks.common.harness import Journal, write_result
from setpoint.errors import TooFewSamples

CONFIDENCE, BOUND, ROWS = 0.95, 0.1, 3000
POSITIVES = (0, 1, 2, 3, 4, 5, 300)
SHIFT = -1.5
USELESS = "maximize recall where accuracy >= 50.1%"
TRIES, LOOKS, BATCH = 20, 12, 2000


def limit(repeats: int) -> float:
    return 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)


def counted(results: Counter[str]) -> dict[str, object]:
    """What became of all repeats: issued and right, issued and wrong, or refused."""
    repeats, issued = results.total(), results["right"] + results["wrong"]
    return {
        "repeats": repeats, "issued": issued / repeats, "wrong": results["wrong"] / repeats,
        "wrong among those issued": results["wrong"] / issued if issued else None,
        "limit": limit(repeats), "met": results["wrong"] / repeats <= limit(repeats),
    }  # fmt: skip


def gap(positives: int, repeats: int) -> dict[str, object]:
    results: Counter[str] = Counter()
    for repeat in range(repeats):
        draw = np.random.default_rng((positives, repeat))
        labels, groups = (draw.random(ROWS) < 0.3).astype(int), draw.choice(["a", "b"], ROWS)
        rare = draw.permutation(ROWS)[: positives + 50]
        groups[rare], labels[rare], labels[rare[:positives]] = "c", 0, 1
        scores = draw.normal(size=ROWS) + (2.5 + SHIFT * (groups == "c")) * labels
        ask = f"minimize error where recall.gap(g) <= {BOUND}"
        try:
            point = sp.calibrate(ask, scores, labels, groups=groups, confidence=CONFIDENCE)
        except TooFewSamples:
            results["refused"] += 1
            continue
        recall = {g: norm.sf(t - 2.5 - SHIFT * (g == "c")) for g, t in point.threshold.items()}  # type: ignore[union-attr]
        results["wrong" if max(recall.values()) - min(recall.values()) > BOUND else "right"] += 1
    return {"positives": positives, **counted(results)}


def useless(repeats: int) -> dict[str, object]:
    results: Counter[str] = Counter()
    for repeat in range(repeats):
        draw = np.random.default_rng((1, repeat))
        results["wrong" if _is_issued(draw.normal(size=500), draw.integers(0, 2, 500)) else "refused"] += 1
    return {"ask": USELESS, **counted(results)}


def tries(repeats: int) -> dict[str, object]:
    """The share of runs in which one of many random halves of the same useless rows certifies, which is wrong."""
    issued = 0
    for repeat in range(repeats):
        draw = np.random.default_rng((2, repeat))
        scores, labels = draw.normal(size=1000), draw.integers(0, 2, 1000)
        halves = (draw.permutation(1000)[:500] for _ in range(TRIES))
        issued += any(_is_issued(scores[half], labels[half]) for half in halves)
    return {"ask": USELESS, "runs": repeats, "tries": TRIES, "wrong": issued / repeats}


def _is_issued(scores: np.ndarray, labels: np.ndarray) -> bool:
    try:
        return sp.calibrate(USELESS, scores, labels, confidence=CONFIDENCE).certificate is not None
    except TooFewSamples:
        return False


def looks(repeats: int) -> dict[str, object]:
    """The share of runs in which so many looks call a bound broken, once at least, that is kept exactly."""
    threshold = float(norm.isf(0.05))
    labels = np.repeat([0, 1], [BATCH, 1])
    point = sp.calibrate("minimize fnr where fpr <= 5%", [0.0, 1.0], [0, 1])
    point = sp.OperatingPoint.from_dict({**point.to_dict(), "threshold": threshold})
    alarms = np.zeros((repeats, LOOKS), dtype=bool)
    for repeat in range(repeats):
        draw = np.random.default_rng(repeat)
        for month in range(LOOKS):
            alarms[repeat, month] = not point.check(draw.normal(size=BATCH + 1), labels, level=0.05).holds
    return {
        "runs": repeats, "looks": LOOKS, "rows of each": BATCH, "level": 0.05,
        "called broken per look": float(alarms.mean()), "called broken at least once": float(alarms.any(1).mean()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="twenty repeats of everything")
    parser.add_argument("--repeats", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    repeats = 20 if options.quick else options.repeats
    journal = Journal("promises", options.quick)
    cells = []
    for positives in POSITIVES:
        # Many positives are dear to test, and only show that certificates are issued at all.
        times = repeats if positives < 100 else max(repeats // 5, 20)
        cells.append(journal.row(f"{positives} positives {repeats}", partial(gap, positives, times)))
        print(shown(cells[-1]), flush=True)
    of_useless = journal.row(f"useless {repeats}", lambda: useless(repeats))
    print(shown(of_useless), flush=True)
    figures = {
        "confidence": CONFIDENCE, "gaps": cells, "useless": of_useless,
        "tries": journal.row(f"tries {repeats}", lambda: tries(max(repeats // 3, 20))),
        "looks": journal.row(f"looks {repeats}", lambda: looks(repeats)), "met": all(cell["met"] for cell in cells),
    }  # fmt: skip
    print(figures["tries"], figures["looks"], sep="\n")
    journal.fold()
    print(write_result("promises", figures, options.quick))
    if not figures["met"]:
        sys.exit("promises are broken more often than their confidence allows")


def shown(cell: dict[str, object]) -> str:
    head = cell.get("ask") or f"{cell['positives']} positives in the rarest group"
    among = cell["wrong among those issued"]
    return (
        f"{head}: issued {cell['issued']:.1%}, wrong {cell['wrong']:.1%} (limit {cell['limit']:.1%}), "
        f"wrong among those issued {'-' if among is None else f'{among:.1%}'}"
    )


if __name__ == "__main__":
    main()
