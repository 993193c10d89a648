"""The language word by word, and the sentence that each misspelling gets."""

import pytest

import setpoint as sp
from setpoint.errors import BadAsk
from setpoint.measure.classes import OfClass
from setpoint.measure.in_first import InFirst
from setpoint.problem.phrases import SYNONYMS

OTHER = {
    "tpr": sp.recall, "sensitivity": sp.recall, "true_positive_rate": sp.recall, "specificity": sp.tnr,
    "selectivity": sp.tnr, "true_negative_rate": sp.tnr, "ppv": sp.precision,
    "positive_predictive_value": sp.precision, "negative_predictive_value": sp.npv,
    "false_discovery_rate": sp.rates.fdr, "false_omission": sp.rates.false_omission,
    "false_omission_rate": sp.rates.false_omission, "iou": sp.jaccard, "fall_out": sp.fpr,
    "false_positive_rate": sp.fpr, "false_alarm_rate": sp.fpr, "miss_rate": sp.fnr, "false_negative_rate": sp.fnr,
    "coverage": sp.flagged, "selected": sp.flagged, "error_rate": sp.error, "matthews": sp.mcc,
    "cohen_kappa": sp.kappa, "gmean": sp.g_mean,
}  # fmt: skip
OTHER_AREAS = {
    "auroc": "auc", "roc_auc": "auc", "ap": "average precision", "auprc": "average precision",
    "pr_auc": "average precision",
}  # fmt: skip
LIKE = "; an ask reads like 'minimize fnr where fpr <= 1%'"

GAP = "a gap between groups is written as a word of the rate; did you mean 'recall.gap(sex)'?"
AT = "a rate at a value of another is a bound; did you mean '{}'?"
FIRST = "a list is cut after a whole number of rows; did you mean 'precision in the first 5'?"
COSTS = "expected the costs of a miss and of an alarm, as in cost(miss=5, alarm=1),"


@pytest.mark.parametrize(
    ("word", "rate"),
    [
        *OTHER.items(), ("true positive rate", sp.recall), ("False-Positive Rate", sp.fpr), ("fall-out", sp.fpr),
        ("balanced accuracy", sp.rates.balanced_accuracy), ("balanced_accuracy", sp.rates.balanced_accuracy),
        ("Balanced-Accuracy", sp.rates.balanced_accuracy), ("lift", sp.rates.lift), ("npv", sp.npv),
        ("fdr", sp.rates.fdr), ("for", sp.rates.false_omission), ("f2 score", sp.f_score(2)),
        ("f1_score", sp.f_score(1)), ("f-score(2)", sp.f_score(2)),
        ("cost(miss=5, alarm=1)", sp.cost(miss=5, alarm=1)), ("COST(alarm=50%, miss=1)", sp.cost(miss=1, alarm=0.5)),
        ("cost(miss=amount, alarm=5)", sp.cost(miss="amount", alarm=5)),
        ('cost(alarm="order value", miss=amount)', sp.cost(miss="amount", alarm="order value")),
        ('fpr weighted by "order value"', sp.rates.Weighted(sp.fpr, "order value")),
        ("mcc weighted by amount", sp.rates.Weighted(sp.mcc, "amount")),
        ("recall of class melanoma", OfClass(sp.recall, "melanoma")), ("recall for class 3", OfClass(sp.recall, 3)),
        ("coverage of class fraud", OfClass(sp.flagged, "fraud")),
        ("flagged of class fraud", OfClass(sp.flagged, "fraud")),
        ('f1 of class "no fraud"', OfClass(sp.f_score(1), "no fraud")),
        ("npv of class non-fraud", OfClass(sp.npv, "non-fraud")),
        ("macro recall", sp.classes.Macro(sp.recall)), ("MICRO f_score(2)", sp.classes.Micro(sp.f_score(2))),
        ("macro balanced accuracy", sp.classes.Macro(sp.rates.balanced_accuracy)),
        ("precision in the first 5", InFirst(sp.precision, 5)), ("recall in the top 20", InFirst(sp.recall, 20)),
        ("precision@5", InFirst(sp.precision, 5)), ("precision at 5", InFirst(sp.precision, 5)),
        ("f1 among the first 5", InFirst(sp.f_score(1), 5)), ("Hit in first 3", InFirst(sp.rates.hit, 3)),
        ("hit rate @ 3", InFirst(sp.rates.hit, 3)), ("tpr in the first 5", InFirst(sp.recall, 5)),
        ("weighted precision", sp.classes.Proportional(sp.precision)),
        ("f1", sp.f_score(1)), ("F2", sp.f_score(2)), ("f_score(3)", sp.f_score(3)),
        ("F_SCORE( 50% )", sp.f_score(0.5)), ("Recall", sp.recall), ("MCC", sp.mcc),
    ],
)  # fmt: skip
def test_other_words_for_a_rate(word, rate):
    assert sp.ask(f"maximize {word}").objective == rate


