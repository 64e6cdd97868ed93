"""The builder that bodies of ops get, and the emission of a value at an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

from xdsl.dialects import arith, builtin, func, tensor
from xdsl.ir import SSAValue

from shardy_py.errors import Diagnostic, PluginError, UnsupportedError
from shardy_py.indexing import IndexingMap, Interval
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.types import INDEX, element_dtype, scalar_type, tensor_type
from shardy_py.kernels.elemental.control_flow import ControlFlow, LoopBody
from shardy_py.kernels.elemental.literals import literal_of
from shardy_py.kernels.elemental.scalars import (
    COMPARISONS,
    EXPANSIONS,
    ScalarValue,
    is_widened,
    make_constant,
    make_op,
    problem_of,
    widened,
)
from shardy_py.kernels.elemental.scope import EmissionContext, Indices, Scope
from shardy_py.kernels.fusion.bodies import region_of
from shardy_py.kernels.locations import locate_new_ops
from shardy_py.plugins import ElementBuilder

__all__ = ["EmissionContext", "Indices", "LoopBody", "OpElement", "Scope", "element_of"]

_FEW = 8
"""The most scalar bodies inside of each other of which one, not their number, is at fault for a recursion."""


def element_of(scope: Scope, value: Value, indices: Indices) -> SSAValue:
    """Return the element of a value at an index."""
    element = scope.find((value.id, indices))
    if element is None:
        element = scope.outside(value, indices)
    if element is not None:
        return element
    assert value.defining_op is not None
    return _computed(scope, value.defining_op, indices)[value.defining_op.results.index(value)]


def _computed(scope: Scope, op: Op, indices: Indices) -> Sequence[SSAValue]:
    """Compute the elements of the results of an op, behind those that it surely reads: chains may be long."""
    builder = OpElement(scope, op, indices)
    pending = [(builder, builder.sure_reads())]
    elements: Sequence[SSAValue] = ()
    while pending:
        builder, reads = pending[-1]
        source = next(((value, at) for value, at in reads if scope.find((value.id, at)) is None), None)
        if source is not None:
            assert source[0].defining_op is not None
            behind = OpElement(scope, source[0].defining_op, source[1])
            pending.append((behind, behind.sure_reads()))
            continue
        pending.pop()
        elements = _run(builder)
        for result, element in zip(builder.of.results, elements, strict=True):
            scope.remember(result, builder.at, element)
    return elements


def _run(builder: OpElement) -> Sequence[SSAValue]:
    """Run the scalar body of an op, and return the elements of its results."""
    op, scope = builder.of, builder.scope
    emission = scope.surroundings.registry.get_emission(op)
    if emission is None:
        hint = "give the op a scalar body: emission=..."
        message = "it is not known what the op computes for one element"
        raise UnsupportedError(Diagnostic("no-emission", message, op.location, op.name, hint))
    scope.nested.append(op)
    block = scope.builder.insertion_point.block
    last = block.last_op
    try:
        elements = emission(cast(ElementBuilder, builder), op)
    except (RecursionError, PluginError) as error:
        if len(scope.nested) <= _FEW or not isinstance(error.__cause__ or error, RecursionError):
            raise
        message = f"{len(scope.nested)} ops that each read in a branch or a loop of the next are nested too deeply"
        hint = "split the fusion: 'shardy emit FILE --list' shows the pieces of a program"
        raise UnsupportedError(Diagnostic("nested-too-deeply", message, op.location, op.name, hint)) from None
    finally:
        scope.nested.pop()
    values = []
    for number, (element, result) in enumerate(zip(elements, op.results, strict=True)):
        if isinstance(element, ScalarValue):
            builder.seen([element])
        expected, actual = element_dtype(result), str(getattr(element, "dtype", ""))
        if actual != expected:
            message = f"the scalar body gives {actual} for result {number}, whose elements are {expected} in a kernel"
            definition = scope.surroundings.registry.find(op.name)
            place = f"; defined at {definition.location}" if definition and definition.location else ""
            hint = _cast(actual, expected) + place
            raise UnsupportedError(Diagnostic("emission-type", message, op.location, op.name, hint))
        values.append(cast(ScalarValue, element).value)
    locate_new_ops(block, last, op)
    return values


def _cast(actual: str, expected: str) -> str:
    """Return a hint that says how to cast one type to another."""
    if (actual, expected) == ("i1", "i8"):
        return 'booleans are bytes: b.op("arith.extui", condition, dtype="i8")'
    return f'cast it, for example b.op("arith.truncf", x, dtype="{expected}")'


class OpElement(ControlFlow):
    """Builds one element of an op; implements `shardy_py.ir.interfaces.emission.ElementBuilder`.

    Args:
        scope: Where ops are added; that of the innermost block that is being built.
        of: The op.
        at: The index of the element.
    """

    def __init__(self, scope: Scope, of: Op, at: Indices) -> None:
        super().__init__(scope, of, at)
        self._outermost = scope
        self._indices: dict[int, Indices] = {}

    @property
    def indices(self) -> list[ScalarValue]:
        """The index of the element."""
        return [ScalarValue(value) for value in self.at]

    def operand(self, number: int, indices: Sequence[ScalarValue] | None = None) -> ScalarValue:
        """Return an element of an operand; by default the one that the op's indexing map says."""
        if not 0 <= number < len(self.of.operands):
            message = f"the op has {len(self.of.operands)} operands, there is no operand {number}"
            raise UnsupportedError(Diagnostic("no-operand", message, self.of.location, self.of.name))
        value = self.of.operands[number]
        at = self._read(number) if indices is None else tuple(index.value for index in indices)
        if len(at) != len(value.shape) or any(item.type != INDEX for item in at):
            message = f"operand {number} of {value.type} is read at ({', '.join(str(item.type) for item in at)})"
            raise UnsupportedError(
                Diagnostic("no-index", message, self.of.location, self.of.name, "give an index each")
            )
        return ScalarValue(element_of(self.scope, value, at))

    @cached_property
    def maps(self) -> tuple[IndexingMap, ...]:
        """The indexing map of every operand; none where they are not known."""
        indexing = self.scope.surroundings.registry.get_indexing(self.of)
        return () if indexing is None else indexing.output_to_input

    def sure_reads(self) -> Iterator[tuple[Value, Indices]]:
        """Yield the elements that the scalar body reads whatever it computes, of values that the function computes.

        These are the ones that the indexing maps say, where none of them has a condition or a symbol.
        """
        maps = self.maps
        everywhere = [Interval(0, size - 1) for size in self.of.results[0].shape]
        for map_ in maps:
            has_condition = map_.constraints or [bound.interval for bound in map_.dims] != everywhere
            if map_.is_undefined or map_.is_known_empty or has_condition or map_.ranges or map_.runtimes:
                return
        for number, value in enumerate(self.of.operands if maps else ()):
            if self.scope.surroundings.computes(value):
                yield value, self._read(number)

    def _read(self, number: int) -> Indices:
        indices = self._indices.get(number)
        if indices is None:
            indices = self._mapped(number)
            # What a branch or a loop of the body computes is not known behind it.
            if self.scope is self._outermost:
                self._indices[number] = indices
        return indices

    def _mapped(self, number: int) -> Indices:
        maps = self.maps
        if not maps or maps[number].is_undefined or maps[number].ranges or maps[number].runtimes:
            message = f"no indexing map says which element of operand {number} is read"
            hint = "give its index, or the op indexing maps without symbols"
            raise UnsupportedError(Diagnostic("no-index", message, self.of.location, self.of.name, hint))
        return tuple(self.scope.apply(maps[number], self.at))

    def op(self, name: str, *operands: ScalarValue, dtype: str | None = None, **attributes: Any) -> ScalarValue:
        """Add an op by its name."""
        if name == "arith.trunci" and dtype == "i1" and isinstance(operands[0].value.owner, arith.ExtUIOp):
            condition = operands[0].value.owner.input
            if condition.type == builtin.i1:
                return ScalarValue(condition)
        if dtype is None and name in COMPARISONS:
            dtype = "i1"
        if is_widened(name, operands, dtype):
            return cast(ScalarValue, widened(cast(ElementBuilder, self), name, operands, dtype, attributes))
        result = operands[0].value.type if dtype is None else scalar_type(dtype)
        wide = builtin.IntegerType(self.scope.surroundings.index_bits)
        if name == "arith.index_castui" and isinstance(result, builtin.IntegerType) and result.bitwidth < wide.bitwidth:
            return self.op("arith.trunci", self.op(name, *operands, dtype=str(wide)), dtype=dtype)
        if name in EXPANSIONS and len(operands) == 2:
            return cast(ScalarValue, EXPANSIONS[name](cast(ElementBuilder, self), *operands))
        values = self.seen(operands)
        problem = problem_of(name, tuple(value.type for value in values), result, attributes.get("predicate", ""))
        if problem:
            is_mixed = len({value.type for value in values}) > 1
            hint = "cast the operands to one type" if is_mixed else 'say what it gives: b.op(..., dtype="f32")'
            raise UnsupportedError(Diagnostic("scalar-op", problem, self.of.location, self.of.name, hint))
        return ScalarValue(self.scope.add(make_op(name, values, result, attributes)))

    def constant(self, value: complex, dtype: str) -> ScalarValue:
        """Return a constant, rounded to its type."""
        return ScalarValue(self.scope.add(make_constant(value, dtype)))

    def literal(self, op: Op) -> ScalarValue:
        """Return the element of a constant that the op holds."""
        literal = literal_of(op)
        dtype = element_dtype(op.results[0])
        if isinstance(literal, (float, complex)):
            return self.constant(literal, dtype)
        if literal.is_splat() or not self.at:
            return self.constant(next(iter(literal.iter_values())), dtype)  # type: ignore[arg-type]
        tensor_constant = self.scope.add(arith.ConstantOp(literal, tensor_type(op.results[0])))
        return ScalarValue(self.scope.add(tensor.ExtractOp(tensor_constant, list(self.at), scalar_type(dtype))))

    def apply(
        self, map_: IndexingMap, indices: Sequence[ScalarValue], symbols: Sequence[ScalarValue] = ()
    ) -> list[ScalarValue]:
        """Return the results of an indexing map."""
        results = self.scope.apply(map_, [item.value for item in indices], [item.value for item in symbols])
        return [ScalarValue(value) for value in results]

    def inside(self, map_: IndexingMap, indices: Sequence[ScalarValue]) -> ScalarValue:
        """Return whether indices are in the domain of a map."""
        return ScalarValue(self.scope.inside(map_, [index.value for index in indices]))

    def call(self, op: Op, arguments: Sequence[ScalarValue], region: int = 0) -> list[ScalarValue]:
        """Return what a region of an op computes of scalars."""
        name = self.scope.surroundings.region_function(op, region)
        _, returned = region_of(op, region)
        types = [scalar_type(element_dtype(value)) for value in returned]
        call = func.CallOp(name, [item.value for item in arguments], types)
        self.scope.builder.insert(call)
        return [ScalarValue(value) for value in call.results]
