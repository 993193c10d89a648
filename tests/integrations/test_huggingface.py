"""Hugging Face with the real Trainer and a tiny BERT made from a config: no hub, no download."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from sklearn.metrics import roc_curve

import setpoint as sp
from marks import slow
from setpoint.errors import BadFile, BadLabels, BadSetting, ShapeMismatch
from setpoint.integrations import huggingface as ours

pytestmark = slow
PROBLEM = sp.ask("minimize fnr where fpr <= 10%")


def sentences(size, seed):
    """Eight tokens of twenty; the class is told by how many of them are below five, with noise."""
    draw = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 20, (size, 8), generator=draw)
    labels = ((tokens < 5).sum(1) + torch.randn(size, generator=draw) > 3).long()
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels)]


def bert(num_labels=2, seed=0):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(
        vocab_size=20, max_position_embeddings=8, num_labels=num_labels, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, **sizes,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def trainer(place, model, solver, optimizers=(None, None), size=256, **settings):
    asked = {
        "output_dir": str(place), "use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no",
        "per_device_train_batch_size": 32, "per_device_eval_batch_size": 64, "learning_rate": 3e-3,
        "lr_scheduler_type": "constant", "dataloader_pin_memory": False, **settings,
    }  # fmt: skip
    return transformers.Trainer(
        model,
        transformers.TrainingArguments(**asked),
        train_dataset=sentences(size, 0),
        eval_dataset=sentences(200, 1),
        compute_loss_func=ours.SolverLoss(solver),
        compute_metrics=ours.metrics_for(PROBLEM),
        callbacks=[ours.SolverCheckpoint(solver)],
        optimizers=optimizers,
    )


def state_of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def exact_fnr(scores, labels):
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    return 1 - tpr[fpr <= 0.1].max()


@pytest.mark.parametrize("num_labels", [1, 2])
def test_a_run_learns_and_its_metrics_are_the_exact_ones(num_labels, tmp_path):
    model, solver = bert(num_labels), sp.ImplicitThreshold(PROBLEM)
    run = trainer(tmp_path, model, solver, num_train_epochs=6, size=1024, learning_rate=5e-4)
    before = run.evaluate()["eval_objective"]
    assert int(solver.memory.batches) == 0
    run.train()
    assert int(solver.memory.batches) == run.state.global_step == 192
    known = state_of(solver)
    after = run.evaluate()
    assert same(known, solver.state_dict())
    assert solver.training
    assert after["eval_objective"] < before - 0.1
    output = run.predict(sentences(200, 1))
    logits = output.predictions
    scores = logits[:, 0] if num_labels == 1 else logits[:, 1] - logits[:, 0]
    assert after["eval_objective"] == pytest.approx(exact_fnr(scores, output.label_ids))
    assert after["eval_rates/fpr"] <= 0.1
    assert after["eval_feasible"] == 1.0
    point = ours.point_from(PROBLEM, output, confidence=0.9)
    assert point == sp.calibrate(PROBLEM, scores, output.label_ids, confidence=0.9)
    assert point.certificate is not None


def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path):
    def run(place, **settings):
        model, solver = bert(), sp.ImplicitThreshold(PROBLEM)
        return model, solver, trainer(place, model, solver, num_train_epochs=2, save_strategy="steps", **settings)

    model, solver, unbroken = run(tmp_path / "whole", save_steps=5)
    unbroken.train()
    other_model, other_solver, resumed = run(tmp_path / "whole", save_steps=100)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-10"))
    assert int(solver.memory.batches) == 16
    assert same(other_solver.state_dict(), solver.state_dict())
    assert same(other_model.state_dict(), model.state_dict())
    (tmp_path / "whole" / "checkpoint-10" / "solver.pt").unlink()
    with pytest.raises(BadFile, match=r"no solver\.pt in .*checkpoint-10"):
        run(tmp_path / "whole", save_steps=100)[2].train(
            resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-10")
        )


def test_parts_of_an_accumulated_batch_count_as_the_whole(tmp_path):
    ends = []
    for size, parts in ((32, 1), (8, 4)):
        model = bert()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = trainer(
            tmp_path, model, sp.CrossEntropy(), (optimizer, None), per_device_train_batch_size=size,
            gradient_accumulation_steps=parts, max_steps=2,
        )  # fmt: skip
        run.train()
        ends.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    start = torch.cat([p.detach().flatten() for p in bert().parameters()])
    assert float((ends[0] - start).norm()) > 0.01
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-4, atol=1e-6)


def test_a_solver_that_learns_must_be_in_the_optimizer(tmp_path):
    model, solver = bert(), sp.Lagrangian(PROBLEM)
    with pytest.raises(BadSetting, match="Lagrangian has parameters that the optimizer lacks"):
        trainer(tmp_path, model, solver, max_steps=2).train()
    before = state_of(solver)
    optimizer = torch.optim.AdamW([*model.parameters(), *solver.parameters()], lr=0.01)
    trainer(tmp_path, model, solver, (optimizer, None), max_steps=2).train()
    names = [name for name, _ in solver.named_parameters()]
    assert names
    assert not any(torch.equal(before[name], solver.state_dict()[name]) for name in names)


def test_logits_of_every_shape_give_one_score_a_row():
    loss = ours.SolverLoss(sp.CrossEntropy())
    scores = torch.tensor([0.3, -1.0, 2.0])
    labels = torch.tensor([1, 0, 1])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels.float())
    pair = torch.stack([torch.tensor([5.0, 1.0, -2.0]), torch.tensor([5.3, 0.0, 0.0])], dim=1)
    for outputs in ({"logits": scores}, (scores.unsqueeze(1), "more"), {"logits": pair}):
        torch.testing.assert_close(loss(outputs, labels), expected)
        torch.testing.assert_close(loss(outputs, labels.unsqueeze(1), num_items_in_batch=6), expected / 2)
    with pytest.raises(ShapeMismatch, match=r"logits \(3, 4\)"):
        loss({"logits": torch.zeros(3, 4)}, labels)
    with pytest.raises(BadLabels, match="no labels"):
        loss({"logits": scores}, None)
    with pytest.raises(BadLabels, match="without labels"):
        ours.point_from(PROBLEM, SimpleNamespace(predictions=np.zeros(3), label_ids=None))
    nested = SimpleNamespace(predictions=(pair.numpy(), np.zeros((3, 32))), label_ids=labels.numpy())
    assert ours.point_from(PROBLEM, nested) == sp.calibrate(PROBLEM, pair[:, 1] - pair[:, 0], labels)
