import pytest
import torch

import setpoint as sp
from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.sample import Sample
from setpoint.solve.correction import Correction
from setpoint.solve.memory import Memory, memory_size

PROBLEM = sp.minimize(sp.fnr, sp.fpr <= 0.1)


def sample(*values, label=1.0):
    return Sample(torch.tensor(values), torch.full((len(values),), label))


def present(sample):
    """What is there: places that are still empty weigh nothing."""
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    rows = zip(sample.scores.tolist(), sample.labels.tolist(), weights.tolist())
    return sorted(row for row in rows if row[2] > 0)


def test_memory_joins_the_batch_with_the_newest_scores_before_it():
    memory = Memory(5)
    assert present(memory.joined(sample(1.0, 2.0))) == [(1, 1, 1), (2, 1, 1)]
    for pair in ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)):
        memory.push(sample(*pair))
    assert sorted(memory.scores.tolist()) == [2, 3, 4, 5, 6]
    assert sorted(memory.joined(sample(7.0, 8.0)).scores.tolist()) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("size", [0, 3, 7, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("plain", [False, True])
def test_what_memory_takes_is_what_it_joins_and_then_keeps(size, dtype, plain):
    one, other = Memory(size), Memory(size)
    draw = torch.Generator().manual_seed(size)
    for length in (2, 3, 0, 5, 1, 9, 2):
        scores, labels, weights = (torch.rand(length, generator=draw).to(dtype).round(decimals=2) for _ in range(3))
        batch = Sample(scores, labels.round(), None if plain else weights)
        joined = other.joined(batch)
        assert present(one.taking(batch, keep=False)) == present(joined)
        assert present(one.taking(batch, keep=True)) == present(joined)
        other.push(batch)
        assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_a_batch_that_fills_the_memory_stands_alone():
    memory = Memory(3)
    memory.push(sample(1.0, 2.0))
    assert memory.joined(sample(5.0, 6.0, 7.0, 8.0)).scores.tolist() == [5, 6, 7, 8]
    memory.push(sample(5.0, 6.0, 7.0, 8.0))
    assert sorted(memory.scores.tolist()) == [6, 7, 8]


def test_memory_keeps_labels_and_weights_beside_their_scores():
    memory = Memory(4)
    memory.push(Sample(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0]), torch.tensor([3.0, 0.0])))
    joined = memory.joined(sample(9.0))
    assert present(joined) == [(1, 0, 3), (9, 1, 1)]


def test_rarer_bounds_get_more_memory():
    assert memory_size(None) == memory_size(0.5) == 2048
    assert memory_size(0.001) == 20000
    assert memory_size(1e-9) == 65536
    assert len(sp.ImplicitThreshold(sp.minimize(sp.fnr, sp.fpr <= 0.001)).memory.scores) == 20000


def test_memory_supplies_the_class_that_a_batch_lacks():
    solver = sp.ImplicitThreshold(PROBLEM)
    scores = torch.linspace(-1, 1, 40)
    solver(scores, (torch.arange(40) % 2).float())
    only_negatives = torch.randn(10, generator=torch.Generator().manual_seed(0)).requires_grad_()
    solver(only_negatives, torch.zeros(10)).backward()
    assert only_negatives.grad.abs().sum() > 0


def test_nothing_moves_until_both_classes_were_seen():
    solver = sp.ImplicitThreshold(PROBLEM)
    scores = torch.randn(10, requires_grad=True)
    loss = solver(scores, torch.zeros(10))
    loss.backward()
    assert loss.item() == 0
    assert scores.grad.abs().sum() == 0


def test_the_temperature_is_set_once_from_the_first_spread_and_kept():
    solver = sp.ImplicitThreshold(PROBLEM)
    labels = (torch.arange(40) % 2).float()
    solver(torch.zeros(40), labels)
    assert solver.temperature.item() == 0
    wide = 100 * torch.randn(40, generator=torch.Generator().manual_seed(0))
    solver(wide, labels)
    first = solver.temperature.item()
    assert first == pytest.approx(4 / torch.cat([wide, torch.zeros(40)]).std(correction=0).item())
    solver(torch.randn(40), labels)
    assert solver.temperature.item() == first
    assert sp.ImplicitThreshold(PROBLEM, temperature=2.5).temperature.item() == 2.5


