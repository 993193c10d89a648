"""I have several classes: find 90 % of the class that matters, and be wrong as seldom as possible over all.

For K classes a decision is a shift per class: the shifted score that is largest wins. `calibrate` finds the shifts and
certifies bounds on single classes.
"""

import numpy as np

import setpoint as sp

rng = np.random.default_rng(0)
names = ["benign", "atypical", "melanoma"]
classes = rng.choice(3, 6000, p=[0.8, 0.15, 0.05])
scores = rng.normal(size=(6000, 3)) + 2.0 * np.eye(3)[classes] + [1.5, 0.0, -1.5]  # put your model's scores here
labels = [names[k] for k in classes]

plain = scores.argmax(1)
print(f"largest score wins: {(plain != classes).mean():.1%} wrong, "
      f"{(plain[classes == 2] == 2).mean():.1%} of melanoma found")  # fmt: skip

ask = "minimize error where recall of class melanoma >= 90%"
point = sp.calibrate(ask, scores, labels, classes=names, confidence=0.95)
print(f"with shifts: {point.rates['error']:.1%} wrong, {point.rates['recall of class melanoma']:.1%} of melanoma found")
print("shifts:", {name: round(shift, 2) for name, shift in point.threshold.items()})
print(point.certificate)
