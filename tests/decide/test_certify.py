import numpy as np
import pytest
import torch
from scipy.stats import binom, binomtest, norm

import setpoint as sp
from marks import quick_first, slow
from setpoint.decide.certify import Certified, _one_by_one, certified_cuts
from setpoint.decide.samples_needed import needed
from setpoint.errors import BadGroups, BadProblem, BadSetting, TooFewSamples
from setpoint.measure.curve import curve
from setpoint.measure.sample import Sample
from setpoint.problem.point import Certificate

ASKS = {
    "minimize fnr where fpr <= 5%": ("negative", "fpr"),
    "maximize recall where tnr >= 95%": ("negative", "fpr"),
    "maximize tnr where recall >= 95%": ("positive", "fnr"),
    "minimize fpr where fnr <= 5%": ("positive", "fnr"),
    "maximize precision where recall >= 95%": ("positive", "fnr"),
}


@pytest.mark.parametrize("ask", quick_first(ASKS))
@pytest.mark.parametrize("tied", [pytest.param(False, id="continuous", marks=slow), pytest.param(True, id="tied")])
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
    assert point.certificate == Certificate("fpr <= 5%", 0.9, 100)
    assert point.rates["fpr"] <= 0.05


@pytest.mark.parametrize(
    ("ask", "kwargs", "error", "says"),
    [
        ("maximize precision where flagged == 5%", {}, BadProblem, "no data can show"),
        ("minimize fnr where fpr <= 0%", {}, BadProblem, "no number of samples"),
        ("minimize fnr where fpr <= 5%", {"confidence": 1.0}, BadSetting, "confidence"),
        ("minimize fnr where fpr <= 5%", {"confidence": "95%"}, BadSetting, "confidence"),
        ("minimize fnr where fpr <= 5%", {"weights": np.linspace(1, 2, 200)}, BadProblem, "unequal weights"),
        ("minimize fnr where fpr <= 5%", {"per_group": True}, BadGroups, "pass groups="),
        ("minimize error where recall.gap(g) <= 5%", {"per_group": True}, BadSetting, "per_group"),
    ],
)
def test_what_cannot_be_promised_is_refused(ask, kwargs, error, says):
    scores, labels = np.linspace(0, 1, 200), np.arange(200) % 2
    with pytest.raises(error, match=says):
        sp.calibrate(ask, scores, labels, **{"confidence": 0.95, **kwargs})


def test_equal_weights_count_as_none_and_weight_zero_as_absent():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 400)
    scores = draw.normal(size=400) + labels
    ask = "minimize fnr where fpr <= 5%"
    plain = sp.calibrate(ask, scores, labels, confidence=0.95)
    assert sp.calibrate(ask, scores, labels, confidence=0.95, weights=np.full(400, 2.0)).threshold == plain.threshold
    padded = sp.calibrate(
        ask, np.append(scores, [9.0] * 50), np.append(labels, [0] * 50),
        confidence=0.95, weights=np.repeat([1.0, 0.0], [400, 50]),
    )  # fmt: skip
    assert padded.threshold == plain.threshold


def normal_world(draw, n, share=0.3, shift=2.0, tied=False):
    labels = (draw.random(n) < share).astype(int)
    scores = draw.normal(size=n) + shift * labels
    return (np.round(scores * 4) / 4 if tied else scores), labels


def true_rates(threshold, share=0.3, shift=2.0, tied=False):
    edge = (np.floor(threshold * 4) + 0.5) / 4 if tied else threshold
    tp, fp = share * norm.sf(edge - shift), (1 - share) * norm.sf(edge)
    return {"fpr": norm.sf(edge), "recall": norm.sf(edge - shift), "precision": tp / (tp + fp), "flagged": tp + fp}


