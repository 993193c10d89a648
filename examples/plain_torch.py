"""A training loop of your own, with a checkpoint of model, solver and optimizer that it can be continued from.

python examples/plain_torch.py run.pt      # the first time: half of the epochs, then stop
python examples/plain_torch.py run.pt      # the second time: go on where it stopped
"""

import sys
from pathlib import Path

import torch

import setpoint as sp

EPOCHS = 10


def make_data(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.2).float()
    return torch.randn(size, 8, generator=draw) + labels.unsqueeze(1) * torch.linspace(0, 1, 8), labels


def main(place: Path) -> None:
    problem = sp.ask("minimize fnr where fpr <= 5%")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    solver = sp.losses.WithAnchor(sp.ImplicitThreshold(problem))
    optimizer = torch.optim.Adam([*model.parameters(), *solver.parameters()], lr=0.003)
    parts = {"model": model, "solver": solver, "optimizer": optimizer}

    first = 0
    if place.exists():
        saved = torch.load(place, weights_only=True)
        first = saved.pop("epoch")
        for name, part in parts.items():
            part.load_state_dict(saved[name])
    last = EPOCHS // 2 if first == 0 else EPOCHS

    x, labels = make_data(4000, seed=0)
    for epoch in range(first, last):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(250):
            loss = solver(model(x[rows]).squeeze(-1), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save({"epoch": last, **{name: part.state_dict() for name, part in parts.items()}}, place)

    x, labels = make_data(4000, seed=1)
    with torch.no_grad():
        scores = model(x).squeeze(-1)
    print(f"after {last} epochs, {solver.status()}")
    print(sp.calibrate(problem, scores, labels, confidence=0.95))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "run.pt"))
