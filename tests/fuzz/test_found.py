"""What fuzzing found, one test each: the input that once broke something, and what happens to it now."""

from __future__ import annotations

import contextlib
import json
import math

import numpy as np
import pytest
import torch

import setpoint as sp
from fuzz.of_files import saved
from setpoint import lp
from setpoint.data.schema import Schema
from setpoint.errors import BadAsk, BadFile, BadProblem, BadProgram, BadScores, BadSetting, BadWeights, ShapeMismatch
from setpoint.measure.classes import check_classes
from setpoint.measure.count import count
from setpoint.measure.multiclass import auc_mu
from setpoint.measure.pairs import SquaredHinge, pair_sum
from setpoint.measure.sample import Sample, check_sample
from setpoint.measure.step import SigmoidStep, SoftplusStep
from setpoint.run.artefact import MODEL, load_run
from setpoint.solve.proxy import stationary

FNR = sp.ask("minimize fnr where fpr <= 50%")
SCORES, LABELS = [0.1, 0.4, 0.5, 0.9], [0, 1, 0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "minimize fnr where fpr <= 1e999999999%",
        "maximize f" + "9" * 400,
        'minimize fnr where fpr.gap("a\nb") <= 1%',
        'minimize fnr where fpr.gap("\\x") <= 1%',
    ],
    ids=["a percentage beyond decimals", "a beta beyond floats", "a line break in a name", "an unknown escape"],
)
def test_texts_that_left_the_reader_with_another_error(text):
    with pytest.raises((BadAsk, BadProblem)):
        sp.ask(text)


@pytest.mark.parametrize("beta", [1e200, 1e-200, math.nan])
def test_a_beta_whose_square_overflows(beta):
    with pytest.raises(BadProblem, match="1e-6"):
        sp.f_score(beta)


def test_weights_of_zero_leave_nothing_to_judge():
    with pytest.raises(BadWeights, match="weights are 0"):
        sp.evaluate("maximize mcc", SCORES, LABELS, weights=[0, 0, 0, 0])


@pytest.mark.parametrize("solver", [sp.ImplicitThreshold, sp.Lagrangian, lambda _: sp.losses.PairwiseArea()])
def test_a_batch_of_weight_zero_costs_nothing(solver):
    solver = solver(FNR)
    solver(torch.tensor(SCORES), torch.tensor(LABELS))
    scores = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = solver(scores, torch.tensor([0, 1]), weights=torch.zeros(2))
    (slope,) = torch.autograd.grad(loss, scores)
    assert loss.item() == 0
    assert slope.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_whose_sums_or_quotients_overflow(weight):
    with pytest.raises(BadWeights, match="divide them by their mean"):
        check_sample(np.array(SCORES), LABELS, [weight, 1.0, 1.0, 0.0])
    with pytest.raises(BadWeights, match="divide them by their mean"):
        sp.evaluate(sp.minimize(sp.classes.Micro(sp.fnr)), np.eye(4), LABELS, weights=[weight, 1, 1, 1])


def test_weights_beyond_half_precision():
    with pytest.raises(BadWeights, match="float16"):
        check_sample(torch.tensor(SCORES).half(), LABELS, [1e6, 1, 1, 1])


def test_the_lowest_float_passes_no_threshold():
    with pytest.raises(BadScores):
        sp.evaluate(FNR, [-1.7976931348623157e308, 0.0, 1.0, 2.0], [1, 0, 0, 1])
    assert math.isfinite(sp.evaluate("maximize recall", [-1.7e308, 0.0], [1, 0]).threshold)


@pytest.mark.parametrize(
    "solver", [sp.CrossEntropy(), sp.losses.MiniBatchAUC(), sp.ImplicitThreshold(FNR), sp.losses.Focal()]
)
def test_scores_of_a_diverged_model(solver):
    with pytest.raises(BadScores, match="too large"):
        solver(torch.tensor([1e300, 0.0], dtype=torch.float64), torch.tensor([0, 1]))


def test_a_loss_that_overflows_is_refused():
    with pytest.raises(BadScores, match="MiniBatchAUC"):
        sp.losses.MiniBatchAUC()(torch.tensor([1e30, 0.0]), torch.tensor([0, 1]))


