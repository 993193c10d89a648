"""The augmented Lagrangian: the toy of its paper, the loss and prices by slow loops, and every odd batch."""

import copy
import warnings

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadIndex, BadProblem, BadSetting, DivergedPrices
from setpoint.solve.augmented import AugmentedLagrangian, PerNegative, PerPositive, side_for
from setpoint.solve.augmented_multiclass import AugmentedMulticlass, EveryOutput, OwnOutput
from setpoint.solve.losses import LDAM, ClassCrossEntropy, Focal, MiniBatchAUC
from setpoint.solve.sample_prices import Growth
from setpoint.solve.solver import Solver
from setpoint.train.default import Case, make_solver


class Nothing(Solver):
    """A base loss of zero, so that the charge stands alone."""

    def loss(self, batch, index=None):
        return batch.scores.sum() * 0


def identity(scores):
    return scores


# ------------------------------------------------------------------ the toy of Fig. 1

START, GREEN, RED = "nnpnnppnpp", "nnnpnppnpp", "nnpnnpnppp"


def charge(order, mu, price, side, spacing=0.25):
    """What ten equally spaced samples cost, in the order given, margin 0, all prices equal."""
    labels = torch.tensor([float(kind == "p") for kind in order]).double()
    scores = spacing * torch.arange(10).double()
    solver = AugmentedLagrangian(
        Nothing(), n_samples=10, margin=0.0, side=side, mu=mu, growth=Growth(price=price), output=identity
    ).double()
    return float(solver(scores, labels, index=torch.arange(10)))


@pytest.mark.parametrize(("mu", "price"), [(0.3, 0.7), (0.9, 0.0), (0.05, 2.0)])
def test_the_two_cost_decreases_of_the_toy_are_exact(mu, price):
    d = 0.25
    start = charge(START, mu, price, PerPositive())
    assert start - charge(GREEN, mu, price, PerPositive()) == pytest.approx(39 * mu * d**2 / 50 + 3 * price * d / 25)
    assert start - charge(RED, mu, price, PerPositive()) == pytest.approx(19 * mu * d**2 / 50 + 3 * price * d / 25)


def test_the_mirrored_constraint_prefers_the_other_swap():
    start = charge(START, 0.3, 0.7, PerNegative())
    green, red = (start - charge(order, 0.3, 0.7, PerNegative()) for order in (GREEN, RED))
    assert red > green


# ------------------------------------------------------------------ loss and prices by slow loops


def drawn(seed=0, size=24):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.4).double()
    scores = torch.randn(size, generator=draw, dtype=torch.float64) + 0.5 * labels
    return scores.requires_grad_(), labels, torch.randperm(100, generator=draw)[:size]


def slowly(scores, labels, index, prices, mu, margin, of_positives):
    """The charge of a batch and the prices after it, pair by pair."""
    f = torch.sigmoid(scores.detach()).tolist()
    prices = list(prices)
    kinds = labels.tolist()
    total = 0.0
    for j, own in enumerate(kinds):
        if (own == 1) != of_positives:
            continue
        q = 0.0
        for k, other in enumerate(kinds):
            if other != own:
                up, down = (f[j], f[k]) if of_positives else (f[k], f[j])
                q += max(0.0, margin - (up - down))
        total += mu / 2 * q**2 + prices[index[j]] * q
        prices[index[j]] += mu * q
    return total / (kinds.count(1) * kinds.count(0)), prices


@pytest.mark.parametrize("side", [PerPositive(), PerNegative()], ids=["positives", "negatives"])
@pytest.mark.parametrize("base", [sp.CrossEntropy, Focal, MiniBatchAUC, lambda: LDAM((90, 10))])
def test_loss_and_prices_over_several_batches_against_a_slow_loop(base, side):
    solver = AugmentedLagrangian(base(), n_samples=100, margin=0.2, side=side, mu=0.03).double()
    alone = base().double()
    prices = [0.0] * 100
    for seed in range(5):
        scores, labels, index = drawn(seed)
        paid, prices = slowly(
            scores, labels, index.tolist(), prices, 0.03, 0.2, of_positives=isinstance(side, PerPositive)
        )
        loss = solver(scores, labels, index=index)
        assert loss.item() == pytest.approx(alone(scores, labels).item() + paid, rel=1e-9)
        torch.testing.assert_close(solver.prices, torch.tensor(prices).double())
    assert 0 < sum(price > 0 for price in prices) < 100


