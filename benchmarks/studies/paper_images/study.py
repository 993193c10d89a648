"""Tables 2-4 of the implicit-thresholds paper and the table of the last-layer paper, on images that can be had.

    python -m benchmarks.studies.paper_images [--data DIR] [--fashion DIR] [--cache DIR] [--sets a,b] [--quick]
        [--so-far]

CelebA and BigEarthNet cannot be had here, so only ratios to the same run's cross-entropy compare. Reduced for one core:
the net has 16 to 64 filters instead of 128 to 512, at most 6,000 training images, 64 a batch instead of 512.

- cross-entropy, and under the weights 1/8, 1/2, 2 and 8 of the positives: the best of the five is chosen on
  validation rows. Trained once for all asks; the epoch is chosen for each.
- Lagrangian, implicit, last-layer methods 1, 2 and ablation: take over from cross-entropy half-way, once an ask.
  Nothing is tuned.
- proximal head: the trained cross-entropy, its last layer re-fitted on validation rows, as by `sp.fit(refit=False)`.
- warm start: cross-entropy stopped half-way, as if the others were compared with what they began from.
- twice the epochs: cross-entropy on a cosine twice as long, to see whether the yardstick is converged.

Epochs and weights are chosen on validation rows by the exact metric. Judged on test rows, at the best cut of their own
curve, as the papers do, and at the threshold set on calibration rows. Each finished row is a row of
`results/rows/paper_images.parquet`, and not run again; `--cache` keeps the nets half-way.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, ratio, write_result
from benchmarks.common.sets import CACHE
from benchmarks.speed.step_cost import stepper
from benchmarks.studies.paper_images.sets import FASHION, IMAGE_SETS, Folders, ImageSet, draw_parts, missing, pooled
from benchmarks.studies.paper_images.training import CRITERIA, Plan, Runs, State, five_convolutions, row_of
from benchmarks.studies.paper_images.verdict import WEIGHTS, key, summary, trained_for

AT_FPR = {percent: f"minimize fnr where fpr <= {percent}%" for percent in (1, 2, 5, 10)}
AREA = "maximize recall over fpr in [0%, 5%] with 10 points"
ASKS = [*AT_FPR.values(), AREA]
#: The order of work; between the asks, cross-entropy with twice the epochs.
STAGES = [[AT_FPR[1], AT_FPR[5], AREA], [], [AT_FPR[2], AT_FPR[10]]]
FIRST_SEED = 620
#: Names for the command line.
SHORT = {re.split("[ ,]+", name.lower())[-1]: name for name in IMAGE_SETS}
QUICK_SIZES, QUICK_ASKS = (500, 300, 300, 500), [AT_FPR[1], AREA]


class Study:
    """One set: its rows are made split by split, and not again."""

    def __init__(
        self, name: str, one: ImageSet, plan: Plan, asks: list[str], journal: Journal, folders: Folders, cache: Path
    ) -> None:
        self.name, self.one, self.plan, self.asks = name, one, plan, asks
        self.journal, self.folders, self.cache = journal, folders, cache

    def runs(self, seed: int) -> Runs:
        return Runs(draw_parts(*pooled(self.name, self.folders), self.one.sizes, seed), self.plan, seed)

    def add(self, ask: str, method: str, seed: int, row: dict[str, Any]) -> None:
        named = key(self.name, ask, method, seed)
        self.journal.add(named, {"set": self.name, "ask": ask, "method": method, "seed": seed, **row})
        shown = f"{100 * row['test']:.2f} (epoch {row.get('epoch', '-')})" if "test" in row else "failed"
        print(f"{named}: {shown}, {row['seconds']:.1f} s", flush=True)

    def wanted(self, method: str, seed: int, asks: list[str]) -> bool:
        return any(key(self.name, ask, method, seed) not in self.journal for ask in asks)

    def cross_entropy(self, seed: int) -> None:
        """Plain and weighted, and what is made of the plain one, for every ask at once."""
        runs = None
        if self.wanted("cross-entropy", seed, self.asks):
            runs = self.runs(seed)
            after, before, half, seconds = runs.weighted(self.asks, None)
            self._keep(seed, half)
            for ask in self.asks:
                head, kept, spent = runs.refitted(after[ask])
                self.add(ask, "warm start", seed, row_of(runs, before[ask], seconds / 2))
                refitted = {**runs.judged(after[ask].problem, head), "kept": kept, "seconds": seconds + spent}
                self.add(ask, "proximal head", seed, refitted)
                self.add(ask, "cross-entropy", seed, row_of(runs, after[ask], seconds))
        for weight in WEIGHTS:
            if self.wanted(f"weight {weight:g}", seed, self.asks):
                runs = runs or self.runs(seed)
                after, _, _, seconds = runs.weighted(self.asks, weight)
                for ask in self.asks:
                    self.add(ask, f"weight {weight:g}", seed, row_of(runs, after[ask], seconds))

    def longer(self, seed: int) -> None:
        if self.wanted("twice the epochs", seed, self.asks):
            runs = self.runs(seed)
            after, _, _, seconds = runs.weighted(self.asks, None, replace(self.plan, epochs=2 * self.plan.epochs))
            for ask in self.asks:
                self.add(ask, "twice the epochs", seed, row_of(runs, after[ask], seconds))

    def taken_over(self, seed: int, ask: str) -> None:
        methods = [method for method in trained_for(ask) if self.wanted(method, seed, [ask])]
        if methods:
            runs = self.runs(seed)
            half = self._half(seed, runs)
            for method in methods:
                self.add(ask, method, seed, row_of(runs, *runs.taken_over(ask, CRITERIA[method], half)))

    def _path(self, seed: int) -> Path:
        plan = "-".join(str(value) for value in (*asdict(self.plan).values(), *self.one.sizes))
        return self.cache / "paper_images" / f"{re.sub('[^a-z0-9]+', '-', self.name.lower())}-{seed}-{plan}.pt"

    def _keep(self, seed: int, half: State) -> None:
        self._path(seed).parent.mkdir(parents=True, exist_ok=True)
        torch.save(half, self._path(seed))

    def _half(self, seed: int, runs: Runs) -> State:
        if not self._path(seed).is_file():
            self._keep(seed, runs.half_way())
        return torch.load(self._path(seed), weights_only=True)


def step_ratios(journal: Journal, plan: Plan, repeats: int) -> None:
    """The time of a step as a ratio to cross-entropy, on this study's net and a batch of colour images."""
    problem = sp.ask(AT_FPR[1])
    x = torch.randn(plan.batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    labels = (torch.rand(plan.batch) < 0.1).float()
    for method, criterion in CRITERIA.items():
        if f"step | {method}" not in journal:
            net = five_convolutions(3, plan.width)
            plain = stepper(net, sp.CrossEntropy(), x, labels)
            own = five_convolutions(3, plan.width)
            measured = ratio(stepper(own, criterion(problem, own), x, labels), plain, repeats)
            journal.add(f"step | {method}", {"ratio": measured})


def run(studies: list[Study], quick: bool) -> None:
    """What matters most first, split by split, every set in turn."""
    for stage in [QUICK_ASKS] if quick else STAGES:
        for split in range(max(study.one.splits for study in studies)):
            for study in (study for study in studies if split < study.one.splits):
                study.cross_entropy(FIRST_SEED + split)
                for ask in stage:
                    study.taken_over(FIRST_SEED + split, ask)
                if not stage:
                    study.longer(FIRST_SEED + split)


def small(one: ImageSet) -> ImageSet:
    """A set cut down to what shows that everything runs."""
    return replace(one, sizes=min(one.sizes, QUICK_SIZES, key=sum), epochs=4, splits=2)


def options_of() -> argparse.Namespace:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--fashion", default=FASHION, help="the folder of Debian's dataset-fashion-mnist")
    parser.add_argument("--cache", default=str(CACHE), help="where nets half-way are kept")
    parser.add_argument("--sets", default=",".join(SHORT), help="only these, to share the work between processes")
    parser.add_argument("--so-far", action="store_true", help="run nothing, sum up what is done")
    options = parser.parse_args()
    if strangers := set(options.sets.split(",")) - set(SHORT):
        parser.error(f"--sets takes {', '.join(SHORT)}, got {', '.join(sorted(strangers))}")
    return options


def main() -> None:
    options = options_of()
    torch.set_num_threads(1)
    folders, journal = Folders(options.data, options.fashion), Journal("paper_images", options.quick)
    left_out = {name: told for name in IMAGE_SETS if (told := missing(name, folders))}
    studies = []
    asks = QUICK_ASKS if options.quick else ASKS
    for name, full in list(IMAGE_SETS.items())[2 * options.quick :]:
        one = small(full) if options.quick else full
        plan = Plan(one.epochs, width=8) if options.quick else Plan(one.epochs)
        studies.append(Study(name, one, plan, asks, journal, folders, Path(options.cache)))
    if not options.so_far:
        print(*left_out.values(), sep="\n")
        step_ratios(journal, studies[0].plan, repeats=5 if options.quick else 41)
        chosen = [SHORT[short] for short in options.sets.split(",")]
        run([study for study in studies if study.name in chosen and study.name not in left_out], options.quick)
    sets = {study.name: study.one for study in studies}
    seeds = {name: [FIRST_SEED + split for split in range(one.splits)] for name, one in sets.items()}
    found = summary(journal, sets, seeds, {**{ask: percent for percent, ask in AT_FPR.items()}, AREA: "area"})
    figures = {
        "plan": {name: {"sizes": list(one.sizes), "epochs": one.epochs, "splits": one.splits}
                 for name, one in sets.items()},
        "net": asdict(studies[0].plan),
        "left out": [name for name in left_out if name not in {cell["set"] for cell in found["cells"]}],
        **found,
    }  # fmt: skip
    for cell in found["cells"]:
        for row in cell["methods"]:
            print(f"{cell['set']:24s} {cell['ask'][:30]:30s} {row['method']:18s} {row['splits']} {row['mean']:6.2f}")
    journal.fold()
    write_result("paper_images", figures, options.quick)
