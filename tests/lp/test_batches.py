"""Batches of sparse programs, against each program alone, HiGHS and finite differences."""

import pytest
import torch

from setpoint import lp
from setpoint.errors import MissingClass
from setpoint.lp import newton
from setpoint.lp.structure import choose

FORMS = {
    "f_score": lp.forms.f_score,
    "f_score with a margin": lambda *rows, **more: lp.forms.f_score(*rows, beta=2.0, margin=0.2, **more),
    "jaccard": lp.forms.jaccard,
    "precision_at_recall": lambda *rows, **more: lp.forms.precision_at_recall(*rows, 0.8, **more),
    "recall_at_precision": lambda *rows, **more: lp.forms.recall_at_precision(*rows, 0.7, **more),
}


def drawn(*shape: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(shape, generator=draw) < 0.3).double()
    labels[..., 0] = 1
    scores = torch.randn(shape, generator=draw, dtype=torch.float64) + labels - 0.5
    return scores, labels, torch.rand(shape, generator=draw, dtype=torch.float64) + 0.1


@pytest.mark.parametrize("name", FORMS)
def test_a_batch_of_forms_is_each_of_them_and_that_of_highs(name):
    scores, labels, weights = drawn(2, 3, 20)
    scores.requires_grad_()
    batch = FORMS[name](scores, labels, weights=weights)
    assert isinstance(choose(batch), lp.Arrow)
    found, highs = lp.solve(batch), lp.solve(batch, lp.Highs())
    assert set(found.statuses) == {lp.Status.SOLVED}
    assert found.x.shape[:2] == found.value.shape == (2, 3)
    torch.testing.assert_close(found.value.detach(), highs.value.detach(), atol=1e-7, rtol=1e-7)
    (slopes,) = torch.autograd.grad(found.value.sum(), scores)
    for i, j in ((0, 0), (1, 2)):
        own = scores[i, j].detach().requires_grad_()
        alone = lp.solve(FORMS[name](own, labels[i, j], weights=weights[i, j]))
        assert float(alone.value) == pytest.approx(float(found.value[i, j]), abs=1e-7)
        torch.testing.assert_close(torch.autograd.grad(alone.value, own)[0], slopes[i, j], atol=1e-6, rtol=1e-5)


def test_the_slopes_of_a_batch_are_finite_differences():
    scores, labels, _ = drawn(4, 12)
    scores.requires_grad_()
    tight = lp.Newton(tolerance=1e-10)
    (slopes,) = torch.autograd.grad(lp.solve(lp.forms.f_score(scores, labels), tight).value.sum(), scores)
    step = 1e-4
    for place in range(12):
        moved = torch.zeros(4, 12, dtype=torch.float64)
        moved[:, place] = step
        above, below = (
            lp.solve(lp.forms.f_score(scores.detach() + sign * moved, labels), tight).value for sign in (1, -1)
        )
        torch.testing.assert_close((above - below) / (2 * step), slopes[:, place], atol=1e-5, rtol=1e-4)


def test_parts_of_a_batch_and_its_warm_start_change_nothing(monkeypatch):
    scores, labels, _ = drawn(7, 15)
    whole = lp.solve(lp.forms.f_score(scores, labels))
    monkeypatch.setattr(newton, "TOGETHER", 130)
    parts = lp.solve(lp.forms.f_score(scores, labels))
    assert parts.iterations.tolist() == whole.iterations.tolist()
    torch.testing.assert_close(parts.x, whole.x)
    near = lp.forms.f_score(scores + 1e-3, labels)
    warm = lp.solve(near, start=whole)
    torch.testing.assert_close(warm.value, lp.solve(near, lp.Highs()).value, atol=1e-7, rtol=1e-7)
    assert int(warm.iterations.sum()) < int(lp.solve(near).iterations.sum()) / 2


def test_a_batch_in_which_one_program_has_no_positive_is_refused():
    scores, labels, _ = drawn(3, 10)
    labels[1] = 0
    with pytest.raises(MissingClass, match="at least one of them"):
        lp.forms.f_score(scores, labels)