def test_sums_over_pairs_that_overflow_are_refused():
    with pytest.raises(BadScores, match="pairs"):
        pair_sum(torch.tensor([-1e30]), torch.tensor([1e30]), SquaredHinge())


def test_heavy_weights_do_not_overflow_the_area():
    scores, labels = torch.tensor([0.0, 3.0, 1.0, 0.5]), torch.tensor([1, 0, 1, 0])
    plain = sp.losses.PairwiseArea(memory=0)(scores * 1e10, labels)
    heavy = sp.losses.PairwiseArea(memory=0)(scores * 1e10, labels, weights=torch.full((4,), 1e12))
    torch.testing.assert_close(heavy, plain)


def test_half_precision_scores_are_compared_with_thresholds_between_them():
    scores = torch.tensor([1.0, 1.0 + 2**-10], dtype=torch.float16)
    middle = torch.tensor(1.0 + 2**-11)
    assert count(scores, torch.tensor([0.0, 1.0]), middle).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("solver", [sp.CrossEntropy(), sp.losses.Focal(), sp.losses.MiniBatchAUC()])
def test_weight_zero_has_no_nan_gradient_however_the_loss_is_scaled(solver):
    scores = torch.full((40,), 4e3, dtype=torch.float16, requires_grad=True)
    loss = 1e4 * solver(scores, torch.arange(40) % 2, weights=torch.zeros(40))
    assert torch.autograd.grad(loss, scores)[0].tolist() == [0.0] * 40


def test_whole_numbers_keep_their_digits():
    point = sp.evaluate("maximize accuracy", [16777216, 16777217], [0, 1])
    assert point.objective == 1


def test_scores_that_are_no_real_numbers():
    for scores in ([1j, 2j], torch.tensor([1j, 2j])):
        with pytest.raises(BadScores):
            sp.evaluate(FNR, scores, [0, 1])


def test_arrays_read_backwards_and_not_a_number_in_predictions():
    point = sp.evaluate(FNR, SCORES, LABELS)
    assert point.predict(np.array(SCORES)[::-1]).tolist() == point.predict(SCORES).tolist()[::-1]
    assert point.predict(0.9) == 1
    with pytest.raises(BadScores):
        point.predict([math.nan, 0.5])
    with pytest.raises(BadScores):
        point.predict(["high"])


def test_labels_that_are_truth_values():
    scores = torch.tensor([[2.0, 1.0], [0.0, 1.0]])
    assert auc_mu(scores, torch.tensor([False, True])) == 1


def test_not_a_number_in_any_column():
    scores = torch.tensor([[0.0, math.nan], [0.0, 1.0]])
    with pytest.raises(BadScores):
        sp.lp.closed.auc_mu(scores, torch.tensor([0, 1]))


@pytest.mark.parametrize("first", [-math.inf, math.nan, 1e300])
def test_prices_and_thresholds_to_start_from_are_numbers(first):
    with pytest.raises(BadSetting, match="start must be a number to start from"):
        sp.losses.Climb(start=first)
    for solver in (sp.Lagrangian, sp.losses.ProxyLagrangian):
        with pytest.raises(BadSetting, match="threshold must be a number to start from"):
            solver(FNR, threshold=first)


def test_settings_that_are_no_whole_numbers():
    for size in (2.5, True):
        with pytest.raises(BadSetting, match="batch_size"):
            sp.Batches(torch.zeros(4, 1), torch.zeros(4), batch_size=size)
        with pytest.raises(BadProgram, match="rank"):
            sp.lp.factorize(torch.eye(3), size)


def test_a_partition_of_infinite_costs():
    with pytest.raises(BadSetting, match="partition"):
        sp.losses.MulticlassAUCLoss(partition=torch.tensor([[0.0, math.inf], [1.0, 0.0]]))


def test_snapshots_too_far_apart_to_mix():
    with pytest.raises(BadSetting, match="too much in size"):
        sp.losses.best_mixture([0.0, 1.9], [[5.6e16, 7.1, 0.0], [0.16, 0.62, 0.45]])


