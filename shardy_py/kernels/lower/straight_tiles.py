"""Tiles whose rows are not rotated, on the host.

Devices rotate each row of a tile so that the elements of a column are in all banks. The host has no banks, and LLVM
makes better vectors of places that do not begin again. Where every access to a tile can do without the rotation, so
that equal places stay equal and different ones different, all of them do: the tile is the same memory in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith, builtin, func, llvm
from xdsl.ir import Attribute, Block, Operation, SSAValue

from shardy_py.kernels.dialect.gpu import ThreadIdOp
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.regroup import CountedLoop, counted_loops
from shardy_py.kernels.passes.base import add_before, constant_value
from shardy_py.values import frozen

_MOST_TERMS = 6
_MOST_PLACES = 1 << 16
_LIMIT = 1 << 31
_COMPUTED: Mapping[type[Operation], Callable[[Any, Any], Any]] = MappingProxyType(
    {arith.AddiOp: np.add, arith.MuliOp: np.multiply, arith.DivUIOp: np.floor_divide, arith.RemUIOp: np.remainder}
)


@frozen(eq=False)
class _Access:
    """A place of a tile that threads read or write.

    Args:
        pointer: The op that computes where.
        place: The number of the first element.
        count: The number of elements.
        is_written: Whether they are written.
        known: The numbers of threads and steps of loops that the place follows from: an entry for each thread in each
            step.
        rotation: The remainder of a sum that the place follows from, if there is one.
    """

    pointer: llvm.GEPOp
    place: SSAValue
    count: int
    is_written: bool
    known: Mapping[SSAValue, Any]
    rotation: arith.RemUIOp | None


class _UnknownError(Exception):
    """A tile is used in another way, or a place follows from more than threads and steps of loops."""


def straighten_tiles(module: builtin.ModuleOp, entry: func.FuncOp, launch: Launch) -> None:
    """Remove the rotation of rows from the tiles none of whose accesses needs it.

    Args:
        module: The module after the last pass; it is changed.
        entry: Its entry function.
        launch: The grid.
    """
    if launch.threads[1:] != (1, 1):
        return
    addresses = [op for op in module.walk() if isinstance(op, llvm.AddressOfOp)]
    for tile in [op for op in module.body.block.ops if isinstance(op, llvm.GlobalOp) and op.value is None]:
        tile_addresses = [op for op in addresses if op.global_name.string_value() == tile.sym_name.data]
        try:
            straight = _straight_places(tile, tile_addresses, entry, launch.threads[0])
        except _UnknownError:
            continue
        for access, rotation, terms in straight:
            _rewrite(access, rotation, terms)


_Straight = tuple[_Access, arith.RemUIOp, tuple[SSAValue, ...]]
"""An access, what rotates it, and the terms that stay of that."""


def _straight_places(
    tile: llvm.GlobalOp, addresses: Sequence[llvm.AddressOfOp], entry: func.FuncOp, threads: int
) -> list[_Straight]:
    """Return the rotated accesses to a tile, each with the terms of its address that stay without the rotation.

    Raises:
        _UnknownError: an access needs the rotation.
    """
    type_, loops = tile.global_type, list(counted_loops(entry))
    assert isinstance(type_, llvm.LLVMArrayType)
    accesses = [tile_access for op in addresses for tile_access in _accesses(op, type_.type, entry, loops, threads)]
    order = _Order(type_.size.data)
    straight: list[_Straight] = []
    # What is written decides where elements are; what is read has to follow.
    for access in sorted(accesses, key=lambda item: not item.is_written):
        if access.rotation is not None:
            straight.append((access, access.rotation, _straight_terms(access, access.rotation, order)))
            continue
        places = _numbers(access.place, access.known)
        if not order.admits(places, places, access.count):
            raise _UnknownError
    return straight


class _Order:
    """The order of the elements of a tile afterwards, as far as it is decided."""

    def __init__(self, size: int) -> None:
        self._after = np.full(size, -1)
        self._before = np.full(size, -1)

    def admits(self, before: Any, after: Any, count: int) -> bool:
        """Record that elements move from some addresses to others; return False where earlier moves contradict.

        Args:
            before: The places of first elements. Where one is not inside of the tile, no thread comes.
            after: The places to be, one for each.
            count: How many elements follow each other from each place on.
        """
        size = len(self._after)
        is_inside = before + count <= size
        old, new = ((places[is_inside][:, None] + np.arange(count)).reshape(-1) for places in (before, after))
        if (new >= size).any():
            return False
        permutations = []
        for decided, places, others in ((self._after, old, new), (self._before, new, old)):
            moved = decided.copy()
            moved[places] = others
            is_same = (decided[places] == -1) | (decided[places] == others)
            if not is_same.all() or (moved[places] != others).any():
                return False
            permutations.append(moved)
        self._after, self._before = permutations
        return True


def _accesses(
    address: llvm.AddressOfOp, element: Attribute, entry: func.FuncOp, loops: Sequence[CountedLoop], threads: int
) -> Iterator[_Access]:
    """Yield the accesses to a tile.

    Raises:
        _UnknownError: something else is done to it.
    """
    if not entry.is_ancestor(address):
        raise _UnknownError
    for use in address.result.uses:
        pointer = use.operation
        if not isinstance(pointer, llvm.GEPOp) or pointer.elem_type != element:
            raise _UnknownError
        if len(pointer.ssa_indices) != 1 or len(pointer.rawConstantIndices) != 1 or not pointer.result.has_one_use():
            raise _UnknownError
        (access,) = (item.operation for item in pointer.result.uses)
        type_ = _moved(access, pointer.result)
        count = type_.element_count() if isinstance(type_, builtin.VectorType) else 1
        if element != (type_.element_type if isinstance(type_, builtin.VectorType) else type_):
            raise _UnknownError
        (place,) = pointer.ssa_indices
        known = _known(place, [loop for loop in loops if pointer.parent in loop.steps], threads)
        yield _Access(pointer, place, count, isinstance(access, llvm.StoreOp), known, _rotation(place))


def _moved(op: Operation, pointer: SSAValue) -> Attribute:
    """Return the type of what an op reads from a pointer or writes to it."""
    if isinstance(op, llvm.LoadOp):
        return op.dereferenced_value.type
    if isinstance(op, llvm.StoreOp) and op.ptr is pointer:
        return op.value.type
    raise _UnknownError


def _known(place: SSAValue, loops: Sequence[CountedLoop], threads: int) -> dict[SSAValue, Any]:
    """Return the numbers of threads and of steps of loops that a place follows from, for each thread in each step."""
    steps = {loop.number: loop.values for loop in loops}
    axes: dict[SSAValue, range] = {}
    for value in _leaves(place):
        if isinstance(value.owner, ThreadIdOp):
            axes[value] = range(threads if value.owner.dimension.data.value == "x" else 1)
        elif value in steps:
            axes[value] = steps[value]
        else:
            raise _UnknownError
    if prod(len(values) for values in axes.values()) > _MOST_PLACES:
        raise _UnknownError
    grid = np.meshgrid(*axes.values(), indexing="ij") if axes else []
    return {value: numbers.reshape(-1) for value, numbers in zip(axes, grid, strict=True)}


def _leaves(place: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that a place is computed from."""
    seen, pending = {place}, [place]
    while pending:
        value = pending.pop()
        op = value.owner
        if isinstance(op, Operation) and (isinstance(op, arith.IndexCastOp) or type(op) in _COMPUTED):
            new = [item for item in op.operands if item not in seen]
            seen.update(new)
            pending += new
        elif constant_value(value) is None:
            yield value


