"""A program that cannot be right is refused by name before any work is done."""

import pytest
import torch

from setpoint import lp
from setpoint.errors import BadProgram, BadSetting, ShapeMismatch

COST, MATRIX, BOUND = torch.ones(3), torch.eye(3)[:2], torch.ones(2)
NAN = torch.tensor([1.0, float("nan"), 0.0])


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((torch.ones(3, dtype=torch.long), MATRIX, BOUND), "floating-point"),
        (([1.0, 2.0, 3.0], MATRIX, BOUND), "floating-point"),
        ((torch.ones(0), torch.ones(2, 0), BOUND), "at least one variable"),
        ((torch.tensor(1.0), MATRIX, BOUND), "dense vector"),
        ((NAN, MATRIX, BOUND), "nan or inf"),
        ((COST, MATRIX * float("nan"), BOUND), "matrix holds nan or inf"),
        ((COST, MATRIX, BOUND * float("inf")), "a row to leave out"),
        ((COST, MATRIX.T, BOUND), r"must be \(2, 3\)"),
        ((COST, MATRIX, torch.ones(3)), "do not fit"),
        ((COST, MATRIX.long(), BOUND), "floating-point tensor or an Operator"),
        ((COST, torch.ones(0, 3), torch.ones(0)), "without a single row"),
        ((COST, MATRIX, BOUND, torch.ones(1, 3)), "give both or neither"),
        ((COST, MATRIX, BOUND, torch.ones(1, 2), torch.ones(1)), "equality_matrix"),
        ((COST, MATRIX, torch.tensor([1.0, -1.0])), "row 1 of matrix cannot hold"),
        ((COST, torch.zeros(1, 3), -torch.ones(1)), "row 0 of matrix cannot hold"),
        ((COST, MATRIX, BOUND, -torch.ones(1, 3), torch.ones(1)), "row 0 of equality_matrix cannot hold"),
        ((COST, MATRIX, BOUND, torch.ones(1, 3), -torch.ones(1)), "row 0 of equality_matrix cannot hold"),
        ((COST, MATRIX.to_sparse(), torch.tensor([-1.0, 1.0])), "row 0 of matrix cannot hold"),
        ((torch.ones(2, 3), MATRIX.to_sparse(), torch.ones(2, 2)), "do not fit together: matrix must be"),
    ],
)
def test_bad_programs_are_named(parts, says, monkeypatch):
    monkeypatch.setattr(lp.Newton, "run", lambda *_: pytest.fail("work was done"))
    with pytest.raises(BadProgram, match=says):
        lp.solve(lp.LinearProgram(*parts))


def test_settings_outside_their_range_are_named():
    for make in (
        lambda: lp.Newton(tolerance=0),
        lambda: lp.Newton(factor=1.5),
        lambda: lp.ExteriorPenalty(epsilon=-1),
        lambda: lp.BurnIn(growth=0.5),
        lambda: lp.forms.f_score(torch.randn(4), torch.tensor([0, 1, 0, 1]), margin=0.6),
        lambda: lp.closed.auc_ramp(torch.randn(4), torch.tensor([0, 1, 0, 1]), margin=0.0),
        lambda: lp.forms.precision_at_recall(torch.randn(4), torch.tensor([0, 1, 0, 1]), 1.5),
        lambda: lp.closed.recall_at_precision(torch.randn(4), torch.tensor([0, 1, 0, 1]), 0.5, shortfall=0),
    ):
        with pytest.raises(BadSetting):
            make()


def test_a_start_of_another_shape_is_refused():
    small = lp.solve(lp.LinearProgram(-torch.ones(2), torch.eye(2), torch.ones(2)))
    with pytest.raises(ShapeMismatch):
        lp.solve(lp.LinearProgram(-COST, torch.eye(3), torch.ones(3)), start=small)
    with pytest.raises(ShapeMismatch):
        lp.solve(lp.LinearProgram(-torch.ones(2), torch.ones(1, 2), torch.ones(1)), start=small)
