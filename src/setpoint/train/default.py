"""The default method for each kind of model, with the study that decided it, and solvers by name.

Every door reads this file: `sp.fit`, the command line, `setpoint explain`, the estimator and the docs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from setpoint.decide.samples_needed import allowed_share, whole_of
from setpoint.errors import BadSetting
from setpoint.measure.classes import CLASSES, OfClass
from setpoint.measure.constraint import CUT
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.augmented_multiclass import AugmentedMulticlass
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.in_lists import ImplicitLists
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.multilabel import OneVsRest
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.program import MulticlassAUCLoss, program_for
from setpoint.solve.proxy import ProxyLagrangian
from setpoint.solve.sample_prices import ByArea, Growth
from setpoint.solve.shifts import ImplicitShifts
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.by_sums import Sums
from setpoint.train.class_weights import lean_weight
from setpoint.train.kinds import KINDS, kind_of
from setpoint.train.method import Method
from setpoint.train.recipes import Anchored, ClassWeights, Ridge, is_linear
from setpoint.train.snapshots import Snapshots

BASELINE = "cross-entropy"
#: Cross-entropy under the best of several class weights: a name for comparisons.
TUNED = "tuned"
#: Solvers that train for no threshold, and so go with every kind of question; auto is the default where it has no
#: candidates.
PLAIN = ("default", "weighted")
#: Solvers for problems about several classes.
OF_CLASSES = ("default", "auto", "implicit", "last-layer", "augmented", "program", BASELINE)
#: Solvers for models that give the scores of several labels; linear models and trees are trained for one at a time.
OF_LABELS = ("default", "auto", "implicit", BASELINE)
#: What can be named as a way to train. None leaves the choice to the library, several are tried in turn until one
#: does not refuse the data.
Single = Solver | Anchored | Ridge | ClassWeights | Sums | Auto
Choice = Single | Snapshots | Method | tuple[Single, ...] | None


@dataclass(frozen=True)
class Case:
    """The circumstances for which a solver is made from its name.

    Args:
        problem: The problem to solve.
        linear: Whether the model is linear, so that recipes can train it.
        whole: Whether all training rows come in one batch.
        rows: The number of training rows.
        n_groups: The number of groups, where groups are compared.
        n_classes: The number of classes, where the ask is about classes.
        tune: The number of trials that `Auto` adds by optuna.
        seed: The seed of these trials.
    """

    problem: Problem
    linear: bool = False
    whole: bool = False
    rows: int = 1
    n_groups: int | None = None
    n_classes: int = 0
    tune: int = 0
    seed: int = 0

    @property
    def memory(self) -> int | None:
        """The memory of solvers: none if a batch holds all rows, else as the solver chooses."""
        return 0 if self.whole else None

    def entropy(self, weight: Literal["balanced"] | None = None) -> Choice:
        """Cross-entropy; for linear models to convergence, if the data allow it."""
        return (Ridge(weight), Sums(weight), CrossEntropy(weight)) if self.linear else CrossEntropy(weight)

    def sums(self) -> Choice:
        """Cross-entropy matched to the ask, by sums over the chunks of a table that is not in memory."""
        if not self.linear:
            raise BadSetting("solver 'sums' trains linear models; choose --model linear, or another solver")
        return (Sums(),)

    def auto(self) -> Auto:
        """All candidates, and the choice among them."""
        return Auto(tune=self.tune, seed=self.seed)

    def implicit(self) -> Solver:
        """Implicit thresholds, also of several labels and of lists, or implicit shifts of classes."""
        if self.problem.kind == LISTS:
            return ImplicitLists(self.problem)
        if isinstance(self.problem, LabelProblem):
            return OneVsRest(self.problem, len(self.problem.labels), memory=self.memory)
        if self.n_classes:
            return ImplicitShifts(self.problem, self.n_classes, memory=self.memory)
        return ImplicitThreshold(self.problem, n_groups=self.n_groups, memory=self.memory)

    def last_layer(self) -> Solver:
        """Implicit thresholds for the last layer, cross-entropy for those below it."""
        if self.linear:
            raise BadSetting(
                "solver 'last-layer' trains the layers below the last one by cross-entropy, and a linear model has "
                "none; choose a network, such as --model mlp, or solver 'implicit'"
            )
        return ImplicitLastLayer(self.problem, above=self.implicit())

    def mixture(self) -> Snapshots:
        """The best mixture of snapshots of the proxy-Lagrangian."""
        return Snapshots(ProxyLagrangian(self.problem, memory=self.memory))

    def program(self) -> Solver:
        """The linear program of the metric; of several classes, that of their AUC, whatever is asked."""
        return MulticlassAUCLoss() if self.n_classes else program_for(self.problem)

    def augmented(self, growth: Growth) -> Solver:
        """The augmented Lagrangian over cross-entropy; of K classes those that the ask names are critical."""
        if self.n_classes:
            named = sorted({q.k for q in self.problem.quantities if isinstance(q, OfClass)})
            if not 0 < len(named) < self.n_classes:
                raise BadSetting(
                    f"solver 'augmented' prices the rows of the classes that the ask names, but '{self.problem}' names "
                    "none or all of them; name the critical class, as in recall of class NAME"
                )
            return AugmentedMulticlass(CrossEntropy(), n_samples=self.rows, critical=named, mu=1e-3, growth=growth)
        return AugmentedLagrangian(CrossEntropy(), n_samples=self.rows, problem=self.problem, mu=1e-3, growth=growth)


#: What `--solver` and `SetpointClassifier(solver=...)` take.
SOLVERS: dict[str, Callable[[Case], Choice]] = {
    "default": lambda case: None,
    "auto": lambda case: (case.auto(), case.implicit()) if case.linear else case.auto(),
    "implicit": lambda case: case.implicit(),
    "last-layer": lambda case: case.last_layer(),
    "lagrangian": lambda case: Lagrangian(case.problem, n_groups=case.n_groups, memory=case.memory),
    "mixture": lambda case: case.mixture(),
    "augmented": lambda case: case.augmented(Growth()),
    "augmented-auc": lambda case: case.augmented(Growth(metric=ByArea())),
    "pairwise": lambda case: PairwiseArea(case.problem, memory=case.memory),
    "sums": lambda case: case.sums(),
    "program": lambda case: case.program(),
    "weighted": lambda case: case.entropy("balanced"),
    BASELINE: lambda case: case.entropy(),
}


def make_solver(name: str, case: Case) -> Choice:
    """The solver of that name for that case.

    Raises:
        BadSetting: If the solver trains for one threshold, and the ask is decided otherwise.
    """
    if case.problem.kind != CUT and name == "auto" and not case.tune:
        name = "default"
    if case.problem.kind == CLASSES:
        if name not in OF_CLASSES or case.tune:
            raise BadSetting(
                f"solver {name!r} is for two classes, but '{case.problem}' is about several; leave the solver out, or "
                f"choose {', '.join(OF_CLASSES[2:-1])} or {OF_CLASSES[-1]}"
            )
        return SOLVERS[name](case)
    if case.problem.kind == LABELS:
        if name not in OF_LABELS or case.tune:
            raise BadSetting(
                f"solver {name!r} trains for one label, and this model gives the scores of all labels of "
                f"'{case.problem}'; leave the solver out, choose {OF_LABELS[2]} or {OF_LABELS[-1]}, or --model linear"
            )
        return SOLVERS[name](case)
    own = ("implicit",) if case.problem.kind == LISTS else ()
    if case.problem.kind != CUT and name not in (*PLAIN, *own, BASELINE, TUNED):
        raise BadSetting(
            f"solver {name!r} trains for plain rates at one threshold, and '{case.problem}' asks for more; leave the "
            f"solver out, or choose {' or '.join([*own, *PLAIN[1:]])} or {BASELINE}"
        )
    return ClassWeights() if name == TUNED else SOLVERS[check_solver(name)](case)


def check_solver(name: str) -> str:
    """The name, if there is a solver of that name."""
    if name not in SOLVERS:
        raise BadSetting(f"solver {name!r} is none of {', '.join(SOLVERS)}{kind_instead(name, '--model')}")
    return name


def kind_instead(name: str, option: str) -> str:
    """The option to use if the name is that of a kind of model; nothing for other names."""
    return f"; {name} is a kind of model: {option} {name}" if name in KINDS else ""


def default_choices(model: nn.Module | None, problem: Problem, whole: bool) -> list[Choice]:
    """The default for a model and a problem, then what stands in for it where the data refuse it.

    Linear models get the anchored recipe (`benchmarks.studies.default_study`, `free_asks`). Where groups are compared
    they get converged cross-entropy, which nothing did better than (`benchmarks.peers`), and so they do for asks that
    are decided by more than one threshold or about lists (`benchmarks.studies.lists`). Networks get cross-entropy with
    early stopping (`benchmarks.studies.networks`), under the class weight of `lean_weight`. A recipe that needs
    all rows in memory is replaced by training in batches.
    """
    if problem.kind == CLASSES and isinstance(model, nn.Linear):
        return [Ridge(), CrossEntropy()]
    if model is None or not is_linear(model):
        return [CrossEntropy(lean_weight(problem))]
    if problem.group is None and problem.kind == CUT:
        return [Anchored(), Sums(), ImplicitThreshold(problem, memory=0 if whole else None)]
    return [Ridge(), CrossEntropy()]


#: What the defaults are called in text.
CALLED = {
    Anchored: "the linear model for the ask",
    Ridge: "cross-entropy",
    CrossEntropy: "cross-entropy with early stopping",
}
#: Up to this share of mistakes a bound is extreme: FPR 1 % or less, recall 95 % or more.
EXTREME = {"negatives": 0.01, "positives": 0.05}


def explain_default(kind: str, problem: Problem) -> tuple[str, str]:
    """The default for a kind of model and a problem in words: what it is called, and why it is the default.

    Args:
        kind: The name of a kind of model, such as "linear".
        problem: What is asked.

    Returns:
        Its name and one sentence.
    """
    made = kind_of(kind)
    if isinstance(problem, LabelProblem) and (made.make is None or kind == "linear"):
        called, why = explain_default(kind, next(iter(problem.each.values())))
        return f"{called}, for each label by itself", why
    if isinstance(problem, LabelProblem):
        return CALLED[CrossEntropy], "one network gives the scores of all labels, and learns from those that are known."
    if made.make is None:
        return made.called, f"it {made.why}"
    choice = default_choices(made.make(1), problem, whole=True)[0]
    if problem.kind == LISTS:
        why = "training for the first rows of lists gained nothing over it (MQ2008); --solver implicit trains for them."
    elif problem.kind != CUT:
        why = "asks of this kind are decided after training, by cuts that are set on the calibration rows."
    elif problem.group is not None:
        why = "groups are evened out by a threshold per group, set after training; --solver implicit trains for it."
    elif isinstance(choice, Anchored):
        why = f"it starts from a class weight matched to the ask and refines it; {_expected(problem)}"
    else:
        lean = "" if lean_weight(problem) is None else "positives weigh half, since few negatives may pass, and "
        why = (
            f"for a well-trained network that is hard to beat with a tuned threshold; {lean}it is trained once more on "
            "held-out rows too, once they have told for how long."
        )
    return CALLED[type(choice)], why


def _expected(problem: Problem) -> str:
    """The measured gain of the linear default for such an ask, in words."""
    if problem.over is not None:
        return "for areas at high recall it was far above plain cross-entropy, level with the best of 21 class weights."
    if any(allowed_share(c) <= EXTREME.get(whole_of(c), 0.0) + 1e-9 for c in problem.constraints):
        return (
            "for bounds as tight as this it was several points better than the best of 21 class weights where a linear "
            "model is too simple for the data, and about as good elsewhere."
        )
    return "for so mild an ask expect little over cross-entropy, which is trained and shown beside it."
