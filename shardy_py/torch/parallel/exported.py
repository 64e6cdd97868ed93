"""Exported programs as they are, on tensors from arrays of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.torch.frontend.types import DTYPES


def to_tensor(array: Any, element_type: str) -> Any:
    """Return an array of numpy as a tensor.

    Args:
        array: The array.
        element_type: The element type in MLIR's notation.
    """
    import numpy
    import torch

    # PyTorch does not know the dtypes that numpy gets from elsewhere, such as bfloat16.
    plain = array if array.dtype.isbuiltin == 1 else array.astype(numpy.float32)
    return torch.from_numpy(numpy.array(plain)).to(getattr(torch, DTYPES[element_type]))


def to_array(tensor: Any) -> Any:
    """Return a tensor as an array of numpy; what numpy has no dtype for becomes 32 bits wide."""
    try:
        return tensor.detach().numpy()
    except TypeError:
        return tensor.detach().float().numpy()


def run_exported(native: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return the tensors that an exported program gives.

    Args:
        native: The exported program.
        inputs: The tensors of its inputs, without parameters.
    """
    import torch
    from torch.utils import _pytree as pytree

    tensors = iter(inputs)
    flat = [
        spec.arg.value if hasattr(spec.arg, "value") else next(tensors)
        for spec in native.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT"
    ]
    args, kwargs = pytree.tree_unflatten(flat, native.call_spec.in_spec)
    with torch.no_grad():
        leaves = pytree.tree_leaves(native.module()(*args, **kwargs))
    return [item for item in leaves if isinstance(item, torch.Tensor)]
