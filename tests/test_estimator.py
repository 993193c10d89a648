"""SetpointClassifier among scikit-learn's own: its checks, pipelines, searches, frames, pickles and clones."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from torch import nn
from worlds import tilted

import setpoint as sp
from setpoint.estimator import SetpointClassifier
from setpoint.settings import MODELS

#: The fast one: everything but the training is the same whatever the solver.
CE = "cross-entropy"
ASK = "minimize fnr where fpr <= 5%"
pytestmark = pytest.mark.filterwarnings("ignore:.*the threshold is set on the rows the model is trained on")


def rows(size: int = 600, seed: int = 0, shift: float = 1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size)
    return rng.normal(size=(size, 4)) + shift * y[:, None] * np.array([1.0, 0.5, 0.0, 0.0]), y


@parametrize_with_checks([SetpointClassifier(solver=CE)])
def test_what_scikit_learn_expects(estimator, check):
    check(estimator)


def test_some_of_what_scikit_learn_expects_holds_of_the_default_and_of_networks():
    asked = {"check_fit_idempotent", "check_estimators_pickle", "check_dict_unchanged", "check_sample_weights_list"}
    for estimator in (SetpointClassifier(), SetpointClassifier(module="mlp", epochs=5)):
        # The whole battery takes minutes for solvers that search.
        skipped = {name: "slow" for name in ALL_CHECKS if name not in asked}
        found = {r["check_name"]: r["status"] for r in check_some(estimator, skipped)}
        assert {name: found[name] for name in asked} == dict.fromkeys(asked, "passed")
