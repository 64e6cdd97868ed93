"""A fusion: the ops between the parameters and the roots of one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.kernels.fusion.op_facts import FusedOpFacts
from shardy_py.kernels.fusion.refusals import problems_of_ops, problems_of_values
from shardy_py.plugins import Registry
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.values import frozen

Layouts = Mapping[int, tuple[int, ...]]
"""By the id of a value its dimensions, the one that varies fastest in memory first."""

_INDEX_BITS = 64


def bits_of(element_type: str) -> int:
    """Return the bits that an element takes in memory; booleans take a byte.

    Raises:
        UnsupportedError: the type does not say.

    >>> bits_of("bf16"), bits_of("complex<f32>"), bits_of("f8E4M3FN"), bits_of("i1")
    (16, 64, 8, 8)
    """
    bits = _INDEX_BITS if element_type == "index" else mlir_element_bits(element_type)
    if bits is None:
        raise UnsupportedError(Diagnostic("element-type", f"kernels have no elements of type {element_type}"))
    return bits


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the static shape of a value of a fusion."""
    return static_shape(value.type) or ()


def bytes_of(value: Value) -> int:
    """Return the bytes that a value takes in memory; elements of fewer bits than a byte are packed."""
    return -(-prod(shape_of(value)) * bits_of(element_type_of(value)) // 8)


def element_type_of(value: Value) -> str:
    """Return the element type of a value in MLIR's notation."""
    return value.type.element_type if isinstance(value.type, TensorType) else str(value.type)


@frozen(eq=False)
class IterationSpace:
    """The elements of a tensor, over which the threads of a kernel are spread in the order of memory.

    Args:
        value: The tensor.
        shape: Its shape.
        layout: Its dimensions, the one that varies fastest in memory first.
        bits: The fewest bits of an element that is written; one thread writes all elements of a byte.
        divisible: A number that the elements of a thread have to divide; 0 where there is none.
        is_expensive: Whether an element takes so much that loops over several are not unrolled.
    """

    value: Value
    shape: tuple[int, ...]
    layout: tuple[int, ...]
    bits: int
    divisible: int = 0
    is_expensive: bool = False

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)


