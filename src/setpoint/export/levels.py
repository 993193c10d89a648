"""Levels in a graph: the place of a word, a boolean or a number among known levels."""

from __future__ import annotations

import itertools
import re

import numpy as np

from setpoint.data.frame import MISSING
from setpoint.export.graph import BOOL, INT, ML, Graph

#: All that Unicode calls white space, which is cut off around words.
BLANK = r"[\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
#: A word with white space around it.
DRESSED = f"(?s:{BLANK}.*|.*{BLANK})"
_ABSENT = "|".join(map(re.escape, MISSING))


def is_missing(graph: Graph, words: str) -> str:
    """Whether a word stands for a missing value."""
    return matches(graph, words, f"(?i:{_ABSENT})")


def matches(graph: Graph, words: str, pattern: str) -> str:
    """Whether each word, without the blanks around it, is of a pattern."""
    return graph.add("RegexFullMatch", words, pattern=f"{BLANK}*(?:{pattern}){BLANK}*")


def level_codes(graph: Graph, value: str, kind: str, levels: tuple[str, ...]) -> str:
    """The place of each value `(n, 1)` among the levels; after them 1 place for missing, then 1 for all other values.

    Args:
        graph: The graph.
        value: Numbers, booleans or words.
        kind: "number", "boolean" (true or false), "boolean text" (true, false or missing) or "words".
        levels: The levels as text.
    """
    last = len(levels)
    if kind == "boolean":
        of_each = [levels.index(word) if word in levels else last + 1 for word in ("false", "true")]
        return graph.add("Gather", graph.constant(np.array(of_each)), graph.cast(value, INT))
    if kind == "number":
        known = graph.constant(np.array([[float(level) for level in levels]]))
        odd = graph.add("Or", graph.add("IsNaN", value), graph.add("IsInf", value))
        return _place_of(graph, graph.add("Equal", value, known), odd, last)
    if kind == "boolean text":
        each = [matches(graph, value, f"(?i:{level})") for level in levels]
        absent = is_missing(graph, value)
        codes = _place_of(graph, graph.add("Concat", *each, axis=1), absent, last)
        readable = graph.add("Or", absent, matches(graph, value, "(?i:true|false)"))
        return graph.refuse(codes, graph.add("Not", readable))
    return _of_words(graph, value, levels)


def _place_of(graph: Graph, found: str, missing: str, last: int) -> str:
    """Codes from one column of booleans per level, at most one of which is true per row."""
    places = graph.constant(np.arange(last, dtype=np.int64) - (last + 1))
    parts = graph.add("Mul", graph.cast(found, INT), places)
    total = graph.add("ReduceSum", parts, graph.constant(np.array([1])), keepdims=1)
    code = graph.add("Add", total, graph.constant(np.array(last + 1)))
    return graph.add("Sub", code, graph.cast(missing, INT))


def _of_words(graph: Graph, words: str, levels: tuple[str, ...]) -> str:
    last = len(levels)
    absent = {"".join(each) for word in MISSING for each in itertools.product(*({c, c.upper()} for c in word))}
    keys = {**dict.fromkeys(sorted(absent), last), **{level: place for place, level in enumerate(levels)}}
    exact = graph.add(
        "LabelEncoder", words, domain=ML, keys_strings=list(keys), values_int64s=list(keys.values()),
        default_int64=last + 1,
    )  # fmt: skip
    # Blanks around a word are rare, and slow to look behind: each level is then tried by itself.
    dressed = graph.add("RegexFullMatch", words, pattern=DRESSED)
    dressed_any = graph.add("ReduceMax", graph.cast(dressed, INT), keepdims=0)
    behind = graph.inner("yes")
    found = [matches(behind, words, re.escape(level)) for level in levels]
    missing = is_missing(behind, words)
    places = _place_of(behind, behind.add("Concat", *found, axis=1), missing, last)
    _result(behind, behind.add("Where", dressed, places, exact))
    plain = graph.inner("no")
    _result(plain, plain.add("Identity", exact))
    return graph.branch(graph.cast(dressed_any, BOOL), behind, plain)


def _result(graph: Graph, value: str) -> None:
    graph.output(f"{value}/result", value, INT, ["n", 1])
