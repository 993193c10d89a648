"""What the network study compares: each method makes scores of one split for one ask, from trainings that are shared.

The baselines are cross-entropy and the best of seven class weights. Everything else starts from the same trained nets:
other heads, fine-tuning by implicit thresholds, averages of parameters, of logits, and one net taught by several.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import setpoint as sp
from benchmarks.studies.networks.bench import FINE_SHARE, MEMBERS, WEIGHTS, Bench, Scores
from benchmarks.studies.networks.nets import Loss, Shuffled, make_net, score, train_weighted
from setpoint.errors import SharedData
from setpoint.measure.sample import Sample
from setpoint.solve.correction import Correction
from setpoint.solve.solver import Solver
from setpoint.train.head import fit_proximal_head, head_features
from setpoint.train.linear import SEARCH_EVERY


class Taught(Solver):
    """Cross-entropy to a teacher's probabilities at its threshold: what is held on to in mini-batches."""

    def __init__(self, logits: Tensor, threshold: float) -> None:
        super().__init__()
        self.targets, self.threshold = torch.sigmoid(logits - threshold), threshold

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        targets = self.targets[index].to(batch.scores)
        return F.binary_cross_entropy_with_logits(batch.scores - self.threshold, targets)


def by_default(bench: Bench, problem: sp.Problem, **more: Any) -> Scores:
    """`sp.fit` with no solver, through the public door; the calibration rows set its threshold."""
    parts, started = bench.parts, time.process_time()
    model = make_net(parts, bench.seed)
    torch.manual_seed(bench.seed)
    train_rows, threshold_rows = Shuffled(parts, bench.seed), [parts.calibration]
    sp.fit(model, problem, train_rows, [parts.held_out], calibration=threshold_rows, epochs=bench.epochs, **more)
    return Scores.of(model, parts, time.process_time() - started)