def test_every_synonym_is_tried_above():
    assert set(SYNONYMS) == {*OTHER, *OTHER_AREAS}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("maximize auc", sp.maximize(sp.recall, over=sp.fpr.between(0, 1))),
        ("maximize average precision", sp.maximize(sp.precision, over=sp.recall.between(0, 1))),
        ("maximize Average_Precision", sp.maximize(sp.precision, over=sp.recall.between(0, 1))),
        (
            "maximize roc auc over fpr in [0%, 5%] with 3 points",
            sp.maximize(sp.recall, over=sp.fpr.between(0, 0.05, 3)),
        ),
    ],
)
def test_areas_have_names(text, problem):
    assert sp.ask(text) == problem


@pytest.mark.parametrize("word", OTHER_AREAS)
def test_other_words_for_an_area(word):
    assert sp.ask(f"maximize {word}") == sp.ask(f"maximize {OTHER_AREAS[word]}")


@pytest.mark.parametrize("word", ["where", "subject to", "such that", "with", "given", "s.t.", "Subject To"])
def test_other_words_for_where(word):
    assert sp.ask(f"minimize fnr {word} fpr <= 1% and flagged <= 5%") == sp.minimize(
        sp.fnr, sp.fpr <= 0.01, sp.flagged <= 0.05
    )


@pytest.mark.parametrize(
    ("verb", "maximize"),
    [("minimize", False), ("minimise", False), ("min", False), ("maximize", True), ("MAXIMISE", True), ("max", True)],
)
def test_the_verbs(verb, maximize):
    assert sp.ask(f"{verb} fnr").maximize is maximize


@pytest.mark.parametrize(
    ("written", "relation"),
    [
        ("<=", "<="), ("≤", "<="), (">=", ">="), ("≥", ">="), ("==", "=="), ("=", "=="), ("<", "<="), (">", ">="),
        ("=<", "<="), ("=>", ">="), ("at most", "<="), ("No More Than", "<="), ("not more than", "<="),
        ("up to", "<="), ("less than", "<="), ("below", "<="), ("under", "<="), ("at least", ">="),
        ("no less than", ">="), ("not less than", ">="), ("more than", ">="), ("above", ">="), ("exactly", "=="),
        ("equal to", "=="), ("equals", "=="), ("is at most", "<="), ("of at least", ">="),
    ],
)  # fmt: skip
def test_the_relations(written, relation):
    assert sp.ask(f"minimize fnr where fpr {written} 1%").constraints[0].relation == relation


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1%", 0.01),
        ("0.07%", 0.0007),
        ("95 %", 0.95),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e-3", 1e-3),
        ("2E-1%", 0.002),
        ("+0.5", 0.5),
        ("1 percent", 0.01),
        ("7 Per Cent", 0.07),
        ("200 per 10000", 0.02),
        ("1 in 1000", 0.001),
        ("3 out of 7", 3 / 7),
        ("200 rows per 10000 rows", 0.02),
    ],
)
def test_the_numbers(number, value):
    assert sp.ask(f"minimize fnr where fpr <= {number}").constraints[0].bound == value


