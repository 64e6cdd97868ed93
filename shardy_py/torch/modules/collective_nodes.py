"""The collectives of local programs as nodes of FX graphs: PyTorch's functional collectives, started and waited for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.torch.modules.graph_module import GraphBuilder

Finish = Callable[[], Any]
_REDUCTIONS = {"add": "sum", "mul": "product", "max": "max", "min": "min"}


@frozen(eq=False)
class CollectiveCall:
    """A call of a functional collective that is not made yet.

    Args:
        function: The name of the functional collective.
        operand: The node of the tensor that it takes.
        arguments: Its further arguments.
        finish: Makes the value of what was received.
    """

    function: str
    operand: Any
    arguments: tuple[Any, ...]
    finish: Callable[[Any], Any]


def _all_gather(builder: GraphBuilder, op: Op, node: Any) -> CollectiveCall:
    groups, dim = op.attributes["groups"], op.attributes["dim"]
    order = builder.groups.positions(groups)
    # Inductor promotes truth values with the number of devices: it would gather int64 and read it as bool.
    operand, restore = _as_bytes(builder, node) if _is_bool(op) else (node, lambda gathered: gathered)
    return CollectiveCall(
        "all_gather_into_tensor",
        _contiguous(builder, operand),
        (len(groups[0]), builder.groups.name(groups)),
        lambda gathered: _joined(builder, restore(gathered), order, dim),
    )


def _all_reduce(builder: GraphBuilder, op: Op, node: Any) -> CollectiveCall:
    groups, combiner = op.attributes["groups"], op.attributes["combiner"]
    numbers, name, restore = _as_numbers(builder, op, node, combiner)
    return CollectiveCall("all_reduce", numbers, (name, builder.groups.name(groups)), restore)


def _reduce_scatter(builder: GraphBuilder, op: Op, node: Any) -> CollectiveCall:
    groups, dim, combiner = op.attributes["groups"], op.attributes["dim"], op.attributes["combiner"]
    numbers, name, restore = _as_numbers(builder, op, node, combiner)
    parts = _by_rank(builder, numbers, groups, dim)
    return CollectiveCall("reduce_scatter_tensor", parts, (name, len(groups[0]), builder.groups.name(groups)), restore)


def _all_to_all(builder: GraphBuilder, op: Op, node: Any) -> CollectiveCall:
    groups, split, concat = (op.attributes[name] for name in ("groups", "split_dim", "concat_dim"))
    count = len(groups[0])
    shape = list(static_shape(op.operands[0].type) or ())
    shape[split] //= count
    parts = _by_rank(builder, node, groups, split)
    sizes = [shape[0]] * count
    order = builder.groups.positions(groups)
    return CollectiveCall(
        "all_to_all_single",
        parts,
        (sizes, sizes, builder.groups.name(groups)),
        lambda received: _joined(builder, received, order, concat),
    )


def _collective_permute(builder: GraphBuilder, op: Op, node: Any) -> CollectiveCall:
    """Return an exchange in which each device sends to one other at most; those that get nothing have zeros."""
    import torch

    pairs, groups, shape = op.attributes["groups"], builder.groups, list(static_shape(op.operands[0].type) or ())
    shape += [2] if is_complex(op) else []
    everyone = [range(len(groups.ranks))]
    by_rank = sorted(groups.ranks)
    source = next((first for first, second in pairs if second == groups.device), None)
    targets = [second for first, second in pairs if first == groups.device]
    flat = builder.call(torch.ops.aten.reshape.default, node, [-1])
    size = 1
    for each in shape:
        size *= each
    received = [size if source is not None and rank == groups.ranks[source] else 0 for rank in by_rank]
    sent = [size if rank in [groups.ranks[target] for target in targets] else 0 for rank in by_rank]
    if len(targets) != 1:
        # Nothing is sent, or the same to several.
        flat = builder.call(torch.ops.aten.repeat.default, flat, [len(targets)])

    def finish(elements: Any) -> Any:
        if source is None:
            return builder.call(torch.ops.aten.zeros_like.default, node)
        return builder.call(torch.ops.aten.view.default, elements, shape)

    return CollectiveCall("all_to_all_single", flat, (received, sent, groups.name(everyone)), finish)


COLLECTIVES: Mapping[str, Callable[[GraphBuilder, Op, Any], CollectiveCall]] = {
    "all_gather": _all_gather,
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "collective_permute": _collective_permute,
}
"""Kind of collective to the function that prepares its call."""


def is_complex(op: Op) -> bool:
    """Return whether a collective moves complex numbers, which backends take as pairs of real ones."""
    return str(getattr(op.operands[0].type, "element_type", "")).startswith("complex")


def start_collective(builder: GraphBuilder, op: Op, kind: str, node: Any) -> Finish:
    """Start a collective and return what waits for it.

    Args:
        builder: The builder of the graph.
        op: The collective.
        kind: Its kind.
        node: Its operand.

    Raises:
        UnsupportedError: it multiplies complex numbers.
    """
    import torch

    if not is_complex(op):
        return _started(builder, kind, COLLECTIVES[kind](builder, op, node))
    if op.attributes.get("combiner", "add") != "add":
        hint = "multiply what is replicated, or the real and imaginary parts"
        raise UnsupportedError(Diagnostic("complex-product", "complex numbers have no such reduction", hint=hint))
    aten = torch.ops.aten
    pairs = builder.call(aten.view_as_real.default, builder.call(aten.resolve_conj.default, node))
    finish = _started(builder, kind, COLLECTIVES[kind](builder, op, pairs))
    return lambda: builder.call(aten.view_as_complex.default, _contiguous(builder, finish()))


def start_bucket(builder: GraphBuilder, ops: Sequence[Op], kind: str, nodes: Sequence[Any]) -> list[Finish]:
    """Start several collectives of one kind by one call, and return what waits for each.

    Args:
        builder: The builder of the graph.
        ops: The collectives, over the same devices and of one element type.
        kind: Their kind.
        nodes: Their operands.
    """
    calls = [COLLECTIVES[kind](builder, op, node) for op, node in zip(ops, nodes, strict=True)]
    if kind == "reduce_scatter":
        return _started_as_one(builder, ops, kind, calls)
    function = _functional(f"{calls[0].function}_coalesced")
    started = builder.start(kind, function, [call.operand for call in calls], *calls[0].arguments)
    items = [builder.call(operator.getitem, started, number) for number in range(len(calls))]
    return [_finish(builder, call, item) for call, item in zip(calls, items, strict=True)]


def _started(builder: GraphBuilder, kind: str, call: CollectiveCall) -> Finish:
    return _finish(builder, call, builder.start(kind, _functional(call.function), call.operand, *call.arguments))


def _finish(builder: GraphBuilder, call: CollectiveCall, started: Any) -> Finish:
    return lambda: call.finish(builder.wait(started))


def _started_as_one(
    builder: GraphBuilder, ops: Sequence[Op], kind: str, calls: Sequence[CollectiveCall]
) -> list[Finish]:
    """Start reductions of several tensors as that of one; backends reduce those of a list one after the other."""
    import torch

    aten, count = torch.ops.aten, len(ops[0].attributes["groups"][0])
    rows = [builder.call(aten.reshape.default, call.operand, [count, -1]) for call in calls]
    joined = builder.call(aten.cat.default, rows, 1)
    shapes = [list(static_shape(op.results[0].type) or ()) for op in ops]
    sizes = [prod(shape) for shape in shapes]
    started = builder.start(kind, _functional(calls[0].function), joined, *calls[0].arguments)

    @cache
    def parts() -> Any:
        """Wait for all where the first one is used."""
        flat = builder.call(aten.reshape.default, builder.wait(started), [-1])
        return builder.call(aten.split_with_sizes.default, flat, sizes)

    def finish_of(number: int) -> Finish:
        def finish() -> Any:
            part = builder.call(operator.getitem, parts(), number)
            return calls[number].finish(builder.call(aten.reshape.default, part, shapes[number]))

        return finish

    return [finish_of(number) for number in range(len(calls))]


def _functional(name: str) -> Any:
    import torch
    import torch.distributed._functional_collectives

    return getattr(torch.ops._c10d_functional, name).default


def _contiguous(builder: GraphBuilder, node: Any) -> Any:
    import torch

    return builder.call(torch.ops.aten.contiguous.default, node)


def _joined(builder: GraphBuilder, stacked: Any, order: list[int], dim: int) -> Any:
    """Return the parts of a group, which are behind each other along the first dimension by rank, along another one."""
    import torch

    if order == list(range(len(order))) and dim == 0:
        return stacked
    parts = builder.call(torch.ops.aten.chunk.default, stacked, len(order), 0)
    items = [builder.call(operator.getitem, parts, number) for number in order]
    return builder.call(torch.ops.aten.cat.default, items, dim)


def _by_rank(builder: GraphBuilder, node: Any, groups: Any, dim: int) -> Any:
    """Return the parts of a tensor along a dimension behind each other along the first one, by rank."""
    import torch

    order = builder.groups.positions(groups)
    if order == list(range(len(order))) and dim == 0:
        return _contiguous(builder, node)
    parts = builder.call(torch.ops.aten.chunk.default, node, len(order), dim)
    items = [builder.call(operator.getitem, parts, order.index(rank)) for rank in range(len(order))]
    return builder.call(torch.ops.aten.cat.default, items, 0)


def _as_numbers(builder: GraphBuilder, op: Op, node: Any, combiner: str) -> tuple[Any, str, Callable[[Any], Any]]:
    """Return a tensor as collectives take it, the name of the reduction, and what restores the type of the result.

    Truth values are reduced as bytes.
    """
    is_bool = _is_bool(op)
    if not is_bool and combiner not in ("and", "or"):
        return node, _REDUCTIONS[combiner], lambda reduced: reduced
    name = "max" if combiner in ("add", "or", "max") else "min"
    if not is_bool:
        return node, name, lambda reduced: reduced
    numbers, restore = _as_bytes(builder, node)
    return numbers, name, restore


def _is_bool(op: Op) -> bool:
    return getattr(op.operands[0].type, "element_type", "") == "i1"


def _as_bytes(builder: GraphBuilder, node: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return truth values as bytes, and what makes truth values of such bytes."""
    import torch

    to_dtype = torch.ops.aten.to.dtype
    return builder.call(to_dtype, node, torch.uint8), lambda moved: builder.call(to_dtype, moved, torch.bool)
