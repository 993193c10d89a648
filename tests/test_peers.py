"""A peer is asked through files, answers through files, and a failure is reported as one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.data import Split
from benchmarks.harness import without_folders
from benchmarks.peers import __main__ as peers

import setpoint as sp


@pytest.fixture(scope="module")
def parts() -> Split:
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(1200) % 3 == 0).double()
    x = torch.randn(1200, 3, generator=draw, dtype=torch.float64) + 2 * labels.unsqueeze(-1)
    return Split(*((x[rows], labels[rows]) for rows in torch.arange(1200).split(400)))


@pytest.fixture(scope="module")
def task(parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("peer") / "task.npz"
    peers.write_task(parts, path)
    return path


def test_a_method_runs_in_a_process_of_its_own_and_is_judged(parts, task):
    found = peers.run("setpoint, default", task, parts, "nowhere")
    model = torch.nn.Linear(3, 1).double()
    problem = sp.minimize(sp.fnr, sp.fpr <= peers.BOUND)
    sp.fit(model, problem, [parts.train], [parts.validation])
    with torch.no_grad():
        scores = model(parts.test[0]).squeeze(-1)
    assert found["test"] == pytest.approx(sp.evaluate(problem, scores, parts.test[1]).objective)
    assert found["peak megabytes"] > 50
    assert found["version"] == sp.__version__


def test_of_several_candidates_the_best_on_validation_rows_is_judged(parts):
    good = [(part[0] @ torch.ones(3, dtype=torch.float64)).numpy() for part in (parts.validation, parts.test)]
    candidates = [np.stack([-scores, scores, scores * np.nan]) for scores in good]
    found = peers.judge(parts, np.array(["upside down", "good", "diverged"]), *candidates)
    assert found["chosen"] == "good"
    assert found["fpr"] < 0.05


def test_a_peer_without_an_environment_is_named(parts, task):
    found = peers.run("TFCO", task, parts, "nowhere")
    assert found == {"error": "no environment: python -m benchmarks.peers.environments tfco"}


def test_a_peer_that_fails_is_reported_with_the_last_line_of_its_error(parts, tmp_path):
    broken = tmp_path / "task.npz"
    np.savez(broken, x_train=np.zeros(1))
    found = peers.run("LightGBM", broken, parts, "nowhere")
    assert "y_train" in found["error"]


def test_a_command_is_told_without_the_folders_of_the_machine():
    given = ["--data", "/some/where", "--quick", "--cache", "/else", "--splits", "3"]
    assert without_folders(given) == ["--quick", "--splits", "3"]
