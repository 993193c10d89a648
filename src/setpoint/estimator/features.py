"""From X of scikit-learn to scores: features are checked, standardised and passed to a network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from setpoint.data.rows import DENSE_AT_ONCE as SPARSE_AT_ONCE
from setpoint.data.standardise import Standardiser, soften
from setpoint.errors import BadTable
from setpoint.train.scoring import AT_ONCE, score_rows


def read_features(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """X as float64, checked by scikit-learn, and y if it is given; columns of words are refused by name.

    Sparse X is given as sparse rows.
    """
    words = _columns_of_words(X)
    if words:
        listed = ", ".join(map(repr, words[:4])) + (", ..." if len(words) > 4 else "")
        raise BadTable(
            f"X must hold numbers, but there are categories or text in {listed}; put an encoder in front, such as "
            f"make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), {words[:4]}), "
            f"remainder='passthrough'), {type(estimator).__name__}())"
        )
    return validate_data(estimator, X, y, reset=reset, dtype=np.float64, accept_sparse="csr")


def _columns_of_words(X: Any) -> list[str]:
    """The columns of a data frame that do not hold numbers; empty if X is not a data frame."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return []
    return [str(name) for name, dtype in zip(X.columns, X.dtypes) if not _holds_numbers(X[name], dtype)]


def _holds_numbers(column: Any, dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) in ("Boolean", "Null")
    if str(dtype) == "category" or getattr(dtype, "kind", "O") not in "biufcO":
        return False
    return dtype.kind != "O" or not any(isinstance(value, str) for value in column)


def _dense_parts(x: Any) -> Iterator[Tensor]:
    size = SPARSE_AT_ONCE if scipy.sparse.issparse(x) else AT_ONCE
    for first in range(0, x.shape[0], size):
        part = x[first : first + size]
        yield torch.from_numpy(part.toarray() if scipy.sparse.issparse(x) else part)


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

    def forward(self, x: Tensor) -> Tensor:
        return soften(Standardiser(self.mean, self.spread).apply(x)).to(x.dtype)


class Scorer(nn.Module):
    """A network on raw features whose scores are shifted by the threshold, so that they pass above 0."""

    threshold: Tensor

    def __init__(self, standardise: Standardise, network: nn.Module) -> None:
        super().__init__()
        self.standardise = standardise
        self.network = network
        self.register_buffer("threshold", torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Scores `(n,)` of raw features `(n, d)`."""
        scores: Tensor = self.network(self.standardise(x)).reshape(len(x))
        return (scores - self.threshold).to(scores.dtype)

    def score(self, x: Any) -> NDArray[np.float64]:
        """The scores of an array or sparse rows, in batches of float32 features, as in training."""
        with torch.no_grad():
            scores = [score_rows(self.network, self.standardise(part).float()) for part in _dense_parts(x)]
        return np.asarray((torch.cat(scores).double() - self.threshold).numpy())
