"""Programs in which no operator writes to its operands: an op graph has values only."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.torch.frontend.calls import flat, schema_arguments
from shardy_py.torch.frontend.places import location_of

_STATISTICS = {"aten.batch_norm.default": "training", "aten.instance_norm.default": "use_input_stats"}
"""Operators that write to running statistics, which their schemas do not say, to the argument that asks for it."""
_HIDDEN = {"aten.native_batch_norm.default": "_native_batch_norm_legit_functional"}
"""Those of them that graph modules have, to the operator that returns new statistics."""
_SAME = frozenset(
    f"aten.{name}.default" for name in ("detach", "alias", "detach_", "detach_copy", "alias_copy", "clone")
)
"""Operators whose result is the tensor that they are given, or a copy of it."""
_HARMLESS = frozenset(("aten.detach_.default",))


Overwritten = Mapping[Any, tuple[tuple[Any, int], ...]]
"""Node that writes to the nodes that hold a tensor, each with the number of the result that it is from then on."""


def functional(native: Any) -> tuple[Any, Overwritten]:
    """Return a program in which operators make new tensors, and the nodes that these replace.

    What ``torch.export.export`` gives may write to tensors in place, also through views of them; its decomposition
    without a table makes new tensors of these. Where nothing is written, the program is returned as it is. A graph
    module may write to tensors of which it has no views, and to inputs that it returns.

    Args:
        native: The exported program or graph module.

    Raises:
        UnsupportedError: an operator of a graph module writes to an input that is not returned, to a constant, or to
            elements that views read behind it.
    """
    if hasattr(native, "pairs"):
        # A traced module is functional.
        return native, {}
    if hasattr(native, "graph_signature"):
        return (_decomposed(native) if any(map(_writes, _nodes(native.graph_module))) else native), {}
    overwritten: dict[Any, tuple[tuple[Any, int], ...]] = {}
    for module in native.modules():
        if hasattr(module, "graph"):
            overwritten |= _checked_writes(list(module.graph.nodes), is_main=module is native)
    return native, overwritten


def _decomposed(native: Any) -> Any:
    """Return an exported program without writes; PyTorch 2.13 warns of a class that it uses itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)`", FutureWarning)
        return native.run_decompositions({})


def _checked_writes(nodes: list[Any], *, is_main: bool) -> dict[Any, tuple[tuple[Any, int], ...]]:
    """Return the nodes that each writing node overwrites, with the number of the result that replaces each.

    Raises:
        UnsupportedError: a view reads elements after a write to them, an input that is written to is not returned, or a
            constant is written to.
    """
    place = {node: number for number, node in enumerate(nodes)}
    shared: dict[Any, set[Any]] = {}
    equal: dict[Any, set[Any]] = {}
    overwritten: dict[Any, tuple[tuple[Any, int], ...]] = {}
    inputs: list[tuple[Any, Any]] = []
    copied: dict[Any, Any] = {}
    for node in nodes:
        target = without_writes(node)
        for number, written in _written_operands(node):
            aliases, group = equal.setdefault(written, {written}), shared.get(written, {written})
            kinds = {item.op for item in aliases} - {"call_function"}
            if group <= aliases and _is_functional(target) and kinds <= ({"placeholder"} if is_main else set()):
                overwritten[node] = (*overwritten.get(node, ()), *((item, number) for item in aliases))
                inputs += [(node, item) for item in aliases if item.op == "placeholder"]
                copied |= {node: node.args[1]} if str(node.target) == "aten.copy_.default" else {}
                continue
            stale = [item for item in group if not _are_apart(item, written)]
            read = any(place[user] > place[node] for item in stale for user in item.users)
            if read or any(item.op != "call_function" for item in stale):
                raise _refuse(node, f"writes to {written.name}, whose elements others read or own")
        operands = _shared_operands(node)
        group = {node}.union(*(shared.get(item, {item}) for item in operands))
        shared.update(dict.fromkeys(group, group))
        if len(operands) == 1 and (str(node.target) in _SAME or _returns_written(node)):
            aliases = equal.setdefault(operands[0], {operands[0]})
            aliases.add(node)
            equal[node] = aliases
    for node, item in inputs:
        if not any(map(_is_returned, {*equal[item], copied.get(node, item)})):
            raise _refuse(node, f"writes to the input {item.name}, which is not returned")
    return overwritten


def _is_returned(node: Any) -> bool:
    """Return whether a graph returns the tensor of a node, or a copy of it."""
    users = getattr(node, "users", ())
    return any(user.op == "output" or (str(user.target) in _SAME and _is_returned(user)) for user in users)


def _refuse(node: Any, problem: str) -> UnsupportedError:
    hint = "return the inputs that are written to, and trace what writes through views again, as make_fx(functionalize"
    hint += "(graph, remove='mutations_and_views')), or export the module with torch.export.export"
    message = f"the node {node.name} {problem}"
    return UnsupportedError(Diagnostic("written-operand", message, location_of(node), str(node.target), hint))


def _are_apart(one: Any, other: Any) -> bool:
    """Return whether two nodes are different parts of one split tensor."""
    are_parts = one.target is other.target is operator.getitem and one is not other
    return are_parts and one.args[0] is other.args[0] and one.args[1] != other.args[1]


def _shared_operands(node: Any) -> list[Any]:
    """Return the nodes whose elements the result of a node may share."""
    if node.op == "call_function" and node.target is operator.getitem:
        return [node.args[0]] if _aliased(node.args[0]) else []
    return _aliased(node)


def without_writes(node: Any) -> Any:
    """Return the operator that makes new tensors for a call that writes to operands, where there is one.

    Its results are those of the operator of the call, followed by the new tensors of the operands that are not
    among them.
    """
    target = node.target
    schema = getattr(target, "_schema", None)
    if schema is None or not (schema.is_mutable or _writes_hidden(node)):
        return target
    space, _, name = schema.name.partition("::")
    import torch

    library = getattr(torch.ops, space)
    if _writes_hidden(node):
        return getattr(library, _HIDDEN[str(target)]).default
    overload = _without_out(getattr(library, name.removesuffix("_"), None), schema)
    packet = getattr(library, f"{name.removesuffix('_')}_functional", None)
    overload = packet.default if overload is None and packet is not None else overload
    return target if overload is None else overload


def _without_out(packet: Any, schema: Any) -> Any:
    """Return the overload of a packet whose parameters are those of a schema without its out parameters."""
    inputs = [item for item in schema.arguments if not (item.kwarg_only and item.alias_info)]
    namesake = schema.overload_name or "default"
    for overload in sorted([] if packet is None else packet.overloads(), key=lambda name: (name != namesake, name)):
        candidate = getattr(packet, overload)
        leading = candidate._schema.arguments[: len(inputs)]
        if (
            _is_functional(candidate)
            and [str(item.type) for item in leading] == [str(item.type) for item in inputs]
            and (overload == namesake or [item.name for item in leading] == [item.name for item in inputs])
        ):
            return candidate
    return None


def arguments_without_writes(
    node: Any, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments for the operator that `without_writes` gives for a call, which may name them otherwise.

    Args:
        node: The call.
        target: The operator.
        args: The arguments of the call.
        kwargs: Those of them that are given by name.
    """
    if target is node.target:
        return args, dict(kwargs)
    arguments = schema_arguments(node.target, args, kwargs)
    named = {item.name for item in node.target._schema.arguments if item.kwarg_only}
    keyword_only = {item.name for item in target._schema.arguments if item.kwarg_only}
    positional = tuple(value for name, value in arguments.items() if name not in named)
    return positional, {name: value for name, value in arguments.items() if name in named & keyword_only}


def results_without_writes(node: Any, target: Any) -> list[Any]:
    """Return tensors like the results of the operator that `without_writes` gives for a call.

    What is written gets the type of the tensor that it is written to, the result of an operator on elements that of
    its operands.
    """
    value = node.meta.get("val")
    if any(tag.name == "pointwise" for tag in target.tags):
        from torch.fx.node import map_arg

        meta_arguments = (map_arg(node.args, _on_meta), map_arg(node.kwargs, _on_meta))
        args, kwargs = arguments_without_writes(node, target, *meta_arguments)
        return flat(target(*args, **kwargs))
    results = [] if value is None else flat(value)
    replaced = _written_operands(node, with_unchanged=True)
    return [*results, *(item.meta["val"] for number, item in replaced if number >= len(results))]


def _on_meta(node: Any) -> Any:
    """Return a tensor like that of a node, without elements."""
    import torch

    value = node.meta.get("val")
    if value is None:
        value = attrgetter(node.target)(node.graph.owning_module)
    return torch.empty(tuple(value.shape), dtype=value.dtype, device="meta") if hasattr(value, "dtype") else value


def _writes_hidden(node: Any) -> bool:
    """Return whether a call writes to statistics, which it is given only where they are kept."""
    is_asked = str(node.target) in _HIDDEN and _argument(node, "training") is True
    return is_asked and hasattr(_argument(node, "running_mean"), "all_input_nodes")


def _is_functional(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and not schema.is_mutable


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
    flag_name = _STATISTICS.get(str(node.target))
    return bool(_written_operands(node)) or (flag_name is not None and _argument(node, flag_name) is True)


def _written_operands(node: Any, *, with_unchanged: bool = False) -> list[tuple[int, Any]]:
    """Return the nodes that a node writes to, with the number of the result that each is if nothing is written.

    Args:
        node: The node.
        with_unchanged: Whether operands count that it may write to, and does not.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None or str(node.target) in _HARMLESS:
        return []
    names = [item.name for item in schema.arguments if item.alias_info is not None and item.alias_info.is_write]
    if _writes_hidden(node):
        names = ["running_mean", "running_var"]
    # Without a scale gradients stay as they are.
    are_grads_unchanged = "grads" in names and _argument(node, "grad_scale") is None
    unchanged = {"grads"} if are_grads_unchanged and not with_unchanged else set()
    number = 0 if _returns_written(node) else len(schema.returns)
    operands: list[tuple[int, Any]] = []
    for name in names:
        for item in flat(_argument(node, name)):
            if name not in unchanged and hasattr(item, "all_input_nodes"):
                operands.append((number, item))
            number += 1
    return operands


def _returns_written(node: Any) -> bool:
    """Return whether an operator returns the operands that it writes to, and nothing else."""
    schema = getattr(node.target, "_schema", None)
    returns = () if schema is None else schema.returns
    return bool(returns) and all(item.alias_info is not None and item.alias_info.is_write for item in returns)


def _aliased(node: Any) -> list[Any]:
    """Return the operands whose elements results of an operator share, those that it writes to included."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not any(item.alias_info is not None for item in schema.returns):
        return []
    aliased = [_argument(node, item.name) for item in schema.arguments if item.alias_info is not None]
    return [item for item in aliased if hasattr(item, "all_input_nodes")]


def _argument(node: Any, name: str) -> Any:
    """Return an argument of a call by its name, or None."""
    names = [item.name for item in node.target._schema.arguments]
    position = names.index(name)
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)