def _numbers(value: SSAValue, known: Mapping[SSAValue, Any]) -> Any:
    """Return the integers that a value takes, as an array.

    Raises:
        _UnknownError: it is computed in another way, or may be negative or large.
    """
    op, constant = value.owner, constant_value(value)
    if value in known:
        numbers = known[value]
    elif constant is not None:
        numbers = np.full_like(next(iter(known.values()), np.zeros(1, np.int64)), constant)
    elif isinstance(op, arith.IndexCastOp):
        numbers = _numbers(op.input, known)
    elif isinstance(op, Operation) and type(op) in _COMPUTED:
        first, second = (_numbers(item, known) for item in op.operands)
        if isinstance(op, arith.DivUIOp | arith.RemUIOp) and not second.all():
            raise _UnknownError
        numbers = _COMPUTED[type(op)](first, second)
    else:
        raise _UnknownError
    if numbers.min() < 0 or numbers.max() >= _LIMIT:
        raise _UnknownError
    return numbers


def _rotation(place: SSAValue) -> arith.RemUIOp | None:
    """Return the remainder of a sum that an address is computed from, or None.

    Raises:
        _UnknownError: there are several.
    """
    remainders: set[arith.RemUIOp] = set()
    pending = [place]
    while pending:
        op = pending.pop().owner
        if isinstance(op, arith.RemUIOp) and isinstance(op.lhs.owner, arith.AddiOp):
            remainders.add(op)
        elif isinstance(op, Operation):
            pending += op.operands
    if len(remainders) > 1:
        raise _UnknownError
    return remainders.pop() if remainders else None


def _straight_terms(access: _Access, rotation: arith.RemUIOp, order: _Order) -> tuple[SSAValue, ...]:
    """Return the fewest terms of the rotated sum for which all elements keep distinct addresses.

    Raises:
        _UnknownError: there are none.
    """
    terms = list(_terms(rotation.lhs))
    before = _numbers(access.place, access.known)
    for size in range(1, len(terms)) if len(terms) <= _MOST_TERMS else ():
        for subset in combinations(terms, size):
            straight = sum(_numbers(term, access.known) for term in subset)
            after = _numbers(access.place, {**access.known, rotation.result: straight})
            if order.admits(before, after, access.count):
                return subset
    raise _UnknownError


def _terms(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the terms of a sum."""
    if isinstance(value.owner, arith.AddiOp):
        yield from _terms(value.owner.lhs)
        yield from _terms(value.owner.rhs)
    else:
        yield value


def _rewrite(access: _Access, rotation: arith.RemUIOp, terms: Sequence[SSAValue]) -> None:
    """Replace the address of an access by one without the rotation."""
    total, *others = terms
    for term in others:
        total = _again(access, rotation.lhs.owner, [total, term])
    replacements: dict[SSAValue, SSAValue] = {rotation.result: total}
    index = list(access.pointer.operands).index(access.place)
    access.pointer.operands[index] = _replaced(access, access.place, replacements)


def _replaced(access: _Access, value: SSAValue, replacements: dict[SSAValue, SSAValue]) -> SSAValue:
    """Recompute a value from replacements of its operands; return the value itself where it depends on none of them."""
    if value not in replacements:
        op = value.owner
        operands = list(op.operands) if isinstance(op, Operation) else []
        new = [_replaced(access, item, replacements) for item in operands]
        is_same = all(old is item for old, item in zip(operands, new, strict=True))
        replacements[value] = value if is_same else _again(access, op, new)
    return replacements[value]


def _again(access: _Access, op: Operation | Block, operands: Sequence[SSAValue]) -> SSAValue:
    """Return the result of an op over other operands, which is computed just before an access."""
    assert isinstance(op, Operation)
    new = type(op).create(
        operands=operands,
        result_types=[result.type for result in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    add_before(access.pointer, new)
    return new.results[0]
