"""The loss at the best scale and shift is that of a logistic regression on the scores, and knows which way is up."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from torch import nn

import setpoint as sp
from setpoint.measure.sample import Sample
from setpoint.train.refined import refined_loss


def drawn(seed: int = 0, size: int = 400) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    return torch.randn(size, generator=draw) + 1.5 * labels, labels, torch.rand(size, generator=draw) + 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_loss_of_a_logistic_regression_on_the_scores(weighted):
    scores, labels, weights = drawn()
    own = weights.numpy() if weighted else None
    x = scores.numpy()[:, None]
    probabilities = LogisticRegression(C=1e8).fit(x, labels.numpy(), sample_weight=own).predict_proba(x)[:, 1]
    # But for a ridge, which hundreds of rows hardly feel.
    expected = log_loss(labels.numpy(), probabilities, sample_weight=own)
    assert refined_loss(Sample(scores, labels, weights if weighted else None)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 5.0), (100.0, -3.0)])
def test_scale_and_shift_do_not_matter(scale, shift):
    scores, labels, _ = drawn(1)
    moved = Sample((scores * scale + shift).double(), labels)
    assert refined_loss(moved) == pytest.approx(refined_loss(Sample(scores.double(), labels)), rel=1e-4)


def test_scores_that_tell_nothing_or_the_wrong_way_are_a_guess():
    scores, labels, _ = drawn(2)
    share = float(labels.mean())
    guess = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert refined_loss(Sample(-scores, labels)) == pytest.approx(guess)
    assert refined_loss(Sample(torch.full_like(scores, 3.0), labels)) == pytest.approx(guess)
    assert refined_loss(Sample(scores, labels)) < guess - 0.05


def test_what_has_run_away_is_worst_and_one_class_is_no_judge():
    scores, labels, _ = drawn(3)
    scores[7] = math.nan
    assert refined_loss(Sample(scores, labels)) == math.inf
    assert refined_loss(Sample(torch.randn(5), torch.ones(5))) == 0.0


class Surer(nn.Module):
    """Ranks better and is surer of itself, and more wrongly, with every step of its optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        share = self.step / 10
        return (1 + 20 * share) * (share * x[:, 0] + (1 - share) * x[:, 1]) + 0 * self.step


class OneMore(torch.optim.SGD):
    def step(self, closure=None):
        with torch.no_grad():
            self.param_groups[0]["params"][0].add_(1)


def test_the_epoch_that_ranks_best_is_kept_though_the_loss_has_risen():
    _, labels, _ = drawn(4)
    x = torch.stack([drawn(4)[0], torch.randn(400, generator=torch.Generator().manual_seed(9))], 1)
    make = lambda parameters: OneMore(parameters, lr=0.0)
    result = sp.fit(Surer(), "minimize fnr where fpr <= 10%", [(x, labels)], [(x, labels)], calibration=[(x, labels)],
                    epochs=5, optimizer=make, refit=False)  # fmt: skip
    losses = [row["loss"] for row in result.history[1:] if "loss" in row]
    assert losses == sorted(losses)
    assert losses[-1] > losses[0]
    kept = [row["held_out_loss"] for row in result.history if "held_out_loss" in row]
    assert kept == sorted(kept, reverse=True)
    assert result.best_epoch >= 4
