"""Areas by pairs: the selection against the exact partial area and a slow loop, surrogates, memory, refusals."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import setpoint as sp
import worlds
from cases import cases
from setpoint.errors import BadProblem
from setpoint.measure.curve import roc_area
from setpoint.measure.pairs import Hinge, Logistic, Sigmoid, SquaredHinge, concordance
from setpoint.solve.pairwise import PairwiseArea, ranked_part

COSTS = {
    Hinge(0.7): lambda x: x.relu(),
    SquaredHinge(1.0): lambda x: x.relu() ** 2,
    Logistic(): torch.nn.functional.softplus,
    Sigmoid(temperature=2.5): lambda x: torch.sigmoid(2.5 * x),
}


def drawn(seed=0, size=60, rare=0.4):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < rare).double()
    scores = torch.randn(size, generator=draw, dtype=torch.float64) + labels
    return scores.requires_grad_(), labels


@given(cases(both_classes=True), st.floats(0, 1), st.floats(0, 1))
def test_with_the_hard_step_the_selected_pairs_are_exactly_the_partial_area(case, one, other):
    low, high = sorted((one, other))
    assume(high - low > 1e-3)
    # Ties stay within a class: where an edge cuts a tie of both, the curve runs aslant through it, which no pair does.
    scores = 2 * case.scores.unique(return_inverse=True)[1].double() + case.labels
    weights = torch.ones_like(scores) if case.weights is None else case.weights
    negative = case.labels == 0
    chosen = ranked_part(scores[negative], weights[negative], (low, high))
    expected = roc_area(scores, case.labels, case.weights, low=low, high=high)
    found = concordance(scores[~negative], scores[negative], weights[~negative], chosen)
    torch.testing.assert_close(found, expected)


def selected(scores, share):
    """Each score's part of the list between two shares, by laying the list out in many thin slices."""
    slices = 4000
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    inside = [0.0] * len(scores)
    for cut in range(slices):
        at = (cut + 0.5) / slices
        if share[0] < at < share[1]:
            inside[order[int(at * len(scores))]] += len(scores) / slices
    return torch.tensor(inside).double()


