"""Functions that a model defines itself, put in the places of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import FunctionProto, ModelProto, NodeProto
from onnx.inliner import inline_local_functions

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.guards.error_texts import describe_error
from shardy_py.onnx.node_graphs import node_graphs

_Key = tuple[str, str, str]
"""The domain, the name and the overload of a function."""


def inline_functions(model: ModelProto) -> ModelProto:
    """Return a model with the bodies of its own functions in the places of their nodes.

    The names of the nodes in a body begin with that of the node in whose place they are, as scopes do. A function that
    uses another version of operators than the model stays as it is.

    Raises:
        ParseError: functions are recursive, or ONNX refuses them for another reason.
    """
    if not model.functions:
        return model
    prepared = ModelProto()
    prepared.CopyFrom(model)
    _import_domains(prepared)
    _copy_functions(prepared)
    try:
        inlined: ModelProto = inline_local_functions(prepared)
    except Exception as error:
        message = f"ONNX cannot inline the functions of the model: {describe_error(error)}"
        raise ParseError(Diagnostic("malformed-model", message, hint="onnx.checker.check_model(model)")) from None
    if inlined.functions:
        # Those that stay may call some that ONNX took away.
        del inlined.functions[:]
        inlined.functions.extend(prepared.functions)
    return inlined


def _import_domains(model: ModelProto) -> None:
    """Let a model import the domains of operators that only its functions use."""
    known = {item.domain for item in model.opset_import}
    for item in [item for function in model.functions for item in function.opset_import]:
        if item.domain not in known:
            known.add(item.domain)
            model.opset_import.add().CopyFrom(item)


def _copy_functions(model: ModelProto) -> None:
    """Give each node of a function that can be inlined a function of its own, with the names and attributes it has."""
    versions = {item.domain: item.version for item in model.opset_import}
    functions: dict[_Key, FunctionProto] = {
        (item.domain, item.name, item.overload): item
        for item in model.functions
        if all(versions[opset.domain] == opset.version for opset in item.opset_import)
    }
    pending: list[tuple[NodeProto, tuple[_Key, ...]]] = [(node, ()) for node in _all_nodes(model.graph.node)]
    while pending:
        node, callers = pending.pop()
        key = node.domain, node.op_type, node.overload
        function = functions.get(key)
        # Recursive functions stay, for ONNX to refuse them.
        if function is None or key in callers:
            continue
        copy = model.functions.add()
        copy.CopyFrom(function)
        copy.name = node.op_type = f"{function.name} {len(model.functions)}"
        _write_defaults(node, function)
        _adopt(copy, node)
        pending += [(inner, (*callers, key)) for inner in _all_nodes(copy.node)]


def _write_defaults(node: NodeProto, function: FunctionProto) -> None:
    """Give a node of a function the attributes that it does not name and that have a default, which ONNX leaves out."""
    given = {item.name for item in node.attribute}
    node.attribute.extend([item for item in function.attribute_proto if item.name not in given])


def _adopt(function: FunctionProto, node: NodeProto) -> None:
    """Name the nodes of a function after the node of it, and drop their attributes that refer to none of the node's."""
    given = {item.name for item in node.attribute}
    for inner in _all_nodes(function.node):
        if node.name:
            inner.name = f"{node.name}/{(inner.name or inner.op_type).lstrip('/')}"
        for position in reversed(range(len(inner.attribute))):
            reference = inner.attribute[position].ref_attr_name
            if reference and reference not in given:
                del inner.attribute[position]


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for graph in node_graphs(node):
            yield from _all_nodes(graph.node)
