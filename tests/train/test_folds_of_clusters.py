"""Folds keep the rows of one cluster together, at every place that cuts rows into folds."""

from __future__ import annotations

import pytest
import torch

from doors import FIT, main_ok
from setpoint.data.rows import Rows
from setpoint.data.split import folds_of_clusters
from setpoint.errors import TooFewSamples
from setpoint.train import cross_fit
from setpoint.train.cross_fit import folds_of
from setpoint.train.penalty import deal_folds
from tables import loans


def rows(patients=40, each=5):
    clusters = torch.arange(patients).repeat_interleave(each)
    labels = (torch.arange(patients * each) % 3 == 0).double()
    return Rows(torch.arange(patients * each).double()[:, None], labels, clusters=clusters)


@pytest.mark.parametrize("cut", [lambda r: folds_of(r, 5, 0), deal_folds], ids=["cross-fit", "penalty"])
def test_a_cluster_is_in_one_fold(cut):
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    some = Rows.join([rows().take(order[:90]), rows().take(order[90:])])
    fold = cut(some)
    assert fold.unique().tolist() == [0, 1, 2, 3, 4]
    for cluster in range(40):
        assert len(fold[some.clusters == cluster].unique()) == 1


def test_few_clusters_make_fewer_folds_and_one_is_refused():
    few = rows(patients=3)
    assert folds_of_clusters(few.labels, few.clusters, 5, 0).unique().tolist() == [0, 1, 2]
    alone = rows(patients=1)
    with pytest.raises(TooFewSamples):
        folds_of_clusters(alone.labels, alone.clusters, 5, 0)


def test_the_folds_of_a_fit_by_clusters_keep_them_whole(tmp_path, monkeypatch):
    loans(600).write_csv(tmp_path / "loans.csv")
    monkeypatch.chdir(tmp_path)
    seen, fold = [], cross_fit.folds_of

    def noted(rows, most, seed):
        found = fold(rows, most, seed)
        seen.append((rows.clusters, found))
        return found

    monkeypatch.setattr(cross_fit, "folds_of", noted)
    main_ok(*FIT, "--model", "trees", "--cluster", "age", "--quiet")
    assert seen
    for clusters, found in seen:
        assert clusters is not None
        assert all(len(found[clusters == one].unique()) == 1 for one in clusters.unique())
