"""Sources of imported programs: the exported program and the names in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import field

from shardy_py.values import frozen

ArgumentKind = Literal["parameter", "buffer", "constant", "input", "tangent"]


def _as_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names)


@frozen
class Argument:
    """An argument of the main function.

    Args:
        name: The fully qualified name of a parameter, buffer or constant, or the name of an input.
        kind: What it is.
        node: The name of its placeholder, or of the attribute of a graph module.
        aliases: The other names of the same tensor: weights that are tied are one argument.
    """

    name: str
    kind: ArgumentKind
    node: str
    aliases: tuple[str, ...] = field(default=(), converter=_as_names)

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the tensor, that of the argument first."""
        return (self.name, *self.aliases)


@frozen
class Output:
    """An output of the graph.

    Args:
        name: The fully qualified name of a buffer that is written, or the name of the node.
        result: The number of the function's result; None for an output that is no tensor.
        constant: The output that is no tensor.
        writes: The name of the buffer or input that it is written to, or "".
    """

    name: str
    result: int | None
    constant: Any = None
    writes: str = ""


@frozen(eq=False)
class TorchOrigin:
    """Source of an imported program.

    Args:
        native: The exported program or graph module; None for a program from packed bytes.
        arguments: The arguments of the main function.
        outputs: The outputs of the graph, in order.
        node_names: Value id to the name of the node that makes it.
        module_paths: Op id to the path of the module that calls it, "" for the root; only where it is known.
        overloads: Op name to the operator.
        module_types: Path of a module to the name of its class, where it is known.
        inferred_dims: Op id of a reshape or an expansion to the dimensions of its result whose sizes follow from the
            operand, as the source has -1 there, or flattens; PyTorch writes the sizes of the whole tensor.
        shape_indices: Op id to the indices of shapes from which the source computes a number of the op.
    """

    native: Any
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]
    node_names: Mapping[int, str] = field(repr=False)
    module_paths: Mapping[int, str] = field(repr=False)
    overloads: Mapping[str, Any] = field(repr=False)
    module_types: Mapping[str, str] = field(factory=dict, repr=False)
    inferred_dims: Mapping[int, tuple[int, ...]] = field(factory=dict, repr=False)
    shape_indices: Mapping[int, tuple[int, ...]] = field(factory=dict, repr=False)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(item.name for item in self.arguments)
