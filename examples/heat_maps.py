"""What a small network looks at: its activations, factored by a linear program into a few heat maps.

python examples/heat_maps.py [heat_maps.png]    needs scikit-learn, and matplotlib for the picture
"""

import importlib.util
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

from setpoint import lp

RANK, CHANNELS, DIGITS = 3, 12, (0, 3, 4, 7)


def trained(images: torch.Tensor, labels: torch.Tensor) -> tuple[nn.Sequential, nn.Sequential]:
    """A convolutional net on 8 x 8 digits, in two parts: the features, and what is made of them."""
    layers = [nn.Conv2d(1, CHANNELS, 3, padding=1), nn.ReLU(), nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU()]
    features, head = nn.Sequential(*layers), nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * CHANNELS, 10))
    descent = torch.optim.Adam([*features.parameters(), *head.parameters()], lr=3e-3)
    for _ in range(300):
        picked = torch.randint(len(images), (128,))
        loss = nn.functional.cross_entropy(head(features(images[picked])), labels[picked])
        descent.zero_grad()
        loss.backward()
        descent.step()
    return features, head


def main(path: str) -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images).float().unsqueeze(1) / 16, torch.tensor(digits.target)
    features, head = trained(images[:1400], labels[:1400])
    print(f"held-out accuracy {(head(features(images[1400:])).argmax(1) == labels[1400:]).float().mean():.3f}")
    rows = []
    for digit in DIGITS:
        place = 1400 + int((labels[1400:] == digit).nonzero()[0])
        maps = features(images[place : place + 1])[0].detach().flatten(1)
        maps = maps[maps.norm(dim=1) > 0.3 * maps.norm(dim=1).max()]
        found = lp.factorize(maps, RANK)
        error = float((found.product - maps).norm() / maps.norm())
        print(f"digit {digit}: {len(maps)} strong channels, anchors {found.anchors.tolist()}, error {error:.2f}")
        rows.append([images[place, 0], *found.W.reshape(RANK, 8, 8)])
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed")
        return
    figure, axes = importlib.import_module("matplotlib.pyplot").subplots(len(rows), RANK + 1, figsize=(6, 6))
    for line, row in zip(axes, rows):
        for axis, picture, colours in zip(line, row, ["gray", *["inferno"] * RANK]):
            axis.imshow(picture, cmap=colours)
            axis.axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "heat_maps.png")
