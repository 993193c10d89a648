"""The nets of the studies on images, narrow enough for one core: their stems halve the image."""

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
    """Four residual blocks at 16, 8, 4 and 2 pixels."""
    blocks = [Residual(width, width, 1), *(Residual(width * 2**i, width * 2 ** (i + 1), 2) for i in range(3))]
    stem = (nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(8 * width, outputs, cosine))


def five_convolutions(width: int, outputs: int = 1, cosine: bool = False) -> nn.Sequential:
    """3x3 convolutions at 16, 8, 8, 4 and 4 pixels, and the mean over pixels."""
    layers: list[nn.Module] = []
    channels = 3
    for filters, stride in ((width, 2), (2 * width, 2), (2 * width, 1), (4 * width, 2), (4 * width, 1)):
        layers += [nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()]
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(channels, outputs, cosine))
