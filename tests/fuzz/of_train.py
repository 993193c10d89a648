"""Targets: fitting, ensembles, loaders and cached features, on a handful of rows."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

import setpoint as sp
from fuzz.inputs import anything, label_tensors, numbers, one_in, problems, score_tensors, small_whole, weight_tensors
from fuzz.laws import Draw, finite, target
from fuzz.of_problem import judged


@st.composite
def rows(draw: st.DrawFn, most: int = 10) -> Any:
    """A loader: tensors in memory, a list of batches, or what no loader yields."""
    size = draw(st.integers(2, most))
    x, labels = draw(score_tensors((size, 2), torch.float32)).detach(), draw(label_tensors((size,)))
    if not draw(one_in(4)):
        x = x.clamp(-10, 10)
    kind, weights = draw(st.sampled_from([3] * 8 + [1, 2, 1, 2, 0])), draw(weight_tensors((size,)))
    if kind == 0:
        return draw(st.sampled_from([[], [x], [(x, labels, None, 1)], [{"x": x}], [(x[1:], labels)]]))
    if kind == 1:
        return [(x, labels)]
    if kind == 2:
        return [{"x": x, "labels": labels, "weights": weights}]
    batch_size = draw(st.one_of(st.none(), small_whole))
    return sp.Batches(x, labels, weights=weights, batch_size=batch_size, shuffle=draw(st.booleans()))


@target
def fitting(draw: Draw) -> None:
    problem = draw(problems(groups=False))
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    model = draw(st.sampled_from([torch.nn.Linear(2, 1), network]))
    solver = draw(
        st.sampled_from([None, None, sp.CrossEntropy(), sp.Ridge("balanced"), sp.Anchored((1.0,)), sp.losses.AUCLoss()])
    )
    solver = sp.methods.Snapshots(solver, most=2) if draw(one_in(6)) and isinstance(solver, sp.CrossEntropy) else solver
    implicit = draw(st.booleans())
    result = sp.fit(
        model, problem, draw(rows()), draw(rows()), sp.ImplicitThreshold(problem) if implicit else solver,
        calibration=draw(st.one_of(st.none(), rows())), confidence=draw(st.one_of(*[st.none()] * 8, numbers)),
        epochs=draw(st.sampled_from([2, 1] * 8 + [0])),
        ensemble=draw(st.sampled_from([1] * 10 + [2, 2, 0, sp.methods.Splits(2), sp.methods.Splits(1)])),
    )  # fmt: skip
    assert isinstance(result, sp.methods.FitResult)
    judged(result.point)
    finite(list(result.model.parameters()), "parameters")
    finite([row["soft"] for row in result.history], "soft")


@target
def choosing(draw: Draw) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    auto = sp.Auto(caution=draw(st.one_of(*[st.just(1.5)] * 6, numbers)), seed=draw(small_whole))
    result = sp.fit(
        draw(st.sampled_from([torch.nn.Linear(2, 1), network])), draw(problems(groups=False)),
        draw(rows(20)), draw(rows(20)), auto, calibration=draw(st.one_of(st.none(), rows())), epochs=1,
    )  # fmt: skip
    judged(result.point)
    assert sum(trial.chosen for trial in result.comparison) == 1
    for trial in result.comparison:
        assert isinstance(trial, sp.methods.Trial)
        assert trial.point is not None or trial.note
        finite(trial.seconds, "seconds")


@target
def correcting(draw: Draw) -> None:
    problem, batches = draw(problems(groups=False)), draw(st.integers(1, 3))
    solver = sp.ImplicitThreshold(
        problem, correction=sp.losses.Correction(every=2, batches=draw(st.sampled_from([1, 2, 2])))
    )
    model = torch.nn.Linear(2, 1)
    sp.methods.correct(model, solver, [batch for _ in range(batches) for batch in draw(rows())])
    finite(solver(torch.zeros(4), torch.tensor([0.0, 1.0, 0.0, 1.0])).detach())


@target
def averaging(draw: Draw) -> None:
    members = draw(st.lists(st.just(torch.nn.Linear(2, 1)), max_size=2))
    finite(sp.methods.Ensemble(members)(torch.zeros(3, 2)).detach())


@target
def numbering(draw: Draw) -> None:
    loader = draw(rows())
    places = [batch.index for batch in sp.methods.with_index(loader) if getattr(batch, "index", None) is not None]
    if places:
        assert sorted(torch.cat(places).tolist()) == list(range(sum(map(len, places))))


@target
def caching_features(draw: Draw) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    cached = sp.methods.head_features(
        model, draw(rows()), draw(st.sampled_from([None, model[-1], model[0], torch.nn.Linear(1, 1)]))
    )
    assert isinstance(cached, sp.Batches)
    assert cached.resident.x.shape[0] == len(cached.resident.labels)


@target
def accumulating(draw: Draw) -> None:
    model = torch.nn.Linear(2, 1)
    problem = draw(problems(groups=False))
    solver = sp.ImplicitThreshold(problem) if draw(st.booleans()) else sp.CrossEntropy()
    loss, scores = sp.methods.accumulate(model, solver, draw(rows()))
    finite([loss.detach(), scores.detach()], "loss and scores")
    finite([part.grad for part in model.parameters() if part.grad is not None], "gradient")


@target
def tallying(draw: Draw) -> None:
    problem, given, more = draw(problems(groups=False)), draw(anything()), draw(anything())
    tally = sp.ScoreTally().update(given.scores, given.labels)
    tally.merge(sp.ScoreTally().update(more.scores, more.labels))
    confidence = draw(st.one_of(*[st.none()] * 4, numbers))
    judged(tally.calibrate(problem, confidence=confidence))
    finite(tally.doubt(problem), "doubt")
    closer = tally.around(problem)
    judged(closer.update(given.scores, given.labels).update(more.scores, more.labels).calibrate(problem))
