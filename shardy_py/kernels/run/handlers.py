"""Handlers of ops by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from shardy_py.kernels.run import (
    atomics,
    blocks,
    casts,
    complex_numbers,
    control,
    floats,
    functions,
    indices,
    integers,
    pointer_atomics,
    pointers,
    tensors,
    vectors,
)
from shardy_py.kernels.run.frame import Handler

FAMILIES = (
    *(atomics, blocks, casts, complex_numbers, control, floats),
    *(functions, indices, integers, pointer_atomics, pointers, tensors, vectors),
)

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {name: handler for family in FAMILIES for name, handler in family.HANDLERS.items()}
)
