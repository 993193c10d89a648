"""The implicit-thresholds paper as published on Fashion-MNIST: what could be wrong without showing."""

from __future__ import annotations

import itertools
import re

import pytest
import torch
from benchmarks.common.data import Parts
from benchmarks.studies.paper_fashion import page, page_changes, training
from benchmarks.studies.paper_fashion import study as fashion
from torch import nn

import setpoint as sp

FNR, AREA = "minimize fnr where fpr <= 10%", "maximize recall over fpr in [0%, 20%] with 10 points"


class Rows(dict):
    """Finished rows, as a journal has them."""

    @property
    def rows(self):
        return self


@pytest.fixture
def parts():
    draw = torch.Generator().manual_seed(0)
    rows = 6 * training.BATCH
    x = torch.cat([torch.arange(rows).float().view(-1, 1), torch.randn(rows, 3, generator=draw)], 1)
    part = x / x.std(0), (x[:, 1] + torch.randn(rows, generator=draw) > 1).float()
    return Parts(part, part, part, part)


def row(ask, method, setting, seed, validation, test, **more):
    told = {"ask": ask, "method": method, "setting": setting, "seed": seed, "validation": validation, "test": test}
    return fashion.key(ask, method, setting, seed), {**told, "seconds": 1.0, **more}


def test_the_first_of_equally_good_states_is_kept_and_the_sign_is_that_of_the_ask():
    labels, good, bad = (
        torch.tensor([1.0, 1, 0, 0, 0]),
        torch.tensor([5.0, 4, 1, 2, 3]),
        torch.tensor([1.0, 2, 3, 4, 5]),
    )
    for ask in (FNR, AREA):
        best, nets = training.Best(ask), [nn.Linear(1, 1) for _ in range(3)]
        for step, (net, scores) in enumerate(zip(nets, (bad, good, good)), 1):
            best.look(step, net, scores, labels)
        assert best.step == 2
        assert torch.equal(best.net.weight, nets[1].weight)


def test_settings_are_chosen_on_held_out_rows_and_the_weight_of_one_is_plain_cross_entropy():
    of_area, of_fnr = next(iter(fashion.AREAS)), next(iter(fashion.FNR_ASKS))
    rows = Rows(
        row(ask, method, setting, 20, validation, validation)
        for ask in (of_area, of_fnr)
        for method, setting, validation in ((fashion.TUNED, "0.25", 0.5), (fashion.TUNED, "1", 0.4),
                                            (fashion.PUBLISHED, "0.1", 0.3), (fashion.PUBLISHED, "1", 0.2))
    )  # fmt: skip
    found = {ask: fashion.chosen(rows, ask, 20) for ask in (of_area, of_fnr)}
    assert [found[of_area][name]["setting"] for name in (fashion.PLAIN, fashion.TUNED, fashion.PUBLISHED)] == [
        "1", "0.25", "0.1",
    ]  # fmt: skip
    assert [found[of_fnr][name]["setting"] for name in (fashion.PLAIN, fashion.TUNED, fashion.PUBLISHED)] == [
        "1", "1", "1",
    ]  # fmt: skip


def test_gains_are_positive_where_a_method_is_better_for_fnr_and_for_areas():
    of_area, of_fnr = next(iter(fashion.AREAS)), next(iter(fashion.FNR_ASKS))
    rows = Rows()
    for ask, value in ((of_area, 0.9), (of_fnr, 0.1)):
        more = {} if ask == of_area else {"fpr": 0.01}
        for seed, (method, setting, test) in itertools.product((20, 21), (
            (fashion.TUNED, "1", 0.5), (fashion.LONGER, "", 0.5), (fashion.OURS, "", value),
        )):  # fmt: skip
            shipped = {} if ask == of_area else {"at threshold": test}
            rows |= [row(ask, method, setting, seed, test, test, **more, **shipped)]
    ours = [one for one in fashion.summary(rows, [of_area, of_fnr], [20, 21]) if one["method"] == fashion.OURS]
    assert [one["gain"][fashion.PLAIN]["mean"] for one in ours] == [pytest.approx(0.4)] * 2
    assert ours[1]["shipped gain"][fashion.LONGER]["mean"] == pytest.approx(0.4)
    assert "shipped gain" not in ours[0]


def test_a_correction_looks_at_the_batches_to_come_and_training_sees_all_of_them_once(parts):
    seen, corrected = [], []

    class Watched(sp.ImplicitThreshold):
        def forward(self, scores, labels, **more):
            seen.append(labels.clone())
            return super().forward(scores, labels, **more)

        def correct(self, scores, labels, **more):
            corrected.append((len(seen), labels.clone()))
            super().correct(scores, labels, **more)

    def make(net, optimizer):
        return Watched(sp.ask(FNR), temperature=1.0, memory=0, correction=sp.losses.Correction(every=4, batches=2))

    training.train(parts, 5, training.Plan(steps=9, look=3), make, [FNR])
    expected = [parts.train[1][rows] for rows in itertools.islice(training.batches(len(parts.train[1]), 5), 9)]
    assert all(torch.equal(one, other) for one, other in zip(seen, expected, strict=True))
    assert [at for at, _ in corrected] == [0, 4, 8]
    assert torch.equal(corrected[1][1], torch.cat(expected[4:6]))


