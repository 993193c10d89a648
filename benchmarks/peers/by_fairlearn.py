"""fairlearn over logistic regression: its two reductions, and thresholds a group set on validation rows.

`exponentiated` is a mixture of models, which draws one for each row; `grid` one of several models; `thresholds` needs
the group of a row to flag it. The chances of flags are what the package itself draws from.
"""

from __future__ import annotations

import sys

import fairlearn
import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import ExponentiatedGradient, GridSearch, TruePositiveRateParity
from sklearn.linear_model import LogisticRegression

from benchmarks.peers.exchange import Task

#: As shares of what was asked: a difference of each group to all allows two groups a larger one between them.
TIGHTER = (1.0, 0.5, 0.25)
GRID = 20


def inner() -> LogisticRegression:
    return LogisticRegression(C=1.0, max_iter=1000)


def by_exponentiated(task: Task) -> str:
    kept = []
    for share in TIGHTER:
        parity = TruePositiveRateParity(difference_bound=share * task.bound)
        model = ExponentiatedGradient(inner(), parity)
        model.fit(task.x, task.labels, sensitive_features=task.groups["train"])
        chances = (model._pmf_predict(x)[:, 1] for x in task.others.values())
        task.add_scores(f"difference bound {share * task.bound:g}", *chances)
        kept.append(int((model.weights_ > 0).sum()))
    return f"mixtures of {min(kept)} to {max(kept)} models"


def by_grid(task: Task) -> str:
    search = GridSearch(inner(), TruePositiveRateParity(difference_bound=task.bound), grid_size=GRID)
    search.fit(task.x, task.labels, sensitive_features=task.groups["train"])
    for number, model in enumerate(search.predictors_):
        task.add_scores(f"multiplier {number} of {GRID}", *(model.predict(x) for x in task.others.values()))
    return ""


def by_thresholds(task: Task) -> str:
    optimizer = ThresholdOptimizer(
        estimator=inner().fit(task.x, task.labels), constraints="true_positive_rate_parity", prefit=True, tol=task.bound
    )
    optimizer.fit(task.others["validation"], task.validation_labels, sensitive_features=task.groups["validation"])
    chances = [optimizer._pmf_predict(x, sensitive_features=task.groups[part])[:, 1] for part, x in task.others.items()]
    task.add_scores(f"tolerance {task.bound:g}", *chances)
    drawn = (chances[-1] > 0) & (chances[-1] < 1)
    return f"{100 * np.mean(drawn):.0f} % of test rows are drawn"


def main() -> None:
    task = Task()
    kinds = {"exponentiated": by_exponentiated, "grid": by_grid, "thresholds": by_thresholds}
    note = kinds[sys.argv[3]](task)
    task.answer(fairlearn.__version__, note)


if __name__ == "__main__":
    main()
