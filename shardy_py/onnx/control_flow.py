"""``If``, ``Loop`` and ``Scan`` as ops with regions.

A ``Scan`` becomes the loop that it stands for: the number of the iteration picks the slices of its inputs. Outputs that
a loop stacks are carried buffers, of which each iteration writes one slice; `shardy_py.onnx.write_local` writes them as
stacked outputs again. A loop whose number of iterations or whose carried shapes are not known stays one op that needs
its operands whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from onnx import NodeProto

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.onnx.scope import NUMBER, TRUTH, GraphScope, Scan, loop_outputs, output_types, trip_count, without

YIELD, BUFFER, UPDATE = "onnx.yield", "onnx.scan_buffer", "onnx.scan_update"
"""The ends of regions, the initial contents of stacked outputs, and what writes one slice of them."""
_FOREVER = 2**63 - 1


class GraphImport(Protocol):
    """The import of a graph, as nodes with graphs of their own need it."""

    builder: Builder
    scope: GraphScope

    def inside(self, scope: GraphScope, arguments: Sequence[Value]) -> Any:
        """Make the scope of a graph current, with the values of its inputs."""

    def value(self, name: str) -> Value:
        """Return the value of a tensor."""

    def add_nodes(self) -> list[Value]:
        """Add the nodes of the current scope, and return the values of its outputs."""

    def constant(self, array: Any) -> Value:
        """Return a constant."""


def import_control_flow(importer: GraphImport, node: NodeProto, bodies: list[GraphScope]) -> list[Value]:
    """Add the op with regions of a node, and return the values of its outputs that have names."""
    values = _IMPORTS[node.op_type](importer, node, bodies)
    return [value for value, name in zip(values, node.output, strict=False) if name]


def _import_if(importer: GraphImport, node: NodeProto, bodies: list[GraphScope]) -> list[Value]:
    builder = importer.builder
    with builder.region_op("onnx.If", [importer.value(node.input[0])], output_types(bodies[0])) as op:
        for body in bodies:
            with builder.region(op), importer.inside(body, ()):
                builder.emit(YIELD, importer.add_nodes())
    return list(op.results)


def _import_loop(importer: GraphImport, node: NodeProto, bodies: list[GraphScope]) -> list[Value]:
    (body,) = bodies
    bound = importer.value(node.input[0]) if node.input[0] else importer.constant(np.array(_FOREVER))
    has_condition = len(node.input) > 1 and node.input[1]
    condition = importer.value(node.input[1]) if has_condition else importer.constant(np.array(True))
    count = trip_count(node, importer.scope.contents, body.contents)
    carried = [importer.value(name) for name in node.input[2:]]
    _, stacked = loop_outputs(body, node)
    with _loop(importer, "onnx.Loop", [bound, condition], carried, [_stacked(type_, count) for type_ in stacked]) as (
        number,
        goes_on,
        arguments,
        results,
        finish,
    ):
        with importer.inside(body, [number, goes_on, *arguments]):
            goes_on, *values = importer.add_nodes()
        finish(goes_on, values[: len(carried)], values[len(carried) :], number)
    return results


def _import_scan(importer: GraphImport, node: NodeProto, bodies: list[GraphScope]) -> list[Value]:
    (body,) = bodies
    scan, builder = Scan.of(node), importer.builder
    values = [importer.value(name) for name in node.input]
    count = scan.states(node)
    length = scan.length([value.type for value in values[count:]])  # type: ignore[misc]
    assert length is not None
    stacked = [_stacked(type_, length) for type_ in output_types(body)[count:]]
    bounds = [importer.constant(np.array(length)), importer.constant(np.array(True))]
    with _loop(importer, "onnx.Scan", bounds, values[:count], stacked) as (number, goes_on, arguments, results, finish):
        backwards: list[Value] = []

        def step(direction: int) -> Value:
            if direction == 0:
                return number
            if not backwards:
                last = importer.constant(np.array(length - 1))
                backwards.append(builder.op("onnx.Sub", [last, number], [NUMBER]))
            return backwards[0]

        slices = [
            builder.op("onnx.Gather", [value, step(direction)], [without(value.type, axis)], axis=axis)  # type: ignore[arg-type]
            for value, axis, direction in zip(values[count:], scan.input_axes, scan.input_directions, strict=True)
        ]
        with importer.inside(body, [*arguments, *slices]):
            body_results = importer.add_nodes()
        finish(goes_on, body_results[:count], body_results[count:], *map(step, scan.output_directions))
    return [
        *results[:count],
        *(_moved(builder, value, axis) for value, axis in zip(results[count:], scan.output_axes, strict=True)),
    ]


@contextmanager
def _loop(
    importer: GraphImport, name: str, bounds: list[Value], carried: list[Value], stacked: Sequence[TensorType]
) -> Iterator[tuple[Value, Value, tuple[Value, ...], list[Value], Any]]:
    """Build an op with a body, inside the ``with``.

    Yields:
        The number of the iteration, the condition, the carried values, the results (once it is built), and the function
        that ends the body by the condition, the next values, the slices of stacked outputs, and the numbers of these.
    """
    builder = importer.builder
    initial = [*carried, *(builder.op(BUFFER, (), [type_]) for type_ in stacked)]
    types = [value.type for value in initial]
    results: list[Value] = []
    with (
        builder.region_op(name, [*bounds, *initial], types) as op,
        builder.region(op, [NUMBER, TRUTH, *types]) as (number, condition, *arguments),
    ):
        buffers = arguments[len(carried) :]

        def finish(goes_on: Value, next_values: Sequence[Value], slices: Sequence[Value], *steps: Value) -> None:
            indices = steps if len(steps) == len(slices) else steps * len(slices)
            updated = [
                builder.op(UPDATE, [buffer, value, index], [buffer.type])
                for buffer, value, index in zip(buffers, slices, indices, strict=True)
            ]
            builder.emit(YIELD, [goes_on, *next_values, *updated])

        yield number, condition, tuple(arguments[: len(carried)]), results, finish
    results.extend(op.results)


def _moved(builder: Builder, value: Value, axis: int) -> Value:
    """Return a tensor whose first dimension is put at an axis."""
    type_ = value.type
    assert isinstance(type_, TensorType)
    axis %= type_.rank
    if axis == 0:
        return value
    order = (*range(1, axis + 1), 0, *range(axis + 1, type_.rank))
    shape = tuple(type_.shape[dim] for dim in order)
    moved: Value = builder.op("onnx.Transpose", [value], [TensorType(shape, type_.element_type)], perm=order)
    return moved


def _stacked(type_: Type, count: int | None) -> TensorType:
    assert isinstance(type_, TensorType)
    return TensorType((count, *type_.shape), type_.element_type)


_IMPORTS: dict[str, Any] = {"If": _import_if, "Loop": _import_loop, "Scan": _import_scan}
