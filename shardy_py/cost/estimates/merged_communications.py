"""Small all-reduces that a compiler combines into one.

As in XLA's all_reduce_combiner.cc: those of one kind over the same groups, of which none needs the result of another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import prod

from attrs import evolve

from shardy_py.cost.estimates.graph import Node, RuleOf, Section, Tensor, read_by
from shardy_py.cost.estimates.halos import Halo
from shardy_py.cost.estimates.op_kinds import OpKinds
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.values import Transfer
from shardy_py.ir.graph.op_names import ALL_REDUCE, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import Contraction
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import define, frozen


@define(eq=False)
class Priced:
    """A transfer with its node.

    Args:
        node: The node.
        transfer: The transfer.
        group: What all-reduces that become one have in common.
        halo: The halo of a window that it brings, or None.
    """

    node: Node
    transfer: Transfer
    group: object = None
    halo: Halo | None = None


def combine(priced: Iterable[Priced], most: float, price: Callable[[Priced, int], float | None]) -> list[list[Priced]]:
    """Combine all-reduces, in place; return those that become one.

    Args:
        priced: The transfers of one section.
        most: The largest number of bytes of those that become one.
        price: Returns the time of an all-reduce of more bytes.
    """
    reduces = [item for item in priced if item.transfer.kind == "all_reduce" and item.transfer.bytes]
    if most <= 0 or len(reduces) < 2:
        return []
    parts = [part for part in _groups(reduces, most) if len(part) > 1]
    for part in parts:
        _make_one(part, price)
    return parts


def group_key(node: Node, axes: str, devices: int) -> object:
    """Return what all-reduces have in common that become one: types, groups and the reduction."""
    type_ = node.op.operands[0].type
    element_type = type_.element_type if isinstance(type_, TensorType) else ""
    return element_type, axes, devices, str(node.op.attributes.get("reduction_op"))


def _groups(reduces: list[Priced], most: float) -> Iterator[list[Priced]]:
    """Yield all-reduces to combine: the first that is left and those alike behind it, up to one that depends on them.

    As in XLA's collective_combiner_utils.h::CombineInstructionsByKey.
    """
    makers = [_makers(node) for node in reduces[0].node.section.nodes]
    bits = {item.node.position: 1 << number for number, item in enumerate(reduces)}
    needed = _needed_reduces(makers, bits)
    remaining = reduces
    if any(needed.values()):
        places = {position: place for place, position in enumerate(_post_order(reduces[0].node.section, makers))}
        remaining = sorted(reduces, key=lambda item: places[item.node.position])
    while remaining:
        part, part_bits, size = [remaining[0]], bits[remaining[0].node.position], remaining[0].transfer.bytes
        key = (remaining[0].group, remaining[0].node.depth)
        for item in remaining[1:]:
            if (item.group, item.node.depth) != key:
                continue
            if size + item.transfer.bytes > most or needed[item.node.position] & part_bits:
                break
            part.append(item)
            part_bits |= bits[item.node.position]
            size += item.transfer.bytes
        yield part
        remaining = [item for item in remaining if not bits[item.node.position] & part_bits]
        if len(part) > 1:
            # What depends on one of them depends on all that any of them does.
            combined_bits = part_bits
            for item in part:
                combined_bits |= needed[item.node.position]
            for item in remaining:
                if needed[item.node.position] & part_bits:
                    needed[item.node.position] |= combined_bits


def _makers(node: Node) -> list[int]:
    """Return the positions of the nodes of its section that make what a node and its regions read."""
    section, end = node.section, node.position
    return [
        tensor.maker.position
        for tensor in read_by(node)
        if tensor.maker is not None and tensor.maker.position < end and tensor.maker.section is section
    ]


def _needed_reduces(makers: Sequence[Sequence[int]], bits: Mapping[int, int]) -> dict[int, int]:
    """Return, by the position of an all-reduce, the bits of the all-reduces that it depends on."""
    above: list[int] = []
    for inputs in makers:
        needed_bits = 0
        for maker in inputs:
            needed_bits |= above[maker] | bits.get(maker, 0)
        above.append(needed_bits)
    return {position: above[position] for position in bits}


def _post_order(section: Section, makers: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the positions of the nodes of a section, what results need first of all, operand by operand."""
    is_seen, is_done = bytearray(len(makers)), bytearray(len(makers))
    ends = [item.maker.position for item in section.results if item.maker is not None and item.maker.section is section]
    for end in (*ends, *range(len(makers))):
        if is_seen[end]:
            continue
        waiting = [end]
        while waiting:
            position = waiting[-1]
            if not is_seen[position]:
                is_seen[position] = True
                waiting += [maker for maker in reversed(makers[position]) if not is_seen[maker]]
                continue
            waiting.pop()
            if not is_done[position]:
                is_done[position] = True
                yield position