def test_programs_of_numbers_no_solver_can_hold():
    one = torch.ones(1, dtype=torch.float64)
    with pytest.raises(BadProgram, match="scale"):
        sp.lp.LinearProgram(one, one.reshape(1, 1), 1e300 * one)
    with pytest.raises(BadProgram, match="scale"):
        sp.lp.LinearProgram(one, 1e300 * one.reshape(1, 1), one)
    tiny = sp.lp.LinearProgram(torch.ones(1), torch.tensor([[2.0], [-1.2e-38]]), torch.tensor([0.0, -2.0]))
    found = sp.lp.solve(tiny)
    assert bool(torch.isfinite(found.dual).all())
    with pytest.raises(BadProgram, match="next to zero"):
        sp.lp.factorize(torch.tensor([[1e-300, 0.0], [1.0, 2.0]], dtype=torch.float64), 1)


def test_a_program_of_products_alone_stops_when_no_step_helps():
    held = torch.tensor([[2.0, -1.0, 3.0], [-2.0, 3.0, 1.0], [1.0, 0.0, -2.0]], dtype=torch.float64)
    operator = sp.lp.Operator((3, 3), lambda x: held @ x, lambda r: held.T @ r)
    cost, bound = torch.tensor([-1.0, 3.0, 1.0]).double(), torch.tensor([1.0, 3.0, 0.0]).double()
    products = sp.lp.solve(sp.lp.LinearProgram(cost, operator, bound))
    written = sp.lp.solve(sp.lp.LinearProgram(cost, held, bound), sp.lp.Highs())
    assert products.value.item() == pytest.approx(written.value.item(), abs=1e-6)


@pytest.mark.parametrize("odd", [math.nan, math.inf, 0.0])
def test_floors_and_limits_are_numbers_above_zero(odd):
    for make in (
        lambda: sp.losses.Damping(slope_floor=odd),
        lambda: sp.losses.Damping(price_limit=odd),
        lambda: sp.losses.ImplicitTopK(sp.precision, 1, slope_floor=odd),
    ):
        with pytest.raises(BadSetting, match=r"(slope_floor|price_limit) must be above 0"):
            make()
    with pytest.raises(BadSetting, match="slope_penalty"):
        sp.ImplicitThreshold(FNR, slope_penalty=math.nan)


def test_parameters_that_are_not_finite_are_not_read(tmp_path):
    files = saved()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert load_run(tmp_path).point.feasible in (True, False)
    whole = bytearray(files[MODEL])
    whole[-4:] = np.float32("nan").tobytes()
    (tmp_path / MODEL).write_bytes(whole)
    with pytest.raises(BadFile, match="was changed"):
        load_run(tmp_path)


def test_a_class_never_seen_does_not_blow_up_the_weight_of_the_other():
    scores = torch.tensor([-1.0, -1.0], dtype=torch.float16, requires_grad=True)
    heavy = sp.CrossEntropy(8e5)(scores, torch.tensor([1, 1]))
    torch.testing.assert_close(heavy, sp.CrossEntropy()(scores, torch.tensor([1, 1])))
    assert torch.isfinite(torch.autograd.grad(heavy, scores)[0]).all()


def test_a_temperature_that_overflows_with_the_scores():
    solver = sp.classes.ImplicitShifts(
        sp.minimize(sp.classes.Micro(sp.fnr), sp.classes.OfClass(sp.flagged, 2) == 0.6), 3, temperature=6e5
    )
    with pytest.raises(BadScores):
        solver(torch.tensor([[1e34, 0.0, 1.0], [0.0, 1.0, 2.0]]), torch.tensor([0, 1]))


def test_settings_of_programs():
    scores, labels = torch.tensor([0.5, -0.5]), torch.tensor([1, 0])
    for form in (sp.lp.closed.f_score, sp.lp.forms.f_score):
        with pytest.raises(BadSetting, match="beta"):
            form(scores, labels, beta=math.nan)
    for steps in (2.5, True, 0):
        with pytest.raises(BadSetting, match="steps"):
            sp.lp.Newton(steps=steps)


def test_a_program_of_equalities_alone_can_be_reduced():
    one = torch.ones(2, dtype=torch.float64)
    program = sp.lp.LinearProgram(one, torch.zeros(0, 2).double(), torch.zeros(0).double(), one.reshape(1, 2), one[:1])
    assert sp.lp.solve_reduced(program, torch.eye(2)).solution.value.item() == pytest.approx(1)