@pytest.mark.parametrize("surrogate", COSTS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(
    ("parts", "of_negatives", "of_positives"),
    [
        ((), (0, 1), (0, 1)),
        ((sp.ask("maximize recall over fpr in [10%, 30%]"),), (0.1, 0.3), (0, 1)),
        ((sp.ask("minimize fnr over tnr in [70%, 90%]"),), (0.1, 0.3), (0, 1)),
        ((sp.ask("minimize fpr over recall in [60%, 100%]"),), (0, 1), (0.6, 1)),
        ((sp.fpr.between(0, 0.25), sp.recall.between(0.5, 1)), (0, 0.25), (0.5, 1)),
        ((sp.fnr.between(0, 0.5), sp.tnr.between(0.75, 1)), (0, 0.25), (0.5, 1)),
    ],
    ids=["whole", "one-way", "one-way by tnr", "one-way by recall", "two-way", "two-way turned"],
)
def test_value_and_gradient_against_all_pairs(parts, of_negatives, of_positives, surrogate):
    scores, labels = drawn()
    solver = PairwiseArea(*parts, surrogate=surrogate, memory=0)
    loss = solver(scores, labels)
    high, low = scores[labels == 1], scores[labels == 0]
    v, w = selected(high.tolist(), of_positives), selected(low.tolist(), of_negatives)
    costs = COSTS[surrogate](surrogate.margin - (high.unsqueeze(1) - low))
    plain = (v @ costs @ w) / (v.sum() * w.sum())
    torch.testing.assert_close(loss, plain, rtol=2e-3, atol=1e-4)
    torch.testing.assert_close(*(torch.autograd.grad(each, scores)[0] for each in (loss, plain)), rtol=2e-2, atol=1e-4)


@pytest.mark.parametrize(("surrogate", "cost"), [(Sigmoid, torch.sigmoid), (Logistic, torch.nn.functional.softplus)])
def test_the_published_baseline_by_its_formula(surrogate, cost):
    """1 / (N+ |S-|) sum over positives i and the top tenth of the negatives j of cost(-temperature (s_i - s_j))."""
    draw = torch.Generator().manual_seed(5)
    scores = torch.randn(70, generator=draw, dtype=torch.float64).requires_grad_()
    labels = torch.cat([torch.ones(20), torch.zeros(50)])
    solver = PairwiseArea(
        sp.ask("maximize recall over fpr in [0%, 10%]"), surrogate=surrogate(temperature=0.1), memory=0
    )
    top = scores[20:].sort(descending=True).values[:5]
    plain = sum(cost(-0.1 * (high - low)) for high in scores[:20] for low in top) / (20 * 5)
    loss = solver(scores, labels)
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(*(torch.autograd.grad(each, scores)[0] for each in (loss, plain)))
    assert torch.autograd.gradcheck(lambda s: solver(s, labels), (scores,))


def test_only_the_top_of_the_list_and_the_lowest_positives_get_a_gradient():
    scores, labels = drawn()
    solver = PairwiseArea(sp.fpr.between(0, 0.25), sp.recall.between(0.5, 1), surrogate=Logistic(), memory=0)
    (slope,) = torch.autograd.grad(solver(scores, labels), scores)
    for side, share, highest in ((labels == 0, 0.25, True), (labels == 1, 0.5, False)):
        ranks = scores.detach()[side].argsort(descending=highest).argsort()
        touched = slope[side] != 0
        size = int(side.sum())
        assert torch.equal(touched, ranks < -(-size * share // 1))


def test_tied_scores_share_the_edge():
    part = ranked_part(torch.tensor([2.0, 1.0, 1.0, 1.0, 0.0]), torch.ones(5), (0.0, 0.5))
    torch.testing.assert_close(part, torch.tensor([1.0, 0.5, 0.5, 0.5, 0.0]).double())


@pytest.mark.parametrize("surrogate", COSTS, ids=lambda s: type(s).__name__)
def test_small_batches_against_memory_average_to_the_gradient_of_the_whole(surrogate):
    """With the remembered scores those of the same model, batch gradients are unbiased, rare class or not."""
    scores, labels = drawn(size=120, rare=0.1)
    parts = (sp.fpr.between(0, 0.3),)
    (whole,) = torch.autograd.grad(PairwiseArea(*parts, surrogate=surrogate, memory=0)(scores, labels), scores)
    mean = torch.zeros_like(whole)
    for rows in torch.arange(120).split(8):
        solver = PairwiseArea(*parts, surrogate=surrogate, memory=120)
        others = torch.tensor([i for i in range(120) if i not in rows.tolist()])
        # The newest batch overwrites the oldest places, so the rest must be pushed after eight that will go.
        solver(torch.cat([scores[rows], scores[others]]).detach().double(), torch.cat([labels[rows], labels[others]]))
        solver.double()
        loss = solver(scores[rows], labels[rows])
        mean += torch.autograd.grad(loss, scores)[0] * 8 / 120
    torch.testing.assert_close(mean, whole, rtol=1e-4, atol=1e-6)


def test_the_loss_is_that_of_all_remembered_rows_wherever_the_batch_stands_among_them():
    scores, labels = drawn(size=90)
    scores, labels = scores.float(), labels.float()
    solver = PairwiseArea(sp.fpr.between(0, 0.3), memory=91)
    losses = [solver(scores[rows], labels[rows]) for rows in torch.arange(90).split(30)]
    whole = PairwiseArea(sp.fpr.between(0, 0.3), memory=0)(scores, labels)
    torch.testing.assert_close(losses[-1], whole)


def test_a_batch_without_positives_is_ordinary_once_positives_are_remembered():
    scores, labels = drawn()
    solver = PairwiseArea(sp.fpr.between(0, 0.3)).double()
    assert solver(scores, torch.zeros_like(labels)).item() == 0
    solver(scores, labels)
    (slope,) = torch.autograd.grad(solver(scores, torch.zeros_like(labels)), scores)
    assert slope.abs().sum() > 0


def test_the_tilted_world_is_ranked_better_than_by_cross_entropy():
    problem = sp.ask("maximize recall over fpr in [0%, 2%]")
    x, labels = worlds.tilted(4000, 0)
    fresh = worlds.tilted(100_000, 1000)

    def area(solver):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(150):
            loss = solver(model(x).squeeze(-1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            return sp.evaluate(problem, model(fresh[0]).squeeze(-1), fresh[1]).objective

    assert area(PairwiseArea(problem, surrogate=SquaredHinge(), memory=0)) > area(sp.CrossEntropy()) + 0.05


@pytest.mark.parametrize(
    "parts",
    [
        (sp.ask("maximize precision over recall in [90%, 100%]"),),
        (sp.ask("minimize fnr where fpr <= 1%"),),
        (sp.fpr.between(0, 0.1), sp.tnr.between(0, 0.5)),
        (sp.flagged.between(0, 0.1),),
        ("fpr",),
    ],
)
def test_what_is_no_roc_area_is_refused(parts):
    with pytest.raises(BadProblem, match=r"pairs|range"):
        PairwiseArea(*parts)
