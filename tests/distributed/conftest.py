"""One start of two processes and one of four serve all tests."""

import pytest
from distributed.launch import launch
from distributed.work import everything


@pytest.fixture(scope="session")
def two(tmp_path_factory):
    return launch(everything, 2, tmp_path_factory.mktemp("two"), 50)


@pytest.fixture(scope="session")
def four(tmp_path_factory):
    return launch(everything, 4, tmp_path_factory.mktemp("four"), 20)
