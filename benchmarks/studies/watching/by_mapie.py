"""MAPIE's monitor on streams of counts; run in an environment of its own, as a script.

    python by_mapie.py < streams.json > alarms.json

Input: {"bound": 0.01, "rows": 1000, "streams": [[flagged rows per month, ...], ...]}. Of MAPIE's level half is for its
reference, which a threshold that is given does not need: 0.1 gives 0.05 to the stream, as the watch has.
"""

import json
import sys
import time

import numpy as np
from mapie.exchangeability_testing import RiskMonitoring


def alarm(counts, rows, bound, seed):
    """The month of the alarm, 0 if there is none, and the seconds of processor time per look."""
    draw, spent = np.random.default_rng(seed), 0.0
    monitor = RiskMonitoring(risk="fpr", test_level=0.1, threshold=bound, warn=False)
    for month, (flagged, size) in enumerate(zip(counts, rows), 1):
        predicted = draw.permutation(np.arange(size) < flagged).astype(int)
        start = time.process_time()
        monitor.update(np.zeros(size, dtype=int), predicted)
        spent += time.process_time() - start
        if monitor.harmful_shift_detected:
            return month, spent / month
    return 0, spent / len(counts)


given = json.load(sys.stdin)
found = [alarm(c, r, given["bound"], s) for s, (c, r) in enumerate(zip(given["streams"], given["rows"]))]
json.dump({"months": [m for m, _ in found], "seconds": sum(s for _, s in found) / len(found)}, sys.stdout)
