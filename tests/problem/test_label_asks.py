"""Asks about several labels: their text, their parts, and what they refuse."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.commands.asks import read_asks
from setpoint.errors import BadAsk, BadProblem
from setpoint.problem.caution import cautions_of_ask
from setpoint.problem.certificate import Certificate, read_certificate
from setpoint.report.explained import certificate, meaning, rates

ASKS = ["minimize fnr where fpr <= 1%", "maximize recall where precision >= 90%", "minimize error", "maximize f1"]
NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=4, unique=True)


@given(names=NAMES, places=st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_the_text_reads_back_as_the_same_problem(names, places):
    problem = sp.ask({name: ASKS[place] for name, place in zip(names, places)})
    assert sp.ask(str(problem)) == problem
    assert problem.labels == tuple(names)
    assert [str(own) for own in problem.each.values()] == [str(sp.ask(ASKS[place])) for _, place in zip(names, places)]


def test_one_ask_for_every_label_is_the_same_as_one_ask_each():
    whole = sp.ask("minimize fnr where fpr <= 1% for each of a, b")
    assert whole == sp.ask({"a": ASKS[0], "b": ASKS[0]}) == sp.ask(f"a: {ASKS[0]}; b: {ASKS[0]}")
    assert whole != sp.ask({"b": ASKS[0], "a": ASKS[0]})
    assert whole.resolved(["b", "a"]) == sp.ask({"b": ASKS[0], "a": ASKS[0]})
    assert whole.promise == "fpr <= 1% for each of a, b"
    assert [str(c) for c in whole.constraints] == ["fpr of label a <= 1%", "fpr of label b <= 1%"]


def test_the_objective_is_the_mean_in_its_natural_direction_or_the_mean_loss():
    counts = torch.tensor([[[8.0, 1.0, 2.0, 9.0], [3.0, 2.0, 1.0, 8.0]]])
    same = sp.ask("maximize recall for each of a, b")
    assert (str(same.objective), same.maximize) == ("mean recall", True)
    assert float(same.objective(counts)) == pytest.approx((0.8 + 0.75) / 2)
    mixed = sp.ask({"a": "maximize recall", "b": "minimize fpr"})
    assert (str(mixed.objective), mixed.maximize) == ("mean loss", False)
    assert float(mixed.objective(counts)) == pytest.approx((0.2 + 0.2) / 2)
    assert str(sp.ask({"a": "minimize fnr", "b": "minimize fpr"}).objective) == "mean objective"


@pytest.mark.parametrize(
    "ask",
    [
        "minimize error where recall.gap(site) <= 5%",
        "maximize recall over fpr in [0%, 5%]",
        "minimize review where precision >= 99%",
        "maximize macro recall",
        "maximize recall weighted by amount",
        "maximize recall in the first 5",
        "maximize precision where flagged == 100 rows",
    ],
)
def test_asks_without_one_threshold_are_refused_by_name(ask):
    with pytest.raises(BadProblem, match="label 'b' asks"):
        sp.ask({"a": ASKS[0], "b": ask})


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ("a: minimize fnr; a: minimize fnr", "label 'a' has two asks"),
        ("minimize fnr for each of a, a", "named twice"),
        ("minimize fnr for each of a", "two labels or more"),
        ("minimize fnr for each of", "expected the name of a label"),
        ("a: minimize fnr b: minimize fnr", "unexpected"),
        ({"a": "minimize fnr"}, "two labels or more"),
        ({1: "minimize fnr", "b": "minimize fnr"}, "labels have names"),
    ],
)
def test_odd_asks_of_labels_are_refused(ask, said):
    with pytest.raises(BadProblem, match=said):
        sp.ask(ask)


FILES = {
    "flat.yaml": f"# two labels\na: {ASKS[0]}\n\n'b c': {ASKS[1]}\n",
    "under.yml": f"labels:\n  a: {ASKS[0]}\n  b c: {ASKS[1]}\n",
    "flat.json": f'{{"a": "{ASKS[0]}", "b c": "{ASKS[1]}"}}',
    "under.json": f'{{"labels": {{"a": "{ASKS[0]}", "b c": "{ASKS[1]}"}}}}',
}


@pytest.mark.parametrize("name", FILES)
def test_asks_are_read_from_files(name, tmp_path):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    assert read_asks(str(tmp_path / name)) == sp.ask({"a": ASKS[0], "b c": ASKS[1]})


@pytest.mark.parametrize("text", [f"ask: {ASKS[0]}\nlabels: [a, b]\n", f'{{"ask": "{ASKS[0]}", "labels": ["a", "b"]}}'])
def test_one_ask_and_a_list_of_labels_are_read_from_files(text, tmp_path):
    path = tmp_path / ("asks.json" if text.startswith("{") else "asks.yaml")
    path.write_text(text, encoding="utf-8")
    assert read_asks(str(path)) == sp.ask(f"{ASKS[0]} for each of a, b")


@pytest.mark.parametrize("text", ["a minimize fnr", "a: minimize fnr\na: minimize fnr", "- a", "", "[1, 2]"])
def test_files_without_asks_are_refused(text, tmp_path):
    (tmp_path / "asks.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BadProblem):
        read_asks(str(tmp_path / "asks.yaml"))
    with pytest.raises(BadAsk, match="cannot be read"):
        read_asks(str(tmp_path / "none.json"))


def test_a_certificate_of_another_promise_is_not_read():
    problem = sp.ask("minimize fnr where fpr <= 1% for each of a, b")
    kept = vars(Certificate(problem.promise, 0.95, 300, "by rank"))
    assert read_certificate(kept, problem) == Certificate(**kept)
    with pytest.raises(TypeError, match="not what was asked"):
        read_certificate({**kept, "statement": "fpr <= 1% for each of a, c"}, problem)


def test_cautions_and_explanations_name_the_label():
    problem = sp.ask({"a": ASKS[0], "b": "maximize recall"})
    assert [caution.sentence.startswith("label 'b': ") for caution in cautions_of_ask(problem)] == [True]
    assert "For a: Make fnr as low as it can be" in meaning(problem)
    assert {"mean loss", "fnr", "fpr", "recall"} == set(rates(problem))
    refusal, needs = certificate(sp.ask(f"{ASKS[0]} for each of a, b, c"))
    # 1 - 0.05 / 3 per label: log(0.05 / 3) / log(0.99), rounded up.
    assert (refusal, [need.samples[0.95] for need in needs]) == (None, [408, 408, 408])
