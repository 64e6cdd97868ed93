"""Attributes that a module assigns while it is traced: buffers become outputs of its graph, others it cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.torch.modules.attribute_values import is_plain

_MISSING = object()


@contextmanager
def assignments_undone(model: Any, warnings: dict[str, Diagnostic]) -> Iterator[None]:
    """Let a module be as before when it has been traced; new values of buffers are written into the old ones.

    Args:
        model: The module.
        warnings: Gets a warning for each other attribute that it assigns, by name.

    Raises:
        UnsupportedError: the module assigns a buffer of another shape, or a tensor in the place of one.
    """
    import torch

    internal = set(vars(torch.nn.Module())) - {"training"}
    before = [(path, module, dict(vars(module)), dict(module._buffers)) for path, module in model.named_modules()]
    try:
        yield
        for path, module, _, buffers in before:
            for name, old in buffers.items():
                _write_buffer(f"{path}.{name}".lstrip("."), old, module._buffers.get(name))
        for path, module, attributes, _ in before:
            # Layers of PyTorch keep lists of their parameters, and what hooks compute of these.
            is_layer = type(module).__module__.startswith("torch.") or bool(module._forward_pre_hooks)
            for name, new in () if is_layer else vars(module).items():
                old = attributes.get(name, _MISSING)
                if name not in internal and new is not old and not _are_equal(old, new):
                    _note(f"{path}.{name}".lstrip("."), old, warnings)
    finally:
        for _, module, attributes, buffers in before:
            module._buffers.clear()
            module._buffers.update(buffers)
            for name in [name for name in vars(module) if name not in attributes]:
                del vars(module)[name]
            vars(module).update(attributes)


def _write_buffer(name: str, old: Any, new: Any) -> None:
    if new is old:
        return
    if old is None or new is None or old.shape != new.shape:
        shapes = [None if item is None else tuple(item.shape) for item in (old, new)]
        message = f"the module assigns its buffer {name}, of the shape {shapes[0]}, one of {shapes[1]}"
        hint = "let buffers keep their shape, or pass what grows as an input and return it"
        raise UnsupportedError(Diagnostic("assigned-buffer", message, hint=hint))
    import torch

    if not torch.can_cast(new.dtype, old.dtype):
        message = f"the module assigns its buffer {name}, of {old.dtype}, one of {new.dtype}"
        hint = "let buffers keep their dtype, or register the buffer with the dtype that it gets"
        raise UnsupportedError(Diagnostic("assigned-buffer", message, hint=hint))
    old.copy_(new.detach())


def _note(name: str, old: Any, warnings: dict[str, Diagnostic]) -> None:
    import torch

    if isinstance(old, torch.Tensor):
        message = f"the module assigns its tensor {name}, which is not a buffer, so that later calls would not see it"
        hint = f"make it a buffer: register_buffer({name.rpartition('.')[2]!r}, ...)"
        raise UnsupportedError(Diagnostic("assigned-tensor", message, hint=hint))
    message = f"the module assigns its attribute {name}: calls of the program do not, and see the value of the trace"
    hint = "return it, or make it a buffer, where the caller or a later call reads it"
    warnings.setdefault(name, Diagnostic("assigned-attribute", message, hint=hint))


def _are_equal(old: Any, new: Any) -> bool:
    """Return whether numbers, texts, or sequences of such are equal; nothing else is compared."""
    return type(old) is type(new) and is_plain(old) and is_plain(new) and bool(old == new)
