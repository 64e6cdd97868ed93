"""Numbers for the symbolic sizes of a model."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.guards.error_texts import shown

_ALL = "?"


def with_sizes(model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
    """Return a copy of a model in which symbols and unknown sizes of inputs are numbers.

    Args:
        model: The model.
        sizes: The sizes by symbol, by input and dimension, or for all others (``?``).

    Raises:
        OptionError: no input has such a symbol or dimension.
    """
    result = ModelProto()
    result.CopyFrom(model)
    unused, known = set(sizes) - {_ALL}, []
    graph = result.graph
    for info in graph.input:
        for number, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            names = [name for name in (dim.dim_param, f"{info.name}.{number}") if name]
            known.append(names[0])
            chosen = next((name for name in (*names, _ALL) if name in sizes), None)
            if chosen is not None:
                dim.dim_value = sizes[chosen]
                unused.discard(chosen)
    if unused:
        hint = f"these are {', '.join(dict.fromkeys(known))}" if known else "all sizes of the inputs are known"
        message = f"{shown(min(unused))} is not a symbolic size of an input"
        raise OptionError(Diagnostic("unknown-size", message, hint=hint))
    # What was inferred with symbols is inferred again.
    del graph.value_info[:]
    for info in graph.output:
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
            elif not dim.HasField("dim_value"):
                dim.ClearField("dim_param")
    return result
