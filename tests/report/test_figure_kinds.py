"""Pictures of runs of several classes, several labels and lists."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import setpoint as sp
from setpoint.report.figure import draw_figure
from setpoint.report.material import Contender, Material


def rows(kind):
    draw = torch.Generator().manual_seed(1)
    noise = torch.randn(120, 3, generator=draw)
    if kind == "classes":
        labels = torch.arange(120) % 3
        return noise + torch.nn.functional.one_hot(labels, 3), labels, {}
    if kind == "labels":
        labels = (torch.rand(120, 3, generator=draw) < 0.4).float()
        return noise + 2 * labels, labels, {"classes": ["spam", "$toxic$", "threat"]}
    labels = (torch.rand(120, generator=draw) < 0.3).float()
    return noise[:, 0] + labels, labels, {"lists": torch.arange(120) // 6}


ASKS = {
    "classes": "minimize error where recall of class 1 >= 40%",
    "labels": "minimize fnr where fpr <= 20%",
    "lists": "maximize precision in the first 3 where recall in the first 3 >= 10%",
}


@pytest.mark.parametrize("kind", list(ASKS))
def test_each_kind_has_a_picture(kind, tmp_path):
    scores, labels, more = rows(kind)
    point = sp.calibrate(ASKS[kind], scores, labels, **more)
    mine, other = (
        Contender(name, point.thresholds, {"test": own}) for name, own in (("mine", scores), ("it", -scores))
    )
    lists = {"test": more["lists"]} if "lists" in more else None
    told = Material(point, [mine, other], {"test": labels}, lists=lists)
    path = draw_figure(told, tmp_path / "report.png")
    pixels = np.asarray(Image.open(path).convert("L"))
    assert pixels.shape == (720, 1584)
    # Both halves are drawn on, below the title.
    assert all((half < 128).sum() > 500 for half in (pixels[120:, :792], pixels[120:, 792:]))
    worse = draw_figure(Material(point, [other], {"test": labels}, lists=lists), tmp_path / "other.png")
    assert path.read_bytes() != worse.read_bytes()