def test_thresholds_of_the_published_form_follow_the_model_between_corrections_and_those_of_areas_stay(parts):
    moved = {}
    for ask in (FNR, AREA):
        kept = []

        def make(net, optimizer, ask=ask, kept=kept):
            solver = training.as_published(sp.ask(ask), 1.0, training.Plan(every=1000))(net, optimizer)
            kept.append(solver)
            return solver

        before = []

        class Look(training.Best):
            def look(self, step, net, scores, labels, kept=kept, before=before):
                before.append(kept[0].thresholds.clone())
                super().look(step, net, scores, labels)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "Best", Look)
            training.train(parts, 5, training.Plan(steps=6, look=3), make, [ask])
        moved[ask] = not torch.equal(before[0], before[1])
    assert moved == {FNR: True, AREA: False}


def test_the_anchor_starts_as_cross_entropy_and_has_both_after_the_warm_steps():
    draw = torch.Generator().manual_seed(0)
    late, plain = training.AnchoredLate(sp.ask(FNR), 2), sp.CrossEntropy()
    losses = []
    for _ in range(3):
        scores = torch.randn(200, generator=draw)
        labels = (scores + torch.randn(200, generator=draw) > 1).float()
        losses.append(float(late(scores, labels) - plain(scores, labels)))
    assert losses[:2] == [0, 0]
    assert losses[2] > 0


def test_nine_times_the_steps_are_held_against_cross_entropy_of_as_many():
    ask = fashion.TIMED[1]
    methods = {fashion.LONGER: 0.8, fashion.PUBLISHED: 0.7, fashion.LONG: 0.85, fashion.LONGEST: 0.9}
    rows = Rows(row(ask, method, "", seed, test, test) for method, test in methods.items() for seed in (20, 21))
    rows |= dict(row(ask, fashion.TUNED, "1", seed, 0.75, 0.75) for seed in (20, 21))
    found = {one["method"]: one["gain"] for one in fashion.summary(rows, [ask], [20, 21])}
    assert found[fashion.LONG][fashion.LONGEST]["mean"] == pytest.approx(-0.05)
    assert fashion.LONGEST not in found[fashion.PUBLISHED]


def test_one_change_at_a_time_goes_from_the_published_form_to_the_anchored_one_and_names_the_largest():
    ask = fashion.TIMED[0]
    values = dict(zip((fashion.LONGER, *fashion.STEPWISE), (0.4, 0.9, 0.7, 0.65, 0.6, 0.35)))
    rows = Rows(row(ask, fashion.TUNED, "1", seed, 0.5, 0.5, fpr=0.0, **{"at threshold": 0.5}) for seed in (20, 21))
    for (method, test), seed in itertools.product(values.items(), (20, 21)):
        rows |= [row(ask, method, "1", seed, test, test, fpr=0.0, **{"at threshold": test})]
    figures = {"rows": fashion.summary(rows, [ask], [20, 21])}
    (told,) = page_changes.one_change_at_a_time(figures, area=False)
    gains = [float(found) for found in re.findall(r"([+-]\d+\.\d\d) ±", told)]
    assert gains == [-40, -20, -15, -10, 15]
    assert told.endswith("Worth most: cross-entropy kept beside it, +25.0 of +55.0 points.")
    assert page_changes.one_change_at_a_time(figures, area=True) == []
    figures["rows"] = [one for one in figures["rows"] if one["method"] != fashion.WARM_TENTH]
    assert page_changes.one_change_at_a_time(figures, area=False) == []


def test_the_published_form_is_corrected_as_often_as_its_name_says():
    plan = training.Plan()
    for ask in fashion.TIMED:
        plans = {method: plan for method, _, _, plan in fashion.published_ways(ask, plan)}
        for method in (fashion.TENTH, fashion.WARM_TENTH):
            made = training.as_published(sp.ask(ask), 1.0, plans[method])
            net = nn.Sequential(nn.Linear(2, 1))
            assert made(net, torch.optim.Adam(net.parameters())).correction.every == 10
        assert plans[fashion.WARM_TENTH].warm == plan.steps // 4
        assert plans[fashion.TENTH].warm == 0


def made_up(method, ask, mean):
    gain = {"mean": mean, "standard_error": 0.001, "corrected_standard_error": 0.001}
    return {"ask": ask, "method": method, "gain": dict.fromkeys(fashion.RIVALS, gain)}


def test_the_lines_of_the_figure_go_by_method_and_then_by_range():
    methods = (fashion.LONGER, fashion.PUBLISHED, fashion.PAIRS, fashion.ANCHORED)
    rows = [made_up(method, ask, 0.0) for ask in fashion.ORDER for method in methods]
    of_fnr, of_area = page.forest({"rows": rows})
    assert [line.label for line in of_fnr.lines[:5]] == [
        *(f"{fashion.PUBLISHED}, FPR {percent} %" for percent in (1, 2, 5, 10)), f"{fashion.ANCHORED}, FPR 1 %",
    ]  # fmt: skip
    assert [line.label for line in of_area.lines[-5:]] == [
        f"{fashion.LONGER}, 0 to {percent} %" for percent in (1, 2, 5, 10, 20)
    ]
    assert len(of_area.lines) == 15


@pytest.mark.parametrize(("last", "words"), [(0.02, "gain 2.0 points of FNR"), (-0.02, "lose 2.0 points of FNR")])
def test_the_answer_says_gain_or_loss_by_the_sign(last, words):
    ways = [(method, ask) for ask in fashion.TIMED for method in fashion.STEPWISE]
    rows = [made_up(method, ask, last) for method, ask in ways]
    assert words in page.answer({"rows": rows})
    assert page.answer({"rows": rows[:-1]}) == ""
