"""I get labels every month: is the promise still kept? Look as often as you like.

A watch adds up the evidence of all looks, so that a promise that is kept is called broken at most once in twenty
streams, however often you look. Here the scores drift from the fifth month on.
"""

import numpy as np

import setpoint as sp

rng = np.random.default_rng(0)


def month(drift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of a month; drift moves the scores of negatives up."""
    labels = rng.random(4000) < 0.1
    return rng.normal(size=4000) + np.where(labels, 2.5, drift), labels


point = sp.calibrate("minimize fnr where fpr <= 2%", *month(), confidence=0.95)
print(point.certificate)
watch = point.watch()
for number in range(1, 9):
    scores, labels = month(drift=0.25 * max(0, number - 4))
    watch.update(scores, labels)
    state = "BROKEN" if watch.broken else "holds" if watch.holds else "open"
    print(f"month {number}: fpr {point.judge(scores, labels).rates['fpr']:.2%}, promise: {state}")
