"""The language word by word, and the sentence that each misspelling gets."""

import pytest

import setpoint as sp
from setpoint.errors import BadAsk
from setpoint.problem.language import SYNONYMS

LIKE = "; an ask reads like 'minimize fnr where fpr <= 1%'"


@pytest.mark.parametrize(
    ("word", "rate"),
    [
        ("tpr", sp.recall), ("sensitivity", sp.recall), ("specificity", sp.tnr), ("ppv", sp.precision),
        ("iou", sp.jaccard), ("fall_out", sp.fpr), ("miss_rate", sp.fnr), ("coverage", sp.flagged),
        ("selected", sp.flagged), ("f1", sp.f_score(1)), ("F2", sp.f_score(2)), ("f_score(3)", sp.f_score(3)),
        ("F_SCORE( 50% )", sp.f_score(0.5)), ("Recall", sp.recall), ("MCC", sp.mcc),
    ],
)  # fmt: skip
def test_other_words_for_a_rate(word, rate):
    assert sp.ask(f"maximize {word}").objective == rate


def test_every_synonym_is_tried_above():
    assert set(SYNONYMS) == {
        "tpr", "sensitivity", "specificity", "ppv", "iou", "fall_out", "miss_rate", "coverage", "selected",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "maximize"),
    [("minimize", False), ("minimise", False), ("min", False), ("maximize", True), ("MAXIMISE", True), ("max", True)],
)
def test_the_verbs(verb, maximize):
    assert sp.ask(f"{verb} fnr").maximize is maximize


@pytest.mark.parametrize(
    ("written", "relation"), [("<=", "<="), ("≤", "<="), (">=", ">="), ("≥", ">="), ("==", "=="), ("=", "==")]
)
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
        ("minimize fnr where fpr > 1%", "fpr > ...: bounds are never strict; write >="),
        ("minimize fnr where fpr <= x", "expected a number such as 1% or 0.01 but found 'x'"),
        ("minimize fnr where mcc.gap(sex) <= 1", "mcc has no gap between groups; use a rate such as recall"),
        ("minimize fnr where recall.gap(3) <= 1", "expected the name of a column of groups after '.gap('"),
        ("minimize fnr where recall.gap(", "expected the name of a column of groups after '.gap('"),
        ("minimize fnr where recall.gap sex", "expected '(' but found 'sex'"),
        ("minimize fnr where recall.gap(sex <= 1", "expected ')' but found '<='"),
        ("minimize fnr where recall.sex", "expected 'gap' but found 'sex'"),
        ("maximize f_score 2", "expected '(' but found '2'"),
        ("maximize f_score(2", "expected ')' but found the end"),
        ("maximize f0", "unknown word 'f0', did you mean 'f1'?"),
        ("minimize zzzz", "'zzzz' is not a rate; known are fpr, fnr, recall, tnr, precision, flagged, accuracy, error, "
         "jaccard, g_mean, mcc, kappa, f_score"),
        ("minimize sensitivty", "unknown word 'sensitivty', did you mean 'sensitivity'?"),
        ("minimize fnr !", "cannot read '!'"),
        ("minimize fnr     !aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "cannot read '!aaaaaaaaaaaaaaaaaaa'"),
        ("minimize fnr zzz", "'zzz' is unexpected after fnr"),
        ("minimize fnr adn", "unknown word 'adn', did you mean 'and'?"),
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