def test_half_precision_has_no_room_for_slopes_of_large_scores():
    with pytest.raises(BadScores, match="at most 4094"):
        sp.losses.PairwiseArea()(torch.tensor([6e4, -6e4]).half(), torch.tensor([0, 1]))


def test_a_margin_that_is_a_truth_value_is_one():
    program = sp.lp.forms.auc(torch.tensor([0.5, -0.5]), torch.tensor([1, 0]), margin=True)
    assert program.bound.item() == 0


def test_a_file_that_lacks_the_rate_of_a_bound():
    data = sp.evaluate(FNR, SCORES, LABELS).to_dict()
    del data["rates"]["fpr"]
    with pytest.raises(BadFile, match="fpr"):
        sp.OperatingPoint.from_dict(data)


def test_a_file_with_a_number_beyond_floats_or_nested_without_end(tmp_path):
    point = sp.evaluate(FNR, SCORES, LABELS)
    data = point.to_dict()
    data["objective"] = 10**400
    with pytest.raises(BadFile, match="damaged"):
        sp.OperatingPoint.from_dict(json.loads(json.dumps(data)))
    path = tmp_path / "point.json"
    path.write_text("[" * 200_000)
    with pytest.raises(BadFile):
        sp.OperatingPoint.load(path)


def test_scores_beyond_floats_are_named():
    with pytest.raises(BadScores, match="scores must be numbers"):
        sp.evaluate(FNR, [10**400, 0], [1, 0])


def test_balanced_weights_where_the_positives_weigh_nothing():
    x, labels = torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    train, judge = sp.Batches(x, labels, weights=1 - labels), sp.Batches(x, labels)
    result = sp.fit(torch.nn.Linear(1, 1), "minimize fpr", train, judge, sp.Ridge("balanced"))
    assert torch.isfinite(result.model.weight).all()


def test_a_value_beyond_the_dtype_of_the_costs_is_not_solved():
    program = sp.lp.LinearProgram(
        torch.tensor([1e4], dtype=torch.float16), torch.zeros(0, 1), torch.zeros(0),
        torch.tensor([[1.0]]), torch.tensor([7.0]),
    )  # fmt: skip
    assert sp.lp.solve(program).status is sp.lp.Status.STALLED


def test_a_breach_that_costs_everything_is_refused():
    with pytest.raises(BadSetting, match="shortfall is inf"):
        sp.lp.closed.precision_at_recall(torch.tensor([0.5]), torch.tensor([1.0]), recall=0.5, shortfall=float("inf"))


def test_prices_of_a_bound_of_next_to_nothing_stay_finite():
    solver = sp.losses.ProxyLagrangian(sp.minimize(sp.accuracy, sp.f_score(2) <= 1e-275), climb=sp.losses.Climb(16.0))
    for _ in range(3):
        solver(torch.tensor([0.5, -0.5, 1.0], requires_grad=True), torch.tensor([1.0, 0.0, 0.0]))
    assert all(value.isfinite().all() for value in solver.state_dict().values())


def test_weights_of_classes_that_do_not_fit_half_precision():
    with pytest.raises(BadWeights, match="do not fit float16"):
        check_classes(torch.zeros(2, 2, dtype=torch.float16), torch.tensor([0, 1]), torch.tensor([1e6, 1.0]))


def test_a_schema_that_names_a_level_twice():
    schema = json.loads(saved()["setpoint.json"])["schema"]
    schema["columns"][1]["levels"] = ["clerk", "clerk"]
    with pytest.raises(BadFile, match="names a level twice"):
        Schema.from_dict(schema)


def test_a_setting_of_an_engine_that_is_a_truth_value_is_one():
    program = sp.lp.LinearProgram(torch.ones(2), -torch.eye(2), -torch.ones(2))
    found = sp.lp.solve(program, sp.lp.Newton(sharpest=True, start=True))
    assert found.status in (sp.lp.Status.SOLVED, sp.lp.Status.STALLED)


def test_a_factorization_in_half_precision_is_refused():
    with pytest.raises(BadProgram, match="overflow"):
        sp.lp.factorize(torch.ones(3, 2, dtype=torch.float16), 1)


