"""Atomic updates through pointers: operations that memory has, and comparing and exchanging."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import llvm

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.llvm_more import CompareExchangeOp, LLVMAtomicRMWOp
from shardy_py.kernels.run.atomics import note, record, record_vector
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.integers import unsigned
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.pointers import pointer_of, pointer_places, typed_buffer
from shardy_py.kernels.run.values import Array, from_words, is_float, rounded, to_words


def _of_unsigned(compute: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def run(left: Array, right: Array) -> Array:
        return compute(unsigned(left), unsigned(right)).view(left.dtype)

    return run


_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        **{"add": np.add, "fadd": np.add, "max": np.maximum, "min": np.minimum},
        **{"_and": np.bitwise_and, "_or": np.bitwise_or, "_xor": np.bitwise_xor},
        **{"umax": _of_unsigned(np.maximum), "umin": _of_unsigned(np.minimum)},
    }
)


def atomic_rmw(frame: Frame, op: LLVMAtomicRMWOp) -> list[Value]:
    """Record that active threads update an element.

    Raises:
        UnsupportedError: something uses what the element was before.
    """
    combine = _COMBINE.get(op.kind)
    if combine is None or op.result.uses.get_length():
        message = f"atomic updates by {op.kind} are not run, nor those whose result is used"
        raise UnsupportedError(Diagnostic("run-atomic", message, frame.kernel.stage, op.name))
    pointer = pointer_of(frame.get(op.ptr))
    buffer, width = typed_buffer(pointer, op.value.type)
    at = pointer_places(frame, op, pointer, width)
    type_ = op.value.type

    if width:
        record_vector(frame, op, buffer, at, frame.get(op.value))
        return [np.zeros((), np.int64)]

    def combined(own: Frame, current: Array, _: Any) -> Array:
        found = combine(current, own.get(op.value))
        return rounded(found, type_) if is_float(type_) else found

    record(frame, op, buffer, at, [op.value], combined)
    return [np.zeros((), np.int64)]


def compare_exchange(frame: Frame, op: CompareExchangeOp) -> list[Value]:
    """Write the new element where the expected one is; of threads with one element the first, then the others.

    The value is a pair: the element before, and whether it was the expected one.
    """
    pointer = pointer_of(frame.get(op.ptr))
    type_ = op.value.type
    buffer, width = typed_buffer(pointer, type_)
    active, places = note(frame, op, buffer, pointer_places(frame, op, pointer, width))
    count, words = frame.threads.count, buffer.memory.words
    expected, new = (
        to_words(np.ascontiguousarray(np.broadcast_to(frame.get(value), (count,))[active]), type_)
        for value in (op.expected, op.value)
    )
    before = np.empty_like(expected)
    done = np.zeros(len(active), bool)
    # Threads of one element come one after the other: in each round the next one of every element.
    remaining = np.arange(len(active))
    while len(remaining):
        _, first = np.unique(places[remaining], return_index=True)
        chosen = remaining[first]
        before[chosen] = words[places[chosen]]
        done[chosen] = before[chosen] == expected[chosen]
        written = chosen[done[chosen]]
        words[places[written]] = new[written]
        remaining = np.delete(remaining, first)
    found, success = np.zeros(count, expected.dtype), np.zeros(count, bool)
    found[active], success[active] = before, done
    return [(from_words(found, type_), success)]


def extract_value(frame: Frame, op: llvm.ExtractValueOp) -> list[Value]:
    """Return a field of a pair."""
    (number,) = op.position.get_values()
    return [frame.get(op.container)[int(number)]]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "llvm.atomicrmw": atomic_rmw,
        "llvm.cmpxchg": compare_exchange,
        "llvm.extractvalue": extract_value,
    }
)
