"""Processes with a part of each batch learn what one process learns from the whole."""

import pytest
import torch

from processes.cases import CASES, OF_FOUR, train
from processes.fits import DEFAULT_OF_OWN, FITS, OTHER_STEPS, OWN, fitted, network
from processes.work import SHARDED_STEPS, accumulated


def assert_same(found, wanted, name=""):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert_same(found[key], value, f"{name}.{key}")
    else:
        torch.testing.assert_close(
            torch.as_tensor(found), torch.as_tensor(wanted), rtol=1e-6, atol=1e-6, msg=lambda m: f"{name}: {m}"
        )


@pytest.mark.parametrize("name", CASES)
def test_two_processes_train_as_one(two, name):
    alone = train(name, 2, None, 50)
    for answer in two:
        assert_same(answer["trained"][name], alone)


@pytest.mark.parametrize("name", OF_FOUR)
def test_four_processes_train_as_one(four, name):
    alone = train(name, 4, None, 12)
    for answer in four:
        assert_same(answer["trained"][name], alone)


@pytest.mark.parametrize("name", [name for name in FITS if name not in OTHER_STEPS])
def test_two_processes_fit_as_one(two, name):
    alone = fitted(name, None, 2)
    for answer in two:
        assert_same(answer["fitted"][name], alone)


def test_processes_without_any_rows_take_part_in_a_fit(four):
    alone = fitted(OWN, None, 4)
    for answer in four:
        assert_same(answer["fitted"][OWN], alone)


def test_processes_end_alike_where_steps_are_others(two, four):
    for answers in (two, four):
        first, *rest = (answer["fitted"][DEFAULT_OF_OWN] for answer in answers)
        for other in rest:
            assert_same(other, first)
        # The first training is that of one process, to the last digit of what it is judged by.
        alone = fitted(DEFAULT_OF_OWN, None, len(answers))
        assert_same({"held_out": torch.tensor(first["held_out"])}, {"held_out": torch.tensor(alone["held_out"])})
        assert not torch.equal(first["model"]["0.weight"], network().state_dict()["0.weight"])


def test_a_sharded_model_learns_the_same(two):
    alone = train("implicit", 2, None, SHARDED_STEPS)
    for answer in two:
        assert_same(answer["sharded"], alone["model"])


def test_micro_batches_on_several_processes_count_as_one(two, four):
    for answers in (two, four):
        for answer in answers:
            assert_same(answer["accumulated"], accumulated(None, len(answers)))
