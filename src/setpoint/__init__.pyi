"""The public names at the top of setpoint and the file of each: read by editors, by type checkers and by `lazy.py`."""

from setpoint import classes as classes
from setpoint import losses as losses
from setpoint import lp as lp
from setpoint import methods as methods
from setpoint import rates as rates
from setpoint import report as report
from setpoint import steps as steps
from setpoint.data.batch import Batches as Batches
from setpoint.decide.calibrate import calibrate as calibrate
from setpoint.decide.calibrate import evaluate as evaluate
from setpoint.decide.tally import ScoreTally as ScoreTally
from setpoint.errors import SetpointError as SetpointError
from setpoint.estimator import SetpointClassifier as SetpointClassifier
from setpoint.estimator import Tuned as Tuned
from setpoint.export.write import export_onnx as export_onnx
from setpoint.measure.rate import Metric as Metric
from setpoint.measure.rate import Rate as Rate
from setpoint.measure.rate import accuracy as accuracy
from setpoint.measure.rate import error as error
from setpoint.measure.rate import f_score as f_score
from setpoint.measure.rate import flagged as flagged
from setpoint.measure.rate import fnr as fnr
from setpoint.measure.rate import fpr as fpr
from setpoint.measure.rate import g_mean as g_mean
from setpoint.measure.rate import jaccard as jaccard
from setpoint.measure.rate import kappa as kappa
from setpoint.measure.rate import mcc as mcc
from setpoint.measure.rate import npv as npv
from setpoint.measure.rate import precision as precision
from setpoint.measure.rate import recall as recall
from setpoint.measure.rate import tnr as tnr
from setpoint.measure.worth import cost as cost
from setpoint.problem.language import ask as ask
from setpoint.problem.point import OperatingPoint as OperatingPoint
from setpoint.problem.population import PopulationWeights as PopulationWeights
from setpoint.problem.problem import Problem as Problem
from setpoint.problem.problem import maximize as maximize
from setpoint.problem.problem import minimize as minimize
from setpoint.problem.watch import Watch as Watch
from setpoint.run.fit import fit as fit
from setpoint.serve.run import load_run as load_run
from setpoint.solve.augmented import AugmentedLagrangian as AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy as CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold as ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian as Lagrangian
from setpoint.train.auto import Auto as Auto
from setpoint.train.checkpoint import Checkpoint as Checkpoint
from setpoint.train.recipes import Anchored as Anchored
from setpoint.train.recipes import Ridge as Ridge

__version__: str
__all__: list[str]
