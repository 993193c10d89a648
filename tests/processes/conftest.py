"""One start of two processes and one of four serve all tests."""

import pytest

from processes.cases import CASES, OF_FOUR
from processes.fits import DEFAULT_OF_OWN, FITS, OWN
from processes.launch import launch
from processes.work import everything


@pytest.fixture(scope="session")
def two(tmp_path_factory):
    return launch(everything, 2, tmp_path_factory.mktemp("two"), 50, [*CASES], [*FITS])


@pytest.fixture(scope="session")
def four(tmp_path_factory):
    return launch(everything, 4, tmp_path_factory.mktemp("four"), 12, OF_FOUR, [OWN, DEFAULT_OF_OWN])
