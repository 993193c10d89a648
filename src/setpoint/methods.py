"""Methods of training, what they give back, and the pieces for a training loop of your own."""

from setpoint.data.batch import with_index
from setpoint.data.encoders import register_encoder
from setpoint.data.parts import Data
from setpoint.run.fit import FitResult
from setpoint.run.run import Run, run
from setpoint.train.accumulate import accumulate
from setpoint.train.best import Best
from setpoint.train.best_kind import BestKind
from setpoint.train.best_of import BestOf
from setpoint.train.boosting import Boosted, Boosting
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.correct import correct
from setpoint.train.cross_fit import CrossFit
from setpoint.train.ensemble import Ensemble, Ensembled
from setpoint.train.full_batch import FullBatch
from setpoint.train.head import Head, head_features
from setpoint.train.kinds import register
from setpoint.train.method import Method, Trained, trained_once
from setpoint.train.multinomial import Multinomial
from setpoint.train.on_first import OnFirst
from setpoint.train.race import Race
from setpoint.train.recipes import ClassWeights
from setpoint.train.refit import Refit
from setpoint.train.snapshots import Mixed, Snapshots
from setpoint.train.splits import Folds, Seeds, Splits
from setpoint.train.stack import Stack
from setpoint.train.trees import Trees
from setpoint.train.trial import Trial
from setpoint.train.work import Work

__all__ = [
    "Best",
    "BestKind",
    "BestOf",
    "Boosted",
    "Boosting",
    "ByEpochs",
    "ClassWeights",
    "CrossFit",
    "Data",
    "Ensemble",
    "Ensembled",
    "FitResult",
    "Folds",
    "FullBatch",
    "Head",
    "Method",
    "Mixed",
    "Multinomial",
    "OnFirst",
    "Race",
    "Refit",
    "Run",
    "Seeds",
    "Snapshots",
    "Splits",
    "Stack",
    "Trained",
    "Trees",
    "Trial",
    "Work",
    "accumulate",
    "correct",
    "head_features",
    "register",
    "register_encoder",
    "run",
    "trained_once",
    "with_index",
]
