import re

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import BadAsk, BadProblem
from setpoint.measure.constraint import Constraint
from setpoint.measure.rate import NAMED as CATALOGUE
from setpoint.measure.rate import Rate
from setpoint.problem.language import read_problem

SHARES = st.floats(0, 1, allow_nan=False)
COSTS = st.floats(0, 1e12)
#: Names of columns and classes: any text; one column of groups per problem.
NAMES = st.text(min_size=1)
GROUP = st.shared(NAMES, key="column")
NAMED = st.one_of(
    st.sampled_from(list(CATALOGUE.values())),
    st.floats(1e-6, 1e6).map(sp.f_score),
    st.builds(lambda miss, alarm: sp.cost(miss=miss, alarm=alarm), COSTS, COSTS.filter(bool)),
)
RATES = NAMED.filter(lambda q: isinstance(q, Rate))
IN_LISTS = st.one_of(
    st.sampled_from([sp.precision, sp.recall, sp.fnr, sp.rates.hit]), st.floats(1e-6, 1e6).map(sp.f_score)
)
#: The quantities of each kind, and those that only a bound may have.
WORTH = st.one_of(
    st.builds(sp.rates.Weighted, NAMED, NAMES),
    st.builds(sp.rates.Cost, NAMES, st.one_of(NAMES, COSTS)),
    st.builds(sp.rates.Cost, COSTS, NAMES),
)
OF_CLASSES = st.one_of(
    st.builds(sp.classes.OfClass, NAMED, st.one_of(NAMES, st.integers(0, 10**6))),
    *(st.builds(kind, NAMED) for kind in (sp.classes.Macro, sp.classes.Micro, sp.classes.Proportional)),
)
LISTS = st.builds(sp.rates.InFirst, IN_LISTS, st.integers(1, 10**6))
#: Of each kind: objectives that make the kind, plain rates that may stand beside, and what else may be bounded.
KINDS = {
    "cut": (NAMED, NAMED, st.builds(Rate.gap, RATES, GROUP)),
    "worth": (WORTH, NAMED, WORTH),
    "classes": (OF_CLASSES, st.sampled_from([sp.error, sp.accuracy]), st.builds(sp.classes.ClassGap, NAMED)),
    "lists": (LISTS, LISTS, LISTS),
}


@st.composite
def constraints(draw, quantities):
    quantity = draw(quantities)
    relation = draw(st.sampled_from(["<=", ">=", "=="]))
    bound = draw(SHARES if quantity.is_share else st.floats(allow_nan=False, allow_infinity=False))
    return Constraint(quantity, relation, bound)


@st.composite
def problems(draw, kind=None):
    make = draw(st.sampled_from([sp.minimize, sp.maximize]))
    if kind == "area":
        rate = draw(st.sampled_from([sp.fpr, sp.fnr, sp.recall, sp.tnr, sp.flagged]))
        objective = draw(NAMED.filter(lambda q: q != rate))
        low, high = sorted(draw(st.tuples(SHARES, SHARES).filter(lambda pair: pair[0] != pair[1])))
        return make(objective, over=rate.between(low, high, points=draw(st.integers(1, 100))))
    own, plain, others = KINDS[kind]
    bounds = draw(st.lists(constraints(st.one_of(own, plain, others)), max_size=3, unique_by=lambda c: c.quantity))
    try:
        return make(draw(own), *bounds)
    except BadProblem as refusal:
        if "contradict each other" not in str(refusal):
            raise
        reject()


@pytest.mark.parametrize("kind", ["area", *KINDS])
def test_a_problem_written_and_read_is_the_same(kind):
    @given(problems(kind))
    def law(problem):
        assert sp.ask(str(problem)) == problem
        assert str(sp.ask(str(problem))) == str(problem)
        assert problem.kind == ("cut" if kind == "area" else kind)

    law()


