"""Values that a loop takes from outside: made of those that it carries unchanged, and opened for propagation.

HLO's loops carry all that they use. XLA's import of a module into Shardy makes captured values of what never changes
(`stablehlo-canonicalize-from-hlo-import`), and puts an open constraint in front of each
(`open_while_free_vars_sharding.cc`), so that the shardings in a loop say nothing about the value outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from shardy_py.ir.graph.op_names import CONSTRAINT, FUNCTION, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import enter_uses_anew, ops_named, outermost
from shardy_py.jax.gspmd.importer.annotated import dictionaries
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

_WHILE = "stablehlo.while"


def capture_unchanged_values(program: Program) -> bool:
    """Make captured values of those that loops carry unchanged, outer loops first; return whether there were any."""
    changed: dict[Op, None] = {}
    has_changed = True
    while has_changed:
        has_changed = False
        for loop in list(ops_named(program, _WHILE)):
            function = outermost(loop)
            if _capture(loop):
                has_changed = True
                changed[function] = None
    for function in changed:
        enter_uses_anew(function)
    return bool(changed)


def _capture(loop: Op) -> bool:
    """Replace a loop by one without the values that it returns as it got them; return whether it had any."""
    blocks = [region.block for region in loop.regions]
    returned = blocks[1].last
    assert returned is not None
    unchanged = {
        index
        for index, (operand, value) in enumerate(zip(loop.operands, returned.operands, strict=True))
        if value is operand or value is blocks[1].arguments[index]
    }
    if not unchanged:
        return False
    carried = [index for index in range(len(loop.operands)) if index not in unchanged]
    values = [returned.operands[index] for index in carried]
    returned.replace_operands(values)
    regions = loop.take_regions()
    for region, block in zip(regions, blocks, strict=True):
        region.replace_blocks([_without_arguments(block, loop, carried)])
    operands = [loop.operands[index] for index in carried]
    types = [loop.results[index].type for index in carried]
    new_loop = Op(loop.program, loop.name, operands, types, copy(loop.attributes), regions)
    assert loop.parent is not None
    loop.parent.insert_before(loop, new_loop)
    for index, result in enumerate(loop.results):
        result.replace_all_uses_with(
            loop.operands[index] if index in unchanged else new_loop.results[carried.index(index)]
        )
    loop.erase()
    return True


def _without_arguments(block: Block, loop: Op, carried: list[int]) -> Block:
    """Return a block with the ops of another and some of its arguments; operands of the loop replace the others."""
    new_block = Block(loop.program, [block.arguments[index].type for index in carried])
    for index, argument in enumerate(block.arguments):
        is_carried = index in carried
        argument.replace_all_uses_with(
            new_block.arguments[carried.index(index)] if is_carried else loop.operands[index]
        )
    for op in list(block.ops):
        block.remove(op)
        new_block.append(op)
    return new_block


def open_captured_values(program: Program) -> None:
    """Put a fully open constraint in front of each loop for each sharded value that it captures, inner loops first.

    A value whose sharding is fully open, and one without dimensions, needs none.
    """
    for loop in _inner_first(ops_named(program, _WHILE)):
        for value in _captured(loop):
            sharding = _sharding_of(value)
            has_dims = isinstance(value.type, TensorType) and value.type.rank > 0
            if has_dims and sharding is not None and not _is_fully_open(sharding):
                _open(value, sharding, loop)


def _inner_first(loops: Sequence[Op]) -> list[Op]:
    """Return loops in the order in which they end, those in a loop before it."""
    ordered: list[Op] = []
    around: list[Op] = []
    for loop in loops:
        while around and not _is_inside(loop, around[-1]):
            ordered.append(around.pop())
        around.append(loop)
    return [*ordered, *reversed(around)]


def _is_inside(op: Op, other: Op) -> bool:
    parent = op.parent_op
    while parent is not None and parent is not other:
        parent = parent.parent_op
    return parent is other


def _captured(loop: Op) -> list[Value]:
    """Return the values from outside that ops in a loop use, in the order in which MLIR's walk meets them."""
    inside: set[int] = set()
    values: dict[int, Value] = {}
    for block in (region.block for region in loop.regions):
        for op in _operands_last(block):
            inside.update(value.id for value in op.results)
            values.update((value.id, value) for value in op.operands)
        inside.update(_arguments_inside(block))
    return [value for id_, value in values.items() if id_ not in inside]


def _operands_last(block: Block) -> Iterator[Op]:
    """Yield the ops of a block, each after those in its regions."""
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                yield from _operands_last(inner)
        yield op


def _arguments_inside(block: Block) -> Iterator[int]:
    yield from (value.id for value in block.arguments)
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                yield from _arguments_inside(inner)


def _sharding_of(value: Value) -> TensorSharding | None:
    """Return the sharding that the attributes of a program give to a value."""
    op = value.defining_op
    if op is None:
        function = value.owning_op
        if function.name != FUNCTION:
            return None
        items = dictionaries(function, "arg_attrs")
        return items[value.index].get(SHARDING) if value.index < len(items) else None
    if "sharding" in op.attributes and op.name.startswith("sdy."):
        return op.attributes["sharding"]
    sharding = op.attributes.get("out_shardings" if op.name == MANUAL_COMPUTATION else SHARDING)
    return None if sharding is None else sharding.shardings[value.index]


def _is_fully_open(sharding: TensorSharding) -> bool:
    if sharding.replicated_axes or sharding.unreduced_axes:
        return False
    return not any(item.axes or item.is_closed for item in sharding.dim_shardings)


def _open(value: Value, sharding: TensorSharding, loop: Op) -> None:
    """Make the ops of a loop use a value through a fully open constraint in front of the loop."""
    dims = tuple(DimensionSharding((), False) for _ in sharding.dim_shardings)
    inside = {op.id for region in loop.regions for block in region.blocks for op in block.walk()}
    attributes = {"sharding": TensorSharding(sharding.mesh, dims)}
    constraint = Op(loop.program, CONSTRAINT, (value,), (value.type,), attributes)
    assert loop.parent is not None
    loop.parent.insert_before(loop, constraint)
    value.move_uses_to(constraint.results[0], users=inside)
