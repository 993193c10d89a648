"""From X of scikit-learn to scores: features are checked, standardised and passed to a network."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data
from torch import Tensor, nn

from setpoint.data.layout import Block
from setpoint.data.rows import DENSE_AT_ONCE as SPARSE_AT_ONCE
from setpoint.data.standardise import Standardiser, soften
from setpoint.errors import BadTable
from setpoint.train.scoring import AT_ONCE, score_rows


def read_features(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """X as float64, checked by scikit-learn, and y if it is given. Sparse X is given as sparse rows.

    A frame with words, dates or missing values, and an array with missing values, is given as a `Table`.
    """
    kinds = getattr(estimator, "kinds", None) or {}
    as_table = bool(kinds) or not _is_plain(X) if reset else estimator._by_columns
    if not as_table:
        how: dict[str, Any] = {"dtype": np.float64, "accept_sparse": "csr", "ensure_all_finite": "allow-nan"}
        read = validate_data(estimator, _frames().as_frame(X) if _is_columns(X) else X, y, reset=reset, **how)
        as_table = _holds_nan(read if isinstance(y, str) else read[0]) and reset
        if not as_table:
            if reset:
                estimator._by_columns = False
            return read
    if scipy.sparse.issparse(X):
        raise BadTable("X is sparse, but the model takes a frame with columns of several kinds; give X as a frame")
    names = getattr(estimator, "feature_names_in_", None) if not reset else None
    frame = _frames().as_columns(X, None if names is None else list(names))
    validate_data(estimator, frame if _is_named(X) else X, y, reset=reset, skip_check_array=True)
    if not reset:
        return _frames().Table(frame, {}, {}, _is_named(X))
    estimator._by_columns = True
    if isinstance(y, str):
        return _frames().Table.of(frame, kinds, _is_named(X))
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=None), warn=True)
    check_consistent_length(frame, y)
    return _frames().Table.of(frame, kinds, _is_named(X)), y


def _frames() -> Any:
    """The file that knows frames, which needs polars."""
    return importlib.import_module("setpoint.estimator.frames")


def _is_columns(X: Any) -> bool:
    """Whether X is an Arrow table or columns by name, which scikit-learn does not take."""
    if scipy.sparse.issparse(X) or hasattr(X, "dtypes"):
        return False
    return isinstance(X, Mapping) or hasattr(X, "__arrow_c_stream__")


def _is_named(X: Any) -> bool:
    return _is_columns(X) or (hasattr(X, "columns") and hasattr(X, "dtypes"))


def _is_plain(X: Any) -> bool:
    """Whether X holds numbers alone, none of which is missing if X is a frame."""
    if isinstance(X, np.ndarray):
        return X.ndim != 2 or X.dtype != object or not any(isinstance(value, str) for value in X.flat)
    if not _is_named(X):
        return True
    if hasattr(X, "isna") and all(str(dtype) != "category" and dtype.kind in "biuf" for dtype in X.dtypes):
        return not bool(X.isna().to_numpy().any())
    return bool(_frames().holds_plain_numbers(_frames().as_frame(X)))


def _holds_nan(x: Any) -> bool:
    if not scipy.sparse.issparse(x):
        return bool(np.isnan(x).any())
    if np.isnan(x.data).any():
        raise BadTable("X is sparse and holds NaN; give missing values in an array or a frame")
    return False


class Standardise(nn.Module):
    """Standardised features, with short tails as on the command line; one that was constant in training is always 0."""

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: Tensor, spread: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)

    @classmethod
    def of(cls, x: Any, weights: NDArray[np.float64] | None) -> Standardise:
        """Mean and spread of the rows, in float64; sparse rows have mean 0, so that they stay sparse."""
        if scipy.sparse.issparse(x):
            size = abs(x).max(axis=0).toarray().ravel()
            scaled = x @ scipy.sparse.diags_array(1 / np.where(size > 0, size, 1.0))
            variance = mean_variance_axis(scaled, 0, weights)[1]
            # A constant feature has a small variance left, by rounding.
            spread = torch.from_numpy(np.sqrt(np.where(variance > 1e-15, variance, 0.0)) * size)
            return cls(torch.zeros_like(spread), spread.where(spread > 0, math.inf))
        own = None if weights is None else torch.from_numpy(weights)
        scale = Standardiser.of(torch.from_numpy(x), own, constant=math.inf)
        return cls(scale.mean.where(scale.spread.isfinite(), 0.0), scale.spread)

    @property
    def blocks(self) -> list[Block]:
        """One amount per feature."""
        return [Block(f"x{place}", "amount", 1) for place in range(len(self.mean))]

    def forward(self, x: Tensor) -> Tensor:
        """Standardised features; the mean stands in for missing values."""
        scaled = soften(Standardiser(self.mean, self.spread).apply(x).numpy())
        return torch.from_numpy(scaled).nan_to_num(0.0).to(x.dtype)

    def features(self, x: Any) -> Tensor:
        """The features of an array, float32."""
        with torch.no_grad():
            return self.forward(torch.from_numpy(x)).float()

    def of_training(self, x: Any, labels: NDArray[Any], weights: NDArray[Any] | None) -> Tensor:
        """The features of the training rows."""
        return self.features(x)

    def parts(self, x: Any) -> Iterator[Tensor]:
        """The features of an array or of sparse rows, some rows at a time."""
        size = SPARSE_AT_ONCE if scipy.sparse.issparse(x) else AT_ONCE
        for first in range(0, x.shape[0], size):
            part = x[first : first + size]
            yield self.features(part.toarray() if scipy.sparse.issparse(x) else part)


def learn_encoding(x: Any, labels: NDArray[Any] | None, weights: NDArray[np.float64] | None) -> Any:
    """The encoding of the training rows: `Standardise` for arrays, `ByColumns` for tables; both have `blocks`.

    Labels are None for several classes.
    """
    if isinstance(x, np.ndarray) or scipy.sparse.issparse(x):
        return Standardise.of(x, weights)
    return _frames().ByColumns.of(x, labels, weights)


class Scorer(nn.Module):
    """A network whose scores are shifted by the threshold, so that they pass above 0."""

    threshold: Tensor

    def __init__(self, encoding: nn.Module, network: nn.Module) -> None:
        super().__init__()
        self.encoding = encoding
        self.network = network
        self.register_buffer("threshold", torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Scores `(n,)`, or `(n, K)` for K classes, of raw features `(n, d)`."""
        scores: Tensor = self.network(self.encoding(x))
        scores = scores.squeeze(-1) if scores.dim() == 2 and scores.shape[1] == 1 else scores
        return (scores - self.threshold).to(scores.dtype)

    def score(self, x: Any) -> NDArray[np.float64]:
        """The scores of an array, sparse rows or a table, in batches of float32 features, as in training."""
        encoding: Any = self.encoding
        with torch.no_grad():
            scores = [score_rows(self.network, part) for part in encoding.parts(x)]
        return np.asarray((torch.cat(scores).double() - self.threshold).numpy())