@pytest.mark.parametrize(
    "text", ["minimize fnr WHERE fpr <= 1% AND tnr >= 0.1", "  minimize fnr where fpr<=1%,tnr>=0.1  "]
)
def test_case_and_spaces_do_not_matter(text):
    assert sp.ask(text) == sp.minimize(sp.fnr, sp.fpr <= 0.01, sp.tnr >= 0.1)


def test_a_single_point_may_be_written_in_the_singular():
    assert sp.ask("maximize recall over fpr in [0, 0.1] with 1 point").over.points == 1
    assert sp.ask("maximize recall over fpr in [0, 0.1] with 7 points").over.points == 7
    assert sp.ask("maximize recall over fpr in [0, 0.1]").over.points == 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("minimize", "expected a rate such as fpr or recall at the end in the ask 'minimize'"),
        ("3 fnr", "expected 'minimize' or 'maximize' but found '3' in the ask '3 fnr'"),
        ("minimize 3", "expected a rate such as fpr or recall but found '3'"),
        ("improve fnr", "'improve' should be 'minimize' or 'maximize'"),
        ("maximise1 fnr", "unknown word 'maximise1', did you mean 'maximise'?"),
        ("minimize fnr over fpr [0, 1]", "expected 'in' but found '['"),
        ("minimize fnr over fpr in 0, 1", "expected '[' but found '0'"),
        ("minimize fnr over fpr in [0 1", "expected ',' but found '1'"),
        ("minimize fnr over fpr in [0, 1", "expected ']' but found the end"),
        ("minimize fnr over fpr in [0, 1] with 3", "expected 'points' but found the end"),
        ("minimize fnr over fpr in [0, 1] with many points", "expected a number of points but found 'many'"),
        ("minimize fnr over fpr in [0, 1] with 2.5 points", "expected a whole number of points but found '2.5'"),
        ("minimize fnr over mcc in [0, 1]", "mcc has no range to average over; use a rate such as fpr or recall"),
        ("minimize fnr where fpr", "expected <=, >= or == after fpr at the end"),
        ("minimize fnr where fpr 1%", "expected <=, >= or == after fpr but found '1%'"),
        ("minimize fnr where fpr ( 1%", "expected <=, >= or == after fpr but found '('"),
        ("minimize fnr where gap(recall, sex) <= 1%", GAP),
        ("minimize fnr where gap <= 1%", GAP),
        ("minimize fnr where recall gap between groups of sex <= 1%", GAP),
        ("minimize fnr where recall gap(sex) <= 1%", GAP),
        ('minimize fnr where fpr gap by "age band" <= 1%', GAP.replace("recall", "fpr").replace("sex", '"age band"')),
        ("maximize recall@fpr=1%", AT.format("recall where fpr <= 1%")),
        ("maximize recall at fpr 0.1%", AT.format("recall where fpr <= 0.1%")),
        ("maximize precision at recall", AT.format("precision where recall >= 1%")),
        ("maximize precision at 5%",
         "a rate at a share of the rows is a bound; did you mean 'precision where flagged == 5%'?"),
        ("maximize auc where fpr <= 1%", "an area looks at all thresholds, so that no bound goes with it; did you mean "
         "'maximize recall' with that bound, or 'maximize recall over fpr in [0%, 5%]'?"),
        ("maximize auc over recall in [0, 1]", "this area is over fpr, not over recall; write the objective as a rate"),
        ("minimize fnr where auc >= 90%", "auc is an area over all thresholds: it can be maximized, but not bounded"),
        ("maximize recall of melanoma",
         "a class is named after the word class; did you mean 'recall of class melanoma'?"),
        ("maximize recall of class", "expected the name or the number of a class after 'of class'"),
        ("maximize recall of class -1", "expected the name or the number of a class after 'of class'"),
        ("maximize recall of class 2.5", "expected the name or the number of a class after 'of class'"),
        ('maximize recall of class "\\q"', 'cannot read the class "\\q"'),
        ("maximize macro", "expected a rate such as fpr or recall at the end"),
        ("maximize precision@k", FIRST), ("maximize precision at 2.5", FIRST), ("maximize precision at", FIRST),
        ("maximize p@5", "'p' is not a rate; did you mean 'precision in the first 5'?"),
        ("maximize R@k", "'R' is not a rate; did you mean 'recall in the first 5'?"),
        ("maximize recall in the first", "expected a whole number of rows, such as 5 at the end"),
        ("maximize recall in the first 5%", "expected a whole number of rows, such as 5, but found '5%'"),
        ("maximize hit where fpr <= 1%", "hit is about lists; did you mean 'hit in the first 5', or recall?"),
        ("minimize cost(5, 1)", COSTS), ("minimize cost(miss=5, miss=1)", COSTS), ("minimize cost()", COSTS),
        ("minimize cost(miss=5)", "expected ',' but found ')'"),
        ("minimize cost(miss 5, alarm=1)", "expected '=' but found '5'"),
        ("minimize cost(miss=, alarm=1)", "expected a cost or a column"),
        ("minimize fnr weighted by 3", "expected the name of a column after 'weighted by'"),
        ("minimize fnr where flagged <= 2 per 0", "expected a number of rows such as 10000 but found '0'"),
        ("minimize fnr where flagged <= 2 per 5%", "expected a number of rows such as 10000 but found '5%'"),
        ("minimize fnr where flagged <= 2% rows", "rows are a number of flagged rows, as in flagged <= 100 rows;"),
        ("minimize fnr where fpr <= x", "expected a number such as 1% or 0.01 but found 'x'"),
        ("minimize fnr where mcc.gap(sex) <= 1", "mcc has no gap between groups; use a rate such as recall"),
        ("minimize fnr where recall.gap(3) <= 1", "expected the name of a column of groups after '.gap('"),
        ("minimize fnr where recall.gap(", "expected the name of a column of groups after '.gap('"),
        ("minimize fnr where recall.gap sex", "expected '(' but found 'sex'"),
        ("minimize fnr where recall.gap(sex <= 1", "expected ')' but found '<='"),
        ("minimize fnr where recall.sex", "expected 'gap' but found 'sex'"),
        ("maximize f_score 2", "expected '(' but found '2'"),
        ("maximize f_score(2", "expected ')' but found the end"),
        ("maximize f0", "'f0' is not a rate; known are"),
        ("minimize zzzz", "'zzzz' is not a rate; known are fpr, fnr, recall, tnr, precision, npv, fdr, for, flagged, "
         "accuracy, error, jaccard, g_mean, mcc, kappa, balanced accuracy, lift, review, f_score"),
        ("minimize sensitivty", "unknown word 'sensitivty', did you mean 'sensitivity'?"),
        ("minimize fnr !", "cannot read '!'"),
        ("minimize fnr     !aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "cannot read '!aaaaaaaaaaaaaaaaaaa'"),
        ("minimize fnr zzz", "'zzz' is unexpected after fnr"),
        ("minimize fnr where fpr <= 1% adn", "unknown word 'adn', did you mean 'and'?"),
        ("minimize fnr where fpr <= 1e999999999%", "'1e999999999%' is too large a number"),
        ('minimize fnr where fpr.gap("\\q") <= 1', 'cannot read the column "\\q"'),
    ],
)  # fmt: skip
def test_every_word_of_a_refusal(text, says):
    with pytest.raises(BadAsk) as refusal:
        sp.ask(text)
    assert str(refusal.value).startswith(says)
    assert str(refusal.value).endswith(f" in the ask {text!r}{LIKE}")


def test_what_is_no_text_is_named():
    with pytest.raises(BadAsk) as refusal:
        sp.ask(None)
    assert str(refusal.value) == "an ask is a text such as 'minimize fnr where fpr <= 1%', got NoneType"


def test_a_metric_of_ones_own_goes_before_the_catalogue():
    own = sp.Metric("fpr", lambda tp, fp, fn, tn: fp)
    assert sp.ask("minimize fpr", [own]).objective == own
    assert sp.ask("minimize FPR", [own]).objective == own