OTHER_WORDS = {
    "minimize": ["min", "Minimise"], "maximize": ["max", "MAXIMISE"],
    "where": ["subject to", "such that", "with", "given"], "<=": ["≤", "<", "at most", "no more than"],
    ">=": ["≥", ">", "at least", "no less than"], "==": ["=", "exactly"], "and": [",", "AND"],
    "%": [" %", " percent"], "recall": ["tpr", "true positive rate"], "fpr": ["fall-out"],
    "in the first": ["@", "at", "in the top"], "of class": ["for class"], "balanced accuracy": ["balanced_accuracy"],
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "minimize fnr where fpr <= 1% and recall >= 5% and balanced accuracy >= 0.5",
        "maximize recall over fpr in [0%, 5%] with 3 points",
        "minimize cost(miss=amount, alarm=5) where recall weighted by fee >= 90% and flagged == 2%",
        "minimize error where coverage of class fraud <= 2% and recall of class 3 >= 10%",
        "maximize macro recall where recall gap between classes <= 10% and accuracy >= 50%",
        "maximize recall in the first 20 where precision in the first 5 >= 30% and hit in the first 1 >= 10%",
    ],
)
@given(data=st.data())
def test_other_words_read_as_the_same(text, data):
    written = text
    for word, others in OTHER_WORDS.items():
        other = data.draw(st.sampled_from([word, *others]))
        kept = word if word == "where" and " over " in text else other
        written = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", kept, written)
    assert sp.ask(written) == sp.ask(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("minimize fnr where fpr <= 1%", sp.minimize(sp.fnr, sp.fpr <= 0.01)),
        ("minimise FNR where fpr ≤ 0.01", sp.minimize(sp.fnr, sp.fpr <= 0.01)),
        ("maximize precision where recall >= 95 %", sp.maximize(sp.precision, sp.recall >= 0.95)),
        ("max tpr where specificity >= 99%", sp.maximize(sp.recall, sp.tnr >= 0.99)),
        ("maximize f1", sp.maximize(sp.f_score(1))),
        ("maximize f_score(0.5)", sp.maximize(sp.f_score(0.5))),
        ("maximize precision where flagged = 2%", sp.maximize(sp.precision, sp.flagged == 0.02)),
        ("maximize recall over fpr in [0%, 5%]", sp.maximize(sp.recall, over=sp.fpr.between(0, 0.05))),
        (
            "maximize precision over recall in [0.95, 1] with 5 points",
            sp.maximize(sp.precision, over=sp.recall.between(0.95, 1.0, points=5)),
        ),
        (
            "minimize error where recall.gap(sex) <= 2% and fpr <= 0.1, precision >= 50%",
            sp.minimize(sp.error, sp.recall.gap("sex") <= 0.02, sp.fpr <= 0.1, sp.precision >= 0.5),
        ),
        (
            'minimize error where recall.gap("age band") <= 2%',
            sp.minimize(sp.error, sp.recall.gap("age band") <= 0.02),
        ),
        ("maximize mcc where kappa >= -0.5", sp.maximize(sp.mcc, sp.kappa >= -0.5)),
    ],
)
def test_the_language(text, problem):
    assert sp.ask(text) == problem


def test_the_text_is_the_one_people_write():
    assert str(sp.minimize(sp.fnr, sp.fpr <= 0.01)) == "minimize fnr where fpr <= 1%"
    assert str(sp.maximize(sp.f_score(1))) == "maximize f_score(1)"


def test_metrics_of_ones_own_are_read_when_handed_over():
    informedness = sp.Metric("informedness", lambda tp, fp, fn, tn: tp / (tp + fn) + tn / (tn + fp) - 1)
    problem = sp.maximize(informedness, sp.fpr <= 0.1)
    assert sp.ask(str(problem), metrics=[informedness]) == problem
    with pytest.raises(BadAsk, match="informedness"):
        sp.ask(str(problem))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("minimize fnr where fprr <= 1%", "did you mean 'fpr'"),
        ("minimize presision", "did you mean 'precision'"),
        ("minimise fnr were fpr <= 1%", "did you mean 'where'"),
        ("minimiz fnr", "did you mean 'minimize'"),
        ("minimize qqqqqq", "known are"),
        ("", "expected 'minimize' or 'maximize' at the end"),
        ("minimize fnr where fpr", "<=, >= or =="),
        ("minimize fnr where fpr <= lots", "expected a number"),
        ("minimize fnr where fpr ~ 1%", "cannot read"),
        ("minimize fnr where fpr <= 1.5", "outside 0 ... 1"),
        ("minimize fnr over precision in [0, 1]", "only rises or only falls"),
        ("minimize fnr over fpr in [0, 1] with 2.5 points", "whole number"),
        ("minimize fnr over mcc in [0, 1]", "no range"),
        ("minimize fnr where mcc.gap(sex) <= 1%", "no gap"),
        ("minimize fnr where recall.gap() <= 1%", "column of groups"),
        ("minimize fnr § fpr", "cannot read"),
        ("minimize fnr where fpr <= 1% and", "at the end"),
        ("minimize fnr where fpr <= 1% or tnr >= 2%", "unexpected|did you mean"),
        ("minimize fnr where fpr <= 1% and fpr >= 5%", "contradict"),
    ],
)
def test_bad_asks_say_what_is_wrong(text, says):
    with pytest.raises(BadProblem, match=says):
        sp.ask(text)


