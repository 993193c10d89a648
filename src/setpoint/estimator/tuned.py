"""Any classifier, unchanged, run at the threshold for an ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from setpoint.decide.calibrate import calibrate
from setpoint.errors import BadLabels, BadProblem, BadSetting, BadWeights
from setpoint.estimator.decision import DecidesAtPoint
from setpoint.estimator.labels import is_about_labels, read_labels, scores_per_label
from setpoint.estimator.rows import (
    Numbers,
    check_shares,
    classes_for,
    is_foreseeable,
    known_codes,
    names_of,
    read_ask,
    read_clusters,
    read_groups,
    read_values,
    read_weights,
    refuse_missing,
    refuse_positive,
    set_aside,
    with_values,
)
from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.problem.labels import LabelProblem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.shown import html_of

PREFIT = "prefit"
#: Probabilities below this are taken as this, since they have no logarithm.
SMALLEST = 1e-12


def _model_has(method: str) -> Callable[[Tuned], bool]:
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), method)


class Tuned(MetaEstimatorMixin, DecidesAtPoint):  # type: ignore[misc]
    """Give a scikit-learn, XGBoost or LightGBM classifier the threshold for an ask.

    A fitted model is never fitted again: the rows given to `fit` only set the threshold, so they must be rows that the
    model has not seen. A model that is not fitted is cloned and fitted. Scores are those of `decision_function`, or if
    there is none, the probability of the positive class. Asks about several classes give each class a shift, and Y of
    several labels gives each label a threshold.

    Args:
        estimator: The classifier.
        ask: The text of an ask, or a problem; for several labels per row also a dict from each label to its ask.
        confidence: The probability with which the bounds are to hold on new data; None asks for no certificate.
        cv: None sets the share `calibration` of the rows aside for the threshold. A number of folds, or a splitter,
            sets the threshold on out-of-fold scores of all rows and then fits the model to all rows, which allows no
            certificate. "prefit" requires a fitted model.
        calibration: The share of the rows that set the threshold.
        positive: The positive class; None takes the second of the sorted classes.
        random_state: The seed of the split or the folds.

    Attributes:
        estimator_: The fitted model.
        operating_point_: The threshold, its true rates, and the certificate if there is one.
        threshold_: The threshold of the scores.
        classes_: The two classes, sorted; all classes, where the ask is about classes.

    Example:
        >>> import numpy as np, setpoint as sp
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = np.linspace(-1, 1, 200).reshape(-1, 1), np.arange(200) >= 100
        >>> tuned = sp.Tuned(LogisticRegression(), "minimize fnr where fpr <= 10%").fit(X, y)
        >>> tuned.predict([[-1.0], [1.0]]).tolist()
        [False, True]
    """

    def __init__(
        self,
        estimator: Any,
        ask: Any = "maximize f_score(1)",
        *,
        confidence: float | None = None,
        cv: Any = None,
        calibration: float = 0.2,
        positive: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.ask = ask
        self.confidence = confidence
        self.cv = cv
        self.calibration = calibration
        self.positive = positive
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        values: Any = None,
        clusters: Any = None,
        **fit_params: Any,
    ) -> Tuned:
        """Fit the model if it is not fitted, and set the threshold.

        Args:
            X: The features, as the model takes them.
            y: The class of each row; for several labels per row one column of 0 and 1 per label.
            sample_weight: One weight per row, if any.
            groups: One group per row, for asks that compare groups.
            values: The values of the columns that the ask names, such as amounts, by name: a dict or a frame. None
                takes them from X, if that is a frame with those columns.
            clusters: One cluster per row, such as the patient, where rows of a cluster depend on each other: a cluster
                stays in one part, and the certificate is over clusters.
            **fit_params: Further arguments of the model's own `fit`.

        Returns:
            The fitted classifier.

        Raises:
            TooFewSamples: If there are too few rows for the certificate.
        """
        problem = read_ask(self.ask)
        if problem.kind == LISTS:
            raise BadProblem(
                f"'{problem}' flags the first rows of each list, so there is no threshold to set around a model; pass "
                "its scores to sp.calibrate with lists="
            )
        table = None
        if is_about_labels(problem, y):
            problem, table = read_labels(problem, y)
            X, y = indexable(X, table)
        else:
            X, y = _read_rows(X, y)
        weights, groups = read_weights(sample_weight, len(y)), read_groups(problem, groups, len(y))
        counted = read_values(problem, values, X, len(y))
        clusters, prefit = read_clusters(clusters, len(y)), self._is_prefit()
        if table is None:
            problem, self.classes_, _ = classes_for(problem, _classes_of(self.estimator, problem) if prefit else y)
        refuse_positive(problem, self.positive)
        known = names_of(np.asarray(self.classes_)) if problem.kind == CLASSES else None
        if isinstance(problem, LabelProblem):
            self.classes_, known, labels = [np.arange(2) for _ in problem.labels], list(problem.labels), y
            y = y if prefit else _whole_table(self.estimator, y)
        else:
            codes = known_codes(y, np.asarray(self.classes_))
            labels = codes if known else codes == self._positive_place
        width = (len(known),) if known else ()

        def point(rows: Numbers, scores: NDArray[np.float64]) -> OperatingPoint:
            given = (weights, groups, counted, clusters)
            own, names, worth, units = (None if each is None else each[rows] for each in given)
            return calibrate(
                problem, scores, labels[rows], confidence=self.confidence, weights=with_values(problem, own, worth),
                groups=names, classes=known, clusters=units,
            )  # fmt: skip

        everything = np.arange(len(y))
        if prefit:
            if fit_params:
                raise BadSetting(f"the model is fitted already, so {', '.join(fit_params)} would have no effect")
            self.estimator_ = self.estimator
            self.operating_point_ = point(everything, self._scores_of(X, problem))
        elif self.cv is None:
            train, calibration = self._set_aside(labels, groups, clusters)
            # Whether a bound can be certified may depend only on the number of samples: say so before training.
            if is_foreseeable(problem):
                point(calibration, np.zeros((len(calibration), *width)))
            self.estimator_ = self._fitted(X, y, train, self._for_model(weights, groups, fit_params))
            self.operating_point_ = point(calibration, self._scores_of(_safe_indexing(X, calibration), problem))
        else:
            if self.confidence is not None:
                raise BadSetting("no certificate covers out-of-fold scores; leave cv=None, or fit the model elsewhere")
            params = self._for_model(weights, groups, fit_params)
            scores = np.full((len(y), *width), np.nan)
            for train, test in self._folds(X, y, clusters):
                self.estimator_ = self._fitted(X, y, train, params)
                scores[test] = self._scores_of(_safe_indexing(X, test), problem)
            scored = np.flatnonzero(~np.isnan(scores).reshape(len(y), -1).any(1))
            self.operating_point_ = point(scored, scores[scored])
            self.estimator_ = self._fitted(X, y, everything, params)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    @property
    def _repr_html_(self) -> Any:
        """How a notebook shows it: the operating point, if there is one, above the diagram of scikit-learn."""
        point, diagram = getattr(self, "operating_point_", None), super()._repr_html_
        return diagram if point is None else lambda: html_of(point) + diagram()

    @available_if(_model_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The model's own probabilities; `predict` decides at the operating point, which need not be 0.5.

        Args:
            X: The features.

        Returns:
            An array `(n, 2)`, or `(n, K)` for K classes; for several labels as the model gives them.
        """
        check_is_fitted(self)
        chances = self.estimator_.predict_proba(X)
        return chances if isinstance(chances, list) else np.asarray(chances)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return self._scores_of(X, self.operating_point_.problem)

    def _scores_of(self, X: Any, problem: Problem) -> NDArray[np.float64]:
        if problem.kind == LABELS:
            return scores_per_label(self.estimator_, X, len(self.classes_))
        if problem.kind == CLASSES:
            return _scores_per_class(self.estimator_, X, len(self.classes_))
        if hasattr(self.estimator_, "decision_function"):
            scores = np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
            return scores if self._positive_place == 1 else -scores
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)[:, self._positive_place]
        kind = type(self.estimator_).__name__
        raise BadSetting(f"{kind} has neither decision_function nor predict_proba, so there are no scores to cut")

    def _is_prefit(self) -> bool:
        if self.cv is not None and not (isinstance(self.cv, str) and self.cv == PREFIT):
            return False
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as cause:
            if self.cv is None:
                return False
            raise BadSetting(
                f"cv='prefit' needs a fitted model, but this {type(self.estimator).__name__} is not; fit it first, and "
                "wrap it in sklearn.frozen.FrozenEstimator where Tuned itself is cloned, as in cross-validation"
            ) from cause
        return True

    def _set_aside(
        self, labels: NDArray[Any], groups: NDArray[Any] | None, clusters: NDArray[Any] | None
    ) -> list[Numbers]:
        """The row numbers to fit the model to, and those to set the threshold on."""
        check_shares(calibration=self.calibration)
        if self.calibration == 0:
            raise BadSetting("calibration=0 leaves no rows to set the threshold on; give a share such as 0.2, or cv=5")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = set_aside(labels, groups, seed, self.confidence, clusters, calibration=self.calibration)
        return rows or [np.arange(len(labels))] * 2

    def _folds(self, X: Any, y: NDArray[Any], clusters: NDArray[Any] | None) -> Iterator[tuple[Numbers, Numbers]]:
        cv = self.cv
        if isinstance(cv, int):
            if isinstance(cv, bool) or cv < 2:
                raise BadSetting(f"cv must be None, 'prefit', a number of folds from 2 up or a splitter, got {cv!r}")
            kind = KFold if y.ndim > 1 else StratifiedKFold if clusters is None else StratifiedGroupKFold
            cv = kind(cv, shuffle=True, random_state=check_random_state(self.random_state))
        yield from check_cv(cv, y, classifier=True).split(X, y, clusters)

    def _for_model(self, weights: Any, groups: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the model's `fit`: by scikit-learn's metadata routing if it is on, else without groups."""
        given = {name: value for name, value in (("sample_weight", weights), ("groups", groups)) if value is not None}
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **given, **fit_params).estimator.fit)
        given.pop("groups", None)
        if given and not has_fit_parameter(self.estimator, "sample_weight"):
            raise BadWeights(
                f"{type(self.estimator).__name__} takes no sample_weight in fit; leave the weights out, hand over a "
                "fitted model, or turn on scikit-learn's metadata routing and request them there"
            )
        return {**given, **fit_params}

    def _fitted(self, X: Any, y: NDArray[Any], rows: Numbers, params: dict[str, Any]) -> Any:
        """A clone of the model, fitted to some rows; arguments with one value per row are restricted to them."""
        own = {
            name: _safe_indexing(value, rows) if _has_one_per_row(value, len(y)) else value
            for name, value in params.items()
        }
        return clone(self.estimator).fit(_safe_indexing(X, rows), y[rows], **own)

    def get_metadata_routing(self) -> Any:
        """Weights and groups are used here, and passed to the model's `fit` if it requests them."""
        passed_on = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=passed_on)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        own = get_tags(self.estimator).classifier_tags
        tags.classifier_tags.multi_label &= own is not None and own.multi_label
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        tags.input_tags.categorical, tags.input_tags.string = inner.categorical, inner.string
        return tags


