"""Dynamic sizes in local programs: the number of parts divides them, by assumption, and shards have dynamic sizes, too.

While a program is cut, `STAND_IN_SIZE` is in the place of each dynamic size. Ops that then hold such a number, such as
a slice of the own part of a whole tensor, need the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.dynamic_sizes import is_dynamic
from shardy_py.ir.graph.op_names import FUNCTION, RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import TensorType, Type, function_type
from shardy_py.ir.graph.walk import all_ops, own_values
from shardy_py.local.sizes import attribute_numbers
from shardy_py.sharding.unknown_size import STAND_IN_SIZE, is_large, is_near_derived

_HINT = "give the size, as by --size arg0.0=64 or sizes={'arg0.0': 64}"


def put_numbers(program: Program) -> bool:
    """Put a number in the place of each dynamic size of a program, and return whether there are any."""
    dynamic = [value for op in all_ops(program) for value in own_values(op) if is_dynamic(value.type)]
    for value in dynamic:
        value.type = _mapped(value.type, lambda size: STAND_IN_SIZE if size is None else size)
    if dynamic:
        program.kinds_hold = False
        _set_function_types(program)
    return bool(dynamic)


def take_numbers(program: Program) -> None:
    """Replace the numbers that stand for dynamic sizes in a local program by dynamic sizes.

    Raises:
        UnsupportedError: an op needs the number.
    """
    for op in all_ops(program):
        _refuse_numbers(op)
        for value in own_values(op):
            if isinstance(value.type, TensorType) and any(is_large(size) for size in value.type.shape):
                value.type = _mapped(value.type, lambda size: None if is_near_derived(size) else size)
    _set_function_types(program)


def _refuse_numbers(op: Op) -> None:
    if op.name == FUNCTION:
        return
    for name, attribute in op.attributes.items():
        if any(is_near_derived(number) for number in attribute_numbers(attribute)):
            named = _op_of_source(op)
            message = f"the op needs the size of a dynamic dimension on a device, for {name}"
            message += "" if named is op else f" of '{op.name}'"
            raise UnsupportedError(Diagnostic("size-not-known", message, named.location, named.name, _HINT))
    sizes = [size for value in own_values(op) if isinstance(value.type, TensorType) for size in value.type.shape]
    if any(is_large(size) and not is_near_derived(size) for size in sizes):
        message = "a dynamic dimension has so many parts that it would have to be padded"
        raise UnsupportedError(Diagnostic("size-not-known", message, op.location, op.name, _HINT))


def _op_of_source(op: Op) -> Op:
    """Return an op, or the nearest user or else producer from the source of one that a local form made for others."""
    users = _nearest(op, lambda item: [user for value in item.results for user in value.users])
    if users is not None and users.name != RETURN:
        return users
    return _nearest(op, _producers) or users or op


def _producers(op: Op) -> list[Op]:
    return [value.defining_op for value in op.operands if value.defining_op is not None]


def _nearest(op: Op, neighbours: Callable[[Op], Sequence[Op]]) -> Op | None:
    """Return the nearest op with a location, the op itself first."""
    seen, waiting = {op.id}, [op]
    for item in waiting:
        if item.location:
            return item
        others = [other for other in neighbours(item) if other.id not in seen]
        seen.update(other.id for other in others)
        waiting += others
    return None


def _mapped(type_: Type, change: Callable[[int | None], int | None]) -> Type:
    assert isinstance(type_, TensorType)
    return TensorType(tuple(map(change, type_.shape)), type_.element_type, type_.text if type_.is_foreign else "")


def _set_function_types(program: Program) -> None:
    for op in program.functions.values():
        arguments = [value.type for value in entry_arguments(op)]
        op.attributes["function_type"] = function_type(arguments, [value.type for value in op.function_results])
