"""The studies on images: what could be wrong without showing."""

from __future__ import annotations

import copy

import pytest
import torch
from benchmarks import critical_class, long_tailed, paper_programs, program_verdicts
from benchmarks.critical_verdicts import ALONE, CONSTRAINED, STARTS, tuned_rows
from benchmarks.harness import Journal
from benchmarks.image_nets import five_convolutions
from benchmarks.pages import gains
from benchmarks.published_critical import COLUMNS
from benchmarks.small_images import Images, Plan, channels_last, scores_of, shuffled, train, with_mirrored
from sklearn.metrics import f1_score

import setpoint as sp
from setpoint.measure.area import roc_area
from setpoint.solve.augmented import AugmentedLagrangian


def images(n: int, classes: int = 2, seed: int = 0) -> Images:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % classes
    pixels = torch.randint(0, 200, (n, 3, 32, 32), generator=draw) + 50 * (labels == 0).view(-1, 1, 1, 1)
    return Images(pixels.to(torch.uint8), labels)


def binary(n: int, seed: int = 0) -> Images:
    made = images(n, 5, seed)
    return Images(made.x, (made.labels == 0).float())


def test_the_error_is_that_of_the_best_threshold_which_lets_enough_pass():
    draw = torch.Generator().manual_seed(3)
    labels = torch.arange(300) % 10
    scores = torch.randn(300, 10, generator=draw) + 2 * torch.eye(10)[labels]
    for tpr in (0.8, 0.9, 1.0):
        errors = []
        for threshold in torch.linspace(-6, 6, 5001).tolist():
            called = scores[:, :9].argmax(1)
            called[scores[:, 9] > threshold] = 9
            if (called[labels == 9] == 9).double().mean() >= tpr - 1e-9:
                errors.append(float((called != labels)[labels != 9].double().mean()))
        assert long_tailed.error_at(scores, labels, tpr, scores[:, 9]) == pytest.approx(min(errors))


def test_a_number_added_to_all_logits_of_an_image_moves_the_error_by_logit_only():
    draw = torch.Generator().manual_seed(4)
    labels = torch.arange(500) % 10
    scores = torch.randn(500, 10, generator=draw) + 2 * torch.eye(10)[labels]
    shifted = scores + 5 * torch.randn(500, 1, generator=draw)
    before, after = (long_tailed.figures(s, labels) for s in (scores, shifted))
    column = long_tailed.LONG_TAILED_COLUMNS[0]
    assert after[column] > before[column] + 0.05
    assert after[column + long_tailed.BY_PROBABILITY] == before[column + long_tailed.BY_PROBABILITY]


def test_the_long_tail_is_that_of_the_literature():
    assert long_tailed.class_counts(100, 5000) == [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]


def test_held_out_images_are_not_trained_on():
    whole = Images(torch.arange(1000).view(-1, 1), torch.arange(1000) % 10)
    parts = long_tailed.draw(whole, [40, 30, 20, 10, 5, 5, 5, 5, 5, 5], seed=1)
    train_rows, held_out = (set(part.x.flatten().tolist()) for part in parts)
    assert not train_rows & held_out
    assert parts[0].labels.bincount().tolist() == [40, 30, 20, 10, 5, 5, 5, 5, 5, 5]
    assert parts[1].labels.bincount().tolist() == [50] * 10
    pair = Images(torch.arange(1200).view(-1, 1), (torch.arange(1200) % 2).float())
    drawn, validation = critical_class.draw(pair, seed=2, ratio=100)
    assert not set(drawn.x.flatten().tolist()) & set(validation.x.flatten().tolist())
    assert drawn.labels.long().bincount().tolist() == [500, 5]


@pytest.mark.parametrize(("table", "level", "sizes"), [("halves", 91, [6, 60]), ("groups", 90, [4, 4, 40])])
def test_the_tables_drop_what_the_paper_drops(monkeypatch, table, level, sizes):
    whole = Images(torch.arange(6000).view(-1, 1), torch.arange(6000) % 10)
    monkeypatch.setattr(paper_programs, "cifar10", lambda data: (whole, whole))
    task = paper_programs.Task(table, level, {})
    drawn, held_out, test = task.parts("", 0, 60)
    assert drawn.labels.long().bincount().tolist() == sizes
    assert not set(drawn.x.flatten().tolist()) & set(held_out.x.flatten().tolist())
    classes = test.x.flatten() % 10
    expected = (classes >= 3).long() + (classes >= 6) if table == "groups" else classes < 5
    assert torch.equal(test.labels.long(), expected.long())


