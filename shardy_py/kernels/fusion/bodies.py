"""Forms of scalar bodies: what they compute beside the elements that emitters with an entry of their own move.

An emitter for transposes, concatenates, updates in place or reductions does not run the body of the op that it is for.
It takes ops only whose bodies do what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, cast, final

from shardy_py.errors import Diagnostic, PluginError, UnsupportedError
from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
from shardy_py.values import frozen

_EmissionOf = Callable[[ElementBuilder, Op], Sequence[Scalar]]


@frozen
class Traced:
    """A value of a scalar body, by what it is made of.

    Args:
        dtype: Its type in a kernel.
        kind: The method of the builder that makes it.
        parts: What the method is given.
    """

    dtype: str
    kind: str
    parts: tuple[Any, ...] = ()


def body_of(op: Op, emission: _EmissionOf, maps: Sequence[IndexingMap]) -> tuple[Traced, ...] | None:
    """Trace a scalar body, and return the expression of each result, or None where tracing fails."""
    try:
        elements = tuple(emission(cast(ElementBuilder, _Tracer(op, maps)), op))
    except PluginError:
        return None
    return cast(tuple[Traced, ...], elements) if all(isinstance(item, Traced) for item in elements) else None


def keeps_element(op: Op, body: Sequence[Traced]) -> bool:
    """Return whether a body computes nothing: the result is the element of the only operand that its map says."""
    return len(op.operands) == 1 and tuple(body) == (_read(op, 0),)


def picks_elements(body: Sequence[Traced]) -> bool:
    """Return whether a body takes an element of one operand or of another, and computes nothing of it."""
    return all(item.kind == "operand" for value in body for item in _choices(value))


def reduces_by_region(op: Op, body: Sequence[Traced], maps: Sequence[IndexingMap]) -> bool:
    """Return whether a body combines what the first map runs over by the op's region, from the initial operands."""
    count = len(op.results)

    def combined(b: ElementBuilder, op: Op) -> Sequence[Any]:
        def step(index: Sequence[Any], carried: Sequence[Any]) -> Sequence[Any]:
            return b.call(op, [*carried, *(b.operand(number, index) for number in range(count))])

        return b.reduce(maps[0], [b.operand(count + number) for number in range(count)], step)

    return tuple(body) == body_of(op, combined, maps)


def _choices(value: Traced) -> Iterator[Traced]:
    if value.kind == "choose":
        _, *branches = value.parts
        for branch in branches:
            yield from _choices(branch)
    else:
        yield value


def _element_dtype(value: Value) -> str:
    """Return the type that an element has in a kernel: booleans are bytes, integers have no sign."""
    dtype = value.type.element_type if isinstance(value.type, TensorType) else str(value.type)
    return "i8" if dtype == "i1" else dtype.removeprefix("u").removeprefix("s") if "i" in dtype[:2] else dtype


def _read(op: Op, number: int, at: tuple[Any, ...] | None = None) -> Traced:
    return Traced(_element_dtype(op.operands[number]), "operand", (number, at))