@pytest.mark.parametrize("control", [None, sp.losses.NuPI(True, False)])
def test_prices_that_climb_by_a_truth_value(control):
    climb = sp.losses.Climb(lr=True, control=control, penalty=True)
    solver = sp.Lagrangian(sp.minimize(sp.fnr, sp.fpr <= 0.5), climb=climb)
    solver(torch.tensor([0.5, -0.5, 1.0], requires_grad=True), torch.tensor([1.0, 0.0, 0.0])).backward()
    assert solver.prices.isfinite().all()


def test_rows_beside_which_the_ridge_of_the_penalty_is_lost():
    program = sp.lp.LinearProgram(
        torch.tensor([2.0, -2.0], dtype=torch.float64), torch.full((3, 2), -6.1e18), torch.full((3,), -6.1e18)
    )
    with pytest.raises(BadProgram, match="too large beside a ridge of 1e-06"):
        sp.lp.solve(program, sp.lp.ExteriorPenalty())


@pytest.mark.parametrize("scores", [[1e33, 1e34], [-3e38, 3e38]], ids=["squares overflow", "differences overflow"])
def test_large_scores_are_checked_without_a_word_of_numpy(scores, recwarn):
    with contextlib.suppress(BadScores):
        sp.CrossEntropy()(torch.tensor(scores), torch.tensor([0.0, 1.0]))
    assert not recwarn.list


@pytest.mark.parametrize("value", [[], [0.0]], ids=["no entries", "entries of zero"])
def test_a_sparse_matrix_of_zeros_bounds_nothing(value):
    index = torch.zeros(2, len(value), dtype=torch.int64)
    matrix = lp.Entries(index, torch.tensor(value, dtype=torch.float64), (2, 1))
    free = lp.LinearProgram(torch.tensor([-2.0]).double(), matrix, torch.tensor([1.0, 1.0]).double())
    assert lp.solve(free).status is lp.Status.UNBOUNDED
    least = lp.LinearProgram(torch.tensor([2.0]).double(), matrix, torch.tensor([1.0, 1.0]).double())
    assert lp.solve(least).value.item() == pytest.approx(0, abs=1e-6)


def test_shares_of_a_game_whose_last_state_is_never_left_stay_numbers():
    moves = np.array([[0.3, 0.3, 0.4], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    assert stationary(moves.T).tolist() == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("price", [1.0, 2.0])
def test_prices_that_the_dtype_of_a_bound_cannot_hold_prove_nothing(price):
    least = torch.tensor([-1e-45], requires_grad=True)
    program = lp.LinearProgram(torch.tensor([price]).double(), torch.tensor([[-1e-45]]), least)
    found = lp.solve(program)
    (slope,) = torch.autograd.grad(found.value, least)
    assert found.status is lp.Status.STALLED
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("step", [SigmoidStep, SoftplusStep])
@pytest.mark.parametrize("solver", [sp.ImplicitThreshold, sp.Lagrangian])
def test_scores_that_overflow_under_the_step_are_counted_or_refused_without_a_word_of_numpy(solver, step, recwarn):
    scores = torch.tensor([1e34, -1e34, 1.0, -9e34], requires_grad=True)
    refused = contextlib.nullcontext() if step is SigmoidStep else pytest.raises(BadScores, match="too large to count")
    with refused:
        loss = solver(FNR, temperature=1e6, step=step)(scores, torch.tensor([1.0, 0.0, 1.0, 0.0]))
        assert torch.isfinite(torch.autograd.grad(loss, scores)[0]).all()
    assert not [one for one in recwarn.list if one.category is RuntimeWarning]


def test_an_operator_that_gives_inf_is_refused():
    held = torch.tensor([[2.0, -1.0], [-1.0, torch.inf]], dtype=torch.float64)
    matrix = lp.Operator((2, 2), lambda x: held @ x, lambda r: held.T @ r)
    program = lp.LinearProgram(torch.ones(2).double(), matrix, torch.tensor([2.0, 3.0]).double())
    with pytest.raises(BadProgram, match="gave nan or inf"):
        lp.solve(program)


def test_the_area_of_held_out_rows_that_are_no_sample_is_refused():
    one = Sample(torch.tensor(1.0), torch.tensor(1.0))
    with pytest.raises(ShapeMismatch, match="one number per sample"):
        sp.losses.ByArea()(one, 0.0)
