"""The solver of asks about lists: against ImplicitTopK, its bounds, its slopes, and rows in any order."""

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadGroups, BadProblem, BadWeights
from setpoint.solve.in_lists import BROKEN, ImplicitLists
from setpoint.solve.top_k import ImplicitTopK


def batch(seed=0, lists=9, rows=7):
    draw = torch.Generator().manual_seed(seed)
    numbers = torch.arange(lists).repeat_interleave(rows)[torch.randperm(lists * rows, generator=draw)]
    scores = torch.randn(lists * rows, generator=draw, dtype=torch.float64, requires_grad=True)
    return scores, (torch.rand(lists * rows, generator=draw) < 0.4).double(), 3 * numbers + 5


@pytest.mark.parametrize(("ask", "rate", "sign"), [
    ("maximize precision in the first 3", sp.precision, 1), ("minimize fnr in the first 2", sp.fnr, -1),
])  # fmt: skip
def test_without_bounds_it_is_implicit_top_k_of_padded_lists(ask, rate, sign):
    scores, labels, lists = batch()
    problem = sp.ask(ask)
    solver, padded = ImplicitLists(problem, temperature=2.0), ImplicitTopK(rate, problem.depth, temperature=2.0)
    loss = solver(scores, labels, lists=lists)
    order = torch.stack([(lists == number).nonzero().squeeze(-1) for number in lists.unique()])
    expected = sign * padded(scores[order], labels[order])
    assert loss.item() == pytest.approx(expected.item())
    (slope,), (other,) = (torch.autograd.grad(one, scores, retain_graph=True) for one in (loss, expected))
    assert torch.allclose(slope, other)
    assert slope.abs().sum() > 0


def test_only_broken_bounds_count_and_push_towards_the_bound():
    scores, labels, lists = batch()
    scores = scores.detach()
    free = ImplicitLists(sp.ask("maximize recall in the first 5"), temperature=2.0)(scores, labels, lists=lists)
    bounds = {"precision in the first 2 >= 99%": 1, "precision in the first 2 >= 1%": 0, "hit in the first 1 <= 1%": 1}
    for bound, broken in bounds.items():
        solver = ImplicitLists(sp.ask(f"maximize recall in the first 5 where {bound}"), temperature=2.0)
        loss = solver(scores, labels, lists=lists)
        assert (float(loss) != pytest.approx(float(free))) == bool(broken), bound
        if broken:
            quantity = solver.problem.constraints[0].quantity
            alone = ImplicitLists(sp.minimize(quantity), temperature=2.0)(scores, labels, lists=lists)
            sign = -1 if ">=" in bound else 1
            excess = sign * (float(alone) - solver.problem.constraints[0].bound)
            assert float(loss) == pytest.approx(float(free) + BROKEN * excess)


def test_weights_are_those_of_lists():
    scores, labels, lists = batch()
    twice = lists == lists[0]
    solver = ImplicitLists(sp.ask("maximize precision in the first 3"), temperature=2.0)
    weighted = solver(scores, labels, lists=lists, weights=1.0 + twice.double())
    again = [torch.cat([column, column[twice]]) for column in (scores, labels)]
    repeated = solver(*again, lists=torch.cat([lists, torch.full_like(lists[twice], -1)]))
    assert weighted.item() == pytest.approx(repeated.item())
    with pytest.raises(BadWeights, match="differ in weight"):
        solver(scores, labels, lists=lists, weights=torch.rand(len(lists)))


def test_training_orders_the_rows_and_state_is_kept():
    draw = torch.Generator().manual_seed(1)
    x, lists = torch.randn(600, 3, generator=draw), torch.arange(600) // 10
    labels = (x[:, 0] + 0.3 * torch.randn(600, generator=draw) > 1).float()
    model, solver = torch.nn.Linear(3, 1), ImplicitLists(sp.ask("maximize precision in the first 2"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        solver(model(x).squeeze(-1), labels, lists=lists).backward()
        optimizer.step()
    found = sp.evaluate("maximize precision in the first 2", model(x).squeeze(-1), labels, lists=lists).objective
    best = sp.evaluate("maximize precision in the first 2", x[:, 0], labels, lists=lists).objective
    assert found > best - 0.02
    assert float(solver.temperature) > 0
    assert solver(x[:0, 0], labels[:0], lists=lists[:0]) == 0


def test_refusals():
    with pytest.raises(BadProblem, match="but got 'minimize error'"):
        ImplicitLists(sp.ask("minimize error"))
    with pytest.raises(BadGroups, match="pass lists="):
        ImplicitLists(sp.ask("maximize recall in the first 2"))(torch.zeros(2), torch.zeros(2))
