"""Tiles as vectors and loops over maps, bodies of all threads as code of one, tensors as values by their elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import arith, builtin, func, scf, tensor, vector
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import Bound, Constant, IndexingMap, Interval, compose, dim, op_maps, symbol
from shardy_py.kernels.dialect.constants import zeros
from shardy_py.kernels.dialect.forall import ForallOp
from shardy_py.kernels.dialect.gpu import DIMENSIONS, BlockIdOp, ThreadIdOp
from shardy_py.kernels.dialect.ops import LoopOp, PureCallOp, YieldOp
from shardy_py.kernels.dialect.tile_ops import IndexedVectorType, InsertOp, MaterializeOp, ReduceOp, ReindexOp
from shardy_py.kernels.elemental.functions import RANGE, range_attribute
from shardy_py.kernels.elemental.index_expressions import apply_map, domain_condition
from shardy_py.kernels.passes.base import (
    add_before,
    erase_dead_ops,
    functions,
    inline_block,
    inner_first,
    insert_before,
    replace,
    retype_values,
    walk_ops,
)

Branch = Callable[[Operation, SSAValue, Operation, SSAValue], SSAValue]
"""A branch before an op: a condition, what is read if it holds, what stands for it else."""


def lower_tiles(module: builtin.ModuleOp) -> None:
    """Turn bodies of all threads into code of one, and tiles into vectors that loops over maps fill and write."""
    for forall in inner_first(module, ForallOp):
        _lower_forall(forall)
    for op in walk_ops(module.body):
        if isinstance(op, MaterializeOp):
            _lower_materialize(op)
        elif isinstance(op, InsertOp):
            _lower_insert(op)
    for function in functions(module):
        if any(isinstance(type_, IndexedVectorType) for op in function.walk() for type_ in _types(op)):
            _retype(function)


def _types(op: Operation) -> Iterator[Attribute]:
    yield from op.result_types
    for region in op.regions:
        for block in region.blocks:
            yield from block.arg_types


def _vector_of(type_: Attribute) -> Attribute:
    return type_.vector_type if isinstance(type_, IndexedVectorType) else type_


def _retype(function: func.FuncOp) -> None:
    type_ = function.function_type
    inputs, outputs = [_vector_of(item) for item in type_.inputs], [_vector_of(item) for item in type_.outputs]
    function.properties["function_type"] = builtin.FunctionType.from_lists(inputs, outputs)
    for op in (function, *walk_ops(function.body)):
        retype_values(op, _vector_of)


def _lower_forall(forall: ForallOp) -> None:
    """Replace the loop by its body, for the thread or block that runs it."""
    indices = []
    for (kind, number), size in zip(forall.mapped, forall.sizes, strict=True):
        class_ = ThreadIdOp if kind == "thread" else BlockIdOp
        op = class_(DIMENSIONS[number], {RANGE: range_attribute(0, size - 1)})
        indices.append(insert_before(forall, op))
    yielded = [forall.yielded_tensor(number) for number in range(len(forall.inits))]
    arguments: dict[SSAValue, SSAValue] = dict(zip(forall.body.block.args, [*indices, *forall.inits], strict=True))
    results = [arguments.get(value, value) for value in yielded]
    terminator = forall.terminator
    terminator.detach()
    terminator.erase()
    forall.body.block.add_op(scf.YieldOp())
    inline_block(forall.body.block, forall, list(arguments.values()))
    replace(forall, results)


def _place(builder: Builder, type_: IndexedVectorType, symbols: list[SSAValue]) -> SSAValue:
    """Return the number of an element among those that a thread holds."""
    ranges = tuple(Bound(Interval(0, size - 1)) for size in type_.thread_shape)
    total = sum(
        (symbol(number) * stride for number, stride in enumerate(op_maps.strides_of(type_.thread_shape))), Constant(0)
    )
    return apply_map(builder, IndexingMap((total,), (), ranges), [], symbols)[0]


def _lower_materialize(op: MaterializeOp) -> None:
    type_ = op.output.type
    begin = insert_before(op, arith.ConstantOp(zeros(type_.vector_type)))
    loop = LoopOp(op.map, list(op.indices), [begin])
    add_before(op, loop)
    builder = Builder(InsertPoint.at_end(loop.body.block))
    call = PureCallOp(op.callee.string_value(), [*op.inputs, *loop.indices], [type_.element_type])
    builder.insert(call)
    inserted = vector.InsertOp(call.outputs[0], loop.carried[0], [_place(builder, type_, list(loop.symbols))])
    builder.insert(inserted)
    builder.insert(YieldOp(inserted.results[0]))
    op.output.replace_all_uses_with(loop.outputs[0])
    loop.outputs[0]._type = type_  # until all values get the type of vectors
    op.detach()
    op.erase()


def _lower_insert(op: InsertOp) -> None:
    type_ = op.source.type
    assert isinstance(type_, IndexedVectorType)
    loop = LoopOp(compose(type_.encoding.data, op.map), list(op.indices), [op.dest])
    add_before(op, loop)
    builder = Builder(InsertPoint.at_end(loop.body.block))
    place = _place(builder, type_, list(loop.symbols))
    element = vector.ExtractOp(op.source, [place], type_.element_type)
    builder.insert(element)
    written = tensor.InsertOp(element.result, loop.carried[0], list(loop.indices))
    builder.insert(written)
    builder.insert(YieldOp(written.result))
    replace(op, list(loop.outputs))


def lower_tensor_values(module: builtin.ModuleOp, branch: Branch) -> None:
    """Compute elements of tensors that are reindexed or reduced where they are read.

    Args:
        module: The module.
        branch: How a read under a condition is written.

    Raises:
        UnsupportedError: such a tensor is used as a whole, and so needs memory that no op names.
    """
    while reads := [op for op in walk_ops(module.body) if isinstance(op, tensor.ExtractOp) and _value_op(op.tensor)]:
        for read in reads:
            source = _value_op(read.tensor)
            if isinstance(source, ReindexOp):
                replace(read, [_reindexed(read, source, branch)])
            elif isinstance(source, ReduceOp):
                replace(read, [_reduced(read, source)])
    erase_dead_ops(module.body)
    left = [op for op in walk_ops(module.body) if isinstance(op, ReindexOp | ReduceOp)]
    if left:
        message = "the tensor that it gives is used as a whole; no op says which memory holds it"
        hint = "read its elements by tensor.extract, and write them to a result of the kernel by tensor.insert"
        raise UnsupportedError(*(Diagnostic("tensor-value", message, op=op.name, hint=hint) for op in left))


def _value_op(value: SSAValue) -> ReindexOp | ReduceOp | None:
    op = value.op if isinstance(value, OpResult) else None
    return op if isinstance(op, ReindexOp | ReduceOp) else None


def _reindexed(read: tensor.ExtractOp, source: ReindexOp, branch: Branch) -> SSAValue:
    builder = Builder(InsertPoint.before(read))
    map_ = source.map
    results = apply_map(builder, IndexingMap(map_.results, map_.dims), list(read.indices))
    access = tensor.ExtractOp(source.source, results, read.result.type)
    if source.default is None:
        return insert_before(read, access)
    return branch(read, domain_condition(builder, map_, list(read.indices)), access, source.default)


def _reduced(read: tensor.ExtractOp, source: ReduceOp) -> SSAValue:
    """Return an element of a reduced tensor by a loop that combines the elements of its row one after the other."""
    assert isinstance(source.inputs[0].type, builtin.TensorType)
    shape = source.inputs[0].type.get_shape()
    remaining_dims = [number for number in range(len(shape)) if number not in source.reduced]
    index = [
        dim(remaining_dims.index(number)) if number in remaining_dims else symbol(sorted(source.reduced).index(number))
        for number in range(len(shape))
    ]
    dims = tuple(Bound(Interval(0, shape[number] - 1)) for number in remaining_dims)
    ranges = tuple(Bound(Interval(0, shape[number] - 1)) for number in sorted(source.reduced))
    loop = LoopOp(IndexingMap(tuple(index), dims, ranges), list(read.indices), list(source.inits))
    add_before(read, loop)
    builder = Builder(InsertPoint.at_end(loop.body.block))
    elements = []
    for value in source.inputs:
        assert isinstance(value.type, builtin.TensorType)
        access = tensor.ExtractOp(value, list(loop.indices), value.type.element_type)
        builder.insert(access)
        elements.append(access.result)
    types = [value.type for value in source.inits]
    call = PureCallOp(source.combiner.string_value(), [*loop.carried, *elements], types)
    builder.insert(call)
    builder.insert(YieldOp(*call.outputs))
    assert isinstance(read.tensor, OpResult)
    return loop.outputs[read.tensor.index]
