"""Methods of training, what they give back, and the pieces for a training loop of your own."""

from setpoint.data.batch import with_index
from setpoint.run.fit import FitResult
from setpoint.run.run import Run, run
from setpoint.train.accumulate import accumulate
from setpoint.train.best import Best
from setpoint.train.best_of import BestOf
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.correct import correct
from setpoint.train.ensemble import Ensemble, Ensembled
from setpoint.train.full_batch import FullBatch
from setpoint.train.head import Head, head_features
from setpoint.train.method import Method, Trained, trained_once
from setpoint.train.models import register
from setpoint.train.on_first import OnFirst
from setpoint.train.race import Race
from setpoint.train.recipes import ClassWeights
from setpoint.train.refit import Refit
from setpoint.train.splits import Folds, Seeds, Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Work

__all__ = [
    "Best",
    "BestOf",
    "ByEpochs",
    "ClassWeights",
    "Ensemble",
    "Ensembled",
    "FitResult",
    "Folds",
    "FullBatch",
    "Head",
    "Method",
    "OnFirst",
    "Race",
    "Refit",
    "Run",
    "Seeds",
    "Splits",
    "Trained",
    "Trial",
    "Work",
    "accumulate",
    "correct",
    "head_features",
    "register",
    "run",
    "trained_once",
    "with_index",
]
