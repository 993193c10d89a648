"""Hugging Face: a small BERT, trained by a solver, its best checkpoint kept by the exact metric, then calibrated.

python examples/with_hugging_face.py runs/bert
"""

import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import setpoint as sp
from setpoint.integrations.huggingface import SolverCheckpoint, SolverLoss, metrics_for, point_from


def make_sentences(size: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Eight of twenty words; a sentence is positive when it holds many of the first five, with noise."""
    draw = torch.Generator().manual_seed(seed)
    words = torch.randint(0, 20, (size, 8), generator=draw)
    labels = ((words < 5).sum(1) + torch.randn(size, generator=draw) > 3).long()
    return [{"input_ids": row, "labels": label} for row, label in zip(words, labels)]


def main(place: str) -> None:
    problem = sp.ask("minimize fnr where fpr <= 10%")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=8, num_labels=2,
    )  # fmt: skip
    solver = sp.losses.WithAnchor(sp.ImplicitThreshold(problem))  # a network that knows nothing yet needs hold
    trainer = Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(
            output_dir=place, num_train_epochs=5, per_device_train_batch_size=64, learning_rate=3e-3, use_cpu=True,
            per_device_eval_batch_size=250, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,
            metric_for_best_model="preference", greater_is_better=True,   # feasible models first
            report_to="none", dataloader_pin_memory=False, disable_tqdm=True,
        ),
        train_dataset=make_sentences(1500, seed=0),
        eval_dataset=make_sentences(500, seed=1),
        compute_loss_func=SolverLoss(solver),
        compute_metrics=metrics_for(problem),
        callbacks=[SolverCheckpoint(solver)],                             # solver.pt in every checkpoint
    )  # fmt: skip
    trainer.train()  # or trainer.train(resume_from_checkpoint=True)
    print(f"best checkpoint {trainer.state.best_model_checkpoint}")
    print(point_from(problem, trainer.predict(make_sentences(500, seed=2)), confidence=0.95))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/bert")
