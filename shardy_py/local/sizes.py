"""Attributes that may hold the size of a dimension."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard

_NUMBER = re.compile(r"-?\d+")
_OWN = ("sdy.", "shardy.", "shardy_py.")


def mentions_sizes(op: Op, shard: Shard) -> bool:
    """Return whether an attribute of an op holds a number that is the size of a sharded dimension of the op."""
    sizes: set[int] = set()
    values = zip((*op.operands, *op.results), (*shard.operand_shardings, *shard.result_shardings), strict=True)
    for value, sharding in values:
        shape = static_shape(value.type) or ()
        sizes |= {shape[dim] for dim in shard.sharded_dims(sharding) if dim < len(shape)}
    numbers = (
        number
        for name, attribute in op.attributes.items()
        if not name.startswith(_OWN)
        for number in attribute_numbers(attribute)
    )
    return not sizes.isdisjoint(numbers)


def attribute_numbers(attribute: Any) -> Iterator[int]:
    """Yield the integers that an attribute holds."""
    if isinstance(attribute, int) and not isinstance(attribute, bool):
        yield attribute
    elif isinstance(attribute, DenseElements):
        yield from attribute.values
    elif isinstance(attribute, RawAttribute):
        yield from map(int, _NUMBER.findall(attribute.text))
    elif isinstance(attribute, Mapping):
        for part in attribute.values():
            yield from attribute_numbers(part)
    elif isinstance(attribute, (tuple, list)):
        for part in attribute:
            yield from attribute_numbers(part)
