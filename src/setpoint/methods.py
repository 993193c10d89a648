"""Methods of training, what they give back, and the pieces for a training loop of your own."""

from setpoint.data.index import with_index
from setpoint.run.fit import FitResult
from setpoint.train.accumulate import accumulate
from setpoint.train.best import Best
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.correct import correct
from setpoint.train.ensemble import Ensemble, Ensembled
from setpoint.train.full_batch import FullBatch
from setpoint.train.head import Head, head_features
from setpoint.train.method import Method, Trained
from setpoint.train.race import Race
from setpoint.train.refit import Refit
from setpoint.train.splits import Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Work

__all__ = [
    "Best",
    "ByEpochs",
    "Ensemble",
    "Ensembled",
    "FitResult",
    "FullBatch",
    "Head",
    "Method",
    "Race",
    "Refit",
    "Splits",
    "Trained",
    "Trial",
    "Work",
    "accumulate",
    "correct",
    "head_features",
    "with_index",
]