def test_the_gradient_is_that_of_every_positive_not_of_the_last():
    scores, labels, index = drawn()
    solver = (
        AugmentedLagrangian(Nothing(), n_samples=100, margin=0.2, mu=0.03, growth=Growth(price=0.4)).double().eval()
    )
    assert torch.autograd.gradcheck(lambda s: solver(s, labels, index=index), (scores,))
    (slope,) = torch.autograd.grad(solver(scores, labels, index=index), scores)
    assert (slope[labels == 1] < 0).sum() > 3


def test_a_large_batch_takes_the_sorted_road_and_agrees_with_the_broad_one():
    draw = torch.Generator().manual_seed(1)
    labels = (torch.rand(1200, generator=draw) < 0.3).double()
    scores = (torch.randn(1200, generator=draw, dtype=torch.float64) + labels).requires_grad_()
    solver = (
        AugmentedLagrangian(Nothing(), n_samples=1200, margin=0.2, mu=1e-4, growth=Growth(price=0.1)).double().eval()
    )
    loss = solver(scores, labels, index=torch.arange(1200))
    f = torch.sigmoid(scores)
    q = (0.2 - (f[labels == 1].unsqueeze(1) - f[labels == 0])).relu().sum(1)
    pairs = (labels == 1).sum() * (labels == 0).sum()
    plain = (0.5e-4 * q**2 + 0.1 * q).sum() / pairs
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(*(torch.autograd.grad(v, scores)[0] for v in (loss, plain)))


# ------------------------------------------------------------------ mu


def test_mu_grows_only_when_the_metric_has_fallen_and_only_to_its_limit():
    """The strict < of the published algorithm: a tie leaves mu as it is."""
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=4, mu=0.1, growth=Growth(rho=3.0, limit=0.5))
    found = []
    for metric in (0.6, 0.7, 0.7, 0.65, 0.66, 0.6):
        solver.step_metric(metric)
        found.append(float(solver.mu))
    assert found == pytest.approx([0.1, 0.1, 0.1, 0.3, 0.3, 0.5])


def test_an_improvement_within_the_tolerance_is_none():
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=4, mu=0.1, growth=Growth(tolerance=0.05))
    solver.step_metric(0.6)
    solver.step_metric(0.64)
    assert float(solver.mu) == pytest.approx(0.2)
    with pytest.raises(BadSetting, match="NaN"):
        solver.step_metric(float("nan"))


def told(metric, anchored, epochs=6):
    """What `fit` told the solver after each epoch, the history, and the area on held-out rows after each."""
    heard, areas = [], []

    class Listening(AugmentedLagrangian):
        def step_metric(self, value):
            heard.append(value)
            super().step_metric(value)

    draw = torch.Generator().manual_seed(2)
    x = torch.randn(160, 3, generator=draw)
    labels = (x[:, 0] + torch.randn(160, generator=draw) > 1).float()
    model = torch.nn.Linear(3, 1)
    torch.nn.init.constant_(model.weight, -0.3)
    solver = Listening(sp.CrossEntropy(), n_samples=120, mu=1e-4, growth=Growth(metric=metric))

    def after(row):
        scores = model(x[120:]).detach().squeeze(-1)
        high, low = scores[labels[120:] == 1], scores[labels[120:] == 0]
        areas.append(float((high.unsqueeze(1) > low).double().mean()))

    train, rest = sp.Batches(x[:120], labels[:120], batch_size=40), sp.Batches(x[120:], labels[120:])
    if anchored:
        solver = sp.losses.WithAnchor(solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.errors.SharedData)
        result = sp.fit(
            model, "minimize fnr where fpr <= 20%", train, rest, solver, epochs=epochs, warm_start=0, on_epoch=after
        )
    return heard, result.history, areas


