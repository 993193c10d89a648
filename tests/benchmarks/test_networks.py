"""The network study: nobody is scored by a net that saw the row, and choices are made on held-out rows."""

from __future__ import annotations

import argparse
import itertools
import math

import pytest
import torch
from benchmarks.common.harness import Journal
from benchmarks.studies.networks import bench as network_bench
from benchmarks.studies.networks import page
from benchmarks.studies.networks import study as networks
from benchmarks.studies.networks.bench import WEIGHTS, Bench, objective
from benchmarks.studies.networks.methods import BASELINES, METHODS, Joined, run_method
from benchmarks.studies.networks.nets import Parts, Shuffled, Trained, make_net, score, train, train_weighted
from benchmarks.studies.networks.study import ASKS, PHASES, Phase, judge, run, run_split
from benchmarks.studies.networks.verdict import summary
from torch import nn

import setpoint as sp

PROBLEM = sp.ask("minimize fnr where fpr <= 5%")


@pytest.fixture
def parts() -> Parts:
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(600) % 3 == 0).float()
    x = torch.randn(600, 4, generator=draw) + labels.unsqueeze(-1)
    return Parts(*((x[rows], labels[rows]) for rows in torch.arange(600).split(150)))


def test_what_confirms_was_not_tried_on():
    seeds = [{seed for _, seed in phase.plan()} for phase in PHASES.values()]
    assert not any(one & other for one, other in itertools.combinations(seeds, 2))
    assert all({*BASELINES} <= {*phase.methods} <= METHODS.keys() for phase in PHASES.values())


def test_only_methods_that_a_row_does_not_have_are_run(parts, monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(networks, "load_parts", lambda *given: parts)
    monkeypatch.setattr(networks, "run_split", lambda parts, seed, methods, epochs: ran.append((seed, methods)) or {
        ASKS[0]: {method: {"test": 0.5} for method in methods if method != "only at 0.1 %"}
    })  # fmt: skip
    monkeypatch.setattr("benchmarks.common.harness.RESULTS", tmp_path)
    options = argparse.Namespace(data="", cache="", quick=False)
    for methods in (("a", "only at 0.1 %"), ("a", "only at 0.1 %", "b"), ("b",)):
        phase = Phase("tried", 7, {"letter": 2, "pneumoniamnist": 1}, methods, left_out_for_images=("b",))
        run(phase, Journal("tried"), None, options)
    both = ("a", "only at 0.1 %")
    assert ran == [(7, both), (8, both), (7, both), (7, ("b",)), (8, ("b",))]
    row = Journal("tried")["letter | 8"]
    assert (set(row["asks"][ASKS[0]]), row["tried"]) == ({"a", "b"}, [*both, "b"])


class Remembers(nn.Module):
    """Passes the rows that it was trained on, and no others."""

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.unsqueeze(1) == self.rows).all(-1).any(1, keepdim=True).float()


def test_a_fold_is_scored_by_the_net_that_left_it_out(parts, monkeypatch):
    def memorise(own: Parts, weight: float, seed: int, epochs: int) -> Trained:
        net = Remembers(own.train[0])
        return Trained(net, net, 1.0, 1)

    monkeypatch.setattr(network_bench, "train_weighted", memorise)
    found = Bench(parts, 0).folds()
    assert found.held_out.tolist() == [0.0] * 150
    assert found.test.tolist() == [0.0] * 150
    assert found.seconds == 5.0
    # Yet four of the five have seen each of these rows.
    seen = [Remembers(net)(parts.held_out[0]).squeeze(-1) for net in fold_rows(parts)]
    torch.testing.assert_close(torch.stack(seen).sum(0), torch.full((150,), 4.0))


def fold_rows(parts: Parts) -> list[torch.Tensor]:
    x = torch.cat([parts.train[0], parts.held_out[0]])
    return [x[torch.arange(300) % 5 != fold] for fold in range(5)]


