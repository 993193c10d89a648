"""The correction step: k batches that are all scored at one set of parameters."""

import copy

import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.errors import BadSetting

PROBLEM = sp.ask("minimize fnr where fpr <= 20%")


def rows(size=360, batch_size=30, **more):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(size, 3, generator=draw, dtype=torch.float64)
    labels = (x[:, 0] + torch.randn(size, generator=draw, dtype=torch.float64) > 0.5).double()
    return sp.Batches(x, labels, batch_size=batch_size, shuffle=True, **more)


class Spy(nn.Linear):
    """Writes down every run of the model in training mode: input, parameters, whether a gradient was wanted."""

    def __init__(self, solver):
        super().__init__(3, 1, dtype=torch.float64)
        self.solver, self.runs = [solver], []

    def forward(self, x):
        scores = super().forward(x)
        if self.training:
            state = torch.cat([p.detach().flatten() for p in self.parameters()])
            threshold = self.solver[0].thresholds.item()
            self.runs.append((x, state, torch.is_grad_enabled(), scores.detach().squeeze(-1), threshold))
        return scores


def flagged_by_brute_force(scores, labels, bound):
    """The flagged rows at the best of all cuts by fnr under fpr <= bound; of equals the one with most false alarms."""
    cuts = [-torch.inf, *scores.tolist()]
    tried = []
    for cut in cuts:
        passing = scores > cut
        fpr = (passing & (labels == 0)).sum() / (labels == 0).sum()
        fnr = (~passing & (labels == 1)).sum() / (labels == 1).sum()
        if fpr <= bound:
            tried.append((float(fnr), -float(fpr), passing.tolist()))
    return min(tried)[2]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_fit_scores_the_batches_of_a_correction_at_one_set_of_parameters(accumulate):
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=4, batches=3), memory=0).double()
    torch.manual_seed(0)
    spy, loader = Spy(solver), rows(size=720 if accumulate == 2 else 360)
    label_of = {tuple(x.tolist()): y for x, y in zip(loader.resident.x, loader.resident.labels)}
    sp.fit(spy, PROBLEM, loader, rows(), solver, calibration=rows(), epochs=2, warm_start=0.0, accumulate=accumulate)
    runs = spy.runs
    passes = 2 if accumulate == 2 else 1  # accumulated parts are run once for their scores, once for their gradient
    starts = [i for i, run in enumerate(runs) if not run[2] and (i == 0 or runs[i - 1][2])]
    corrections = 0
    for start in starts:
        length = next(i for i, run in enumerate(runs[start:]) if run[2])
        window = runs[start : start + length]
        if accumulate == 2:
            # The last two of these are the scores of the step itself.
            if length == 2:
                continue
            window = window[:-2]
        assert len(window) == 3 * accumulate
        assert all(torch.equal(run[1], window[0][1]) for run in window)
        step = runs[start + length]
        assert torch.equal(step[1], window[0][1])
        scores = torch.cat([run[3] for run in window])
        labels = torch.tensor([label_of[tuple(x.tolist())] for run in window for x in run[0]])
        assert (scores > step[4]).tolist() == flagged_by_brute_force(scores, labels, 0.2)
        trained = [run for run in runs[start + length :] if run[2]][: 3 * accumulate]
        assert all(torch.equal(a[0], b[0]) for a, b in zip(window, trained)), "they are the batches that come next"
        corrections += 1
    # Twelve steps an epoch: at steps 0, 4 and 8, and at 12, 16 and 20.
    assert corrections == 6
    assert sum(run[2] for run in runs) == 24 * accumulate
    assert passes * 24 * accumulate + 18 * accumulate == len(runs)


def test_a_correction_that_does_not_fit_into_the_epoch_waits_for_the_next():
    """Five batches an epoch, due every fourth step: at 0, then at 5 (at 4 one batch is left), then at 10."""
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=4, batches=3), memory=0).double()
    spy = Spy(solver)
    sp.fit(spy, PROBLEM, rows(size=150), rows(), solver, calibration=rows(), epochs=3, warm_start=0.0)
    wanted = [run[2] for run in spy.runs]
    assert wanted == 3 * ([False] * 3 + [True] * 5)


def test_ten_batches_of_512_are_all_used():
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=1000, batches=10)).double()
    loader, model = rows(size=5120, batch_size=512), nn.Linear(3, 1).double()
    sp.methods.correct(model, sp.losses.WithAnchor(solver), loader)
    scores = model(loader.resident.x).squeeze(-1).detach()
    assert solver.thresholds.item() == sp.evaluate(PROBLEM, scores, loader.resident.labels).threshold


def test_buffers_of_the_model_are_left_as_they_were():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)).double()
    before = copy.deepcopy(model.state_dict())
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=9, batches=12)).double()
    sp.methods.correct(model, solver, rows())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_cannot_be_corrected_is_refused_in_a_sentence():
    model, loader = nn.Linear(3, 1).double(), rows()
    correction = sp.losses.Correction(every=2, batches=3)
    solver = sp.ImplicitThreshold(PROBLEM, correction=correction).double()
    whole = loader.resident
    with pytest.raises(BadSetting, match="a correction on 3 batches at one set of parameters is due"):
        solver(model(whole.x).squeeze(-1), whole.labels)
    with pytest.raises(BadSetting, match="on 3 batches, but 12 came"):
        sp.methods.correct(model, solver, loader)
    with pytest.raises(BadSetting, match="nothing to correct"):
        sp.methods.correct(model, sp.ImplicitThreshold(PROBLEM), loader)
    with pytest.raises(BadSetting, match="lack a class"):
        solver.correct(torch.randn(9), torch.zeros(9))
    with pytest.raises(BadSetting, match="by itself"):
        sp.ImplicitThreshold(PROBLEM).correct(torch.randn(9), torch.zeros(9))
    with pytest.raises(BadSetting, match="needs 3 batches per epoch, not 2"):
        sp.fit(model, PROBLEM, rows(size=60), rows(), solver, calibration=rows(), warm_start=0.0)
    sp.methods.correct(model, solver, [*loader][:3])
    for _ in range(5):
        solver(model(whole.x).squeeze(-1), whole.labels)
    with pytest.raises(BadSetting, match="every 2 steps"):
        solver(model(whole.x).squeeze(-1), whole.labels)


def test_batches_without_a_class_leave_the_thresholds():
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=2, batches=1)).double()
    scores = torch.arange(10.0, dtype=torch.float64)
    solver.correct(scores, (scores > 4).double())
    found = solver.thresholds.clone()
    solver.correct(scores + 9, torch.zeros(10))
    assert torch.equal(solver.thresholds, found)
    assert not solver.needs_correction
