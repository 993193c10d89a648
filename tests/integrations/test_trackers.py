"""Rows as scalars, and the trackers that take them, read back by their own readers."""

from __future__ import annotations

import builtins
import importlib
import itertools
import math
import sys

import mlflow
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

import setpoint as sp
from setpoint.decide.order import preference
from setpoint.errors import MissingPackage, missing
from setpoint.integrations.trackers import preference_number, scalars, to_mlflow, to_tensorboard
from worlds import tilted

ASK = "minimize fnr where fpr <= 5% and precision >= 0.5"


def fit_with(on_epoch):
    torch.manual_seed(0)
    parts = [sp.Batches(*tilted(400, seed), batch_size=100, shuffle=True) for seed in (0, 1)]
    problem = sp.ask(ASK)
    return sp.fit(
        torch.nn.Linear(2, 1), problem, *parts, solver=sp.ImplicitThreshold(problem), epochs=3, on_epoch=on_epoch
    )


def by_hand(row):
    """What should be written of a row, name by name."""
    fpr, precision = row["bounds"]["fpr <= 5%"], row["bounds"]["precision >= 50%"]
    expected = {
        "soft": row["soft"], "train": row["train"], "held_out": row["held_out"], "loss": row["loss"],
        "fpr/train": fpr["train"], "fpr/held_out": fpr["held_out"],
        "precision/train": precision["train"], "precision/held_out": precision["held_out"],
        "feasible": float(row["feasible"]),
    }  # fmt: skip
    if "prices" in row:
        expected["thresholds/0"] = row["thresholds"][0]
        expected["temperature"] = row["temperature"]
        expected["prices/0"], expected["prices/1"] = row["prices"]
    return expected


def test_a_row_becomes_flat_numbers():
    history = fit_with(None).history
    assert [scalars(row) for row in history] == [by_hand(row) for row in history]
    assert "prices" in history[-1]


def test_names_that_trackers_refuse_are_mended_and_odd_numbers_left_out():
    row = {"epoch": 1, "solver": "X", "temperature": math.nan, "bounds": {"recall.gap(sex) <= 2%": {"train": 0.1}}}
    assert scalars(row) == {"recall.gap_sex_/train": 0.1}


def test_the_preference_number_orders_as_the_preference_does():
    labels = torch.tensor([0, 1, 0, 1, 1, 0, 1, 0, 0, 1])
    problems = [sp.ask(ASK), sp.ask("maximize mcc"), sp.ask("maximize precision where recall >= 0.9 and fpr <= 0.1")]
    for problem in problems:
        draw = torch.Generator().manual_seed(0)
        points = [sp.evaluate(problem, torch.randn(10, generator=draw) + s * labels, labels) for s in (-2, 0, 1, 2, 4)]
        points += [p.judge(torch.randn(10, generator=draw), labels) for p in points]
        for one, other in itertools.product(points, points):
            assert (preference_number(one) > preference_number(other)) == (preference(one) > preference(other))
        assert all(math.isfinite(preference_number(p)) for p in points)


def test_tensorboard_reads_back_what_was_written(tmp_path):
    writer = SummaryWriter(str(tmp_path))
    history = fit_with(to_tensorboard(writer)).history
    writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    for row in history:
        for name, value in by_hand(row).items():
            found = {event.step: event.value for event in events.Scalars(name)}
            assert found[row["epoch"]] == pytest.approx(value, rel=1e-6)
    assert len(history) == 3


def test_mlflow_reads_back_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    client = mlflow.MlflowClient()
    run_id = client.create_run(client.create_experiment("setpoint")).info.run_id
    history = fit_with(to_mlflow(run_id)).history
    for row in history:
        for name, value in by_hand(row).items():
            found = {metric.step: metric.value for metric in client.get_metric_history(run_id, name)}
            assert found[row["epoch"]] == pytest.approx(value)
    assert len(history) == 3


@pytest.mark.parametrize(
    ("package", "extra", "needs_it"),
    [
        ("lightning", "lightning", lambda: importlib.import_module("setpoint.integrations.lightning")),
        ("transformers", "huggingface", lambda: importlib.import_module("setpoint.integrations.huggingface")),
        ("torchmetrics", "torchmetrics", lambda: importlib.import_module("setpoint.integrations.torchmetrics")),
        ("mlflow", "tracking", to_mlflow),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_brings_it(package, extra, needs_it, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, f"setpoint.integrations.{extra}", raising=False)
    with pytest.raises(MissingPackage) as error:
        needs_it()
    assert str(error.value) == (f"this needs the package {package}; install it with: pip install 'setpoint[{extra}]'")
    assert isinstance(error.value, ImportError)


def test_an_installed_package_that_does_not_load_is_not_called_missing():
    for cause in (ImportError("cannot import name", name="mlflow"), ModuleNotFoundError("no yaml", name="yaml")):
        assert missing("mlflow", "tracking", cause) is cause
