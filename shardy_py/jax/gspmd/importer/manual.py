"""Manual computations, from the custom calls that change between full and shard shapes."""

from __future__ import annotations

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION, REGION_RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.symbols import functions_callees_first
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops, outermost
from shardy_py.jax.gspmd.importer.annotations import (
    FULL_TO_SHARD,
    SHARD_TO_FULL,
    SHARDING_CALL,
    Annotations,
    target_of,
    unspecified_dims,
)
from shardy_py.jax.gspmd.importer.inline import inline_call
from shardy_py.jax.gspmd.importer.meshes import Meshes
from shardy_py.jax.gspmd.importer.regions import ShardRegion, check_borders, find_regions, whole_value_used
from shardy_py.sharding.hlo import HloSharding
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.values import frozen


def read_manual_computations(program: Program, annotations: Annotations, meshes: Meshes) -> None:
    """Replace the ops on shards in every block by manual computations, with the functions they call inlined.

    Raises:
        UnsupportedError: shards and whole values are mixed, or it is not said how a value is cut.
    """
    blocks = [
        op.parent
        for op in all_ops(program)
        if target_of(op) in (FULL_TO_SHARD, SHARD_TO_FULL) and op.parent is not None
    ]
    calls: list[Op] = []
    for block in dict.fromkeys(blocks):
        for region in find_regions(block):
            calls += _Reader(program, annotations, meshes).read(region)
    # What a function calls itself goes into its body before that is copied.
    order = {function: number for number, function in enumerate(functions_callees_first(program))} if calls else {}
    for call in sorted(calls, key=lambda call: order[outermost(call)]):
        inline_call(call)


@frozen
class _Border:
    """A value at the border of a manual computation.

    Args:
        value: The whole value.
        sharding: How it is cut, with axes that are free inside.
    """

    value: Value
    sharding: TensorSharding


