"""Lightning with the real Trainer: judged by the exact metric, best epoch kept, resumed as if never stopped."""

from __future__ import annotations

import copy
import math

import lightning.pytorch as pl
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.decide.order import preference
from setpoint.errors import BadSetting
from setpoint.integrations import lightning as ours
from setpoint.integrations.torchmetrics import OperatingPointMetric
from worlds import tilted

PROBLEM = sp.ask("minimize fnr where fpr <= 5%")


def trainer(epochs, *callbacks, **more):
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
    return pl.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=list(callbacks), **{**quiet, **more})


def loader(seed, size=400):
    return DataLoader(TensorDataset(*tilted(size, seed)), batch_size=100)


def mixed(seed, size=400):
    """Batches that hold both classes, in an order that does not change."""
    x, labels = tilted(size, seed)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    return sp.Batches(x[order], labels[order], batch_size=100)


def module(seed=0, **settings):
    torch.manual_seed(seed)
    adam = lambda parameters: torch.optim.Adam(parameters, lr=0.05)
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    return ours.SetpointModule(model, sp.ImplicitThreshold(PROBLEM), **{"optimizer": adam, **settings})


def scores_of(module, x):
    with torch.no_grad():
        return module(x).squeeze(-1)


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_keeps_its_best_epoch_and_calibrates_on_data_of_its_own():
    callback = ours.OperatingPointCallback(PROBLEM, calibration=loader(2), confidence=0.9)
    trained = module(warm_epochs=2)
    run = trainer(6, callback)
    run.fit(trained, mixed(0), loader(1))

    held_out = [row["held_out"] for row in callback.history]
    assert [row["solver"] for row in callback.history] == ["CrossEntropy"] * 2 + ["ImplicitThreshold"] * 4
    # The warm epochs filled the memory: more batches are in it than the solver was trained on.
    assert int(trained.solver.memory.batches) > int(trained.solver.steps) > 0
    assert [row["epoch"] for row in callback.history] == list(range(6))
    assert callback.best_epoch == held_out.index(min(held_out))
    assert held_out[0] > min(held_out)
    x, labels = tilted(400, 1)
    assert sp.evaluate(PROBLEM, scores_of(trained, x), labels).objective == min(held_out)
    x, labels = tilted(400, 2)
    # Rows to calibrate on are scored in float64, and rounded.
    scores = scores_of(copy.deepcopy(trained).double(), x.double()).float()
    assert callback.point == sp.calibrate(PROBLEM, scores, labels, confidence=0.9)
    assert callback.point.certificate is not None
    last = callback.history[-1]
    logged = {name: float(value) for name, value in run.callback_metrics.items()}
    assert logged["setpoint/held_out"] == pytest.approx(last["held_out"])
    assert logged["setpoint/soft"] == pytest.approx(last["soft"])
    assert logged["setpoint/fpr/held_out"] == pytest.approx(last["bounds"]["fpr <= 5%"]["held_out"])
    assert logged["setpoint/prices/0"] == pytest.approx(last["prices"][0])
    assert logged["setpoint/prices/0"] != 0


def test_the_values_on_training_data_are_those_of_a_model_that_stands_still():
    still = module(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.0))
    callback = ours.OperatingPointCallback(PROBLEM)
    trainer(1, callback).fit(still, mixed(0), loader(1))
    (row,) = callback.history
    x, labels = tilted(400, 0)
    scores = scores_of(still, x)
    point = sp.evaluate(PROBLEM, scores, labels)
    assert row["train"] == pytest.approx(point.objective)
    positives = scores[labels == 1].double()
    soft = 1 - torch.sigmoid(row["temperature"] * (positives - point.threshold)).mean()
    assert row["soft"] == pytest.approx(float(soft), rel=1e-5)
    assert row["soft"] != row["train"]
    x, labels = tilted(400, 1)
    assert callback.point == sp.evaluate(PROBLEM, scores_of(still, x), labels)


def test_rare_validation_sees_the_training_data_of_its_own_epoch_only():
    histories = []
    for every in (1, 2):
        callback = ours.OperatingPointCallback(PROBLEM)
        trainer(4, callback, check_val_every_n_epoch=every).fit(module(), mixed(0), mixed(1))
        histories.append(callback.history)
    assert histories[1] == histories[0][1::2]
    assert len(histories[1]) == 2


