"""Auto: train several solvers from one start, and choose among them on rows that they were not trained on."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.errors import BadSetting


@dataclass(frozen=True)
class Auto:
    """Train cross-entropy and its rivals, and keep cross-entropy unless a rival is clearly better.

    The rule: the candidate with the best exact metric is chosen if it is better than plain cross-entropy by more than
    `caution` standard errors of their paired difference, or meets bounds that cross-entropy breaks. Otherwise plain
    cross-entropy is chosen. Between equals the simpler candidate wins.

    *A linear model.* The candidates are five class weights (plain, balanced, 1/4, 4 and matched), `Anchored` at four
    strengths, the Lagrangian, the augmented Lagrangian and, for ROC areas, `PairwiseArea`, all on the full batch. The
    three best on the held-out rows are cross-validated in three folds beside cross-entropy, and the rule is applied to
    all rows, each scored by a model that was not fitted on it, because a choice on the held-out rows alone picks noise.
    With `calibration` data the chosen candidate is retrained on training and held-out rows together.

    *A network.* Cross-entropy is trained with early stopping; short continuations from its best epoch are the rivals,
    and the rule is applied to the held-out rows. With `calibration` data the last layer of the chosen network is
    re-fitted on the held-out rows, and kept if that helps on the half that it was not fitted on.

    Candidates that do not fit the problem are left out with a note. Set the threshold on `calibration` data, because
    the held-out rows were used to choose.

    Args:
        tune: The number of trials by optuna, the best of which is one more candidate.
        seed: The seed of these trials.
        caution: The number of standard errors by which a rival must be better.

    Raises:
        BadSetting: If a value is negative, or `tune` or `seed` is not a whole number.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> result = sp.fit(torch.nn.Linear(1, 1), ask, train, held_out, sp.Auto(), calibration=rest)
        >>> [trial.name for trial in result.comparison if trial.chosen]
        ['CrossEntropy']
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
