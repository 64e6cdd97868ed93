"""Functions that a model defines itself, put in the places of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import ModelProto, NodeProto
from onnx.inliner import inline_local_functions

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.guards.error_texts import describe_error
from shardy_py.onnx.node_graphs import node_graphs


def inline_functions(model: ModelProto) -> ModelProto:
    """Return a model with the bodies of its own functions in the places of their nodes.

    A function that uses another version of operators than the model stays as it is.

    Raises:
        ParseError: functions are recursive, or ONNX refuses them for another reason.
    """
    if not model.functions:
        return model
    prepared = ModelProto()
    prepared.CopyFrom(model)
    _import_domains(prepared)
    _write_defaults(prepared)
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


def _write_defaults(model: ModelProto) -> None:
    """Give nodes of functions the attributes that have a default and that they do not name: the inliner drops these."""
    functions = {(item.domain, item.name, item.overload): item for item in model.functions}
    for nodes in (model.graph.node, *[function.node for function in model.functions]):
        for node in _all_nodes(nodes):
            function = functions.get((node.domain, node.op_type, node.overload))
            if function is not None:
                given = {item.name for item in node.attribute}
                node.attribute.extend([item for item in function.attribute_proto if item.name not in given])


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for graph in node_graphs(node):
            yield from _all_nodes(graph.node)
