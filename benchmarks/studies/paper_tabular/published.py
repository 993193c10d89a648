"""Figures that others have published, with where they stand; never ours."""

from __future__ import annotations

#: Kumar, Narasimhan and Cotter, ICML 2021, Table 5: partial PR area over recall [0.95, 1], in percent, and its error.
IMPLICIT_TABLE_5 = {
    "letter": {"cross-entropy": (15.13, 0.86), "TFCO": (20.49, 0.43), "implicit": (23.04, 0.77)},
    "ijcnn1": {"cross-entropy": (21.18, 0.33), "TFCO": (26.14, 0.57), "implicit": (27.28, 0.58)},
    "adult": {"cross-entropy": (39.74, 0.29), "TFCO": (40.21, 0.38), "implicit": (40.34, 0.41)},
    "spambase": {"cross-entropy": (71.51, 1.73), "TFCO": (73.08, 1.70), "implicit": (73.48, 1.80)},
    "communities_crime": {"cross-entropy": (47.00, 0.94), "TFCO": (47.04, 0.97), "implicit": (47.03, 1.08)},
}
