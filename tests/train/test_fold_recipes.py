"""The linear models of all folds at once are those of each fold by itself."""

import pytest
import torch

import setpoint as sp
from marks import quick_first
from setpoint.data.rows import Rows
from setpoint.train import fold_recipes
from setpoint.train.cross_fit import folds_of
from setpoint.train.fold_recipes import FoldRecipes
from setpoint.train.full_batch import read_rows
from setpoint.train.penalty import LinearPenalty
from setpoint.train.recipes import Recipes
from setpoint.train.stacked_rows import StackedRows

ASKS = (
    "minimize fnr where fpr <= 5%",
    "maximize precision where recall >= 80%",
    "maximize f1",
    "maximize precision over recall in [50%, 90%] with 3 points",
)


def noisy(size=403, weighted=False):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(size, 4, generator=draw)
    labels = (x[:, 0] + 0.5 * x[:, 1] + torch.randn(size, generator=draw) > 0.7).float()
    return Rows(x, labels, torch.rand(size, generator=draw) + 0.5 if weighted else None)


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("penalty", quick_first([LinearPenalty(), LinearPenalty(16.0), LinearPenalty(0.0, 3.0)]))
@pytest.mark.parametrize("weighted", quick_first([True, False]))
def test_all_folds_at_once_give_the_models_of_each_fold(ask, penalty, weighted):
    problem, rows = sp.ask(ask), noisy(weighted=weighted)
    folds = folds_of(rows, 5, 0)
    loader = sp.Batches(rows.x, rows.labels, weights=rows.weights)
    recipes = FoldRecipes(problem, sp.methods.Data(loader, loader), rows, folds, penalty)
    assert recipes.takes_asked
    for fold in range(5):
        inside = rows.take(folds != fold)
        own, _ = read_rows([sp.Batches(inside.x, inside.labels, weights=inside.weights)], torch.nn.Linear(4, 1))
        alone = Recipes(problem, own, penalty)
        for made, expected in ((recipes.plain_of(fold), alone.plain), (recipes.anchored_of(fold), alone.anchored())):
            torch.testing.assert_close(made.make(alone), expected, rtol=1e-5, atol=1e-6)


def test_a_set_does_not_depend_on_the_sets_beside_it():
    sets = [read_rows([sp.Batches(r.x, r.labels)], torch.nn.Linear(4, 1))[0] for r in (noisy(203), noisy(404))]
    problem = sp.ask(ASKS[0])

    def matched(some):
        stacked = StackedRows(some)
        plain, _ = stacked.cross_entropy(stacked.class_weights(torch.ones(len(some)).double()))
        return stacked.match(problem, plain)[0]

    both = matched(sets)
    torch.testing.assert_close(torch.cat([matched(sets[:1]), matched(sets[1:])]), both, rtol=1e-9, atol=1e-9)


def test_folds_in_which_a_lasso_keeps_other_columns_are_filled_up():
    rows = noisy()
    loader = sp.Batches(rows.x, rows.labels)
    folds = folds_of(rows, 5, 0)
    data = sp.methods.Data(loader, loader)
    recipes = FoldRecipes(sp.ask(ASKS[0]), data, rows, folds, LinearPenalty(0.0, 3.0))
    assert recipes.is_small
    assert len(set(recipes._stacked.features)) > 1
    narrow = min(range(5), key=recipes._stacked.features.__getitem__)
    features = recipes._stacked.features[narrow]
    assert torch.equal(recipes.anchored[narrow, features:-1], torch.zeros(recipes._stacked.width - 1 - features))


def test_large_tables_and_lassos_that_keep_much_go_fold_by_fold(monkeypatch):
    rows = noisy()
    loader = sp.Batches(rows.x, rows.labels)
    data, folds = sp.methods.Data(loader, loader), folds_of(rows, 5, 0)

    def made(penalty):
        return FoldRecipes(sp.ask(ASKS[0]), data, rows, folds, penalty)

    monkeypatch.setattr(fold_recipes, "FEW_VALUES", 3 * len(rows.labels))
    assert not made(LinearPenalty()).is_small
    assert made(LinearPenalty()).anchored_of(0).make is Recipes.anchored
    assert made(LinearPenalty(0.0, 30.0)).is_small
    assert not made(LinearPenalty(0.0, 0.1)).is_small
