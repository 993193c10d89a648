import numpy as np
import pytest
import torch
from scipy.stats import norm

import setpoint as sp
from setpoint.errors import BadProblem, BadSetting, TooFewSamples
from setpoint.train.certify import needed

ASKS = {
    "minimize fnr where fpr <= 5%": ("negative", "fpr"),
    "maximize recall where tnr >= 95%": ("negative", "fpr"),
    "maximize tnr where recall >= 95%": ("positive", "fnr"),
    "minimize fpr where fnr <= 5%": ("positive", "fnr"),
    "maximize precision where recall >= 95%": ("positive", "fnr"),
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
def test_the_promise_is_broken_no_more_often_than_it_says(ask, tied):
    """400 calibrations of 300 samples a class, judged by the true distribution; plug-in breaks about half."""
    draw = np.random.default_rng(0)
    labels = np.repeat([0, 1], 300)
    broken = {None: 0, 0.9: 0}
    for _ in range(400):
        scores = draw.normal(size=600) + 1.5 * labels
        scores = np.round(scores * 4) / 4 if tied else scores
        for confidence in broken:
            t = sp.calibrate(ask, scores, labels, confidence=confidence).threshold
            # A rounded score passes when the score behind it lies beyond the rounding border above t.
            edge = (np.floor(t * 4) + 0.5) / 4 if tied else t
            rates = {"fpr": norm.sf(edge), "fnr": norm.cdf(edge - 1.5)}
            broken[confidence] += rates[ASKS[ask][1]] > 0.05
    assert broken[0.9] / 400 <= 0.1 + 2 * (0.1 * 0.9 / 400) ** 0.5
    if not tied:
        assert broken[None] / 400 > 0.35


@pytest.mark.parametrize("ask", ASKS)
def test_too_few_samples_are_refused_with_the_number_needed(ask):
    labels = np.repeat([0, 1], 58)
    scores = np.linspace(0, 1, 116)
    with pytest.raises(TooFewSamples, match=f"needs 59 {ASKS[ask][0]}s, but there are 58; they could certify"):
        sp.calibrate(ask, scores, labels, confidence=0.95)
    labels, scores = np.repeat([0, 1], 59), np.linspace(0, 1, 118)
    assert sp.calibrate(ask, scores, labels, confidence=0.95).certificate.samples == 59


def test_how_many_samples_a_promise_needs():
    assert needed(0.01, 0.95) == 299
    assert needed(0.05, 0.95) == 59


def test_the_certificate_says_what_it_promises():
    point = sp.calibrate(
        "minimize fnr where fpr <= 5%", torch.linspace(0, 1, 200), torch.arange(200) % 2, confidence=0.9
    )
    assert point.certificate == sp.Certificate("fpr <= 5%", 0.9, 100)
    assert point.rates["fpr"] <= 0.05


@pytest.mark.parametrize(
    ("ask", "kwargs", "error", "says"),
    [
        ("maximize f1", {}, BadProblem, "no certificate"),
        ("maximize recall where precision >= 50%", {}, BadProblem, "no certificate"),
        ("maximize recall where fpr >= 5%", {}, BadProblem, "no certificate"),
        ("minimize fnr where fpr <= 5% and precision >= 10%", {}, BadProblem, "no certificate"),
        ("minimize fnr where fpr <= 0%", {}, BadProblem, "no number of samples"),
        ("minimize fnr where fpr <= 5%", {"confidence": 1.0}, BadSetting, "confidence"),
        ("minimize fnr where fpr <= 5%", {"weights": np.linspace(1, 2, 200)}, BadProblem, "unequal weights"),
    ],
)
def test_what_cannot_be_promised_is_refused(ask, kwargs, error, says):
    scores, labels = np.linspace(0, 1, 200), np.arange(200) % 2
    with pytest.raises(error, match=says):
        sp.calibrate(ask, scores, labels, **{"confidence": 0.95, **kwargs})
