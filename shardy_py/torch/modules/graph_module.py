"""Local programs as FX graphs, with functional collectives over the groups of a device mesh.

The graph is that of one process: what depends on the number of its device is a constant. A collective is started where
the local program has it and waited for before its first use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.torch.modules.collective_buckets import CollectiveBucket, collective_buckets, passes_on
from shardy_py.torch.modules.collective_nodes import COLLECTIVES, start_bucket, start_collective
from shardy_py.torch.parallel.calls import BY_ADDRESS, UNUSUAL, VIEWS, call, call_arguments, operator_of, tensors_of
from shardy_py.torch.parallel.process_groups import ProcessGroups, check_groups_outside
from shardy_py.torch.parallel.runner import dtype_of


def has_control_flow(program: Program) -> bool:
    """Return whether a local program has ops with regions, which no FX graph of its own has."""
    return any(op.regions or op.name.startswith("higher_order.") for op in program.walk() if op.name != FUNCTION)


def make_graph(
    program: Program,
    groups: ProcessGroups,
    torch_device: Any,
    names: Sequence[str],
    *,
    forward_count: int | None = None,
    bucket_bytes: float = 0.0,
) -> GraphBuilder:
    """Return the builder with the FX graph of a local program.

    Args:
        program: The local program, without control flow.
        groups: The process groups.
        torch_device: The device of PyTorch on which tensors are made.
        names: The names of the arguments.
        forward_count: How many of the results, the first ones, are those of a forward pass; None for one pass.
        bucket_bytes: The bytes that one call of a collective moves at most of several tensors; 0 for single ones.
    """
    check_groups_outside(program, groups.ranks)
    ops = list(program.functions["main"].regions[0].blocks[0].ops)
    forward = None if forward_count is None else ops[-1].operands[:forward_count]
    buckets = collective_buckets(ops, forward, bucket_bytes) if bucket_bytes else {}
    builder = GraphBuilder(groups, torch_device, buckets)
    builder.build(program, names)
    return builder


class GraphBuilder:
    """Builder of the FX graph of a local program without control flow.

    Attributes:
        graph: The graph.
        groups: The process groups.
        torch_device: The device of PyTorch on which tensors are made.
        buckets: The collectives that one call runs, by the id of each.
        counts: Kind of collective to how many calls the graph has.
    """

    def __init__(
        self, groups: ProcessGroups, torch_device: Any, buckets: Mapping[int, CollectiveBucket] | None = None
    ) -> None:
        import torch

        self.graph = torch.fx.Graph()
        self.groups = groups
        self.torch_device = torch_device
        self.buckets = buckets or {}
        self.counts: dict[str, int] = {}
        self._nodes: dict[int, Any] = {}
        self._waited: dict[Any, Callable[[], Any]] = {}

    def build(self, program: Program, names: Sequence[str]) -> None:
        """Make the graph of a program; it takes and returns shards.

        Args:
            program: The local program.
            names: The names of its arguments, for its placeholders.
        """
        block = program.functions["main"].regions[0].blocks[0]
        for value, name in zip(block.arguments, names, strict=True):
            node = self._nodes[value.id] = self.graph.placeholder("".join(c if c.isalnum() else "_" for c in name))
            # The name is an identifier, and that of no other node.
            node.target = node.name
        for op in block.ops:
            if op is block.last:
                self.graph.output(tuple(self._tensor(value) for value in op.operands))
            else:
                self._add(op)
        self.graph.eliminate_dead_code(is_impure_node=lambda node: node.op in ("placeholder", "output"))

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a new node."""
        return self.graph.call_function(target, args, kwargs)

    def node_of(self, value: Any) -> Any:
        """Return the node of a value of the local program, or None where the graph has none."""
        import torch

        node = self._nodes.get(value.id)
        return node if isinstance(node, torch.fx.Node) else None

    def start(self, kind: str, target: Any, *args: Any) -> Any:
        """Return the node that starts a collective.

        Args:
            kind: Its kind.
            target: The functional collective.
            args: Its arguments.
        """
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.call(target, *args)

    def wait(self, node: Any) -> Any:
        """Return the node that waits for what a collective receives."""
        import torch

        return self.call(torch.ops._c10d_functional.wait_tensor.default, node)

    def _add(self, op: Op) -> None:
        space, _, kind = op.name.partition(".")
        if op.results and op.results[0].id in self._nodes:
            # A bucket ahead has needed it.
            return
        if op.id in self.buckets:
            self._add_bucket(op, kind)
        elif self.buckets and not self._can_be_added(op):
            # What uses its result comes later, too, and adds it.
            return
        elif kind in COLLECTIVES and space == "spmd":
            self._waited[op.results[0].id] = start_collective(self, op, kind, self._tensor(op.operands[0]))
        elif space == "spmd":
            self._nodes[op.results[0].id] = _FORMS[kind](self, op, [self._value(value) for value in op.operands])
        else:
            self._add_call(op)

    def _add_bucket(self, op: Op, kind: str) -> None:
        """Start the collectives of a bucket where it starts."""
        bucket = self.buckets[op.id]
        if op is not bucket.start:
            return
        finished = start_bucket(self, bucket.ops, kind, [self._tensor(each.operands[0]) for each in bucket.ops])
        self._waited.update(zip((each.results[0].id for each in bucket.ops), finished, strict=True))

    def _is_known(self, value: Value) -> bool:
        return value.id in self._nodes or value.id in self._waited

    def _can_be_added(self, op: Op) -> bool:
        """Return whether an op does not wait for a bucket that starts later."""
        while passes_on(op) and not self._is_known(op.operands[0]):
            producer = op.operands[0].defining_op
            if producer is None or not passes_on(producer):
                return False
            op = producer
        return True

    def _add_call(self, op: Op) -> None:
        """Add the call of an operator."""
        tensors = [self._tensor(value) for value in op.operands]
        for number, operand in enumerate(op.attributes.get("operand_names", ())):
            if operand in BY_ADDRESS.get(op.name, ()) and _may_be_strided(op.operands[number]):
                tensors[number] = self.call(operator_of("aten.contiguous.default"), tensors[number])
        if op.name in UNUSUAL:
            node = self.call(call, op.name, _plain(op.attributes), tensors, self.torch_device)
            results = [self.call(operator.getitem, node, number) for number in range(len(op.results))]
        elif op.name in VIEWS:
            results = [self.call(operator_of("aten.reshape.default"), tensors[0], list(op.attributes["size"]))]
        else:
            target = operator_of(op.name)
            args, kwargs = call_arguments(target, op.attributes, tensors, self.torch_device)
            results = self._results(target, self.call(target, *args, **kwargs), len(op.results))
        for value, node in zip(op.results, results, strict=True):
            self._nodes[value.id] = node

    def _results(self, target: Any, node: Any, count: int) -> list[Any]:
        """Return the nodes of the results of a call; what is no tensor has no result in the program."""
        returns = target._schema.returns
        if len(returns) == 1 and str(returns[0].type) == "Tensor":
            return [node]
        if len(returns) > 1 and (len(returns) != count or any("List" in str(item.type) for item in returns)):
            node = self.call(tensors_of, node)
        return [self.call(operator.getitem, node, number) for number in range(count)]

    def _value(self, value: Any) -> Any:
        """Return the node of a value, or the number that it is; what computes it is added, if it was not before."""
        if value.defining_op is not None and not self._is_known(value):
            self._add(value.defining_op)
        if value.id in self._waited:
            self._nodes[value.id] = self._waited.pop(value.id)()
        return self._nodes[value.id]

    def _tensor(self, value: Any) -> Any:
        """Return the node of a value; a number becomes a tensor."""
        import torch

        node = self._value(value)
        if isinstance(node, torch.fx.Node):
            return node
        # A tensor of its own for each use: a graph may be cut in two.
        return self.call(
            torch.ops.aten.full.default, [], node, dtype=dtype_of(value.type), device=torch.device(self.torch_device)
        )