def test_rows_of_a_class_are_all_there_and_drawn_by_seed():
    classes = torch.arange(50) % 3
    first, again, other = shuffled(classes, 1), shuffled(classes, 1), shuffled(classes, 2)
    assert torch.equal(first[2].sort().values, (classes == 2).nonzero().squeeze(1))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])


def test_mirror_images_come_after_the_images():
    x = images(4).x
    both = with_mirrored(x).permute(0, 3, 1, 2)
    torch.testing.assert_close(both[4:], both[:4].flip(-1))
    torch.testing.assert_close(both[:4] * 64 + 127.5, x.float())


@pytest.mark.parametrize("moved", [0, 2])
def test_a_batch_is_moved_as_one_by_no_more_than_the_plan_says(moved):
    data, seen = binary(12), []

    class Watched(torch.nn.Linear):
        def forward(self, x):
            if self.training:
                seen.append(x)
            return super().forward(x.flatten(1))

    plan = Plan(epochs=9, batch=12, moved=moved)
    train(Watched(3 * 32 * 32, 1), data, data.x, sp.CrossEntropy(), lambda scores: float(scores[0]), plan, seed=0)
    framed = torch.nn.functional.pad(channels_last(data.x), [moved] * 4, mode="reflect")
    places = set()
    for batch in seen:
        found = {
            (down, right) for down in range(2 * moved + 1) for right in range(2 * moved + 1)
            if all(
                any(torch.equal(one, own) for own in framed[:, :, down : down + 32, right : right + 32])
                or any(torch.equal(one, own) for own in framed.flip(-1)[:, :, down : down + 32, right : right + 32])
                for one in batch
            )
        }  # fmt: skip
        assert len(found) == 1
        places |= found
    assert (len(places) > 1) == (moved > 0)


def test_the_epoch_that_was_judged_best_is_kept():
    torch.manual_seed(0)
    net, seen, told = five_convolutions(2), [], iter([0.3, 0.9, 0.9, 0.1])

    def judge(scores):
        seen.append((copy.deepcopy(net.state_dict()), scores))
        return next(told)

    data = binary(40)
    assert train(net, data, data.x, sp.CrossEntropy(), judge, Plan(epochs=4, batch=20), seed=0) == 0.9
    assert all(torch.equal(value, seen[1][0][name]) for name, value in net.state_dict().items())
    torch.testing.assert_close(scores_of(net, data.x), seen[1][1])


def test_a_run_learns_and_prices_only_its_positives():
    data = binary(200)
    torch.manual_seed(0)
    net = five_convolutions(4)
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=200, mu=1e-3)

    def judge(scores):
        return float(roc_area(scores, data.labels))

    assert train(net, data, data.x, solver, judge, Plan(epochs=4, batch=50, rate=1e-3, moved=0), seed=0) > 0.9
    assert float((solver.prices[data.labels > 0] > 0).double().mean()) > 0.5
    assert not bool(solver.prices[data.labels == 0].any())


def test_the_f_score_is_that_of_scikit_learn():
    draw = torch.Generator().manual_seed(5)
    scores, labels = torch.randn(400, generator=draw), (torch.arange(400) % 3 == 0).float()
    for threshold in (-1.0, 0.0, 0.7):
        expected = f1_score(labels.numpy(), (scores > threshold).numpy())
        assert paper_programs.at_threshold(scores, labels, threshold) == pytest.approx(expected)
    assert paper_programs.at_threshold(scores, labels, 99.0) == 0


def program_run(method, setting, seed, validation, area):
    return {"table": "halves", "level": 91, "method": method, "setting": setting, "seed": seed,
            "validation": validation, "AUC": area, "images": 100, "seconds": 1.0}  # fmt: skip


