"""How a peer is asked and answers, through files, so that its environment needs nothing of ours but NumPy."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

#: The learning rates of weights and of prices that every method with prices may choose from.
RATES, PRICE_RATES = (0.01, 0.1, 1.0), (0.1, 1.0, 10.0)
#: The margins of the F-score program, and the rows of a batch, whoever solves it.
MARGINS, BATCH = (0.0, 0.2, 0.4), 256


def pace(steps_done: int, beta1: float = 0.9, beta2: float = 0.999) -> float:
    """The rate of a step of TFCO's Adam, as a multiple of Adam's.

    Its optimizer for graphs never advances the correction of Adam for the means that begin at zero: the rate stays
    what it is at the first step, which doubles the steps from the fifth to the thirtieth and lets them fall to a third.
    Who has an Adam of his own here takes the same, so that the methods differ by what they ask of it alone.
    """

    def correction(step: int) -> float:
        return (1 - beta2**step) ** 0.5 / (1 - beta1**step)

    return correction(1) / correction(steps_done + 1)


def peak_megabytes() -> float:
    """The most that this program has held; what getrusage tells may be the peak of the process that started it."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


class Task:
    """Standardised rows, a start (cross-entropy, the last number the bias), the bound, and the budget of steps.

    `groups` has the group of each row, by part, where the ask compares groups.
    """

    def __init__(self) -> None:
        with np.load(sys.argv[1]) as arrays:
            self.x, self.labels = arrays["x_train"], arrays["y_train"]
            self.others = {"validation": arrays["x_validation"], "test": arrays["x_test"]}
            self.validation_labels = arrays["y_validation"]
            self.start, self.bound = arrays["start"], float(arrays.get("bound", np.nan))
            self.steps, self.look_every = int(arrays["steps"]), int(arrays["look_every"])
            parts = ("train", *self.others)
            self.groups = {part: arrays[f"groups_{part}"] for part in parts if f"groups_{part}" in arrays}
        self.names: list[str] = []
        self.scores: dict[str, list[np.ndarray]] = {part: [] for part in self.others}
        self.began, self.worked = time.perf_counter(), time.process_time()

    def settings(self) -> Iterator[tuple[float, float]]:
        return itertools.product(RATES, PRICE_RATES)

    def batches(self) -> Iterator[np.ndarray]:
        """Row numbers of batches that hold a positive, one a step: the same for all who ask."""
        draw = np.random.default_rng(0)
        for _ in range(self.steps):
            rows = draw.integers(len(self.x), size=BATCH)
            while not self.labels[rows].any():
                rows = draw.integers(len(self.x), size=BATCH)
            yield rows

    def add(self, name: str, weight: np.ndarray, bias: float) -> None:
        """A linear model that may be chosen."""
        self.add_scores(name, *(x @ weight + bias for x in self.others.values()))

    def add_scores(self, name: str, validation: np.ndarray, test: np.ndarray) -> None:
        """Scores, or where the contest is one of flags, flags or their chances."""
        self.names.append(name)
        for part, scores in (("validation", validation), ("test", test)):
            self.scores[part].append(np.asarray(scores, dtype=np.float64).reshape(-1))

    def answer(self, version: str, note: str = "") -> None:
        """Write the scores of all candidates, what it took, and leave."""
        seconds, worked = time.perf_counter() - self.began, time.process_time() - self.worked
        taken = {"seconds": seconds, "processor seconds": worked, "peak megabytes": peak_megabytes()}
        told = json.dumps({"version": version, **taken, "note": note})
        kept = {part: np.stack(scores) for part, scores in self.scores.items()}
        np.savez(sys.argv[2], names=np.array(self.names), told=np.array(told), **kept)
