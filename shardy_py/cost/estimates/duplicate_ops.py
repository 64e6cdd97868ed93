"""Keys of ops that a compiler computes once where their operands are the same.

As in XLA's hlo_cse.cc: ops of one name with equal attributes and regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field

from shardy_py.cost.estimates.graph import Node, Section, Tensor, makers_above, walk
from shardy_py.ir.graph.attributes import shared_parts
from shardy_py.ir.graph.op_names import ALL_REDUCE
from shardy_py.ir.graph.program import Op, Region
from shardy_py.ir.interfaces.costs import Part
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import define


@define(eq=False)
class OpKeys:
    """Keys of ops by their names, attributes and regions; sets of attributes that ops share are looked at once."""

    _known: dict[tuple[int, ...] | None, tuple[int, object]] = field(factory=dict, init=False)
    _numbers: dict[object, int] = field(factory=dict, init=False)

    def key(self, op: Op) -> object | None:
        """Return the same key for equal ops; None where an op is equal to no other one."""
        attributes = self._attributes(op)
        if attributes is None:
            return None
        if not op.regions:
            return op.name, attributes
        return op.name, attributes, *[self._region(region) or op.id for region in op.regions]

    def _attributes(self, op: Op) -> int | None:
        """Return a number of the attributes of an op, the same for equal ones; None where they cannot be compared."""
        parts = shared_parts(op.attributes)
        same = None if parts is None else tuple(map(identity, parts))
        entry = self._known.get(same)
        if entry is not None:
            return entry[0]
        items: object = tuple(sorted(op.attributes.items(), key=lambda item: item[0]))
        try:
            number = self._numbers.setdefault(items, len(self._numbers))
        except TypeError:
            if same is None:
                return None
            # Some attributes are dictionaries; only the same objects count as equal then.
            number = self._numbers.setdefault(("same", same), len(self._numbers))
        if same is not None:
            # What the identities are of has to stay alive.
            self._known[same] = number, parts
        return number

    def _region(self, region: Region) -> object | None:
        """Return the key of a region of one block that uses nothing from outside of it; None for others."""
        if len(region.blocks) != 1:
            return None
        (block,) = region.blocks
        numbers = {value.id: number for number, value in enumerate(block.arguments)}
        key: list[object] = [tuple([argument.type for argument in block.arguments])]
        for op in block.ops:
            attributes = self._attributes(op)
            if op.regions or attributes is None or any(value.id not in numbers for value in op.operands):
                return None
            numbers |= {value.id: len(numbers) + number for number, value in enumerate(op.results)}
            operands = tuple([numbers[value.id] for value in op.operands])
            key.append((op.name, attributes, operands, tuple([value.type for value in op.results])))
        return tuple(key)


def axes_key(sharding: TensorSharding | None) -> tuple[object, ...]:
    """Return what a sharding says of a finished program, where it matters no more which dimensions are open."""
    if sharding is None:
        return ()
    return sharding.mesh, sharding.unreduced_axes, *(dim.axes for dim in sharding.dim_shardings)


def take_parts(main: Section) -> None:
    """Replace ops that compute one result of an op with several by that result; the op then runs where they did.

    An op whose result is all-reduced stays: a reduction of parts is not the same.
    """
    replaced: dict[int, Tensor] = {}
    for section in _sections(main):
        replaced |= _replace_results(section)
    if not replaced:
        return
    for section in _sections(main):
        section.results = [replaced.get(identity(tensor), tensor) for tensor in section.results]
        for node in section.nodes:
            for item in node.carried:
                item.initial = replaced.get(identity(item.initial), item.initial)
                item.yielded = [replaced.get(identity(tensor), tensor) for tensor in item.yielded]


def _sections(main: Section) -> list[Section]:
    return [main, *(inner for node in walk(main) for inner in node.sections)]


def _replace_results(section: Section) -> Mapping[int, Tensor]:
    """Replace the results of ops of one section by those of others; return the new tensors by the ids of the old."""
    combined = [node for node in section.nodes if node.kind.implements("get_parts") and len(node.outputs) > 1]
    if not combined:
        return {}
    alone: dict[tuple[object, ...], Node] = {}
    for node in section.nodes:
        if node.kind.implements("get_parts") and len(node.outputs) == 1:
            alone |= {key: node for key, _ in _parts(node)}
    replaced: dict[int, Tensor] = {}
    for node in combined:
        for key, tensor in _parts(node):
            separate_node = alone.pop(key, None)
            if separate_node is None or any(user.op.name == ALL_REDUCE for user in separate_node.outputs[0].users):
                continue
            _replace(separate_node.outputs[0], tensor)
            replaced[identity(separate_node.outputs[0])] = tensor
            _move(section, node, separate_node.position)
    return replaced


def _parts(node: Node) -> Iterator[tuple[tuple[object, ...], Tensor]]:
    """Yield a key of each result that another op can compute alone, with the result."""
    parts: list[Part | None] = [] if node.kind.cost is None else list(node.kind.cost.get_parts(node.op))
    for part, tensor in zip(parts, node.outputs, strict=False):
        if part is not None:
            name, numbers = part
            yield (name, tensor.value.type, node.depth, *[identity(node.inputs[number]) for number in numbers]), tensor


def _replace(old: Tensor, new: Tensor) -> None:
    for user in old.users:
        user.inputs = [new if tensor is old else tensor for tensor in user.inputs]
    new.users += old.users
    old.users = []


def _move(section: Section, node: Node, place: int) -> None:
    """Move a node, and what it is made from, up to a place, if it stands behind it."""
    if node.position < place:
        return
    moved = {node.position, *makers_above(node, place)}
    before, after = section.nodes[:place], section.nodes[place:]
    section.nodes = [
        *before,
        *(item for item in after if item.position in moved),
        *(item for item in after if item.position not in moved),
    ]
    for position, item in enumerate(section.nodes):
        item.position = position
