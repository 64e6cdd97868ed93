"""Control flow of PyTorch as ops with regions.

Inputs that do not change are used in the regions as they are, without an argument of the region. A scan becomes a loop
that carries its stacked outputs: each round takes a slice of the inputs and updates the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType

Types = Sequence[TensorType | None]
YIELD = "higher_order.yield"


class GraphImporter(Protocol):
    """The importer of the graph around an op, which imports the graphs of its regions, too."""

    builder: Builder

    def run_subgraph(self, module: Any, inputs: Sequence[Any]) -> Any:
        """Add the ops of a nested graph with these inputs, and return its output."""
        ...

    def note_module(self, op_id: int) -> None:
        """Note the module path of an op of the node at hand."""
        ...


Make = Callable[[GraphImporter, Sequence[Any], Mapping[str, Any], Types], list[Value | None]]


def inlined_call(name: str, args: Sequence[Any]) -> tuple[Any, Sequence[Any]] | None:
    """Return the graph and the inputs of a call whose graph runs once as it is, or None for other ops."""
    skipped = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4, "invoke_subgraph": 0, "wrap": 0}.get(name)
    if skipped is None:
        return None
    after = skipped + (2 if name == "invoke_subgraph" else 1)
    return args[skipped], args[after:]


def _cond(importer: GraphImporter, args: Sequence[Any], kwargs: Mapping[str, Any], types: Types) -> list[Value | None]:
    predicate, true_graph, false_graph, operands = args
    if not isinstance(predicate, Value):
        return list(importer.run_subgraph(true_graph if predicate else false_graph, operands))
    builder = importer.builder
    with builder.region_op("higher_order.cond", [predicate], _present(types)) as op:
        for graph in (true_graph, false_graph):
            with builder.region(op):
                builder.emit(YIELD, _tensors(importer.run_subgraph(graph, operands)))
    importer.note_module(op.id)
    return _spread(op.results, types)


def _while_loop(
    importer: GraphImporter, args: Sequence[Any], kwargs: Mapping[str, Any], types: Types
) -> list[Value | None]:
    cond_graph, body_graph, carried, more = (*args, ())[:4]
    builder = importer.builder
    with builder.region_op("higher_order.while_loop", carried, _present(types)) as op:
        for graph in (cond_graph, body_graph):
            with builder.region(op, [value.type for value in carried]) as arguments:
                builder.emit(YIELD, _tensors(importer.run_subgraph(graph, [*arguments, *more])))
    importer.note_module(op.id)
    return _spread(op.results, types)


def _scan(importer: GraphImporter, args: Sequence[Any], kwargs: Mapping[str, Any], types: Types) -> list[Value | None]:
    graph, initial, inputs, more = (*args, ())[:4]
    builder = importer.builder
    stacked = _present(types)[len(initial) :]
    buffers = [builder.emit("higher_order.scan_buffer", (), [type_]).results[0] for type_ in stacked]
    length = inputs[0].type.shape[0]
    carried = [*initial, *buffers]
    carried_types = [value.type for value in carried]
    with (
        builder.region_op("higher_order.scan", carried, carried_types, length=length) as op,
        builder.region(op, carried_types) as arguments,
    ):
        slices = [builder.op("higher_order.scan_slice", [value], [_round_type(value)]) for value in inputs]
        computed = _tensors(importer.run_subgraph(graph, [*arguments[: len(initial)], *slices, *more]))
        updated = [
            builder.op("higher_order.scan_update", [buffer, value], [buffer.type])
            for buffer, value in zip(arguments[len(initial) :], computed[len(initial) :], strict=True)
        ]
        builder.emit(YIELD, [*computed[: len(initial)], *updated])
    importer.note_module(op.id)
    return _spread(op.results, types)


def _map(importer: GraphImporter, args: Sequence[Any], kwargs: Mapping[str, Any], types: Types) -> list[Value | None]:
    """Add a scan that carries nothing from one round to the next."""
    graph, inputs, more = args
    return _scan(importer, (graph, (), inputs, more), kwargs, types)


REGION_OPS: dict[str, Make] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan, "map_impl": _map}


def _round_type(value: Value) -> TensorType:
    """Return the type of what one round takes from an input."""
    type_ = value.type
    assert isinstance(type_, TensorType), "the inputs of a scan are tensors"
    return TensorType(type_.shape[1:], type_.element_type)


def _present(types: Types) -> list[TensorType]:
    return [type_ for type_ in types if type_ is not None]


def _tensors(output: Any) -> list[Value]:
    return [value for value in (output if isinstance(output, (list, tuple)) else [output]) if isinstance(value, Value)]


def _spread(results: Sequence[Value], types: Types) -> list[Value | None]:
    computed = iter(results)
    return [None if type_ is None else next(computed) for type_ in types]
