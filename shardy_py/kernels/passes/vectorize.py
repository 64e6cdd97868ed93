"""Loads, stores and atomic additions of several neighbours at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import arith, builtin, scf, tensor, vector
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from shardy_py.indexing import Constant, Expression, IndexingMap, Variable, VariableKind, simplify
from shardy_py.indexing.canonical import canonicalize, linear
from shardy_py.indexing.expressions import Binary, rewritten, variables_of
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.dialect.constants import VectorOf, read_vector, write_vector, zero, zeros
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp
from shardy_py.kernels.dialect.ops import ApplyIndexingOp, YieldOp
from shardy_py.kernels.dialect.types import INDEX, index_attribute
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.apply_indexing import place_map
from shardy_py.kernels.passes.base import KernelContext, constant_value, insert_before, replace, walk_ops
from shardy_py.kernels.passes.redundancy import is_inside
from shardy_py.values import frozen

MAX_BITS = 256
MAX_WIDTHS = (2, 4, 8, 16, 32)


@frozen
class VectorizeLoadsStores:
    """Read before a loop, and write after it, what its steps read and write one by one in neighbouring places."""

    name: str = "vectorize-loads-stores"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in list(walk_ops(module.body)):
            if isinstance(op, tensor.ExtractOp) and op.parent is not None:
                _vectorize_load(op)
        for op in list(walk_ops(module.body)):
            if isinstance(op, tensor.InsertOp) and op.parent is not None:
                _vectorize_store(op, MAX_WIDTHS)
            elif isinstance(op, AtomicRMWOp) and is_vector_addition(op, context.device):
                _vectorize_store(op, WIDTHS)


def _loop_around(op: Operation) -> scf.ForOp | None:
    """Return the loop that an op is directly in, if it runs a power of two times from zero."""
    loop = op.parent_op()
    if not isinstance(loop, scf.ForOp) or constant_value(loop.lb) != 0 or constant_value(loop.step) != 1:
        return None
    size = constant_value(loop.ub)
    return loop if size is not None and 2 <= size <= 32 and size & (size - 1) == 0 else None


def vector_type(type_: builtin.TensorType[Attribute], size: int) -> VectorOf | None:
    """Return the type of a vector of a tensor's elements, or None where that does not fit."""
    element = type_.element_type
    if isinstance(element, builtin.ComplexType | builtin.IndexType):
        return None
    bits = bits_of(str(element)) * size
    if bits > MAX_BITS or bits % 8 or type_.get_shape()[-1] % size:
        return None
    return builtin.VectorType(element, [size])


def _first_place(index: SSAValue, loop: scf.ForOp, size: int) -> SSAValue | None:
    """Return the index of a loop's first step if its steps access consecutive elements, aligned to their number."""
    step = loop.body.block.args[0]
    if index is step:
        return insert_before(loop, arith.ConstantOp(index_attribute(0)))
    op = index.owner
    if not isinstance(op, ApplyIndexingOp) or len(op.map.results) != 1:
        return None
    map_ = op.map
    variables = list(map_.variables)
    step_variables = [variable for variable, value in zip(variables, op.arguments, strict=True) if value is step]
    others = [value for value in op.arguments if value is not step]
    if len(step_variables) != 1 or any(is_inside(value.owner, loop) for value in others):
        return None
    (variable,) = step_variables
    sum_ = linear(canonicalize(map_.results[0]))
    if sum_.terms.get(variable) != 1 or any(variable in variables_of(term) for term in sum_.terms if term != variable):
        return None
    rest = [(term, factor) for term, factor in sum_.terms.items() if term != variable]
    if sum_.offset % size or any(gcd(factor * divisor(term), size) % size for term, factor in rest):
        return None
    values: dict[Variable, Expression] = {variable: Constant(0)}
    expression = canonicalize(rewritten(map_.results[0], values))
    other_arguments = [(item, value) for item, value in zip(variables, op.arguments, strict=True) if item != variable]
    dims = tuple(map_.variables[item] for item, _ in other_arguments)
    numbers: dict[Variable, Expression] = {
        item: Variable(VariableKind.DIM, place) for place, (item, _) in enumerate(other_arguments)
    }
    short = simplify(IndexingMap((rewritten(expression, numbers),), dims))
    return place_map(loop, short, [value for _, value in other_arguments])


def divisor(expression: Expression) -> int:
    """Return a number that divides all values of an expression: over sums their divisor, over products the product."""
    if isinstance(expression, Constant):
        return abs(expression.value)
    if not isinstance(expression, Binary):
        return 1
    left, right = divisor(expression.left), divisor(expression.right)
    if expression.op in ("+", "mod", "min", "max"):
        return gcd(left, right)
    return left * right if expression.op == "*" else 1


def _is_written_in(target: SSAValue, loop: scf.ForOp) -> bool:
    """Return whether a tensor changes while a loop runs."""
    return (isinstance(target, BlockArgument) and target.owner is loop.body.block) or is_inside(target.owner, loop)


