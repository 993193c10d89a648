"""Sparse features: the same batches as dense ones, made a batch at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

import setpoint as sp
from setpoint.data.rows import SparseRows
from setpoint.errors import NotEnoughMemory, ShapeMismatch
from setpoint.train.identity import loader_identity

PROBLEM = "minimize fnr where fpr <= 20%"


def data(rows=700, features=40):
    draw = np.random.default_rng(0)
    x = scipy.sparse.random_array((rows, features), density=0.1, rng=draw, format="csr")
    labels = (x.sum(1) + 0.3 * draw.normal(size=rows) > 2.2).astype(np.float32)
    return x, torch.from_numpy(labels)


def kinds(x):
    dense = torch.from_numpy(x.toarray()).float()
    return {"csr": x, "coo": x.tocoo(), "matrix": scipy.sparse.csr_matrix(x), "torch coo": dense.to_sparse(),
            "torch csr": dense.to_sparse_csr()}  # fmt: skip


@pytest.mark.parametrize("kind", ["csr", "coo", "matrix", "torch coo", "torch csr"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_the_dense_table(kind, shuffle):
    x, labels = data()
    dense = torch.from_numpy(x.toarray()).float()
    mine = sp.Batches(kinds(x)[kind], labels, batch_size=64, shuffle=shuffle, seed=3)
    theirs = sp.Batches(dense, labels, batch_size=64, shuffle=shuffle, seed=3)
    assert len(mine) == len(theirs)
    for _ in range(2):
        for one, other in zip(mine, theirs, strict=True):
            assert torch.equal(one.x, other.x)
            assert torch.equal(one.labels, other.labels)
            assert torch.equal(one.index, other.index)


def test_no_more_than_a_batch_is_ever_dense(monkeypatch):
    monkeypatch.setattr("setpoint.data.batch.DENSE_AT_ONCE", 100)
    x, labels = data()
    assert [len(batch.x) for batch in sp.Batches(x, labels)] == [100] * 7


def test_a_fit_on_sparse_rows_ends_where_one_on_dense_rows_does():
    x, labels = data()
    dense = torch.from_numpy(x.toarray()).float()

    def fitted(x):
        torch.manual_seed(0)
        parts = [sp.Batches(x[rows], labels[rows], batch_size=100, shuffle=rows.start == 0)
                 for rows in (slice(0, 400), slice(400, 550), slice(550, 700))]  # fmt: skip
        solver = sp.ImplicitThreshold(sp.ask(PROBLEM))
        return sp.fit(torch.nn.Linear(40, 1), PROBLEM, parts[0], parts[1], solver, calibration=parts[2], epochs=3)

    mine, theirs = fitted(x), fitted(dense)
    assert mine.history == theirs.history
    assert torch.equal(mine.model.weight, theirs.model.weight)


def test_the_identity_is_that_of_the_content():
    x, labels = data()
    other = x.copy()
    other.data[5] += 1
    same = loader_identity(sp.Batches(x, labels))
    assert same == loader_identity(sp.Batches(x.copy(), labels))
    assert same != loader_identity(sp.Batches(other, labels))


def test_a_sparse_table_too_wide_to_be_dense_is_refused_before_it_is(monkeypatch):
    rows, width = 20_000, 50_000_000
    x = scipy.sparse.csr_array((np.ones(rows), (np.arange(rows), np.arange(rows))), shape=(rows, width))
    monkeypatch.setattr(SparseRows, "index_select", lambda *_: pytest.fail("made dense"))
    labels = (torch.arange(rows) % 2).float()
    with torch.device("meta"):
        model = torch.nn.Linear(width, 1)
    with pytest.raises(NotEnoughMemory, match="mini-batches"):
        sp.fit(model, PROBLEM, sp.Batches(x, labels), sp.Batches(x, labels), sp.Ridge())
    with pytest.raises(ShapeMismatch, match="x has 20000 rows"):
        sp.Batches(x, labels[:5])
