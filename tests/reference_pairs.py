"""Slow obvious loops over pairs, class pairs and orders of ties, against which the fast code is held."""

from __future__ import annotations

import math
from itertools import pairwise, permutations


def hinge(x):
    return max(x, 0.0)


def squared_hinge(x):
    return max(x, 0.0) ** 2


def logistic(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def hinge_slope(x):
    return 1.0 if x > 0 else 0.0


def squared_hinge_slope(x):
    return 2 * max(x, 0.0)


def logistic_slope(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def sigmoid_slope(x):
    return sigmoid(x) * sigmoid(-x)


def per_positive(positives, negatives, cost, margin, weights=None):
    """q_j, one a positive."""
    weights = [1.0] * len(negatives) if weights is None else weights
    return [math.fsum(w * cost(margin - (p - n)) for n, w in zip(negatives, weights)) for p in positives]


def per_negative(positives, negatives, cost, margin, weights=None):
    """r_k, one a negative."""
    weights = [1.0] * len(positives) if weights is None else weights
    return [math.fsum(w * cost(margin - (p - n)) for p, w in zip(positives, weights)) for n in negatives]


def gradients(positives, negatives, slope, margin, *, upstream, weights=None):
    """The gradient of sum_j upstream_j q_j with respect to the positives, the negatives."""
    weights = [1.0] * len(negatives) if weights is None else weights
    to_positives = [
        -g * math.fsum(w * slope(margin - (p - n)) for n, w in zip(negatives, weights))
        for p, g in zip(positives, upstream)
    ]
    to_negatives = [
        w * math.fsum(g * slope(margin - (p - n)) for p, g in zip(positives, upstream))
        for n, w in zip(negatives, weights)
    ]
    return to_positives, to_negatives


def concordance(positives, negatives, positive_weights=None, negative_weights=None):
    """The weighted share of ordered pairs, a tie counted half."""
    positive_weights = [1.0] * len(positives) if positive_weights is None else positive_weights
    negative_weights = [1.0] * len(negatives) if negative_weights is None else negative_weights
    right, total = 0.0, 0.0
    for p, v in zip(positives, positive_weights):
        for n, w in zip(negatives, negative_weights):
            total += v * w
            right += v * w * (1.0 if p > n else 0.5 if p == n else 0.0)
    return right / total


def auc_mu(scores, labels, weights, partition):
    """Kleiman and Page's measure, by the orientation of every pair of samples of different classes."""
    n_classes = len(partition)
    total = 0.0
    for a in range(n_classes):
        for b in range(a):
            v = [x - y for x, y in zip(partition[a], partition[b])]
            right, mass = 0.0, 0.0
            for s, label_s, w_s in zip(scores, labels, weights):
                for t, label_t, w_t in zip(scores, labels, weights):
                    if (label_s, label_t) != (a, b):
                        continue
                    # v.s is the cost of answering a over that of answering b: lower for a true a.
                    gap = sum(c * x for c, x in zip(v, t)) - sum(c * x for c, x in zip(v, s))
                    mass += w_s * w_t
                    right += w_s * w_t * (0.5 if abs(gap) < 1e-12 else float(gap > 0))
            total += right / mass
    return total / (n_classes * (n_classes - 1) / 2)


def hits_at_k(scores, labels, k):
    """The mean number of relevant documents among the first k, over all orders that put no lower score first."""
    found = []
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            found.append(sum(labels[i] for i in order[:k]))
    return sum(found) / len(found)


def printed_areas(scores, labels, margin, partition=None):
    """Equations (8), (4) and (9) of the linear programs for many classes: the sum over pairs of their shortfall.

    Without a partition each ordered pair of different classes by the score of the first one's class (8); with one each
    pair of classes k < l by d v.(f_i - f_j), v = P_k - P_l, d = v_k - v_l, which for the default partition is
    2 (f_ik - f_jk + f_jl - f_il) (4, 9). Returns the sum, and how many pairs it is over.
    """
    total, pairs = 0.0, 0
    for f_i, k in zip(scores, labels):
        for f_j, l in zip(scores, labels):
            if partition is None:
                if k == l:
                    continue
                orientation = f_i[k] - f_j[k]
            else:
                if k >= l:
                    continue
                v = [a - b for a, b in zip(partition[k], partition[l])]
                orientation = (v[k] - v[l]) * sum(c * (a - b) for c, a, b in zip(v, f_i, f_j))
            total += max(0.0, margin - orientation)
            pairs += 1
    return total, pairs