def _vectorize_load(op: tensor.ExtractOp) -> None:
    loop = _loop_around(op)
    if loop is None or len(op.indices) != 1 or _is_written_in(op.tensor, loop):
        return
    size = constant_value(loop.ub)
    assert size is not None
    assert isinstance(op.tensor.type, builtin.TensorType)
    type_ = vector_type(op.tensor.type, size)
    if type_ is None:
        return
    place = _first_place(op.indices[0], loop, size)
    if place is None:
        return
    padding = insert_before(loop, arith.ConstantOp(zero(type_.element_type)))
    loaded = insert_before(loop, read_vector(op.tensor, [place], type_, padding))
    element = insert_before(op, vector.ExtractOp(loaded, [loop.body.block.args[0]], type_.element_type))
    op.result.replace_all_uses_with(element)
    op.detach()
    op.erase()


def _vectorize_store(op: tensor.InsertOp | AtomicRMWOp, widths: Sequence[int]) -> None:
    loop = _loop_around(op)
    if loop is None or len(op.indices) != 1 or not is_carried(op, loop.body.block):
        return
    target = op.dest
    assert isinstance(target, BlockArgument)
    size = constant_value(loop.ub)
    if size not in widths:
        return
    assert size is not None
    assert isinstance(target.type, builtin.TensorType)
    type_ = vector_type(target.type, size)
    if type_ is None:
        return
    place = _first_place(op.indices[0], loop, size)
    if place is None:
        return
    _carry_vector(loop, op, target.index - 1, type_, place)


def _carry_vector(
    loop: scf.ForOp, op: tensor.InsertOp | AtomicRMWOp, number: int, type_: VectorOf, place: SSAValue
) -> None:
    """Make a loop carry a vector instead of a tensor, and write the vector after the loop."""
    init = insert_before(loop, arith.ConstantOp(zeros(type_), type_))
    tensor_init = loop.iter_args[number]
    body = loop.body.block
    inits = [init if place_ == number else value for place_, value in enumerate(loop.iter_args)]
    block = Block(arg_types=[INDEX, *(value.type for value in inits)])
    vector_argument = block.args[number + 1]
    scalar = added_value(op) if isinstance(op, AtomicRMWOp) else op.scalar
    inserted = vector.InsertOp(scalar, vector_argument, [body.args[0]])
    insert_before(op, inserted)
    op.results[0].replace_all_uses_with(inserted.results[0])
    op.detach()
    op.erase()
    for argument, value in zip(body.args, block.args, strict=True):
        argument.replace_all_uses_with(value)
    for inner in list(body.ops):
        inner.detach()
        block.add_op(inner)
    vector_loop = scf.ForOp(loop.lb, loop.ub, loop.step, inits, Region(block))
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(vector_loop, loop)
    if isinstance(op, AtomicRMWOp):
        written: Operation = vector_update(vector_loop.results[number], tensor_init, place)
    else:
        written = write_vector(vector_loop.results[number], tensor_init, [place])
    parent.insert_op_before(written, loop)
    results = [written.results[0] if place_ == number else result for place_, result in enumerate(vector_loop.results)]
    replace(loop, results)


MIN_CAPABILITY = 90
WIDTHS = (2, 4)


def is_vector_addition(op: AtomicRMWOp, device: DeviceSpec) -> bool:
    """Return whether an update is an addition of ``f32`` that the device can do for several elements at once."""
    body = op.body.block
    addition = body.first_op
    if (
        device.capability < MIN_CAPABILITY
        or not isinstance(addition, arith.AddfOp)
        or addition.next_op is not body.last_op
    ):
        return False
    return isinstance(addition.result.type, builtin.Float32Type) and body.args[0] in addition.operands


def added_value(op: AtomicRMWOp) -> SSAValue:
    """Return the operand that the only addition of a body adds to the element."""
    addition, current = op.body.block.first_op, op.body.block.args[0]
    assert isinstance(addition, arith.AddfOp)
    return addition.rhs if addition.lhs is current else addition.lhs


def is_carried(op: tensor.InsertOp | AtomicRMWOp, body: Block) -> bool:
    """Return whether a loop only carries the tensor of an access from step to step."""
    target, terminator = op.dest, body.last_op
    if not isinstance(target, BlockArgument) or target.owner is not body or terminator is None:
        return False
    (result,) = op.results
    is_alone = target.uses.get_length() == 1 and result.uses.get_length() == 1
    return is_alone and terminator.operands[target.index - 1] is result


def vector_update(values: SSAValue, target: SSAValue, place: SSAValue) -> AtomicRMWOp:
    """Return an op that adds a vector to neighbours."""
    body = Block(arg_types=[values.type])
    addition = arith.AddfOp(body.args[0], values)
    body.add_ops([addition, YieldOp(addition.result)])
    return AtomicRMWOp(target, [place], Region(body))
