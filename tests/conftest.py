"""Settings of the whole suite: one thread per process, one seed per test, and hypothesis without a clock.

In CI the cases that hypothesis makes are the same every time: what lands must not depend on luck. Elsewhere they are
new with every run, which is how the rare ones are found.

`make test` leaves out the tests that are marked `slow`, and tries each law on a few cases (the profile "quick");
`make test-all` runs the slow tests too, and each law on all its cases. All tests in the folders of SLOW are slow;
elsewhere a test or a file carries the mark itself.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path

# Before torch is loaded, and for the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

from chromium import browser  # noqa: F401
from marks import ALL_CASES

# Features of encoders are kept on disk: here, not in the home of whoever runs the tests.
_KEPT = tempfile.TemporaryDirectory(prefix="setpoint-tests-")
os.environ["SETPOINT_CACHE"] = _KEPT.name
torch.set_num_threads(1)
for profile, examples in (("house", ALL_CASES), ("quick", ALL_CASES // 10)):
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("house")

TESTS = Path(__file__).parent
#: Several processes, and the studies.
SLOW = {"processes", "benchmarks"}


def pytest_collection_modifyitems(items):
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in SLOW:
            item.add_marker(pytest.mark.slow)
        if folder == "processes" or "browser" in item.fixturenames:
            # Started once for all their tests, so on one worker.
            item.add_marker(pytest.mark.xdist_group(folder))


def pytest_runtest_setup(item):
    """Every test starts from the same random state, whichever tests ran before it in this process."""
    torch.manual_seed(0)


def pytest_terminal_summary(terminalreporter):
    """Names what was skipped or was expected to fail, with the reason: each file and reason once."""
    reasons = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reasons["skipped", report.nodeid.split("::")[0], report.longrepr[2].removeprefix("Skipped: ")] += 1
    for report in terminalreporter.stats.get("xfailed", []):
        reasons["expected to fail", report.nodeid.split("::")[0], report.wasxfail.removeprefix("reason: ")] += 1
    if reasons:
        terminalreporter.section("skipped, or expected to fail")
    for (what, file, reason), times in sorted(reasons.items()):
        terminalreporter.write_line(f"{times} {what} in {file}: {reason}")
