"""A peer is asked through files, answers through files, and a failure is reported as one."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.common.data import Split
from benchmarks.common.harness import Journal, without_folders
from benchmarks.peers import best_f_score, error_at_gap, fnr_at_fpr, page
from benchmarks.peers.__main__ import CONTESTS
from benchmarks.peers.contest import Case, ask
from benchmarks.peers.exchange import BATCH, Task, pace
from benchmarks.peers.judging import Flags, judge_flags, judge_scores
from benchmarks.peers.summing import row, summary

import setpoint as sp

AT_FPR, AT_GAP, BEST_F = fnr_at_fpr.CONTEST, error_at_gap.CONTEST, best_f_score.CONTEST


@pytest.fixture(scope="module")
def case() -> Case:
    """Three features, and two groups, of which the second has the lower ones."""
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(1200) % 3 == 0).double()
    groups = (torch.rand(1200, generator=draw) < 0.4).long()
    x = torch.randn(1200, 3, generator=draw, dtype=torch.float64) + 2 * labels.unsqueeze(-1) - groups.unsqueeze(-1)
    train, validation, test = torch.arange(1200).split(400)
    parts = Split(*((x[rows], labels[rows]) for rows in (train, validation, test)))
    return Case(parts, (groups[train], groups[validation], groups[test]))


@pytest.fixture(scope="module")
def tasks(case, tmp_path_factory):
    """A small task of each contest, by name."""
    found = {}
    for contest in CONTESTS.values():
        found[contest.name] = tmp_path_factory.mktemp("peer") / "task.npz"
        contest.small().write_task(case, found[contest.name])
    return found


def test_the_pace_is_that_of_an_adam_whose_correction_stands_still():
    target, by_hand = torch.tensor([3.0, -1.0, 0.2], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    mean, square = torch.zeros_like(by_hand), torch.zeros_like(by_hand)
    paced = by_hand.clone().requires_grad_()
    optimizer = torch.optim.Adam([paced], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, pace)
    for _ in range(40):
        slope = by_hand - target
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        by_hand = by_hand - 0.1 * (0.001**0.5 / 0.1) * mean / (square.sqrt() + 1e-8)
        optimizer.zero_grad()
        (0.5 * (paced - target) ** 2).sum().backward()
        optimizer.step()
        schedule.step()
    torch.testing.assert_close(paced.detach(), by_hand, rtol=1e-5, atol=0)


def test_our_lagrangian_learns_what_its_formula_says_at_that_pace(case, tmp_path):
    short = tmp_path / "task.npz"
    replace(AT_FPR, budget={"steps": 25, "look_every": 25}).write_task(case, short)
    answered = ask(AT_FPR.methods[AT_FPR.ours], short, "nowhere")
    with np.load(short) as task, np.load(answered) as found:
        (x, labels), bound = case.parts.train, float(task["bound"])
        theta, price = torch.tensor(task["start"], requires_grad=True), 0.0
        optimizer = torch.optim.Adam([theta], lr=0.1)
        for step in range(25):
            optimizer.param_groups[0]["lr"] = 0.1 * pace(step)
            scores = x @ theta[:-1] + theta[-1]
            missed, false = scores[labels == 1], scores[labels == 0]
            loss = torch.sigmoid(-missed).mean() + price * torch.sigmoid(false).mean()
            price = max(0.0, price + 10 * (float((false > 0).double().mean()) - bound))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        place = found["names"].tolist().index("sigmoid, 0.1, 10, step 25")
        by_formula = case.parts.test[0] @ theta.detach()[:-1] + theta.detach()[-1]
        np.testing.assert_allclose(found["test"][place], by_formula.numpy(), atol=1e-4)


def test_a_method_runs_in_a_process_of_its_own_and_is_judged(case, tasks):
    found = AT_FPR.run("setpoint, default", tasks[AT_FPR.name], case, "nowhere")
    model = torch.nn.Linear(3, 1).double()
    sp.fit(model, AT_FPR.problem, [case.parts.train], [case.parts.validation])
    with torch.no_grad():
        scores = model(case.parts.test[0]).squeeze(-1)
    assert found["test"] == pytest.approx(sp.evaluate(AT_FPR.problem, scores, case.parts.test[1]).objective)
    assert found["peak megabytes"] > 50
    assert found["version"] == sp.__version__


def test_of_several_candidates_the_best_on_validation_rows_is_judged(case):
    good = [(part[0] @ torch.ones(3, dtype=torch.float64)).numpy() for part in (case.parts.validation, case.parts.test)]
    candidates = [np.stack([-scores, scores, scores * np.nan]) for scores in good]
    names = np.array(["upside down", "good", "diverged"])
    found = judge_scores(AT_FPR.problem, case, names, *candidates)
    assert found["chosen"] == "good"
    assert found["fpr"] < 0.05
    assert judge_scores(BEST_F.problem, case, names, *candidates)["chosen"] == "good"


def test_a_peer_without_an_environment_is_named(case, tasks):
    for contest, method, name in ((AT_FPR, "TFCO", "tfco"), (AT_GAP, "fairlearn, GridSearch", "fairlearn")):
        found = contest.run(method, tasks[contest.name], case, "nowhere")
        assert found == {"error": f"no environment: python -m benchmarks.peers.environments {name}"}


def test_a_peer_that_fails_is_reported_with_the_last_line_of_its_error(case, tmp_path):
    broken = tmp_path / "task.npz"
    np.savez(broken, x_train=np.zeros(1))
    found = AT_FPR.run("LightGBM", broken, case, "nowhere")
    assert "y_train" in found["error"]


def test_what_is_written_down_is_not_run_again_and_contests_do_not_share_it():
    written = Journal("peers").rows
    first = {
        AT_FPR.key(name, seed, method) for name in AT_FPR.sets for seed in AT_FPR.seeds for method in AT_FPR.methods
    }
    assert first <= set(written)
    keys = [contest.key("letter", 0, method) for contest in CONTESTS.values() for method in contest.methods]
    assert len(keys) == len(set(keys))


def test_a_small_contest_has_one_split_and_ours_to_compare_with():
    for contest in CONTESTS.values():
        small = contest.small()
        assert (len(small.sets), len(small.seeds)) == (1, 1)
        assert small.ours in small.methods
        assert any(method.environment for method in small.methods.values())
    assert AT_GAP.small().budget["steps"] < AT_GAP.budget["steps"]


def test_groups_stay_with_their_rows(tmp_path):
    draw = np.random.default_rng(0)
    sex, y = draw.choice(["woman", "man"], 500), draw.integers(0, 2, 500)
    np.savez(tmp_path / "people.npz", X=np.stack([sex == "woman", draw.random(500)], 1), y=y, sex=sex)
    case = error_at_gap.load("people", 3, str(tmp_path), "nowhere")
    for (x, _), groups in zip((case.parts.train, case.parts.validation, case.parts.test), case.groups):
        assert torch.equal(groups, (x[:, 0] > 0).long())


def test_flags_are_judged_as_an_operating_point_is(case):
    scores, labels, groups = case.parts.test[0].sum(1), case.parts.test[1], case.groups[2]
    point = sp.evaluate(AT_GAP.problem, scores, labels, groups=groups)
    found = Flags.of(AT_GAP.problem, point.predict(scores, groups).numpy(), labels, groups)
    assert found.objective == pytest.approx(point.objective)
    assert found.gap == pytest.approx(point.rates["recall.gap(sex)"])
    assert found.feasible
    assert not Flags.of(AT_GAP.problem, (scores > 1).numpy(), labels, groups).feasible


def test_chances_are_judged_by_what_is_expected_of_their_draws(case):
    labels, groups = case.parts.test[1], case.groups[2]
    draw = np.random.default_rng(0)
    chances = np.where(groups == 0, 0.7, 0.4)
    drawn = [Flags.of(AT_GAP.problem, draw.random(400) < chances, labels, groups) for _ in range(400)]
    expected = Flags.of(AT_GAP.problem, chances, labels, groups)
    assert expected.objective == pytest.approx(np.mean([one.objective for one in drawn]), abs=0.005)
    assert expected.gap == pytest.approx(0.3)
    assert expected.noise == pytest.approx(np.std([one.gap for one in drawn]), rel=0.15)


def test_flags_that_keep_the_bound_go_before_better_ones_that_break_it(case):
    truth = [case.parts.validation[1].numpy(), case.parts.test[1].numpy()]
    groups = [own.numpy() for own in case.groups[1:]]
    one_group_only = [own * (of == 0) for own, of in zip(truth, groups)]
    half = [np.full(400, 0.5)] * 2
    candidates = [np.stack(pair) for pair in zip(one_group_only, half)]
    found = judge_flags(AT_GAP.problem, case, np.array(["better", "fair"]), *candidates)
    assert found["chosen"] == "fair"
    assert found["held"] == 1
    assert found["test"] == pytest.approx(0.5)
    assert found["gap"] == pytest.approx(0)
    assert found["test, one draw"] != found["test"]
    found = judge_flags(AT_GAP.problem, case, np.array(["none"]), *(own[:1] for own in candidates))
    assert found["held"] == 0
    assert found["gap"] == pytest.approx(1)


@pytest.mark.parametrize("method", ["cross-entropy, group thresholds", "setpoint, Lagrangian"])
def test_thresholds_a_group_keep_the_gap_on_validation_rows(case, tasks, method):
    found = AT_GAP.run(method, tasks[AT_GAP.name], case, "nowhere")
    assert found["gap on validation"] <= 0.02
    assert found["on validation"] < 0.2
    assert found["candidates"] == (9 if "Lagrangian" in method else 1)


def test_one_threshold_minds_no_gap(case, tasks):
    found = AT_GAP.run("cross-entropy, one threshold", tasks[AT_GAP.name], case, "nowhere")
    assert found["gap on validation"] > 0.1


def test_the_program_is_trained_on_the_batches_that_all_take(case, tasks, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", str(tasks[BEST_F.name])])
    first, second = (list(Task().batches()) for _ in range(2))
    assert len(first) == 25
    assert all(np.array_equal(a, b) and len(a) == BATCH for a, b in zip(first, second))
    found = BEST_F.run("setpoint, the program in closed form", tasks[BEST_F.name], case, "nowhere")
    assert found["candidates"] == 1 + 9
    assert found["test"] > 0.8


def test_a_batch_without_a_positive_is_drawn_again(case, tmp_path, monkeypatch):
    x, labels = case.parts.train
    rare = torch.zeros_like(labels)
    rare[7] = 1
    path = tmp_path / "task.npz"
    BEST_F.write_task(replace(case, parts=replace(case.parts, train=(x, rare))), path)
    monkeypatch.setattr(sys, "argv", ["", str(path)])
    assert all(7 in rows for rows in Task().batches())


def told(test: float, gap: float = 0.01) -> dict:
    judged = dict.fromkeys(AT_GAP.averaged, 0.0) | {"test": test, "gap": gap, "test, one draw": test, "held": 0.6}
    judged |= {"gap, one draw": gap, "noise of the gap": 0.05, "at threshold": test}
    return judged | {"version": "1", "seconds": 2.0, "peak megabytes": 9.0, "candidates": 3, "note": ""}


def test_ours_is_better_by_less_error_and_by_more_f_score():
    ours, its = [told(0.2), told(0.3)], [told(0.3), told(0.5)]
    assert row(AT_GAP, its, ours)["better by"]["test"]["mean"] == pytest.approx(0.15)
    assert row(BEST_F, its, ours)["better by"]["test"]["mean"] == pytest.approx(-0.15)
    assert "better by" not in row(AT_GAP, ours, ours)
    assert row(AT_GAP, [*its, {"error": "no environment"}], ours)["error"] == "no environment"


def test_the_page_tells_of_each_contest_what_held_and_what_did_not_run():
    contests = {}
    for title, contest in CONTESTS.items():
        journal = {contest.key("letter", s, m): told(0.2 + s, 0.01 * s) for s in range(5) for m in contest.methods}
        if contest is AT_GAP:
            drawing = "fairlearn, ExponentiatedGradient"
            journal |= {contest.key("letter", s, drawing): told(0.2) | {"gap, one draw": 0.5} for s in range(5)}
            journal[contest.key("letter", 1, "fairlearn, GridSearch")] = {"error": "it broke"}
        if contest is AT_FPR:
            journal = {key: one | {"fpr": 0.01} for key, one in journal.items()}
        contests[title] = summary(replace(contest, sets=("letter", "not done"), seeds=range(5)), journal)
    lines = page.section({"contests": contests}).splitlines()
    assert sum(line.startswith("| letter") for line in lines) == sum(len(c.methods) for c in CONTESTS.values())
    assert not any("not done" in line for line in lines)
    brief, broken = (line for line in lines if "GridSearch |" in line)
    assert "| did not run |" in brief
    assert "did not run | `it broke`" in broken
    _, drawn = (line for line in lines if "ExponentiatedGradient |" in line)
    assert "3 of 5" in drawn
    assert "20.00, 50.00" in drawn
    (noise,) = (line for line in lines if line.startswith("A bound of 2 %"))
    assert "5.0 points" in noise
    assert "31 %" in noise
    assert "22 %" in noise


def test_a_command_is_told_without_the_folders_of_the_machine():
    given = ["--data", "/some/where", "--quick", "--cache", "/else", "--splits", "3"]
    assert without_folders(given) == ["--quick", "--splits", "3"]
