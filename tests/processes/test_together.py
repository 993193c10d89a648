"""Points of the data of all processes, and who takes part when a choice is made."""

import pytest
import torch

import setpoint as sp
from processes.fits import ASK
from processes.work import BY_GROUP, made_scores
from setpoint.errors import BadSetting


def test_points_are_those_of_the_data_of_all_processes(two, four):
    scores, labels, weights, groups = made_scores()
    names = [f"site {g}" for g in groups.tolist()]
    for answer in (*two, *four):
        assert answer["evaluated"] == sp.evaluate(ASK, scores, labels, weights=weights)
        assert answer["certified"] == sp.calibrate(ASK, scores, labels, confidence=0.9)
        assert answer["by group"] == sp.evaluate(BY_GROUP, scores, labels, groups=names)


def test_without_a_group_data_are_those_of_one_process(two):
    scores, labels, _, _ = made_scores()
    assert all(answer["own"] == sp.evaluate(ASK, scores, labels) for answer in two)


def test_a_mistake_on_one_process_is_told_to_all(four):
    assert all("labels must be 0 or 1, but hold" in answer["refused"] for answer in four)


def gradient(kind, rows):
    scores, labels, _, _ = made_scores()
    own = scores[rows].clone().requires_grad_()
    solver = sp.ImplicitThreshold(sp.ask(ASK)) if kind == "implicit" else sp.CrossEntropy()
    loss = solver.double()(own, labels[rows])
    loss.backward()
    return float(loss.detach()), own.grad


@pytest.mark.parametrize("kind", ["implicit", "cross-entropy"])
def test_who_takes_part_is_chosen(four, kind):
    everyone = torch.arange(600)
    whole, slopes = gradient(kind, everyone)
    for rank, (answer, rows) in enumerate(zip(four, everyone.tensor_split(4))):
        found = {way: value for (way, of), value in answer["gradients"].items() if of == kind}
        for way, factor in (("automatic", 4), ("all", 4), ("added up", 1)):
            loss, own = found[way]
            assert loss == pytest.approx(whole, abs=1e-12)
            torch.testing.assert_close(own, factor * slopes[rows])
        alone, by_itself = gradient(kind, rows)
        assert found["alone"][0] == pytest.approx(alone, abs=1e-12)
        torch.testing.assert_close(found["alone"][1], by_itself)
        pair = torch.cat(everyone.tensor_split(4)[2 * (rank // 2) : 2 * (rank // 2) + 2])
        both, of_both = gradient(kind, pair)
        assert found["pair"][0] == pytest.approx(both, abs=1e-12)
        inside = (pair >= rows[0]) & (pair <= rows[-1])
        torch.testing.assert_close(found["pair"][1], 2 * of_both[inside])


def test_processes_that_are_not_there_are_refused():
    with pytest.raises(BadSetting, match="init_process_group"):
        sp.CrossEntropy().across(True)
    with pytest.raises(BadSetting, match="init_process_group"):
        sp.evaluate(ASK, [0.0, 1.0], [0, 1], process_group=True)
    assert sp.CrossEntropy().across(False).processes.alone
