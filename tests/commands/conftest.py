"""What the tests of commands start from: the loans on disk, and a run trained on them."""

from __future__ import annotations

import pytest

from doors import ASK
from setpoint import ask
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A directory to be in, with the loans as CSV and as Parquet."""
    loans().write_csv(tmp_path / "loans.csv")
    loans().write_parquet(tmp_path / "loans.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run():
    return fit_table(loans(), "default", ask(ASK), Settings(epochs=5))
