"""FLAML on one table, in an environment of its own: `python by_flaml.py FOLDER SECONDS`.

The seconds are those of the processor, with one thread: on a busy machine the wall gives FLAML less than its share.
"""

from __future__ import annotations

import json
import logging
import sys
import time

import numpy as np
import pandas as pd
from flaml import AutoML


def main() -> None:
    folder, seconds = sys.argv[1], float(sys.argv[2])
    table, rows = pd.read_pickle(f"{folder}/table.pickle"), np.load(f"{folder}/rows.npz")
    x, y = table.drop(columns="y"), table["y"].to_numpy()
    logging.disable(logging.WARNING)
    begun, start = time.time(), time.process_time()
    # FLAML asks this clock how much of its budget is left.
    time.time = lambda: begun + time.process_time() - start
    model = AutoML()
    model.fit(
        x.iloc[rows["both"]], y[rows["both"]], task="classification", metric="log_loss", time_budget=seconds,
        seed=0, verbose=0, n_jobs=1,
    )  # fmt: skip
    spent = time.process_time() - start
    parts = ("held_out", "calibration", "test")
    np.savez(f"{folder}/scores.npz", **{p: model.predict_proba(x.iloc[rows[p]])[:, 1] for p in parts})
    print(json.dumps({"seconds": spent, "best": model.best_estimator}))


if __name__ == "__main__":
    main()
