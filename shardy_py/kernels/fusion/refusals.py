"""Refusals of fusions: tuples, dynamic shapes, ops that do not compute their elements one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from math import prod

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type, static_shape
from shardy_py.plugins import Registry

_NUMBER = re.compile(
    r"index|[su]?i(?:1|2|4|8|16|32|64)|complex<f(?:32|64)>|bf16|f(?:16|32|64)|"
    r"f8(?:E3M4|E4M3|E4M3B11FNUZ|E4M3FN|E4M3FNUZ|E5M2|E5M2FNUZ|E8M0FNU)|f4E2M1FN"
)
# Offsets in memory have 64 bits and a sign, elements at most 16 bytes.
_MOST_ELEMENTS = 2**59


def problems_of_values(parameters: Iterable[Value], ops: Iterable[Op]) -> Iterator[Diagnostic]:
    """Yield what is wrong with the types of parameters and of results."""
    of_parameters = ((value, "", "") for value in parameters)
    of_results = ((value, op.location, op.name) for op in ops for value in op.results)
    for value, location, name in chain(of_parameters, of_results):
        yield from _problems_of_type(value, location, name)


def _problems_of_type(value: Value, location: str, name: str) -> Iterator[Diagnostic]:
    shape = static_shape(value.type)
    if isinstance(value.type, OpaqueType) and value.type.is_tuple:
        hint = "return several results without a tuple, and give the elements of a tuple one by one"
        message = f"a kernel has no tuples inside, such as {value.type}"
        yield Diagnostic("internal-tuple", message, location, name, hint)
    elif shape is None:
        message = f"a kernel takes tensors of static shapes, not {value.type}"
        yield Diagnostic("no-static-shape", message, location, name, "give every dimension its size")
    elif not is_number(value.type):
        hint = "kernels compute with integers, floats of 4 bits, 8 bits or more, and complex numbers"
        message = f"a kernel has no elements such as those of {value.type}"
        yield Diagnostic("element-type", message, location, name, hint)
    elif 0 in shape:
        yield Diagnostic("no-elements", f"a kernel has nothing to do for {value.type}", location, name)
    elif prod(shape) > _MOST_ELEMENTS:
        message = f"expected at most {_MOST_ELEMENTS} elements, got {value.type}"
        yield Diagnostic("too-many-elements", message, location, name, "indices of kernels have 64 bits")


def is_number(type_: Type) -> bool:
    """Return whether kernels compute with the elements of a type."""
    return _NUMBER.fullmatch(type_.element_type if isinstance(type_, TensorType) else str(type_)) is not None


def problems_of_ops(ops: Iterable[Op], registry: Registry) -> Iterator[Diagnostic]:
    """Yield which ops do not say what they compute for one element, or what they read for it."""
    for op in ops:
        if registry.get_emission(op) is None:
            message = "it has no scalar body, so that it cannot be in a kernel with others"
            hint = "'shardy emit FILE --list' shows pieces without it; an op of your own needs emission=..."
            yield Diagnostic("no-emission", message, op.location, op.name, hint)
        elif op.operands and _lacks_maps(op, registry):
            message = "which elements this form of it reads is not known"
            hint = "bitcasts take whole bytes; gathers indices (n, k), whole windows behind n, and collapse nothing"
            yield Diagnostic("no-indexing-map", message, op.location, op.name, hint)


def _lacks_maps(op: Op, registry: Registry) -> bool:
    """Return whether ops of this name have indexing maps, but not this one."""
    definition = registry.find(op.name)
    shapes = [static_shape(value.type) for value in (*op.operands, *op.results)]
    if definition is None or definition.indexing is None or any(shape is None or 0 in shape for shape in shapes):
        return False
    return registry.get_indexing(op) is None
