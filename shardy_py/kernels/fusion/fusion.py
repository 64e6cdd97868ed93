"""A fusion: the ops between the parameters and the roots of one kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.ops import (
    Bitcast,
    Concatenation,
    Contraction,
    DynamicUpdate,
    Elementwise,
    Reduction,
    Reshape,
    Scatter,
)
from shardy_py.kernels.fusion.bodies import (
    Traced,
    body_of,
    joins_in_order,
    keeps_element,
    picks_elements,
    reduces_by_region,
)
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


def element_type_of(value: Value) -> str:
    """Return the element type of a value in MLIR's notation."""
    return value.type.element_type if isinstance(value.type, TensorType) else str(value.type)


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
    """

    name: str
    parameters: tuple[Value, ...]
    roots: tuple[Value, ...]
    registry: Registry = field(repr=False)
    layouts: Layouts = field(factory=dict, repr=False)

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
        alone = {op.id for op in self.ops if self.is_scatter(op) and op.id in self.root_op_ids}
        computed = [op for op in self.ops if op.id not in alone]
        problems = [*problems_of_values(self.parameters, self.ops), *problems_of_ops(computed, self.registry)]
        if problems:
            raise UnsupportedError(*problems)

    def layout_of(self, value: Value) -> tuple[int, ...]:
        """Return the dimensions of a value, the one that varies fastest in memory first."""
        return self.layouts.get(value.id) or tuple(range(len(shape_of(value)) - 1, -1, -1))

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
        found: dict[int, Op] = {}
        pending = [(op, False) for op in self._root_ops()]
        while pending:
            op, is_ready = pending.pop()
            if op.id in found:
                continue
            if is_ready:
                found[op.id] = op
                continue
            pending.append((op, True))
            for operand in reversed(op.operands):
                if operand.id not in parameters and operand.defining_op is not None:
                    pending.append((operand.defining_op, False))
        return tuple(found.values())

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
    def root_op_ids(self) -> frozenset[int]:
        """The ids of the ops that make roots."""
        return frozenset(op.id for op in self._root_ops())

    @cached_property
    def facts(self) -> dict[Hashable, Any]:
        """Facts of ops that are found once, by the name of what finds them and the id of the op."""
        return {}

    @cached_property
    def _maps(self) -> dict[int, tuple[IndexingMap, ...]]:
        return {}

    def maps(self, op: Op) -> tuple[IndexingMap, ...]:
        """Return the map of every operand of an op, from the index of its first result."""
        found = self._maps.get(op.id)
        if found is None:
            indexing = self.registry.get_indexing(op) if op.operands else None
            unknown = (IndexingMap.undefined(),) * len(op.operands)
            found = self._maps[op.id] = unknown if indexing is None else indexing.output_to_input
        return found

    def producer(self, value: Value) -> Op | None:
        """Return the op of the fusion that makes a value, or None for a parameter."""
        return None if value.id in self.parameter_ids else value.defining_op

    def is_elementwise(self, op: Op) -> bool:
        """Return whether an op computes each element from the same element of its operands, or from scalars."""
        return self.registry.has_trait(op, Elementwise)

    @cached_property
    def _bodies(self) -> dict[int, tuple[Traced, ...]]:
        return {}

    def traced_body(self, op: Op) -> tuple[Traced, ...]:
        """Return what the scalar body of an op makes; nothing where that is not known."""
        found = self._bodies.get(op.id)
        if found is None:
            emission = self.registry.get_emission(op)
            body = None if emission is None else body_of(op, emission, self.maps(op))
            found = self._bodies[op.id] = body or ()
        return found

    def keeps_elements(self, op: Op) -> bool:
        """Return whether an op computes nothing: an element of its result is the one that its map says."""
        return keeps_element(op, self.traced_body(op))

    def is_bitcast(self, op: Op) -> bool:
        """Return whether an op gives its operand another shape and leaves the memory as it is."""
        is_one = self.registry.has_trait(op, Reshape) or self.registry.has_trait(op, Bitcast)
        return is_one and self.keeps_elements(op)

    def is_reduction(self, op: Op) -> bool:
        """Return whether an op combines elements along whole dimensions, by a region and from initial operands.

        One that says so without these, or computes more, is computed element by element, by its scalar body.
        """
        is_regular = bool(op.regions) and len(op.operands) == 2 * len(op.results)
        if not is_regular or not self.registry.has_trait(op, Reduction):
            return False
        inits = op.operands[len(op.results) :]
        return not any(map(shape_of, inits)) and reduces_by_region(op, self.traced_body(op), self.maps(op))

    def is_concatenation(self, op: Op) -> bool:
        """Return whether an op joins its operands along a dimension, in their order, and computes nothing."""
        is_one = self.registry.has_trait(op, Concatenation) and joins_in_order(op, self.maps(op))
        return is_one and picks_elements(self.traced_body(op))

    def is_contraction(self, op: Op) -> bool:
        """Return whether an op sums products."""
        return self.registry.has_trait(op, Contraction)

    def is_scatter(self, op: Op) -> bool:
        """Return whether an op writes updates to places that are known at run time."""
        return bool(op.regions) and self.registry.has_trait(op, Scatter)

    def is_dynamic_update(self, op: Op) -> bool:
        """Return whether an op writes a part of its operand that begins at a place known at run time."""
        has_starts = len(op.operands) == 2 + len(shape_of(op.operands[0])) if op.operands else False
        return has_starts and self.registry.has_trait(op, DynamicUpdate) and picks_elements(self.traced_body(op))

    def moves_only(self, op: Op) -> bool:
        """Return whether an op makes its elements of nothing, or takes each from one place of its only operand."""
        if not op.operands:
            return True
        if len(op.operands) > 1 or self.is_elementwise(op) or self.is_reduction(op):
            return False
        (map_,) = self.maps(op)
        is_place = not (map_.is_undefined or map_.constraints or map_.ranges or map_.runtimes)
        return is_place and self.keeps_elements(op)

    def elements(self, value: Value) -> int:
        """Return the number of elements of a value."""
        return prod(shape_of(value))