@pytest.mark.parametrize("anchored", [False, True])
def test_fit_tells_the_ask_or_the_area_of_the_held_out_rows(anchored):
    heard, history, areas = told(sp.losses.ByAsk(), anchored)
    assert heard == [-row["held_out"] for row in history]
    heard, _, areas = told(sp.losses.ByArea(), anchored)
    assert heard == pytest.approx(areas, abs=1e-9)
    assert heard != [-row["held_out"] for row in history]
    assert Growth().metric == sp.losses.ByAsk()


# ------------------------------------------------------------------ index


@pytest.mark.parametrize("wrong", [100, -1])
def test_an_index_out_of_range_is_refused_and_nothing_moves(wrong):
    scores, labels, index = drawn()
    solver = AugmentedLagrangian(sp.CrossEntropy("balanced"), n_samples=100, mu=0.1).double()
    before = copy.deepcopy(solver.state_dict())
    with pytest.raises(BadIndex, match=f"index {wrong} .* n_samples is 100"):
        solver(scores, labels, index=index.index_fill(0, torch.tensor([3]), wrong))
    assert all(torch.equal(before[name], value) for name, value in solver.state_dict().items())


@pytest.mark.parametrize("index", [torch.arange(23), torch.rand(24), torch.ones(24, dtype=torch.bool)])
def test_an_index_that_is_no_index_is_refused(index):
    scores, labels, _ = drawn()
    with pytest.raises(BadIndex, match="24 samples"):
        AugmentedLagrangian(sp.CrossEntropy(), n_samples=100)(scores, labels, index=index)


def test_an_index_seen_twice_pays_twice_and_moves_its_price_once():
    scores, labels, index = drawn()
    once = AugmentedLagrangian(Nothing(), n_samples=100, margin=0.2, mu=0.1, growth=Growth(price=0.3)).double()
    twice = copy.deepcopy(once)
    place = int((labels == 1).nonzero()[0])
    pair = [torch.cat([part, part[place : place + 1]]) for part in (scores, labels, index)]
    loss_once, loss_twice = once(scores, labels, index=index), twice(*pair[:2], index=pair[2])
    torch.testing.assert_close(twice.prices, once.prices)
    n_positive = float(labels.sum())
    weights = torch.ones_like(scores).index_fill(0, torch.tensor([place]), 2.0)
    weighted = copy.deepcopy(once)
    weighted.sample_prices.fill_(0.3)
    torch.testing.assert_close(weighted(scores, labels, weights=weights, index=index), loss_twice)
    assert loss_twice.item() * (n_positive + 1) > loss_once.item() * n_positive


def test_two_views_of_one_sample_move_its_price_by_their_mean():
    scores, labels = torch.tensor([0.3, -0.8, 0.0, 0.5]).double(), torch.tensor([1.0, 1.0, 0.0, 0.0]).double()
    solver = AugmentedLagrangian(Nothing(), n_samples=5, margin=0.2, mu=0.1, growth=Growth(price=0.3)).double()
    solver(scores, labels, index=torch.tensor([4, 4, 0, 1]))
    f = torch.sigmoid(scores)
    q = (0.2 - (f[:2].unsqueeze(1) - f[2:])).relu().sum(1)
    assert float(q[0]) != pytest.approx(float(q[1]))
    expected = torch.tensor([0.3, 0.3, 0.3, 0.3, 0.3 + 0.1 * float(q.mean())]).double()
    torch.testing.assert_close(solver.prices, expected)


def test_without_an_index_all_samples_share_one_price():
    scores, labels, _ = drawn()
    solver = AugmentedLagrangian(Nothing(), n_samples=100, margin=0.2, mu=0.1).double()
    f = torch.sigmoid(scores.detach())
    q = (0.2 - (f[labels == 1].unsqueeze(1) - f[labels == 0])).relu().sum(1)
    solver(scores, labels)
    assert float(solver.shared_price) == pytest.approx(0.1 * float(q.mean()))
    assert float(solver.prices.abs().sum()) == 0
    pairs = float(labels.sum() * (1 - labels).sum())
    expected = float((0.05 * q**2 + solver.shared_price * q).sum()) / pairs
    assert solver.eval()(scores, labels).item() == pytest.approx(expected)


# ------------------------------------------------------------------ odd batches


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_batch_of_one_class_is_the_base_loss_and_moves_no_price(label):
    scores, labels, index = drawn()
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, mu=0.1).double()
    one = torch.full_like(labels, label)
    assert torch.equal(solver(scores, one, index=index), sp.CrossEntropy().double()(scores, one))
    assert float(solver.prices.sum()) == 0