@given(st.text())
def test_any_text_is_read_or_refused_by_name(text):
    for attempt in (text, f"minimize fnr {text}", f"minimize fnr where fpr {text}"):
        try:
            sp.ask(attempt)
        except BadProblem:
            pass


def test_an_ask_must_be_text():
    with pytest.raises(BadAsk, match="got int"):
        sp.ask(3)


def test_a_problem_is_handed_over_as_it_is_or_in_words():
    problem = sp.minimize(sp.fnr, sp.fpr <= 0.01)
    assert read_problem(problem) is problem
    assert read_problem("minimize fnr where fpr <= 1%") == problem
    for odd in (None, 3, sp.fnr):
        with pytest.raises(BadProblem, match="expected an ask such as"):
            read_problem(odd)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("minimize fnr where recall.gap(Site_2) <= 5%", sp.minimize(sp.fnr, sp.recall.gap("Site_2") <= 0.05)),
        ('minimize fnr where recall.gap("my site") <= 5%', sp.minimize(sp.fnr, sp.recall.gap("my site") <= 0.05)),
        ('minimize fnr where recall . gap ( "a\\"b" ) <= 5%', sp.minimize(sp.fnr, sp.recall.gap('a"b') <= 0.05)),
        ("maximize f10 where fpr<=.5", sp.maximize(sp.f_score(10), sp.fpr <= 0.5)),
        ("maximize f_score(.5) where fpr <= 5e-1", sp.maximize(sp.f_score(0.5), sp.fpr <= 0.5)),
        ("maximize recall OVER fpr IN [0, 5 %] WITH 3 POINTS", sp.maximize(sp.recall, over=sp.fpr.between(0, 0.05, 3))),
        ("minimize FNR where TPR >= 50% and Mcc >= -0.5", sp.minimize(sp.fnr, sp.recall >= 0.5, sp.mcc >= -0.5)),
        ("minimize fnr where fpr <= 0.1%", sp.minimize(sp.fnr, sp.fpr <= 0.001)),
        ("minimize fnr where fpr <= 7%", sp.minimize(sp.fnr, sp.fpr <= 0.07)),
        ("minimize fnr where fpr <= 29%", sp.minimize(sp.fnr, sp.fpr <= 0.29)),
    ],
)  # fmt: skip
def test_asks_are_read_to_the_letter(text, problem):
    assert sp.ask(text) == problem
    assert sp.ask(str(problem)) == problem


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "minimize fnr where fpr <= 1% or tnr >= 1",
            "all bounds hold together, so that 'or' is not possible; did you mean 'and'?",
        ),
        ("minimize fnr where fpr <= 1% 2", "'2' is unexpected after fpr <= 1%"),
        ("minimize fnr where fpr <= ", "expected a number such as 1% or 0.01 at the end"),
        ("", "expected 'minimize' or 'maximize' at the end"),
        ("minimize fnr over fpr in [0, 1] with -2 points", "expected a whole number of points but found '-2'"),
        ("minimize fnr over fpr in [0, 1] with 2 dots", "expected 'points' but found 'dots'"),
        ("minimize f", "unknown word 'f', did you mean "),
        ("minimize recal", "unknown word 'recal', did you mean 'recall'?"),
        ("minimize RECAL", "unknown word 'RECAL', did you mean 'recall'?"),
        ("minimise1 fnr", "unknown word 'minimise1', did you mean 'minimise'?"),
        # The word that is wrong is named, and what stands before it.
        ("minimize fnr where fpr <= 1% please", "'please' is unexpected after fpr <= 1%"),
        ("minimize fnr where fpr <= 1% and tnr >= 9% recall >= 5%", "'recall' is unexpected after tnr >= 9%"),
        ("minimize fnr where fpr <= 1 pct", "unknown word 'pct', did you mean 'percent'?"),
        ("minimize fnr where flagged <= 100 rowz", "unknown word 'rowz', did you mean 'rows'?"),
        ("minimize fnr where flagged <= 100 samples", "'samples' is unexpected after flagged <= 100 in the ask"),
        (
            "minimize fnr where flagged <= 5 rows per 100 rows 2",
            "'2' is unexpected after flagged <= 5 rows per 100 rows",
        ),
        ("maximize recall over fpr in [0, 5%] 10 points", "'10' is unexpected after the range of fpr"),
        ("maximize recall of class class b at most 3%", "'b' is unexpected after recall of class class"),
        (
            "maximize macro recall where recall gap bteween classes <= 5%",
            "unknown words 'gap bteween classes', did you",
        ),
        (
            "minimize cost(msis=5, alarm=1)",
            "expected the costs of a miss and of an alarm, as in cost(miss=5, alarm=1), but",
        ),
        (
            "minimize fnr where recall.gap(5) <= 1%",
            "expected the name of a column of groups after '.gap(' but found '5'",
        ),
        ("minimize fnr for each of a,", "expected the name of a label at the end"),
        ("minimize fnr where fpr <= 5..0%", "'.0%' is unexpected after fpr <= 5."),
        ("minimize fnr where fpr <= 1% for each of a b", "'b' is unexpected after the label a"),
        ("minimize fnr where fpr <= 1% for each a", "unknown words 'for each a', did you mean 'for each of'?"),
        ("minimize: fnr", "expected a rate such as fpr or recall but found ':'"),
        # The words that may stand there, and no others, are offered.
        ("minimize fnr and fpr", "'and' is unexpected after fnr"),
        ("minimize fnr where fpr <= 1% over fpr in [0, 1]", "'over' is unexpected after fpr <= 1%"),
        ("minimize fnr subject fpr <= 1%", "unknown word 'subject', did you mean 'subject to'?"),
        ("minimize fnr subjct to fpr <= 1%", "unknown words 'subjct to', did you mean 'subject to'?"),
        ("maximize recall weigthed by amount", "unknown words 'weigthed by', did you mean 'weighted by'?"),
        ("maximize recall in the frist 5", "unknown words 'in the frist', did you mean 'in the first'?"),
        ("maximize recall of clas a", "unknown words 'of clas', did you mean 'of class'?"),
        (
            "minimize fnr where fpr of glass at most 1%",
            "a class is named after the word class; did you mean 'fpr of class",
        ),
        ("minimize fnr for fpr <= 1%", "'for' is unexpected after fnr"),
        ("minimize fnr where fpr is less then 1%", "unknown words 'less then', did you mean 'less than'?"),
        ("minimize fnr where fpr at moost 1%", "unknown words 'at moost', did you mean 'at most'?"),
        ("minimize fnr where fpr at 1%", "expected <=, >= or == after fpr but found 'at'"),
        ("minimize fnr where fpr not below 1%", "expected <=, >= or == after fpr but found 'not'"),
        # Names of several words are compared as a whole.
        ("minimize false negatives", "unknown words 'false negatives', did you mean 'false negative rate'?"),
        ("maximize true positive rat", "unknown words 'true positive rat', did you mean 'true positive rate'?"),
        ("maximize acc", "unknown word 'acc', did you mean 'accuracy'?"),
        ("maximize where fpr <= 1%", "'where' is not a rate"),
        ("minimize fnr where fpr <= 1% and and tnr >= 1%", "'and' is not a rate"),
        ("minimize the fnr", "'the' is not a rate"),
        ("minimize cost", "expected the costs of a miss and of an alarm, as in cost(miss=5, alarm=1),"),
        ("minimize fnr where fpr <= 101%", "expected a share from 0% to 100% but found fpr <= 101%"),
        ("minimize fnr where fpr <= 1,5%", "expected a number with a point, such as 1.5%, but found 1,5%"),
    ],
)
def test_more_words_of_refusals(text, says):
    with pytest.raises(BadAsk) as refusal:
        sp.ask(text)
    assert str(refusal.value).startswith(says)


def test_a_name_of_ones_own_is_offered_too():
    own = sp.Metric("profit", lambda tp, fp, fn, tn: tp - fp)
    assert sp.ask("maximize profit where profit >= 3", [own]) == sp.maximize(own, own >= 3.0)
    with pytest.raises(BadAsk, match="did you mean 'profit'"):
        sp.ask("maximize proft", [own])
    with pytest.raises(BadAsk, match=r"known are .*, lift, review, profit, f_score in the ask"):
        sp.ask("maximize zzzzzzz", [own])