@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
@pytest.mark.parametrize(
    "ask",
    quick_first(
        [
            "maximize recall where precision >= 80%",
            "maximize precision where flagged <= 10%",
            "maximize recall where fpr <= 5% and flagged <= 25%",
            "maximize precision where recall >= 60% and fpr <= 10%",
            "maximize recall where fpr <= 8% and precision >= 70%",
        ]
    ),
)
def test_promises_on_precision_on_shares_and_on_several_bounds_are_kept(ask, tied):
    """200 calibrations of 600 samples; plug-in breaks a bound far more often than one time in ten."""
    draw, problem = np.random.default_rng(1), sp.ask(ask)
    broken = {None: 0, 0.9: 0}
    refused = 0
    for _ in range(200):
        scores, labels = normal_world(draw, 600, tied=tied)
        for confidence in broken:
            try:
                rates = true_rates(sp.calibrate(problem, scores, labels, confidence=confidence).threshold, tied=tied)
            except TooFewSamples:
                refused += 1
                continue
            excess = [
                (rates[c.quantity.name] - c.bound) * (1 if c.relation == "<=" else -1) for c in problem.constraints
            ]
            broken[confidence] += max(excess) > 0
    assert broken[0.9] / 200 <= 0.1 + 2 * (0.1 * 0.9 / 200) ** 0.5
    assert tied or refused / 200 < 0.35
    if not tied and "precision" not in str(problem.objective):
        assert broken[None] / 200 > 0.25


@slow
@pytest.mark.parametrize("tied", [False, True], ids=["continuous", "tied"])
def test_a_gap_between_groups_is_certified(tied):
    """60 calibrations of 2,000 samples in two groups whose scores differ in scale and place."""
    draw = np.random.default_rng(0)
    broken = refused = 0
    for _ in range(60):
        labels, groups = draw.integers(0, 2, 2000), draw.integers(0, 2, 2000)
        scores = draw.normal(size=2000) * (1 + groups) + 3 * labels - groups
        scores = np.round(4 * scores) / 4 if tied else scores
        ask = "minimize error where recall.gap(g) <= 10%"
        try:
            point = sp.calibrate(ask, scores, labels, groups=groups, confidence=0.9)
        except TooFewSamples:
            refused += 1
            continue
        t0, t1 = (point.threshold[g] if not tied else (np.floor(4 * point.threshold[g]) + 0.5) / 4 for g in "01")
        broken += abs(norm.sf(t0 - 3) - norm.sf((t1 - 2) / 2)) > 0.1
    assert broken / 60 <= 0.1 + 2 * (0.1 * 0.9 / 60) ** 0.5
    assert refused < (15 if tied else 1)


def three_groups(draw, positives_of_c):
    """3,000 rows; the positives of the small group c score lower than the others."""
    labels, groups = draw.integers(0, 2, 3000), draw.choice(["a", "b"], 3000)
    rare = draw.permutation(3000)[:50]
    groups[rare], labels[rare], labels[rare[:positives_of_c]] = "c", 0, 1
    return draw.normal(size=3000) + 3 * labels - 1.5 * (groups == "c"), labels, groups


@pytest.mark.parametrize("positives", [0, 1, 2, 5])
def test_a_gap_is_not_certified_over_a_group_that_has_no_trials_to_test_it(positives):
    draw, ask = np.random.default_rng(positives), "minimize error where recall.gap(g) <= 10%"
    for _ in range(3):
        scores, labels, groups = three_groups(draw, positives)
        says = (
            rf"needs about \d+ positives of each group, but there are {positives} of group 'c'.*; bring more positives"
        )
        with pytest.raises(TooFewSamples, match=says):
            sp.calibrate(ask, scores, labels, groups=groups, confidence=0.95)


def test_a_bound_beside_a_gap_is_refused_for_its_own_samples():
    scores, labels, groups = three_groups(np.random.default_rng(0), 25)
    ask = "minimize fnr where recall.gap(g) <= 90% and fpr <= 0.1%"
    with pytest.raises(
        TooFewSamples, match=r"^fpr <= 0.1% at confidence 95% needs 2,995 negatives, but there are 8\d\d"
    ):
        sp.calibrate(ask, scores, labels, groups=groups, confidence=0.95)


