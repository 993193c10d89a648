"""An ONNX graph that grows node by node. Only this room imports onnx."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import missing

try:
    from onnx import ModelProto, TensorProto, checker, helper, numpy_helper
except ImportError as cause:
    raise missing("onnx", "export", cause) from None

#: Versions of the operators; TreeEnsemble with float64 came with 5 of ai.onnx.ml, RegexFullMatch with 20.
OPSETS = {"": 21, "ai.onnx.ml": 5}
#: The version of ai.onnx.ml for models of converters: 5 has no TreeEnsembleClassifier any more.
CONVERTED = 3
IR = 10
ML = "ai.onnx.ml"
FLOAT, DOUBLE, INT, BOOL, TEXT = (
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING,
)  # fmt: skip


class Graph:
    """Nodes, constants, inputs and outputs; every method that makes a value returns its name.

    Example:
        >>> import numpy as np
        >>> from setpoint.export.graph import DOUBLE, Graph
        >>> graph = Graph()
        >>> double = graph.add("Mul", graph.input("x", DOUBLE, 1), graph.constant(np.array(2.0)))
        >>> graph.output("twice", double, DOUBLE, ["n", 1])
        >>> [node.op_type for node in graph.model({}).graph.node]
        ['Mul', 'Identity']
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.outputs: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Any] = {}
        self._adopted: list[Any] = []
        self._opsets = dict(OPSETS)
        self._made = 0

    def input(self, name: str, kind: int, width: int) -> str:
        """An input of `width` values per row."""
        self.inputs.setdefault(name, helper.make_tensor_value_info(name, kind, ["n", width]))
        return name

    def output(self, name: str, value: str, kind: int, shape: Sequence[Any]) -> None:
        """An output, under a name of its own."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def constant(self, values: NDArray[Any]) -> str:
        """A constant; equal constants are kept once."""
        key = (str(values.dtype), values.shape, repr(values.tolist()).encode() if values.dtype == object else b"")
        if values.dtype != object:
            key = (*key[:2], values.tobytes())
        if key not in self._constants:
            self._constants[key] = numpy_helper.from_array(values, f"setpoint/constant/{len(self._constants)}")
        return str(self._constants[key].name)

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node of one output."""
        return self.several(operator, 1, *inputs, domain=domain, **attributes)[0]

    def several(self, operator: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """A node of several outputs."""
        self._made += 1
        names = [f"setpoint/{self._made}.{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, domain=domain, **attributes))
        return names

    def number(self, value: float, kind: type = np.float64) -> str:
        """A constant of one number, float64 if no other kind is named."""
        return self.constant(np.array(value, dtype=kind))

    def cast(self, value: str, kind: int) -> str:
        """The value as another kind."""
        return self.add("Cast", value, to=kind)

    def take(self, value: str, places: Any, axis: int = 1) -> str:
        """Some columns: one of them as `(n,)`, several as `(n, m)`."""
        return self.add("Gather", value, self.constant(np.array(places, dtype=np.int64)), axis=axis)

    def refuse(self, value: str, where: str, width: int = 1) -> str:
        """The value, `(n, width)`; running the graph fails if `where`, `(n, 1)`, is true: no operator raises by itself.

        Each number is taken from its own place, or from a place beyond the last, where there is none.
        """
        beyond = self.add("Mul", self.cast(where, INT), self.number(width, np.int64))
        return self.add("GatherElements", value, self.add("Add", beyond, self.constant(np.arange(width))), axis=1)

    def branch(self, condition: str, yes: Graph, no: Graph) -> str:
        """The output of one of two graphs, which may use values of this one."""
        return self.add("If", condition, then_branch=yes._plain("yes"), else_branch=no._plain("no"))

    def inner(self, mark: str) -> Graph:
        """A graph for a branch of this one, with names of its own."""
        graph = Graph()
        graph._made = 1_000_000 * (self._made + 1) + (500_000 if mark == "no" else 0)
        graph._constants = self._constants
        return graph

    def adopt(self, model: Any, rename: Callable[[str], str]) -> None:
        """Take over the nodes of another model under other names; its versions of operators then count."""
        for node in model.graph.node:
            own = copy.deepcopy(node)
            own.input[:], own.output[:] = map(rename, node.input), map(rename, node.output)
            self.nodes.append(own)
        for constant in model.graph.initializer:
            own = copy.deepcopy(constant)
            own.name = rename(constant.name)
            self._adopted.append(own)
        versions = {each.domain: each.version for each in model.opset_import}
        # Converters name the oldest version that knows their operators; our LabelEncoder needs 2.
        self._opsets.update(versions | {ML: max(versions.get(ML, 0), CONVERTED)})

    def _plain(self, name: str) -> Any:
        return helper.make_graph(self.nodes, name, list(self.inputs.values()), self.outputs)

    def model(self, about: Mapping[str, str]) -> ModelProto:
        """The whole as a model that has been checked, with `about` as its metadata."""
        graph = self._plain("setpoint")
        used = _used_by(graph)
        graph.initializer.extend(constant for constant in self._constants.values() if constant.name in used)
        graph.initializer.extend(self._adopted)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._opsets.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="setpoint")
        helper.set_model_props(model, dict(about))
        checker.check_model(model)
        return model


def _used_by(graph: Any) -> set[str]:
    """The names of all values that the nodes of a graph take, branches among them."""
    used: set[str] = set()
    for node in graph.node:
        used.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used |= _used_by(attribute.g)
    return used
