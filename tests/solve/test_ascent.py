"""The climb of prices against the multipliers of cooper, an independent library for constrained optimization."""

import cooper
import pytest
import torch
from cooper.optim import nuPI

import setpoint as sp
from setpoint.solve.ascent import Ascent, Climb, NuPI, room

BOUNDS = (sp.fpr <= 0.01, sp.recall >= 0.9, sp.flagged == 0.3, sp.tnr == 0.75, sp.error <= 0.2)
LR, PENALTY = 0.07, 0.3


class ByCooper:
    """Prices as cooper's users keep them: the inequalities in one constraint, the equalities in another."""

    def __init__(self, control, penalty, dtype):
        self.parts = []
        kinds = (cooper.ConstraintType.INEQUALITY, False), (cooper.ConstraintType.EQUALITY, True)
        for kind, equal in kinds:
            places = [place for place, bound in enumerate(BOUNDS) if (bound.relation == "==") == equal]
            multiplier = cooper.multipliers.DenseMultiplier(num_constraints=len(places), dtype=dtype)
            form, coefficient = cooper.formulations.Lagrangian, None
            if penalty is not None:
                form = cooper.formulations.AugmentedLagrangian
                values = torch.full((len(places),), penalty, dtype=dtype)
                coefficient = cooper.penalty_coefficients.DensePenaltyCoefficient(values)
            optimizer = torch.optim.SGD([multiplier.weight], lr=LR, maximize=True)
            if control is not None:
                gains = {"Kp": torch.tensor(control.proportional), "Ki": torch.tensor(1.0)}
                optimizer = nuPI([multiplier.weight], lr=LR, **gains, ema_nu=control.smoothing, maximize=True)
            constraint = cooper.Constraint(kind, form, multiplier, coefficient)
            self.parts.append((places, constraint, multiplier, optimizer))

    def felt(self, excesses):
        slopes = torch.zeros_like(excesses)
        for places, constraint, _, _ in self.parts:
            here = excesses[places].clone().requires_grad_()
            state = cooper.ConstraintState(violation=here)
            store = constraint.compute_contribution_to_lagrangian(state, "primal")
            (slopes[places],) = torch.autograd.grad(store.lagrangian_contribution, here)
        return slopes

    def climb(self, scaled):
        for places, constraint, multiplier, optimizer in self.parts:
            state = cooper.ConstraintState(violation=scaled[places])
            optimizer.zero_grad()
            constraint.compute_contribution_to_lagrangian(state, "dual").lagrangian_contribution.backward()
            optimizer.step()
            multiplier.post_step_()

    @property
    def prices(self):
        prices = torch.zeros(len(BOUNDS), dtype=self.parts[0][2].weight.dtype)
        for places, _, multiplier, _ in self.parts:
            prices[places] = multiplier.weight.detach()
        return prices


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("penalty", [None, PENALTY], ids=["linear", "augmented"])
@pytest.mark.parametrize("control", [None, NuPI(proportional=3.0, smoothing=0.4)], ids=["plain", "nupi"])
def test_prices_climb_as_those_of_cooper(control, penalty, dtype):
    ours = Ascent(BOUNDS, Climb(LR, control, penalty)).to(dtype)
    theirs = ByCooper(control, penalty, dtype)
    rooms = torch.tensor([room(bound) for bound in BOUNDS], dtype=torch.float32).to(dtype)
    draw = torch.Generator().manual_seed(0)
    at_the_floor = above = 0
    for step in range(100):
        excesses = 0.05 * torch.randn(len(BOUNDS), generator=draw, dtype=dtype) + 0.01
        weight, felt = ours.felt(excesses)
        assert float(weight) == 1
        expected = theirs.felt(excesses)
        # cooper divides by the penalty and multiplies again, which may move the last bit.
        few = 0.0 if penalty is None else 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(felt, expected, rtol=few, atol=0.0)
        if control is not None and step == 0:
            # The running mean begins at the first excess, as published; cooper's code begins it at 0 one step later.
            for places, _, multiplier, optimizer in theirs.parts:
                optimizer.state[multiplier.weight]["xi"] = (excesses / rooms)[places]
        ours.climb(excesses)
        theirs.climb(excesses / rooms)
        assert torch.equal(ours.prices, theirs.prices)
        at_the_floor += int((ours.prices == 0).sum())
        above += int((ours.prices > 0).sum())
    assert at_the_floor > 10
    assert above > 100
    assert (ours.prices[[2, 3]] != 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("penalty", [None, PENALTY], ids=["linear", "augmented"])
@pytest.mark.parametrize("control", [None, NuPI(proportional=3.0, smoothing=0.4)], ids=["plain", "nupi"])
def test_prices_climb_alike_beside_arrays_and_beside_tensors(control, penalty, dtype):
    by_tensors, by_arrays = (Ascent(BOUNDS, Climb(LR, control, penalty, ceiling=0.5)).to(dtype) for _ in range(2))
    draw, at_the_ceiling = torch.Generator().manual_seed(0), 0
    for _ in range(100):
        excesses = 0.05 * torch.randn(len(BOUNDS), generator=draw, dtype=dtype) + 0.01
        felt = torch.from_numpy(by_arrays.felt(excesses.numpy())[1])
        # The form of tensors rounds a sum of products once, that of arrays twice.
        few = {"rtol": 1e3 * torch.finfo(dtype).eps, "atol": 1e2 * torch.finfo(dtype).eps}
        torch.testing.assert_close(felt, by_tensors.felt(excesses)[1], **few)
        by_arrays.climb(excesses.numpy())
        by_tensors.climb(excesses)
        torch.testing.assert_close(by_arrays.state_dict(), by_tensors.state_dict(), **few)
        at_the_ceiling += int((by_arrays.prices == 0.5).sum())
    assert at_the_ceiling > 10
