"""Functions of scalar bodies that combine elements: ``sum(x * w)`` over the symbols of the maps of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import inf, prod

from shardy_py.indexing import Bound, IndexingMap
from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
from shardy_py.plugins.bodies.arithmetic import binary
from shardy_py.plugins.bodies.functions import cast, extremum
from shardy_py.plugins.bodies.terms import BOOLEAN, Term, mistake, with_type
from shardy_py.values import frozen

_SIGNS = {"sum": "+", "mean": "+", "prod": "*", "any": "|", "all": "&"}


@frozen
class CombinedMap:
    """The maps of operands that one loop reads together.

    Args:
        map: The results of all of them, one after the other.
        operands: The numbers of the operands.
        ends: Where the results of each end.
    """

    map: IndexingMap
    operands: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def count(self) -> int | None:
        """The number of elements that are combined, None where constraints leave some out."""
        return None if self.map.constraints else prod(bound.interval.size for bound in self.map.ranges)


def combined_map(maps: Mapping[int, IndexingMap], name: str) -> CombinedMap:
    """Return a single map for several operands.

    Args:
        maps: The maps that have symbols, by the numbers of their operands.
        name: The function that combines, for errors.

    Raises:
        PluginError: there is none, or their symbols run over different ranges.
    """
    if not maps:
        hint = "give an operand in it a map such as (i)[k] -> (i, k)"
        raise mistake(f"{name} combines nothing: no operand in it has a map with symbols", hint)
    first, *others = maps.values()
    sizes = [tuple(bound.interval for bound in item.ranges) for item in (first, *others)]
    if len(set(sizes)) > 1 or any(item.runtimes for item in maps.values()):
        shown = " and ".join(f"({', '.join(map(str, item))})" for item in dict.fromkeys(sizes))
        hint = "give their maps the same symbols in the same order"
        raise mistake(f"the symbols of the operands in {name} run over different ranges: {shown}", hint)
    dims = tuple(_common(bounds) for bounds in zip(*(item.dims for item in maps.values()), strict=True))
    results = tuple(result for item in maps.values() for result in item.results)
    constraints = [item for map_ in maps.values() for item in map_.constraints]
    ends = [0]
    for item in maps.values():
        ends.append(ends[-1] + len(item.results))
    common_map = IndexingMap(results, dims, first.ranges).with_constraints(constraints)
    return CombinedMap(common_map, tuple(maps), tuple(ends))


def _common(bounds: Sequence[Bound]) -> Bound:
    """Return the bound that all of them have in common."""
    first, *others = bounds
    interval = first.interval
    for item in others:
        interval = interval.meet(item.interval)
    return Bound(interval, first.name)


def combine(
    b: ElementBuilder,
    name: str,
    read: CombinedMap,
    dtype: str,
    element: Callable[[Mapping[int, Sequence[Scalar]]], Term],
) -> Term:
    """Reduce elements with a function; floats of 16 bits and less are accumulated in ``f32``.

    Args:
        b: Builds the ops.
        name: The function.
        read: The elements that are read.
        dtype: The type of what is combined.
        element: Returns what is combined, from the indices of the operands.
    """
    element_type = BOOLEAN if name in ("any", "all") else dtype
    carried = "f32" if Term(element_type).is_short else element_type
    start = with_type(b, Term(number=neutral(name, carried)), carried)

    def step(index: Sequence[Scalar], before: Sequence[Scalar]) -> Sequence[Scalar]:
        at = {
            number: index[first:last] for number, (first, last) in zip(read.operands, pairwise(read.ends), strict=True)
        }
        return [_joined(b, name, Term(carried, before[0]), cast(b, element(at), carried)).scalar]

    (value,) = b.reduce(read.map, [start.scalar], step)
    total = Term(carried, value)
    if name == "mean":
        if read.count is None:
            raise mistake("mean counts elements, but constraints leave some out", "divide sum(...) yourself")
        total = binary(b, "/", total, Term(number=read.count))
    return cast(b, total, element_type)


def _joined(b: ElementBuilder, name: str, before: Term, term: Term) -> Term:
    return binary(b, _SIGNS[name], before, term) if name in _SIGNS else extremum(name, b, before, term)


def neutral(name: str, dtype: str) -> complex:
    """Return the number that changes nothing.

    Args:
        name: The function that combines.
        dtype: The type of what it combines.

    >>> neutral("max", "f32"), neutral("max", "i8"), neutral("min", "ui8"), neutral("prod", "i32")
    (-inf, -128, 255, 1)
    """
    if name not in ("max", "min"):
        return int(name in ("all", "prod"))
    term = Term(dtype, value=object())  # type: ignore[arg-type]
    is_max = name == "max"
    if term.is_float:
        return -inf if is_max else inf
    if term.is_boolean:
        return int(not is_max)
    if term.is_complex:
        raise mistake(f"{dtype} has no order", "combine abs(x)")
    if term.is_unsigned:
        return 0 if is_max else (1 << term.bits) - 1
    return -(1 << term.bits - 1) if is_max else (1 << term.bits - 1) - 1
