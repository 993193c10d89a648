"""The Lagrangian against plain lines, against scipy on convex worlds, and on the tilted world."""

import copy

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import setpoint as sp
import worlds
from marks import quick_first, slow
from setpoint.errors import BadGroups, BadProblem, BadSetting, DivergedPrices
from setpoint.measure.count import count
from setpoint.measure.step import SigmoidStep, SoftplusStep
from setpoint.solve.ascent import Ascent, Climb, NuPI, room
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.mixture import best_mixture
from setpoint.solve.proxy import ProxyLagrangian, SwapRegret, stationary

FNR = sp.ask("minimize fnr where fpr <= 10%")


def data(seed=0, size=80, columns=2):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.4).double()
    x = torch.randn(size, columns, generator=draw, dtype=torch.float64)
    x[:, 0] += labels
    return x, labels


# ------------------------------------------------------------------ the same trajectory in a few plain lines


@pytest.mark.parametrize("control", [None, NuPI(proportional=3.0, smoothing=0.4)], ids=["plain", "nupi"])
@pytest.mark.parametrize("penalty", [None, 2.0], ids=["linear", "with penalty"])
@pytest.mark.parametrize("relation", ["<=", "=="])
def test_the_trajectory_is_that_of_a_few_plain_lines(control, penalty, relation):
    torch.manual_seed(0)
    x, labels = data()
    problem = sp.ask(f"minimize fnr where fpr {relation} 10%")
    climb = Climb(0.2, control, penalty, start=0.5)
    solver = Lagrangian(problem, climb=climb, temperature=2.0, memory=0).double()
    model = torch.nn.Linear(2, 1, bias=False).double()
    weights = model.weight.detach()[0].clone()
    optimizer = torch.optim.SGD([*model.parameters(), *solver.parameters()], lr=0.5)

    positive, negative = x[labels == 1], x[labels == 0]
    price, running, threshold, seen = 0.5, None, None, set()
    for _ in range(40):
        loss = solver(model(x).squeeze(-1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if threshold is None:
            threshold = torch.tensor(sp.evaluate(problem, x @ weights, labels).threshold, dtype=torch.float64)
        w, t = weights.clone().requires_grad_(), threshold.clone().requires_grad_()
        soft_miss = torch.sigmoid(2 * (t - positive @ w)).mean()
        soft_excess = torch.sigmoid(2 * (negative @ w - t)).mean() - 0.1
        true_excess = float((negative @ weights > threshold).double().mean()) - 0.1
        felt = price + (penalty or 0.0) * true_excess
        plain = soft_miss + (felt if relation == "==" else max(felt, 0.0)) * soft_excess
        to_w, to_t = torch.autograd.grad(plain, (w, t))
        weights, threshold = weights - 0.5 * to_w, threshold - 0.5 * to_t
        error = true_excess / 0.1
        rise = error
        if control is not None:
            running = error if running is None else running
            rise += control.proportional * (1 - control.smoothing) * (error - running)
            running = control.smoothing * running + (1 - control.smoothing) * error
        price = price + 0.2 * rise
        price = price if relation == "==" else max(price, 0.0)

        torch.testing.assert_close(loss.detach(), plain.detach())
        torch.testing.assert_close(model.weight.detach()[0], weights)
        torch.testing.assert_close(solver.thresholds.detach()[0], threshold)
        assert float(solver.prices[0]) == pytest.approx(price)
        seen.add(round(price, 6))
    assert len(seen) > 3


# ------------------------------------------------------------------ convex worlds, against scipy

miss = sp.Metric("miss", lambda tp, fp, fn, tn: fn / 32)
wrong = sp.Metric("wrong", lambda tp, fp, fn, tn: (fn + fp) / 80)
alarm = sp.Metric("alarm", lambda tp, fp, fn, tn: fp / 48)
raised = sp.Metric("raised", lambda tp, fp, fn, tn: (tp + fp) / 80)
CONVEX = {
    "one bound": sp.minimize(miss, alarm <= 0.4),
    "a bound that does not bind": sp.minimize(wrong, alarm <= 3.0),
    "an equality": sp.minimize(miss, alarm == 0.4),
    "two bounds": sp.minimize(miss, alarm <= 0.3, raised <= 0.45),
    "two bounds, one idle": sp.minimize(miss, alarm <= 0.3, raised <= 4.0),
}


def convex_world():
    draw = torch.Generator().manual_seed(3)
    labels = torch.cat([torch.ones(32), torch.zeros(48)]).double()
    x = torch.randn(80, 2, generator=draw, dtype=torch.float64)
    x[:32] += torch.tensor([1.0, 0.3], dtype=torch.float64)
    return x, labels


def exact(problem, x, labels):
    """SLSQP on the sampled problem: weights and threshold, and the prices from the stationarity of its answer."""
    x, positive = x.numpy(), labels.numpy() > 0

    def parts(theta):
        margin = x @ theta[:2] - theta[2]
        above, below = np.logaddexp(0, margin), np.logaddexp(0, -margin)
        fp, fn, tp = above[~positive].sum(), below[positive].sum(), above[positive].sum()
        values = {"alarm": fp / 48, "raised": (tp + fp) / 80}
        cost = {"miss": fn / 32, "wrong": (fn + fp) / 80}[problem.objective.name]
        return cost, np.array([values[c.quantity.name] - c.bound for c in problem.constraints])

    def slope(function, theta):
        axes = np.eye(3) * 1e-6
        return np.array([(function(theta + e) - function(theta - e)) / 2e-6 for e in axes])

    equality = problem.constraints[0].relation == "=="
    bounds = {"type": "eq" if equality else "ineq", "fun": lambda theta: -parts(theta)[1]}
    found = minimize(
        lambda theta: parts(theta)[0], np.array([0.5, 0.1, 0.0]), jac=lambda t: slope(lambda u: parts(u)[0], t),
        constraints=[bounds], method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert found.success
    theta = found.x
    active = np.abs(parts(theta)[1]) < 1e-6
    jacobian = slope(lambda u: parts(u)[1], theta)[:, active]
    prices = np.zeros(len(active))
    prices[active] = np.linalg.lstsq(jacobian, -slope(lambda u: parts(u)[0], theta), rcond=None)[0]
    return theta, prices


@pytest.mark.parametrize("problem", quick_first(CONVEX.values(), 2), ids=CONVEX)
def test_primal_and_prices_are_those_of_the_exact_solution(problem):
    torch.manual_seed(0)
    x, labels = convex_world()
    theta, prices = exact(problem, x, labels)
    solver = Lagrangian(
        problem, climb=Climb(0.5, penalty=2.0), step=SoftplusStep, truth=SoftplusStep(1.0), temperature=1.0, memory=0
    ).double()
    model = torch.nn.Linear(2, 1, bias=False).double()
    optimizer = torch.optim.SGD([*model.parameters(), *solver.parameters()], lr=0.3, momentum=0.8)
    for _ in range(500):
        loss = solver(model(x).squeeze(-1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    learned = np.append(model.weight.detach().numpy()[0], solver.thresholds.detach().numpy())
    np.testing.assert_allclose(learned, theta, atol=1e-3)
    np.testing.assert_allclose(solver.prices.numpy(), prices, atol=1e-3)


def learn_thresholds(solver, scores, labels, groups=None, steps=600, lr=0.3):
    optimizer = torch.optim.SGD(solver.parameters(), lr=lr, momentum=0.5)
    for _ in range(steps):
        loss = solver(scores, labels, groups=groups)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@slow
def test_an_area_has_one_threshold_and_one_price_a_point():
    x, labels = data(size=200)
    scores = x[:, 0]
    problem = sp.ask("maximize recall over fpr in [5%, 35%] with 3 points")
    solver = Lagrangian(
        problem, climb=Climb(0.2, penalty=5.0), truth=SigmoidStep(1.5), temperature=1.5, memory=0
    ).double()
    learn_thresholds(solver, scores, labels, steps=700, lr=1.0)
    negatives, positives = scores[labels == 0].numpy(), scores[labels == 1].numpy()

    def soft(values, t):
        return float(np.mean(1 / (1 + np.exp(-1.5 * (values - t)))))

    for t, price, bound in zip(solver.thresholds.tolist(), solver.prices.tolist(), (0.1, 0.2, 0.3)):
        assert soft(negatives, t) == pytest.approx(bound, abs=1e-3)
        recall_slope, fpr_slope = (
            (soft(side, t + 1e-5) - soft(side, t - 1e-5)) / 2e-5 for side in (positives, negatives)
        )
        assert price == pytest.approx(recall_slope / 3 / fpr_slope, abs=1e-3)


@slow
def test_a_gap_between_groups_is_held_by_a_threshold_each():
    x, labels = data(seed=4, size=300)
    groups = torch.arange(300) % 2
    scores = x[:, 0] + 0.8 * labels * groups
    problem = sp.ask("minimize error where recall.gap(sex) <= 5%")
    solver = Lagrangian(
        problem, n_groups=2, climb=Climb(0.05, penalty=3.0), truth=SigmoidStep(2.0), temperature=2.0, memory=0
    ).double()
    learn_thresholds(solver, scores, labels, groups, steps=600, lr=1.0)
    s, y, g = scores.numpy(), labels.numpy() > 0, groups.numpy()

    def recalls(t):
        above = 1 / (1 + np.exp(-2 * (s - t[g])))
        return [above[y & (g == group)].mean() for group in (0, 1)]

    def error(t):
        above = 1 / (1 + np.exp(-2 * (s - t[g])))
        return np.where(y, 1 - above, above).mean()

    found = minimize(
        error, np.zeros(2), method="SLSQP", options={"ftol": 1e-13},
        constraints=[{"type": "ineq", "fun": lambda t: 0.05 - (recalls(t)[1] - recalls(t)[0])}],
    )  # fmt: skip
    assert error(found.x) > error(minimize(error, np.zeros(2)).x) + 1e-3
    np.testing.assert_allclose(solver.thresholds.detach().numpy()[0], found.x, atol=1e-3)
    slopes = [
        [(function(found.x + e) - function(found.x - e)) / 2e-6 for e in np.eye(2) * 1e-6]
        for function in (error, lambda t: recalls(t)[1] - recalls(t)[0])
    ]
    price = -np.dot(*slopes) / np.dot(slopes[1], slopes[1])
    assert float(solver.prices[0]) == pytest.approx(price, abs=1e-3)


# ------------------------------------------------------------------ the tilted world

TILTED = sp.ask("minimize fnr where fpr <= 1%")


def train_tilted(solver, seed, epochs=10, snapshots=None):
    """Balanced cross-entropy for a quarter of the way, then the solver; the model and its learned threshold."""
    torch.manual_seed(seed)
    x, labels = worlds.tilted(20_000, seed)
    train = sp.Batches(x, labels, batch_size=512, shuffle=True, seed=seed)
    model, warm = torch.nn.Linear(2, 1), sp.CrossEntropy("balanced")
    optimizer = torch.optim.Adam([*model.parameters(), *solver.parameters()], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        for batch in train:
            criterion = warm if epoch < epochs // 4 else solver
            loss = criterion(model(batch.x).squeeze(-1), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if snapshots is not None and epoch >= epochs // 4:
            snapshots.append((copy.deepcopy(model), solver.thresholds.detach().clone()))
    return model


def rates_on(model, thresholds, x, labels):
    with torch.no_grad():
        counts = count(model(x).squeeze(-1), labels, thresholds)[0]
    return float(sp.fnr(counts)), float(sp.fpr(counts))


@pytest.mark.parametrize("seed", range(5))
def test_tilted_is_solved_at_the_learned_threshold_by_the_true_rate(seed):
    solver = Lagrangian(TILTED)
    model = train_tilted(solver, seed)
    fnr, fpr = rates_on(model, solver.thresholds.detach(), *worlds.tilted(200_000, 1000 + seed))
    assert fnr <= 0.47
    assert abs(fpr - 0.01) <= 0.003


def test_prices_that_follow_soft_rates_miss_the_true_bound():
    """The control that must lose: the soft FPR is not the FPR."""
    solver = Lagrangian(TILTED, truth=SigmoidStep(1.0), temperature=1.0)
    model = train_tilted(solver, 0, epochs=6)
    _, fpr = rates_on(model, solver.thresholds.detach(), *worlds.tilted(200_000, 1000))
    assert abs(fpr - 0.01) > 0.003


def test_the_mixture_of_proxy_snapshots_meets_the_bound_and_is_good():
    snapshots = []
    train_tilted(ProxyLagrangian(TILTED), 0, epochs=12, snapshots=snapshots)
    x, labels = worlds.tilted(50_000, 500)
    found = [rates_on(*snapshot, x, labels) for snapshot in snapshots]
    mixture = best_mixture([f for f, _ in found], [[p - 0.01] for _, p in found])
    assert mixture.feasible
    assert len(mixture.weights) <= 2
    fresh = [rates_on(*snapshot, *worlds.tilted(200_000, 1000)) for snapshot in snapshots]
    fnr, fpr = (sum(w * fresh[i][k] for i, w in mixture.weights.items()) for k in (0, 1))
    assert fnr <= 0.47
    assert abs(fpr - 0.01) <= 0.003


# ------------------------------------------------------------------ the swap-regret matrix


def test_the_stationary_distribution_is_left_as_it_is():
    matrix = np.random.default_rng(0).random((5, 5))
    matrix /= matrix.sum(0)
    shares = stationary(matrix)
    np.testing.assert_allclose(matrix @ shares, shares, rtol=1e-14)
    assert shares.min() > 0
    assert shares.sum() == pytest.approx(1)


def test_the_stationary_distribution_of_a_matrix_that_hardly_moves_has_all_its_digits():
    # Of two states, left at the rates a and b, the shares are b and a over their sum.
    a, b = 1e-30, 3e-30
    np.testing.assert_allclose(stationary(np.array([[1 - a, b], [a, 1 - b]])), [0.75, 0.25], rtol=1e-14)


def test_the_matrix_moves_as_published():
    bounds = (sp.fpr <= 0.1, sp.recall == 0.75)
    prices = SwapRegret(bounds, Climb(0.3)).double()
    matrix = np.full((4, 4), 0.25)
    for excess in ([0.05, -0.1], [0.02, 0.2], [-0.01, 0.1]):
        values, vectors = np.linalg.eig(matrix)
        shares = np.abs(np.real(vectors[:, np.argmin(np.abs(values - 1))]))
        shares /= shares.sum()
        weight, felt = prices.felt(torch.tensor(excess, dtype=torch.float64))
        assert float(weight) == pytest.approx(shares[0])
        np.testing.assert_allclose(felt.numpy(), [shares[1], shares[2] - shares[3]], atol=1e-12)
        gains = np.array([0.0, excess[0] / 0.1, excess[1] / 0.25, -excess[1] / 0.25])
        matrix = matrix * np.exp(0.3 * np.outer(gains, shares))
        matrix /= matrix.sum(0)
        true = torch.tensor(excess, dtype=torch.float64)
        prices.climb(true)
        np.testing.assert_allclose(prices.log_matrix.exp().numpy(), matrix, atol=1e-12)


# ------------------------------------------------------------------ what is held, and what is refused


def test_prices_climb_while_broken_fall_while_idle_and_stop_at_zero_and_at_the_ceiling():
    ascent = Ascent((sp.fpr <= 0.1, sp.recall >= 0.8, sp.flagged == 0.3), Climb(lr=1.0, ceiling=0.9)).double()
    true = torch.tensor([0.05, -0.1, -0.06], dtype=torch.float64)
    ascent.climb(true)
    torch.testing.assert_close(ascent.prices, torch.tensor([0.5, 0.0, -0.2], dtype=torch.float64))
    ascent.climb(true)
    torch.testing.assert_close(ascent.prices, torch.tensor([0.9, 0.0, -0.4], dtype=torch.float64))


def test_the_room_of_a_bound_is_the_share_that_it_allows():
    rooms = [room(bound) for bound in (sp.fpr <= 0.01, sp.recall >= 0.98, sp.fpr <= 0.0, sp.mcc >= 0.5)]
    assert rooms == pytest.approx([0.01, 0.02, 1.0, 1.0])


@pytest.mark.parametrize("control", [None, NuPI()])
def test_diverging_prices_are_stopped_by_name_with_the_last_values(control):
    scores, labels = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0.0, 0.0, 1.0])
    solver = Lagrangian(
        sp.ask("maximize recall where fpr <= 10% and recall >= 90%"),
        climb=Climb(1.0, control, limit=20.0), temperature=1.0, memory=0,
    )  # fmt: skip
    solver(scores, labels)
    with torch.no_grad():
        solver.thresholds.fill_(0.0)
    seen = []

    def train():
        for _ in range(10):
            seen.append(solver.prices.clone())
            solver(scores, labels)

    with pytest.raises(DivergedPrices, match=r"fpr <= 10% has diverged: 1\d.*then 2\d.*limit 20.*fpr beyond .* by 0.9"):
        train()
    assert torch.equal(seen[-1], solver.prices)
    assert 10 < solver.prices.max() <= 20


def test_thresholds_are_a_parameter_that_starts_at_the_best_cut():
    x, labels = data()
    solver = Lagrangian(FNR).double()
    assert [name for name, _ in solver.named_parameters()] == ["thresholds"]
    solver.eval()
    solver(x[:, 0], labels)
    assert solver.thresholds.tolist() == [0.0]
    solver.train()
    loss = solver(x[:, 0], labels)
    assert float(solver.thresholds.detach()[0]) == sp.evaluate(FNR, x[:, 0], labels).threshold
    loss.backward()
    assert torch.isfinite(solver.thresholds.grad).all()
    assert solver.status()["prices"] == solver.prices.tolist()


@pytest.mark.parametrize("kind", [Lagrangian, sp.losses.ProxyLagrangian])
def test_thresholds_and_prices_start_where_they_are_told_to(kind):
    x, labels = data()
    solver = kind(FNR, threshold=0.25, climb=Climb(1e-12, start=0.5)).double()
    solver(x[:, 0], labels)
    assert solver.thresholds.tolist() == [0.25]
    assert float(solver.prices[0]) == pytest.approx(0.5, abs=1e-6)


def test_a_batch_without_positives_still_moves_the_prices_by_what_is_remembered():
    x, labels = data()
    solver = Lagrangian(FNR, climb=Climb(0.3)).double()
    solver(x[:, 0], labels)
    before = float(solver.prices[0])
    solver(torch.full((40,), 9.0).double(), torch.zeros(40).double())
    assert float(solver.prices[0]) > before


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"temperature": 0.0}, BadSetting, "temperature"),
        ({"threshold": float("nan")}, BadSetting, "threshold must be a number to start from"),
        ({"n_groups": 2}, BadProblem, "compares no groups"),
    ],
)
def test_bad_settings_are_refused(settings, error, says):
    with pytest.raises(error, match=says):
        Lagrangian(FNR, **settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"penalty": 0.0}, "penalty must be above 0"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"lr": -1.0}, "lr must be above 0"),
        ({"ceiling": -1.0}, "ceiling must be above 0"),
        ({"limit": 0.0}, "limit must be above 0"),
        ({"control": "nupi"}, "control must be None or a NuPI"),
        ({"start": float("inf")}, "start must be a number to start from"),
    ],
)
def test_bad_climbs_are_refused(settings, says):
    with pytest.raises(BadSetting, match=says):
        Climb(**settings)


@pytest.mark.parametrize("climb", [Climb(control=NuPI()), Climb(penalty=1.0), Climb(ceiling=1.0)])
def test_the_proxy_lagrangian_refuses_settings_of_a_climb_that_it_would_not_use(climb):
    with pytest.raises(BadSetting, match="lr and start alone"):
        ProxyLagrangian(FNR, climb=climb)


def test_bad_problems_controls_and_groups_are_refused():
    gap = sp.ask("minimize error where recall.gap(sex) <= 5%")
    with pytest.raises(BadProblem, match=r"sp\.ask"):
        Lagrangian("minimize fnr")
    with pytest.raises(BadProblem, match="n_groups="):
        Lagrangian(gap)
    with pytest.raises(BadSetting, match="smoothing"):
        NuPI(smoothing=1.0)
    solver, (x, labels) = Lagrangian(gap, n_groups=2), data()
    with pytest.raises(BadGroups, match="pass groups="):
        solver(x[:, 0], labels)
    with pytest.raises(BadGroups, match="group 2"):
        solver(x[:, 0], labels, groups=torch.full((80,), 2))
