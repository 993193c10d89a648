"""Base losses against slow loops, their gradients against finite differences, and the limits where they are equal."""

import math

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadLabels, BadSetting, ShapeMismatch
from setpoint.solve.losses import LDAM, ClassBalanced, ClassCrossEntropy, Focal, Margin, MiniBatchAUC

COUNTS = (300, 20, 80)


def softmax(row):
    top = max(row)
    terms = [math.exp(z - top) for z in row]
    return [term / sum(terms) for term in terms]


def less(row, label, margin):
    return [z - margin if k == label else z for k, z in enumerate(row)]


def effective(counts, beta):
    weights = [(1 - beta) / (1 - beta**n) for n in counts]
    return [w * len(weights) / sum(weights) for w in weights]


def cross_entropy(row, label, counts):
    return -math.log(softmax(row)[label])


def margin(row, label, counts):
    return cross_entropy(less(row, label, 0.7), label, counts)


def margin_of_one(row, label, counts):
    return margin(row, label, counts) if label == 1 else cross_entropy(row, label, counts)


def focal(row, label, counts):
    q = softmax(row)[label]
    return -((1 - q) ** 1.5) * math.log(q)


def focal_but_one(row, label, counts):
    return cross_entropy(row, label, counts) if label == 1 else focal(row, label, counts)


def class_balanced(row, label, counts):
    return effective(counts, 0.99)[label] * cross_entropy(row, label, counts)


def ldam(row, label, counts):
    delta = [0.5 * (min(counts) / n) ** 0.25 for n in counts]
    return cross_entropy([3.0 * z for z in less(row, label, delta[label])], label, counts)


def ldam_reweighted(row, label, counts):
    return effective(counts, 0.9999)[label] * ldam(row, label, counts)


LOSSES = {
    "cross-entropy": (lambda counts: ClassCrossEntropy(), cross_entropy),
    "symmetric margin": (lambda counts: Margin(0.7), margin),
    "asymmetric margin": (lambda counts: Margin(0.7, critical=1), margin_of_one),
    "symmetric focal": (lambda counts: Focal(1.5), focal),
    "asymmetric focal": (lambda counts: Focal(1.5, critical=[1]), focal_but_one),
    "class-balanced": (lambda counts: ClassBalanced(counts, beta=0.99), class_balanced),
    "ldam": (lambda counts: LDAM(counts, scale=3.0), ldam),
    "ldam, re-weighted": (lambda counts: LDAM(counts, scale=3.0, reweight_after=0), ldam_reweighted),
}
each = pytest.mark.parametrize(("make", "slow"), LOSSES.values(), ids=LOSSES)


def drawn(classes, seed=0, size=30):
    draw = torch.Generator().manual_seed(seed)
    shape = (size,) if classes == 2 else (size, classes)
    scores = 2 * torch.randn(shape, generator=draw, dtype=torch.float64)
    labels = torch.randint(0, classes, (size,), generator=draw)
    weights = torch.rand(size, generator=draw, dtype=torch.float64)
    return scores.requires_grad_(), labels, weights


@each
@pytest.mark.parametrize("classes", [2, 3])
def test_values_against_a_slow_loop(make, slow, classes):
    scores, labels, weights = drawn(classes)
    counts = COUNTS[:classes]
    loss = make(counts).double()(scores, labels, weights=weights)
    rows = [[0.0, s] for s in scores.tolist()] if classes == 2 else scores.tolist()
    costs = [slow(row, label, counts) for row, label in zip(rows, labels.tolist())]
    expected = sum(w * c for w, c in zip(weights.tolist(), costs)) / float(weights.sum())
    assert loss.item() == pytest.approx(expected, rel=1e-10)
    assert make(counts).double()(scores, labels).item() == pytest.approx(sum(costs) / len(costs), rel=1e-10)


@each
@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_against_finite_differences(make, slow, classes):
    scores, labels, weights = drawn(classes, size=12)
    solver = make(COUNTS[:classes]).double().eval()
    assert torch.autograd.gradcheck(lambda s: solver(s, labels, weights=weights), (scores,))


@each
def test_scores_far_out_stay_finite(make, slow):
    for classes in (2, 3):
        scores, labels, _ = drawn(classes)
        far = (scores.detach().float() * 1e4).requires_grad_()
        loss = make(COUNTS[:classes])(far, labels)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(far.grad).all()


@each
def test_bad_class_scores_are_refused(make, slow):
    scores, labels, _ = drawn(3)
    with pytest.raises(BadLabels, match="class numbers"):
        make(COUNTS)(scores, labels + 1)
    with pytest.raises(ShapeMismatch, match="labels"):
        make(COUNTS)(scores, labels[:-1])


