"""The builder that bodies of ops get, and the emission of a value at an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol, cast

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import arith, builtin, func, scf, tensor
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.errors import Diagnostic, PluginError, UnsupportedError
from shardy_py.indexing import IndexingMap, Interval, rescale_symbols, simplify
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.types import INDEX, element_dtype, scalar_type, tensor_type
from shardy_py.kernels.elemental.index_expressions import (
    add_op,
    apply_map,
    domain_condition,
    index_constant,
    interval_conditions,
)
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
from shardy_py.kernels.fusion.bodies import region_of
from shardy_py.plugins import ElementBuilder, Registry

Indices = tuple[SSAValue, ...]

LoopBody = Callable[[Sequence["ScalarValue"], Sequence["ScalarValue"]], Sequence["ScalarValue"]]
"""From the results of a map and the values that a loop carries to the next ones."""

_FEW = 8
"""The most scalar bodies inside of each other of which one, not their number, is at fault for a recursion."""


class EmissionContext(Protocol):
    """Context of a scope: the facts of its function.

    Attributes:
        registry: What is known about ops.
        index_bits: The bits that an index has where it becomes an integer.
    """

    registry: Registry
    index_bits: int

    def outside(self, scope: Scope, value: Value, indices: Indices) -> SSAValue | None:
        """Return an element of a value that the function does not compute itself, or None where it does."""
        ...

    def computes(self, value: Value) -> bool:
        """Return whether the function computes elements of a value itself, by the op that defines it."""
        ...

    def region_function(self, op: Op, region: int = 0) -> str:
        """Return the name of the function that computes a region of an op on scalars."""
        ...


class Scope:
    """Emits elements into a block, and reuses those that enclosing blocks computed.

    Args:
        surroundings: The function.
        builder: Where ops are added.
        parent: The scope of the block around.
    """

    def __init__(self, surroundings: EmissionContext, builder: Builder, parent: Scope | None = None) -> None:
        self.surroundings = surroundings
        self.builder = builder
        self._parent = parent
        # The ops whose scalar bodies are being run, in this block and those around it.
        self._nested: list[Op] = [] if parent is None else parent._nested
        self._known: dict[tuple[int, Indices], SSAValue] = {}
        self._read_once: set[tuple[int, Indices]] = set()

    def add(self, op: Operation) -> SSAValue:
        """Add an op and return its first result."""
        return add_op(self.builder, op)

    def index(self, value: int) -> SSAValue:
        """Return a constant index."""
        return index_constant(self.builder, value)

    def find(self, key: tuple[int, Indices]) -> SSAValue | None:
        """Return an element that this block or an enclosing one computed before, or None."""
        element = self._known.get(key)
        return element if element is not None or self._parent is None else self._parent.find(key)

    def remember(self, value: Value, indices: Indices, element: SSAValue) -> None:
        """Take an element as computed."""
        self._known[value.id, indices] = element

    def element(self, value: Value, indices: Indices) -> SSAValue:
        """Return the element of a value at an index."""
        key = (value.id, indices)
        computed = self.find(key)
        if computed is not None:
            return computed
        outside = self.surroundings.outside(self, value, indices)
        if outside is not None:
            # Mirrors how often XLA reads a parameter: the second read is remembered. Equal reads are united later.
            if key in self._read_once:
                self._known[key] = outside
            self._read_once.add(key)
            return outside
        assert value.defining_op is not None
        self._compute(value.defining_op, indices)
        return self._known[key]

    def _compute(self, op: Op, indices: Indices) -> None:
        """Compute the elements of the results of an op, behind those that it surely reads: chains may be long."""
        builder = OpElement(self, op, indices)
        pending = [(builder, builder.sure_reads())]
        while pending:
            builder, reads = pending[-1]
            source = next(((value, at) for value, at in reads if self.find((value.id, at)) is None), None)
            if source is not None:
                assert source[0].defining_op is not None
                behind = OpElement(self, source[0].defining_op, source[1])
                pending.append((behind, behind.sure_reads()))
                continue
            pending.pop()
            for result, element in zip(builder.of.results, self._computed(builder), strict=True):
                self._known[result.id, builder.at] = element

    def _computed(self, builder: OpElement) -> Sequence[SSAValue]:
        op = builder.of
        emission = self.surroundings.registry.get_emission(op)
        if emission is None:
            hint = "give the op a scalar body: emission=..."
            message = "it is not known what the op computes for one element"
            raise UnsupportedError(Diagnostic("no-emission", message, op.location, op.name, hint))
        self._nested.append(op)
        try:
            elements = emission(cast(ElementBuilder, builder), op)
        except (RecursionError, PluginError) as error:
            if len(self._nested) <= _FEW or not isinstance(error.__cause__ or error, RecursionError):
                raise
            message = f"{len(self._nested)} ops that each read in a branch or a loop of the next are nested too deeply"
            hint = "split the fusion: 'shardy emit FILE --list' shows the pieces of a program"
            raise UnsupportedError(Diagnostic("nested-too-deeply", message, op.location, op.name, hint)) from None
        finally:
            self._nested.pop()
        values = []
        for number, (element, result) in enumerate(zip(elements, op.results, strict=True)):
            if isinstance(element, ScalarValue):
                builder.seen([element])
            expected, actual = element_dtype(result), str(getattr(element, "dtype", ""))
            if actual != expected:
                message = (
                    f"the scalar body gives {actual} for result {number}, whose elements are {expected} in a kernel"
                )
                definition = self.surroundings.registry.find(op.name)
                place = f"; defined at {definition.location}" if definition and definition.location else ""
                hint = _cast(actual, expected) + place
                raise UnsupportedError(Diagnostic("emission-type", message, op.location, op.name, hint))
            values.append(cast(ScalarValue, element).value)
        return values

    def apply(self, map_: IndexingMap, indices: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()) -> list[SSAValue]:
        """Return the results of a map, each by an op of its own; variables and constants need none."""
        return apply_map(self.builder, map_, indices, symbols)

    def within(self, value: SSAValue, interval: Interval) -> list[SSAValue]:
        """Return conditions that a value lies in an interval."""
        return interval_conditions(self.builder, value, interval)

    def inside(self, map_: IndexingMap, indices: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()) -> SSAValue:
        """Return whether variables lie in the domain of a map."""
        return domain_condition(self.builder, map_, indices, symbols)

    @contextmanager
    def block(self, argument_types: Sequence[Any] = ()) -> Iterator[tuple[Scope, Block]]:
        """Open a new block inside this one; the caller puts it into a region."""
        block = Block(arg_types=list(argument_types))
        yield Scope(self.surroundings, Builder(InsertPoint.at_end(block)), self), block


def _cast(actual: str, expected: str) -> str:
    """Return a hint that says how to cast one type to another."""
    if (actual, expected) == ("i1", "i8"):
        return 'booleans are bytes: b.op("arith.extui", condition, dtype="i8")'
    return f'cast it, for example b.op("arith.truncf", x, dtype="{expected}")'


class OpElement:
    """Builds one element of an op; implements `shardy_py.ir.interfaces.emission.ElementBuilder`.

    Args:
        scope: Where ops are added; that of the innermost block that is being built.
        of: The op.
        at: The index of the element.
    """

    def __init__(self, scope: Scope, of: Op, at: Indices) -> None:
        self.scope = scope
        self._outermost = scope
        self.of = of
        self.at = at
        self._over: set[Block | None] = set()
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
        return ScalarValue(self.scope.element(value, at))

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

    def seen(self, values: Sequence[ScalarValue]) -> list[SSAValue]:
        """Return values that the body may still use.

        Raises:
            UnsupportedError: one was made in a loop or a branch of the body that is over.
        """
        owners = [item.value.owner for item in values]
        if not self._over.isdisjoint(owner if isinstance(owner, Block) else owner.parent for owner in owners):
            message = "the scalar body uses a value of a loop or a branch outside of it"
            hint = "let the loop carry it, or the branch give it"
            raise UnsupportedError(Diagnostic("scalar-op", message, self.of.location, self.of.name, hint))
        return [item.value for item in values]

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

    def choose(
        self, condition: ScalarValue, then: Callable[[], ScalarValue], otherwise: Callable[[], ScalarValue]
    ) -> ScalarValue:
        """Return the value of one of two branches."""
        regions, types = [], []
        for make in (then, otherwise):
            with self._inner() as (inner, block):
                value = make()
                inner.builder.insert(scf.YieldOp(value.value))
            types.append(value.value.type)
            regions.append(Region(block))
        if types[0] != types[1]:
            message = f"the branches of a choice give {types[0]} and {types[1]}"
            hint = "cast one to the type of the other"
            raise UnsupportedError(Diagnostic("scalar-op", message, self.of.location, self.of.name, hint))
        return ScalarValue(self.scope.add(scf.IfOp(condition.value, types[:1], regions[0], regions[1])))

    @contextmanager
    def _inner(self, argument_types: Sequence[Any] = ()) -> Iterator[tuple[Scope, Block]]:
        """Let all that bodies build go into a new block."""
        outer = self.scope
        with outer.block(argument_types) as (inner, block):
            self.scope = inner
            try:
                yield inner, block
            finally:
                self.scope = outer
                self._over.add(block)

    def reduce(
        self,
        map_: IndexingMap,
        initial: Sequence[ScalarValue],
        body: LoopBody,
        indices: Sequence[ScalarValue] | None = None,
    ) -> list[ScalarValue]:
        """Return values that a loop over the symbols of a map carries."""
        map_ = rescale_symbols(simplify(map_))
        if map_.is_known_empty:
            return list(initial)
        at = self.at if indices is None else tuple(index.value for index in indices)
        return self._nest(map_, at, [], list(initial), body)

    def _nest(
        self,
        map_: IndexingMap,
        at: Indices,
        symbols: list[ScalarValue],
        carried: list[ScalarValue],
        body: LoopBody,
    ) -> list[ScalarValue]:
        depth = len(symbols)
        while depth < len(map_.ranges) and map_.ranges[depth].interval.is_point:
            symbols = [*symbols, ScalarValue(self.scope.index(map_.ranges[depth].interval.lower))]
            depth += 1
        if depth == len(map_.ranges):
            return self._guarded(map_, at, symbols, carried, body)
        bounds = map_.ranges[depth].interval
        types = [item.value.type for item in carried]
        low, high, step = (self.scope.index(number) for number in (bounds.lower, bounds.upper + 1, 1))
        with self._inner([INDEX, *types]) as (inner, block):
            arguments = [ScalarValue(argument) for argument in block.args]
            yielded = self._nest(map_, at, [*symbols, arguments[0]], arguments[1:], body)
            inner.builder.insert(scf.YieldOp(*(item.value for item in yielded)))
        loop = scf.ForOp(low, high, step, [item.value for item in carried], Region(block))
        self.scope.builder.insert(loop)
        return [ScalarValue(value) for value in loop.results]

    def _guarded(
        self,
        map_: IndexingMap,
        at: Indices,
        symbols: list[ScalarValue],
        carried: list[ScalarValue],
        body: LoopBody,
    ) -> list[ScalarValue]:
        values = [item.value for item in symbols]
        condition = self.scope.inside(map_, at, values)
        regions = []
        with self._inner() as (inner, block):
            yielded = self._carried_on(body(self._results(map_, at, values), carried), carried)
            inner.builder.insert(scf.YieldOp(*(item.value for item in yielded)))
        regions.append(Region(block))
        with self._inner() as (inner, block):
            inner.builder.insert(scf.YieldOp(*(item.value for item in carried)))
        regions.append(Region(block))
        op = scf.IfOp(condition, [item.value.type for item in carried], regions[0], regions[1])
        self.scope.builder.insert(op)
        return [ScalarValue(value) for value in op.results]

    def _carried_on(self, values: Sequence[ScalarValue], initial: Sequence[ScalarValue]) -> Sequence[ScalarValue]:
        """Check that the body of a loop yields values of the carried types, and return them.

        Raises:
            UnsupportedError: the types differ.
        """
        actual, expected = ([str(item.value.type) for item in group] for group in (values, initial))
        if actual != expected:
            message = f"the body of a loop gives ({', '.join(actual)}), the loop carries ({', '.join(expected)})"
            hint = "return a value of the same type for each initial one"
            raise UnsupportedError(Diagnostic("scalar-op", message, self.of.location, self.of.name, hint))
        return values

    def _results(self, map_: IndexingMap, at: Indices, symbols: list[SSAValue]) -> list[ScalarValue]:
        return [ScalarValue(value) for value in self.scope.apply(map_, at, symbols)]

    def repeat(
        self,
        count: int,
        initial: Sequence[ScalarValue],
        body: Callable[[Sequence[ScalarValue]], Sequence[ScalarValue]],
    ) -> list[ScalarValue]:
        """Return values that a loop carries a number of times."""
        low, high, step = (self.scope.index(number) for number in (0, count, 1))
        types = [item.value.type for item in initial]
        with self._inner([INDEX, *types]) as (inner, block):
            yielded = self._carried_on(body([ScalarValue(argument) for argument in block.args[1:]]), initial)
            inner.builder.insert(scf.YieldOp(*(item.value for item in yielded)))
        loop = scf.ForOp(low, high, step, [item.value for item in initial], Region(block))
        self.scope.builder.insert(loop)
        return [ScalarValue(value) for value in loop.results]

    def call(self, op: Op, arguments: Sequence[ScalarValue], region: int = 0) -> list[ScalarValue]:
        """Return what a region of an op computes of scalars."""
        name = self.scope.surroundings.region_function(op, region)
        _, returned = region_of(op, region)
        types = [scalar_type(element_dtype(value)) for value in returned]
        call = func.CallOp(name, [item.value for item in arguments], types)
        self.scope.builder.insert(call)
        return [ScalarValue(value) for value in call.results]
