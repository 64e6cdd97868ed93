"""Programs in which no operator writes to its operands: an op graph has values only."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.torch.places import location_of

_STATISTICS = {"aten.batch_norm.default": "training", "aten.instance_norm.default": "use_input_stats"}
"""Operators that write to running statistics, which their schemas do not say, to the argument that asks for it."""
_HARMLESS = frozenset(("aten.detach_.default",))


def functional(native: Any) -> Any:
    """Return a program without writes to operands.

    What ``torch.export.export`` gives may write to tensors in place, also through views of them; its decomposition
    without a table makes new tensors of these. Where nothing is written, the program is returned as it is.

    Args:
        native: The exported program or graph module.

    Raises:
        UnsupportedError: an operator of a graph module writes to an input, or to elements that others read behind it.
    """
    if hasattr(native, "graph_signature"):
        return native.run_decompositions({}) if any(map(_writes, _nodes(native.graph_module))) else native
    for module in native.modules():
        if hasattr(module, "graph"):
            _check_writes(list(module.graph.nodes))
    return native


def _check_writes(nodes: list[Any]) -> None:
    """Check that no node reads a tensor behind a write to the elements that it shares, but by the result of the write.

    Raises:
        UnsupportedError: a node does so, or an input is written to.
    """
    place = {node: number for number, node in enumerate(nodes)}
    shared: dict[Any, set[Any]] = {}
    for node in nodes:
        for written in _written_operands(node):
            stale = [item for item in shared.get(written, {written}) if not _are_apart(item, written)]
            read = any(place[user] > place[node] for item in stale for user in item.users)
            if read or any(item.op != "call_function" for item in stale):
                message = f"the node {node.name} writes to {written.name}, whose elements others read or own"
                hint = "trace a functional program: torch.export.export, or torch.func.functionalize within make_fx"
                raise UnsupportedError(
                    Diagnostic("written-operand", message, location_of(node), str(node.target), hint)
                )
        group = {node}.union(*(shared.get(item, {item}) for item in _shared_operands(node)))
        shared.update(dict.fromkeys(group, group))


def _are_apart(one: Any, other: Any) -> bool:
    """Return whether two nodes are different parts of one split tensor."""
    are_parts = one.target is other.target is operator.getitem and one is not other
    return are_parts and one.args[0] is other.args[0] and one.args[1] != other.args[1]


def _shared_operands(node: Any) -> list[Any]:
    """Return the nodes whose elements the result of a node may share."""
    if node.op == "call_function" and node.target is operator.getitem:
        return [node.args[0]] if _aliased(node.args[0]) else []
    return _aliased(node)


def without_writes(target: Any) -> Any:
    """Return the operator that makes a new tensor instead of writing to an operand, where there is one."""
    schema = getattr(target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return target
    space, _, name = schema.name.partition("::")
    import torch

    packet = getattr(getattr(torch.ops, space), name.removesuffix("_"), None)
    return getattr(packet, schema.overload_name or "default", target)


def is_dense(node: Any) -> bool:
    """Return whether the tensor of a node has its elements in order in memory of its own."""
    value = node.meta.get("val")
    if value is None or not value.is_contiguous() or value.storage_offset() != 0:
        return False
    return bool(value.untyped_storage().nbytes() == value.numel() * value.element_size())


def _nodes(module: Any) -> Iterator[Any]:
    """Yield the nodes that call functions, those of nested graphs included."""
    for inner in module.modules():
        graph = getattr(inner, "graph", None)
        yield from (node for node in getattr(graph, "nodes", ()) if node.op == "call_function")


def _writes(node: Any) -> bool:
    asked = _STATISTICS.get(str(node.target))
    return bool(_written_operands(node)) or (asked is not None and _argument(node, asked) is True)


def _written_operands(node: Any) -> list[Any]:
    """Return the nodes that a node writes to."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or str(node.target) in _HARMLESS:
        return []
    names = [item.name for item in schema.arguments if item.alias_info is not None and item.alias_info.is_write]
    found = [_argument(node, name) for name in names]
    return [item for item in found if hasattr(item, "all_input_nodes")]


def _aliased(node: Any) -> list[Any]:
    """Return the operands whose elements results of an operator share, those that it writes to included."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not any(item.alias_info is not None for item in schema.returns):
        return []
    found = [_argument(node, item.name) for item in schema.arguments if item.alias_info is not None]
    return [item for item in found if hasattr(item, "all_input_nodes")]


def _argument(node: Any, name: str) -> Any:
    """Return an argument of a call by its name, or None."""
    names = [item.name for item in node.target._schema.arguments]
    position = names.index(name)
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)
