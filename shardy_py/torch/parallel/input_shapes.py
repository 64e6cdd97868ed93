"""Inputs that a program of PyTorch is for, and errors for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.torch.modules.size_expressions import Sizes
from shardy_py.torch.modules.symbolic_trace import Shapes, SymbolicTrace, size_at

_CODE = "input-shape"


def require_kind(name: str, tensor: Any, dtype: Any) -> None:
    """Check that an input is a tensor of the kind of numbers that a program was traced with.

    The program of a mask of numbers adds it, and that of a mask of truth values selects by it.

    Args:
        name: The name of the input.
        tensor: The input.
        dtype: The dtype that the program was traced with.

    Raises:
        OptionError: it is something else.
    """
    given = getattr(tensor, "dtype", None)
    if type(given) is not type(dtype):
        message = f"the input {name} is a {type(tensor).__name__}, and no tensor of PyTorch"
        raise OptionError(Diagnostic("input-type", message, hint="convert it, as by torch.as_tensor"))
    if _kind_of(given) != _kind_of(dtype):
        message = f"the input {name} is of {given}, but the program was traced with {dtype}"
        raise OptionError(Diagnostic("input-type", message, hint="convert it, or trace with an example of this dtype"))


def _kind_of(dtype: Any) -> str:
    """Return the kind of the numbers of a dtype."""
    if dtype.is_floating_point or dtype.is_complex:
        return "complex" if dtype.is_complex else "float"
    return "truth value" if str(dtype) == "torch.bool" else "integer"


def require_shapes(shapes: Sequence[Any], expected: Sequence[Any], names: Sequence[str], hint: str) -> None:
    """Check that inputs have the shapes that a program was made for.

    Args:
        shapes: The shapes of the inputs.
        expected: Those that the program is for.
        names: The names of the inputs.
        hint: What to do for others.

    Raises:
        OptionError: they have others.
    """
    for name, shape, wanted in zip(names, shapes, expected, strict=True):
        if tuple(shape) != tuple(wanted):
            message = f"the input {name} has the shape {tuple(shape)}, the program is for {tuple(wanted)}"
            raise OptionError(Diagnostic(_CODE, message, hint=hint))


def require_sizes(shapes: Shapes, trace: SymbolicTrace, names: Sequence[str]) -> Sizes:
    """Return the sizes of the symbols of an exported program in the shapes of its inputs.

    Args:
        shapes: The shapes of the inputs.
        trace: The program, with symbols for its dynamic sizes.
        names: The names of the inputs.

    Raises:
        OptionError: the program is not for these sizes: a static one is another, or a guard does not hold.
    """
    symbols = trace.symbols
    for name, shape, dims in zip(names, shapes, symbols.shapes, strict=True):
        if len(shape) != len(dims):
            message = f"the input {name} is of rank {len(shape)}, the program is for rank {len(dims)}"
            raise OptionError(Diagnostic(_CODE, message, hint="export it with an example of this shape"))
    values = symbols.values_of(shapes) or {}
    for name, shape, dims in zip(names, shapes, symbols.shapes, strict=True):
        for number, (size, dim) in enumerate(zip(shape, dims, strict=True)):
            wanted = size_at(dim, values)
            if wanted != size:
                wanted = f"sizes of the form {wanted}" if getattr(wanted, "free_symbols", ()) else wanted
                message = f"the input {name} has the size {size} in dimension {number}, the program is for {wanted}"
                hint = "export it with dynamic_shapes for this dimension, or with an example of this size"
                raise OptionError(Diagnostic(_CODE, message, hint=hint))
    broken = trace.broken_guards(values)
    if broken:
        guard = broken[0]
        labels = _labels(trace, names)
        sizes = [f"{label} is {size_at(dim, values)}" for dim, label in labels.items() if _have_common(dim, guard)]
        message = f"{' and '.join(sizes)}, but the program is for sizes with {guard.xreplace(labels)}"
        hint = "the guard is that of the exported program: export it for more sizes, or give it others"
        raise OptionError(Diagnostic(_CODE, message, hint=hint))
    return tuple(values[symbol] for symbol in symbols.symbols)


def _labels(trace: SymbolicTrace, names: Sequence[str]) -> dict[Any, Any]:
    """Return each size that is no number, to a symbol that is named after the first dimension which has it."""
    labels: dict[Any, Any] = {}
    for name, dims in zip(names, trace.symbols.shapes, strict=True):
        for number, dim in enumerate(dims):
            for symbol in list(getattr(dim, "free_symbols", ()))[:1]:
                labels.setdefault(dim, type(symbol)(f"{name}.shape[{number}]", integer=True))
    return labels


def _have_common(dim: Any, guard: Any) -> bool:
    """Return whether a size and a guard have a symbol in common."""
    return bool(dim.free_symbols & guard.free_symbols)
