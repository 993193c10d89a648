"""A scikit-learn classifier that is trained for an ask, with plain cross-entropy beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from setpoint.decide.calibrate import calibrate
from setpoint.decide.certify import is_certifiable
from setpoint.decide.lists import refuse_few_lists
from setpoint.decide.settle import Confidence, demanded, read_confidence, warn_of_refusal
from setpoint.errors import BadSetting
from setpoint.estimator.decision import DecidesAtPoint
from setpoint.estimator.features import Scorer, read_features
from setpoint.estimator.labels import is_about_labels, read_labels
from setpoint.estimator.module import Network
from setpoint.estimator.rows import (
    check_shares,
    classes_for,
    is_foreseeable,
    names_of,
    positive_place,
    read_ask,
    read_clusters,
    read_groups,
    read_lists,
    read_values,
    read_weights,
    refuse_missing,
    refuse_positive,
    set_aside,
    with_values,
)
from setpoint.estimator.training import AUTO, Part, Parts, Training, comparison, refuse_device
from setpoint.measure.classes import CLASSES
from setpoint.measure.lists import number_lists
from setpoint.problem.caution import warn_of_ask
from setpoint.problem.certificate import AUTO as IF_POSSIBLE
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import OneThreshold
from setpoint.run.settings import Settings
from setpoint.train.default import BASELINE
from setpoint.train.history import History
from setpoint.train.splits import Splits

PARAMETER = "module__"


class SetpointClassifier(DecidesAtPoint):
    """A scikit-learn classifier that is trained for an ask and predicts at its operating point.

    Features are standardised inside, and frames are encoded as tables are. With the solver "default", and with "auto"
    for a linear model, the model is retrained on training and held-out rows together.

    Args:
        ask: The text of an ask, or a problem; for several labels per row also a dict from each label to its ask.
        solver: A name that `setpoint fit --solver` takes, a recipe (`sp.Anchored()`), a solver, or a function that
            makes one from a problem.
        module: None for a linear model, "mlp", or an `nn.Module` class. Parameters `module__x` go to its constructor,
            and so does the number of features if it takes `in_features` or `n_features`, and for an ask about classes
            their number if it takes `out_features` or `n_classes`.
        epochs: The largest number of passes over the training rows; None chooses by the number of rows.
        batch_size: The rows per batch; None chooses by the number of rows.
        confidence: The probability with which the bounds are to hold on new data. "auto" is 0.95 where the calibration
            rows suffice, and else a warning; a number that cannot be had is an error; None asks for no certificate.
        held_out: The share of the rows that choose the epoch or solver; 0 chooses on the training rows.
        calibration: The share of the rows that set the threshold; 0 sets it on the held-out rows.
        positive: The positive class; None takes the second of the sorted classes.
        random_state: The seed of the split and of the training.
        device: The device to train on.
        ensemble: The number of models with different seeds whose scores are averaged, or `sp.methods.Splits(k)` for
            models on different splits, which are not retrained.
        kinds: The kind that a column is taken as, by its name: {"region": "categorical"}, or "numeric", "hash" (hashed
            values), "text" (hashed words) or "target-encode" (the log-odds of each value). None leaves it to the
            values: words and categories are levels.

    Attributes:
        operating_point_: The threshold, its true rates, and the certificate if there is one.
        threshold_: The threshold of the scores.
        cost_of_certificate_: How much better the objective is at the bare cut of the calibration rows, if certified.
        comparison_: One dict per candidate; plain cross-entropy is always among them.
        history_: One dict per epoch or candidate.
        model_: The trained torch module, on raw features; for frames with words or gaps, on encoded ones.
        classes_: The two classes, sorted; all classes, where the ask is about classes; for several labels 0 and 1 for
            each.

    Example:
        >>> import numpy as np, setpoint as sp
        >>> X, y = np.arange(200.0).reshape(-1, 1), np.arange(200) >= 100
        >>> clf = sp.SetpointClassifier("minimize fnr where fpr <= 10%", solver="default").fit(X, y)
        >>> clf.predict([[0.0], [199.0]]).tolist()
        [False, True]
    """

    model_: Scorer
    history_: History
    comparison_: list[dict[str, Any]]
    cost_of_certificate_: float | None

    def __init__(
        self,
        ask: Any = "maximize f_score(1)",
        *,
        solver: Any = "auto",
        module: Any = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        confidence: Any = IF_POSSIBLE,
        held_out: float = 0.2,
        calibration: float = 0.2,
        positive: Any = None,
        random_state: Any = 0,
        device: str = "cpu",
        ensemble: Any = 1,
        kinds: Any = None,
        **module_parameters: Any,
    ) -> None:
        self.ask = ask
        self.solver = solver
        self.module = module
        self.epochs = epochs
        self.batch_size = batch_size
        self.confidence = confidence
        self.held_out = held_out
        self.calibration = calibration
        self.positive = positive
        self.random_state = random_state
        self.device = device
        self.ensemble = ensemble
        self.kinds = kinds
        for name, value in module_parameters.items():
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters, including those of the module as `module__x`."""
        return {**super().get_params(deep=deep), **self._more_params()}

    def set_params(self, **params: Any) -> SetpointClassifier:
        """Set parameters; each `module__x` is checked when the module is built."""
        super().set_params(**{name: value for name, value in params.items() if not name.startswith(PARAMETER)})
        for name, value in params.items():
            if name.startswith(PARAMETER):
                setattr(self, name, value)
        return self

    def _more_params(self) -> dict[str, Any]:
        """Parameters that the constructor does not name; learned attributes start or end with `_`."""
        named = self._get_param_names()
        return {
            name: value
            for name, value in vars(self).items()
            if name not in named and not name.startswith("_") and not name.endswith("_")
        }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        lists: Any = None,
        values: Any = None,
        clusters: Any = None,
    ) -> SetpointClassifier:
        """Train the model and set the threshold.

        Args:
            X: The features: an array or sparse matrix of numbers, or a data frame of pandas, polars or Arrow, whose
                columns may hold words, categories, booleans, dates and missing values too.
            y: The class of each row; for several labels per row one column of 0 and 1 per label, with NaN or None where
                a label is not known.
            sample_weight: One weight per row; rows of weight 0 are left out.
            groups: One group per row, for asks that compare groups.
            lists: One list per row, by name or number, for asks about lists; lists are never split.
            values: The values of the columns that the ask names, such as amounts, by name: a dict or a frame. None
                takes them from X, if that is a frame with those columns.
            clusters: One cluster per row, such as the patient, where rows of a cluster depend on each other: a cluster
                stays in one part, and the certificate is over clusters.

        Returns:
            The fitted classifier.

        Raises:
            TooFewSamples: If there are too few rows for the certificate that a number as `confidence` demands.
        """
        read_confidence(self.confidence)
        problem = read_ask(self.ask)
        warn_of_ask(problem)
        check_shares(held_out=self.held_out, calibration=self.calibration)
        table = None
        if is_about_labels(problem, y):
            problem, table = read_labels(problem, y)
            x = read_features(self, X, reset=True)
            check_consistent_length(x, table)
        else:
            refuse_missing(y)
            x, y = read_features(self, X, y, reset=True)
        rows = x.shape[0]
        weights, groups = read_weights(sample_weight, rows), read_groups(problem, groups, rows)
        lists = read_lists(problem, lists, rows)
        numbers = None if lists is None else number_lists(lists)[0].numpy()
        counted = read_values(problem, values, X, rows)
        kept = np.ones(rows, dtype=bool) if weights is None else weights > 0
        names: tuple[str, ...] = ()
        if table is None:
            problem, self.classes_, codes = classes_for(problem, y[kept])
        refuse_positive(problem, self.positive)
        if isinstance(problem, LabelProblem):
            assert table is not None
            self.classes_, names, labels = [np.arange(2) for _ in problem.labels], problem.labels, table
        elif problem.kind == CLASSES:
            names, labels = tuple(names_of(np.asarray(self.classes_))), np.zeros(rows, dtype=np.int64)
            labels[kept] = codes
        else:
            labels = np.zeros(rows, dtype=np.float32)
            labels[kept] = codes == positive_place(self.classes_, self.positive)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        units = read_clusters(clusters, rows)
        parts = self._split(Part(x, labels, weights, groups, numbers, counted, units).take(kept), seed)
        aside = parts.calibration
        # Whether a demanded bound can be certified may depend only on the number of samples: say so before training.
        sure_of = demanded(self.confidence)
        if aside.lists is not None and sure_of is not None:
            refuse_few_lists(problem, len(np.unique(aside.lists)), sure_of)
        elif aside.lists is None and is_foreseeable(problem):
            calibrate(
                problem, np.zeros(aside.labels.shape), aside.labels, confidence=sure_of, clusters=aside.clusters,
                weights=with_values(problem, aside.weights, aside.values), groups=aside.groups,
            )  # fmt: skip
        # Without held-out rows there is nothing to choose by, so "auto" is the simplest candidate.
        by_name = isinstance(self.solver, str) and self.solver == AUTO
        solver = BASELINE if by_name and parts.held_out is parts.train else self.solver
        parts = replace(parts, train=parts.train.repeated())
        # No certificate covers rows that the model was trained on or chosen by.
        sure = self.confidence if parts.own_calibration else None
        training = self._training(problem, len(parts.train.labels), seed, sure)
        encoding, found = replace(training, classes=names).run(solver, parts)
        if self.confidence is not None and is_certifiable(problem) and not self.calibration:
            warn_of_refusal("a certificate needs rows of its own; set calibration to a share such as 0.2")
        warn_of_refusal(found.refusal)
        self.model_, self.history_ = Scorer(encoding, found.model.cpu()).eval(), found.history
        self.comparison_ = comparison(found, over_splits=isinstance(self.ensemble, Splits))
        point = found.point
        if point.thresholds.single is not None:
            # Scikit-learn expects decision_function to change its sign where predict changes the class.
            self.model_.threshold.fill_(point.thresholds.single)
            point = replace(point, thresholds=OneThreshold(0.0))
        self.operating_point_ = point
        self.cost_of_certificate_ = found.cost_of_certificate
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The logistic function of `decision_function`, one column per class; 0.5 is the operating point.

        Of several labels it has one column per label. Of several classes it is their softmax. These are not calibrated
        probabilities; wrap the classifier in `CalibratedClassifierCV` for that.

        Args:
            X: The features.

        Returns:
            An array `(n, 2)`, `(n, K)` for K classes, or `(n, L)` for L labels.
        """
        check_is_fitted(self)
        if self.operating_point_.labels:
            return np.asarray(expit(self.decision_function(X)))
        if len(self.classes_) > 2:
            return np.asarray(softmax(self.decision_function(X), axis=1))
        second = expit(self.decision_function(X))
        return np.stack([1 - second, second], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self.model_.score(read_features(self, X, reset=False))

    def _training(self, problem: Problem, rows: int, seed: int, confidence: Confidence) -> Training:
        for name in ("epochs", "batch_size"):
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | np.integer)):
                raise BadSetting(f"{name} must be a whole number or None, got {number!r}")
        refuse_device(self.device)
        settings = Settings(epochs=self.epochs, batch_size=self.batch_size, seed=seed, confidence=confidence)
        more = self._more_params()
        for name in more:
            if not name.startswith(PARAMETER):
                raise BadSetting(f"SetpointClassifier takes no parameter {name!r}; those of its module are module__x")
        own = {name.removeprefix(PARAMETER): value for name, value in more.items()}
        return Training(problem, Network(self.module, own), settings.settled(rows), self.device, self.ensemble)

    def _split(self, whole: Part, seed: int) -> Parts:
        if demanded(self.confidence) is not None and self.calibration == 0:
            raise BadSetting("a certificate needs rows of its own; set calibration to a share such as 0.2")
        shares = {"held_out": self.held_out, "calibration": self.calibration}
        rows = set_aside(
            whole.labels, whole.groups, seed, demanded(self.confidence), whole.lists, whole.clusters, **shares
        )
        if rows is None:
            return Parts(whole, whole, whole, apart=False, own_calibration=False)
        train, held_out, calibration = (whole.take(part) for part in rows)
        held_out = held_out if self.held_out else train
        apart = bool(self.held_out and self.calibration)
        own = bool(self.calibration)
        return Parts(train, held_out, calibration if own else held_out, apart, own)