class Given(nn.Module):
    """One feature as the score."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, self.place : self.place + 1]


def test_the_weight_is_chosen_on_held_out_rows_and_ties_go_to_the_nearest_to_one(parts, monkeypatch):
    labels = parts.held_out[1]
    parts.held_out[0][:, 1] = labels
    parts.test[0][:, 1] = -parts.test[1]

    def place(own: Parts, weight: float, seed: int, epochs: int) -> Trained:
        # Two weights are perfect on held-out rows, and no good on test rows.
        net = Given(1 if weight in (4.0, 64.0) else 0)
        return Trained(net, net, weight, 1)

    monkeypatch.setattr(network_bench, "train_weighted", place)
    bench = Bench(parts, 0)
    weight, found = bench.best_weight(PROBLEM)
    assert weight == 4
    assert objective(PROBLEM, found.held_out, labels) == 0
    assert judge(PROBLEM, found, parts)["test"] == 1
    assert found.seconds == sum(WEIGHTS)
    assert sorted(WEIGHTS, key=lambda w: abs(math.log(w))) == list(WEIGHTS)


def test_joined_nets_start_as_the_mean_of_theirs(parts):
    nets = [make_net(parts, seed).eval() for seed in (0, 1, 2)]
    mean = torch.stack([score(net, parts.test[0]) for net in nets]).mean(0)
    torch.testing.assert_close(score(Joined(nets), parts.test[0]), mean)


def test_the_best_epoch_is_kept_and_training_stops_after_it(parts):
    seen: list[float] = []

    def rising_after_three(scores: torch.Tensor) -> torch.Tensor:
        # The model and its average take turns.
        seen.append(abs(len(seen) // 2 - 3) + float(scores[0]) * 0)
        states.append(scores)
        return torch.tensor(seen[-1])

    states: list[torch.Tensor] = []
    loss = nn.functional.binary_cross_entropy_with_logits
    found = train(
        make_net(parts, 0), Shuffled(parts, 0), lambda scores, labels, rows: loss(scores, labels),
        (parts.held_out[0], rising_after_three), epochs=20, patience=4,
    )  # fmt: skip
    assert found.epochs == 8
    torch.testing.assert_close(score(found.model, parts.held_out[0]), states[6])
    torch.testing.assert_close(score(found.average, parts.held_out[0]), states[7])


def test_a_weight_moves_the_scores_its_way(parts):
    light, heavy = (train_weighted(parts, weight, 0, 5).model for weight in (1 / 16, 16))
    assert score(light, parts.test[0]).mean() < score(heavy, parts.test[0]).mean() - 1


def test_a_split_has_every_method_that_is_tried_for_an_ask(parts, monkeypatch):
    names = ("cross-entropy", "fine-tuned, annealed", "student", "mean of 3")
    found = run_split(parts, 1, names, epochs=2)
    # 100 test negatives say nothing of one in a thousand.
    assert set(found) == {ASKS[0]}
    assert set(found[ASKS[0]]) == set(names)
    assert not METHODS["student"].tries(ASKS[1])
    assert all(0 <= one["test"] <= 1 for methods in found.values() for one in methods.values())


def test_the_default_goes_through_the_public_door(parts, monkeypatch):
    calls = []
    fit = sp.fit
    monkeypatch.setattr(sp, "fit", lambda *given, **named: calls.append(named) or fit(*given, **named))
    run_method("default", Bench(parts, 0, epochs=2), PROBLEM)
    assert [set(named) for named in calls] == [{"calibration", "epochs"}]


def rows(gains: dict[str, list[float]]) -> list[dict]:
    """A study in which `default` is better than all rivals by what is given, split by split."""
    found = []
    for name, values in gains.items():
        for seed, value in enumerate(values):
            figures = {**dict.fromkeys(BASELINES, 0.5), "default": 0.5 - value}
            methods = {
                method: {"held out": v, "test": v, "at threshold": v, "bounded rate": 0.01, "seconds": 1.0}
                for method, v in figures.items()
            }
            found.append({"set": name, "seed": seed, "asks": {ASKS[0]: methods}})
    return found


def test_sets_are_equally_heavy_and_the_worst_is_named():
    found = summary(rows({"a": [0.02, 0.04], "b": [-0.03, -0.01, -0.02]}), 0.2, 0.5)["together"][ASKS[0]]["test"]
    against = found["default"]["best of 7 weights"]
    assert against["mean"] == pytest.approx((0.03 - 0.02) / 2)
    # Standard errors 0.01 of a, 0.01 / sqrt(3) of b.
    assert against["standard_error"] == pytest.approx(0.01 * (1 + 1 / 3) ** 0.5 / 2)
    assert (against["ahead on"], against["sets"]) == (1, 2)
    assert against["worst"]["set"] == "b"
    assert against["lost a point on"] == against["clearly on"] == ["b"]
    assert against["sets by standard_error"] == {"better": 1, "worse": 1}


def test_a_loss_within_noise_is_told_from_a_clear_one():
    found = summary(rows({"a": [0.1, -0.2], "b": [-0.03]}), 0.2, 0.5)["together"][ASKS[0]]["test"]
    against = found["default"]["cross-entropy"]
    assert against["lost a point on"] == ["a"]
    assert against["clearly on"] == []
    # One split of b alone says nothing.
    assert against["sets"] == 1
    assert against["sets by standard_error"] == {"better": 0, "worse": 0}


def test_set_by_set_a_figure_carries_its_paired_gain_over_cross_entropy():
    gained = {"mean": 0.01, "standard_error": 0.002, "corrected_standard_error": 0.004}
    cell = {
        "set": "letter", "ask": "an ask", "splits": 4, "test": {"cross-entropy": 0.2, "default": 0.19},
        "gain, test": {"cross-entropy": {}, "default": {"cross-entropy": gained}},
    }  # fmt: skip
    other = {**cell, "set": "adult", "test": {"cross-entropy": 0.5}}
    rows = page.by_set({"cells": [cell, other]}, "an ask").splitlines()
    assert rows[2:] == ["| cross-entropy | 20.00 | 50.00 |", "| default | 19.00, +1.00 ± 0.20 (0.40) |  |"]
