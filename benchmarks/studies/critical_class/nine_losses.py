"""Table 1 of paper 003 whole: nine base losses, alone and with the constraint, several models together.

    python -m benchmarks.studies.critical_class.nine_losses [--data DIR] [--quick] [--so-far] [--seeds N] [--ratio N]

Fixed before the first result:

- Ship against aeroplane at 1:100 and 1:200, the net of this study at the rate of 0.001 that the ladder picked out with
  BCE alone: the paper too chooses rate and optimiser by BCE and keeps them for all losses. Nothing else is changed.
- The eight losses of the paper that take the constraint, with the settings that the authors' code lists, and mini-batch
  AUC, which has none there either. BCE alone at 1:100 are the runs of the ladder.
- Mu, margin and the output that they apply to are chosen once for each loss, as published: of the four of `CHARGES` the
  best by AUC on the 200 validation images of seed 0 at 1:100. The other seeds and 1:200 have no part in the choice.
- Seeds 0 to 9, every loss of a seed before the next seed. A seed draws the rare images, the validation images, the
  weights and the order; both ways of a loss see the same. As published the logits of all models are averaged. What is
  not done when time is up is left out: the table says of how many models it is.
- Fixed after seeds 0 and 1 of 1:100 and before any run at 1:200: both ratios of a seed before the next seed, so that
  whenever time is up the two ratios have nearly as many models.
- Verdict: constrained less alone, in AUC and in FPR at 98 % TPR, by the models together with a standard error from 400
  draws of models and test images with replacement, and by the mean of single models paired by seed.

Each finished run is a row of `results/rows/critical_class_nine.parquet`, with its logits, and is not run again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.data import arguments, paired
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.image_nets import five_convolutions
from benchmarks.common.small_images import Plan
from benchmarks.studies.critical_class.published import COLUMNS, MBAUC, TABLE_1
from benchmarks.studies.critical_class.study import CHARGES, RATIOS, Charge, Study, base_losses, labels_of_test
from benchmarks.studies.critical_class.verdict import ALONE, CONSTRAINED, pack, together, unpack

NAME, LADDER = "critical_class_nine", "critical_class_ladder"
SEEDS, CHOOSING, DRAWS = range(10), 0, 400
PLAN = Plan(rate=1e-3)
DIRECT = "MBAUC"
LOSSES = tuple(name for name in base_losses((100, 1), 100) if name != DIRECT)


class Table:
    """The runs that are done, and those that are wanted."""

    def __init__(self, quick: bool, data: str) -> None:
        self.journal, self.data, self.labels = Journal(NAME, quick), data, labels_of_test(data)
        self.plan, self.negatives, self.losses = PLAN, None, LOSSES
        if quick:
            self.plan, self.negatives, self.losses = Plan(epochs=1, width=4, rate=1e-3), 1000, LOSSES[:2]
        else:
            # BCE alone at this rate has been run by the ladder, as the same study with the same plan.
            of_ladder = [row for row in Journal(LADDER).rows.values() if row["rung"] == "rate 0.001"]
            told = {"ratio": 100, "loss": "BCE", "way": ALONE, "setting": ""}
            self.journal.rows |= {(key := self.key(100, "BCE", None, row["seed"])): {**row, **told, "key": key}
                                  for row in of_ladder}  # fmt: skip

    @staticmethod
    def key(ratio: int, loss: str, charge: Charge | None, seed: int) -> str:
        return f"1:{ratio} | {loss} | {ALONE if charge is None else charge} | {seed}"

    def row(self, ratio: int, loss: str, charge: Charge | None, seed: int) -> dict[str, Any] | None:
        return self.journal.rows.get(self.key(ratio, loss, charge, seed))

    def run(self, ratio: int, loss: str, charge: Charge | None, seed: int) -> None:
        key = self.key(ratio, loss, charge, seed)
        if key not in self.journal:
            study = Study(self.data, seed, ratio, self.plan, self.negatives)
            found = study.run(loss, charge, five_convolutions)
            way = ALONE if charge is None else CONSTRAINED
            told: dict[str, Any] = {"ratio": ratio, "loss": loss, "way": way, "seed": seed}
            told |= {"setting": str(charge or ""), "logits": pack(found.pop("scores"))}
            row = self.journal.add(key, {**told, **found})
            print(f"{key}: validation {row['validation AUC']:.1f}, {row['seconds']:.0f} s", flush=True)

    def chosen(self, loss: str) -> Charge | None:
        """The charge with the best validation AUC of the choosing seed; None until all have been run."""
        found = [(row["validation AUC"], charge) for charge in CHARGES
                 if (row := self.row(RATIOS[0], loss, charge, CHOOSING))]  # fmt: skip
        return max(found, key=lambda one: one[0])[1] if len(found) == len(CHARGES) else None

    def run_seed(self, ratio: int, seed: int) -> None:
        for loss in (*self.losses, DIRECT):
            self.run(ratio, loss, None, seed)
            if loss != DIRECT:
                for charge in CHARGES if (ratio, seed) == (RATIOS[0], CHOOSING) else (self.chosen(loss),):
                    self.run(ratio, loss, charge, seed)

    def summary(self) -> list[dict[str, Any]]:
        return [row for ratio in RATIOS for loss in (*self.losses, DIRECT) if (row := self.cell(ratio, loss))]

    def cell(self, ratio: int, loss: str) -> dict[str, Any] | None:
        """One base loss at one ratio: what single models and all together have, alone and constrained."""
        charge = None if loss == DIRECT else self.chosen(loss)
        ways = {ALONE: None} if charge is None else {ALONE: None, CONSTRAINED: charge}
        seeds = [seed for seed in SEEDS if all(self.row(ratio, loss, one, seed) for one in ways.values())]
        if not seeds or (charge is None) != (loss == DIRECT):
            return None
        runs = {way: [self.row(ratio, loss, one, seed) for seed in seeds] for way, one in ways.items()}
        told = (MBAUC[ratio],) if loss == DIRECT else TABLE_1[ratio][loss]
        found: dict[str, Any] = {"ratio": ratio, "loss": loss, "models": len(seeds), "setting": str(charge or "")}
        for (way, own), published in zip(runs.items(), told):
            found[way] = {"single": {column: float(np.mean([run[column] for run in own])) for column in COLUMNS},
                          "together": together(own, self.labels),
                          "published": dict(zip(COLUMNS, published))}  # fmt: skip
        if charge is not None:
            found["gain"] = {
                column: {
                    "single": paired([sign * (b[column] - a[column]) for a, b in zip(*runs.values())], 0.0, 1.0),
                    "together": together_gain(runs, self.labels, column, sign),
                    "published": sign * (told[1][place] - told[0][place]),
                }
                for place, (column, sign) in enumerate(zip(COLUMNS, (-1, -1, -1, 1)))
            }
        return found


def together_gain(runs: dict[str, list[dict[str, Any]]], labels: Tensor, column: str, sign: int) -> dict[str, float]:
    """Constrained less alone by the mean logit, with an error from drawing models and test images anew."""
    logits = {way: np.stack([unpack(run["logits"]).numpy() for run in own]) for way, own in runs.items()}
    sides = [np.flatnonzero(labels.numpy() == label) for label in (1, 0)]
    draw = np.random.default_rng(26)

    def gain(models: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> float:
        a, b = (one_column(own[models].mean(0), positives, negatives, column) for own in logits.values())
        return sign * (b - a)

    count = len(logits[ALONE])
    drawn = [gain(draw.integers(count, size=count), *(draw.choice(side, len(side)) for side in sides))
             for _ in range(DRAWS)]  # fmt: skip
    error = float(np.std(drawn, ddof=1)) if count > 1 else float("nan")
    return {"mean": gain(np.arange(count), *sides), "standard_error": error}


def one_column(scores: np.ndarray, positives: np.ndarray, negatives: np.ndarray, column: str) -> float:
    """A column of Table 1 in percent, fast enough for draws: the mean rank, or the FPR where so many positives pass."""
    high, low = np.sort(scores[positives]), np.sort(scores[negatives])
    if column == "AUC":
        below = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
        return float(100 * below.mean() / 2 / len(low))
    missed = int(np.floor((1 - float(column.split("@ ")[1].removesuffix("% TPR")) / 100) * len(high) + 1e-9))
    return float(100 * (low >= high[missed]).mean())


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0], len(SEEDS))
    parser.add_argument("--ratio", type=int, choices=RATIOS, help="one of the ratios")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = Table(options.quick, options.data)
    for seed in () if options.so_far else SEEDS[: 1 if options.quick else options.seeds]:
        for ratio in (options.ratio,) if options.ratio else RATIOS:
            table.run_seed(ratio, seed)
    rows = table.summary()
    if not options.so_far:
        table.journal.fold()
    write_result(NAME, {"plan": str(table.plan), "charges": [str(one) for one in CHARGES], "rows": rows}, options.quick)


if __name__ == "__main__":
    main()