def default_before(bench: Bench, problem: sp.Problem) -> Scores:
    """What `sp.fit` did before this study: a rate of 0.001, and the best epoch by the exact metric."""
    parts, started = bench.parts, time.process_time()
    model = make_net(parts, bench.seed)
    torch.manual_seed(bench.seed)
    adam = torch.optim.Adam(model.parameters(), lr=0.001)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, bench.epochs)
    sp.fit(
        model, problem, Shuffled(parts, bench.seed), [parts.held_out], sp.CrossEntropy(),
        calibration=[parts.calibration], epochs=bench.epochs, patience=max(5, bench.epochs // 4),
        optimizer=lambda parameters: adam, on_epoch=lambda row: cosine.step(),
    )  # fmt: skip
    fit_proximal_head(model, problem, [parts.held_out], 0)
    return Scores.of(model, parts, time.process_time() - started)


class HardNegatives(sp.CrossEntropy):
    """Cross-entropy with a negative as heavy as twice its probability: those that come near to passing count."""

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(batch.scores, batch.labels, reduction="none")
        return torch.where(batch.labels > 0, losses, losses * 2 * torch.sigmoid(batch.scores)).mean()


def once_for_all(name: str, solver: Callable[[], sp.CrossEntropy] | None) -> Callable[[Bench, sp.Problem], Scores]:
    """`sp.fit` and its second training; the same for every ask, so that it is done once."""

    def make(bench: Bench, problem: sp.Problem) -> Scores:
        if name not in bench.fitted:
            # What the library does when it is left to it.
            asked = {} if solver is None else {
                "solver": solver(), "refit": True, "patience": max(5, bench.epochs // 4)
            }  # fmt: skip
            bench.fitted[name] = by_default(bench, problem, **asked)
        return bench.fitted[name]

    return make


def matched(bench: Bench, problem: sp.Problem) -> Scores:
    """One more training, weighted so that the threshold of cross-entropy on held-out rows would lie at 0.5."""
    plain = bench.scores()
    threshold = bench.threshold(problem, plain.held_out)
    weight = math.exp(-min(max(threshold, -7.0), 7.0))
    trained = train_weighted(bench.parts, weight, bench.seed, bench.epochs)
    return Scores.of(trained.model, bench.parts, plain.seconds + trained.seconds)


class Joined(nn.Module):
    """Several nets under one head, which starts as the mean of theirs."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        heads = [[*net.modules()][-1] for net in nets]
        self.below = nn.ModuleList(nn.Sequential(*list(net.children())[:-1]) for net in copy.deepcopy(nets))
        self.head = nn.Linear(sum(head.in_features for head in heads), 1)
        with torch.no_grad():
            self.head.weight.copy_(torch.cat([head.weight for head in heads], 1) / len(nets))
            self.head.bias.copy_(torch.stack([head.bias for head in heads]).mean(0))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat([below(x) for below in self.below], 1))


def proximal(bench: Bench, problem: sp.Problem, nets: list[nn.Module], seconds: float) -> Scores:
    """The proximal head of the library on held-out rows, kept if both halves agree."""
    started = time.process_time()
    model = Joined(nets) if len(nets) > 1 else copy.deepcopy(nets[0])
    x, labels = bench.parts.held_out
    fit_proximal_head(model, problem, [*zip(x.split(2000), labels.split(2000))], 0)
    return Scores.of(model, bench.parts, seconds + time.process_time() - started)


def linear_head(bench: Bench, problem: sp.Problem) -> Scores:
    """The anchored recipe for linear models on what the head saw of the training rows."""
    net, started = bench.net(), time.process_time()
    model, parts = copy.deepcopy(net.model), bench.parts
    head = [*model.modules()][-1]
    seen = [head_features(model, [*zip(x.split(2000), y.split(2000))]) for x, y in (parts.train, parts.held_out)]
    sp.fit(head, problem, *seen)
    return Scores.of(model, parts, net.seconds + time.process_time() - started)


def implicit(
    bench: Bench, problem: sp.Problem, strength: float, own: bool = False, heat: tuple[float, float] = (1.0, 1.0),
    memory: int | None = None,
) -> Callable[[int], Loss]:  # fmt: skip
    """Implicit thresholds held to labels, or to the net's own probabilities at its threshold; the step may steepen."""

    def make(steps: int) -> Loss:
        every = Correction(every=SEARCH_EVERY)
        free = sp.ImplicitThreshold(problem, temperature=heat[0], memory=memory, correction=every)
        anchor: Solver = sp.CrossEntropy()
        if own:
            net = bench.net()
            shift = bench.threshold(problem, score(net.model, bench.parts.held_out[0]))
            anchor = Taught(score(net.model, bench.parts.train[0]), shift)
        solver = sp.losses.WithAnchor(free, anchor, strength=strength)
        growth = (heat[1] / heat[0]) ** (1 / steps)

        def loss(scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
            free.temperature.mul_(growth)
            found: Tensor = solver(scores, labels, index=rows)
            return found

        return loss

    return make


def plain_again(steps: int) -> Loss:
    return lambda scores, labels, rows: F.binary_cross_entropy_with_logits(scores, labels)


@dataclass(frozen=True)
class Method:
    """How the scores are made, what that takes in trainings from scratch, and what it is, in words.

    `networks` are to be run on every row in use; `only` ends the ask that a method is tried on, if not on all.
    """

    make: Callable[[Bench, sp.Problem], Scores]
    trainings: float
    words: str
    networks: int = 1
    only: str = ""

    def tries(self, ask: str) -> bool:
        return ask.endswith(self.only)


def tuned(strength: float, **more: Any) -> Callable[[Bench, sp.Problem], Scores]:
    name = f"{strength} {more}"
    return lambda bench, ask: bench.tune(ask, name, implicit(bench, ask, strength, **more))


FINE, AT_ONE = 1 + FINE_SHARE, " 1%"
BASELINES = {
    "cross-entropy": Method(
        lambda bench, ask: bench.scores(), 1, "stopped early by its loss on held-out rows, at its best scale and shift"
    ),
    "best of 7 weights": Method(
        lambda bench, ask: bench.best_weight(ask)[1], 7, "class weights 1/64 to 64, chosen by the exact metric"
    ),
    "cross-entropy, averaged": Method(
        lambda bench, ask: bench.scores(average=True), 1, "the running average of its parameters"
    ),
    "best of 7 weights, averaged": Method(
        lambda bench, ask: bench.best_weight(ask, True)[1], 7, "the same of each weight"
    ),
    "best of 7 weights, averaged, all rows": Method(
        lambda bench, ask: bench.best_weight_on_all_rows(ask, False),
        8,
        "then trained once more under that weight, on held-out rows too: *all rows* with a grid",
    ),
}
CANDIDATES = {
    "default": Method(
        once_for_all("default", None),
        2,
        "`sp.fit` with no solver: half the weight on positives, then once more on held-out rows too",
    ),
    "default, refit=False": Method(
        lambda bench, ask: by_default(bench, ask, refit=False),
        1,
        "the default trained once; a proximal head, if it helps",
    ),
    "weight 1": Method(once_for_all("weight 1", sp.CrossEntropy), 2, "the default with plain weights"),
    "weight 1/2": Method(once_for_all("weight 1/2", lambda: sp.CrossEntropy(0.5)), 2, "half the weight on positives"),
    "weight 1/4": Method(once_for_all("weight 1/4", lambda: sp.CrossEntropy(0.25)), 2, "a quarter"),
    "hard negatives": Method(
        once_for_all("hard negatives", HardNegatives), 2, "each negative as heavy as twice its probability"
    ),
    "by its loss": Method(
        lambda bench, ask: bench.by_loss(),
        1,
        "cross-entropy stopped by the loss itself, not at its best scale and shift",
    ),
    "default before": Method(
        default_before, 1, "`sp.fit` as it was: a rate of 0.001, the best epoch by the exact metric, a proximal head"
    ),
    "matched": Method(matched, 2, "one class weight, from the threshold of cross-entropy", only=AT_ONE),
    "linear head": Method(
        linear_head, 1, "the head re-fitted by `Anchored` on cached features of training rows", only=AT_ONE
    ),
    "proximal head": Method(
        lambda bench, ask: proximal(bench, ask, [bench.net().model], bench.net().seconds),
        1,
        "the head re-fitted on held-out rows, near its own probabilities",
    ),
    "continued": Method(
        lambda bench, ask: bench.tune(ask, "continued", plain_again),
        FINE,
        "fine-tuned by cross-entropy itself: the control of the next four",
        only=AT_ONE,
    ),
    "fine-tuned 0.1": Method(
        tuned(0.1), FINE, "fine-tuned by implicit thresholds, a tenth of cross-entropy's pull", only="1%"
    ),
    "fine-tuned, own": Method(
        tuned(1.0, own=True), FINE, "held to the net's own probabilities at its threshold", only=AT_ONE
    ),
    "fine-tuned, annealed": Method(
        tuned(0.1, heat=(0.5, 4.0)), FINE, "a tenth, the step steepened from 1/2 to 4", only=AT_ONE
    ),
    "fine-tuned, short memory": Method(
        tuned(0.1, memory=2_048), FINE, "a tenth, 2,048 scores remembered instead of 20,000", only=" 0.1%"
    ),
    "student": Method(lambda bench, ask: bench.student(None), 4, "one net taught by the mean of three", only=AT_ONE),
    "tilted student": Method(
        lambda bench, ask: bench.student(ask),
        4,
        "taught their probabilities as shifted to their threshold",
        only=AT_ONE,
    ),
    "mean of 3": Method(lambda bench, ask: bench.mean(3), 3, "mean logit of three seeds", 3),
    "all rows": Method(
        lambda bench, ask: bench.all_rows(),
        2,
        "trained once more, on held-out rows too, for the epochs that were best; the running average",
    ),
    "all rows, annealed": Method(
        lambda bench, ask: bench.all_rows(annealed=True), 2, "the same by a cosine that ends at that epoch"
    ),
    "best of 7 weights, all rows": Method(
        lambda bench, ask: bench.best_weight_on_all_rows(ask, True),
        8,
        "the grid, then one more training under its weight on held-out rows too, annealed",
    ),
    "mean of 3, all rows": Method(
        lambda bench, ask: Scores.mean([bench.all_rows(member) for member in range(MEMBERS)]),
        6,
        "three of *all rows*",
        3,
    ),
    "mean of 5 folds": Method(
        lambda bench, ask: bench.folds(), 5, "of five nets that train on held-out rows too, a fifth left out of each", 5
    ),
    "mean of 3, averaged": Method(lambda bench, ask: bench.mean(3, True), 3, "the same of their running averages", 3),
    "mean of 3, proximal head": Method(
        lambda bench, ask: proximal(
            bench,
            ask,
            [bench.net(member=m).model for m in range(MEMBERS)],
            sum(bench.net(member=m).seconds for m in range(MEMBERS)),
        ),
        3,
        "one proximal head over the three",
        3,
        only=AT_ONE,
    ),
    "mean of 3, fine-tuned": Method(
        lambda bench, ask: Scores.mean(
            [bench.tune(ask, "0.1 {}", implicit(bench, ask, 0.1), m) for m in range(MEMBERS)]
        ),
        3 * FINE,
        "each fine-tuned by implicit thresholds, a tenth",
        3,
        only=AT_ONE,
    ),
    "mean of 7 weights": Method(
        lambda bench, ask: Scores.mean([bench.scores(weight) for weight in WEIGHTS]),
        7,
        "the grid, averaged instead of chosen from",
        7,
    ),
}
METHODS = {**BASELINES, **CANDIDATES}


def run_method(name: str, bench: Bench, problem: sp.Problem) -> Scores:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SharedData)
        return METHODS[name].make(bench, problem)
