"""Steps on a device that is not to be waited for, seen on the meta device, which has no numbers to look at."""

import collections

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import setpoint as sp
from marks import cases, slow
from setpoint.decide import cut as threshold
from setpoint.decide.cut import find, find_among
from setpoint.errors import BadGroups, BadLabels, BadScores, BadWeights, DivergedPrices
from setpoint.measure.curve import curve, curve_of_fixed_length
from setpoint.measure.sample import Sample
from setpoint.solve import ascent, implicit, lagrangian, memory, price, solver

ASKS = [
    "minimize fnr where fpr <= 5%",
    "maximize precision where recall >= 95%",
    "maximize precision where flagged == 10%",
    "minimize error where fpr <= 10% and recall >= 50%",
    "maximize recall over fpr in [0%, 5%] with 5 points",
    "maximize precision over recall in [90%, 100%] with 3 points",
    "maximize f_score(1)",
    "maximize mcc where fpr <= 10%",
]
CRITERIA = {
    **{ask: lambda ask=ask: sp.ImplicitThreshold(sp.ask(ask)) for ask in ASKS},
    "cross-entropy": sp.CrossEntropy,
    "balanced": lambda: sp.CrossEntropy("balanced"),
    "focal": sp.losses.Focal,
    "last layer": None,
}


@pytest.fixture
def unseen(monkeypatch):
    """The processor, treated as a device at whose numbers nobody may look."""
    for module in (solver, threshold, implicit, price, memory, lagrangian, ascent):
        monkeypatch.setattr(module, "may_look", lambda numbers: False)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CRITERIA)
def test_a_training_step_runs_where_there_are_no_numbers(name, weighted):
    head = nn.Linear(4, 1, device="meta")
    criterion = CRITERIA[name]() if CRITERIA[name] else sp.losses.ImplicitLastLayer(sp.ask(ASKS[0]), head)
    criterion.to("meta")
    labels = torch.empty(300, device="meta")
    weights = torch.empty(300, device="meta") if weighted else None
    for _ in range(3):
        scores = head(torch.empty(300, 4, device="meta")).squeeze(-1)
        loss = criterion(scores, labels, weights=weights)
        loss.backward()
    assert loss.device.type == "meta"
    assert loss.shape == ()


def test_the_meta_device_notices_a_look():
    with pytest.raises(RuntimeError, match="meta"):
        sp.Lagrangian(sp.ask(ASKS[0])).to("meta")(torch.empty(9, device="meta"), torch.empty(9, device="meta"))


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 2.0])), min_size=1, max_size=30
    ),
    st.sampled_from(ASKS),
)
@cases(300)
def test_cuts_of_fixed_length_are_the_same_cuts(rows, ask):
    scores, labels, weights = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows))
    if not bool((weights > 0).any()):
        weights[0] = 1.0
    short, fixed = (make(scores, labels, weights) for make in (curve, curve_of_fixed_length))
    real = fixed.places.unique()
    torch.testing.assert_close(fixed.counts[real], short.counts)
    torch.testing.assert_close(fixed.thresholds(real), short.thresholds(torch.arange(len(short.tp))))
    problem = sp.ask(ask)
    one, other = (find_among(problem, cuts, weights.max()) for cuts in (short, fixed))
    for name in ("thresholds", "counts", "feasible", "active"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), msg=name)


def batches(number=6, size=60, seed=0):
    draw = torch.Generator().manual_seed(seed)
    for place in range(number):
        labels = (torch.rand(size, generator=draw) < (0.0 if place < 2 else 0.3)).float()
        # Rounded, so that there are ties; the first batches lack a class.
        scores = ((torch.randn(size, generator=draw) + labels) * 8).round() / 8
        yield scores.requires_grad_(), labels, torch.randint(0, 3, (size,), generator=draw).float()


def trained(make, weighted):
    criterion, told = make(), []
    for scores, labels, weights in batches():
        loss = criterion(scores, labels, weights=weights if weighted else None)
        loss.backward()
        told.append((loss.detach(), scores.grad, {name: b.clone() for name, b in criterion.state_dict().items()}))
    return told


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [*[*CRITERIA.values()][:-1], lambda: sp.Lagrangian(sp.ask(ASKS[0]))])
def test_what_is_not_looked_at_comes_out_the_same(make, weighted, request):
    seen = trained(make, weighted)
    request.getfixturevalue("unseen")
    assert not solver.may_look(torch.zeros(()))
    for (loss, slope, state), (other, other_slope, other_state) in zip(seen, trained(make, weighted)):
        torch.testing.assert_close(loss, other)
        torch.testing.assert_close(slope, other_slope)
        for name in state:
            torch.testing.assert_close(state[name], other_state[name], msg=name)