@frozen(eq=False, slots=False)
class Fusion:
    """A piece of a program that becomes one kernel.

    Args:
        name: The name of the kernel.
        parameters: The values that are read from memory.
        roots: The values that are written to memory.
        registry: What is known about the ops.
        layouts: By the id of a value its dimensions, the one that varies fastest in memory first; row-major for values
            that are not in it.
        copied: The numbers of the parameters of which the last parameters are copies: a scatter updates these in the
            place of the parameters, which others read.
    """

    name: str
    parameters: tuple[Value, ...]
    roots: tuple[Value, ...]
    registry: Registry = field(repr=False)
    layouts: Layouts = field(factory=dict, repr=False)
    copied: tuple[int, ...] = ()

    @property
    def argument_parameters(self) -> tuple[Value, ...]:
        """The parameters that a caller gives arrays for: all but the copies of others."""
        return self.parameters[: len(self.parameters) - len(self.copied)]

    @classmethod
    def of_function(
        cls, function: Op, registry: Registry, *, name: str | None = None, layouts: Layouts | None = None
    ) -> Fusion:
        """Return the fusion of all that the region of a function, or of another op, computes.

        Args:
            function: The op.
            registry: What is known about the ops.
            name: The name of the kernel; by default that of the function.
            layouts: The layouts of values that are not row-major.

        Raises:
            UnsupportedError: it has several blocks, no results, or something that no kernel can have.
        """
        blocks = function.regions[0].blocks if function.regions else []
        terminator = blocks[0].terminator if len(blocks) == 1 else None
        if terminator is None or not terminator.operands:
            message = "a fusion is a function with one block and at least one result"
            raise UnsupportedError(Diagnostic("no-fusion", message, function.location, function.name))
        name = name or str(function.attributes.get("sym_name", "fusion"))
        parameters, roots = tuple(blocks[0].arguments), tuple(terminator.operands)
        fusion = cls(name, parameters, roots, registry, layouts or {})
        fusion.check()
        return fusion

    def check(self) -> None:
        """Check that every value has a static shape, and that every op says what it computes for one element.

        Raises:
            UnsupportedError: a value or an op has not; all are named.
        """
        alone = {op.id for op in self.ops if self.facts[op.id].is_scatter and op.id in self.root_op_ids}
        computed = [op for op in self.ops if op.id not in alone]
        problems = [*problems_of_values(self.parameters, self.ops), *problems_of_ops(computed, self.registry)]
        if problems:
            raise UnsupportedError(*problems)

    def updated(self, operand: Value) -> Value:
        """Return the parameter that is updated for an operand of a scatter: a copy where others read the operand."""
        number = self.parameter_numbers.get(operand.id)
        if number not in self.copied:
            return operand
        return self.parameters[len(self.argument_parameters) + self.copied.index(number)]

    def layout_of(self, value: Value) -> tuple[int, ...]:
        """Return the dimensions of a value, the one that varies fastest in memory first."""
        return self.layouts.get(value.id) or tuple(range(len(shape_of(value)) - 1, -1, -1))

    def space_of(self, value: Value, *, divisible: int = 0, is_expensive: bool = False) -> IterationSpace:
        """Return the iteration space of a value, over which threads compute all roots."""
        bits = min(bits_of(element_type_of(root)) for root in self.roots)
        return IterationSpace(value, shape_of(value), self.layout_of(value), bits, divisible, is_expensive)

    def same_place(self, first: Value, other: Value) -> IndexingMap:
        """Return the map from the index of a value to that of another one with as many elements, by their memory."""
        shape, layout = shape_of(first), self.layout_of(first)
        if (shape, layout) == (shape_of(other), self.layout_of(other)):
            return op_maps.identity(shape)
        if prod(shape) != prod(shape_of(other)):
            op = other.defining_op
            message = f"the kernel {self.name} gives {first.type} and {other.type}, which differ in their elements"
            hint = (
                "'shardy emit FILE --list' shows its pieces, --fusion N takes one; results of one op have as many each"
            )
            location, name = (op.location, op.name) if op is not None else ("", "")
            raise UnsupportedError(Diagnostic("root-sizes", message, location, name, hint))
        return op_maps.bitcast(shape, layout, shape_of(other), self.layout_of(other))

    def is_row_major(self, value: Value) -> bool:
        """Return whether the last dimension of a value varies fastest, and so on."""
        return list(self.layout_of(value)) == sorted(self.layout_of(value), reverse=True)

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The ops from which the roots are computed, each after its operands."""
        parameters = {value.id for value in self.parameters}
        ops_by_id: dict[int, Op] = {}
        pending = [(op, False) for op in self._root_ops()]
        while pending:
            op, is_ready = pending.pop()
            if op.id in ops_by_id:
                continue
            if is_ready:
                ops_by_id[op.id] = op
                continue
            pending.append((op, True))
            for operand in reversed(op.operands):
                if operand.id not in parameters and operand.defining_op is not None:
                    pending.append((operand.defining_op, False))
        return tuple(ops_by_id.values())

    @cached_property
    def operands(self) -> Mapping[int, tuple[Value, ...]]:
        """The operands of every op, by its id; those that a scatter updates may be copies."""
        operands = {op.id: tuple(op.operands) for op in self.ops}
        for op in self.ops if self.copied else ():
            if self.facts[op.id].is_scatter:
                count = len(op.results)
                operands[op.id] = (*map(self.updated, op.operands[:count]), *op.operands[count:])
        return operands

    @cached_property
    def numbers(self) -> Mapping[int, int]:
        """The number of every op, by its id."""
        return {op.id: number for number, op in enumerate(self.ops)}

    def _root_ops(self) -> Iterator[Op]:
        for root in reversed(self.roots):
            if root.defining_op is not None and root.id not in self.parameter_ids:
                yield root.defining_op

    @cached_property
    def users(self) -> Mapping[int, Sequence[Op]]:
        """The ops of the fusion that use a value, by its id."""
        users: dict[int, list[Op]] = {}
        for op in self.ops:
            for operand in dict.fromkeys(op.operands):
                users.setdefault(operand.id, []).append(op)
        return users

    @cached_property
    def parameter_ids(self) -> frozenset[int]:
        """The ids of the parameters."""
        return frozenset(value.id for value in self.parameters)

    @cached_property
    def parameter_numbers(self) -> Mapping[int, int]:
        """The number of every parameter, by its id."""
        return {value.id: number for number, value in enumerate(self.parameters)}

    @cached_property
    def root_ids(self) -> frozenset[int]:
        """The ids of the roots."""
        return frozenset(value.id for value in self.roots)

    @cached_property
    def root_elements(self) -> tuple[int, ...]:
        """The number of elements of every root."""
        return tuple(self.elements(root) for root in self.roots)

    @cached_property
    def root_op_ids(self) -> frozenset[int]:
        """The ids of the ops that make roots."""
        return frozenset(op.id for op in self._root_ops())

    @cached_property
    def facts(self) -> Mapping[int, FusedOpFacts]:
        """Facts of every op, also of those in regions, by its id."""
        return {op.id: FusedOpFacts(op, self.registry) for outer in self.ops for op in outer.walk()}

    @cached_property
    def starts(self) -> dict[int, tuple[int | None, ...] | None]:
        """The numbers with which threads begin a reduction, by its id, for those that were asked for."""
        return {}

    def producer(self, value: Value) -> Op | None:
        """Return the op of the fusion that makes a value, or None for a parameter."""
        return None if value.id in self.parameter_ids else value.defining_op

    def elements(self, value: Value) -> int:
        """Return the number of elements of a value."""
        return prod(shape_of(value))
