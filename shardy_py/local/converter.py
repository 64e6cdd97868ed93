"""The conversion of functions: each op becomes the one that a device runs on its shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field

from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION, SHARDING_GROUP
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import Type, function_type, static_shape
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps, LocalValue, Shard
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.acting import has_side_effects_only
from shardy_py.local.agreement import has_unfit_axes
from shardy_py.local.collectives import CollectiveOptions
from shardy_py.local.early_gathers import common_slice_of_users
from shardy_py.local.fallback import Fallback
from shardy_py.local.look_ups import may_wait
from shardy_py.local.manual import ManualBorder
from shardy_py.local.op_results import OpResults
from shardy_py.local.passing_ops import PASSING, changes_nothing, is_looked_through
from shardy_py.local.receivers import Receivers
from shardy_py.local.shard_table import ShardTable
from shardy_py.local.type_checks import check_calls, check_returns
from shardy_py.local.visible_values import check_visible_values
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


@define
class Converter:
    """Converts the functions of one program, in place.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        ops: The ops for communication.
        options: The forms of collectives.
        fallback: What happens to ops without a local form.
        next_channel: Gives the number of the next channel.
        padding: A number for the padding of all values; None leaves there what ops make of it.
        local_values: Where to record what each value became, or None.
        local_collectives: Where to record the collectives that each op became, or None.
        partial_values: The values that ops use as partial results, with the axes along which they are some.
    """

    program: Program
    semantics: OpSemantics
    ops: LocalOps
    options: CollectiveOptions
    fallback: Fallback
    next_channel: Callable[[], int]
    padding: float | None = None
    local_values: dict[int, LocalValue] | None = None
    local_collectives: dict[int, list[Op]] | None = None
    partial_values: Mapping[int, TensorSharding] = field(factory=dict)
    _table: ShardTable = field(init=False)
    _results: OpResults = field(init=False)
    _receivers: Receivers = field(init=False)
    _open_blocks: list[Block] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        resolved = self.fallback.trust_shardings and not self.fallback.gathers
        values = self.padding, self.local_values
        self._table = ShardTable(self.program, self.semantics, self.ops, self._convert_region, resolved, *values)
        self._receivers = Receivers(self.program, self.semantics, self._table.sharding)
        self._results = OpResults(
            self._table, self.semantics, self.options, self.fallback, self._receivers, self.partial_values
        )

    def run(self) -> None:
        """Convert all functions.

        Raises:
            ShardyError: an op has no local form.
        """
        for function in self.program.functions.values():
            self._convert_function(function)
        check_calls(self.program)

    def _convert_function(self, function: Op) -> None:
        outputs = function.function_results
        results = [self._table.type(value.type, self.program.sharding(value), function) for value in outputs]
        block = function.parent
        if block is None:
            return
        regions = [self._convert_region(region) for region in function.regions]
        arguments = _argument_types(function, regions)
        outside = Block(self.program)
        new_function = LocalEmitter(self.program, outside, self.next_channel).op_like(
            function, (), (), {"function_type": function_type(arguments, results)}, regions
        )
        outside.remove(new_function)
        self.program.new_function_results(new_function, results)
        self._table.keep_shardings(outputs, new_function.function_results)
        for region in regions:
            check_returns(region, results)
        block.insert_before(function, new_function)
        function.erase()

    def _convert_region(self, region: Region) -> Region:
        new_region = Region([self._block_header(block) for block in region.blocks])
        outside = len(self._open_blocks)
        for block, new_block in zip(region.blocks, new_region.blocks, strict=True):
            self._open_blocks.append(new_block)
            emit = LocalEmitter(self.program, new_block, self.next_channel)
            if block.parent_op is not None:
                self._table.fill_padding(block.arguments, self._table.emitting_shard(block.parent_op, emit))
            for op in block.ops:
                last = new_block.last
                self._convert(op, emit)
                first = new_block.first if last is None else last.next
                results = [self._table.local[value.id] for value in op.results if value.id in self._table.local]
                check_visible_values(op, first, results, self._open_blocks)
                self._record_collectives(op, first)
        del self._open_blocks[outside:]
        return new_region

    def _record_collectives(self, op: Op, first: Op | None) -> None:
        """Record the collectives from an op to the end of its block as those that a global op was converted to."""
        while self.local_collectives is not None and first is not None:
            if self.ops.read_collective(first) is not None:
                self.local_collectives.setdefault(op.id, []).append(first)
            first = first.next

    def _block_header(self, block: Block) -> Block:
        op = block.parent_op
        types = [self._table.type(value.type, self._table.sharding(value), op) for value in block.arguments]
        new_block = Block(self.program, types)
        self._table.map(block.arguments, new_block.arguments)
        self._table.keep_shardings(block.arguments, new_block.arguments)
        return new_block

    def _convert(self, op: Op, emit: LocalEmitter) -> None:
        """Add the local form of an op, and map its results."""
        if op.name == SHARDING_GROUP:
            return
        if op.name == MANUAL_COMPUTATION:
            self._inline(op, emit)
        elif op.name in PASSING and changes_nothing(*map(self._table.sharding, (op.operands[0], op.results[0]))):
            self._table.forward(op)
        elif is_looked_through(op):
            self._table.shardings[op.results[0].id] = self._table.sharding(op.operands[0])
            self._table.forward(op)
        elif may_wait(op) and self._results.have_forms(op.results[0].users):
            self._results.waiting[op.results[0].id] = op
        elif not self._runs_once(op, emit):
            self._set_shardings(op)
            looked_up = self._results.looked_up(op, emit)
            shard = self._table.shard(op, emit)
            self._table.map(op.results, self._results.of(op, shard) if looked_up is None else looked_up)
            self._table.fill_padding(op.results, shard)

    def _runs_once(self, op: Op, emit: LocalEmitter) -> bool:
        """Run an op without a local form that only acts on one device, and return whether this was done."""
        is_alone = has_side_effects_only(op, self.semantics) and self._results.form_of(op) is None
        return is_alone and self.fallback.run_once(self._table.shard(op, emit))

    def _set_shardings(self, op: Op) -> None:
        """Give the results of an op, and the arguments of its regions, the shardings that they have on the device."""
        if self._results.have_forms([op]):
            self._shard_like_users(op)
        self._set_target_shardings(op)
        if op.name == CALL:
            for value, sharding in zip(op.results, self._receivers.called_results(op), strict=False):
                self._table.shardings[value.id] = sharding

    def _shard_like_users(self, op: Op) -> None:
        """Shard the result of an op on scalars as all of its users slice it."""
        part = common_slice_of_users(op, self.semantics)
        sharding = None if part is None else self.program.sharding(part)
        if sharding is not None and not has_unfit_axes(sharding):
            self._table.shardings[op.results[0].id] = sharding

    def _inline(self, op: Op, emit: LocalEmitter) -> None:
        """Put the body of a manual computation in its place: outside, too, all is local now."""
        block, shard = op.regions[0].block, self._table.emitting_shard(op, emit)
        for argument, operand in zip(block.arguments, op.operands, strict=True):
            self._table.shardings[argument.id] = self.program.sharding(argument)
            self._table.local[argument.id] = self._border(shard, operand, argument).enter(self._table.local[operand.id])
        end = block.terminator
        for inner in block.ops:
            if inner is not end:
                self._convert(inner, emit)
        for result, value in zip(op.results, end.operands if end is not None else (), strict=True):
            self._table.local[result.id] = self._border(shard, result, value).leave(self._table.local[value.id])

    def _border(self, shard: Shard, outside: Value, inside: Value) -> ManualBorder:
        """Return the border of a manual computation for a value."""
        shapes = [static_shape(value.type) or () for value in (outside, inside)]
        return ManualBorder(shard, self._table.sharding(outside), self._table.sharding(inside), *shapes)

    def _set_target_shardings(self, op: Op) -> None:
        """Give region arguments and results the shardings of the owners of their edges.

        Arguments on no edge are whole.
        """
        flow = self.semantics.get_data_flow(op)
        if flow is None:
            return
        targets = self._receivers.members(op, flow).targets
        for argument in region_arguments(op):
            owner = targets.get(argument.id)
            self._table.shardings[argument.id] = None if owner is None else self._table.sharding(owner)
        for result in op.results:
            owner = targets.get(result.id)
            if owner is not None and owner is not result:
                self._table.shardings[result.id] = self._table.sharding(owner)


def _argument_types(function: Op, regions: Sequence[Region]) -> list[Type]:
    if regions and regions[0].blocks:
        return [value.type for value in regions[0].blocks[0].arguments]
    return []