def _may_be_strided(value: Value) -> bool:
    """Return whether a value may be a part of another one; the results of norms are not."""
    return value.defining_op is not None and not value.defining_op.name.startswith("aten.native_layer_norm.")


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as the code of a graph can write them, without those of propagation."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in attributes.items()
        if not name.startswith("sdy.")
    }


def _offset(builder: GraphBuilder, op: Op, operands: Sequence[Any]) -> int:
    table = op.attributes["table"]
    return 0 if not table else int(table[0] if len(table) == 1 else table[builder.groups.device])


def _scalar(builder: GraphBuilder, op: Op, operands: Sequence[Any]) -> Any:
    import torch

    dtype = dtype_of(op.results[0].type)
    if "limit" in op.attributes:
        info = torch.iinfo(dtype)
        return info.max if op.attributes["limit"] == "highest" else info.min
    value = op.attributes["value"]
    if dtype == torch.bool:
        return bool(value)
    return value if dtype.is_floating_point or dtype.is_complex else int(value)


def _dynamic_slice(builder: GraphBuilder, op: Op, operands: Sequence[Any]) -> Any:
    import torch

    value, *starts = operands
    shape = static_shape(op.operands[0].type) or ()
    for dim, (start, size) in enumerate(zip(starts, op.attributes["sizes"], strict=True)):
        if size == shape[dim]:
            continue
        if isinstance(start, torch.fx.Node):
            value = builder.call(narrowed, value, dim, start, size)
        else:
            first = min(start, shape[dim] - size)
            value = builder.call(torch.ops.aten.slice.Tensor, value, dim, first, first + size)
    return value


