"""Forms that people write and an ask does not have, each answered with the form that was probably meant."""

from __future__ import annotations

from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import NAMED, Metric, Rate
from setpoint.problem.tokens import Tokens

#: Rates of which a bound keeps the value low.
_LOW = ("fpr", "fnr", "fdr", "for", "flagged", "error")
#: Letters before @, as in p@5.
SHORT = {"p": "precision", "prec": "precision", "r": "recall", "rec": "recall"}
#: Measures of a ranking that count grades, or the order within the first rows.
RANKED = ("ndcg", "dcg", "mrr", "map", "err")
#: Words between "gap" and the column in "recall gap between groups of sex".
_LINKS = ("gap", "between", "of", "by", "across", "over", "the", "groups", "column")


def of_gap(tokens: Tokens, rate: Quantity | None = None) -> str:
    """The sentence on a gap in another form: `gap(recall, sex)` or, after a rate, `recall gap by sex`."""
    words = []
    while (
        tokens.kind() and tokens.kind() != "number" and tokens.peek() not in ("<", "<=", "=", "==", ">=", ">", "≤", "≥")
    ):
        if tokens.kind() in ("word", "quoted") and tokens.peek().lower() not in _LINKS:
            words.append(tokens.peek())
        tokens.place += 1
    column = words[-1] if words and (rate is not None or len(words) > 1) else "sex"
    of = rate if rate is not None else words[0] if words and words[0] in NAMED else "recall"
    return f"a gap between groups is written as a word of the rate; did you mean '{of}.gap({column})'?"


def of_class(rate: Quantity, word: str) -> str:
    """The sentence on `recall of melanoma`."""
    return f"a class is named after the word class; did you mean '{rate} of class {word}'?"


def of_cut(tokens: Tokens, rate: Quantity) -> str:
    """The sentence on a rate at a value of another, `recall at fpr 1%` or `recall@fpr=1%`."""
    words = tokens.words(1)
    if words and words[0] in NAMED:
        tokens.place += 1
        while tokens.kind() == "symbol":
            tokens.place += 1
        relation, bound = "<=" if words[0] in _LOW else ">=", tokens.peek() if tokens.kind() == "number" else "1%"
        return f"a rate at a value of another is a bound; did you mean '{rate} where {words[0]} {relation} {bound}'?"
    if tokens.peek().endswith("%"):
        return f"a rate at a share of the rows is a bound; did you mean '{rate} where flagged == {tokens.peek()}'?"
    return f"a list is cut after a whole number of rows; did you mean '{rate} in the first 5'?"


def of_ranking(word: str, places: str) -> str:
    """The sentence on `ndcg@10`."""
    first = places if places.isdecimal() else "5"
    return (
        f"{word} counts grades or the order within the first rows, which an ask does not; did you mean 'precision in "
        f"the first {first}', or 'hit in the first {first}'?"
    )


def of_lists(objective: Quantity) -> str:
    """The sentence on `minimize fnr over lists`."""
    return f"say in how many rows of each list; did you mean '{objective} in the first 20'?"


def of_area(verb: str, objective: Rate | Metric, rate: Rate) -> str:
    """The sentence on an area with a bound."""
    return (
        f"an area looks at all thresholds, so that no bound goes with it; did you mean '{verb} {objective}' with that "
        f"bound, or '{verb} {objective} over {rate} in [0%, 5%]'?"
    )
