"""Two hundred optimizer steps of every solver and kind of problem give the numbers that were written down before.

`python tests/solve/test_trajectories.py` writes `trajectories.npz` anew. Do this only when a change is meant to alter
the numbers, and say so in the changelog.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import setpoint as sp
from marks import quick_first

WRITTEN = Path(__file__).with_suffix("").with_name("trajectories.npz")
STEPS, SHORT, EVERY, BATCH, WIDTH, ROWS = 200, 40, 20, 32, 4, 320
GROUPS = 3
ONE, TWO = "minimize fnr where fpr <= 20%", "maximize recall where fpr <= 30% and precision >= 40%"
ROC, PR = (
    "maximize recall over fpr in [0%, 30%] with 5 points",
    "maximize precision over recall in [60%, 90%] with 4 points",
)
GAP, GAPS = "minimize error where fpr.gap(g) <= 10%", "minimize fnr where recall.gap(g) == 0% and fpr <= 40%"
NUPI = sp.losses.Climb(control=sp.losses.NuPI(), penalty=1.0, ceiling=20.0)
SLACK = sp.losses.Correction(slack=sp.losses.Slack())


def implicit(ask, make=sp.ImplicitThreshold, memory=128, **more):
    return lambda: make(sp.ask(ask), memory=memory, **more)


def lagrangian(ask, make=sp.Lagrangian, **more):
    return implicit(ask, make, **more)


def augmented(**more):
    return lambda: sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=ROWS, mu=0.01, **more)


proxy = sp.losses.ProxyLagrangian
#: By name: the solver, and the kinds of its batches.
CASES = {
    "implicit, one bound": (implicit(ONE), ""),
    "lagrangian, one bound": (lagrangian(ONE), ""),
    "proxy, one bound": (lagrangian(ONE, proxy), ""),
    "implicit, two bounds": (implicit("minimize error where fpr <= 15% and recall >= 70%"), ""),
    "implicit, roc area": (implicit(ROC), ""),
    "implicit, gap": (implicit(GAP, n_groups=GROUPS), "groups"),
    "augmented": (augmented(), "index"),
    "implicit, ties": (implicit(ONE), "ties"),
    "implicit, weights": (implicit(ONE), "weights"),
    "implicit, batches of one class": (implicit(ONE), "sorted"),
    "implicit, no memory": (implicit(ONE, memory=0), ""),
    "implicit, no memory, batches of one class": (implicit(ONE, memory=0), "sorted"),
    "implicit, fpr at recall": (implicit("minimize fpr where recall >= 80%"), ""),
    "implicit, fpr at recall, ties": (implicit("minimize fpr where recall >= 80%"), "ties"),
    "implicit, precision at recall": (implicit("maximize precision where recall >= 80%"), ""),
    "implicit, precision at k": (implicit("maximize precision where flagged == 20%"), ""),
    "implicit, precision at k, ties": (implicit("maximize precision where flagged == 20%"), "ties weights"),
    "implicit, two bounds, weights": (implicit(TWO), "weights"),
    "implicit, two bounds, ties": (implicit(TWO), "ties"),
    "implicit, out of reach": (implicit("maximize recall where precision >= 100% and fpr <= 0%"), ""),
    "implicit, f1": (implicit("maximize f1"), ""),
    "implicit, mcc": (implicit("maximize mcc where fpr <= 30%"), ""),
    "implicit, roc area, weights": (implicit(ROC), "weights"),
    "implicit, roc area, ties": (implicit(ROC), "ties"),
    "implicit, roc area, no memory": (implicit(ROC, memory=0), ""),
    "implicit, pr area": (implicit(PR), ""),
    "implicit, pr area, batches of one class": (implicit(PR), "sorted"),
    "implicit, gap, weights": (implicit(GAP, n_groups=GROUPS), "groups weights"),
    "implicit, gap, ties": (implicit(GAP, n_groups=GROUPS), "groups ties"),
    "implicit, gap, batches of one class": (implicit(GAP, n_groups=GROUPS), "groups sorted"),
    "implicit, gap of fnr": (implicit("minimize fpr where fnr.gap(g) <= 5%", n_groups=GROUPS), "groups"),
    "implicit, no gap": (implicit(GAPS, n_groups=GROUPS), "groups short"),
    "implicit, precision and gap": (
        implicit("maximize precision where recall.gap(g) <= 10% and recall >= 70%", n_groups=GROUPS), "groups short",
    ),
    "implicit, softplus": (implicit(ONE, step=sp.steps.SoftplusStep), ""),
    "implicit, every third step": (implicit(ONE, correction=sp.losses.Correction(every=3)), ""),
    "implicit, latest": (implicit(ONE, correction=sp.losses.Correction(every=4, latest=3)), ""),
    "implicit, slack": (implicit(ONE, correction=SLACK), ""),
    "implicit, soft": (implicit(ONE, correction=sp.losses.Correction(soft=True)), ""),
    "implicit, slope penalty": (implicit(ONE, slope_penalty=0.1), ""),
    "penalty": (implicit(ONE, sp.losses.Penalty), ""),
    "penalty, roc area": (implicit(ROC, sp.losses.Penalty), ""),
    "with an anchor": (lambda: sp.losses.WithAnchor(implicit(ONE)()), ""),
    "lagrangian, weights, batches of one class": (lagrangian(ONE), "weights sorted"),
    "lagrangian, no memory": (lagrangian(ONE, memory=0), ""),
    "lagrangian, ties": (lagrangian(ONE), "ties"),
    "lagrangian, two bounds, damped": (lagrangian(TWO, climb=NUPI), ""),
    "lagrangian, precision at k": (lagrangian("maximize precision where flagged == 20%"), ""),
    "lagrangian, roc area": (lagrangian(ROC), ""),
    "lagrangian, roc area, weights": (lagrangian(ROC), "weights"),
    "lagrangian, gap": (lagrangian(GAP, n_groups=GROUPS), "groups"),
    "lagrangian, f1": (lagrangian("maximize f1"), ""),
    "lagrangian, mcc": (lagrangian("maximize mcc where fpr <= 30%"), ""),
    "lagrangian, hinge": (lagrangian(ONE, step=sp.steps.HingeStep), ""),
    "lagrangian, soft truth": (lagrangian(ONE, truth=sp.steps.SigmoidStep(5.0)), ""),
    "proxy, two bounds, weights": (lagrangian(TWO, proxy), "weights"),
    "proxy, precision at k": (lagrangian("maximize precision where flagged == 20%", proxy), ""),
    "proxy, roc area": (lagrangian(ROC, proxy), ""),
    "proxy, gap": (lagrangian(GAP, proxy, n_groups=GROUPS), "groups"),
    "augmented, per negative, weights": (augmented(side=sp.losses.PerNegative()), "index weights"),
    "augmented, one price": (augmented(), ""),
    "augmented, rows twice, batches of one class": (augmented(), "index twice sorted"),
    "cross-entropy": (sp.CrossEntropy, ""),
    "cross-entropy, balanced, weights": (lambda: sp.CrossEntropy("balanced"), "weights sorted"),
}  # fmt: skip


def world(kinds):
    """Rows, labels, weights and groups; `ties` makes many rows alike, `sorted` puts one class after the other."""
    draw = torch.Generator().manual_seed(7)
    x = torch.randn(ROWS, WIDTH, generator=draw, dtype=torch.float64)
    if "ties" in kinds:
        x = x[torch.randint(12, (ROWS,), generator=draw)]
    labels = (x[:, 0] - x[:, 1] + torch.randn(ROWS, generator=draw, dtype=torch.float64) > 0.8).double()
    weights = torch.randint(0, 4, (ROWS,), generator=draw).double() / 2
    groups = torch.randint(GROUPS, (ROWS,), generator=draw)
    order = labels.sort(stable=True).indices if "sorted" in kinds else torch.arange(ROWS)
    return x[order], labels[order], weights[order], groups[order]


def trajectory(make, kinds):
    """Losses, thresholds, prices and parameters at every twentieth step, one row each."""
    torch.manual_seed(0)
    solver, model, told = make().double(), nn.Linear(WIDTH, 1).double(), []
    x, labels, weights, groups = world(kinds)
    optimizer = torch.optim.SGD([*model.parameters(), *solver.parameters()], lr=0.05)
    for step in range(SHORT if "short" in kinds else STEPS):
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % ROWS
        if "twice" in kinds:
            rows[0] = rows[1]
        more = {"weights": weights[rows]} if "weights" in kinds else {}
        if "groups" in kinds:
            more["groups"] = groups[rows]
        if "index" in kinds:
            more["index"] = rows
        loss = solver(model(x[rows]).squeeze(-1), labels[rows], **more)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            prices = getattr(solver, "prices", torch.zeros(0))
            told.append(
                [
                    loss.detach().double().view(1), getattr(solver, "thresholds", torch.zeros(0)).detach().flatten(),
                    prices.flatten() if len(prices) < 10 else prices.sum().view(1), model.weight.detach().flatten(),
                ]
            )  # fmt: skip
    return torch.stack([torch.cat([part.double() for part in row]) for row in told]).numpy()


@pytest.mark.parametrize("name", quick_first(CASES, 8))
def test_the_numbers_of_two_hundred_steps_are_those_written_down(name):
    with np.load(WRITTEN) as written:
        np.testing.assert_allclose(trajectory(*CASES[name]), written[name], rtol=1e-12, atol=1e-12)


if __name__ == "__main__":
    np.savez_compressed(WRITTEN, **{name: trajectory(*case) for name, case in CASES.items()})
