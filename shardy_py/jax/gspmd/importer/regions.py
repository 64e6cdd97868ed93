"""Regions of ops on shards, between ``SPMDFullToShardShape`` and ``SPMDShardToFullShape``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.jax.gspmd.importer.annotations import FULL_TO_SHARD, SHARD_TO_FULL, target_of
from shardy_py.values import define

_HINT = "lower the program with the Shardy partitioner, which keeps manual computations as ops with a region"


@define
class ShardRegion:
    """Ops of one block that become a manual computation; all in program order.

    Args:
        entries: The custom calls that cut values into shards.
        body: The ops in between.
        exits: The custom calls that put shards together.
    """

    entries: list[Op] = field(factory=list)
    body: list[Op] = field(factory=list)
    exits: list[Op] = field(factory=list)

    @property
    def last(self) -> Op:
        """The op behind which the manual computation stands."""
        block_order = {op: number for number, op in enumerate(_block_of(self).ops)}
        return max((*self.entries, *self.body) or self.exits[:1], key=block_order.__getitem__)


def find_regions(block: Block) -> list[ShardRegion]:
    """Return the connected groups of ops on shards in a block.

    Raises:
        UnsupportedError: shards leave the group otherwise than through a custom call.
    """
    marks = [op for op in block.ops if target_of(op) in (FULL_TO_SHARD, SHARD_TO_FULL)]
    group_of: dict[Op, int] = {}
    for number, mark in enumerate(marks):
        for op in _connected(mark, block):
            other = group_of.get(op, number)
            if other != number:
                group_of = {key: number if value == other else value for key, value in group_of.items()}
            group_of[op] = number
    regions: dict[int, ShardRegion] = {}
    for op in block.ops:
        if op in group_of:
            _enter(op, regions.setdefault(group_of[op], ShardRegion()))
    return list(regions.values())


def _enter(op: Op, region: ShardRegion) -> None:
    kinds = {FULL_TO_SHARD: region.entries, SHARD_TO_FULL: region.exits}
    kinds.get(target_of(op) or "", region.body).append(op)


def _connected(mark: Op, block: Block) -> Iterator[Op]:
    """Yield the ops on shards that a custom call gives to or gets from, and the call itself."""
    yield mark
    is_entry = target_of(mark) == FULL_TO_SHARD
    pending: list[Op] = list(_users(mark, block)) if is_entry else list(_producers(mark, block))
    seen: set[Op] = {mark}
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        yield op
        if target_of(op) not in (FULL_TO_SHARD, SHARD_TO_FULL):
            pending += _users(op, block) if is_entry else _producers(op, block)


def _users(op: Op, block: Block) -> Iterator[Op]:
    """Yield the ops of a block that use the results of an op, themselves or in their regions."""
    for value in op.results:
        for user, _ in value.uses:
            ancestor = within(user, block)
            if ancestor is None or ancestor is block.terminator:
                message = "a shard leaves its block without SPMDShardToFullShape"
                raise UnsupportedError(Diagnostic("manual-value-escapes", message, op.location, op.name, _HINT))
            yield ancestor


def _producers(op: Op, block: Block) -> Iterator[Op]:
    """Yield the ops of a block whose results one uses, be it inside."""
    for value in used_values(op):
        owner = value.owner
        if isinstance(owner, Op) and owner.parent is block:
            yield owner
        elif owner is block:
            raise whole_value_used(op)


def whole_value_used(op: Op) -> UnsupportedError:
    """Return the error that a value which is whole stands among shards."""
    message = "a value that is whole is used as a shard, without SPMDFullToShardShape"
    return UnsupportedError(Diagnostic("manual-value-missing", message, op.location, op.name, _HINT))


def within(op: Op, block: Block) -> Op | None:
    """Return the op of a block that is or contains another, or None."""
    ancestor: Op | None = op
    while ancestor is not None and ancestor.parent is not block:
        ancestor = ancestor.parent_op
    return ancestor


def used_values(op: Op) -> list[Value]:
    """Return the values used by an op and by the ops inside."""
    return [value for inner in op.walk() for value in inner.operands]


def check_borders(region: ShardRegion, outside: Sequence[Op]) -> None:
    """Check that shards stay in their region, and that no result is used before the region ends.

    Args:
        region: The region.
        outside: Ops of the body that are copied, not moved; they may have other users.

    Raises:
        UnsupportedError: they do not.
    """
    block = _block_of(region)
    members = {*region.entries, *region.body, *region.exits}
    order = {op: number for number, op in enumerate(block.ops)}
    for op in (*region.entries, *region.body):
        if op not in outside and not members.issuperset(_users(op, block)):
            message = "a shard is used together with values that are whole"
            raise UnsupportedError(Diagnostic("manual-value-escapes", message, op.location, op.name, _HINT))
    end = order[region.last]
    for op in region.exits:
        for user, _ in op.results[0].uses:
            ancestor = within(user, block)
            if ancestor is not None and ancestor not in region.exits and order[ancestor] < end:
                message = "a result of shards is used before all of them are computed"
                raise UnsupportedError(Diagnostic("manual-order", message, op.location, op.name, _HINT))


def _block_of(region: ShardRegion) -> Block:
    block = (region.entries or region.exits)[0].parent
    assert block is not None
    return block
