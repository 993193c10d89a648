"""Lightning: any model, a solver as its loss, and a callback that judges, keeps the best epoch and calibrates.

python examples/with_lightning.py
"""

import torch
from lightning.pytorch import Trainer
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.integrations.lightning import OperatingPointCallback, SetpointModule


def make_loader(size: int, seed: int, shuffle: bool = False) -> DataLoader:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.2).float()
    x = torch.randn(size, 8, generator=draw) + labels.unsqueeze(1) * torch.linspace(0, 1, 8)
    return DataLoader(TensorDataset(x, labels), batch_size=250, shuffle=shuffle)


def main() -> None:
    problem = sp.ask("minimize fnr where fpr <= 5%")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    module = SetpointModule(
        model,
        sp.ImplicitThreshold(problem),
        warm_epochs=3,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.003),
    )
    callback = OperatingPointCallback(problem, calibration=make_loader(2000, seed=2), confidence=0.95)
    trainer = Trainer(
        max_epochs=10, accelerator="cpu", callbacks=[callback], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, make_loader(4000, seed=0, shuffle=True), make_loader(2000, seed=1))

    for row in callback.history:
        print(f"{row['epoch']}  soft {row['soft']:.3f}  train {row['train']:.3f}  held out {row['held_out']:.3f}")
    print(f"best epoch {callback.best_epoch}")
    print(callback.point)
    print(callback.point.certificate)


if __name__ == "__main__":
    main()