def test_a_sample_of_weight_zero_is_not_there():
    scores, labels, index = drawn()
    keep = torch.arange(24) % 3 > 0
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, mu=0.1).double()
    twin = copy.deepcopy(solver)
    torch.testing.assert_close(
        solver(scores, labels, weights=keep.double(), index=index),
        twin(scores[keep], labels[keep], index=index[keep]),
    )
    torch.testing.assert_close(solver.prices, twin.prices)


def test_prices_survive_a_state_dict_in_mid_training_and_rest_in_eval():
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, mu=0.1).double()
    for seed in range(3):
        scores, labels, index = drawn(seed)
        solver(scores, labels, index=index)
    solver.step_metric(0.5)
    solver.step_metric(0.4)
    twin = AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, mu=0.1).double()
    twin.load_state_dict(copy.deepcopy(solver.state_dict()))
    assert torch.equal(solver(scores, labels, index=index), twin(scores, labels, index=index))
    assert torch.equal(solver.prices, twin.prices)
    before = solver.prices.clone()
    solver.eval()(scores, labels, index=index)
    assert torch.equal(before, solver.prices)
    assert solver.status()["mu"] == pytest.approx(0.2)
    assert solver.status()["highest_price"] == float(before.max())


@pytest.mark.parametrize("indexed", [True, False])
def test_diverging_prices_are_stopped_with_the_sample_and_the_last_values(indexed):
    scores, labels, index = drawn()
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, mu=1.0, growth=Growth(price_limit=20.0)).double()
    name = r"of sample \d+" if indexed else "shared by all samples"

    def train():
        for _ in range(40):
            solver(scores, labels, index=index if indexed else None)

    with pytest.raises(DivergedPrices, match=rf"price {name} has diverged: \d+.*, then 2\d.*limit 20.*mu at 1;"):
        train()
    assert solver.prices.max() <= 20


# ------------------------------------------------------------------ which side


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("minimize fnr where fpr <= 1%", PerNegative()),
        ("maximize recall where tnr >= 99%", PerNegative()),
        ("maximize precision where flagged == 2%", PerNegative()),
        ("maximize recall where precision >= 90%", PerNegative()),
        ("maximize recall over fpr in [0%, 5%]", PerNegative()),
        ("maximize precision where recall >= 95%", PerPositive()),
        ("minimize fpr where fnr <= 2%", PerPositive()),
        ("minimize fnr where fpr <= 80%", PerPositive()),
        ("maximize precision over recall in [95%, 100%]", PerPositive()),
        ("minimize fpr over recall in [90%, 100%]", PerPositive()),
        ("maximize f1", PerPositive()),
    ],
)
def test_the_side_follows_from_the_problem_and_can_be_said(text, side):
    problem = sp.ask(text)
    assert side_for(problem) == side
    assert AugmentedLagrangian(sp.CrossEntropy(), n_samples=3, problem=problem).side == side
    said = AugmentedLagrangian(sp.CrossEntropy(), n_samples=3, problem=problem, side=PerNegative())
    assert said.side == PerNegative()


def test_without_a_problem_positives_are_constrained_as_published():
    assert AugmentedLagrangian(sp.CrossEntropy(), n_samples=3).side == PerPositive()


# ------------------------------------------------------------------ several classes


def class_batch(seed=0, size=40, classes=5):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (size,), generator=draw)
    scores = torch.randn(size, classes, generator=draw, dtype=torch.float64)
    return scores.requires_grad_(), labels, torch.randperm(90, generator=draw)[:size]


def class_charge(scores, labels, critical, every, margin):
    """Constraints (6) and (7) as printed: q of every critical sample, by its place in the batch."""
    f, kinds = scores.detach().softmax(-1).tolist(), labels.tolist()
    paid = {}
    for j, c in enumerate(kinds):
        if c not in critical:
            continue
        q = 0.0
        for k, i in enumerate(kinds):
            if i in critical:
                continue
            q += max(0.0, -(f[j][c] - f[k][c]) + margin)
            if every:
                q += max(0.0, (f[j][i] - f[k][i]) + margin)
        paid[j] = q
    return paid


