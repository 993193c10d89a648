"""I have a review team: decide what is clear, and send people as few of the unclear rows as possible.

Two cuts divide the rows: above the upper cut a row is flagged, below the lower cut it passes, between them people look.
The bounds say how right the automatic decisions must be.
"""

import numpy as np

import setpoint as sp

rng = np.random.default_rng(0)
labels = rng.random(12_000) < 0.2
scores = rng.normal(size=12_000) + 3 * labels  # put your own here

ask = "minimize review where precision >= 97% and npv >= 99%"
point = sp.calibrate(ask, scores, labels, confidence=0.95)
decided = point.predict(scores)  # 1 flagged, 0 passed, -1 for people
for value, word in ((1, "flagged"), (0, "passed"), (-1, "sent to people")):
    print(f"{word}: {(decided == value).mean():.1%} of rows")
print(point.certificate)

for budget in ("2%", "5%", "10%"):  # how few errors does a team of a given size allow?
    least = sp.evaluate(f"minimize error where review <= {budget}", scores, labels)
    print(f"review at most {budget} of rows: {least.rates['error']:.2%} wrong among all rows")