def test_as_many_samples_of_the_group_as_a_refusal_names_are_enough():
    _, labels, groups = three_groups(np.random.default_rng(0), 4)
    ask, perfect = "minimize error where recall.gap(g) <= 10%", labels + np.linspace(0, 0.5, 3000)
    with pytest.raises(TooFewSamples) as refused:
        sp.calibrate(ask, perfect, labels, groups=groups, confidence=0.95)
    needed_of_c = int(str(refused.value).partition("about ")[2].split()[0])
    assert needed_of_c < 100
    more = needed_of_c - 4
    labels, groups = np.append(labels, np.ones(more, dtype=int)), np.append(groups, ["c"] * more)
    certified = sp.calibrate(ask, labels + np.linspace(0, 0.5, len(labels)), labels, groups=groups, confidence=0.95)
    assert certified.certificate.statement == "recall.gap(g) <= 10%"


def test_a_group_whose_rows_all_weigh_nothing_is_not_certified():
    scores, labels, groups = three_groups(np.random.default_rng(0), 25)
    weights = np.where(groups == "c", 0.0, 1.0)
    for ask, apart in (("minimize error where recall.gap(g) <= 10%", False), ("minimize fnr where fpr <= 10%", True)):
        with pytest.raises(TooFewSamples, match="group 'c'"):
            sp.calibrate(ask, scores, labels, groups=groups, weights=weights, confidence=0.95, per_group=apart)


@slow
def test_every_group_keeps_its_own_bound():
    draw = np.random.default_rng(0)
    broken = 0
    for _ in range(300):
        labels, groups = draw.integers(0, 2, 1200), draw.integers(0, 3, 1200)
        scores = draw.normal(size=1200) + 2 * labels + groups
        point = sp.calibrate(
            "minimize fnr where fpr <= 10%", scores, labels, groups=groups, confidence=0.9, per_group=True
        )
        broken += any(norm.sf(point.threshold[str(g)] - g) > 0.1 for g in range(3))
    assert broken / 300 <= 0.1 + 2 * (0.1 * 0.9 / 300) ** 0.5
    assert point.feasible
    assert {"fpr", "fpr[0]", "fpr[1]", "fpr[2]"} <= point.rates.keys()
    assert point.judge(scores, labels, groups=groups).rates == point.rates


def test_a_group_that_is_too_small_is_named():
    names = np.where(np.arange(300) < 294, "a", "b")
    scores, labels = np.linspace(0, 1, 300), np.arange(300) % 2
    with pytest.raises(TooFewSamples, match=r"in group 'b': .* needs 44 negatives, but there are 3"):
        sp.calibrate("minimize fnr where fpr <= 10%", scores, labels, groups=names, confidence=0.98, per_group=True)


def test_the_walk_from_an_end_is_the_order_statistic():
    """Against the textbook: the smallest rank k with P(Binomial(n, 1 - bound) >= k) <= 1 - confidence."""
    draw = np.random.default_rng(3)
    for n in (59, 100, 1000):
        negatives, positives = np.sort(draw.normal(size=n)), draw.normal(size=50) + 1
        k = next(k for k in range(1, n + 1) if binom.sf(k - 1, n, 0.95) <= 0.05)
        point = sp.calibrate(
            "minimize fnr where fpr <= 5%", np.append(negatives, positives), np.repeat([0, 1], [n, 50]), confidence=0.95
        )
        assert point.rates["fpr"] * n == pytest.approx((negatives > negatives[k - 1]).sum())


def test_a_refused_precision_says_what_would_do():
    scores, labels = normal_world(np.random.default_rng(5), 60)
    says = r"not certified: .* \d+ flagged samples .* some .* times as many would do; they could certify precision >="
    with pytest.raises(TooFewSamples, match=says) as refused:
        sp.calibrate("maximize recall where precision >= 80%", scores, labels, confidence=0.95)
    assert 0.3 < float(str(refused.value).rpartition(">= ")[2].rstrip("%")) / 100 < 0.8
    with pytest.raises(TooFewSamples, match="there it is broken, so ask for less"):
        sp.calibrate("maximize recall where precision >= 80%", -scores, labels, confidence=0.95)