@pytest.mark.parametrize("critical", [[4], [1, 3]])
@pytest.mark.parametrize("every", [False, True], ids=["own output (6)", "every output (7)"])
def test_both_constraints_of_several_classes_against_a_slow_loop(critical, every):
    solver = AugmentedMulticlass(
        ClassCrossEntropy(), n_samples=90, critical=critical, margin=0.1, mu=0.05,
        demand=EveryOutput() if every else OwnOutput(),
    ).double()  # fmt: skip
    prices = [0.0] * 90
    for seed in range(3):
        scores, labels, index = class_batch(seed)
        paid = class_charge(scores, labels, critical, every, 0.1)
        rest = len(labels) - len(paid)
        total = sum(0.025 * q**2 + prices[index[j]] * q for j, q in paid.items()) / (len(paid) * rest)
        for j, q in paid.items():
            prices[index[j]] += 0.05 * q
        loss = solver(scores, labels, index=index)
        base = torch.nn.functional.cross_entropy(scores, labels)
        assert loss.item() == pytest.approx(base.item() + total, rel=1e-9)
        torch.testing.assert_close(solver.prices, torch.tensor(prices).double())
    solver.eval()
    assert torch.autograd.gradcheck(lambda s: solver(s, labels, index=index), (scores,))


def test_two_classes_with_one_output_each_are_the_binary_form():
    scores, labels, index = drawn()
    binary = AugmentedLagrangian(Nothing(), n_samples=100, margin=0.2, mu=0.1).double()
    pair = AugmentedMulticlass(Nothing(), n_samples=100, critical=1, margin=0.2, mu=0.1).double()
    both = torch.stack([torch.zeros_like(scores), scores], dim=1)
    for _ in range(2):
        torch.testing.assert_close(pair(both, labels.long(), index=index), binary(scores, labels, index=index))
    torch.testing.assert_close(pair.prices, binary.prices)


@pytest.mark.parametrize("kind", [0, 4])
def test_a_batch_without_critical_or_without_other_samples_is_the_base_loss(kind):
    scores, labels, index = class_batch()
    solver = AugmentedMulticlass(ClassCrossEntropy(), n_samples=90, critical=4, mu=0.1).double()
    one = torch.full_like(labels, kind)
    torch.testing.assert_close(solver(scores, one, index=index), torch.nn.functional.cross_entropy(scores, one))
    assert float(solver.prices.sum()) == 0


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"margin": -0.1}, "margin"),
        ({"mu": 0.0}, "mu must be above 0"),
        ({"mu": 2.0}, "at most 1"),
        ({"base_loss": torch.nn.BCEWithLogitsLoss()}, "base_loss"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    settings = {"base_loss": sp.CrossEntropy(), "n_samples": 10, **settings}
    with pytest.raises(BadSetting, match=says):
        AugmentedLagrangian(settings.pop("base_loss"), **settings)


def test_bad_growth_problems_and_classes_are_refused():
    with pytest.raises(BadSetting, match="rho"):
        Growth(rho=0.5)
    with pytest.raises(BadProblem, match=r"sp\.ask"):
        AugmentedLagrangian(sp.CrossEntropy(), n_samples=3, problem="minimize fnr")
    scores, labels, _ = class_batch()
    for critical in ([7], range(5)):
        with pytest.raises(BadSetting, match="some, not all"):
            AugmentedMulticlass(ClassCrossEntropy(), n_samples=90, critical=critical)(scores, labels)


def test_the_metric_of_growth_can_be_named_as_a_solver():
    for name, metric in {"augmented": sp.losses.ByAsk(), "augmented-auc": sp.losses.ByArea()}.items():
        assert make_solver(name, Case(sp.ask("minimize fnr where fpr <= 5%"), rows=7)).growth.metric == metric


@pytest.mark.parametrize("prices", [{"price": -1.0}, {"price": 2.0, "price_limit": 1.0}, {"price": float("nan")}])
def test_first_prices_below_zero_or_beyond_their_limit_are_refused(prices):
    with pytest.raises(BadSetting, match=r"price .* must be 0 or more"):
        Growth(**prices)