class _Reader:
    def __init__(self, program: Program, annotations: Annotations, meshes: Meshes) -> None:
        self._program = program
        self._annotations = annotations
        self._meshes = meshes

    def read(self, region: ShardRegion) -> list[Op]:
        """Replace a region by a manual computation; return the calls in its body."""
        copied = self._copied(region)
        check_borders(region, copied)
        mesh = self._mesh(region)
        manual = self._manual_axes(region, mesh)
        inputs = [self._input(op, mesh) for op in region.entries]
        outputs = [
            self._meshes.read(self._sharding(op), op.results[0].type, open_dims=unspecified_dims(op), mesh=mesh)
            for op in region.exits
        ]
        anchor, block = region.last, region.last.parent
        assert block is not None
        computation = Op(
            self._program,
            MANUAL_COMPUTATION,
            [border.value for border in inputs],
            [op.results[0].type for op in region.exits],
            {
                "in_shardings": TensorShardingPerValue(tuple(border.sharding for border in inputs)),
                "out_shardings": TensorShardingPerValue(tuple(outputs)),
                "manual_axes": ManualAxes(manual),
            },
            register_uses=False,
        )
        body = Block(self._program, [op.results[0].type for op in region.entries])
        computation.add_region(Region([body]))
        block.insert_after(anchor, computation)
        self._fill(body, region, copied)
        computation.register_uses()
        for op, result in zip(region.exits, computation.results, strict=True):
            op.results[0].move_uses_to(result)
            op.erase()
        for op in region.entries:
            self._erase_entry(op)
        return [op for op in region.body if op.name == CALL and op.parent is body]

    def _copied(self, region: ShardRegion) -> list[Op]:
        """Return the ops without operands in the body that others use as well, which each has for itself then."""
        members = {*region.body, *region.exits}
        return [
            op
            for op in region.body
            if not op.operands and not op.regions and any(user not in members for user, _ in op.results[0].uses)
        ]

    def _fill(self, body: Block, region: ShardRegion, copied: list[Op]) -> None:
        """Move the ops on shards into a block, and return what leaves it."""
        for op, argument in zip(region.entries, body.arguments, strict=True):
            op.results[0].move_uses_to(argument)
        copies: dict[int, Value] = {}
        for op in region.body:
            if op in copied:
                body.append(clone_op(op, copies))
                continue
            if op.parent is not None:
                op.parent.remove(op)
            body.append(op)
        for op in [op for op in region.body if op not in copied]:
            for inner in op.walk():
                for number, value in enumerate(inner.operands):
                    inside = self._inside(value, inner, body, copies)
                    if inside is not value:
                        inner.set_operand(number, inside)
        sources = [self._source(op) for op in region.exits]
        returned = [copies.get(value.id, value) for value in sources]
        body.append(Op(self._program, REGION_RETURN, returned))

    def _inside(self, value: Value, user: Op, body: Block, copies: dict[int, Value]) -> Value:
        """Return what the body of a manual computation uses in the place of a value: a copy of a constant outside.

        Raises:
            UnsupportedError: it is another value from outside.
        """
        if value.id in copies:
            return copies[value.id]
        at = value.owner if isinstance(value.owner, Block) else value.owner.parent
        while at is not None and at is not body:
            at = None if at.parent_op is None else at.parent_op.parent
        if at is body:
            return value
        op = value.defining_op
        if op is None or op.operands or op.regions:
            raise whole_value_used(user)
        body.insert_after(None, clone_op(op, copies))
        return copies[value.id]

    def _source(self, op: Op) -> Value:
        """Return the shard that a custom call joins, without the sharding annotation that JAX puts right before it."""
        value = op.operands[0]
        producer = value.defining_op
        if producer is None or target_of(producer) != SHARDING_CALL or len(value.uses) > 1:
            return value
        sharding = self._annotations.of(producer)
        is_plain = sharding is not None and sharding.tiles is not None and max(sharding.tile_dims, default=1) == 1
        rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
        return producer.operands[0] if is_plain and len(unspecified_dims(producer)) == rank else value

    def _erase_entry(self, op: Op) -> None:
        """Erase a custom call that cuts a value, and the annotation of its operand if nothing else uses it."""
        producer = op.operands[0].defining_op
        op.erase()
        if producer is not None and target_of(producer) == SHARDING_CALL and not producer.results[0].uses:
            producer.erase()

    def _sharding(self, op: Op) -> HloSharding:
        sharding = self._annotations.of(op)
        if sharding is None:
            raise _missing_sharding(op)
        return sharding

    def _mesh(self, region: ShardRegion) -> str:
        """Return the name of the mesh: that of a sharding at the border with tiles, else the default one."""
        shardings = [self._annotations.of_value(op.operands[0])[0] for op in (*region.entries, *region.exits)]
        shardings += [self._annotations.of(op) for op in (*region.entries, *region.exits)]
        tiled = next((sharding for sharding in shardings if sharding is not None and sharding.tiles is not None), None)
        return self._meshes.default if tiled is None else self._meshes.name_of(tiled)

    def _manual_axes(self, region: ShardRegion, mesh: str) -> tuple[str, ...]:
        """Return the axes that are manual inside, but not outside.

        Raises:
            UnsupportedError: the custom calls do not agree.
        """
        candidates: dict[tuple[str, ...], None] = {}
        for op in region.entries:
            outer = self._annotations.of_value(op.operands[0])[0]
            candidates[self._difference(self._sharding(op), outer, mesh)] = None
        for op in region.exits:
            inner = self._annotations.of_value(op.operands[0])[0]
            if inner is not None:
                candidates[self._difference(inner, self._sharding(op), mesh)] = None
        if len(candidates) == 1:
            return next(iter(candidates))
        op = (*region.entries, *region.exits)[0]
        message = (
            "the manual axes of shards that are used together differ"
            if candidates
            else "it is not said which axes are manual"
        )
        raise UnsupportedError(Diagnostic("manual-axes", message, op.location, op.name))

    def _difference(self, inner: HloSharding, outer: HloSharding | None, mesh: str) -> tuple[str, ...]:
        around = () if outer is None else self._meshes.manual_axes(outer, mesh)
        return tuple(name for name in self._meshes.manual_axes(inner, mesh) if name not in around)

    def _input(self, op: Op, mesh: str) -> _Border:
        """Return the whole value that a custom call cuts, and how."""
        value, type_ = op.operands[0], op.operands[0].type
        sharding, open_dims = self._annotations.of_value(value)
        if sharding is None:
            if type_ != op.results[0].type:
                raise _missing_sharding(op)
            sharding, open_dims = HloSharding.replicated(), frozenset()
        producer = value.defining_op
        if producer is not None and target_of(producer) == SHARDING_CALL and len(value.uses) == 1:
            value = producer.operands[0]
        return _Border(value, self._meshes.read(sharding, type_, open_dims=open_dims, mesh=mesh))


def _missing_sharding(op: Op) -> UnsupportedError:
    message = "it is not said how the value is cut"
    hint = "give its operand a sharding with a custom call @Sharding, as JAX does it"
    return UnsupportedError(Diagnostic("manual-sharding-missing", message, op.location, op.name, hint))
