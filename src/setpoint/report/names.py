"""The names of methods as people read them. Stored runs keep the exact names, such as "default: Anchored(0.25)"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from setpoint.run.side_by_side import MODEL

#: Names of methods and of kinds of models that say nothing to a newcomer, and the words for them.
_WORDS = {
    "cross-entropy": "cross-entropy",
    "CrossEntropy": "cross-entropy",
    "CrossEntropy(matched)": "cross-entropy weighted for the bound",
    "CrossEntropy(balanced)": "cross-entropy with balanced classes",
    "CrossEntropy(None)": "cross-entropy",
    "Ridge": "cross-entropy",
    "Given": "cross-entropy",
    "weighted": "cross-entropy with balanced classes",
    "tuned": "cross-entropy with tuned class weights",
    "linear": "linear model for the ask",
    "trees": "boosted trees",
    "Boosting": "boosted trees",
    "TreesByWorkers": "boosted trees",
    "ranked": "boosted trees for lists",
    "mlp": "neural network",
    "stack": "stack of models",
    "implicit": "implicit thresholds",
    "ImplicitThreshold": "implicit thresholds",
    "lagrangian": "Lagrangian",
    "augmented": "augmented Lagrangian",
    "auto": "best kind of model",
}
_PATTERNS = (
    (re.compile(r"Anchored\(0\.25\)"), "linear model for the ask"),
    (re.compile(r"Anchored\((.+)\)"), r"linear model for the ask, anchor \1"),
    (re.compile(r"(?:CrossEntropy|Ridge)\(((?:ridge|lasso) .+)\)"), r"cross-entropy with \1"),
    (re.compile(r"(?:CrossEntropy|Ridge)\((.+)\)"), r"cross-entropy, positives weighted \1"),
)
#: Kinds of models inside a note, after a comparison or a weight.
_INSIDE = re.compile(r"(against |\d )(linear|trees|mlp|stack)\b")
#: Solvers that choose a method for the kind of model at hand.
_CHOOSERS = {"default": "default method", "auto": "best of many methods"}
#: Names of choices, before the method that they came down to.
_CHOICES = re.compile(r"^(default|auto): (?=.)")


def method_words(name: str) -> str:
    """The name of a method in words.

    Args:
        name: The name that a run stores, such as "default: Anchored(0.25)".

    Returns:
        The words; a name that is not known stays as it is.

    Example:
        >>> from setpoint.report.names import method_words
        >>> method_words("default: Anchored(0.25)"), method_words("auto: trees"), method_words("mine")
        ('linear model for the ask', 'boosted trees', 'mine')
    """
    bare = _CHOICES.sub("", name)
    for pattern, words in _PATTERNS:
        if pattern.fullmatch(bare):
            return pattern.sub(words, bare)
    return _WORDS.get(bare, bare)


def in_words(note: str) -> str:
    """A note on a method, with the kinds of models in words.

    Example:
        >>> from setpoint.report.names import in_words
        >>> in_words("-0.56 ± 1.44 points against stack; log-loss +0.0002 per row")
        '-0.56 ± 1.44 points against stack of models; log-loss +0.0002 per row'
    """
    return _INSIDE.sub(lambda found: found[1] + method_words(found[2]), note)


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names of several methods in words: the shipped one first, and no two alike.

    Example:
        >>> from setpoint.report.names import distinct_names
        >>> distinct_names(["default: CrossEntropy", "cross-entropy"])
        ['cross-entropy, as shipped', 'cross-entropy']
    """
    words = [method_words(name) for name in names]
    shown = [f"{word}, as shipped" if not place and words.count(word) > 1 else word for place, word in enumerate(words)]
    return [name if shown.index(name) == place else f"{name} ({names[place]})" for place, name in enumerate(shown)]


def compared_names(solvers: Sequence[str]) -> list[str]:
    """The names of the solvers and kinds of models of a comparison in words, no two alike.

    Example:
        >>> from setpoint.report.names import compared_names
        >>> compared_names(["cross-entropy", "model trees", "default"])
        ['cross-entropy', 'boosted trees', 'default method']
    """
    bare = [name.removeprefix(MODEL) for name in solvers]
    words = [
        method_words(kind) if kind != name else _CHOOSERS.get(name, method_words(name))
        for kind, name in zip(bare, solvers)
    ]
    return [word if words.count(word) == 1 else f"{word} ({name})" for word, name in zip(words, solvers)]
