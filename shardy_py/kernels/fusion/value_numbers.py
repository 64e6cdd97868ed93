"""Numbers of the values of a fusion: equal ones hold equal elements, whichever op made them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from shardy_py.ir.graph.attributes import freeze
from shardy_py.kernels.fusion.fusion import Fusion


def number_values(fusion: Fusion) -> Mapping[int, int]:
    """Return a number for every value, by its id: that of the first value that is computed in the same way.

    Two ops compute the same if they have one name, equal attributes, and operands with equal numbers. Ops with regions
    compute the same as themselves only.
    """
    numbers = {value.id: value.id for value in fusion.parameters}
    firsts: dict[Hashable, tuple[int, ...]] = {}
    for op in fusion.ops:
        own = tuple(value.id for value in op.results)
        operands = tuple(numbers.get(value.id, value.id) for value in op.operands)
        types = tuple(str(value.type) for value in op.results)
        key: Hashable = op.id if op.regions else (op.name, freeze(op.attributes), operands, types)
        first = firsts.setdefault(key, own)
        numbers |= dict(zip(own, first, strict=True))
    return numbers
