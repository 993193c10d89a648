"""Sparse features: kept as rows of the few numbers that are not zero, made dense a batch at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

#: Rows that are made dense together, unless told.
AT_ONCE = 4096


class SparseRows:
    """A sparse matrix whose rows can be had by number, dense and float32."""

    def __init__(self, rows: scipy.sparse.csr_array) -> None:
        self.rows = rows
        self.shape = rows.shape

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def index_select(self, dim: int, rows: Tensor) -> Tensor:
        """These rows as a tensor; named as that of a tensor, which it stands in for."""
        assert dim == 0
        return torch.from_numpy(self.rows[rows.numpy()].toarray())

    @property
    def parts(self) -> list[Tensor]:
        """All that is stored."""
        return [torch.from_numpy(np.asarray(part)) for part in (self.rows.data, self.rows.indices, self.rows.indptr)]


def sparse_rows(x: Any) -> Any:
    """Sparse matrices of torch and scipy as `SparseRows`; anything else as it is."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        coo = x.detach().cpu().to_sparse_coo().coalesce()
        x = scipy.sparse.coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))
    if scipy.sparse.issparse(x):
        return SparseRows(scipy.sparse.csr_array(x).astype(np.float32))
    return x
