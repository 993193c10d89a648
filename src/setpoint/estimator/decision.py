"""Decisions of a fitted classifier: from scores, two classes and an operating point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from setpoint.decide.calibrate import evaluate
from setpoint.errors import BadProblem, SetpointError
from setpoint.estimator.labels import is_about_labels, known_labels
from setpoint.estimator.rows import (
    known_codes,
    positive_place,
    read_ask,
    read_groups,
    read_lists,
    read_values,
    read_weights,
    with_values,
)
from setpoint.measure.classes import CLASSES
from setpoint.problem.check import Check
from setpoint.problem.point import OperatingPoint
from setpoint.problem.thresholds import Threshold

#: The score of a model that breaks its bounds, where the objective is no share: far below every cost.
WORST = -1e12


class DecidesAtPoint(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that decides at the thresholds of `operating_point_`.

    One of two classes is given to rows whose score is strictly above the threshold. Of several classes, where the ask
    is about classes, a row is given the one with the largest score less its shift. Of several labels, a row is given
    each whose score is above its threshold.
    """

    ask: Any
    positive: Any
    classes_: Any
    operating_point_: OperatingPoint

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """One score per row, larger for the positive class."""
        raise NotImplementedError

    @property
    def _positive_place(self) -> int:
        return positive_place(self.classes_, self.positive)

    @property
    def threshold_(self) -> Threshold:
        """The threshold of the scores: a number, or a dict with one number per group."""
        return self.operating_point_.threshold

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The scores, larger for `classes_[1]`, as scikit-learn expects.

        If `positive` is `classes_[0]`, the scores have the opposite sign. For an ask about classes the scores are those
        of each class less its shift, so that the largest is that of the predicted class; of two classes it is the
        difference.

        Args:
            X: The features.

        Returns:
            One score per row, or one per row and class; for several labels one per row and label, above 0 where the
            label is given.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        if self.operating_point_.labels:
            return np.asarray(scores - self.operating_point_.thresholds.tensor().numpy())
        if self.operating_point_.classes:
            shifted: NDArray[np.float64] = scores - self.operating_point_.thresholds.tensor().numpy()
            return np.asarray(shifted[:, 1] - shifted[:, 0]) if shifted.shape[1] == 2 else shifted
        return scores if self._positive_place == 1 else -scores

    def predict(self, X: Any, groups: Any = None, lists: Any = None) -> NDArray[Any]:
        """The class of each row at the operating point.

        A row to review has the class of rows that are not flagged; `decide` tells the three decisions apart.

        Args:
            X: The features.
            groups: One group per row, for asks that compare groups.
            lists: One list per row, for asks about lists; each list must be whole.

        Returns:
            One class per row; for several labels `(n, L)` of 0 and 1.

        Raises:
            BadProblem: If the ask is an area, which has many thresholds and so no single class per row.
        """
        check_is_fitted(self)
        if self.operating_point_.problem.over is not None:
            raise BadProblem(
                f"'{self.operating_point_.problem}' has one threshold per point of its range, so a row has no single "
                "class; use decision_function, or operating_point_.predict(scores) for the decision at each threshold"
            )
        scores = self._scores(X)
        groups = read_groups(self.operating_point_.problem, groups, len(scores))
        if self.operating_point_.labels:
            return np.asarray(self.operating_point_.predict(scores))
        if self.operating_point_.classes:
            return np.asarray(self.classes_[self.operating_point_.predict(scores)])
        lists = read_lists(self.operating_point_.problem, lists, len(scores))
        passed = self.operating_point_.predict(scores, groups, lists=lists) == 1
        place = self._positive_place
        return np.asarray(self.classes_[np.where(passed, place, 1 - place)])

    def decide(self, X: Any, groups: Any = None, lists: Any = None) -> NDArray[np.int64]:
        """The decision on each row: 1 for flagged, 0 for not flagged, -1 for a row to review; or its class number.

        Args:
            X: The features.
            groups: One group per row, for asks that compare groups.
            lists: One list per row, for asks about lists; each list must be whole.

        Returns:
            One decision per row; for areas one column per threshold.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        problem = self.operating_point_.problem
        groups, lists = read_groups(problem, groups, len(scores)), read_lists(problem, lists, len(scores))
        decisions: NDArray[np.int64] = self.operating_point_.predict(scores, groups, lists=lists)
        return decisions

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        lists: Any = None,
        values: Any = None,
    ) -> float:
        """The objective at the best threshold of these rows, as `GridSearchCV` needs it: larger is better.

        It compares models, not thresholds; `judge` gives the rates at the model's own threshold.

        Args:
            X: The features.
            y: The class of each row.
            sample_weight: One weight per row, if any.
            groups: One group per row, for asks that compare groups.
            lists: One list per row, for asks about lists; each list must be whole.
            values: The values of the columns that the ask names, such as amounts, by name: a dict or a frame. None
                takes them from X, if that is a frame with those columns.

        Returns:
            The objective, negative if it is minimised; if no threshold meets the bounds, -1 less the violation, which
            is below every rate, and for asks about worth a number far below every cost.
        """
        asked = self._asked(X, y, sample_weight, groups, lists, values)
        point = evaluate(self.operating_point_.problem, **asked)
        if not point.feasible:
            return (WORST if point.problem.columns else -1.0) - point.violation
        return point.objective if point.problem.maximize else -point.objective

    def judge(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        lists: Any = None,
        values: Any = None,
    ) -> OperatingPoint:
        """The true rates of these rows at the threshold of `predict`.

        Args:
            X: The features.
            y: The class of each row.
            sample_weight: One weight per row, if any.
            groups: One group per row, for asks that compare groups.
            lists: One list per row, for asks about lists; each list must be whole.
            values: The values of the columns that the ask names, such as amounts, by name: a dict or a frame. None
                takes them from X, if that is a frame with those columns.

        Returns:
            The operating point with the rates of these rows, and whether the bounds hold.
        """
        return self.operating_point_.judge(**self._asked(X, y, sample_weight, groups, lists, values))

    def check(
        self, X: Any, y: Any, groups: Any = None, lists: Any = None, values: Any = None, clusters: Any = None
    ) -> Check:
        """Test the bounds on these rows at the threshold of `predict`.

        Args:
            X: The features.
            y: The class of each row.
            groups: One group per row, for asks that compare groups.
            lists: One list per row, for asks about lists; each list must be whole.
            values: The values of the columns that the ask names, such as amounts, by name: a dict or a frame. None
                takes them from X, if that is a frame with those columns.
            clusters: One cluster per row, such as the patient, where rows of a cluster depend on each other.

        Returns:
            The result of the test, with a p-value per bound.
        """
        return self.operating_point_.check(**self._asked(X, y, None, groups, lists, values), clusters=clusters)

    def _asked(self, X: Any, y: Any, sample_weight: Any, groups: Any, lists: Any, values: Any) -> dict[str, Any]:
        check_is_fitted(self)
        scores, problem = self._scores(X), self.operating_point_.problem
        check_consistent_length(scores, y)
        return {
            "scores": scores,
            "labels": self._labels(y),
            "weights": with_values(
                problem, read_weights(sample_weight, len(scores)), read_values(problem, values, X, len(scores))
            ),
            "groups": read_groups(problem, groups, len(scores)),
            "lists": read_lists(problem, lists, len(scores)),
        }

    def _labels(self, y: Any) -> NDArray[Any]:
        """The number of each row's class for an ask about classes, the labels, or whether the row is positive."""
        if self.operating_point_.labels:
            return known_labels(self.operating_point_.problem, y)
        codes = known_codes(y, self.classes_)
        return codes if self.operating_point_.classes else codes == self._positive_place

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            problem = read_ask(self.ask)
        except SetpointError:
            tags.classifier_tags.multi_class = False
            return tags
        tags.classifier_tags.multi_class = problem.kind == CLASSES or problem.is_of_errors
        tags.classifier_tags.multi_label = is_about_labels(problem, np.zeros((0, 2)))
        return tags
