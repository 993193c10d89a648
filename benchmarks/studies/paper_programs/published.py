"""What the paper on linear programs published, with where it stands; never ours.

*Differentiable optimization of generalized nondecomposable functions using linear programs*, ICLR 2021 submission.
All in percent, one seed, without errors. "Ours" of the paper is `program` here.
"""

from __future__ import annotations

#: Its split of CIFAR-10 has so many training images, half of them in each half of the classes; 40,000 steps of 64.
TRAINING_IMAGES, SAMPLES_SEEN = 45_000, 40_000 * 64
#: Negatives per positive, by the percentage of positives that the paper names them by.
HALVES = {91: 0.1, 83: 0.2, 71: 0.4, 50: 1.0}
#: Table 1, AUC on halves of CIFAR-10, by the share of positives; PPD are the two algorithms of Liu et al.
TABLE_1 = {
    91: {"cross-entropy": 65.2, "PPD-SG": 69.8, "PPD-AdaGrad": 69.7, "program": 72.5},
    83: {"cross-entropy": 73.3, "PPD-SG": 73.9, "PPD-AdaGrad": 74.1, "program": 74.4},
    71: {"cross-entropy": 78.1, "PPD-SG": 79.1, "PPD-AdaGrad": 78.4, "program": 78.3},
    50: {"cross-entropy": 83.7, "PPD-SG": 82.6, "PPD-AdaGrad": 83.1, "program": 82.7},
}
#: Table 2, the program on Cat&Dog, by epsilon and the share of positives.
TABLE_2 = {
    0.1: {91: 71.3, 83: 77.0, 71: 84.4, 50: 87.3},
    0.01: {91: 78.6, 83: 81.3, 71: 85.6, 50: 87.8},
    0.001: {91: 65.9, 83: 71.3, 71: 71.8, 50: 76.1},
}
#: Table 3, STL10, by the share dropped of two of three groups of classes: one against all, and AUC-mu.
TABLE_3 = {
    90: {"cross-entropy": (66.9, 68.9), "program": (72.9, 76.1)},
    80: {"cross-entropy": (68.0, 69.6), "program": (72.5, 74.4)},
    60: {"cross-entropy": (74.8, 75.8), "program": (75.7, 77.7)},
    0: {"cross-entropy": (81.0, 82.2), "program": (82.7, 84.5)},
}
#: Table 4, F-score on halves of CIFAR-10, as many positives as negatives.
TABLE_4 = {"cross-entropy": 70.3, "CVXPY-SCS": 66.6, "AP-Perf": 66.7, "program": 72.6}


def images_at(level: int) -> float:
    """How many images are left to train on at a share of positives."""
    return TRAINING_IMAGES / 2 * (1 + HALVES[level])


def passes_at(level: int) -> float:
    """How many passes over these images the published steps are."""
    return SAMPLES_SEEN / images_at(level)
