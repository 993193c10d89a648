"""What the paper on critical classes published, with where it stands; never ours.

Sangalli, Erdil, Hoetker, Donati and Konukoglu, NeurIPS 2021. All in percent, of single tables without errors.
"""

from __future__ import annotations

COLUMNS = ("error @ 80% TPR", "error @ 90% TPR", "accuracy")
#: Table 4, long-tailed CIFAR-10: by imbalance and base loss, alone, with constraint (6), and with constraint (7).
TABLE_4 = {
    100: {
        "CE": ((29.80, 34.67, 70.35), (28.89, 33.93, 70.90), (29.53, 34.09, 71.30)),
        "FL": ((32.21, 36.47, 69.20), (29.59, 34.94, 69.74), (30.50, 35.63, 69.47)),
        "CB-CE": ((31.04, 33.44, 72.90), (27.89, 30.27, 72.10), (27.84, 31.97, 72.09)),
        "LDAM": ((26.57, 29.86, 71.80), (25.73, 28.52, 72.86), (24.76, 28.91, 73.32)),
    },
    200: {
        "CE": ((37.81, 42.37, 64.03), (36.14, 39.90, 65.13), (35.10, 39.19, 64.35)),
        "FL": ((38.50, 42.21, 62.90), (36.87, 41.87, 64.23), (36.27, 40.43, 64.43)),
        "CB-CE": ((35.11, 39.13, 65.77), (33.09, 35.44, 65.34), (33.72, 36.86, 66.04)),
        "LDAM": ((34.41, 45.72, 65.87), (31.94, 37.41, 65.65), (31.02, 36.09, 67.41)),
    },
}  # fmt: skip
