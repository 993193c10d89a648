"""The nets of the studies on images, narrow enough for one core."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: The published LDAM has cosines as logits and multiplies them; here the head does that.
COSINE_SCALE = 30.0


class Residual(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
            nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters),
        )  # fmt: skip
        same = stride == 1 and channels == filters
        self.short = nn.Identity() if same else nn.Conv2d(channels, filters, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x))


class CosineHead(nn.Module):
    """Logits that are cosines between features and weights, times a scale."""

    def __init__(self, features: int, outputs: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, features))

    def forward(self, x: Tensor) -> Tensor:
        return COSINE_SCALE * F.linear(F.normalize(x), F.normalize(self.weight))


def head(features: int, outputs: int, cosine: bool) -> nn.Module:
    return CosineHead(features, outputs) if cosine else nn.Linear(features, outputs)


def resnet10(width: int, outputs: int = 1, cosine: bool = False) -> nn.Sequential:
    """Four residual blocks at 16, 8, 4 and 2 pixels, after a stem that halves the image."""
    blocks = [Residual(width, width, 1), *(Residual(width * 2**i, width * 2 ** (i + 1), 2) for i in range(3))]
    stem = (nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(8 * width, outputs, cosine))


def five_convolutions(width: int, outputs: int = 1, cosine: bool = False) -> nn.Sequential:
    """3x3 convolutions at 32, 16, 8, 8 and 4 pixels, the larger of neighbours between sizes, the mean at the end."""
    layers: list[nn.Module] = []
    channels = 3
    for filters, halve in ((width, True), (2 * width, True), (4 * width, False), (4 * width, True), (8 * width, False)):
        layers += [nn.Conv2d(channels, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if halve else []
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(channels, outputs, cosine))
