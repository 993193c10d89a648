"""What the page shows is what setpoint, scikit-learn and scipy count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, roc_curve

from marks import slow
from materials import ASK, BAND, draw, history, material
from reference import band_counts, band_rate
from setpoint import ask
from setpoint.measure.count import count
from setpoint.measure.sample import Sample
from setpoint.problem.thresholds import Band, OneThreshold
from setpoint.report.data import histogram, history_data, page_data, reliability
from setpoint.report.material import Contender
from setpoint.report.positions import MOST, find_positions, limits
from setpoint.report.words import answer, checked, promise, show_share, verdicts


def sample_of(rows, seed=0, decimals=None):
    scores, labels = draw(rows, seed, decimals=decimals)
    return Sample(scores.double(), labels.double())


@given(
    levels=st.lists(st.integers(-4, 4), min_size=2, max_size=40),
    own=st.lists(st.floats(-5, 5), min_size=1, max_size=3),
    seed=st.integers(0, 5),
)
def test_all_cuts_and_the_own_thresholds_are_there_with_true_counts(levels, own, seed):
    scores = torch.tensor(levels, dtype=torch.float64)
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, 2, len(levels))).double()
    found = find_positions(Sample(scores, labels), own)
    assert torch.equal(found.counts, count(scores, labels, found.thresholds))
    assert [float(found.thresholds[i]) for i in found.own] == own
    assert bool((found.thresholds[1:] > found.thresholds[:-1]).all())
    assert found.kept == found.cuts == len(set(levels)) + 1
    assert len({tuple(c) for c in found.counts.tolist()}) == found.cuts


def test_the_cuts_are_those_of_scikit_learn():
    sample = sample_of(300, decimals=1)
    found = find_positions(sample, [0.5])
    fpr, recall, _ = roc_curve(sample.labels, sample.scores, drop_intermediate=False)
    positives, negatives = float(sample.labels.sum()), float((1 - sample.labels).sum())
    mine = found.counts.flip(0)
    assert (mine[:, 0] / positives).tolist() == pytest.approx(recall.tolist())
    assert (mine[:, 1] / negatives).tolist() == pytest.approx(fpr.tolist())


@slow
@pytest.mark.parametrize("own", [[1.2], [-9.0], [9.0], [0.1 * i for i in range(10)]])
def test_many_cuts_are_thinned_but_not_near_the_own_thresholds(own):
    sample = sample_of(30_000)
    found = find_positions(sample, own)
    assert found.cuts > 25_000
    assert found.kept <= MOST
    assert len(found.thresholds) <= MOST + len(own)
    assert torch.equal(found.counts, count(sample.scores, sample.labels, found.thresholds))
    flagged = found.counts[:, :2].sum(-1)
    assert (flagged[-1], flagged[0]) == (0, 30_000)
    for place in found.own:
        steps = flagged[max(place - 40, 0) : place + 40].diff().abs()
        assert bool((steps <= 3).all())  # every cut: nearly no two of these float32 scores tie
    # The further away the wider the steps, but never a leap.
    assert float(flagged.diff().abs().max()) < 0.1 * 30_000


def test_reliability_is_that_of_scikit_learn():
    sample = sample_of(2000)
    rows = reliability(sample)
    share, mean = calibration_curve(sample.labels, sample.scores.sigmoid(), n_bins=10)
    assert [row["mean"] for row in rows] == pytest.approx(mean.tolist())
    assert [row["share"] for row in rows] == pytest.approx(share.tolist())
    assert sum(row["n"] for row in rows) == 2000
    assert all(row["low"] <= row["share"] <= row["high"] for row in rows)


def test_reliability_leaves_empty_bins_out_and_keeps_certainty():
    rows = reliability(Sample(torch.tensor([-80.0, 80.0, 80.0]).double(), torch.tensor([0.0, 1.0, 0.0]).double()))
    assert [(row["n"], row["share"]) for row in rows] == [(1, 0.0), (2, 0.5)]
    assert rows[1]["mean"] == 1.0


def test_the_histogram_counts_every_row_of_either_class():
    scores = torch.cat([torch.linspace(-1, 1, 5000), torch.tensor([1e6])]).double()
    labels = (torch.arange(5001) % 4 == 0).double()
    found = histogram(Sample(scores, labels), [0.3], bins=20)
    assert (sum(found.positives), sum(found.negatives)) == (int(labels.sum()), 5001 - int(labels.sum()))
    assert found.high < 2
    assert found.beyond >= 1
    middle = scores[labels == 1].numpy()
    edges = np.linspace(found.low, found.high, 21)
    expected, _ = np.histogram(middle.clip(found.low, np.nextafter(found.high, -np.inf)), edges)
    assert found.positives == expected.tolist()


@pytest.mark.parametrize("own", [[0.0], [7.0], [-3.0, 4.0]])
def test_the_histogram_of_one_value_has_a_width_and_shows_the_threshold(own):
    found = histogram(Sample(torch.zeros(4).double(), torch.tensor([0.0, 1.0, 1.0, 0.0]).double()), own)
    assert found.low < min(own) <= max(own) < found.high
    assert sum(found.positives) == sum(found.negatives) == 2


def test_counts_and_verdicts_of_the_page_are_those_of_the_point():
    told = material("maximize recall where fpr <= 10% and precision >= 60% and flagged == 20%", decimals=1)
    data = page_data(told)
    for contender, plain in zip(told.contenders, data["contenders"]):
        for part in told.parts:
            rows, labels = plain["parts"][part], told.labels[part].numpy()
            scores = contender.scores[part].double()
            assert rows["threshold"][rows["own"][0]] == contender.thresholds.plain
            for i in range(0, len(rows["threshold"]), 7):
                passed = (scores > rows["threshold"][i]).numpy()
                (tn, fp), (_, tp) = confusion_matrix(labels, passed).tolist()
                assert (rows["tp"][i], rows["fp"][i], rows["negatives"] - rows["fp"][i]) == (tp, fp, tn)
                counts = count(scores, told.labels[part].double(), rows["threshold"][i])
                held = "".join("01"[bool(c.holds(counts))] for c in told.problem.constraints)
                assert "".join(flags[i] for flags in rows["holds"]) == held
    assert [data["quantities"][b["quantity"]]["name"] for b in data["bounds"]] == ["fpr", "precision", "flagged"]


@pytest.mark.parametrize("question", [BAND, "minimize error where review <= 10% and fnr <= 20%"])
def test_two_handles_count_what_a_plain_loop_counts(question):
    """A page takes the six counts of a band from the counts at its two places, and judges the bounds by the values."""
    told = material(question, rows=90, decimals=1)
    data = page_data(told)
    assert [handle["key"] for handle in data["handles"]] == ["low", "high"]
    for contender, plain in zip(told.contenders, data["contenders"]):
        rows, scores, labels = plain["parts"]["test"], contender.scores["test"].double(), told.labels["test"]
        assert [rows["threshold"][i] for i in rows["own"]] == [contender.thresholds.high, contender.thresholds.low]
        for high in range(0, len(rows["threshold"]), 3):
            for low in range(0, high + 1, 4):
                above = rows["tp"][high], rows["fp"][high]
                below = rows["positives"] - rows["tp"][low], rows["negatives"] - rows["fp"][low]
                counts = [*above, *below, rows["tp"][low] - above[0], rows["fp"][low] - above[1]]
                cuts = rows["threshold"][low], rows["threshold"][high]
                assert counts == band_counts(scores.tolist(), labels.tolist(), [1] * 90, *cuts)
                values = [np.dot(q["part"], counts) / max(np.dot(q["whole"], counts), 1) for q in data["quantities"]]
                assert values == pytest.approx([band_rate(q["name"], counts) for q in data["quantities"]])
                held = Band(*cuts).count(Sample(scores, labels.double()))
                for bound, constraint in zip(data["bounds"], told.problem.constraints):
                    value = values[bound["quantity"]]
                    kept = value <= bound["most"] if bound["least"] is None else value >= bound["least"]
                    assert kept == bool(constraint.holds(held))
        assert rows["holds"] == []


def test_a_metric_comes_with_its_values():
    told = material("maximize mcc", rows=100)
    rows = page_data(told)["contenders"][0]["parts"]["test"]
    counts = count(
        told.contenders[0].scores["test"].double(),
        told.labels["test"].double(),
        torch.tensor(rows["threshold"], dtype=torch.float64),
    )
    assert rows["values"]["mcc"] == pytest.approx(told.problem.objective(counts).tolist())


def test_groups_add_up_and_are_counted_one_by_one():
    told = material(rows=500, groups=["north", "south", "west"], group_by="region")
    rows = page_data(told)["contenders"][0]["parts"]["test"]
    assert [group["name"] for group in rows["groups"]] == ["north", "south", "west"]
    for key in ("tp", "fp"):
        assert np.sum([group[key] for group in rows["groups"]], axis=0).tolist() == rows[key]
    north = torch.from_numpy(told.groups["test"] == "north")
    scores, labels = told.contenders[0].scores["test"][north].double(), told.labels["test"][north].double()
    expected = count(scores, labels, torch.tensor(rows["threshold"], dtype=torch.float64))
    assert rows["groups"][0]["tp"] == expected[:, 0].tolist()
    assert rows["groups"][0]["fp"] == expected[:, 1].tolist()


def test_groups_beside_a_band_show_rates_of_three_decisions():
    told = material(BAND, rows=300, groups=["north", "south"], group_by="region")
    data = page_data(told)
    rows = data["contenders"][0]["parts"]["test"]
    assert [q["name"] for q in data["group_rates"]] == ["review", "precision", "npv", "recall"]
    assert all(len(q["part"]) == 6 for q in data["group_rates"])
    assert np.sum([group["tp"] for group in rows["groups"]], axis=0).tolist() == rows["tp"]


def test_thresholds_of_groups_move_together_and_start_at_the_point():
    told = material("minimize error where recall.gap(sex) <= 5%", rows=800, groups=["f", "m"])
    data = page_data(told)
    rows = data["contenders"][0]["parts"]["test"]
    judged = told.point.judge(told.contenders[0].scores["test"], told.labels["test"], groups=told.groups["test"])
    own = rows["own"][0]
    assert data["margins"]
    assert rows["threshold"][own] == 0
    wrong = rows["fp"][own] + rows["positives"] - rows["tp"][own]
    assert wrong / 800 == pytest.approx(judged.rates["error"])
    assert rows["values"]["recall.gap(sex)"][own] == pytest.approx(judged.rates["recall.gap(sex)"])
    assert rows["holds"][0][own] == "01"[judged.feasible]
    assert data["contenders"][0]["thresholds"] == told.point.threshold
    assert [q["name"] for q in data["group_rates"]] == ["error", "recall", "fpr", "precision", "flagged"]


def test_the_view_is_where_the_ask_lives():
    near = page_data(material("minimize fnr where fpr <= 1%"))["view"]["test"]
    assert near["fpr"][0] == 0
    assert 0.03 <= near["fpr"][1] <= 0.05
    high = page_data(material("maximize precision where recall >= 95%"))["view"]["test"]
    assert high["recall"][1] == 1
    assert 0.75 <= high["recall"][0] <= 0.9
    area = page_data(material("maximize recall over fpr in [0%, 5%] with 4 points"))["view"]["test"]
    assert 0.05 < area["fpr"][1] <= 0.1
    whole = page_data(material("maximize recall over fpr in [0%, 100%] with 4 points"))["view"]["test"]
    assert whole["fpr"] == [0, 1]


@pytest.mark.parametrize(
    "question",
    [ASK, "minimize fpr where recall >= 90%", "maximize f1", "maximize precision where flagged == 5%",
     "maximize recall where precision >= 70%", "maximize precision over recall in [50%, 90%] with 3 points", BAND,
     "minimize error where review <= 10%"],
)  # fmt: skip
def test_the_own_points_lie_in_the_view(question):
    data = page_data(material(question))
    for part, view in data["view"].items():
        for contender in data["contenders"]:
            rows = contender["parts"][part]
            for i in rows["own"]:
                flagged = rows["tp"][i] + rows["fp"][i]
                values = {"fpr": rows["fp"][i] / rows["negatives"], "recall": rows["tp"][i] / rows["positives"]}
                values |= {"precision": rows["tp"][i] / flagged} if flagged else {}
                for axis, value in values.items():
                    assert view[axis][0] - 1e-9 <= value <= view[axis][1] + 1e-9, axis


def test_bounds_are_drawn_on_their_axis_and_their_side():
    lines = limits(ask("maximize flagged where fnr <= 10% and tnr >= 98% and precision >= 30%"))
    assert [(line["axis"], round(line["at"], 9), line["broken"]) for line in lines] == [
        ("recall", 0.9, -1), ("fpr", 0.02, 1), ("precision", 0.3, -1),
    ]  # fmt: skip
    band = limits(ask("minimize review where fnr <= 10% and fpr <= 2% and npv >= 99%"))
    assert [(line["axis"], line["lower"]) for line in band] == [("recall", True), ("fpr", False)]
    area = limits(ask("maximize precision over recall in [50%, 100%] with 2 points"))
    assert [(line["axis"], line["at"], line["broken"]) for line in area] == [("recall", 0.5, -1)]


def test_a_long_history_is_thinned_and_keeps_the_best_epoch():
    plain = history_data(Contender("x", OneThreshold(0.0), {}, history=history(5000), best_epoch=1234))
    assert len(plain["history"]) <= 502
    assert plain["history"][plain["best"]]["epoch"] == 1235
    assert (plain["history"][0]["epoch"], plain["history"][-1]["epoch"]) == (1, 5000)


def test_the_sentences_tell_the_numbers_of_the_test_rows():
    told = material()
    point = told.judge(told.contenders[0], "test")
    n = int((told.labels["test"] == 0).sum())
    k = round(point.rates["fpr"] * n)
    low, high = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert (
        f"threshold {told.point.threshold:.4g}. On the 400 test rows fnr is {show_share(point.rates['fnr'])}"
        in answer(told)
    )
    ((kind, said),) = verdicts(told)
    assert kind == ("holds" if point.feasible else "broken")
    assert ("did not hold" in said) == (kind == "broken")
    assert f"fpr is {show_share(point.rates['fpr'])} (95% interval {show_share(low)} to {show_share(high)})" in said


@pytest.mark.parametrize(
    ("question", "confidence", "words"),
    [
        ("minimize fnr where fpr <= 5%", 0.95, "Certified: fpr <= 5% on new data like these, with confidence 95%"),
        ("minimize fnr where fpr <= 5%", 0.95, "calibration samples (order statistic of the calibration scores)."),
        ("maximize f1", 0.9, "Estimated on the calibration rows: f_score(1) "),
        ("minimize fnr where fpr <= 5%", None, "it needs 59 negatives among the calibration rows, and there are"),
        ("minimize fnr where fpr <= 0.1%", None, "needs 2,995 negatives among the calibration rows, and there are"),
        ("maximize tnr where recall >= 90%", None, "it needs 29 positives"),
        ("minimize fnr where fpr <= 0%", None, "No number of rows"),
        ("maximize f1", None, "no bound"),
        ("maximize recall where precision >= 50%", None, "Fit with --confidence 0.95"),
        ("maximize recall where recall >= 99% and precision >= 99%", None, "no threshold meets"),
    ],
)
def test_what_is_promised_or_missing(question, confidence, words):
    assert words in " ".join(promise(material(question, confidence=confidence)))


def test_the_sentences_of_a_band_name_two_cuts():
    told = material(BAND)
    point, (low, high) = told.judge(told.contenders[0], "test"), told.point.threshold.values()
    counts = band_counts(told.contenders[0].scores["test"].tolist(), told.labels["test"].tolist(), [1] * 400, low, high)
    assert answer(told).startswith(
        f"Flag above {high:.4g}, review from {low:.4g} to {high:.4g}. On the 400 test rows review is "
        f"{show_share(band_rate('review', counts))} (95% interval "
    )
    for (kind, said), name in zip(verdicts(told), ("precision", "npv"), strict=True):
        part, whole = {"precision": (counts[0], sum(counts[:2])), "npv": (counts[3], sum(counts[2:4]))}[name]
        exact = binomtest(int(part), int(whole)).proportion_ci(0.95, method="exact")
        assert f"{name} is {show_share(part / whole)} (95% interval {show_share(exact.low)} to" in said
        assert (kind == "broken") == ("did not hold" in said)
    later = point.check(told.contenders[0].scores["test"], told.labels["test"])
    best = told.best(told.contenders[0], "test")
    assert (
        f"The best pair of cuts of these rows, {best.thresholds.describe()}, has review "
        in checked(told.point, later, best)[-1]
    )


@pytest.mark.parametrize(
    ("question", "confidence", "words"),
    [
        (
            BAND,
            None,
            "Not certified: the pair of cuts merely meets its bounds on the calibration rows, and on new rows",
        ),
        (BAND, None, "such a pair of cuts breaks each of them half the time or more"),
        ("minimize review where precision >= 60% and npv >= 70%", 0.9, "Certified: precision >= 60% and npv >= 70%"),
        ("minimize review where precision >= 60% and npv >= 70%", 0.9, "(two walks that share the error probability: "),
        (
            "minimize error where review <= 20%",
            0.9,
            "(fixed-sequence test along a path that 133 samples set aside chose)",
        ),
        ("minimize error where review <= 0% and recall >= 99% and fpr <= 1%", None, "no pair of cuts meets"),
    ],
)
def test_what_is_promised_of_a_band(question, confidence, words):
    assert words in " ".join(promise(material(question, confidence=confidence)))


def test_a_band_without_a_review_says_so():
    assert Band(0.5, 0.5).rule() == "Flag above 0.5, review nothing"
