"""Auto: several solvers from one warm start, and the choice among them by data that they were not trained on."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.errors import BadSetting


@dataclass(frozen=True)
class Auto:
    """Train cross-entropy and what may beat it; keep cross-entropy unless something clearly does.

    The rule: of all candidates the best by the exact metric is taken, if it is better than plain cross-entropy by more
    than `caution` standard errors of their paired difference (or meets bounds that cross-entropy breaks); otherwise
    plain cross-entropy. Ties go to the simpler.

    *A linear model*: plain, balanced, lowered, raised and matched class weights, `Anchored` at its four strengths, the
    Lagrangian, the augmented Lagrangian and, for ROC areas, `PairwiseArea`, all full batch from one matched start. The
    three best on the held-out rows are cross-validated in three folds beside cross-entropy, and the rule is applied
    to all rows, each scored by a model that was not fitted on it: a choice on the held-out rows alone picks noise. With
    `calibration` data the chosen one is then made anew of training and held-out rows together (`fit(refit=)`).
    *A network*: cross-entropy with early stopping, then short continuations from its best epoch, most of them stopped
    half-way; the rule is applied to the held-out rows. With `calibration` data the head of the chosen network is
    re-fitted on the held-out rows, and kept if that helps on the half it did not see.

    What does not fit a problem is left out with a note. `tune=N` adds the best of N trials by optuna, the same ones for
    the same `seed`. Set the threshold on `calibration` data: the held-out ones were used to choose.
    """

    tune: int = 0
    seed: int = 0
    caution: float = 1.5

    def __post_init__(self) -> None:
        for name, value in (("tune", self.tune), ("seed", self.seed)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise BadSetting(f"Auto needs {name} to be a whole number from 0 up, got {value!r}")
        if not 0 <= self.caution < float("inf"):
            raise BadSetting(f"caution is a number of standard errors, 0 or more, got {self.caution!r}")
