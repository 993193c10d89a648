"""Cautions that follow from an ask alone: codes that do not change, and suggestions that can be asked."""

from __future__ import annotations

import re
import warnings

import pytest
import torch

import setpoint as sp
from setpoint.errors import DoubtfulAsk
from setpoint.problem.caution import Caution, cautions_of_ask

CODES = {
    "minimize fnr where fpr <= 1": ["cannot-bind", "trivial"],
    "minimize fnr where fpr <= 1%": [],
    "maximize mcc where fpr <= 100%": ["cannot-bind"],
    "maximize precision where recall >= 0": ["cannot-bind", "best-when-little-is-flagged"],
    "maximize recall": ["trivial"],
    "minimize fpr": ["trivial"],
    "minimize fpr where tnr >= 50%": ["trivial"],
    "minimize fnr where recall.gap(sex) <= 2%": ["trivial"],
    "minimize error where recall.gap(sex) <= 2%": [],
    "maximize precision where flagged <= 5%": ["best-when-little-is-flagged"],
    "maximize precision where fpr <= 1%": ["best-when-little-is-flagged"],
    "maximize precision": ["best-when-little-is-flagged"],
    "maximize precision where flagged == 5%": [],
    "maximize precision where recall >= 90%": [],
    "maximize recall where flagged <= 5%": [],
    "maximize recall where precision >= 90%": [],
    "maximize tnr where recall >= 95%": [],
    "maximize f1": [],
    "minimize error": [],
    "maximize recall over fpr in [0%, 5%]": [],
}


@pytest.mark.parametrize("ask", CODES)
def test_what_an_ask_says_by_itself(ask):
    found = cautions_of_ask(sp.ask(ask))
    assert [caution.code for caution in found] == CODES[ask]
    assert [Caution.from_dict(caution.to_dict()) for caution in found] == found
    # The suggestions of an objective that flags nothing are asks, and good ones.
    for caution in found:
        if caution.code == "best-when-little-is-flagged" and "cannot-bind" not in CODES[ask]:
            meant = re.findall(r"'([^']+)'", caution.sentence.partition("did you mean")[2])
            assert meant
            assert all(cautions_of_ask(sp.ask(each)) == [] for each in meant)


def test_percent_for_share_is_asked_back():
    (bound, _) = cautions_of_ask(sp.ask("minimize fnr where fpr <= 1"))
    assert bound.sentence.endswith("did you mean fpr <= 1%?")


def test_an_equality_is_kept_within_one_row():
    problem = sp.ask("maximize precision where flagged == 5%")
    assert sp.ask(str(problem)) == problem
    scores, labels = torch.linspace(0, 1, 50), torch.arange(50) % 2
    point = sp.evaluate(problem, scores, labels)
    # 5 % of 50 rows is two rows and a half.
    assert round(point.rates["flagged"] * 50) in (2, 3)
    assert point.feasible
    assert not point.judge(scores + 0.1, labels).feasible


def test_training_warns_of_the_ask():
    x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
    parts = [sp.Batches(x[k::3], labels[k::3]) for k in range(3)]

    def fit(ask):
        return sp.fit(torch.nn.Linear(1, 1), ask, parts[0], parts[1], sp.Ridge(), calibration=parts[2])

    with pytest.warns(DoubtfulAsk, match="did you mean 'maximize recall where flagged <= 50%'"):
        fit("maximize precision where flagged <= 50%")
    with pytest.warns(DoubtfulAsk, match="needs no model"):
        sp.SetpointClassifier("maximize recall", solver="cross-entropy").fit(x.numpy(), labels.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit("minimize fnr where fpr <= 10%")