@pytest.mark.parametrize(
    ("error", "scores", "labels", "weights", "groups"),
    [
        (BadScores, [0.0, float("nan")], [0.0, 1.0], None, None),
        (BadScores, [0.0, 2e36], [0.0, 1.0], None, None),
        (BadLabels, [0.0, 1.0], [0.0, 0.5], None, None),
        (BadWeights, [0.0, 1.0], [0.0, 1.0], [1.0, -1.0], None),
        (BadWeights, [0.0, 1.0], [0.0, 1.0], [1.0, 1e13], None),
        (BadGroups, [0.0, 1.0], [0.0, 1.0], None, [0, -1]),
    ],
)
def test_what_is_wrong_makes_the_loss_nan_and_is_told_at_the_next_look(unseen, error, scores, labels, weights, groups):
    criterion = sp.ImplicitThreshold(sp.ask(ASKS[0]))
    good = torch.tensor([0.5, -0.5], requires_grad=True)
    assert criterion(good, torch.tensor([1.0, 0.0])).isfinite()
    bad = [None if column is None else torch.tensor(column) for column in (weights, groups)]
    loss = criterion(torch.tensor(scores, requires_grad=True), torch.tensor(labels), weights=bad[0], groups=bad[1])
    assert loss.isnan()
    assert criterion(good, torch.tensor([1.0, 0.0])).isnan()
    with pytest.raises(error, match="in a batch of the last 100 steps"):
        criterion.look()
    criterion.look()


def test_a_look_is_taken_every_hundredth_step(unseen):
    criterion = sp.CrossEntropy()
    scores, labels = torch.zeros(2), torch.tensor([0.0, 1.0])
    criterion(scores, torch.tensor([0.0, 3.0]))
    for _ in range(98):
        criterion(scores, labels)
    with pytest.raises(BadLabels, match="map your classes"):
        criterion(scores, labels)


def test_a_price_that_diverged_unseen_is_told_at_the_look(unseen):
    criterion = sp.Lagrangian(sp.ask(ASKS[0]), climb=sp.losses.Climb(1.0, limit=2.0))
    scores, labels = torch.tensor([1.0, 2.0, -1.0], requires_grad=True), torch.tensor([0.0, 1.0, 0.0])
    with torch.no_grad():
        criterion(scores, labels)
        criterion.thresholds.fill_(-5.0)
        for _ in range(5):
            criterion(scores, labels)
    with pytest.raises(DivergedPrices, match="the price of fpr <= 5% has diverged"):
        criterion.look()


class Waits(TorchDispatchMode):
    """Counts what would make a CUDA device be waited for: numbers read from it, and shapes that depend on them."""

    def __init__(self):
        super().__init__()
        self.found = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").split(".")[0]
        by_mask = name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        if by_mask or name in ("_local_scalar_dense", "nonzero", "equal", "_unique2", "masked_select"):
            self.found[name] += 1
        return func(*args, **(kwargs or {}))


def test_the_lagrangian_waits_for_its_device_once_a_step(unseen):
    # For a batch without a class; see the comment there.
    criterion = sp.Lagrangian(sp.ask(ASKS[0]))
    for place, (scores, labels, _) in enumerate(batches(12)):
        with Waits() as waits:
            criterion(scores, labels).backward()
        if place > 5:
            assert waits.found == {"_local_scalar_dense": 1}


@pytest.mark.parametrize("name", [ASKS[0], ASKS[4], ASKS[6], "cross-entropy", "balanced"])
@slow
def test_model_and_solver_compile_into_one_graph(name):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(5, 64, 4, generator=draw)
    labels = (x[..., 0] + torch.randn(5, 64, generator=draw) > 1).float()

    def run(compiled):
        criterion = CRITERIA[name]()

        def step(x, labels):
            return 2 * criterion(model(x).squeeze(-1), labels)

        step = torch.compile(step, backend="aot_eager", fullgraph=True) if compiled else step
        told = []
        for one, label in zip(x, labels):
            loss = step(one, label)
            told.append((loss.detach(), *torch.autograd.grad(loss, [*model.parameters()])))
        return told

    for plain, fused in zip(run(False), run(True)):
        torch.testing.assert_close(plain, fused)
    torch._dynamo.reset()


def test_a_sample_on_the_processor_is_looked_at_at_once():
    with pytest.raises(BadLabels, match="hold 3"):
        sp.CrossEntropy()(torch.zeros(2), torch.tensor([0.0, 3.0]))
    assert find(sp.ask(ASKS[0]), Sample(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]))).feasible
