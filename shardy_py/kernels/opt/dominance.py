"""Uses of values that their definitions do not dominate: in blocks, nested regions, and blocks that branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, Region, SSAValue


def undominated_uses(module: builtin.ModuleOp) -> Iterator[tuple[Operation, int]]:
    """Yield the ops that use a value where it is not defined, each with the number of the operand.

    Blocks that cannot be reached use what they like, as in MLIR.

    Args:
        module: The module.
    """
    positions = {op: number for number, op in enumerate(module.walk())}
    dominators: dict[Region, Mapping[Block, Block | None]] = {}
    for op in positions:
        for number, value in enumerate(op.operands):
            if not _dominates(value, op, positions, dominators):
                yield op, number


def _dominates(
    value: SSAValue,
    user: Operation,
    positions: Mapping[Operation, int],
    dominators: dict[Region, Mapping[Block, Block | None]],
) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    assert block is not None
    region = block.parent
    assert region is not None
    around: Operation | None = user
    while around is not None and (around.parent is None or around.parent.parent is not region):
        around = around.parent_op()
    if around is None or around.parent is None:
        return False
    ahead: Block | None = around.parent
    if len(region.blocks) > 1:
        if region not in dominators:
            dominators[region] = immediate_dominators(region)
        if ahead not in dominators[region]:
            return True
    if ahead is block:
        return isinstance(owner, Block) or positions[owner] < positions[around]
    while ahead is not None and ahead is not block:
        ahead = dominators[region][ahead]
    return ahead is block


def immediate_dominators(region: Region) -> dict[Block, Block | None]:
    """Return the closest block that all ways to a block come through, for each block that can be reached.

    The algorithm is that of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".

    Args:
        region: The region; the first block has None.
    """
    ordered = _reverse_post_order(region)
    numbers = {block: number for number, block in enumerate(ordered)}
    before: dict[Block, list[Block]] = {block: [] for block in ordered}
    for block in ordered:
        for target in _targets(block):
            before[target].append(block)
    closest: dict[Block, Block | None] = {ordered[0]: None}
    is_changed = True
    while is_changed:
        is_changed = False
        for block in ordered[1:]:
            known = [item for item in before[block] if item in closest]
            new = known[0]
            for other in known[1:]:
                new = _common(new, other, closest, numbers)
            is_changed |= closest.get(block) is not new
            closest[block] = new
    return closest


def _common(first: Block, second: Block, closest: Mapping[Block, Block | None], numbers: Mapping[Block, int]) -> Block:
    while first is not second:
        later, other = (first, second) if numbers[first] > numbers[second] else (second, first)
        above = closest[later]
        assert above is not None
        first, second = above, other
    return first


def _reverse_post_order(region: Region) -> list[Block]:
    first = region.blocks[0]
    ordered: list[Block] = []
    seen = {first}
    pending = [(first, iter(_targets(first)))]
    while pending:
        block, targets = pending[-1]
        target = next(targets, None)
        if target is None:
            ordered.append(block)
            pending.pop()
        elif target not in seen:
            seen.add(target)
            pending.append((target, iter(_targets(target))))
    return ordered[::-1]


def _targets(block: Block) -> tuple[Block, ...]:
    return () if block.last_op is None else tuple(block.last_op.successors)
