"""Dynamic sizes, ``?`` in MLIR, as numbers: a size that is not known counts as one that all usual axes divide.

Rules, projections and passes compute with sizes. For them a dynamic size is `STAND_IN_SIZE`, which stands for a size
that is large and divisible; the text of a type keeps the ``?``. Nothing that needs the true size, such as bytes or the
shapes of shards, is computed from it: types get their dynamic sizes back after propagation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.graph.walk import all_ops, region_arguments
from shardy_py.sharding.unknown_size import STAND_IN_SIZE


def is_dynamic(type_: Type) -> bool:
    """Return whether a type has a dynamic size."""
    return isinstance(type_, TensorType) and None in type_.shape


@lru_cache(maxsize=4096)
def with_stand_ins(type_: Type) -> Type:
    """Return a type with a number in place of each dynamic size; its text stays.

    >>> str(with_stand_ins(TensorType((None, 4), "f32")))
    'tensor<?x4xf32>'
    """
    if not isinstance(type_, TensorType) or None not in type_.shape:
        return type_
    shape = tuple(STAND_IN_SIZE if size is None else size for size in type_.shape)
    return TensorType(shape, type_.element_type, type_.text)


@lru_cache(maxsize=4096)
def without_stand_ins(type_: Type) -> Type:
    """Return a type with its dynamic sizes, the inverse of `with_stand_ins`."""
    if not isinstance(type_, TensorType) or STAND_IN_SIZE not in type_.shape:
        return type_
    shape = tuple(None if size == STAND_IN_SIZE else size for size in type_.shape)
    return TensorType(shape, type_.element_type, type_.text if type_.is_foreign else "")


def put_stand_ins(program: Program) -> bool:
    """Put numbers in the places of all dynamic sizes of a program, and return whether there are any."""
    known = program.known_types()
    if known is not None and not any(map(is_dynamic, known)):
        return False
    dynamic = [value for value in _values(program) if is_dynamic(value.type)]
    for value in dynamic:
        value.type = with_stand_ins(value.type)
    if dynamic:
        program.kinds_hold = False
    return bool(dynamic)


def take_stand_ins(program: Program) -> None:
    """Give the values of a program their dynamic sizes back, those too that passes have added."""
    for value in _values(program):
        type_ = value.type
        if isinstance(type_, TensorType) and STAND_IN_SIZE in type_.shape:
            value.type = without_stand_ins(type_)


def has_dynamic_size(op: Op) -> bool:
    """Return whether an operand or result of an op has a dynamic size."""
    return any(is_dynamic(value.type) for value in (*op.operands, *op.results))


def _values(program: Program) -> Iterator[Value]:
    for op in all_ops(program):
        yield from op.results
        yield from op.function_results
        if op.regions:
            yield from region_arguments(op)
