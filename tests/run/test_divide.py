from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.data.split import split_by_time, split_clusters
from setpoint.errors import BadSetting, BadTable, TooFewSamples
from setpoint.run.divide import divide
from setpoint.run.settings import PARTS, Settings
from setpoint.run.table import fit_table

SHARES = (0.5, 0.15, 0.15, 0.2)


@given(st.integers(0, 2**31), st.integers(40, 80))
def test_every_row_is_in_one_part_with_its_cluster(seed, n_clusters):
    draw = np.random.default_rng(seed)
    clusters = torch.from_numpy(np.concatenate([np.arange(n_clusters), draw.integers(0, n_clusters, 300)]))
    labels = torch.from_numpy(draw.integers(0, 2, len(clusters)))
    try:
        parts = split_clusters(labels, SHARES, seed, clusters)
    except TooFewSamples:
        return
    assert torch.cat(parts).sort().values.tolist() == list(range(len(clusters)))
    seen = [set(clusters[rows].tolist()) for rows in parts]
    assert sum(map(len, seen)) == n_clusters
    assert all((labels[rows] == kind).any() for rows in parts for kind in (0, 1))


@given(st.lists(st.integers(0, 30), min_size=200, max_size=300))
def test_parts_by_time_lie_one_behind_the_other_and_ties_stay_together(times):
    times, labels = torch.tensor(times), torch.arange(len(times)) % 2
    try:
        parts = split_by_time(labels, SHARES, times)
    except TooFewSamples:
        return
    assert torch.cat(parts).sort().values.tolist() == list(range(len(times)))
    for earlier, later in pairwise(parts):
        assert times[earlier].max() < times[later].min()


def test_shares_of_distinct_times_are_kept():
    times = torch.randperm(1000, generator=torch.Generator().manual_seed(0)).double()
    assert [len(rows) for rows in split_by_time(torch.arange(1000) % 2, SHARES, times)] == [500, 150, 150, 200]


def test_a_part_without_a_class_is_refused_by_name():
    with pytest.raises(TooFewSamples, match="part 1 of 2 has 50 rows by its time, and none of the positive class"):
        split_by_time(torch.arange(100) // 50, (0.5, 0.5), torch.arange(100))
    with pytest.raises(TooFewSamples, match="part 1 of 2 has 1 rows by its clusters, and none of"):
        split_clusters(torch.tensor([0, 0, 1, 1]), (0.5, 0.5), 0, torch.tensor([0, 1, 2, 2]))


def table(rows=600):
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, rows)
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2022, 12, 31), eager=True)
    x, patients = y + draw.normal(size=rows), [f"p{row // 3}" for row in range(rows)]
    return pl.DataFrame({"patient": patients, "day": days.sample(rows, seed=0), "x": x, "y": y})


def on_days(days):
    return table().with_columns(day=pl.Series(days))


def test_a_table_by_clusters_is_certified_over_them():
    run = fit_table(table(), "y", sp.ask("minimize fnr where fpr <= 20%"), Settings(cluster="patient"))
    certificate = run.chosen.point.certificate
    assert certificate.statement == "fpr <= 20%, for a random row of a random cluster"
    assert certificate.samples <= 30
    assert any(note.startswith("rows of one 'patient' stay in one part: 100 train") for note in run.notes)
    assert ("patient", "--cluster names it") in run.schema.dropped
    assert run.to_dict()["settings"]["cluster"] == "patient"


def test_a_table_by_time_is_judged_on_its_last_rows():
    frame = table()
    divided = divide(frame, torch.tensor(frame["y"].to_list()), Settings(time="day"))
    ends = [(frame["day"][rows.numpy()].min(), frame["day"][rows.numpy()].max()) for rows in divided.rows.values()]
    assert list(divided.rows) == list(PARTS)
    assert all(before[1] < after[0] for before, after in pairwise(ends))
    assert divided.notes[0].startswith(f"rows are split by 'day': train {ends[0][0]} to {ends[0][1]}, held-out")


@pytest.mark.parametrize(
    ("frame", "settings", "says"),
    [
        (
            on_days(["x"] * 600),
            {"time": "day"},
            "--time 'day' holds words such as 'x'; rows are split by dates, times or",
        ),
        (on_days([True, False] * 300), {"time": "day"}, "--time 'day' holds booleans; rows are split by dates"),
        (
            on_days(["2024-01-01"] * 599 + ["soon"]),
            {"time": "day"},
            "--time 'day' holds 'soon' beside dates or times without a time zone such as '2024-01-01'; write every row",
        ),
        (on_days(["01.02.2024"] * 99 + ["2024-01-01"] * 501), {"time": "day"}, "holds '01.02.2024' beside dates"),
        (
            on_days(["2024-01-01T12:00"] * 599 + ["2024-01-01T12:00Z"]),
            {"time": "day"},
            "holds '2024-01-01T12:00Z' besi",
        ),
        (
            on_days(["1/1/2024", "2/1/2024"] * 300),
            {"time": "day"},
            "such as '1/1/2024', of which the day or the month may",
        ),
        (on_days(["2024-01-01", "2024-01-02"] * 300), {"time": "day"}, "holds 2 different values, too few for 4 parts"),
        (table(), {"time": "dya"}, "--time 'dya' is no column; did you mean 'day'?$"),
        (table().with_columns(day=pl.Series([None, *range(599)])), {"time": "day"}, "missing in 1 of 600 rows"),
        (table().with_columns(patient=pl.Series([None, *range(599)])), {"cluster": "patient"}, "needs its cluster"),
        (table(), {"cluster": "patients"}, "--cluster 'patients' is no column; did you mean"),
        (table(), {"time": "y"}, "--time 'y' is the column to predict; name the column that says when"),
    ],
)
def test_columns_that_cannot_split_are_refused(frame, settings, says):
    with pytest.raises(BadTable, match=says.replace("?", r"\?")):
        fit_table(frame, "y", sp.ask("minimize error"), Settings(**settings))


def test_two_ways_to_split_are_refused():
    with pytest.raises(BadSetting, match="give one of them"):
        Settings(cluster="a", time="b")
    with pytest.raises(BadSetting, match="leave it out"):
        Settings(cluster="a", over_splits=True, ensemble=3)
