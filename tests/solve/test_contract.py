"""What every solver must do, whatever its method. A new solver joins with one line in SOLVERS."""

import copy
import itertools

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadLabels, BadScores, ShapeMismatch
from setpoint.measure.pairs import Hinge, Logistic, Sigmoid
from setpoint.measure.sample import check_sample
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.correction import Correction
from setpoint.solve.implicit import ImplicitThreshold

FNR = sp.ask("minimize fnr where fpr <= 20%")
SOLVERS = {
    "implicit fnr at fpr": lambda: ImplicitThreshold(FNR),
    "implicit without memory": lambda: ImplicitThreshold(FNR, memory=0, temperature=1.0),
    "implicit softplus": lambda: ImplicitThreshold(FNR, step=sp.steps.SoftplusStep, temperature=1.0),
    "implicit hinge": lambda: ImplicitThreshold(FNR, step=sp.steps.HingeStep, temperature=1.0),
    "implicit every third step": lambda: ImplicitThreshold(FNR, correction=Correction(every=3)),
    "implicit precision at recall": lambda: ImplicitThreshold(sp.ask("maximize precision where recall >= 80%")),
    "implicit precision at k": lambda: ImplicitThreshold(sp.ask("maximize precision where flagged == 20%")),
    "implicit roc area": lambda: ImplicitThreshold(sp.ask("maximize recall over fpr in [0%, 30%] with 5 points")),
    "implicit pr area": lambda: ImplicitThreshold(sp.ask("maximize precision over recall in [80%, 100%]")),
    "implicit f1": lambda: ImplicitThreshold(sp.ask("maximize f1")),
    "implicit mcc": lambda: ImplicitThreshold(sp.ask("maximize mcc")),
    "implicit two bounds": lambda: ImplicitThreshold(sp.ask("maximize recall where fpr <= 20% and precision >= 30%")),
    "implicit out of reach": lambda: ImplicitThreshold(sp.ask("maximize recall where precision >= 100% and fpr <= 0%")),
    "last layer's penalty": lambda: sp.losses.Penalty(FNR),
    "implicit with an anchor": lambda: sp.losses.WithAnchor(ImplicitThreshold(FNR)),
    "program: area": sp.losses.AUCLoss,
    "program: f-score": sp.losses.FScoreLoss,
    "program: jaccard": sp.losses.JaccardLoss,
    "program: precision at recall": lambda: sp.losses.PrecisionAtRecallLoss(0.8),
    "program: recall at precision": lambda: sp.losses.RecallAtPrecisionLoss(0.5),
    "cross-entropy": CrossEntropy,
    "cross-entropy balanced": lambda: CrossEntropy("balanced"),
    "cross-entropy weighted": lambda: CrossEntropy(0.1),
    "lagrangian fnr at fpr": lambda: sp.Lagrangian(FNR),
    "lagrangian without memory": lambda: sp.Lagrangian(FNR, memory=0, temperature=1.0),
    "lagrangian damped, with a penalty": lambda: sp.Lagrangian(
        FNR, climb=sp.losses.Climb(control=sp.losses.NuPI(), penalty=2.0)
    ),
    "lagrangian precision at k": lambda: sp.Lagrangian(sp.ask("maximize precision where flagged == 20%")),
    "lagrangian roc area": lambda: sp.Lagrangian(sp.ask("maximize recall over fpr in [0%, 30%] with 5 points")),
    "lagrangian f1": lambda: sp.Lagrangian(sp.ask("maximize f1")),
    "proxy-lagrangian": lambda: sp.losses.ProxyLagrangian(FNR),
    "proxy-lagrangian at k": lambda: sp.losses.ProxyLagrangian(sp.ask("maximize precision where flagged == 20%")),
    "pairwise area": lambda: sp.losses.PairwiseArea(sp.ask("maximize recall over fpr in [0%, 30%]")),
    "pairwise two-way area": lambda: sp.losses.PairwiseArea(
        sp.fpr.between(0, 0.3), sp.recall.between(0.5, 1), surrogate=Hinge()
    ),
    "pairwise whole area, logistic": lambda: sp.losses.PairwiseArea(surrogate=Logistic(), memory=0),
    "pairwise whole area, sigmoid": lambda: sp.losses.PairwiseArea(surrogate=Sigmoid(), memory=0),
    "augmented": lambda: sp.AugmentedLagrangian(CrossEntropy(), n_samples=40, mu=0.1),
    "augmented per negative": lambda: sp.AugmentedLagrangian(
        sp.losses.Focal(), n_samples=40, mu=0.1, side=sp.losses.PerNegative()
    ),
    "class cross-entropy": sp.losses.ClassCrossEntropy,
    "margin": sp.losses.Margin,
    "margin of positives": lambda: sp.losses.Margin(critical=1),
    "focal": sp.losses.Focal,
    "focal but for positives": lambda: sp.losses.Focal(critical=1),
    "class-balanced": lambda: sp.losses.ClassBalanced((300, 20)),
    "ldam": lambda: sp.losses.LDAM((300, 20), reweight_after=2),
    "mini-batch auc": sp.losses.MiniBatchAUC,
}
pytestmark = pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS)


def batch(seed=0, size=40, shift=1.0, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).to(dtype)
    scores = torch.randn(size, generator=draw, dtype=dtype) + shift * labels
    return scores.requires_grad_(), labels


def state(solver):
    return {name: value.clone() for name, value in solver.state_dict().items()}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_loss_and_gradient_are_finite_and_the_gradient_says_something(make):
    solver = make().double()
    scores, labels = batch()
    loss = solver(scores, labels)
    loss.backward()
    assert loss.shape == ()
    assert torch.isfinite(loss)
    assert torch.isfinite(scores.grad).all()
    assert scores.grad.abs().sum() > 0