def test_a_class_weight_is_chosen_on_held_out_images_and_none_is_a_choice():
    rows = []
    for seed, (none, half, whole) in enumerate([(0.6, 0.7, 0.5), (0.6, 0.5, 0.4)]):
        rows.append(program_run("cross-entropy", "", seed, none, 0.61))
        rows.append(program_run("weighted cross-entropy", "power 0.5", seed, half, 0.55))
        rows.append(program_run("weighted cross-entropy", "power 1", seed, whole, 0.99))
    plain, weighted = program_verdicts.summary(rows)
    assert weighted["settings"] == ["power 0.5", ""]
    assert weighted["value"]["mean"] == pytest.approx((55 + 61) / 2)
    assert weighted["minus cross-entropy"]["mean"] == pytest.approx((-6 + 0) / 2)
    assert plain["published"]["value"] == 65.2


def test_a_rate_is_chosen_on_held_out_images_among_what_ran_at_every_rate():
    rows = []
    for pace, validation, area in ((0.25, 0.5, 0.9), (1.0, 0.6, 0.7), (4.0, 0.7, 0.8)):
        rows.append({**program_run("cross-entropy", "", 0, validation, area), "pace": pace})
    rows.append(program_run("hinge, margin 1", "", 0, 0.9, 0.9))
    (plain,) = program_verdicts.summary(program_verdicts.at_every_pace(rows, 3))
    assert plain["paces"] == [4.0]
    assert plain["value"]["mean"] == pytest.approx(80)


def test_a_run_at_another_rate_is_another_run(monkeypatch, tmp_path):
    whole = images(2000, 10)
    rates = []
    monkeypatch.setattr(paper_programs, "cifar10", lambda data: (whole, whole))
    monkeypatch.setattr(paper_programs, "train", lambda *given: rates.append(given[5].rate) or 0.5)
    monkeypatch.setattr("benchmarks.harness.results_folder", lambda quick: tmp_path)
    task, journal = paper_programs.Task("halves", 50, paper_programs.PLAIN), Journal("paper_programs")
    for pace in (1.0, 4.0, 4.0):
        list(paper_programs.runs(task, 0, Plan(width=2, rate=0.01), 20, journal, "", pace))
    assert rates == [0.01, 0.04]
    assert [row["pace"] for row in journal.rows.values()] == [1.0, 4.0]


def critical_run(way, setting, seed, validation, figure):
    figures = dict.fromkeys(COLUMNS, figure)
    told = {"ratio": 100, "loss": "BCE", "way": way, "setting": setting, "seed": seed, "validation AUC": validation}
    return {**told, **figures, "images": 5000, "seconds": 1.0}


def test_settings_and_starts_are_chosen_on_validation_rows_and_paired_by_seed():
    rows = []
    for seed in (0, 1):
        rows.append(critical_run(ALONE, "", seed, 80, 70 + seed))
        rows.append(critical_run(CONSTRAINED, "a", seed, 81 + seed, 60))
        rows.append(critical_run(CONSTRAINED, "b", seed, 82 - seed, 10))
        rows.append(critical_run(STARTS, "start 1", seed, 79 + 2 * seed, 50))
    alone, constrained, starts = tuned_rows(rows)
    assert alone["AUC"]["minus alone"]["mean"] == 0
    assert constrained["settings"] == ["b", "a"]
    assert constrained["AUC"]["minus alone"]["mean"] == pytest.approx(((10 - 70) + (60 - 71)) / 2)
    assert starts["settings"] == ["", "start 1"]
    assert starts["choices"] == 2
    assert starts["deviation over starts"] == pytest.approx(((20**2 / 2 + 21**2 / 2) / 2) ** 0.5)
    assert constrained["AUC"]["published minus alone"] == pytest.approx(93.1 - 91.2)


def test_ratios_are_to_cross_entropy_of_the_same_run_and_of_the_paper():
    plain, other = ({"AUC": {"mean": mean, "published": told}} for mean, told in ((80.0, 90.0), (60.0, 99.0)))
    unpublished = {"AUC": {"mean": 84.0}}
    shown = gains.ratios(["loss"], [(["one"], other, plain), (["two"], unpublished, plain)], ("AUC",)).splitlines()
    assert shown[2] == "| loss | AUC | AUC, published |"
    assert shown[4:] == ["| one | 0.750 | 1.100 |", "| two | 1.050 |  |"]
