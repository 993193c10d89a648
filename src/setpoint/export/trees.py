"""Boosted trees in a graph: one TreeEnsemble in float64, the precision in which LightGBM compares and adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper

from setpoint.data.layout import Layout
from setpoint.errors import CannotExport
from setpoint.export.graph import DOUBLE, FLOAT, ML, Graph

#: Numbers of the comparisons of TreeEnsemble: value <= split, and value among members.
_AT_MOST, _MEMBER = 0, 6


class Forest:
    """The nodes and leaves of several trees, in the lists that TreeEnsemble takes."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.features: list[int] = []
        self.modes: list[int] = []
        self.splits: list[float] = []
        self.missing: list[int] = []
        self.yes: list[tuple[int, int]] = []
        self.no: list[tuple[int, int]] = []
        self.members: list[float] = []
        self.weights: list[float] = []
        self.targets: list[int] = []

    def grow(self, tree: dict[str, Any], target: int) -> None:
        """Add a tree, as LightGBM dumps it."""
        self.roots.append(len(self.features))
        if "leaf_value" in tree:
            # A root that is a leaf: a node whose two ends are the same leaf.
            leaf = self._leaf(tree, target)
            self._node(0, _AT_MOST, 0.0, 0)
            self.yes[-1] = self.no[-1] = leaf
            return
        waiting = [(tree, -1, False)]
        while waiting:
            node, above, came_yes = waiting.pop()
            if "leaf_value" in node:
                end = self._leaf(node, target)
            else:
                end = (self._split(node), 0)
                waiting += [(node["right_child"], end[0], False), (node["left_child"], end[0], True)]
            if above >= 0:
                (self.yes if came_yes else self.no)[above] = end

    def _leaf(self, leaf: dict[str, Any], target: int) -> tuple[int, int]:
        self.weights.append(float(leaf["leaf_value"]))
        self.targets.append(target)
        return len(self.weights) - 1, 1

    def _node(self, feature: int, mode: int, split: float, missing: int) -> None:
        self.features.append(feature)
        self.modes.append(mode)
        self.splits.append(split)
        self.missing.append(missing)
        self.yes.append((0, 0))
        self.no.append((0, 0))

    def _split(self, node: dict[str, Any]) -> int:
        feature = int(node["split_feature"])
        if node["decision_type"] == "==":
            self.members += [*map(float, str(node["threshold"]).split("||")), np.nan]
            self._node(feature, _MEMBER, 0.0, 0)
        elif node["decision_type"] == "<=":
            split = float(node["threshold"])
            if node["missing_type"] == "Zero":
                raise CannotExport(
                    "trees that take zero as missing cannot be exported; train with zero_as_missing=False"
                )
            # Without missing values in training, LightGBM takes a missing value as 0.
            to_left = node["default_left"] if node["missing_type"] == "NaN" else split >= 0
            self._node(feature, _AT_MOST, split, int(to_left))
        else:
            raise CannotExport(f"trees that compare by {node['decision_type']!r} cannot be exported")
        return len(self.features) - 1

    def score(self, graph: Graph, values: str, targets: int) -> str:
        """The sums of the leaves, float64 `(n, targets)`, for values in float64."""
        extra = {"membership_values": _tensor(self.members)} if self.members else {}
        return graph.add(
            "TreeEnsemble", values, domain=ML, n_targets=targets, aggregate_function=1, post_transform=0,
            tree_roots=self.roots, nodes_featureids=self.features, nodes_splits=_tensor(self.splits),
            nodes_modes=numpy_helper.from_array(np.array(self.modes, dtype=np.uint8)),
            nodes_missing_value_tracks_true=self.missing,
            nodes_truenodeids=[end for end, _ in self.yes], nodes_trueleafs=[leaf for _, leaf in self.yes],
            nodes_falsenodeids=[end for end, _ in self.no], nodes_falseleafs=[leaf for _, leaf in self.no],
            leaf_targetids=self.targets, leaf_weights=_tensor(self.weights), **extra,
        )  # fmt: skip


def _tensor(values: Sequence[float]) -> Any:
    return numpy_helper.from_array(np.array(values, dtype=np.float64))


def boosted(graph: Graph, boosters: Sequence[Any], values: str) -> str:
    """The mean logit of several boosters of LightGBM, float64 `(n, K)`, for values in float64."""
    forest, targets = Forest(), 1
    for booster in boosters:
        dumped = booster.dump_model()
        targets = int(dumped["num_tree_per_iteration"])
        if dumped.get("average_output"):
            raise CannotExport("random forests of LightGBM cannot be exported; use boosting='gbdt'")
        for place, tree in enumerate(dumped["tree_info"]):
            forest.grow(tree["tree_structure"], place % targets)
    # LightGBM reads numbers as near to zero as this as zero.
    is_zero = graph.add("LessOrEqual", graph.add("Abs", values), graph.number(float(np.float32(1e-35))))
    total = forest.score(graph, graph.add("Where", is_zero, graph.number(0), values), targets)
    return graph.add("Div", total, graph.number(len(boosters)))


