"""`setpoint explain`: an ask in words, and how many samples its certificate needs."""

from __future__ import annotations

import json
import re

import pytest
import scipy

from doors import main_ok
from setpoint.cli import main


@pytest.mark.parametrize(
    ("text", "bound", "of", "samples"),
    [
        ("minimize fnr where fpr <= 1%", "fpr <= 1%", "negatives", {"0.9": 230, "0.95": 299, "0.99": 459}),
        ("maximize precision where recall >= 95%", "recall >= 95%", "positives", {"0.9": 45, "0.95": 59, "0.99": 90}),
        (
            "maximize precision where tnr >= 99.9%",
            "tnr >= 99.9%",
            "negatives",
            {"0.9": 2302, "0.95": 2995, "0.99": 4603},
        ),
    ],
)
def test_explain_counts_the_samples_of_a_certificate(capsys, text, bound, of, samples):
    main_ok("explain", text, "--json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["ask"] == text
    assert answer["certificate"]["needs"] == [{"bound": bound, "of": of, "samples": samples}]
    allowed = 1 - float(bound.split()[-1].rstrip("%")) / 100
    allowed = 1 - allowed if "<=" in bound else allowed
    for confidence, needed in samples.items():
        # One sample fewer, and even no mistake at all is no evidence.
        assert scipy.stats.binom.cdf(0, needed, allowed) <= 1 - float(confidence)
        assert scipy.stats.binom.cdf(0, needed - 1, allowed) > 1 - float(confidence)


def test_explain_in_words(capsys):
    main_ok("explain", "minimize fnr where fpr <= 1%")
    heard = capsys.readouterr().out
    assert "Make fnr as low as it can be, at a threshold where fpr is at most 1%." in heard
    assert "fnr: of all positives, the share that is missed" in heard
    assert re.search(r"fpr <= 1% +230 +299 +459 +negatives", heard)
    assert "With so few, none may fall on the wrong side of the threshold; more of them allow" in heard
    assert "some 1,994 negatives" in heard
    assert "several points better than the best of 21 class weights" in heard
    for text, expected in (
        ("maximize f2", "recall counting 2-fold"),
        ("maximize f2", "there is no bound to certify"),
        ("maximize recall where fpr <= 20%", "for so mild an ask"),
        ("maximize recall over fpr in [0%, 5%]", "on average over all thresholds at which fpr lies between 0% and 5%"),
        ("minimize error where recall.gap(sex) <= 2%", "between any two groups of the column 'sex'"),
        ("maximize precision where flagged == 2%", "certif"),
        ("maximize mcc", "the correlation of decision and label"),
        ("maximize precision in the first 5", "tp / (tp + fp); flagged means among the first 5 of its list"),
        ("maximize hit in the first 5", "1 for a list with a positive that is flagged, 0 for any other"),
        ("maximize hit in the first 5 where recall in the first 9 >= 3%", "by an order of the rows in each list where"),
        ("minimize cost(miss=5, alarm=1)", "the mean cost per row: 5 for each miss, 1 for each false alarm"),
        ("minimize cost(miss=amount, alarm=1)", "the value of 'amount' for each miss, 1 for each false alarm"),
        ("maximize recall weighted by amount", "tp / (tp + fn), where every row counts as much as its 'amount'"),
        ("maximize macro recall", "the mean over all classes, each counting alike: of all positives"),
        ("maximize weighted recall", "each weighted by its number of rows: of all positives"),
        ("minimize micro fnr", "all classes counted together: of all positives"),
        ("minimize error where recall of class a >= 90%", "the share that is predicted as a wrong class"),
        ("minimize error where recall of class a >= 90%", "with a shift for each class so that recall of class a is"),
        ("maximize recall of class a", "positive means of class 'a', flagged means predicted as that class"),
        ("minimize error where recall gap between classes <= 9%", "the highest value less the lowest over all classes"),
    ):
        main_ok("explain", text)
        assert expected in capsys.readouterr().out, text


def test_a_bound_that_always_holds_needs_no_sample(capsys):
    main_ok("explain", "minimize fnr where fpr <= 1")
    heard = capsys.readouterr().out
    assert "fpr <= 100% needs no sample, because it always holds." in heard
    assert "depends on the data" not in heard


def test_the_folder_of_a_run_is_no_ask(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", str(tmp_path)])
    assert stopped.value.code == 2
    assert f"a saved run is shown by setpoint report {tmp_path}" in " ".join(capsys.readouterr().err.split())


def test_every_rate_of_the_language_has_a_meaning():
    from setpoint.measure.rate import NAMED  # noqa: PLC0415
    from setpoint.report.meaning import MEANING  # noqa: PLC0415

    assert set(MEANING) == {*NAMED, "review"}


@pytest.mark.parametrize(
    ("text", "of", "tested"),
    [
        ("maximize recall of class a where fpr of class a <= 10%", "samples of other classes than a", 1.0),
        ("minimize error where recall of class a >= 90%", "samples of class a", 2 / 3),
        ("maximize recall of class b where precision of class a >= 90%", "samples predicted as class a", 2 / 3),
    ],
)
def test_explain_counts_the_samples_of_each_class(text, of, tested, capsys):
    main_ok("explain", text, "--json")
    (need,) = json.loads(capsys.readouterr().out)["certificate"]["needs"]
    assert need["of"] == of
    for confidence, needed in need["samples"].items():
        # A third of the samples choose the path where several classes move.
        level = 1 - float(confidence)
        assert scipy.stats.binom.cdf(0, round(tested * needed), 0.1) <= level
        assert scipy.stats.binom.cdf(0, int(tested * (needed - 1)), 0.1) > level


def test_explain_says_why_a_bound_on_classes_has_no_certificate(capsys):
    for text, why in (
        ("maximize accuracy where recall gap between classes <= 9%", "no exact test is known for recall gap between"),
        ("minimize error where recall of class a >= 100%", "leave a little room"),
        ("minimize error where recall of class a == 90%", "no data can show that recall of class a == 90%"),
    ):
        main_ok("explain", text)
        assert why in " ".join(capsys.readouterr().out.split())


def test_explain_says_how_a_band_decides_and_counts_the_samples_of_each_cut(capsys):
    text = "minimize review where precision >= 99% and npv >= 99.9%"
    main_ok("explain", text, "--json")
    needs = json.loads(capsys.readouterr().out)["certificate"]["needs"]
    assert [(need["bound"], need["of"]) for need in needs] == [
        ("precision >= 99%", "flagged"), ("npv >= 99.9%", "not flagged"),
    ]  # fmt: skip
    for need, allowed in zip(needs, (0.01, 0.001)):
        for confidence, needed in need["samples"].items():
            # The two cuts share the error probability.
            level = (1 - float(confidence)) / 2
            assert scipy.stats.binom.cdf(0, needed, allowed) <= level < scipy.stats.binom.cdf(0, needed - 1, allowed)
    main_ok("explain", text)
    heard = " ".join(capsys.readouterr().out.split())
    for words in (
        "Make review as low as it can be, at two cuts where precision is at least 99% and npv is at least 99.9%.",
        "Rows above the upper cut are flagged, rows between the cuts are reviewed, the rest is not flagged.",
        "review: of all samples, the share between the two cuts, which people review",
        "precision >= 99% 299 368 528 flagged",
        "none may fall on the wrong side of its cut",
        "Each cut is certified by itself, the upper cut by precision and the lower cut by npv",
    ):
        assert words in heard


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("minimize error where review <= 5%", "a third of the calibration rows choose pairs of cuts to try"),
        ("minimize error where review <= 5%", "review <= 5% 67 88 135 samples"),
        ("minimize review where fnr <= 1%", "fnr: of all positives, the share that is missed: fn / all positives, rev"),
        ("minimize review where fnr <= 1%", "Only the lower cut is bounded; the other cut is chosen freely."),
        ("minimize review", "both cuts are free, and the best ones are part of the answer"),
        ("maximize recall where npv >= 99%", "How many rows are not flagged depends on the model"),
    ],
)
def test_explain_of_other_bands(capsys, text, words):
    main_ok("explain", text)
    assert words in " ".join(capsys.readouterr().out.split())
