"""Inputs and outputs of exported programs and graph modules, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from attrs import evolve, field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Value
from shardy_py.support.identity import identity
from shardy_py.torch.frontend.origin import Argument, ArgumentKind
from shardy_py.torch.frontend.types import as_number, is_symbolic
from shardy_py.values import frozen

_KINDS: dict[str, ArgumentKind] = {
    "PARAMETER": "parameter",
    "BUFFER": "buffer",
    "CONSTANT_TENSOR": "constant",
    "USER_INPUT": "input",
}


_Read = tuple[Argument, Any, tuple[Any, ...], Any]
"""An argument, its fake tensor, the nodes that stand for it, and its tensor, or None for an input."""


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
        pairs: Numbers of arguments and of outputs that are sharded alike.
    """

    native: Any
    module: Any
    arguments: tuple[tuple[Argument, Any], ...]
    nodes: tuple[tuple[Any, ...], ...]
    constants: Mapping[Any, Any] = field(factory=dict)
    outputs: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    def bind(self, values: Sequence[Value]) -> dict[Any, Any]:
        """Return node to value for all inputs."""
        values_by_node = dict(self.constants)
        for nodes, value in zip(self.nodes, values, strict=True):
            values_by_node.update(dict.fromkeys(nodes, value))
        return values_by_node

    def output(self, number: int) -> tuple[str, str]:
        """Return the name of an output, and what it is written to."""
        return self.outputs[number] if number < len(self.outputs) else ("", "")


def read_signature(native: Any) -> Signature:
    """Return the inputs and outputs of an exported program or graph module.

    Raises:
        UnsupportedError: an input is neither a tensor nor a constant, or has no fake tensor.
    """
    if hasattr(native, "pairs"):
        return _of_joint(native)
    return _of_exported(native) if hasattr(native, "graph_signature") else _of_graph_module(native)


def _of_exported(native: Any) -> Signature:
    module, signature = native.graph_module, native.graph_signature
    placeholders = {node.name: node for node in module.graph.nodes if node.op == "placeholder"}
    state = {**native.state_dict, **native.constants}
    read: list[_Read] = []
    constants = {}
    for spec in signature.input_specs:
        kind, node = spec.kind.name, placeholders[spec.arg.name]
        value = node.meta.get("val")
        if hasattr(value, "dtype") and kind in _KINDS:
            argument = Argument(spec.target or spec.arg.name, _KINDS[kind], node.name)
            read.append((argument, value, (node,), state.get(spec.target)))
        elif kind == "USER_INPUT" and (
            type(value) in (int, float, bool, str, type(None)) or as_number(value) is not None
        ):
            constants[node] = as_number(value) if is_symbolic(value) else value
        else:
            raise _refuse(node, kind)
    tied = _tied(read)
    first_names = {name: argument.name for argument, *_ in tied for name in argument.names}
    outputs = tuple(
        (
            spec.target or getattr(spec.arg, "name", None) or "",
            first_names.get(spec.target, spec.target or "") if "MUTATION" in spec.kind.name else "",
        )
        for spec in signature.output_specs
    )
    return _signature(native, module, tied, constants, outputs)


def _of_joint(trace: Any) -> Signature:
    """Return the inputs and outputs of a traced module, as `shardy_py.torch.modules.joint` has read them."""
    arguments = tuple(
        (argument, trace.tensors[argument.name] if argument.name in trace.tensors else nodes[0].meta["val"])
        for nodes, argument in trace.arguments
    )
    nodes = tuple(nodes for nodes, _ in trace.arguments)
    outputs = tuple((item.name, item.name if item.kind == "buffer" else "") for item in trace.outputs)
    return Signature(trace, trace.module, arguments, nodes, dict(trace.constants), outputs, trace.pairs)


def _of_graph_module(module: Any) -> Signature:
    read: list[_Read] = []
    readers: dict[str, list[Any]] = {}
    constants = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = node.meta.get("val")
            if hasattr(value, "dtype"):
                read.append((Argument(node.name, "input", node.name), value, (node,), None))
            elif value is None or type(value) in (int, float, bool, str):
                if "val" not in node.meta:
                    raise _refuse(node, "placeholder without a fake tensor")
                constants[node] = value
            else:
                raise _refuse(node, type(value).__name__)
        elif node.op == "get_attr" and hasattr(attrgetter(node.target)(module), "dtype"):
            readers.setdefault(node.target, []).append(node)
    trained = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    for name, nodes in readers.items():
        kind: ArgumentKind = "parameter" if name in trained else "buffer"
        tensor = attrgetter(name)(module)
        read.append((Argument(name, kind, name), tensor, tuple(nodes), tensor))
    return _signature(module, module, _tied(read), constants, ())


def _signature(
    native: Any, module: Any, read: Sequence[_Read], constants: Mapping[Any, Any], outputs: tuple[tuple[str, str], ...]
) -> Signature:
    """Return a signature with the inputs first, so that number 0 is the first input of ``forward``."""
    ordered = sorted(read, key=lambda item: item[0].kind != "input")
    arguments = tuple((argument, value) for argument, value, _, _ in ordered)
    # What is kept from call to call stays where it is.
    numbers = {argument.name: number for number, (argument, _) in enumerate(arguments) if argument.kind != "input"}
    pairs = tuple((numbers[writes], number) for number, (_, writes) in enumerate(outputs) if writes in numbers)
    nodes = tuple(nodes for _, _, nodes, _ in ordered)
    return Signature(native, module, arguments, nodes, constants, outputs, pairs)


def _tied(read: Sequence[_Read]) -> list[_Read]:
    """Return the arguments with one for all names of a tensor, such as the weight of an embedding and of its head."""
    tied: dict[Any, _Read] = {}
    for argument, value, nodes, tensor in read:
        key = argument.name if tensor is None else _identity_of(tensor)
        if key not in tied:
            tied[key] = argument, value, nodes, tensor
            continue
        first, first_value, first_nodes, _ = tied[key]
        named = evolve(first, aliases=(*first.aliases, argument.name))
        tied[key] = named, first_value, (*first_nodes, *nodes), tensor
    return list(tied.values())


def _identity_of(tensor: Any) -> Any:
    """Return what tensors have in common that are the same elements in the same form."""
    try:
        storage = tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        # Sparse tensors and those of some devices have no storage.
        return identity(tensor)
    return storage, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype)


def _refuse(node: Any, kind: str) -> UnsupportedError:
    message = f"the input {node.name} is a {kind.lower().replace('_', ' ')}"
    hint = "export with tensors and constants as inputs: torch.export.export(module, args)"
    return UnsupportedError(Diagnostic("unsupported-input", message, "", "placeholder", hint))