def narrowed(value: Any, dim: int, start: Any, size: int) -> Any:
    """Return a part of a tensor that begins at a number in another tensor."""
    return value.narrow(dim, min(int(start), value.shape[dim] - size), size)


def _mask(builder: GraphBuilder, op: Op, operands: Sequence[Any]) -> Any:
    import torch

    value, count, fill = operands
    dim, shape = op.attributes["dim"], static_shape(op.operands[0].type) or ()
    aten = torch.ops.aten
    if isinstance(count, int) and not isinstance(fill, torch.fx.Node):
        if count >= shape[dim]:
            return value
        unpadded = builder.call(aten.slice.Tensor, value, dim, 0, count)
        widths = [0, 0] * (len(shape) - 1 - dim) + [0, shape[dim] - count]
        return builder.call(aten.constant_pad_nd.default, unpadded, widths, fill)
    numbers = builder.call(aten.arange.default, shape[dim], device=torch.device(builder.torch_device))
    numbers = builder.call(aten.view.default, numbers, [-1 if each == dim else 1 for each in range(len(shape))])
    inside = builder.call(operator.lt, numbers, count)
    return builder.call(torch.where, inside, value, fill)


def _embedding(builder: GraphBuilder, op: Op, operands: Sequence[Any]) -> Any:
    """Return the rows that the device has, and zeros for the others."""
    import torch

    table, indices, offset = operands
    aten, count = torch.ops.aten, (static_shape(op.operands[0].type) or ())[0]
    places = builder.call(aten.sub.Tensor, indices, offset)
    inside = builder.call(
        aten.logical_and.default,
        builder.call(aten.ge.Scalar, places, 0),
        builder.call(aten.lt.Scalar, places, count),
    )
    rows = builder.call(aten.embedding.default, table, builder.call(aten.clamp.default, places, 0, count - 1))
    outside = builder.call(aten.unsqueeze.default, builder.call(aten.logical_not.default, inside), -1)
    return builder.call(aten.masked_fill.Scalar, rows, outside, 0)


_FORMS: Mapping[str, Callable[[GraphBuilder, Op, Sequence[Any]], Any]] = {
    "offset": _offset,
    "scalar": _scalar,
    "dynamic_slice": _dynamic_slice,
    "mask": _mask,
    "embedding": _embedding,
}
