"""Reasons to doubt Table 1 whole: rare images per ensemble, how settings were chosen, and how far mu grew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.studies.critical_class.nine_losses import SEEDS
from benchmarks.studies.critical_class.published import TABLE_1
from benchmarks.studies.critical_class.study import CHARGES, HELD_OUT, RATIOS
from benchmarks.studies.critical_class.verdict import CONSTRAINED

#: Training images per class of CIFAR-10.
IN_CLASS = 5_000


def rare_images(ratio: int) -> int:
    """How many images of the rare class one model is trained on."""
    return (IN_CLASS - HELD_OUT) // ratio


def distinct(ratio: int, models: int) -> float:
    """How many different rare images so many models see together, in expectation: each draws its own."""
    return IN_CLASS * (1 - (1 - rare_images(ratio) / IN_CLASS) ** models)


def of_draws() -> str:
    seen = " and ".join(
        f"about {distinct(ratio, len(SEEDS)):.0f} different rare images at 1:{ratio}, one model {rare_images(ratio)}"
        for ratio in RATIOS
    )
    return (
        f"Each of the ten models draws its own rare images, so that ten together see {seen}. The paper trains ten "
        "models on ten random stratified splits of a data set and does not say whether their rare images differ. A "
        "level of ten together that is as published therefore does not show that the nets are as good: single nets "
        "are below it, and the paper's main text has no single nets for CIFAR-10 to compare."
    )


def of_claim() -> str:
    """The claim in the paper's words, and in how many cells of its own table the AUC falls."""
    cells = [(alone[-1], with_it[-1]) for losses in TABLE_1.values() for alone, with_it in losses.values()]
    return (
        "The paper claims a gain in the majority of the cases; in its own table the AUC falls in "
        f"{sum(after < before for before, after in cells)} of {len(cells)} cells."
    )


def of_choice() -> str:
    return (
        f"Mu, margin and output are chosen once per loss: one of {len(CHARGES)} settings, by one model on "
        f"{2 * HELD_OUT} validation images at 1:{RATIOS[0]}, and used at 1:{RATIOS[1]} as well. The paper searches "
        "mu, its growth and then the margin on the validation parts of its splits. Choosing alone is worth something "
        "(below)."
    )


def capped(rows: Iterable[dict[str, Any]]) -> str:
    """In how many constrained runs mu ended at its cap."""
    most = {str(charge): charge.most * charge.mu for charge in CHARGES}
    ends = [row["mu"] / most[row["setting"]] for row in rows if row["way"] == CONSTRAINED]
    return (
        f"Mu ended at its cap, {CHARGES[0].most:g} times its first value, in {sum(end > 0.99 for end in ends)} of "
        f"{len(ends)} constrained runs, so that its growth by validation AUC hardly tells these runs apart."
    )


def most(better: int, worse: int, cells: int) -> bool:
    """The paper's claim, "in the majority of the cases": more than half are better, and none is worse."""
    return better > cells / 2 and not worse
