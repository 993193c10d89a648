"""`setpoint evaluate`: a kept promise, a broken one, and tables without labels."""

from __future__ import annotations

import dataclasses
import json

import polars as pl
import pytest
import scipy
import torch

from doors import FIT, main_ok
from setpoint.cli import main
from setpoint.data.sketch import row_hashes, share_known, sketch_of
from setpoint.problem.point import OperatingPoint
from tables import loans


@dataclasses.dataclass(frozen=True)
class BoundCheck:
    bound: str
    rate: float
    samples: tuple[int, ...]
    p_value: float | None
    group: str | None = None


@dataclasses.dataclass(frozen=True)
class Check:
    """The answer of `OperatingPoint.check`, by scipy's exact test, for one bound on fpr."""

    bounds: tuple[BoundCheck, ...]
    level: float

    @property
    def p_value(self):
        return self.bounds[0].p_value

    @property
    def holds(self):
        return self.p_value > self.level

    def __str__(self):
        return (
            f"{'no evidence that the promise is' if self.holds else 'the promise is'} broken (p = {self.p_value:.3g})"
        )


@pytest.fixture
def checks(monkeypatch):
    """`OperatingPoint.check` where it does not exist yet."""

    def check(self, scores, labels, *, groups=None, level=0.05):
        flagged = self.predict(scores)[labels == 0]
        p_value = scipy.stats.binomtest(int(flagged.sum()), len(flagged), self.problem.constraints[0].bound, "greater")
        row = BoundCheck(
            str(self.problem.constraints[0]), float(flagged.float().mean()), (len(flagged),), p_value.pvalue
        )
        return Check((row,), level)

    if not hasattr(OperatingPoint, "check"):
        monkeypatch.setattr(OperatingPoint, "check", check, raising=False)


def test_evaluate_tells_a_kept_promise_from_a_broken_one(table, capsys, checks):
    main_ok(*FIT[:-2], "--confidence", "0.9", "--quiet")
    loans(900, seed=1).write_csv("later.csv")
    main_ok("evaluate", "run", "later.csv")
    heard = capsys.readouterr().out
    assert "No evidence that the promise is broken (p = " in heard
    assert "The level of 5% is per look" in heard
    assert "certified: fpr <= 20%, with confidence 90%" in heard
    assert "it is a yardstick and no threshold to run at" in heard
    main_ok("evaluate", "run", "later.csv", "--json")
    answer = json.loads(capsys.readouterr().out)
    # Independently: the rates of the decisions that predict writes.
    main_ok("predict", "run", "later.csv", "--out", "decisions.csv")
    decisions = pl.read_csv("decisions.csv")["decision"].to_numpy()
    bad = loans(900, seed=1)["default"].to_numpy() == "yes"
    flagged, good = int(decisions[~bad].sum()), int((~bad).sum())
    assert answer["rates"]["fpr"] == pytest.approx(flagged / good)
    assert answer["objective"] == pytest.approx(1 - decisions[bad].mean())
    assert (answer["holds"], answer["rows"], answer["positives"]) == (True, 900, int(bad.sum()))
    assert answer["bounds"][0]["p_value"] == pytest.approx(
        scipy.stats.binomtest(flagged, good, 0.2, alternative="greater").pvalue
    )
    assert answer["best"]["objective"] <= answer["objective"] + 1e-9 or answer["rates"]["fpr"] > 0.2

    # Now everyone asks for more, as bad debtors did: good ones are flagged by the score.
    loans(900, seed=1).with_columns(amount=pl.col("amount") + 1500).write_csv("inflation.csv")
    for arguments in ([], ["--quiet"], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", "run", "inflation.csv", *arguments])
        assert ended.value.code == 1
        heard = capsys.readouterr()
        assert (heard.err == "") == ("--quiet" in arguments)
        assert all("outside the range that training saw" in line for line in heard.err.splitlines())
        assert ("--quiet" in arguments) == (heard.out == "")
    assert json.loads(heard.out)["holds"] is False
    # What counts as evidence is the level's to say.
    loans(900, seed=1).with_columns(amount=pl.col("amount") + 450).write_csv("drift.csv")
    with pytest.raises(SystemExit):
        main(["evaluate", "run", "drift.csv", "--json"])
    p_value = json.loads(capsys.readouterr().out)["p_value"]
    assert 1e-9 < p_value < 0.6
    for level, code in ((p_value / 1.5, 0), (p_value * 1.5, 1)):
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", "run", "drift.csv", "--quiet", "--level", str(level)])
        assert ended.value.code == code


def test_evaluate_needs_labels(table, capsys, checks):
    main_ok(*FIT, "--quiet")
    loans().drop("default").write_csv("unlabelled.csv")
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "run", "unlabelled.csv"])
    heard = capsys.readouterr()
    assert (ended.value.code, heard.out) == (2, "")
    assert "no column 'default'" in heard.err


def test_the_training_table_is_known_again(table, capsys):
    main_ok(*FIT, "--solver", "cross-entropy", "--out", "trained")
    loans().reverse().drop("currency", "id").write_parquet("turned.parquet")
    loans(400, seed=9).write_csv("new.csv")
    pl.concat([loans(100), loans(400, seed=9)]).write_csv("few.csv")
    for file, said in (
        ("loans.csv", "loans.csv is the very table that the run was trained on"),
        ("turned.parquet", "about 80% of the rows of turned.parquet set the parameters or the threshold of the run"),
        ("new.csv", None),
        ("few.csv", None),
    ):
        for stream in ([], ["--stream"]):
            capsys.readouterr()
            with pytest.raises(SystemExit):
                main(["evaluate", "trained", file, "--json", *stream])
            told = [c for c in json.loads(capsys.readouterr().out)["warnings"] if c["code"] == "evaluated-on-training"]
            assert len(told) == (said is not None)
            # A file that is read in chunks is known by its rows, since the training hashed the table in memory.
            assert said is None or said in told[0]["sentence"] or stream


def test_rows_that_repeat_each_other_are_not_taken_for_those_of_training():
    rows = torch.randint(0, 2, (500, 3), generator=torch.Generator().manual_seed(0)).float()
    assert sketch_of(row_hashes(rows, rows[:, 0])) == ()
    own, other = (torch.randn(3000, 4, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    labels = torch.arange(3000) % 2
    sketch = sketch_of(row_hashes(own, labels))
    assert len(sketch) == 512
    assert share_known(row_hashes(own.flip(0), labels.flip(0)), sketch) == 1
    assert share_known(row_hashes(other, labels), sketch) == 0
    mixed = torch.cat([own[:1500], other[:1500]])
    assert share_known(row_hashes(mixed, labels), sketch) == pytest.approx(0.5, abs=0.1)
    assert share_known(row_hashes(own, 1 - labels), sketch) == 0
