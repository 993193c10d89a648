"""Slow, obvious re-implementations, in plain Python, shared with nothing in the package."""

from __future__ import annotations

import itertools
import math


def counts(scores, labels, weights, threshold):
    tp = fp = fn = tn = 0.0
    for score, label, weight in zip(scores, labels, weights):
        if score > threshold:
            tp, fp = (tp + weight, fp) if label else (tp, fp + weight)
        else:
            fn, tn = (fn + weight, tn) if label else (fn, tn + weight)
    return tp, fp, fn, tn


def share(part, whole):
    return part / whole if whole > 0 else 0.0


RATES = {
    "fpr": lambda tp, fp, fn, tn: share(fp, fp + tn),
    "fnr": lambda tp, fp, fn, tn: share(fn, fn + tp),
    "recall": lambda tp, fp, fn, tn: share(tp, tp + fn),
    "tnr": lambda tp, fp, fn, tn: share(tn, tn + fp),
    "precision": lambda tp, fp, fn, tn: share(tp, tp + fp),
    "npv": lambda tp, fp, fn, tn: share(tn, fn + tn),
    "fdr": lambda tp, fp, fn, tn: share(fp, tp + fp),
    "for": lambda tp, fp, fn, tn: share(fn, fn + tn),
    "flagged": lambda tp, fp, fn, tn: share(tp + fp, tp + fp + fn + tn),
    "accuracy": lambda tp, fp, fn, tn: share(tp + tn, tp + fp + fn + tn),
    "error": lambda tp, fp, fn, tn: share(fp + fn, tp + fp + fn + tn),
    "jaccard": lambda tp, fp, fn, tn: share(tp, tp + fp + fn),
    "f_score(1)": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fp + fn),
    "f_score(2)": lambda tp, fp, fn, tn: share(5 * tp, 5 * tp + 4 * fn + fp),
    "g_mean": lambda tp, fp, fn, tn: math.sqrt(share(tp, tp + fn) * share(tn, tn + fp)),
    "mcc": lambda tp, fp, fn, tn: share(
        tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn)) * math.sqrt((tn + fp) * (tn + fn))
    ),
    "kappa": lambda tp, fp, fn, tn: share(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)),
    "balanced accuracy": lambda tp, fp, fn, tn: (share(tp, tp + fn) + share(tn, tn + fp)) / 2,
    "lift": lambda tp, fp, fn, tn: share(share(tp, tp + fp), share(tp + fn, tp + fp + fn + tn)),
}


def all_cuts(scores, labels, weights):
    """Counts at every cut, from flagging nothing to flagging everything; weightless samples make none."""
    levels = sorted({s for s, w in zip(scores, weights) if w > 0}, reverse=True)
    places = [math.inf, *[-math.inf if i == len(levels) - 1 else None for i in range(len(levels))]]
    found = []
    for k, place in enumerate(places):
        threshold = place if place is not None else levels[k]
        found.append(counts(scores, labels, weights, threshold))
    return found


def best_cut(objective, maximize, constraints, scores, labels, weights):
    """The best objective over all feasible cuts by trying each; None when no cut is feasible.

    `constraints` are (name, relation, bound) with relation <= or >=.
    """
    best = None
    for cut in all_cuts(scores, labels, weights):
        held = all(
            RATES[name](*cut) <= bound + 1e-9 if relation == "<=" else RATES[name](*cut) >= bound - 1e-9
            for name, relation, bound in constraints
        )
        value = RATES[objective](*cut)
        if held and (best is None or (value > best if maximize else value < best)):
            best = value
    return best


def average_precision_between(scores, labels, weights, low, high):
    """Mean over recall levels in (low, high] of the precision of the first cut that reaches the level."""
    area = 0.0
    for before, after in itertools.pairwise(all_cuts(scores, labels, weights)):
        left = min(max(RATES["recall"](*before), low), high)
        right = min(max(RATES["recall"](*after), low), high)
        area += (right - left) * RATES["precision"](*after)
    return area / (high - low)


def roc_between(scores, labels, weights, low, high, steps):
    """Mean recall over FPR in low ... high, the polygon sampled at the midpoints of many thin strips."""
    corners = [(RATES["fpr"](*c), RATES["recall"](*c)) for c in all_cuts(scores, labels, weights)]
    total = 0.0
    for i in range(steps):
        at = low + (high - low) * (i + 0.5) / steps
        for (x0, y0), (x1, y1) in itertools.pairwise(corners):
            if x0 <= at <= x1 and x1 > x0:
                total += y0 + (y1 - y0) * (at - x0) / (x1 - x0)
                break
    return total / steps


