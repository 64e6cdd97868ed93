"""Programs in which no operator writes to its operands: an op graph has values only."""

from __future__ import annotations

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
        UnsupportedError: an operator of a graph module writes to a view, to a tensor that has views, or to an input.
    """
    if hasattr(native, "graph_signature"):
        return native.run_decompositions({}) if any(map(_writes, _nodes(native.graph_module))) else native
    for node in _nodes(native):
        for written in _written_operands(node):
            if written.op != "call_function" or _is_view(written) or any(map(_is_view, written.users)):
                message = f"the node {node.name} writes to {written.name}, which other tensors may be views of"
                hint = "trace a functional program: torch.export.export, or torch.func.functionalize within make_fx"
                raise UnsupportedError(
                    Diagnostic("written-operand", message, location_of(node), str(node.target), hint)
                )
    return native


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


def _is_view(node: Any) -> bool:
    """Return whether the result of a node shares its elements with an operand that it does not write to."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or str(node.target) in _HARMLESS:
        return False
    return any(item.alias_info is not None and not item.alias_info.is_write for item in schema.returns)


def _argument(node: Any, name: str) -> Any:
    """Return an argument of a call by its name, or None."""
    names = [item.name for item in node.target._schema.arguments]
    position = names.index(name)
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)
