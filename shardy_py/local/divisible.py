"""Padded forms of ops: the types are those of values that divide, and reductions see neutral values in padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.op_names import ALL_SLICE, ALL_TO_ALL, CONSTANT, REDUCE_SCATTER
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.local.collectives import COLLECTIVES
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import FactorKind, OpShardingRule, Reductions
from shardy_py.values import define

_SLICING = frozenset((ALL_SLICE, ALL_TO_ALL, REDUCE_SCATTER))
_MOVING = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


@define
class Padder:
    """Pads the values of one program, in place.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        ops: The ops that pad, cut and mask.
        next_channel: Gives the number of the next channel.
    """

    program: Program
    semantics: OpSemantics
    ops: LocalOps
    next_channel: Callable[[], int]
    _rules: dict[int, OpShardingRule | None] = field(factory=dict, init=False)
    """The rules of ops on tensors without padding, by the numbers of the ops, and their reductions."""
    _reductions: dict[int, Reductions] = field(factory=dict, init=False)
    _unpadded_types: dict[int, TensorType] = field(factory=dict, init=False)
    """The types of padded values without their padding, by their numbers."""
    _zeros: dict[int, set[int]] = field(factory=dict, init=False)
    """The dimensions of padded values whose padding is zero."""

    def read(self, op: Op) -> None:
        """Remember the rule of an op, which does not fit once its operands are padded."""
        values = (*op.operands, *op.results)
        if any(padded_type(self.program, value) != value.type for value in values):
            self._rules[op.id] = self.semantics.get_sharding_rule(op)
            self._reductions[op.id] = self.semantics.get_reductions(op)

    def pad(self, op: Op) -> None:
        """Put the padded form of an op in its place, if it has padded operands or results that do not divide.

        Raises:
            UnsupportedError: it has none.
        """
        types = [padded_type(self.program, value) for value in op.results]
        is_padded = any(value.id in self._unpadded_types for value in op.operands)
        if not is_padded and types == [value.type for value in op.results]:
            return
        if self.semantics.has_trait(op, IsTerminator):
            self._cut_operands(op)
        elif op.name in COLLECTIVES:
            self._pad_collective(op)
        elif op.name == CONSTANT or not op.operands:
            self._pad_source(op, types)
        else:
            self._pad_op(op, types)

    def _cut_operands(self, op: Op) -> None:
        """Give a terminator values without padding."""
        for number, value in enumerate(op.operands):
            if value.id in self._unpadded_types:
                op.set_operand(number, self._cut(op, value))

    def _cut(self, op: Op, value: Value) -> Value:
        """Return a value without padding, for an op."""
        shape = self._unpadded_shape(value)
        return self._before(op, value, lambda emit: self.ops.resize(emit, value, shape))

    def _pad_collective(self, op: Op) -> None:
        """Pad the operand of a collective where it cuts a dimension, and cut its result where that became whole."""
        (value,), result = op.operands, op.result
        target = static_shape(padded_type(self.program, result)) or ()
        if op.name in _SLICING:
            shape = [max(sizes) for sizes in zip(target, value.shape, strict=True)]
            value = self._resized(op, value, shape)
        zeros = set(self._zeros.get(value.id, ()))
        (padded,) = self._replaced(op, [value], [_like(result, value.shape)])
        self._zeros[padded.id] = zeros
        if padded.shape != tuple(target):
            cut = self._after(padded, lambda emit: self.ops.resize(emit, padded, target))
            self._zeros[cut.id] = zeros.intersection(self._padded_dims(cut, result))
            padded.replace_all_uses_with(cut, except_op=cut.defining_op)
            self._unpadded_types.pop(padded.id, None)
            padded = cut
        self._register(padded, result)

    def _pad_source(self, op: Op, types: Sequence[Type]) -> None:
        """Make a constant, or another op without operands, of the padded type."""
        (type_,) = types
        if op.name == CONSTANT and isinstance(type_, TensorType):
            result = op.result
            constant = self._before(op, result, lambda emit: self._constant(emit, op, type_))
            result.replace_all_uses_with(constant)
            self._register(constant, result)
            op.erase()
        else:
            self._replaced(op, [], types)

    def _constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value:
        constant = self.ops.constant(emit, op, type_)
        if constant is not None:
            return constant
        return self.ops.resize(emit, self.ops.whole_constant(emit, op), static_shape(type_) or ())

    def _pad_op(self, op: Op, types: Sequence[Type]) -> None:
        """Make an op on masked operands, with padded types and the attributes that belong to them."""
        rule = self._rules.get(op.id)
        if rule is None or self.semantics.get_data_flow(op) is not None:
            raise self._no_padded_form(op, "it has no rule, or hands on values")
        operands = self._masked(op, rule)
        changes = self.ops.padded_attributes(op, [value.shape for value in operands], types)
        if changes is None:
            self._check_factors(op, rule, types)
        self._replaced(op, operands, types, changes)

    def _masked(self, op: Op, rule: OpShardingRule) -> list[Value]:
        """Return the operands of an op with neutral values in the padding along reduced dimensions."""
        reductions = self._reductions[op.id]
        operands = list(op.operands)
        for number, mapping in enumerate(rule.operand_mappings):
            unpadded_type = self._unpadded_types.get(op.operands[number].id)
            for dim, factors in enumerate(mapping if unpadded_type is not None else ()):
                size = unpadded_type.shape[dim] if unpadded_type is not None else None
                reduced = [factor for factor in factors if factor in rule.reduction_factors]
                if not reduced or size is None or size == op.operands[number].shape[dim]:
                    continue
                operands[number] = self._mask(op, operands[number], dim, size, reductions, reduced[0])
        return operands

    def _mask(self, op: Op, value: Value, dim: int, size: int, reductions: Reductions, factor: int) -> Value:
        combiner = reductions.neutral(factor)
        if combiner is Combiner.ADD and dim in self._zeros.get(value.id, ()):
            return value

        def emit_mask(emit: LocalEmitter) -> Value:
            element = value.type.element_type if isinstance(value.type, TensorType) else ""
            fill = None if combiner is None else self.ops.scalar(emit, element, combiner)
            if fill is None:
                raise self._no_padded_form(op, f"it reduces padding, and {reductions.no_neutral}")
            return self.ops.mask(emit, value, dim, size, fill)

        masked = self._before(op, value, emit_mask)
        self._unpadded_types[masked.id] = self._unpadded_types[value.id]
        return masked

    def _check_factors(self, op: Op, rule: OpShardingRule, types: Sequence[Type]) -> None:
        """Check that only the types of an op change: each factor that is padded passes through, or is reduced."""
        sizes: dict[int, set[int]] = {}
        types = [*(value.type for value in op.operands), *types]
        for mapping, type_, value in zip(rule.mappings, types, (*op.operands, *op.results), strict=True):
            unpadded_shape = self._unpadded_shape(value)
            for dim, factors in enumerate(mapping):
                real = [factor for factor in factors if rule.factor_sizes[factor] > 1]
                size = (static_shape(type_) or ())[dim]
                is_whole = size == unpadded_shape[dim]
                if not is_whole and (len(real) != 1 or rule.kind(real[0]) in _MOVING):
                    raise self._no_padded_form(op, f"dimension {dim} of a tensor is padded")
                for factor in real if len(real) == 1 else ():
                    sizes.setdefault(factor, set()).add(size)
        if any(len(sizes_of_factor) > 1 for sizes_of_factor in sizes.values()):
            raise self._no_padded_form(op, "its tensors are not padded alike")

    def _unpadded_shape(self, value: Value) -> Sequence[int]:
        return static_shape(self._unpadded_types.get(value.id, value.type)) or ()

    def _no_padded_form(self, op: Op, reason: str) -> UnsupportedError:
        message = f"the op has no padded form: {reason}"
        hint = "reshard so that dimensions divide, or take Result.local(), which gathers where it has to"
        return UnsupportedError(Diagnostic("no-padded-form", message, op.location, op.name, hint))

    def _resized(self, op: Op, value: Value, shape: Sequence[int]) -> Value:
        """Return an operand of an op in a larger shape, with zeros at the high ends."""
        if tuple(shape) == tuple(value.shape):
            return value
        resized = self._before(op, value, lambda emit: self.ops.resize(emit, value, shape))
        grown = {dim for dim, size in enumerate(shape) if size > value.shape[dim]}
        same = {dim for dim in grown if self._unpadded_shape(value)[dim] == value.shape[dim]}
        self._zeros[resized.id] = same | self._zeros.get(value.id, set())
        self._unpadded_types[resized.id] = self._unpadded_types.get(value.id) or _like(value, value.shape)
        return resized

    def _replaced(
        self, op: Op, operands: Sequence[Value], types: Sequence[Type], changes: Mapping[str, Attribute] | None = None
    ) -> list[Value]:
        """Put an op with other operands and types in the place of an op."""
        regions = op.take_regions()
        block = Block(self.program)
        emit = LocalEmitter(self.program, block, self.next_channel)
        new_op = emit.op_like(op, operands, types, changes or {}, regions)
        block.remove(new_op)
        if op.parent is not None:
            op.parent.insert_before(op, new_op)
        for old, new in zip(op.results, new_op.results, strict=True):
            self._share_sharding(old, new)
            old.replace_all_uses_with(new)
            self._register(new, old)
        op.erase()
        return list(new_op.results)

    def _register(self, value: Value, old: Value) -> None:
        """Remember the type without padding of a value that stands for another one."""
        if isinstance(old.type, TensorType) and value.type != old.type:
            self._unpadded_types[value.id] = old.type

    def _padded_dims(self, value: Value, old: Value) -> set[int]:
        return {dim for dim, size in enumerate(value.shape) if size != old.shape[dim]}

    def _share_sharding(self, source: Value, target: Value) -> None:
        sharding = self.program.sharding(source)
        if sharding is not None:
            self.program.shardings[target.id] = sharding

    def _before(self, op: Op, like: Value, write: Callable[[LocalEmitter], Value]) -> Value:
        """Return a value that new ops before an op make; tensors of its rank have the sharding of another value."""
        return self._written(like, write, lambda new_op: op.parent.insert_before(op, new_op) if op.parent else new_op)

    def _after(self, value: Value, write: Callable[[LocalEmitter], Value]) -> Value:
        """Return a value that new ops behind the op of another value make."""
        anchor = [value.defining_op]

        def insert(new_op: Op) -> Op:
            if anchor[0] is not None and anchor[0].parent is not None:
                anchor[0].parent.insert_after(anchor[0], new_op)
            anchor[0] = new_op
            return new_op

        return self._written(value, write, insert)

    def _written(self, like: Value, write: Callable[[LocalEmitter], Value], insert: Callable[[Op], Op]) -> Value:
        block = Block(self.program)
        result = write(LocalEmitter(self.program, block, self.next_channel))
        for new_op in list(block.ops):
            block.remove(new_op)
            insert(new_op)
            for value in new_op.results:
                if len(value.shape) == len(like.shape) and value.shape:
                    self._share_sharding(like, value)
        return result


def padded_type(program: Program, value: Value) -> Type:
    """Return the type of a value whose sharded dimensions are multiples of their numbers of parts."""
    sharding, type_ = program.sharding(value), value.type
    if sharding is None or sharding.is_fully_replicated or not isinstance(type_, TensorType):
        return type_
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]
    parts = [dim.sharded_size(mesh) for dim in sharding.dim_shardings]
    sizes = zip(sharding.local_shape(type_.shape, mesh), parts, strict=True)
    return _like(value, [None if size is None else size * count for size, count in sizes])


def _like(value: Value, shape: Sequence[int | None]) -> TensorType:
    """Return a type with the element type of a value."""
    type_ = value.type
    if not isinstance(type_, TensorType):
        raise TypeError(f"{type_} is not a tensor")
    return type_ if tuple(shape) == type_.shape else TensorType(tuple(shape), type_.element_type)