def _scores_per_class(model: Any, X: Any, n_classes: int) -> NDArray[np.float64]:
    """One score per class: of `decision_function`, or the logarithms of the probabilities."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        scores = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
    elif hasattr(model, "predict_proba"):
        scores = np.log(np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), SMALLEST, None))
    else:
        scores = np.zeros((0, 0))
    if scores.ndim != 2 or scores.shape[1] != n_classes:
        raise BadSetting(f"{type(model).__name__} gives no score for each of its {n_classes} classes to shift")
    return scores


def _whole_table(model: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Labels to fit a model of scikit-learn to, which must all be known."""
    missing = int(np.isnan(y).any(1).sum())
    if missing:
        raise BadLabels(
            f"{missing} rows of Y hold a label that is not known, to which {type(model).__name__} cannot be fitted; "
            "fit it yourself to the rows you choose, and hand over the fitted model"
        )
    return y.astype(np.int64)


def _has_one_per_row(value: Any, size: int) -> bool:
    return not isinstance(value, str | bytes | dict) and hasattr(value, "__len__") and len(value) == size


def _read_rows(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """X in a form from which rows can be taken, and y; the model itself checks the values of X."""
    if y is None:
        raise BadLabels("Tuned requires y to be passed, but the target y is None")
    refuse_missing(y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    X, y = indexable(X, y)
    return X, np.asarray(y)


def _classes_of(model: Any, problem: Problem) -> NDArray[Any]:
    classes = np.asarray(getattr(model, "classes_", ()))
    many = problem.kind == CLASSES or problem.is_of_errors
    if classes.ndim != 1 or len(classes) < 2 or (len(classes) > 2 and not many):
        kind, told = type(model).__name__, "two or more" if many else "two"
        only = "" if many else "Only binary classification is supported by this ask. "
        raise BadLabels(f"{only}This {kind} knows {classes.size} classes, not {told}")
    return classes
