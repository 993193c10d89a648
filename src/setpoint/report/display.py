"""A matplotlib display of an operating point on the ROC curve, in the manner of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.decide.calibrate import evaluate
from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.constraint import CUT
from setpoint.measure.rate import fpr, recall
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.report.words import show_objective


@dataclass
class OperatingPointDisplay:
    """The ROC curve of a model, its operating point, and the region in which a bound is broken.

    Attributes:
        point: The operating point, with its rates on the rows that are shown.
        fpr: The share of negatives flagged at each cut.
        recall: The share of positives found at each cut.
        name: The name of the model in the legend.

    Example:
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np, setpoint as sp
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.random(500) < 0.3
        >>> scores = rng.normal(size=500) + 2 * labels
        >>> shown = sp.report.OperatingPointDisplay.from_predictions("minimize fnr where fpr <= 5%", labels, scores)
        >>> shown.ax_.get_xlabel(), shown.point.rates["fpr"] <= 0.05
        ('fpr: negatives flagged', True)
    """

    point: OperatingPoint
    fpr: NDArray[np.float64]
    recall: NDArray[np.float64]
    name: str = ""
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_predictions(
        cls, ask: Problem | str | OperatingPoint, y_true: Any, y_score: Any, *, name: str = "", ax: Any = None
    ) -> OperatingPointDisplay:
        """Draw the curve of scores.

        Args:
            ask: The ask, which is answered by the best cut of these rows; or an operating point that was set elsewhere.
            y_true: 1 or 0 per row.
            y_score: One score per row.
            name: The name in the legend.
            ax: The matplotlib axes; None makes new ones.

        Returns:
            The display, with `ax_` and `figure_`.

        Raises:
            BadProblem: If the ask has more than one threshold.
        """
        scores, labels = np.asarray(y_score, dtype=float), np.asarray(y_true).astype(bool)
        tensors = torch.from_numpy(scores), torch.from_numpy(labels)
        if isinstance(ask, OperatingPoint):
            point = ask.judge(*tensors)
        else:
            point = evaluate(read_problem(ask), *tensors)
        if point.problem.kind != CUT or point.thresholds.single is None:
            raise BadProblem(f"'{point.problem}' has more than one threshold; the display shows asks of one threshold")
        order = np.argsort(-scores, kind="stable")
        last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
        found, alarms = np.cumsum(labels[order])[last], np.cumsum(~labels[order])[last]
        x = np.concatenate([[0.0], alarms / max(int((~labels).sum()), 1)])
        return cls(point, x, np.concatenate([[0.0], found / max(int(labels.sum()), 1)]), name).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ask: Any = None, **more: Any) -> OperatingPointDisplay:
        """Draw the curve of a classifier of scikit-learn on some rows.

        Args:
            estimator: A fitted classifier; one of setpoint shows the point that it runs at.
            X: The features.
            y: The class of each row.
            ask: The ask; None takes that of a classifier of setpoint.
            **more: `name` and `ax`, as `from_predictions` takes them.

        Returns:
            The display.

        Raises:
            BadSetting: If there is no ask.
        """
        own = getattr(estimator, "operating_point_", None)
        if ask is None and own is None:
            raise BadSetting("this classifier has no operating point of its own; pass ask='minimize fnr where ...'")
        positive = getattr(estimator, "positive", None)
        positive = estimator.classes_[1] if positive is None else positive
        if hasattr(estimator, "decision_function"):
            scores = np.asarray(estimator.decision_function(X))
        else:
            scores = np.asarray(estimator.predict_proba(X))[:, list(estimator.classes_).index(positive)]
        more.setdefault("name", type(estimator).__name__)
        asked: Any = own if ask is None else ask
        return cls.from_predictions(asked, np.asarray(y) == positive, scores, **more)

    def plot(self, ax: Any = None) -> OperatingPointDisplay:
        """Draw the curve, the point and the region of broken bounds.

        Args:
            ax: The matplotlib axes; None makes new ones.

        Returns:
            This display.
        """
        if ax is None:
            try:
                from matplotlib import pyplot  # noqa: PLC0415  (an extra, and slow to import)
            except ModuleNotFoundError as cause:
                raise BadSetting(
                    "a display needs matplotlib; install it with: pip install 'setpoint[report]'"
                ) from cause
            _, ax = pyplot.subplots(figsize=(5, 4.2))
        here = self.point.rates["fpr"], self.point.rates["recall"]
        ax.step(self.fpr, self.recall, where="post", color="#0b6485", label=self.name or None)
        told = f"threshold {self.point.thresholds.describe()}: {show_objective(self.point)}"
        ax.plot(*here, "o", color="black", label=told)
        for c in self.point.problem.constraints:
            if c.quantity == fpr and c.relation == "<=":
                ax.axvspan(c.bound, 1, color="#b3261e", alpha=0.08, lw=0)
            elif c.quantity == recall and c.relation == ">=":
                ax.axhspan(0, c.bound, color="#b3261e", alpha=0.08, lw=0)
        ax.set(
            xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="fpr: negatives flagged", ylabel="recall: positives found"
        )
        ax.set_title(str(self.point.problem), fontsize=10)
        ax.legend(loc="lower right", fontsize=8)
        self.ax_, self.figure_ = ax, ax.figure
        return self
