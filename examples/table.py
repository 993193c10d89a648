"""I have a table: train, certify, look, decide, all from the command line.

A CSV, Parquet, Arrow or JSON-lines file with one column to predict is enough. The same four commands work on your file;
the table here is made on the spot.
"""

import subprocess
import sys

import numpy as np
import polars as pl

rng = np.random.default_rng(0)
late = rng.random(4000) < 0.25
table = {"income": np.exp(rng.normal(8 - 0.8 * late, 0.6)).round(), "age": rng.normal(45 - 5 * late, 11).round()}
table["job"] = np.where(rng.random(4000) < 0.4 + 0.3 * late, "temporary", "permanent")
pl.DataFrame({**table, "late": np.where(late, "yes", "no")}).write_csv("loans.csv")


def setpoint(*words: str) -> None:
    """Run a command as you would type it."""
    print("$ setpoint", *(f'"{word}"' if " " in word else word for word in words), flush=True)
    subprocess.run([sys.executable, "-m", "setpoint", *words], check=True)


setpoint("fit", "loans.csv", "--target", "late", "--ask", "minimize fnr where fpr <= 10%", "--model", "linear")
setpoint("report", "run")
setpoint("predict", "run", "loans.csv", "--out", "decisions.csv", "--quiet")
setpoint("evaluate", "run", "loans.csv", "--quiet")