def worths(scores, labels, weights, values, threshold):
    """Rows of counts: the samples, then the samples times their value in each column."""
    tables = [weights, *([weight * value for weight, value in zip(weights, column)] for column in values)]
    return [counts(scores, labels, table, threshold) for table in tables]


def mean_cost(scores, labels, weights, misses, alarms, threshold):
    """The mean cost per sample, one cost of a miss and of an alarm per sample."""
    spent = whole = 0.0
    for score, label, weight, miss, alarm in zip(scores, labels, weights, misses, alarms):
        whole += weight
        if label and score <= threshold:
            spent += weight * miss
        if not label and score > threshold:
            spent += weight * alarm
    return share(spent, whole)


def band_counts(scores, labels, weights, low, high):
    """The weight of flagged, unflagged and reviewed rows of each class: (tp, fp, fn, tn, rp, rn)."""
    counts = [0.0] * 6
    for score, label, weight in zip(scores, labels, weights):
        if score > high:
            counts[0 if label else 1] += weight
        elif score > low:
            counts[4 if label else 5] += weight
        else:
            counts[2 if label else 3] += weight
    return counts


#: Rates of the six counts (tp, fp, fn, tn, reviewed positives, reviewed negatives), written out by hand.
BAND_RATES = {
    "review": lambda tp, fp, fn, tn, rp, rn: (rp + rn, tp + fp + fn + tn + rp + rn),
    "precision": lambda tp, fp, fn, tn, rp, rn: (tp, tp + fp),
    "npv": lambda tp, fp, fn, tn, rp, rn: (tn, fn + tn),
    "recall": lambda tp, fp, fn, tn, rp, rn: (tp, tp + fn + rp),
    "fnr": lambda tp, fp, fn, tn, rp, rn: (fn, tp + fn + rp),
    "fpr": lambda tp, fp, fn, tn, rp, rn: (fp, fp + tn + rn),
    "tnr": lambda tp, fp, fn, tn, rp, rn: (tn, fp + tn + rn),
    "error": lambda tp, fp, fn, tn, rp, rn: (fp + fn, tp + fp + fn + tn + rp + rn),
    "accuracy": lambda tp, fp, fn, tn, rp, rn: (tp + tn, tp + fp + fn + tn + rp + rn),
    "flagged": lambda tp, fp, fn, tn, rp, rn: (tp + fp, tp + fp + fn + tn + rp + rn),
    "cost(miss=5, alarm=1)": lambda tp, fp, fn, tn, rp, rn: (fp + 5 * fn, tp + fp + fn + tn + rp + rn),
}


def band_rate(name, counts):
    """A rate of three decisions; 0 of no rows."""
    part, whole = BAND_RATES[name](*counts)
    return part / whole if whole > 0 else 0.0


def class_counts(predicted, labels, weights, n_classes):
    """(tp, fp, fn, tn) of each class against the rest."""
    found = []
    for k in range(n_classes):
        one = [1.0 if guess == k else 0.0 for guess in predicted]
        found.append(counts(one, [label == k for label in labels], weights, 0.5))
    return found


def over_classes(name, kind, predicted, labels, weights, n_classes):
    """A rate over all classes: their plain mean, the mean weighted by size, or the highest less the lowest."""
    each = class_counts(predicted, labels, weights, n_classes)
    values = [RATES[name](*four) for four in each]
    sizes = [tp + fn for tp, _, fn, _ in each]
    if kind == "macro":
        return sum(values) / n_classes
    if kind == "weighted":
        return share(sum(value * size for value, size in zip(values, sizes)), sum(sizes))
    present = [value for value, size in zip(values, sizes) if size > 0]
    return max(present) - min(present) if present else 0.0


def list_counts(lists, depths):
    """Counts of each list when its first d rows are flagged, for d = 1 ... depths; lists of labels, best row first."""
    found = []
    for d in range(1, depths + 1):
        row = []
        for labels in lists:
            tp, fn = sum(labels[:d]), sum(labels[d:])
            row.append((tp, len(labels[:d]) - tp, fn, len(labels[d:]) - fn))
        found.append(row)
    return found


def in_first(name, lists, k):
    """The mean over lists of labels, best row first, of a rate among the first k; an empty place is a miss."""
    values = []
    for labels in lists:
        hits, positives = sum(labels[:k]), sum(labels)
        precision, recall = hits / k, share(hits, positives)
        values.append(
            {
                "precision": precision,
                "recall": recall,
                "fnr": share(positives - hits, positives),
                "hit": float(hits > 0),
                "f_score(1)": share(2 * precision * recall, precision + recall),
                "f_score(2)": share(5 * precision * recall, 4 * precision + recall),
            }[name]
        )
    return sum(values) / len(values)