def test_the_loss_does_not_depend_on_the_scale_of_the_scores():
    draw = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(200, generator=draw).double(), (torch.arange(200) % 4 == 0).double()
    losses = [sp.ImplicitThreshold(PROBLEM).double()(scale * scores, labels) for scale in (1e-3, 1.0, 1e3)]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-6)
    assert losses[2].item() == pytest.approx(losses[1].item(), rel=1e-6)


def test_prices_and_thresholds_can_be_read():
    solver = sp.ImplicitThreshold(PROBLEM)
    scores = torch.randn(400, generator=torch.Generator().manual_seed(0))
    labels = (torch.arange(400) % 2).float()
    solver(scores + labels, labels)
    status = solver.status()
    assert status["prices"][0] > 0
    threshold = status["thresholds"][0]
    assert ((scores[labels == 0] > threshold).float().mean() - 0.1).abs() < 0.01


def test_thresholds_are_searched_every_so_many_steps():
    solver = sp.ImplicitThreshold(PROBLEM, correction=Correction(every=2), memory=0)
    labels = (torch.arange(40) % 2).float()
    found = []
    for seed in range(4):
        solver(torch.randn(40, generator=torch.Generator().manual_seed(seed)), labels)
        found.append(solver.thresholds.item())
    assert found[0] == found[1] != found[2] == found[3]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: sp.ImplicitThreshold(PROBLEM, temperature=0.0), BadSetting, "temperature"),
        (lambda: sp.ImplicitThreshold(PROBLEM, correction=Correction(every=0)), BadSetting, "every"),
        (lambda: sp.ImplicitThreshold(PROBLEM, memory=-1), BadSetting, "memory"),
        (lambda: sp.ImplicitThreshold("minimize fnr"), BadProblem, "sp.ask"),
        (lambda: sp.CrossEntropy("heavy"), BadSetting, "balanced"),
        (lambda: sp.CrossEntropy(-1.0), BadSetting, "above 0"),
    ],
)
def test_bad_settings_are_refused_by_name(make, error, says):
    with pytest.raises(error, match=says):
        make()


def smooth_f_with_as_much_passing(scores, labels, threshold, passing):
    """The smooth F-score at the threshold that lets so much pass, by bisection; nothing of it is shared."""
    low, high = threshold - 50, threshold + 50
    for _ in range(200):
        middle = (low + high) / 2
        too_much = torch.sigmoid(scores - middle).sum() > passing
        low, high = (middle, high) if too_much else (low, middle)
    passes = torch.sigmoid(scores - low)
    return 2 * (passes * labels).sum() / (passes.sum() + labels.sum())


def test_without_a_bound_the_threshold_moves_with_the_scores_around_it():
    draw = torch.Generator().manual_seed(3)
    labels = (torch.rand(60, generator=draw) < 0.2).double()
    scores = (torch.randn(60, generator=draw).double() + labels).requires_grad_()
    solver = sp.ImplicitThreshold(sp.maximize(sp.f_score(1)), temperature=1.0, memory=0).double()
    loss = solver(scores, labels)
    loss.backward()
    threshold = float(solver.thresholds)
    passing = torch.sigmoid(scores.detach() - threshold).sum()
    slopes = []
    for row in range(60):
        ends = [
            scores.detach().index_add(0, torch.tensor([row]), torch.tensor([move]).double()) for move in (1e-5, -1e-5)
        ]
        up, down = (smooth_f_with_as_much_passing(end, labels, threshold, passing) for end in ends)
        slopes.append(-(up - down) / 2e-5)
    torch.testing.assert_close(scores.grad, torch.stack(slopes), atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize(
    "ask", ["maximize f1", "maximize f1 where fpr <= 90%", "minimize error where recall.gap(g) <= 30%"]
)
def test_scores_that_no_bound_holds_do_not_drift_together(ask):
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(200) % 5 == 0).double()
    scores = (torch.randn(200, generator=draw).double() + labels).requires_grad_()
    groups = torch.arange(200) // 100
    grouped = "gap" in ask
    solver = sp.ImplicitThreshold(sp.ask(ask), n_groups=2 if grouped else None, temperature=1.0, memory=0).double()
    solver(scores, labels, groups=groups if grouped else None).backward()
    assert scores.grad.abs().max() > 1e-4
    assert abs(float(scores.grad.sum())) < 1e-9
