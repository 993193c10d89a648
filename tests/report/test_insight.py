"""What drives the score, the rows nearest to the threshold and the worst slices, against plain recounts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import fisher_exact, hypergeom

from setpoint import ask
from setpoint.errors import BadTable
from setpoint.report.names import distinct_names, method_words
from setpoint.report.of_run import read_material, write_report
from setpoint.report.question import question
from setpoint.run.artefact import load_run, load_scores, save_run
from setpoint.run.insight import insight_of
from setpoint.run.settings import Settings
from setpoint.run.slices import _chance, worst_slices
from setpoint.run.table import fit_table


def table(rows=3000, seed=0):
    """One column decides, one does nothing, and in region c the labels are noise."""
    rng = np.random.default_rng(seed)
    signal, noise = rng.normal(size=rows), rng.normal(size=rows)
    region = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.4, 0.1])
    label = signal + 0.3 * rng.normal(size=rows) > 0.8
    label[region == "c"] = rng.random((region == "c").sum()) < 0.4
    return pl.DataFrame({"signal": signal, "noise": noise, "region": region, "label": label.astype(int)})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    frame = table()
    settings = Settings(model="linear", solver="cross-entropy", epochs=5)
    run = fit_table(frame, "label", ask("minimize fnr where fpr <= 10%"), settings)
    place = save_run(tmp_path_factory.mktemp("runs") / "run", run)
    return frame, run, place, insight_of(load_run(place), load_scores(place), frame)


def test_the_column_that_decides_comes_first_and_the_idle_one_says_nothing(found):
    drivers = found[3].drivers
    assert drivers[0].column == "signal"
    assert drivers[0].low > 0.2
    idle = next(one for one in drivers if one.column == "noise")
    assert idle.low <= 0.02
    assert idle.high < drivers[0].low


def test_the_weights_of_a_linear_model_are_its_parameters(found):
    saved, weights = load_run(found[2]), dict(found[3].coefficients)
    signs = dict(zip(saved.schema.features, saved.model.weight[0].tolist()))
    assert all(np.sign(value) == np.sign(signs[name]) for name, value in weights.items() if abs(value) > 1e-6)
    assert max(weights, key=lambda name: abs(weights[name])) == "signal"


def test_the_rows_nearest_to_the_threshold_are_those_of_the_table(found):
    frame, run, _, insight = found
    threshold = run.chosen.point.threshold
    scores = run.chosen.sample("test").scores.double()
    nearest = sorted((scores - threshold).abs().tolist())[: len(insight.near)]
    assert sorted(abs(one.score - threshold) for one in insight.near) == pytest.approx(nearest)
    for one in insight.near:
        assert bool(frame["label"][one.row - 1]) == one.positive
        assert one.flagged == (one.score > threshold)
        assert one.values[0] == str(frame[insight.columns[0]][one.row - 1])


def test_the_slice_of_noise_is_found_and_its_counts_are_true(found):
    insight = found[3]
    assert any((one.column, one.value) == ("region", "c") for one in insight.slices)
    assert all(one.p_value <= 0.05 and one.wrong / one.rows > one.elsewhere for one in insight.slices)


def test_slices_are_tested_as_fisher_tests_and_corrected_as_holm_does():
    rng = np.random.default_rng(1)
    column = pl.Series("kind", rng.choice(["x", "y", "z"], 600))
    labels = rng.random(600) < 0.5
    flagged = np.where(column.to_numpy() == "z", rng.random(600) < 0.35, rng.random(600) < 0.7)
    flagged &= labels
    slices, tested = worst_slices([column], labels, flagged)
    by_hand = {}
    for name in "xyz":
        inside = (column.to_numpy() == name) & labels
        outside = ~(column.to_numpy() == name) & labels
        counts = [[int((inside & ~flagged).sum()), int((inside & flagged).sum())],
                  [int((outside & ~flagged).sum()), int((outside & flagged).sum())]]  # fmt: skip
        by_hand[name] = fisher_exact(counts, alternative="greater")[1]
    assert tested == 6
    (worst,) = slices
    assert (worst.value, worst.error) == ("z", "missed")
    assert worst.p_value == pytest.approx(6 * by_hand["z"], rel=1e-6)


def test_infinite_values_are_a_slice_with_missing_ones():
    """Quarters between infinities once warned of an invalid subtraction, and had no rows."""
    values = [float("inf")] * 150 + [None] * 50 + [float(row) for row in range(200)]
    flagged = np.arange(400) >= 200
    slices, tested = worst_slices([pl.Series("amount", values)], np.ones(400, bool), flagged)
    assert [(one.value, one.rows, one.wrong) for one in slices] == [("(missing)", 200, 200)]
    assert tested == 5


def test_without_differences_no_slice_is_told():
    rng = np.random.default_rng(2)
    told = 0
    for _ in range(100):
        column, labels = pl.Series("kind", rng.choice(list("abcd"), 400)), rng.random(400) < 0.5
        told += bool(worst_slices([column], labels, rng.random(400) < 0.5)[0])
    assert told <= 12


def test_another_table_is_refused_and_the_page_shows_the_sections(found, tmp_path):
    frame, _, place, _ = found
    with pytest.raises(BadTable, match="fingerprint differs"):
        read_material(place, table(seed=1))
    (path,) = write_report(place, tmp_path / "page.html", data=frame)
    page = path.read_text()
    assert all(title in page for title in ("What drives the score", "Rows nearest to the threshold", "Where it errs"))
    (bare,) = write_report(place, tmp_path / "bare.html")
    assert "A run keeps no rows" in bare.read_text()


def test_names_of_methods_are_words_and_no_two_are_alike():
    assert method_words("default: Anchored(0.25)") == "linear model for the ask"
    assert method_words("default: TreesByWorkers") == "boosted trees"
    assert method_words("auto: Anchored(1)") == "linear model for the ask, anchor 1"
    assert distinct_names(["default: cross-entropy", "cross-entropy"]) == ["cross-entropy, as shipped", "cross-entropy"]
    assert len(set(distinct_names(["a", "a", "a"]))) == 3


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("maximize precision where recall >= 95%", "Be right as often as possible when a row is flagged, with at least "
         "95% of positives found"),
        ("minimize cost(miss=5, alarm=1)", "Make the cost as low as possible"),
        ("minimize error where recall.gap(sex) <= 2%", "recall that differs by at most 2% between the groups of sex"),
        ("maximize macro recall", "Find as many rows of each class as possible, all classes counting the same"),
        ("minimize macro recall", "Make macro recall as low as possible"),
        ("minimize error where precision of class b >= 80%", "with at least 80% of the rows given class b right"),
        ("maximize precision in the first 5", "Put as many positives as possible among the first 5 of each list"),
        ("maximize recall weighted by amount where fpr <= 1%", "Find positives with as much amount as possible, with"),
        ("minimize fnr where fpr <= 1% for each of spam, toxic", "with at most 1% of negatives flagged, for each of 2"),
    ],
)  # fmt: skip
def test_the_question_in_words(asked, words):
    assert words in question(ask(asked))


@pytest.mark.parametrize(("everywhere", "errors", "size"), [(50, 10, 20), (3000, 17, 900), (200_000, 30_000, 4000)])
def test_the_chance_of_a_slice_is_the_tail_of_the_hypergeometric_distribution(everywhere, errors, size):
    for own in {0, 1, size * errors // everywhere, min(errors, size)}:
        expected = hypergeom.sf(own - 1, everywhere, errors, size)
        assert _chance(own, errors, size, everywhere) == pytest.approx(expected, rel=1e-8)