def test_a_precision_of_few_flagged_samples_is_certified_from_the_first_cut_with_enough():
    """Where the samples set aside know little, the walk starts where one of 22 flagged samples may be wrong."""
    assert needed(0.2, 0.95, wrong=1) == next(n for n in range(2, 99) if binom.cdf(1, n, 0.2) <= 0.05) == 22
    draw, broken, refused, methods = np.random.default_rng(0), 0, 0, set()
    for _ in range(100):
        scores, labels = normal_world(draw, 2000, share=0.05, shift=2.5)
        try:
            point = sp.calibrate("maximize recall where precision >= 80%", scores, labels, confidence=0.95)
        except TooFewSamples:
            refused += 1
            continue
        methods.add(point.certificate.method)
        broken += true_rates(point.threshold, 0.05, 2.5)["precision"] < 0.8
    assert broken <= 9
    assert "fixed-sequence test from the first cut with enough samples" in methods
    assert refused < 60


def test_a_walk_that_ends_within_a_tie_stops_before_it():
    scores = np.concatenate([2 + np.arange(40) / 40, np.zeros(400), -1 - np.arange(1560) / 1560])
    labels = np.concatenate([np.ones(40), np.repeat([1, 0], 200), np.zeros(1560)]).astype(int)
    order = np.random.default_rng(0).permutation(2000)
    point = sp.calibrate("maximize recall where precision >= 80%", scores[order], labels[order], confidence=0.95)
    assert point.certificate.method == "fixed-sequence test from the first cut with enough samples"
    assert 0 < point.threshold < 2
    counts = _one_by_one(read_sample_of(scores, labels))
    assert counts[40].tolist() == [40, 0, 200, 1760]
    assert 80 < counts[240, 0] - 40 < 120, "tied samples must stand in a random order"


def test_a_walk_ships_the_threshold_that_samples_set_aside_chose_or_one_beyond_it():
    """Any other threshold between the same two samples may break the bound although the chosen one does not."""
    cuts = curve(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]))
    found = Certified(cuts, np.array([1, 2]), "", (1, torch.tensor([2.25])))
    assert found.thresholds(torch.tensor([1, 2])).tolist() == [2.25, 1.5]
    draw = np.random.default_rng(1)
    scores, labels = normal_world(draw, 3000)
    found = certified_cuts(sp.ask("minimize error where accuracy >= 70%"), read_sample_of(scores, labels), 0.95)
    assert found.start is not None
    assert int((found.cuts.values > found.start[1]).sum()) == found.start[0]


def read_sample_of(scores, labels):
    return Sample(torch.tensor(scores), torch.tensor(labels))


@pytest.mark.parametrize("ask", ["minimize fnr where fpr <= 1%", "maximize tnr where recall >= 99%"])
def test_the_strictest_bound_that_is_named_can_be_had(ask):
    scores, labels = np.linspace(0, 1, 80), np.arange(80) % 2
    with pytest.raises(TooFewSamples) as refused:
        sp.calibrate(ask, scores, labels, confidence=0.95)
    could = str(refused.value).rpartition("could certify ")[2]
    head = ask.partition("where ")[0]
    assert sp.calibrate(f"{head} where {could}", scores, labels, confidence=0.95).certificate.statement == could
    name, relation, share = could.split()
    stricter = float(share.rstrip("%")) + (-0.02 if relation == "<=" else 0.02)
    with pytest.raises(TooFewSamples):
        sp.calibrate(f"{head} where {name} {relation} {stricter:.4f}%", scores, labels, confidence=0.95)


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        ("maximize f1", "f_score(1)"),
        ("maximize mcc", "mcc"),
        ("maximize precision over recall in [50%, 100%]", "precision over recall"),
        ("maximize recall where f1 >= 0.5", "f_score(1)"),
    ],
)
def test_what_cannot_be_certified_is_estimated_and_called_so(ask, name):
    scores, labels = normal_world(np.random.default_rng(0), 500)
    point = sp.calibrate(ask, scores, labels, confidence=0.9)
    assert point.certificate is None
    estimate = {e.quantity: e for e in point.estimates}[name]
    assert estimate.low < estimate.value < estimate.high
    assert "not a certificate" in str(estimate)
    assert sp.OperatingPoint.from_dict(point.to_dict()) == point


