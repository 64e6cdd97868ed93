"""Inputs and outputs of exported programs and graph modules, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.torch.origin import Argument, ArgumentKind
from shardy_py.ir.graph import Value
from shardy_py.values import frozen

_KINDS: dict[str, ArgumentKind] = {
    "PARAMETER": "parameter",
    "BUFFER": "buffer",
    "CONSTANT_TENSOR": "constant",
    "USER_INPUT": "input",
}


@frozen(eq=False)
class Signature:
    """Inputs and outputs of a graph.

    Args:
        native: The exported program or graph module.
        module: The module with the graph.
        arguments: The arguments of the main function, each with its fake tensor.
        nodes: The nodes of the arguments, in the same order; several nodes may read one attribute.
        constants: Node to what it is, for placeholders that are no tensors.
        outputs: The name of each output, and of the buffer or input that it is written to, or "".
    """

    native: Any
    module: Any
    arguments: tuple[tuple[Argument, Any], ...]
    nodes: tuple[tuple[Any, ...], ...]
    constants: Mapping[Any, Any] = field(factory=dict)
    outputs: tuple[tuple[str, str], ...] = ()

    def bind(self, values: Sequence[Value]) -> dict[Any, Any]:
        """Return node to value for all inputs."""
        found = dict(self.constants)
        for nodes, value in zip(self.nodes, values, strict=True):
            found.update(dict.fromkeys(nodes, value))
        return found

    def output(self, number: int) -> tuple[str, str]:
        """Return the name of an output, and what it is written to."""
        return self.outputs[number] if number < len(self.outputs) else ("", "")


def read_signature(native: Any) -> Signature:
    """Return the inputs and outputs of an exported program or graph module.

    Raises:
        UnsupportedError: an input is neither a tensor nor a constant, or has no fake tensor.
    """
    return _of_exported(native) if hasattr(native, "graph_signature") else _of_graph_module(native)


def _of_exported(native: Any) -> Signature:
    module, signature = native.graph_module, native.graph_signature
    placeholders = {node.name: node for node in module.graph.nodes if node.op == "placeholder"}
    arguments, nodes, constants = [], [], {}
    for spec in signature.input_specs:
        kind, node = spec.kind.name, placeholders[spec.arg.name]
        value = node.meta.get("val")
        if hasattr(value, "dtype") and kind in _KINDS:
            arguments.append((Argument(spec.target or spec.arg.name, _KINDS[kind], node.name), value))
            nodes.append((node,))
        elif kind == "USER_INPUT" and type(value) in (int, float, bool, str, type(None)):
            constants[node] = value
        else:
            raise _refuse(node, kind)
    outputs = tuple(
        (
            spec.target or getattr(spec.arg, "name", None) or "",
            spec.target or "" if "MUTATION" in spec.kind.name else "",
        )
        for spec in signature.output_specs
    )
    return Signature(native, module, tuple(arguments), tuple(nodes), constants, outputs)


def _of_graph_module(module: Any) -> Signature:
    arguments: list[tuple[Argument, Any]] = []
    nodes: list[tuple[Any, ...]] = []
    readers: dict[str, list[Any]] = {}
    constants = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = node.meta.get("val")
            if hasattr(value, "dtype"):
                arguments.append((Argument(node.name, "input", node.name), value))
                nodes.append((node,))
            elif value is None or type(value) in (int, float, bool, str):
                if "val" not in node.meta:
                    raise _refuse(node, "placeholder without a fake tensor")
                constants[node] = value
            else:
                raise _refuse(node, type(value).__name__)
        elif node.op == "get_attr" and hasattr(_attribute(module, node.target), "dtype"):
            readers.setdefault(node.target, []).append(node)
    trained = {name for name, _ in module.named_parameters()}
    for name, own in readers.items():
        kind: ArgumentKind = "parameter" if name in trained else "buffer"
        arguments.append((Argument(name, kind, name), _attribute(module, name)))
        nodes.append(tuple(own))
    return Signature(module, module, tuple(arguments), tuple(nodes), constants)


def _attribute(module: Any, target: str) -> Any:
    found = module
    for part in target.split("."):
        found = getattr(found, part)
    return found


def _refuse(node: Any, kind: str) -> UnsupportedError:
    message = f"the input {node.name} is a {kind.lower().replace('_', ' ')}"
    hint = "export with tensors and constants as inputs: torch.export.export(module, args)"
    return UnsupportedError(Diagnostic("unsupported-input", message, "", "placeholder", hint))
