"""Donated arguments whose memory no result can take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any
from warnings import warn

from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.jax.arguments import ArrayType, array_types, array_values
from shardy_py.jax.named_shardings import memory_kinds, mesh_of
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.api.result import Result

UNUSABLE = "Some donated buffers were not usable"
"""The beginning of the warning, which is that of `jax.jit`."""


@frozen
class ShardBuffer:
    """The shard of an argument or a result on one device.

    Args:
        type: The shape of the shard, and the dtype.
        memory: The memory that it lies in; None for that of the device.
    """

    type: ArrayType
    memory: str | None

    @property
    def size(self) -> tuple[int, str | None]:
        """The number of its elements, and its memory."""
        return prod(self.type.shape), self.memory


def warn_of_unusable_donations(result: Result, *, stacklevel: int) -> None:
    """Warn of donated arguments whose memory no result can take, as `jax.jit` does.

    Args:
        result: The propagated program of a function of JAX.
        stacklevel: As for `warnings.warn`.
    """
    signature = result.signature
    if signature is None or not any(item.donated for item in signature.arguments):
        return
    main, tokens = result.main, signature.tokens
    arguments = array_values(entry_arguments(main))
    kinds = memory_kinds(main, "arg_attrs", len(arguments) + tokens)[tokens:]
    donated = [
        (value, kind)
        for value, kind, number in zip(arguments, kinds, signature.used, strict=True)
        if signature.arguments[number].donated
    ]
    results = array_values(main.function_results)
    result_kinds = memory_kinds(main, "res_attrs", len(results) + tokens)[tokens:]
    unusable = unusable_buffers(
        _buffers(result.program, donated), _buffers(result.program, list(zip(results, result_kinds, strict=True)))
    )
    if unusable:
        shown = ", ".join(str(buffer.type) for buffer in unusable)
        link = "See an explanation at https://docs.jax.dev/en/latest/faq.html#buffer-donation."
        warn(f"{UNUSABLE}: {shown}.\n{link}", stacklevel=stacklevel + 1)


def unusable_buffers(donated: Sequence[ShardBuffer], results: Sequence[ShardBuffer]) -> list[ShardBuffer]:
    """Return the donated buffers that are left over when each result takes one like it, else one of its size.

    This is how JAX finds aliases (``_set_up_aliases`` in ``jax/_src/interpreters/mlir.py``).
    """
    free = Counter(results)
    without_twin = []
    for buffer in donated:
        if free[buffer]:
            free[buffer] -= 1
        else:
            without_twin.append(buffer)
    sizes = Counter(buffer.size for buffer in free.elements())
    unusable = []
    for buffer in without_twin:
        if sizes[buffer.size]:
            sizes[buffer.size] -= 1
        else:
            unusable.append(buffer)
    return unusable


def _buffers(program: Program, values: Sequence[tuple[Value, str | None]]) -> list[ShardBuffer]:
    """Return what a device holds of values, which come with their memories."""
    types = array_types([value for value, _ in values], "value")
    pairs = zip(values, types, strict=True)
    return [ShardBuffer(_shard_type(program, value, type_), kind) for (value, kind), type_ in pairs]


def _shard_type(program: Program, value: Value, type_: ArrayType) -> ArrayType:
    sharding: Any = program.shardings.get(value.id)
    if sharding is None:
        return type_
    mesh = mesh_of(sharding, program.meshes, max(item.total_size for item in program.meshes.values()))
    return ArrayType(tuple(size or 0 for size in sharding.local_shape(type_.shape, mesh)), type_.dtype)
