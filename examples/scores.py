"""I have scores: a threshold with a promise, and a page about it, for any model.

You need one score and one label per row, of rows that the model was not trained on. `calibrate` with `confidence=`
finds the best threshold that keeps the bound on new rows with that probability. `report` splits the rows itself: half
of them set the threshold, half judge it.
"""

import numpy as np

import setpoint as sp

ask = "minimize fnr where fpr <= 1%"
rng = np.random.default_rng(0)
labels = rng.random(10_000) < 0.1
scores = rng.normal(size=10_000) + 2.5 * labels  # put your own here

point = sp.calibrate(ask, scores, labels, confidence=0.95)
print(f"flag rows above {point.threshold:.3f}: {point.rates['fnr']:.1%} of positives are missed")
print(point.certificate)

bare = sp.calibrate(ask, scores, labels)
print(f"without a promise: above {bare.threshold:.3f}, {bare.rates['fnr']:.1%} missed")

page = sp.report(ask, scores, labels, name="my model")
print(f"on rows that set nothing: {page.judged.rates['fpr']:.2%} of negatives flagged")
page.save("report.html")
point.save("point.json")  # sp.OperatingPoint.load reads it, where the model runs
