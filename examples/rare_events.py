"""Fraud in card payments: how much of it is found if one honest payment in a thousand may be stopped?

`payments` makes them so that linear cross-entropy and LightGBM's cut at 0.5 fail: an illustration, no evidence. 2 % are
fraud (by night; failed logins to new accounts), 30 % are honest with half of a pattern, 0.5 % look like fraud by night.

    python examples/rare_events.py run setpoint
"""

import sys

import lightgbm
import numpy as np
import polars as pl

import setpoint as sp
from setpoint.commands.show import grid, progress
from setpoint.commands.terminal import console, say
from setpoint.data.split import split
from setpoint.report.of_run import write_report
from setpoint.report.verdict import first_line
from setpoint.run.artefact import check_place, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table

ASK, SETTINGS = "maximize recall where fpr <= 0.1%", Settings(model="auto", confidence=0.95)


def payments(rows: int = 60_000, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    fraud, odd = rng.random(rows) < 0.02, rng.random(rows)
    night, takeover = fraud & (odd < 0.5) | ~fraud & (odd > 0.995), fraud & (odd >= 0.5)
    shopper, forgetful, newcomer = (~fraud & (odd > low) & (odd < low + 0.1) for low in (0.0, 0.1, 0.2))
    hour = np.where(night, 4, np.where(shopper, 14, 24)) * rng.random(rows) + 8 * shopper
    amount = np.exp(rng.normal(3.2, 0.8, rows) + 3.2 * (night | shopper))
    days = np.where(takeover | newcomer, rng.exponential(10.0, rows), 60 + rng.exponential(900.0, rows))
    failed = rng.poisson(np.where(takeover | forgetful, 6.0, 0.05))
    table = {"amount": amount.round(2), "hour": hour.astype(int), "days": days.astype(int), "failed_logins": failed}
    return pl.DataFrame({**table, "fraud": fraud.astype(int)})


def main() -> None:
    (place, tool), frame, screen = [*sys.argv[1:], *("run", "setpoint")[len(sys.argv) - 1 :]], payments(), console()
    with progress(console(stderr=True)) as on_epoch:
        run = fit_table(frame, "fraud", sp.ask(ASK), SETTINGS, on_row=on_epoch)
    x, y = frame.drop("fraud").to_numpy(), frame["fraud"].to_torch()
    *seen, test = split(y, SETTINGS.shares, SETTINGS.seed)
    rows, y, fraud = np.concatenate(seen), y.numpy(), y.numpy()[test] == 1
    flagged = lightgbm.LGBMClassifier(verbose=-1, random_state=0).fit(x[rows], y[rows]).predict(x[test]) == 1
    both = [one.judged("test").rates for one in run.runs]
    found = [(name, own["recall"], own["fpr"]) for name, own in zip(("setpoint", "cross-entropy, linear"), both)]
    found += [("LightGBM at 0.5", flagged[fraud].mean(), flagged[~fraud].mean())]
    told = [[name, f"{recall:.1%}", f"{fpr:.3%}", "yes" if fpr <= 0.001 else "NO"] for name, recall, fpr in found]
    screen.print(grid([f"{len(test):,} test rows", "fraud found", "honest stopped", "at most 0.1%"], told))
    (page,) = write_report(save_run(check_place(place, force=True), run, force=True), data=frame)
    own = f'{tool} fit yours.csv --target COLUMN --ask "{ASK}" --out mine && {tool} report mine --open'
    say(screen, *first_line(run), f"Open {page} for the report. With your own file and the column to predict:", own)


main()