def _make_one(members: list[Priced], price: Callable[[Priced, int], float | None]) -> None:
    total = sum(item.transfer.bytes for item in members)
    seconds = price(members[0], total)
    first = members[0].transfer.op_id
    for item in members:
        share = None if seconds is None else seconds * item.transfer.bytes / total
        combined_with = first if item is not members[0] else -1
        item.transfer = evolve(item.transfer, seconds=share, combined_with=combined_with, combined=len(members))


@frozen(eq=False)
class Sharing:
    """Finds communications that are the same.

    Args:
        kinds: The kinds of ops.
        rule_of: Gives the rule of an op.
        sizes: Measures values.
    """

    kinds: OpKinds
    rule_of: RuleOf
    sizes: LocalSizes

    def is_shared(self, op: Op, inputs: Sequence[Tensor], equal: Node) -> bool:
        """Return whether a communication is the same as an equal one. Sums never are: each op has its own.

        Args:
            op: The communication.
            inputs: Its operands.
            equal: The equal one.
        """
        if op.name in (ALL_REDUCE, REDUCE_SCATTER):
            return False
        if any(one is not other for one, other in zip(inputs, equal.inputs, strict=True)):
            return False
        return self._is_in_groups(op) == self._is_in_groups(equal.op)

    def _is_in_groups(self, op: Op) -> bool:
        """Return whether a tensor is moved for a product, within the groups of devices into which that is divided."""
        (value,) = op.results
        users = (user for user in value.users if Contraction in self.kinds.of(user).traits and len(user.operands) == 2)
        return any(self._groups_follow(user, user.operands.index(value)) for user in users)

    def _groups_follow(self, product: Op, number: int) -> bool:
        """Return whether the groups of a product are those of its batch, or of the other dimensions of an operand.

        If the result is divided like both operands, the groups follow the one that leaves less of the other to copy.
        """
        rule = self.rule_of(product)
        if rule is None or len(product.results) != 1:
            return False
        operands = [self._before(value) for value in product.operands]
        batch = {factor for factor in range(rule.num_factors) if rule.is_batching(factor)}
        if self._parts(rule, 2, product.results[0], batch) > 1:
            return True
        parts, follows = [0, 0], [False, False]
        for operand, value in enumerate(operands):
            factors = {factor for dim in rule.operand_mappings[operand] for factor in dim}
            factors -= batch | set(rule.reduction_factors)
            parts[operand] = self._parts(rule, operand, value, factors)
            follows[operand] = 1 < parts[operand] == self._parts(rule, 2, product.results[0], factors)
        if all(follows):
            first, second = (self.sizes.bytes(value) for value in operands)
            return number == (0 if parts[0] * second < parts[1] * first else 1)
        return follows[number]

    def _before(self, value: Value) -> Value:
        """Return what a value is before it is moved."""
        op = value.defining_op
        is_moved = op is not None and self.kinds.of(op).is_collective and op.name not in (ALL_REDUCE, REDUCE_SCATTER)
        return op.operands[0] if op is not None and is_moved else value

    def _parts(self, rule: OpShardingRule, number: int, value: Value, factors: Collection[int]) -> int:
        """Return the number of parts into which a tensor of an op is divided along some factors."""
        sharding = self.sizes.sharding(value)
        mesh = None if sharding is None else self.sizes.mesh(sharding)
        if sharding is None or mesh is None:
            return 1
        dims = zip((*rule.operand_mappings, *rule.result_mappings)[number], sharding.dim_shardings, strict=True)
        return prod(
            axes_size(dim.axes, mesh)
            for dim_factors, dim in dims
            if dim_factors and factors and set(dim_factors) <= set(factors)
        )