@final
class _Tracer:
    """A builder whose values name the ops and operands that make them.

    Implements `shardy_py.ir.interfaces.emission.ElementBuilder`.
    """

    def __init__(self, op: Op, maps: Sequence[IndexingMap]) -> None:
        self.maps = maps
        self._op = op
        self._loops = 0

    @property
    def indices(self) -> list[Traced]:
        """The index of the element."""
        shape = static_shape(self._op.results[0].type) or ()
        return [Traced("index", "index", (number,)) for number in range(len(shape))]

    def operand(self, number: int, indices: Sequence[Traced] | None = None) -> Traced:
        """Return an element of an operand."""
        return _read(self._op, number, None if indices is None else tuple(indices))

    def op(self, name: str, *operands: Traced, dtype: str | None = None, **attributes: Any) -> Traced:
        """Return what an op gives; a boolean that becomes a condition and a byte again stays what it is."""
        before = operands[0]
        if (name, dtype, before.dtype, before.kind) == ("arith.extui", "i8", "i1", "op"):
            source = before.parts[1][0]
            if before.parts[0] == "arith.trunci" and source.kind == "operand" and self._is_boolean(source.parts[0]):
                return cast(Traced, source)
        parts = (name, operands, tuple(sorted(attributes.items())))
        return Traced(before.dtype if dtype is None else dtype, "op", parts)

    def _is_boolean(self, number: int) -> bool:
        type_ = self._op.operands[number].type
        return isinstance(type_, TensorType) and type_.element_type == "i1"

    def constant(self, value: complex, dtype: str) -> Traced:
        """Return a constant."""
        return Traced(dtype, "constant", (str(value),))

    def literal(self, op: Op) -> Traced:
        """Return an element of a constant."""
        return Traced(_element_dtype(op.results[0]), "literal", (op.id,))

    def apply(self, map_: IndexingMap, indices: Sequence[Traced], symbols: Sequence[Traced] = ()) -> list[Traced]:
        """Return the results of a map."""
        parts = (map_, tuple(indices), tuple(symbols))
        return [Traced("index", "apply", (*parts, number)) for number in range(len(map_.results))]

    def inside(self, map_: IndexingMap, indices: Sequence[Traced]) -> Traced:
        """Return a condition."""
        return Traced("i1", "inside", (map_, tuple(indices)))

    def choose(self, condition: Traced, then: Callable[[], Traced], otherwise: Callable[[], Traced]) -> Traced:
        """Return one of two values."""
        first, second = then(), otherwise()
        return Traced(first.dtype, "choose", (condition, first, second))

    def reduce(
        self,
        map_: IndexingMap,
        initial: Sequence[Traced],
        body: Callable[[Sequence[Traced], Sequence[Traced]], Sequence[Traced]],
        indices: Sequence[Traced] | None = None,
    ) -> list[Traced]:
        """Return values that a loop over a map's symbols carries."""
        of = map_ if indices is None else (map_, tuple(indices))
        index = [Traced("index", "at", (self._loops, number)) for number in range(len(map_.results))]
        return self._loop("reduce", of, initial, lambda carried: body(index, carried))

    def repeat(
        self, count: int, initial: Sequence[Traced], body: Callable[[Sequence[Traced]], Sequence[Traced]]
    ) -> list[Traced]:
        """Return values that a loop carries a number of times."""
        return self._loop("repeat", count, initial, body)

    def _loop(
        self, kind: str, of: object, initial: Sequence[Traced], body: Callable[[Sequence[Traced]], Sequence[Traced]]
    ) -> list[Traced]:
        carried = [Traced(item.dtype, "carried", (self._loops, number)) for number, item in enumerate(initial)]
        self._loops += 1
        parts = (of, tuple(initial), tuple(body(carried)))
        return [Traced(item.dtype, kind, (*parts, number)) for number, item in enumerate(initial)]

    def call(self, op: Op, arguments: Sequence[Traced], region: int = 0) -> list[Traced]:
        """Return what a region of an op computes."""
        name: Any = (op.id, region) if region else op.id
        _, returned = region_of(op, region)
        dtypes = [_element_dtype(value) for value in returned]
        return [Traced(dtype, "call", (name, tuple(arguments), number)) for number, dtype in enumerate(dtypes)]


def region_of(op: Op, number: int = 0) -> tuple[Sequence[Value], Sequence[Value]]:
    """Return the arguments of the only block of a region of an op, and what it gives back.

    Raises:
        UnsupportedError: the region has not one block.
    """
    blocks = op.regions[number].blocks if number < len(op.regions) else []
    terminator = blocks[0].terminator if len(blocks) == 1 else None
    if terminator is None:
        message = "the region that combines elements has one block"
        raise UnsupportedError(Diagnostic("combiner", message, op.location, op.name))
    return blocks[0].arguments, terminator.operands


def joined_dimension(op: Op) -> int:
    """Return the dimension along which a concatenate joins its operands."""
    output, *inputs = (static_shape(value.type) or () for value in (op.results[0], *op.operands))
    for number, size in enumerate(output):
        if any(shape[number] != size for shape in inputs):
            return number
    return 0


def joined_lengths(op: Op) -> list[int]:
    """Return the sizes of the operands of a concatenate along the dimension in which it joins them."""
    dimension = joined_dimension(op)
    return [(static_shape(value.type) or ())[dimension] for value in op.operands]


def joins_in_order(op: Op, maps: Sequence[IndexingMap]) -> bool:
    """Return whether the maps of an op put its operands one behind the other, each as it is."""
    output, *inputs = (static_shape(value.type) or () for value in (op.results[0], *op.operands))
    if not inputs or not output or any(len(shape) != len(output) for shape in inputs):
        return False
    dimension = joined_dimension(op)
    sizes = [shape[dimension] for shape in inputs]
    places = zip(accumulate(sizes, initial=0), sizes, strict=False)
    return all(
        map_ == op_maps.concatenate(output, dimension, offset, size)
        for map_, (offset, size) in zip(maps, places, strict=True)
    )
