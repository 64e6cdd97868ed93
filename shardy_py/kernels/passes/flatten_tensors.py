"""Tensors of one dimension: every access by its place in memory."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, builtin, func, tensor, vector
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.indexing import Bound, Interval
from shardy_py.indexing.expressions import Binary, Constant, Expression
from shardy_py.kernels.dialect.constants import read_vector
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp
from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.dialect.types import memory_strides
from shardy_py.kernels.passes.apply_indexing import AffineValue, fold_apply, place_map, single_map
from shardy_py.kernels.passes.base import (
    KernelContext,
    erase_dead_ops,
    functions,
    insert_before,
    replace,
    retype_values,
    walk_ops,
)
from shardy_py.kernels.passes.index_ranges import IndexRanges
from shardy_py.values import frozen

_ACCESS = (tensor.ExtractOp, tensor.InsertOp, AtomicRMWOp, vector.TransferReadOp)


@frozen
class FlattenTensors:
    """Give every tensor one dimension, in the order of memory."""

    name: str = "flatten-tensors"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        ranges = IndexRanges()
        for op in list(walk_ops(module.body)):
            if isinstance(op, _ACCESS):
                _flatten_access(op, ranges)
            elif isinstance(op, arith.ConstantOp) and isinstance(op.value, builtin.DenseIntOrFPElementsAttr):
                _flatten_constant(op)
        for function in functions(module):
            _flatten_types(function)
        for op in walk_ops(module.body):
            if isinstance(op, ApplyIndexingOp):
                fold_apply(op)
        erase_dead_ops(module.body)


def flat(type_: Attribute) -> Attribute:
    """Return a type with all dimensions of a tensor as one; scalars and other types stay."""
    if isinstance(type_, builtin.TensorType) and len(type_.get_shape()) > 1:
        return builtin.TensorType(type_.element_type, [prod(type_.get_shape())])
    return type_


def _target(op: Operation) -> SSAValue:
    """Return the tensor that an op accesses."""
    if isinstance(op, tensor.ExtractOp):
        return op.tensor
    if isinstance(op, vector.TransferReadOp):
        return op.source
    assert isinstance(op, tensor.InsertOp | AtomicRMWOp)
    return op.dest


def _flatten_access(op: Operation, ranges: IndexRanges) -> None:
    assert isinstance(op, _ACCESS)
    target = _target(op)
    assert isinstance(target.type, builtin.TensorType)
    shape = target.type.get_shape()
    if len(shape) < 2:
        return
    indices = list(op.indices)
    affine = AffineValue()
    total: Expression = Constant(0)
    for index, size, stride in zip(indices, shape, memory_strides(target.type), strict=True):
        # The only index of a dimension of size 1 is zero; a sum of as many terms as there are such is deep.
        if size == 1:
            continue
        known = ranges.of(index) or Interval(0, size - 1)
        expression = affine.of(index, Bound(known.meet(Interval(0, size - 1))))
        total = Binary("+", total, Binary("*", expression, Constant(stride)))
    map_, operands = single_map(total, affine)
    place = place_map(op, map_, operands)
    if isinstance(op, tensor.ExtractOp):
        op.operands = [target, place]
    elif isinstance(op, tensor.InsertOp):
        op.operands = [op.scalar, target, place]
    elif isinstance(op, vector.TransferReadOp):
        # Vectors lie along the last dimension; what they are read of is row-major.
        assert isinstance(op.result.type, builtin.VectorType)
        replace(op, [insert_before(op, read_vector(target, [place], op.result.type, op.padding))])
    else:
        op.operands = [target, place]


def _flatten_constant(op: arith.ConstantOp) -> None:
    value = op.value
    assert isinstance(value, builtin.DenseIntOrFPElementsAttr)
    type_ = flat(value.type)
    if type_ != value.type:
        assert isinstance(type_, builtin.TensorType)
        op.properties["value"] = builtin.DenseIntOrFPElementsAttr(type_, value.data)


def _flatten_types(function: func.FuncOp) -> None:
    """Change the types of all values of a function."""
    type_ = function.function_type
    inputs, outputs = [flat(item) for item in type_.inputs], [flat(item) for item in type_.outputs]
    function.properties["function_type"] = builtin.FunctionType.from_lists(inputs, outputs)
    for op in (function, *walk_ops(function.body)):
        retype_values(op, flat)