class Scripted(pl.LightningModule):
    """A module of a user's own: one weight, which is the epoch, and validation scores that are written down."""

    def __init__(self, script, labels, answer=lambda scores, labels: {"scores": scores, "labels": labels}):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.solver = CountsMetrics()
        self.metric = OperatingPointMetric("minimize fnr where precision >= 60%")
        self.script, self.labels, self.answer = script, labels, answer

    def training_step(self, batch, batch_idx):
        return self.weight * 0

    def on_validation_start(self):
        self.weight.data.fill_(float(self.current_epoch))

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        scores = torch.tensor(self.script[self.current_epoch])
        self.metric.update(scores, self.labels)
        self.log("own", self.metric, on_epoch=True)
        return self.answer(scores, self.labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class CountsMetrics(sp.CrossEntropy):
    def __init__(self):
        super().__init__()
        self.told = []

    def step_metric(self, value):
        self.told.append(value)


LABELS = torch.tensor([1.0, 1.0, 0.0, 0.0])
INFEASIBLE, HALF, WHOLE = [1.0, 2.0, 3.0, 4.0], [5.0, 1.0, 2.0, 3.0], [3.0, 4.0, 2.0, 1.0]
ONE = DataLoader(TensorDataset(torch.zeros(1)))


@pytest.mark.parametrize(
    ("script", "best"), [([INFEASIBLE, HALF, INFEASIBLE, WHOLE, HALF], 3), ([INFEASIBLE, HALF, INFEASIBLE], 1)]
)
def test_feasible_epochs_come_first_in_a_module_of_ones_own(script, best):
    scripted = Scripted(script, LABELS)
    problem = sp.ask("minimize fnr where precision >= 60%")
    callback = ours.OperatingPointCallback(problem)
    seen = []
    callback.on_epoch = seen.append
    run = trainer(len(script), callback)
    run.fit(scripted, ONE, ONE)
    points = [sp.evaluate(problem, scores, LABELS) for scores in script]
    assert [row["held_out"] for row in callback.history] == [p.objective for p in points]
    assert [row["feasible"] for row in callback.history] == [scores is not INFEASIBLE for scores in script]
    assert "train" not in callback.history[0]
    assert seen == callback.history
    assert callback.best_epoch == best
    assert scripted.weight.item() == best
    assert callback.point == points[best]
    assert scripted.solver.told == [preference(p)[1] for p in points]
    assert float(run.callback_metrics["own"]) == (points[-1].objective if points[-1].feasible else math.inf)


def test_without_keeping_the_best_the_last_epoch_stays():
    scripted = Scripted([WHOLE, HALF], LABELS)
    callback = ours.OperatingPointCallback("minimize fnr where precision >= 60%", keep_best=False)
    trainer(2, callback).fit(scripted, ONE, ONE)
    assert callback.best_epoch == 1
    assert callback.point == sp.evaluate(callback.problem, HALF, LABELS)


def test_validate_logs_and_leaves_the_history_alone():
    scripted = Scripted([HALF], LABELS)
    callback = ours.OperatingPointCallback("minimize fnr where precision >= 60%", prefix="")
    (logged,) = trainer(1, callback).validate(scripted, ONE, verbose=False)
    assert logged["held_out"] == 0.5
    assert callback.history == []


def test_a_validation_step_without_scores_and_a_second_loader_are_refused():
    callback = ours.OperatingPointCallback(PROBLEM)
    with pytest.raises(BadSetting, match="let validation_step return"):
        trainer(1, callback).fit(Scripted([HALF], LABELS, answer=lambda *_: None), ONE, ONE)
    with pytest.raises(BadSetting, match="one validation loader"):
        trainer(1, callback).fit(Scripted([HALF], LABELS), ONE, [ONE, ONE])


def test_a_checkpoint_holds_the_solver_and_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path):
    unbroken, kept = module(), ours.OperatingPointCallback(PROBLEM)
    trainer(4, kept).fit(unbroken, mixed(0), mixed(1))

    broken, first = module(), ours.OperatingPointCallback(PROBLEM)
    saving = pl.callbacks.ModelCheckpoint(tmp_path, filename="half", save_top_k=-1)
    trainer(2, first, saving, enable_checkpointing=True).fit(broken, mixed(0), mixed(1))

    assert torch.load(tmp_path / "half.ckpt", weights_only=True)["epoch"] == 1

    fresh = module(seed=9)
    loaded = ours.SetpointModule.load_from_checkpoint(tmp_path / "half.ckpt", model=fresh.model, solver=fresh.solver)
    assert float(loaded.solver.temperature) > 0
    assert int(loaded.solver.memory.batches) == 8
    assert loaded.solver.memory.scores.count_nonzero() == 800

    resumed, second = module(seed=9), ours.OperatingPointCallback(PROBLEM)
    trainer(4, second).fit(resumed, mixed(0), mixed(1), ckpt_path=tmp_path / "half.ckpt")
    assert second.history == kept.history
    assert second.best_epoch == kept.best_epoch
    assert same(resumed.state_dict(), unbroken.state_dict())
    assert second.point == kept.point


def test_what_a_solver_learns_is_in_the_optimizer():
    learned = ours.SetpointModule(torch.nn.Linear(2, 1), sp.Lagrangian(PROBLEM))
    (group,) = learned.configure_optimizers().param_groups
    own = {id(parameter) for parameter in learned.solver.parameters()}
    assert own
    assert own <= {id(parameter) for parameter in group["params"]}