def histogram_boosted(graph: Graph, model: Any, x: str) -> str:
    """The decision function of scikit-learn's HistGradientBoostingClassifier, float64 `(n, K)`.

    The converter of scikit-learn has no float64 for it.
    """
    forest = Forest()
    for trees in model._predictors:
        for target, tree in enumerate(trees):
            forest.grow(_as_dumped(tree.nodes, 0), target)
    start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(1, -1)
    return graph.add("Add", forest.score(graph, x, start.shape[1]), graph.constant(start))


def voted(graph: Graph, model: Any, x: str) -> str:
    """The probabilities of scikit-learn's decision trees, random forests and extra trees, float64 `(n, K)`."""
    trees, forest = getattr(model, "estimators_", [model]), Forest()
    for one in trees:
        shares = one.tree_.value[:, 0] / one.tree_.value[:, 0].sum(1, keepdims=True)
        for target in range(shares.shape[1]):
            forest.grow(_of_tree(one.tree_, shares[:, target]), target)
    total = forest.score(graph, _as_float32(graph, x), len(model.classes_))
    return graph.add("Div", total, graph.number(len(trees)))


def gradient_boosted(graph: Graph, model: Any, x: str) -> str:
    """The decision function of scikit-learn's GradientBoostingClassifier, float64 `(n, K)`."""
    forest = Forest()
    for trees in model.estimators_:
        for target, one in enumerate(trees):
            forest.grow(_of_tree(one.tree_, model.learning_rate * one.tree_.value[:, 0, 0]), target)
    start = np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32)), dtype=np.float64)
    total = forest.score(graph, _as_float32(graph, x), start.shape[1])
    return graph.add("Add", total, graph.constant(start))


def _as_float32(graph: Graph, x: str) -> str:
    """Values as the trees of scikit-learn read them: rounded to float32, then compared in float64."""
    return graph.cast(graph.cast(x, FLOAT), DOUBLE)


def _of_tree(tree: Any, values: Any, place: int = 0) -> dict[str, Any]:
    """A tree of scikit-learn with a value per node, in the form in which LightGBM dumps its own."""
    if tree.children_left[place] < 0:
        return {"leaf_value": values[place]}
    return {
        "split_feature": tree.feature[place], "decision_type": "<=", "threshold": tree.threshold[place],
        "missing_type": "NaN", "default_left": tree.missing_go_to_left[place],
        "left_child": _of_tree(tree, values, tree.children_left[place]),
        "right_child": _of_tree(tree, values, tree.children_right[place]),
    }  # fmt: skip


def _as_dumped(nodes: Any, place: int) -> dict[str, Any]:
    """A tree of scikit-learn in the form in which LightGBM dumps its own."""
    node = nodes[place]
    if node["is_leaf"]:
        return {"leaf_value": node["value"]}
    if node["is_categorical"]:
        raise CannotExport(
            "categorical_features of HistGradientBoostingClassifier cannot be exported; encode them first"
        )
    return {
        "split_feature": node["feature_idx"], "decision_type": "<=", "threshold": node["num_threshold"],
        "missing_type": "NaN", "default_left": node["missing_go_to_left"],
        "left_child": _as_dumped(nodes, node["left"]), "right_child": _as_dumped(nodes, node["right"]),
    }  # fmt: skip


def layout_values(graph: Graph, x: str, layout: Layout) -> str:
    """One value per block of features `(n, blocks)`, as `Layout.values` finds them; `x` in float64."""
    if not layout.levels and not layout.missable:
        return x
    blocks, starts = layout.blocks, layout.starts
    own = graph.take(x, starts)
    flags = graph.constant(np.zeros((1, 1)))
    if layout.missable:
        # The flag beside each amount; for other blocks the amount itself, whose flag is then made 0.
        is_missable = np.array([block.kind == "missable" for block in blocks])
        beside = graph.take(x, [int(start) + int(has) for start, has in zip(starts, is_missable)])
        flags = graph.add("Mul", beside, graph.constant(is_missable.astype(np.float64)))
    if layout.levels:
        places = [int(starts[place]) + k for place in layout.levels for k in range(blocks[place].width)]
        numbers, present = (np.zeros((len(places), len(blocks))) for _ in range(2))
        row = 0
        for place in layout.levels:
            for k in range(blocks[place].width):
                numbers[row, place], present[row, place] = k, 1
                row += 1
        some = graph.take(x, places)
        codes = graph.add("MatMul", some, graph.constant(numbers))
        found = graph.add("MatMul", some, graph.constant(present))
        is_level = np.array([[block.kind == "levels" for block in blocks]])
        own = graph.add("Where", graph.constant(is_level), codes, own)
        absent = graph.add("Sub", graph.constant(is_level.astype(np.float64)), found)
        flags = graph.add("Add", flags, absent)
    return graph.add("Where", graph.add("Greater", flags, graph.number(0)), graph.number(np.nan), own)
