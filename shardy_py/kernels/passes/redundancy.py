"""Values that are computed more than once: common subexpressions, and loop-invariant code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.dialects import builtin, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops, has_no_effects, inner_first, replace
from shardy_py.values import frozen


@frozen
class CommonSubexpressions:
    """Compute equal values once; what reads memory is left as it is."""

    name: str = "cse"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        erase_dead_ops(module.body)
        _unite(module.body, {})


def _unite(region: Region, known: dict[Hashable, Operation]) -> None:
    """Put earlier equal ops in the place of ops of a region.

    Args:
        region: The region; one of several blocks stays as it is.
        known: The ops before it whose results it may use, by what they compute.
    """
    if len(region.blocks) != 1:
        return
    known = dict(known)
    for op in list(region.block.ops):
        for inner in op.regions:
            _unite(inner, {} if op.has_trait(IsolatedFromAbove) else known)
        if not op.results or not has_no_effects(op):
            continue
        same = known.setdefault(_computed(op, {}), op)
        if same is not op:
            replace(op, same.results)


def _computed(op: Operation, local: dict[SSAValue, int]) -> Hashable:
    """Return what an op computes, as a key that is equal for ops that compute the same.

    Args:
        op: The op.
        local: The numbers of the values within the outermost op of the key; those of the op's regions are added.
    """
    operands = tuple(local.get(value, value) for value in op.operands)
    facts = tuple(frozenset(items.items()) if items else None for items in (op.properties, op.attributes))
    regions = tuple(tuple(_block_key(block, local) for block in region.blocks) for region in op.regions)
    return type(op), operands, op.result_types, facts, regions


def _block_key(block: Block, local: dict[SSAValue, int]) -> Hashable:
    """Return what a block of an op computes, as `_computed`."""
    _number(block.args, local)
    keys = []
    for op in block.ops:
        keys.append(_computed(op, local))
        _number(op.results, local)
    return tuple(value.type for value in block.args), tuple(keys)


def _number(values: Sequence[SSAValue], local: dict[SSAValue, int]) -> None:
    for value in values:
        local[value] = len(local)


@frozen
class LoopInvariantCode:
    """Move ops without side effects out of loops in which nothing that they use changes."""

    name: str = "loop-invariant-code-motion"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for loop in inner_first(module, scf.ForOp):
            _hoist(loop)


def _hoist(loop: scf.ForOp) -> None:
    parent = loop.parent
    assert parent is not None
    body = loop.body.block
    for op in list(body.ops):
        if op is not body.last_op and has_no_effects(op) and is_invariant(op, body):
            op.detach()
            parent.insert_op_before(op, loop)


def is_invariant(op: Operation, body: Block) -> bool:
    """Return whether an op, with all in its regions, uses nothing of a loop's body."""
    for inner in op.walk():
        for operand in inner.operands:
            if is_inside(operand.owner, body) and not is_inside(operand.owner, op):
                return False
    return True


def is_inside(owner: Operation | Block, container: Block | Operation) -> bool:
    """Return whether a block or an op lies in another one, or is it."""
    current: Operation | Block | None = owner
    while current is not None:
        if current is container:
            return True
        current = current.parent_op() if isinstance(current, Block) else current.parent
    return False
