"""The conversion of functions: each op becomes the one that a device runs on its shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, SHARDING_GROUP
from shardy_py.ir.graph.program import Block, Op, Program, Region
from shardy_py.ir.graph.symbols import has_body
from shardy_py.ir.graph.types import Type, function_type
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps, LocalValue, local_form
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.acting import has_side_effects_only, run_once
from shardy_py.local.collective_results import CollectiveResults
from shardy_py.local.collectives import CollectiveOptions
from shardy_py.local.fallback import Fallback
from shardy_py.local.look_ups import WaitingGathers
from shardy_py.local.manual import inline
from shardy_py.local.op_results import OpResults
from shardy_py.local.partial_results import PartialResults
from shardy_py.local.passing_ops import pass_through
from shardy_py.local.receivers import Receivers
from shardy_py.local.result_shardings import set_result_shardings
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
    _waiting: WaitingGathers = field(init=False)
    _open_blocks: list[Block] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        resolved = self.fallback.trust_shardings and not self.fallback.gathers
        values = self.padding, self.local_values
        self._table = ShardTable(self.program, self.semantics, self.ops, self._convert_region, resolved, *values)
        self._receivers = Receivers(self.program, self.semantics, self._table.sharding)
        self._waiting = WaitingGathers(self.semantics)
        partial_results = PartialResults(self.partial_values)
        collectives = CollectiveResults(self._table, self.options, self.fallback, partial_results)
        self._results = OpResults(
            self._table, self.fallback, self._receivers, collectives, partial_results, self._waiting
        )

    def run(self) -> None:
        """Convert all functions.

        Raises:
            ShardyError: an op has no local form.
        """
        for function in self.program.functions.values():
            # A declaration keeps its type: calls of it have whole operands and results.
            if has_body(function):
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
                self._table.fill_padding(block.parent_op, block.arguments, emit)
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
            inline(op, self._table, emit, self._convert)
            return
        trusted = self.fallback.trust_shardings
        if pass_through(op, self._table) or (not trusted and self._waiting.add(op)):
            return
        form = local_form(op, self.semantics)
        is_alone = form is None and has_side_effects_only(op, self.semantics)
        if is_alone and run_once(self._table.shard(op, emit), self.fallback.gather_whole):
            return
        set_result_shardings(op, self._table, self._receivers, may_slice=form is not None and not trusted)
        self._table.map(op.results, self._results.of(op, form, emit))
        self._table.fill_padding(op, op.results, emit)


def _argument_types(function: Op, regions: Sequence[Region]) -> list[Type]:
    if regions and regions[0].blocks:
        return [value.type for value in regions[0].blocks[0].arguments]
    return []