def test_all_are_cross_entropy_when_their_own_part_is_nothing():
    scores, labels, weights = drawn(2)
    plain = sp.CrossEntropy().double()(scores, labels.double(), weights=weights)
    for solver in (ClassCrossEntropy(), Margin(0.0), Focal(0.0), ClassBalanced((300, 20), beta=0.0)):
        torch.testing.assert_close(solver.double()(scores, labels, weights=weights), plain)


def test_weighted_cross_entropy_is_the_class_balanced_one_in_the_limit_but_for_scale():
    scores, labels, _ = drawn(2)
    n_positive = int(labels.sum())
    balanced = ClassBalanced((len(labels) - n_positive, n_positive), beta=1 - 1e-9).double()(scores, labels)
    weighted = sp.CrossEntropy("balanced").double()(scores, labels.double())
    # Both weigh a class by 1 / its size; one has a mean of 1 over classes, the other over samples.
    scale = (len(labels) ** 2 / 4) / (n_positive * (len(labels) - n_positive))
    torch.testing.assert_close(balanced * scale, weighted, rtol=1e-5, atol=0)


def test_ldam_asks_most_of_the_rarest_class():
    torch.testing.assert_close(LDAM((1600, 100)).margins, torch.tensor([0.25, 0.5]).double())


def test_reweighting_is_deferred_and_its_clock_is_state():
    scores, labels, _ = drawn(2)
    solver, plain = LDAM((300, 20), reweight_after=2).double(), LDAM((300, 20)).double()
    weighted = LDAM((300, 20), reweight_after=0).double()
    early = [solver(scores, labels) for _ in range(2)]
    assert all(torch.equal(loss, plain(scores, labels)) for loss in early)
    twin = LDAM((300, 20), reweight_after=2).double()
    twin.load_state_dict(solver.state_dict())
    for late in (solver, twin):
        assert torch.equal(late(scores, labels), weighted(scores, labels))
        assert not torch.equal(late(scores, labels), plain(scores, labels))


@pytest.mark.parametrize("weighted", [False, True])
def test_normalised_reweighting_is_the_weighted_mean_of_torch(weighted):
    """As the loss's authors compute it: torch's cross-entropy with class weights divides by the weights it has met."""
    scores, labels, weights = drawn(3)
    solver = LDAM(COUNTS, scale=3.0, reweight_after=0, beta=0.99, normalised=True).double()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    own = torch.nn.functional.one_hot(labels, 3) * (0.5 * (20 / counts) ** 0.25)
    of_class = 0.01 / (1 - 0.99**counts)
    if weighted:
        costs = torch.nn.functional.cross_entropy(3 * (scores - own), labels, reduction="none")
        each = weights * of_class[labels]
        plain = (each * costs).sum() / each.sum()
    else:
        plain = torch.nn.functional.cross_entropy(3 * (scores - own), labels, weight=of_class)
    loss = solver(scores, labels, weights=weights if weighted else None)
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(*(torch.autograd.grad(value, scores)[0] for value in (loss, plain)))
    # Before the weights come, it is the plain loss.
    waiting = LDAM(COUNTS, scale=3.0, reweight_after=1, normalised=True).double()
    assert torch.equal(waiting(scores, labels), LDAM(COUNTS, scale=3.0).double()(scores, labels))


@pytest.mark.parametrize("weighted", [False, True])
def test_mini_batch_auc_against_all_pairs(weighted):
    scores, labels, weights = drawn(2)
    loss = MiniBatchAUC()(scores, labels, weights=weights if weighted else None)
    total = mass = 0.0
    for s, y, w in zip(scores.tolist(), labels.tolist(), weights.tolist()):
        for t, z, v in zip(scores.tolist(), labels.tolist(), weights.tolist()):
            if y == 1 and z == 0:
                pair = w * v if weighted else 1.0
                total += pair * (1 - (s - t)) ** 2
                mass += pair
    assert loss.item() == pytest.approx(total / mass)
    assert torch.autograd.gradcheck(lambda s: MiniBatchAUC()(s, labels, weights=weights), (scores,))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Margin(-1.0), "margin"),
        (lambda: Focal(-1.0), "gamma"),
        (lambda: Focal(critical=[]), "critical"),
        (lambda: Margin(critical=-1), "critical"),
        (lambda: ClassBalanced((10, 0)), "class_counts"),
        (lambda: ClassBalanced((10, 5), beta=1.0), "beta"),
        (lambda: LDAM((10, 5), max_margin=0.0), "max_margin"),
        (lambda: LDAM((10, 5), reweight_after=-1), "reweight_after"),
        (lambda: LDAM((10, 5), normalised=True), "reweight_after"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(BadSetting, match=says):
        make()


def test_class_counts_must_fit_the_scores():
    with pytest.raises(ShapeMismatch, match="3 classes"):
        LDAM((10, 5), reweight_after=0, normalised=True)(torch.zeros(4, 3), torch.full((4,), 2))
