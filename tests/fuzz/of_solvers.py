"""Targets: every solver, forward and backward, over a few batches of anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st

import setpoint as sp
from fuzz.inputs import (
    Inputs,
    anything,
    label_tensors,
    numbers,
    positive,
    problems,
    rates,
    score_tensors,
    shares,
    small_whole,
    tensors,
    weight_tensors,
)
from fuzz.laws import Draw, finite, finite_gradient, target
from fuzz.of_problem import class_problems
from setpoint.measure.pairs import Hinge, Logistic, Sigmoid, SquaredHinge

steps = st.sampled_from([sp.steps.SigmoidStep, sp.steps.SigmoidStep, sp.steps.SoftplusStep, sp.steps.HingeStep])
memories = st.one_of(st.none(), st.none(), st.integers(0, 8), st.integers(0, 40), st.sampled_from([0, -1]))
temperatures = st.one_of(st.none(), st.none(), positive)
paces = st.one_of(st.floats(1e-6, 1), st.floats(1e-6, 1), numbers)
relaxed = st.one_of(st.none(), st.none(), positive)


def train(draw: Draw, solver: sp.losses.Solver, batches: Callable[[], st.SearchStrategy[Inputs]], **more: Any) -> None:
    """A few batches, refused or answered; the loss, its gradient and the whole state stay finite."""
    if draw(st.booleans()):
        solver.double()
    for place in range(draw(st.integers(1, 3))):
        given = draw(batches())
        solver.train(draw(st.integers(0, 4)) > 0)
        if place == 0 or draw(st.booleans()):
            step(draw, solver, given, **more)
            continue
        try:
            step(draw, solver, given, **more)
        except sp.SetpointError:
            sound(solver)
    finite(solver.status(), "status")


def step(draw: Draw, solver: sp.losses.Solver, given: Inputs, **more: Any) -> None:
    loss = solver(given.scores, given.labels, weights=given.weights, groups=given.groups, **more)
    assert loss.shape == ()
    finite_gradient(loss, given.scores)
    sound(solver)


def sound(solver: sp.losses.Solver) -> None:
    state = {name: value for name, value in solver.state_dict().items() if name.rpartition(".")[2] != "metric"}
    finite(state, "state")


@target
def cross_entropy(draw: Draw) -> None:
    weight = draw(st.one_of(st.none(), st.just("balanced"), positive, st.text(max_size=3)))
    train(draw, sp.CrossEntropy(weight), anything)


@target
def implicit_threshold(draw: Draw) -> None:
    problem = draw(problems())
    slacks = st.one_of(st.none(), st.none(), st.builds(sp.losses.Slack, positive))
    corrections = st.builds(
        sp.losses.Correction, small_whole, st.integers(0, 2), st.integers(0, 1), st.booleans(), slacks
    )
    solver = sp.ImplicitThreshold(
        problem, n_groups=2 if problem.group else None, step=draw(steps), temperature=draw(temperatures),
        memory=draw(memories), correction=draw(st.one_of(st.none(), corrections)),
        slope_penalty=draw(st.one_of(st.just(0.0), st.just(0.0), positive)),
        damping=sp.losses.Damping(price_limit=draw(positive)),
    )  # fmt: skip
    train(draw, solver, anything)


@target
def following_thresholds(draw: Draw) -> None:
    model = torch.nn.Linear(2, 1)
    solver = sp.ImplicitThreshold(
        draw(problems(groups=False)), correction=sp.losses.Correction(draw(st.integers(1, 3)))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=draw(st.floats(1e-3, 1)))
    solver.follow(optimizer)
    for _ in range(3):
        x = torch.randn(8, 2)
        loss = solver(model(x).squeeze(-1), (x[:, 0] > 0).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sound(solver)


@target
def penalty(draw: Draw) -> None:
    problem = draw(problems())
    solver = sp.losses.Penalty(problem, eta=draw(relaxed), n_groups=2 if problem.group else None, memory=draw(memories))
    train(draw, solver, anything)


@target
def with_anchor(draw: Draw) -> None:
    inner = sp.ImplicitThreshold(draw(problems(groups=False)), memory=draw(memories), temperature=draw(temperatures))
    anchor = draw(st.sampled_from([None, sp.CrossEntropy("balanced"), sp.losses.Focal()]))
    train(draw, sp.losses.WithAnchor(inner, anchor, strength=draw(positive)), anything)


@target
def lagrangian(draw: Draw) -> None:
    problem = draw(problems())
    control = draw(st.one_of(st.none(), st.builds(sp.losses.NuPI, positive, shares)))
    solver = sp.Lagrangian(
        problem, n_groups=2 if problem.group else None, climb=sp.losses.Climb(
            draw(positive), control, draw(relaxed), draw(relaxed), start=draw(relaxed)
        ), threshold=draw(relaxed), step=draw(steps),
        temperature=draw(temperatures), memory=draw(memories),
        truth=draw(st.sampled_from([sp.steps.HardStep(), sp.steps.SigmoidStep(2.0)])),
    )  # fmt: skip
    train(draw, solver, anything)


@target
def proxy_lagrangian(draw: Draw) -> None:
    problem = draw(problems())
    solver = sp.losses.ProxyLagrangian(
        problem, n_groups=2 if problem.group else None,
        climb=sp.losses.Climb(draw(positive), start=draw(relaxed)),
        threshold=draw(relaxed), step=draw(steps), temperature=draw(temperatures), memory=draw(memories),
    )  # fmt: skip
    train(draw, solver, anything)


@target
def pairwise_area(draw: Draw) -> None:
    low, high = sorted(draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
    parts = draw(
        st.sampled_from(
            [(), (sp.fpr, "range"), (sp.recall, "range"), (sp.maximize(sp.recall, over=sp.fpr.between(0, 0.3)),)]
        )
    )
    parts = (parts[0].between(low, high),) if "range" in parts else parts
    surrogate = draw(st.sampled_from([Hinge, SquaredHinge, Logistic, Sigmoid]))(draw(st.floats(0, 3)))
    train(draw, sp.losses.PairwiseArea(*parts, surrogate=surrogate, memory=draw(memories)), anything)


@st.composite
def base_losses(draw: st.DrawFn, n_classes: int = 2) -> sp.losses.Solver:
    class_counts = draw(
        st.lists(
            st.one_of(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 10**15), st.integers(-1, 1)),
            min_size=n_classes,
            max_size=n_classes,
        )
    )
    critical = draw(
        st.one_of(
            st.none(), st.integers(0, n_classes - 1), st.lists(st.integers(0, 2), min_size=1, max_size=2), st.just(-1)
        )
    )
    make = draw(
        st.sampled_from([
            sp.losses.ClassCrossEntropy,
            lambda: sp.losses.Margin(draw(positive), critical=critical),
            lambda: sp.losses.Focal(draw(positive), critical=critical),
            lambda: sp.losses.ClassBalanced(class_counts, beta=draw(shares)),
            lambda: sp.losses.LDAM(
                class_counts, max_margin=draw(positive), scale=draw(positive), beta=draw(shares),
                reweight_after=draw(st.sampled_from([None, 0, 1, 2, -1])), normalised=draw(st.booleans()),
            ),
        ])
    )  # fmt: skip
    return make()


@target
def losses_for_rare_classes(draw: Draw) -> None:
    if draw(st.booleans()):
        train(draw, draw(base_losses()), anything)
    else:
        train(draw, draw(base_losses(3)), lambda: tensors(3))


@target
def mini_batch_auc(draw: Draw) -> None:
    train(draw, sp.losses.MiniBatchAUC(), anything)


@target
def augmented(draw: Draw) -> None:
    metrics = st.sampled_from([sp.losses.ByAsk(), sp.losses.ByArea()])
    prices = st.one_of(st.just(0.0), st.just(0.0), positive)
    growths = st.builds(sp.losses.Growth, positive, positive, positive, metrics, prices)
    side = draw(st.sampled_from([None, sp.losses.PerPositive(), sp.losses.PerNegative()]))
    solver = sp.AugmentedLagrangian(
        draw(st.one_of(base_losses(), st.just(sp.CrossEntropy()))), n_samples=draw(st.integers(1, 15)),
        margin=draw(positive), problem=draw(st.one_of(st.none(), problems())), side=side, mu=draw(paces),
        growth=draw(st.one_of(st.none(), growths)),
    )  # fmt: skip
    train(draw, solver, tensors, index=draw(indices()))
    solver.step_metric(solver.progress(draw(tensors()), draw(st.floats(allow_nan=False))))
    sound(solver)


@st.composite
def indices(draw: st.DrawFn) -> torch.Tensor | None:
    number = st.integers(0, 14) if draw(st.booleans()) else st.integers(-1, 20)
    return draw(st.one_of(st.none(), st.lists(number, min_size=2, max_size=8).map(torch.tensor)))


@target
def augmented_multiclass(draw: Draw) -> None:
    solver = sp.classes.AugmentedMulticlass(
        draw(base_losses(3)), n_samples=draw(st.integers(1, 15)),
        critical=draw(st.sampled_from([0, 1, 2] * 2 + [-1, 3])), margin=draw(positive), mu=draw(paces),
        demand=draw(st.sampled_from([None, sp.classes.OwnOutput(), sp.classes.EveryOutput()])),
    )  # fmt: skip
    train(draw, solver, lambda: tensors(3), index=draw(indices()))


@target
def program_losses(draw: Draw) -> None:
    scale, margin = draw(positive), draw(st.one_of(*[st.floats(0, 0.5)] * 6, numbers))
    make = draw(
        st.sampled_from([
            lambda: sp.losses.AUCLoss(draw(positive), ramp=draw(st.booleans())),
            lambda: sp.losses.FScoreLoss(draw(positive), scale=scale, margin=margin),
            lambda: sp.losses.JaccardLoss(scale, margin),
            lambda: sp.losses.PrecisionAtRecallLoss(draw(shares), shortfall=draw(positive), scale=scale, margin=margin),
            lambda: sp.losses.RecallAtPrecisionLoss(draw(shares), shortfall=draw(positive), scale=scale, margin=margin),
        ])
    )  # fmt: skip
    train(draw, make(), anything)


@target
def multiclass_areas(draw: Draw) -> None:
    partition = draw(st.one_of(st.none(), score_tensors((3, 3), torch.float32).map(torch.Tensor.detach)))
    one_vs_all, pooled, ramp = (draw(st.booleans()) for _ in range(3))
    solver = sp.losses.MulticlassAUCLoss(
        draw(positive), partition=partition, one_vs_all=one_vs_all, pooled=pooled, ramp=ramp
    )  # fmt: skip
    train(draw, solver, lambda: tensors(3))


@target
def implicit_shifts(draw: Draw) -> None:
    solver = sp.classes.ImplicitShifts(
        draw(class_problems()), draw(st.sampled_from([3, 3, 3, 2, 1, True])), temperature=draw(temperatures),
        memory=draw(memories), every=draw(small_whole), soft=draw(st.booleans()),
    )  # fmt: skip
    train(draw, solver, lambda: tensors(3, max_size=6))


@target
def implicit_top_k(draw: Draw) -> None:
    solver = sp.losses.ImplicitTopK(
        draw(rates),
        draw(small_whole),
        temperature=draw(temperatures),
        slope_floor=draw(st.one_of(st.just(1e-6), positive)),
    )
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(st.tuples(st.integers(0, 3), st.integers(0, 4)))
        scores, labels = draw(score_tensors(shape)), draw(label_tensors(shape))
        size = shape[0] * shape[1]
        mask = draw(st.one_of(st.none(), st.lists(st.booleans(), min_size=size, max_size=size)))
        mask = None if mask is None else torch.tensor(mask, dtype=torch.bool).reshape(shape)
        loss = solver(scores, labels, mask, weights=draw(weight_tensors((shape[0],))))
        finite_gradient(loss, scores)
        sound(solver)


@target
def implicit_lists(draw: Draw) -> None:
    rate = draw(st.sampled_from([sp.precision, sp.recall, sp.fnr, sp.f_score(1), sp.rates.hit]))
    quantity, bounded = (sp.rates.InFirst(rate, draw(st.integers(1, 4))) for _ in range(2))
    bounds = draw(st.sampled_from([[], [bounded >= 0.5], [bounded <= 0.1]]))
    problem = draw(st.sampled_from([sp.maximize, sp.minimize]))(quantity, *bounds)
    solver = sp.losses.ImplicitLists(problem, temperature=draw(temperatures))
    for _ in range(draw(st.integers(1, 2))):
        size = draw(st.integers(0, 6))
        scores, labels = draw(score_tensors((size,))), draw(label_tensors((size,)))
        numbers = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        loss = solver(
            scores, labels, lists=torch.tensor(numbers, dtype=torch.long), weights=draw(weight_tensors((size,)))
        )
        finite_gradient(loss, scores)
        sound(solver)


@target
def one_vs_rest(draw: Draw) -> None:
    solver = sp.classes.OneVsRest(draw(problems(groups=False)), draw(small_whole), memory=draw(memories))
    shape = (draw(st.integers(0, 5)), draw(st.integers(1, 3)))
    for _ in range(2):
        scores, weights = draw(score_tensors(shape)), draw(st.one_of(weight_tensors(shape), weight_tensors(shape[:1])))
        finite_gradient(solver(scores, draw(label_tensors(shape)), weights=weights), scores)
        sound(solver)


@target
def implicit_last_layer(draw: Draw) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    below = draw(st.sampled_from([None, sp.CrossEntropy("balanced"), sp.losses.Focal()]))
    solver = sp.losses.ImplicitLastLayer(draw(problems(groups=False)), model[-1], below=below)
    for _ in range(2):
        given = draw(tensors())
        size = given.labels.shape[0] if given.labels.dim() else 1
        x = draw(score_tensors((size, 2), torch.float32)).detach().clamp(-1e3, 1e3)
        loss = solver(model(x).squeeze(-1), given.labels, weights=given.weights)
        finite_gradient(loss, *model.parameters())
        sound(solver)
