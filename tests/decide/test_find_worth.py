"""Asks that count the values of columns: the best threshold against all thresholds, certificates, refusals."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import setpoint as sp
from setpoint.cli import command_line
from setpoint.errors import BadTable, BadWeights
from setpoint.run.table import fit_table

ASKS = (
    "maximize recall weighted by amount where fpr <= 30%",
    "minimize cost(miss=amount, alarm=5)",
    "minimize cost(miss=amount, alarm=fee) where flagged <= 40%",
    "maximize recall where fpr weighted by amount <= 30%",
    "maximize precision weighted by amount where recall >= 50%",
)


def by_hand(name, scores, labels, weights, amount, fee, threshold):
    """One quantity at one threshold, by a loop over the rows."""
    value = {"amount": amount, "fee": fee, "": np.ones(len(scores))}
    rate, _, column = name.partition(" weighted by ")
    four = np.zeros(4)
    cost = 0.0
    for row, score in enumerate(scores):
        worth = weights[row] * value[column][row] if not rate.startswith("cost") else weights[row]
        kind = (0 if labels[row] else 1) if score > threshold else (2 if labels[row] else 3)
        four[kind] += worth
        if kind == 2:
            cost += weights[row] * amount[row]
        if kind == 1:
            cost += weights[row] * (fee[row] if "fee" in rate else 5)
    tp, fp, fn, tn = four
    shares = {
        "recall": (tp, tp + fn), "fpr": (fp, fp + tn), "precision": (tp, tp + fp), "flagged": (tp + fp, four.sum()),
        "fnr": (fn, tp + fn), "tnr": (tn, fp + tn), "accuracy": (tp + tn, four.sum()), "error": (fp + fn, four.sum()),
    }  # fmt: skip
    part, whole = (cost, four.sum()) if rate.startswith("cost") else shares[rate]
    return part / whole if whole > 0 else 0.0


@given(ask=st.sampled_from(ASKS), seed=st.integers(0, 10_000), tied=st.booleans(), weighted=st.booleans())
def test_the_best_threshold_is_the_best_of_all(ask, seed, tied, weighted):
    draw, problem = np.random.default_rng(seed), sp.ask(ask)
    size = int(draw.integers(4, 20))
    labels = np.concatenate([[0, 1], draw.random(size - 2) < 0.4]).astype(float)
    scores = draw.normal(size=size) + labels
    scores = np.round(2 * scores) / 2 if tied else scores
    # Some rows are worth nothing.
    amount, fee = draw.exponential(size=size) * (draw.random(size) < 0.8), draw.random(size)
    weights = draw.random(size) + 0.1 if weighted else np.ones(size)
    rows = (scores, labels, weights, amount, fee)
    values = {"amount": amount, "fee": fee, **({"": weights} if weighted else {})}
    point = sp.evaluate(problem, scores, labels, weights=values)
    for name, value in point.rates.items():
        assert value == pytest.approx(by_hand(name, *rows, point.threshold), abs=1e-9)
    best = None
    for threshold in [min(scores) - 1, *scores]:
        if all(
            by_hand(str(c.quantity), *rows, threshold) <= c.bound + 1e-9
            if c.relation == "<="
            else by_hand(str(c.quantity), *rows, threshold) >= c.bound - 1e-9
            for c in problem.constraints
        ):
            value = by_hand(str(problem.objective), *rows, threshold)
            best = value if best is None else (max if problem.maximize else min)(best, value)
    assert point.feasible == (best is not None)
    if best is not None:
        assert point.objective == pytest.approx(best, abs=1e-9)


def drawn(size=3000, seed=0):
    draw = np.random.default_rng(seed)
    labels = (draw.random(size) < 0.3).astype(int)
    return draw.normal(size=size) + 1.5 * labels, labels, draw.exponential(100, size=size)


def test_a_bound_on_rows_is_certified_as_for_a_plain_ask():
    scores, labels, amount = drawn()
    point = sp.calibrate(ASKS[0], scores, labels, weights={"amount": amount}, confidence=0.95)
    plain = sp.calibrate("maximize recall where fpr <= 30%", scores, labels, confidence=0.95)
    assert point.certificate == plain.certificate
    assert point.threshold == plain.threshold
    (estimate,) = point.estimates
    assert estimate.quantity == "recall weighted by amount"
    assert estimate.low < point.objective < estimate.high
    assert sp.OperatingPoint.from_dict(point.to_dict()) == point


def test_a_bound_on_a_weighted_rate_is_estimated_and_never_certified():
    scores, labels, amount = drawn()
    point = sp.calibrate(ASKS[3], scores, labels, weights={"amount": amount}, confidence=0.95)
    assert point.certificate is None
    assert [estimate.quantity for estimate in point.estimates] == ["recall", "fpr weighted by amount"]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (None, "counts the values of columns; pass weights={'amount': ...}, one value per row"),
        ({"amont": [1.0] * 4}, "counts the values of 'amount'; pass them in weights= (there: 'amont')"),
        ({"amount": [1.0, -2.0, 3.0, 4.0]}, "values of 'amount' must be finite and not negative"),
        ({"amount": [1.0, np.nan, 3.0, 4.0]}, "values of 'amount' must be finite and not negative"),
        ({"amount": [1.0] * 5}, "4 scores came with values of 5 rows"),
    ],
)
def test_values_that_are_missing_or_odd_are_refused(weights, said):
    with pytest.raises(sp.SetpointError) as refusal:
        sp.evaluate(ASKS[1], [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], weights=weights)
    assert said in str(refusal.value)


def test_an_ask_without_columns_takes_no_mapping():
    with pytest.raises(BadWeights, match="names no column"):
        sp.evaluate("minimize error", [0.1, 0.9], [0, 1], weights={"amount": [1.0, 2.0]})


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(1500, 2))
    y = draw.random(1500) < 1 / (1 + np.exp(-2 * x[:, 0]))
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "amount": draw.exponential(10, 1500), "y": y.astype(int)})


@pytest.mark.parametrize("odd", ["missing", "words", "null"])
def test_a_column_without_values_is_refused(table, odd):
    broken = {
        "missing": table.drop("amount"),
        "words": table.with_columns(amount=pl.lit("much")),
        "null": table.with_columns(amount=pl.when(pl.col("a") > 0).then(pl.col("amount"))),
    }[odd]
    with pytest.raises(BadTable, match="'amount'"):
        fit_table(broken, "y", sp.ask(ASKS[0]))


def test_through_the_command_line(table, tmp_path):
    table.write_csv(tmp_path / "table.csv")
    run = CliRunner().invoke
    where = [str(tmp_path / "table.csv"), "--target", "y", "--ask", ASKS[0], "--out", str(tmp_path / "run")]
    fitted = run(command_line(), ["fit", *where, "--model", "linear"])
    assert fitted.exit_code == 0, fitted.output
    assert "recall weighted by amount" in fitted.output
    judged = run(command_line(), ["evaluate", str(tmp_path / "run"), str(tmp_path / "table.csv"), "--json"])
    assert judged.exit_code == 0, judged.output
    streamed = run(command_line(), ["fit", *where, "--force", "--stream"])
    assert streamed.exit_code != 0
    saved = sp.load_run(tmp_path / "run")
    assert np.unique(saved.predict(table.drop("y"))).tolist() == [0, 1]