def test_the_gradient_is_that_of_the_loss_with_its_state_held(make):
    solver = make().double()
    for seed in range(3):
        solver(*batch(seed))
    solver.eval()
    scores, labels = batch(5)
    inner = getattr(solver, "solver", solver)
    if hasattr(inner, "memory"):
        # Thresholds and prices come from the remembered scores; hold those, and only the batch is left to move.
        remembered = inner.memory.joined(check_sample(scores.detach().clone(), labels))
        inner.memory.joined = lambda *_, **__: remembered
    assert torch.autograd.gradcheck(lambda s: solver(s, labels), (scores,), eps=1e-6, atol=1e-6)


def test_eval_changes_no_state(make):
    solver = make().double()
    for seed in range(3):
        solver(*batch(seed))
    before = state(solver)
    solver.eval()
    solver(*batch(9))
    assert same(before, state(solver))


def test_what_is_remembered_is_what_a_step_would_have_remembered(make):
    told, stepped = make().double(), make().double()
    before = state(told)
    told.remember(*batch(1))
    stepped(*batch(1))
    after, wanted = state(told), state(stepped)
    in_memory = {name for name in before if "memory." in name}
    assert all(torch.equal(after[name], wanted[name] if name in in_memory else before[name]) for name in before)
    told.eval().remember(*batch(2))
    assert same(after, state(told))


def test_the_order_of_samples_does_not_matter(make):
    scores, labels = batch()
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(3))
    first, second = make().double(), make().double()
    (there,) = torch.autograd.grad(first(scores, labels), scores)
    shuffled = scores.detach()[order].requires_grad_()
    (here,) = torch.autograd.grad(second(shuffled, labels[order]), shuffled)
    torch.testing.assert_close(here, there[order])


def test_a_shift_of_all_scores_changes_nothing_where_thresholds_are_free(make):
    if not isinstance(make(), ImplicitThreshold | sp.losses.AUCLoss | sp.Lagrangian | sp.losses.PairwiseArea):
        return
    scores, labels = batch()
    (there,) = torch.autograd.grad(make().double()(scores, labels), scores)
    moved = (scores.detach() + 3.0).requires_grad_()
    (here,) = torch.autograd.grad(make().double()(moved, labels), moved)
    torch.testing.assert_close(here, there, atol=1e-9, rtol=1e-6)


def test_a_weight_is_a_repetition(make):
    scores, labels = batch(size=12)
    repeats = torch.tensor([1, 2, 3] * 4)
    solver = make().double()
    solver.temperature = torch.tensor(1.0).double() if hasattr(solver, "temperature") else None
    twin = copy.deepcopy(solver)
    weighted = solver(scores, labels, weights=repeats.double())
    repeated = twin(scores.repeat_interleave(repeats), labels.repeat_interleave(repeats))
    torch.testing.assert_close(weighted, repeated)
    (left,) = torch.autograd.grad(weighted, scores)
    (right,) = torch.autograd.grad(repeated, scores)
    torch.testing.assert_close(left, right)


def test_state_dict_round_trip_in_mid_training(make):
    solver = make().double()
    for seed in range(4):
        solver(*batch(seed))
    twin = make().double()
    twin.load_state_dict(state(solver))
    for seed in (5, 6, 7, 8):
        scores, labels = batch(seed)
        (left,) = torch.autograd.grad(solver(scores, labels), scores)
        (right,) = torch.autograd.grad(twin(scores, labels), scores)
        assert torch.equal(left, right)
    assert same(state(solver), state(twin))


def test_a_batch_of_one_class_is_ordinary(make):
    for label, first in itertools.product((0.0, 1.0), (True, False)):
        solver = make().double()
        if not first:
            solver(*batch())
        scores, labels = batch(4)
        loss = solver(scores, torch.full_like(labels, label))
        (slope,) = torch.autograd.grad(loss, scores)
        assert torch.isfinite(loss), (label, first)
        assert torch.isfinite(slope).all(), (label, first)


def test_tied_and_saturated_scores_are_ordinary(make):
    solver = make().double()
    for scores in (torch.zeros(40), torch.full((40,), 1e4), torch.linspace(-1e4, 1e4, 40)):
        leaf = scores.double().requires_grad_()
        labels = batch()[1]
        loss = solver(leaf, labels)
        (slope,) = torch.autograd.grad(loss, leaf)
        assert torch.isfinite(loss)
        assert torch.isfinite(slope).all()


def test_an_empty_batch_is_nothing(make):
    loss = make().double()(torch.zeros(0, requires_grad=True).double(), torch.zeros(0).double())
    assert loss.item() == 0


def test_single_precision_and_half_precision_scores_get_in(make):
    for dtype in (torch.float32, torch.bfloat16):
        solver = make()
        scores, labels = batch(dtype=dtype)
        loss = solver(scores, labels)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(scores.grad).all()
        assert scores.grad.dtype == dtype


SPOILT = {
    "nan": (lambda s, y: (s.index_fill(0, torch.tensor([1]), float("nan")), y), BadScores),
    "inf": (lambda s, y: (s.index_fill(0, torch.tensor([1]), float("inf")), y), BadScores),
    "labels": (lambda s, y: (s, y * 2 - 1), BadLabels),
    "length": (lambda s, y: (s, y[:-1]), ShapeMismatch),
    "column": (lambda s, y: (s.unsqueeze(-1), y), ShapeMismatch),
}


def test_bad_batches_are_refused_and_leave_the_state_alone(make):
    solver = make().double()
    solver(*batch())
    before = state(solver)
    for name, (spoil, error) in SPOILT.items():
        with pytest.raises(error):
            solver(*spoil(*batch(1)))
        assert same(before, state(solver)), name
