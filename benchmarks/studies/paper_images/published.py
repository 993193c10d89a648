"""Figures that others have published, with where they stand; never ours."""

from __future__ import annotations

#: Kumar, Narasimhan and Cotter, ICML 2021, Table 2.
#: FNR in percent at an FPR of 1, 2, 5 and 10 %, CelebA, five trials; cross-entropy, TFCO, ICO.
IMPLICIT_TABLE_2 = {
    "High-cheekbones": {1: (53.5, 49.0, 46.9), 2: (44.8, 40.9, 39.8), 5: (32.9, 30.1, 28.5), 10: (22.9, 20.4, 19.7)},
    "Heavy-makeup": {1: (57.0, 57.0, 49.6), 2: (45.6, 41.2, 38.9), 5: (28.2, 25.4, 23.1), 10: (15.1, 13.6, 12.4)},
    "Wearing-lipstick": {1: (44.0, 42.6, 37.5), 2: (32.7, 30.4, 26.7), 5: (16.3, 14.9, 13.1), 10: (6.6, 5.9, 4.7)},
    "Smiling": {1: (37.4, 35.9, 33.7), 2: (29.4, 27.8, 26.1), 5: (18.7, 17.0, 16.9), 10: (11.7, 10.7, 10.2)},
    "Black-hair": {1: (69.3, 64.4, 63.2), 2: (56.4, 52.0, 50.5), 5: (36.7, 32.4, 32.5), 10: (23.0, 19.2, 18.6)},
    "Blond-hair": {1: (40.4, 38.6, 36.8), 2: (28.9, 25.6, 24.2), 5: (13.4, 11.6, 10.8), 10: (6.5, 4.9, 4.7)},
}

#: Tables 3 (CelebA) and 4 (BigEarthNet): partial ROC area over FPR [0, 5 %], McClish, in percent; the same columns.
IMPLICIT_TABLES_3_AND_4 = {
    "High-cheekbones": (75.9, 73.8, 78.5), "Heavy-makeup": (75.5, 79.5, 78.3), "Wearing-lipstick": (82.2, 84.7, 84.6),
    "Smiling": (83.5, 65.0, 84.8), "Black-hair": (70.9, 73.2, 73.8), "Broad-leaved forest": (66.2, 66.4, 69.9),
    "Complex cultivation": (62.2, 62.7, 63.6), "Coniferous forest": (71.9, 71.5, 74.7),
    "Discontinuous urban fabric": (69.8, 71.8, 73.9), "Agriculture with vegetation": (58.8, 58.8, 60.4),
}  # fmt: skip
#: The mean of Table 4 as printed, to check what was read.
IMPLICIT_TABLE_4_MEAN = (65.8, 66.2, 68.5)

#: Chen, Kumar, Liu and Amid 2022, Table 1: FNR in percent, CelebA; method 1, method 2, ablation. Its figures of
#: cross-entropy, TFCO and ICO are those of the other paper's Table 2, and it prints no times.
LAST_LAYER_TABLE_1 = {
    "High-cheekbones": {1: (51.3, 46.4, 48.2), 2: (45.1, 40.0, 41.8), 5: (31.9, 28.9, 29.4), 10: (22.8, 20.2, 20.2)},
    "Smiling": {1: (37.5, 32.7, 37.1), 2: (30.2, 26.5, 27.5), 5: (18.9, 16.4, 16.6), 10: (12.1, 10.7, 11.0)},
    "Wearing-lipstick": {1: (42.40, 38.8, 40.5), 2: (31.74, 29.7, 28.3), 5: (15.4, 15.4, 15.1), 10: (7.0, 5.3, 5.5)},
}
