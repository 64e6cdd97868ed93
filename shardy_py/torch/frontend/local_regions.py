"""Manual computations from functions that compute with the shard of each device, as `local_map` traces them.

All operators between an ``enter_local`` and a ``leave_local`` compute with tensors in the shapes of shards. Those that
follow each other are the body of one manual computation. A tensor that a later one reads, as the backward pass reads
what the forward pass saved, is stacked outside: the shard of each device behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from shardy_py.api.meshes import DEFAULT_NAME
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, REGION_RETURN
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import DimensionSharding, ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.torch.frontend.calls import Call
from shardy_py.torch.frontend.places import location_of
from shardy_py.torch.frontend.types import tensor_type
from shardy_py.torch.local_functions import ENTER, LEAVE, mesh_of_text
from shardy_py.values import frozen

Nodes = Sequence[Any]


class RegionImporter(Protocol):
    """The importer of the graph around a manual computation.

    Attributes:
        builder: Builds the op graph.
        values: Node to its value.
    """

    builder: Builder
    values: dict[Any, Any]

    def import_node(self, node: Any) -> None:
        """Add the ops of a node."""
        ...

    def name_results(self, node: Any, results: Sequence[Value | None]) -> None:
        """Name the results of a node."""
        ...

    def emit(self, call: Call) -> list[Value | None]:
        """Add the op of a call and return its results."""
        ...


def local_nodes(nodes: Nodes) -> set[Any]:
    """Return the nodes that make tensors in the shapes of shards.

    Raises:
        UnsupportedError: such a tensor is used as a whole one.
    """
    local: set[Any] = set()
    for node in nodes:
        is_read = any(item in local for item in node.all_input_nodes)
        if node.op == "output" and is_read:
            names = ", ".join(item.name for item in node.all_input_nodes if item in local)
            message = f"tensors of the function of a local_map are used outside of it: {names}"
            hint = (
                "pass all tensors that the function computes with as arguments, parameters too, and return the results"
            )
            raise UnsupportedError(Diagnostic("local-map", message, hint=hint))
        if str(node.target) == ENTER or (is_read and str(node.target) != LEAVE):
            local.add(node)
    return local


@frozen(eq=False)
class LocalRun:
    """Nodes of functions of shards that are imported together.

    Args:
        nodes: The nodes, in order, with those where shards begin and end.
    """

    nodes: list[Any]


def in_runs(nodes: Nodes, local: set[Any]) -> Iterator[Any]:
    """Return the nodes of a graph in an order in which those of functions of shards follow each other.

    Args:
        nodes: The nodes.
        local: Those that make tensors in the shapes of shards.
    """
    run: list[Any] = []
    for node in nodes:
        is_leave = str(node.target) == LEAVE
        reads_result = any(str(item.target) == LEAVE and item in run for item in node.all_input_nodes)
        if run and reads_result:
            yield LocalRun(run)
            run = []
        if node in local or is_leave:
            run.append(node)
        else:
            yield node


def import_run(importer: RegionImporter, run: LocalRun, stacked: dict[Any, Any]) -> None:
    """Add the manual computation of some nodes.

    Args:
        importer: The importer, with the values of all nodes that these read.
        run: The nodes.
        stacked: Node to its stacked value, for tensors that later computations read; gets those of this one.
    """
    _Region(importer, run.nodes, stacked).add()


class _Region:
    """One manual computation that is being made."""

    def __init__(self, importer: RegionImporter, nodes: list[Any], stacked: dict[Any, Any]) -> None:
        self.importer, self.nodes, self.stacked = importer, nodes, stacked
        inside = set(nodes)
        self.enters = [node for node in nodes if str(node.target) == ENTER]
        self.leaves = [node for node in nodes if str(node.target) == LEAVE]
        self.inner = [node for node in nodes if node not in {*self.enters, *self.leaves}]
        read = [item for node in (*self.inner, *self.leaves) for item in node.all_input_nodes if item not in inside]
        tensors = [item for item in dict.fromkeys(read) if isinstance(importer.values.get(item), Value)]
        self.saved_before = [item for item in dict.fromkeys(read) if item in stacked]
        self.shared = [item for item in tensors if item not in stacked]
        local = {*self.enters, *self.inner}
        self.saved = [
            node for node in nodes if node in local and _is_tensor(node) and any(u not in inside for u in node.users)
        ]
        self.mesh: Mesh = mesh_of_text(next((node.args[3] for node in (*self.enters, *self.leaves)), ""))

    def add(self) -> None:
        """Add the op, and set the values of the nodes that others read."""
        values, builder = self.importer.values, self.importer.builder
        operands = [values[node.args[0]] for node in self.enters]
        operands += [self.stacked[node] for node in self.saved_before] + [values[node] for node in self.shared]
        entered = [_type(node) for node in self.enters]
        rows = [_row(_type(node)) for node in self.saved_before]
        shared = [values[node].type for node in self.shared]
        in_shardings = [parse_tensor_sharding(node.args[1]) for node in self.enters]
        in_shardings += [self._stacked_sharding(type_) for type_ in rows]
        in_shardings += [TensorSharding.fully_closed(DEFAULT_NAME, type_.rank) for type_ in shared]
        saved = [_row(_type(node)) for node in self.saved]
        out_shardings = [parse_tensor_sharding(node.args[1]) for node in self.leaves]
        out_shardings += [self._stacked_sharding(type_) for type_ in saved]
        types = [_type(node) for node in self.leaves]
        types += [TensorType((self.mesh.total_size, *(type_.shape[1:])), type_.element_type) for type_ in saved]
        attributes = {
            "in_shardings": TensorShardingPerValue(tuple(in_shardings)),
            "out_shardings": TensorShardingPerValue(tuple(out_shardings)),
            "manual_axes": ManualAxes(tuple(axis.name for axis in self.mesh.axes)),
        }
        outside = {node: values[node] for node in self.shared}
        with (
            builder.region_op(MANUAL_COMPUTATION, operands, types, attributes) as op,
            builder.region(op, [*entered, *rows, *shared]) as arguments,
        ):
            self._add_body(arguments, len(self.enters))
        values.update(outside)
        for node, result in zip((*self.leaves, *self.saved), op.results, strict=True):
            self.importer.name_results(node, [result])
            (self.stacked if node in self.saved else values)[node] = result
        for node in (*self.enters, *self.inner):
            values.pop(node, None)

    def _add_body(self, arguments: Sequence[Value], count: int) -> None:
        values = self.importer.values
        values.update(zip(self.enters, arguments, strict=False))
        rows = arguments[count : count + len(self.saved_before)]
        for node, row in zip(self.saved_before, rows, strict=True):
            values[node] = self._view("aten.squeeze.dim", row, _type(node), node)
        values.update(zip(self.shared, arguments[count + len(rows) :], strict=True))
        for node in self.inner:
            self.importer.import_node(node)
        results = [values[node.args[0]] for node in self.leaves]
        results += [self._view("aten.unsqueeze.default", values[node], _row(_type(node)), node) for node in self.saved]
        for node in self.saved_before:
            values.pop(node, None)
        self.importer.builder.emit(REGION_RETURN, results)

    def _view(self, name: str, value: Value, type_: TensorType, node: Any) -> Value:
        """Return a value with, or without, a first dimension of one element."""
        call = Call(name, {"self": value, "dim": 0}, (type_,), False, location_of(node))
        (result,) = self.importer.emit(call)
        assert result is not None, "a view has a result"
        return result

    def _stacked_sharding(self, row: TensorType) -> TensorSharding:
        first = DimensionSharding(tuple(AxisRef(axis.name) for axis in self.mesh.axes))
        rest = TensorSharding.fully_closed(DEFAULT_NAME, row.rank - 1)
        return TensorSharding(DEFAULT_NAME, (first, *rest.dim_shardings))


def _is_tensor(node: Any) -> bool:
    return hasattr(node.meta.get("val"), "dtype")


def _type(node: Any) -> TensorType:
    return tensor_type(node.meta["val"], node=node.name, location=location_of(node))


def _row(type_: TensorType) -> TensorType:
    return TensorType((1, *type_.shape), type_.element_type)
