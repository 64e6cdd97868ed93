"""Errors of modules that cannot be traced, with the line of the module and what to do."""

from __future__ import annotations

import traceback
from pathlib import Path

from shardy_py.errors import Diagnostic, UnsupportedError

_HINTS = (
    (("_local_scalar_dense", "aten.equal", ".numpy()"), "it reads a number of a tensor, as `if`, `float`, `.item()` and"
     " `.numpy()` do: compute with tensors, such as by torch.where"),
    (("aten.nonzero", "_pack_padded", "unique", "bincount", "masked_select", "repeat_interleave"),
     "the shape of its result depends on data: use masks, or a size that is known"),
    (("register a pytree",), "register the class: torch.export.register_dataclass(...)"),
    (("KNOWN_TYPES",), "give tensors, numbers, tuples, lists and dicts, or register the class of the input:"
     " torch.export.register_dataclass(...)"),
)  # fmt: skip
_OTHERWISE = "shapes must not depend on data, and what is called must be made of operators of PyTorch"


def not_traced(error: Exception) -> UnsupportedError:
    """Return the error of a module that cannot be traced.

    Args:
        error: What PyTorch raised.
    """
    text = str(error).strip()
    message = f"the module cannot be traced: {text.splitlines()[0] if text else repr(error)}"
    hint = next((hint for parts, hint in _HINTS if any(part in text for part in parts)), _OTHERWISE)
    return UnsupportedError(Diagnostic("not-traced", message, _location_of(error), hint=hint))


def _location_of(error: Exception) -> str:
    """Return the innermost line of a module in the traceback: one of the caller's, or of a layer of PyTorch."""
    import torch

    root, package = Path(torch.__file__).parent, Path(__file__).parents[2]
    layers = root / "nn"
    lines = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_absolute() and not Path(frame.filename).is_relative_to(package)
    ]
    own = [frame for frame in lines if not Path(frame.filename).is_relative_to(root)]
    inner = [frame for frame in lines if Path(frame.filename).is_relative_to(layers)]
    return "".join(f"{frame.filename}:{frame.lineno}" for frame in (own or inner)[-1:])
