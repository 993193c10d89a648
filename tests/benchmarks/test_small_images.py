"""Training on small images: what could be wrong without showing."""

from __future__ import annotations

import copy

import pytest
import torch
from benchmarks.common.image_nets import five_convolutions
from benchmarks.common.small_images import Images, Plan, channels_last, scores_of, shuffled, train, with_mirrored

import setpoint as sp
from setpoint.measure.curve import roc_area
from setpoint.solve.augmented import AugmentedLagrangian


def images(n: int, classes: int = 2, seed: int = 0) -> Images:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % classes
    pixels = torch.randint(0, 200, (n, 3, 32, 32), generator=draw) + 50 * (labels == 0).view(-1, 1, 1, 1)
    return Images(pixels.to(torch.uint8), labels)


def binary(n: int, seed: int = 0) -> Images:
    made = images(n, 5, seed)
    return Images(made.x, (made.labels == 0).float())


def test_rows_of_a_class_are_all_there_and_drawn_by_seed():
    classes = torch.arange(50) % 3
    first, again, other = shuffled(classes, 1), shuffled(classes, 1), shuffled(classes, 2)
    assert torch.equal(first[2].sort().values, (classes == 2).nonzero().squeeze(1))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])


def test_mirror_images_come_after_the_images():
    x = images(4).x
    both = with_mirrored(x).permute(0, 3, 1, 2)
    torch.testing.assert_close(both[4:], both[:4].flip(-1))
    torch.testing.assert_close(both[:4] * 64 + 127.5, x.float())


def is_among(one, images):
    return any(torch.equal(one, own) for own in images)


@pytest.mark.parametrize(("moved", "mirrored"), [(0, True), (2, True), (2, False)])
def test_a_batch_is_moved_as_one_by_no_more_than_the_plan_says_and_mirrored_if_it_says_so(moved, mirrored):
    data, seen = binary(12), []

    class Watched(torch.nn.Linear):
        def forward(self, x):
            if self.training:
                seen.append(x)
            return super().forward(x.flatten(1))

    plan = Plan(epochs=9, batch=12, moved=moved, mirrored=mirrored)
    train(Watched(3 * 32 * 32, 1), data, data.x, sp.CrossEntropy(), lambda scores: float(scores[0]), plan, seed=0)
    framed = torch.nn.functional.pad(channels_last(data.x), [moved] * 4, mode="reflect")
    shown = {False: framed, True: framed.flip(-1)}
    places, sides = set(), set()
    for batch in seen:
        found = {
            (down, right) for down in range(2 * moved + 1) for right in range(2 * moved + 1)
            if all(any(is_among(one, own[:, :, down : down + 32, right : right + 32]) for own in shown.values())
                   for one in batch)
        }  # fmt: skip
        assert len(found) == 1
        places |= found
        ((down, right),) = found
        sides |= {side for one in batch for side, own in shown.items()
                  if is_among(one, own[:, :, down : down + 32, right : right + 32])}  # fmt: skip
    assert (len(places) > 1) == (moved > 0)
    assert (True in sides) == mirrored


def test_the_epoch_that_was_judged_best_is_kept():
    torch.manual_seed(0)
    net, seen, told = five_convolutions(2), [], iter([0.3, 0.9, 0.9, 0.1])

    def judge(scores):
        seen.append((copy.deepcopy(net.state_dict()), scores))
        return next(told)

    data = binary(40)
    assert train(net, data, data.x, sp.CrossEntropy(), judge, Plan(epochs=4, batch=20), seed=0) == 0.9
    assert all(torch.equal(value, seen[1][0][name]) for name, value in net.state_dict().items())
    torch.testing.assert_close(scores_of(net, data.x), seen[1][1])


def test_a_run_learns_and_prices_only_its_positives():
    data = binary(200)
    torch.manual_seed(0)
    net = five_convolutions(4)
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=200, mu=1e-3)

    def judge(scores):
        return float(roc_area(scores, data.labels))

    assert train(net, data, data.x, solver, judge, Plan(epochs=4, batch=50, rate=1e-3, moved=0), seed=0) > 0.9
    assert float((solver.prices[data.labels > 0] > 0).double().mean()) > 0.5
    assert not bool(solver.prices[data.labels == 0].any())