@slow
def test_the_interval_of_a_score_covers_the_truth_about_as_often_as_it_says():
    draw, covered = np.random.default_rng(0), 0
    truth = sp.evaluate("maximize f1", *normal_world(np.random.default_rng(99), 400_000)).objective
    for _ in range(200):
        point = sp.calibrate("maximize f1", *normal_world(draw, 800), confidence=0.9)
        covered += point.estimates[0].low <= truth <= point.estimates[0].high
    assert 0.8 <= covered / 200 <= 0.98


@slow
@pytest.mark.parametrize("exponent", [None, 1.2], ids=["equal weights", "Pareto weights"])
def test_the_interval_covers_what_the_chosen_threshold_brings_whatever_the_weights(exponent):
    """The truth is that of the threshold that was set. Draws of weight one cover 39 % with such weights."""
    draw, covered = np.random.default_rng(4), 0
    for _ in range(150):
        scores, labels = normal_world(draw, 400)
        weights = None if exponent is None else draw.pareto(exponent, 400) + 1
        point = sp.calibrate("maximize f1", scores, labels, weights=weights, confidence=0.9)
        rates = true_rates(point.threshold)
        truth = 2 * rates["precision"] * rates["recall"] / (rates["precision"] + rates["recall"])
        covered += point.estimates[0].low <= truth <= point.estimates[0].high
    assert covered / 150 >= 0.83


def test_the_interval_of_a_share_is_near_the_exact_one_and_never_a_point():
    labels, scores = np.repeat([0, 1], 200), np.append(np.zeros(200), np.linspace(1, 2, 200))
    for flagged in (60, 120, 200):
        scores[200:] = np.where(np.arange(200) < flagged, 1.0, -1.0)
        own = sp.calibrate("minimize fnr where fpr <= 5%", scores, labels, confidence=0.9).estimates[0]
        exact = binomtest(200 - flagged, 200).proportion_ci(0.9)
        assert (own.low, own.high) == (pytest.approx(exact.low, abs=0.015), pytest.approx(exact.high, abs=0.015))
        assert own.low < own.high


def test_an_estimate_says_what_unequal_weights_are_worth():
    scores, labels = normal_world(np.random.default_rng(0), 400)
    weights = np.where(np.arange(400) < 10, 1000.0, 1.0)
    plain, weighted = (sp.calibrate("maximize f1", scores, labels, weights=w, confidence=0.9) for w in (None, weights))
    assert "weights that are worth 10.8 equal ones of 400" in str(weighted.estimates[0])
    assert "worth" not in str(plain.estimates[0])
    widths = [point.estimates[0].high - point.estimates[0].low for point in (plain, weighted)]
    assert widths[1] > 3 * widths[0]


@pytest.mark.parametrize("ask", ["maximize f1", "maximize mcc", "minimize error where f1 >= 0.5"])
def test_a_weight_scales_out_of_an_interval_and_rows_of_weight_zero_count_for_nothing(ask):
    scores, labels = normal_world(np.random.default_rng(0), 300)
    weights = np.random.default_rng(1).uniform(0.5, 2, 300)
    first = sp.calibrate(ask, scores, labels, weights=weights, confidence=0.9).estimates
    scaled = sp.calibrate(ask, scores, labels, weights=1e6 * weights, confidence=0.9).estimates
    padded = sp.calibrate(
        ask, np.append(scores, [9.0] * 50), np.append(labels, [0] * 50), confidence=0.9,
        weights=np.append(weights, np.zeros(50)),
    ).estimates  # fmt: skip
    for other in (scaled, padded):
        assert [(e.low, e.value, e.high) for e in other] == [
            pytest.approx((e.low, e.value, e.high), rel=1e-6) for e in first
        ]
