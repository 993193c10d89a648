"""What every classifier of this door does once it has scores, two classes and an operating point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from setpoint.decide.calibrate import evaluate
from setpoint.errors import BadProblem
from setpoint.estimator.rows import known_codes, positive_place, read_groups, read_weights
from setpoint.problem.check import Check
from setpoint.problem.point import OperatingPoint
from setpoint.problem.thresholds import Threshold


class DecidesAtPoint(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A binary classifier that flags a row when its score is strictly above the threshold of `operating_point_`."""

    positive: Any
    classes_: NDArray[Any]
    operating_point_: OperatingPoint

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """One score a row, larger for the positive class."""
        raise NotImplementedError

    @property
    def _positive_place(self) -> int:
        return positive_place(self.classes_, self.positive)

    @property
    def threshold_(self) -> Threshold:
        """The threshold of the scores: a number, or one per group by its name."""
        return self.operating_point_.threshold

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The scores that `operating_point_` cuts. Larger speaks for `classes_[1]`, as scikit-learn has it.

        Where `positive` is `classes_[0]` that is the score with its sign turned.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return scores if self._positive_place == 1 else -scores

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """The class of each row at the operating point; `groups` for asks that compare groups."""
        check_is_fitted(self)
        if self.operating_point_.problem.over is not None:
            raise BadProblem(
                f"'{self.operating_point_.problem}' has a threshold for every point of its stretch, so that no one "
                "class can be named; use decision_function, or operating_point_.predict(scores) for all of them"
            )
        scores = self._scores(X)
        groups = read_groups(self.operating_point_.problem, groups, len(scores))
        passed = self.operating_point_.predict(scores, groups).astype(bool)
        place = self._positive_place
        return self.classes_[np.where(passed, place, 1 - place)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """How well these rows can be cut for the ask, larger is better: what `GridSearchCV` chooses models by.

        The objective at the best feasible cut of these very rows, its sign turned if it is minimised; where no cut
        meets the bounds, -1 less what they are broken by. How the model does at its own threshold is `judge`.
        """
        asked = self._asked(X, y, sample_weight, groups)
        point = evaluate(self.operating_point_.problem, **asked)
        if not point.feasible:
            return -1.0 - point.violation
        return point.objective if point.problem.maximize else -point.objective

    def judge(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> OperatingPoint:
        """The true rates of these rows at the threshold that `predict` uses, and whether the bounds hold there."""
        return self.operating_point_.judge(**self._asked(X, y, sample_weight, groups))

    def check(self, X: Any, y: Any, groups: Any = None) -> Check:
        """Whether these rows speak against the bounds at the threshold that `predict` uses: a test with a p-value."""
        asked = self._asked(X, y, None, groups)
        return self.operating_point_.check(asked["scores"], asked["labels"], groups=asked["groups"])

    def _asked(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> dict[str, Any]:
        check_is_fitted(self)
        scores = self._scores(X)
        check_consistent_length(scores, y)
        return {
            "scores": scores,
            "labels": known_codes(y, self.classes_) == self._positive_place,
            "weights": read_weights(sample_weight, len(scores)),
            "groups": read_groups(self.operating_point_.problem, groups, len(scores)),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
