"""Canonicalization: index maps folded, loops without what they do not need, dead ops gone."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, scf
from xdsl.ir import Block, Region, SSAValue

from shardy_py.indexing import Constant, Expression, IndexingMap, Variable, VariableKind, simplify, without_variables
from shardy_py.kernels.dialect.ops import ApplyIndexingOp, LoopOp
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.passes.apply_indexing import fold_apply
from shardy_py.kernels.passes.base import (
    KernelContext,
    constant_value,
    erase_dead_ops,
    index_before,
    inline_block,
    inner_first,
    replace,
    walk_ops,
)
from shardy_py.kernels.passes.index_ranges import IndexRanges, fold_branches
from shardy_py.values import frozen


@frozen
class Canonicalize:
    """Fold maps, branches and loops of one trip, shorten loops, erase what nothing uses."""

    name: str = "canonicalize"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for loop in inner_first(module, LoopOp):
            shorten_loop(loop)
        fold_branches(module)
        for trips in inner_first(module, scf.ForOp):
            _fold_single_trip(trips)
        for op in walk_ops(module.body):
            if isinstance(op, ApplyIndexingOp):
                fold_apply(op)
            elif isinstance(op, arith.AddiOp):
                _fold_sum(op)
        erase_dead_ops(module.body)


def _fold_single_trip(loop: scf.ForOp) -> None:
    """Put the body of a loop that runs just once in its place."""
    lower, upper, step = (constant_value(value) for value in (loop.lb, loop.ub, loop.step))
    if lower is not None and upper is not None and step is not None and lower < upper <= lower + step:
        replace(loop, inline_block(loop.body.block, loop, [loop.lb, *loop.iter_args]))


def _fold_sum(op: arith.AddiOp) -> None:
    """Put the other summand in the place of a sum with zero."""
    for zero, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if constant_value(zero) == 0:
            replace(op, [other])
            return


def shorten_loop(loop: LoopOp) -> LoopOp:
    """Simplify the map of a loop, and drop the dimensions and symbols that are unused or have a single value.

    A dimension whose bounds are narrower than what the loop is given stays: the bounds say for which values it runs.
    """
    map_ = simplify(loop.map)
    if map_.is_known_empty or map_.is_undefined:
        return loop
    dropped: dict[Variable, Expression] = {}
    ranges = IndexRanges()
    for variable, bound in map_.variables.items():
        is_needed = variable in map_.used
        if variable.kind is VariableKind.DIM:
            known = ranges.of(loop.dims[variable.number])
            is_sure = known is not None and bound.interval.contains(known)
            if is_sure and (bound.interval.is_point or not is_needed):
                dropped[variable] = Constant(bound.interval.lower)
        elif bound.interval.is_point:
            dropped[variable] = Constant(bound.interval.lower)
    short = simplify(without_variables(map_, dropped, dropped)) if dropped else map_
    if short == loop.map:
        return loop
    dims = [operand for number, operand in enumerate(loop.dims) if Variable(VariableKind.DIM, number) not in dropped]
    symbols = [
        Variable(kind, number)
        for kind in (VariableKind.RANGE, VariableKind.RUNTIME)
        for number in range(len(map_.bounds(kind)))
    ]
    return _rebuilt(loop, short, dims, symbols, dropped)


def _rebuilt(
    loop: LoopOp, map_: IndexingMap, dims: list[SSAValue], symbols: list[Variable], dropped: dict[Variable, Expression]
) -> LoopOp:
    """Replace a loop by one with another map, without the dropped variables, and return it."""
    remaining = [variable for variable in symbols if variable not in dropped]
    types = [INDEX] * (len(remaining) + len(map_.results))
    block = Block(arg_types=[*types, *(value.type for value in loop.inits)])
    old = loop.body.block
    following = iter(block.args)
    for variable, argument in zip(symbols, old.args, strict=False):
        if variable in dropped:
            value = dropped[variable]
            assert isinstance(value, Constant)
            argument.replace_all_uses_with(index_before(loop, value.value))
        else:
            argument.replace_all_uses_with(next(following))
    for argument in old.args[len(symbols) :]:
        argument.replace_all_uses_with(next(following))
    for op in list(old.ops):
        op.detach()
        block.add_op(op)
    shortened = LoopOp(map_, dims, list(loop.inits), Region(block))
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(shortened, loop)
    replace(loop, list(shortened.outputs))
    return shortened
