"""The conversion of functions: each op becomes the one that a device runs on its shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import evolve, field

from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    CALL,
    CONSTANT,
    CONSTRAINT,
    DATA_FLOW_EDGE,
    FUNC_DATA_FLOW_EDGE,
    MANUAL_COMPUTATION,
    PROPAGATION_BARRIER,
    REDUCE_SCATTER,
    RESHARD,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import Type, function_type, static_shape
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.ir.interfaces.local import (
    CannotLocalize,
    LocalEmitter,
    LocalOps,
    LocalSemantics,
    LocalValue,
    Shard,
    local_constant,
    local_type,
)
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.local.acting import has_side_effects_only
from shardy_py.local.agreement import has_unfit_axes, reduced_axes
from shardy_py.local.collectives import COLLECTIVES, MOVES, CollectiveConverter, CollectiveOptions
from shardy_py.local.early_gathers import cheaper_producer, common_slice_of_users, gathered_operands
from shardy_py.local.fallback import Fallback
from shardy_py.local.look_ups import look_up, may_wait
from shardy_py.local.manual import ManualBorder
from shardy_py.local.masks import fill_padding
from shardy_py.local.receivers import Receivers
from shardy_py.local.type_checks import check_calls, check_region_types, check_returns, check_shard_type
from shardy_py.local.unreduced import TO_UNREDUCED, keep_on_first, make_unreduced
from shardy_py.local.visible_values import check_visible_values
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.manual_axes import common_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

_FORWARDING = frozenset((PROPAGATION_BARRIER, DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE))
_RESHARDS = frozenset((RESHARD, CONSTRAINT))
_USERS_OF_UNBARRIERED_SHARDING = _RESHARDS | COLLECTIVES
"""The ops that are made for the sharding that their operand has by itself."""
_ERASED = frozenset((SHARDING_GROUP,))


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
    _meshes: Mapping[str, Mesh] = field(init=False)
    _local: dict[int, Value] = field(factory=dict, init=False)
    _shardings: dict[int, TensorSharding | None] = field(factory=dict, init=False)
    _waiting: dict[int, Op] = field(factory=dict, init=False)
    _complete: dict[int, tuple[AxisRef, ...]] = field(factory=dict, init=False)
    _receivers: Receivers = field(init=False)
    _open_blocks: list[Block] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._meshes = self.program.meshes
        self._receivers = Receivers(self.program, self.semantics, self._sharding)

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
        results = [self._type(value.type, self.program.sharding(value), function) for value in outputs]
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
        self._keep_shardings(outputs, new_function.function_results)
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
                self._fill_padding(block.arguments, self._emitting_shard(block.parent_op, emit))
            for op in block.ops:
                last = new_block.last
                self._convert(op, emit)
                first = new_block.first if last is None else last.next
                results = [self._local[value.id] for value in op.results if value.id in self._local]
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
        types = [self._type(value.type, self._sharding(value), op) for value in block.arguments]
        new_block = Block(self.program, types)
        self._map(block.arguments, new_block.arguments)
        self._keep_shardings(block.arguments, new_block.arguments)
        return new_block

    def _convert(self, op: Op, emit: LocalEmitter) -> None:
        """Add the local form of an op, and map its results."""
        if op.name in _ERASED:
            return
        if op.name == MANUAL_COMPUTATION:
            self._inline(op, emit)
            return
        if op.name in (*_FORWARDING, *_RESHARDS, ALL_SLICE) and self._changes_nothing(op):
            self._map(op.results, [self._local[op.operands[0].id]])
            return
        if op.name == PROPAGATION_BARRIER and not any(
            user.name in _USERS_OF_UNBARRIERED_SHARDING for user in op.results[0].users
        ):
            # Ops behind a barrier were resharded as if it were not there.
            self._shardings[op.results[0].id] = self._sharding(op.operands[0])
            self._map(op.results, [self._local[op.operands[0].id]])
            return
        if may_wait(op) and self._has_form(op.results[0].users):
            self._waiting[op.results[0].id] = op
            return
        if (
            has_side_effects_only(op, self.semantics)
            and self._form_of(op) is None
            and self.fallback.run_once(self._shard(op, emit))
        ):
            return
        if self._has_form([op]):
            self._shard_like_users(op)
        self._set_target_shardings(op)
        if op.name == CALL:
            self._set_call_shardings(op)
        results = self._look_up_or_gather(op, emit)
        shard = self._shard(op, emit)
        self._map(op.results, self._results_of(op, shard) if results is None else results)
        self._fill_padding(op.results, shard)

    def _shard_like_users(self, op: Op) -> None:
        """Shard the result of an op on scalars as all of its users slice it."""
        part = common_slice_of_users(op, self.semantics)
        sharding = None if part is None else self.program.sharding(part)
        if sharding is not None and not has_unfit_axes(sharding):
            self._shardings[op.results[0].id] = sharding

    def _has_form(self, ops: Iterable[Op]) -> bool:
        """Return whether all of some ops have local forms of their own, and shardings are not taken as they are."""
        return not self.fallback.trust_shardings and all(self._form_of(op) is not None for op in ops)

    def _look_up_or_gather(self, op: Op, emit: LocalEmitter) -> Sequence[Value] | None:
        """Return the results of an op computed from the shards of an operand, or gather the operand and return None."""
        gathering = self._waiting.pop(op.operands[0].id, None) if op.operands else None
        if gathering is None:
            return None
        source = self._shard(gathering, emit)
        gathered = gathering.results[0]
        # The parts stand for the whole operand until it is known whether that is needed.
        self._local[gathered.id] = source.operands[0]
        shard = self._shard(op, emit)
        local_results = look_up(op, shard, source, self._form_of(op))
        if local_results is None:
            self._map(gathering.results, self._results_of(gathering, source))
            return None
        rule = self.semantics.get_sharding_rule(op)
        if rule is None:
            return local_results
        return self._as_used(op, shard, local_results, tuple(reduced_axes(shard, rule)))

    def _results_of(self, op: Op, shard: Shard) -> Sequence[Value]:
        try:
            if op.name in _RESHARDS:
                return [self._reshard(op, shard)]
            if op.name in _FORWARDING:
                return [self.fallback.reshard(shard, 0, shard.result_shardings[0])]
            if op.name in COLLECTIVES:
                return [self._collective(op, shard)]
            if op.name in TO_UNREDUCED:
                return [make_unreduced(shard)]
            if op.name == CONSTANT:
                return local_constant(op, shard)
            if self._is_framework(op):
                return self._forward_operands(op, shard)
            return self._localize(op, shard)
        except ShardyError as error:
            raise type(error)(*(_placed(item, op) for item in error.diagnostics)) from None

    def _forward_operands(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the results of an op that forwards values: operands are sharded like the values that receive them.

        Results on no edge are whole before they get the shardings that they shall have.
        """
        values = [
            self.fallback.reshard(shard, number, self._receivers.sharding(op, number, before))
            for number, before in enumerate(shard.operand_shardings)
        ]
        flow = self.semantics.get_data_flow(op)
        if flow is None:
            return evolve(shard, operands=values).copy()
        targets = self._receivers.members(op, flow).targets
        pairs = zip(op.results, shard.result_shardings, strict=True)
        shardings = [sharding if value.id in targets else None for value, sharding in pairs]
        part = evolve(shard, operands=values, result_shardings=shardings)
        results = part.copy()
        if shard.emit.block.last is not None:
            check_region_types(op, shard.emit.block.last, flow, self._receivers.members(op, flow))
        return self.fallback.slice_results(shard, part, results)

    def _localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        outcome = self.fallback.localize(op, shard, self._form_of(op))
        if outcome.complete:
            return self._as_used(op, shard, outcome.results, outcome.complete)
        return outcome.results

    def _as_used(
        self, op: Op, shard: Shard, results: Sequence[Value], complete: tuple[AxisRef, ...]
    ) -> Sequence[Value]:
        """Return complete results; those that ops use as partial ones are on one device only.

        Args:
            op: The op.
            shard: It on the device.
            results: Its results.
            complete: The axes along which they are complete, though the rule of the op says that they are partial.
        """
        local_results = []
        for value, result in zip(op.results, results, strict=True):
            sharding = self.partial_values.get(value.id)
            if sharding is None:
                self._complete[value.id] = complete
            local_results.append(result if sharding is None else keep_on_first(shard, result, sharding, complete))
        return local_results

    def _form_of(self, op: Op) -> Callable[[Op, Shard], Sequence[Value]] | None:
        return self.semantics.get_local(op) if isinstance(self.semantics, LocalSemantics) else None

    def _collective(self, op: Op, shard: Shard) -> Value:
        complete = self._complete.get(op.operands[0].id, ())
        if complete and op.name not in (ALL_REDUCE, REDUCE_SCATTER):
            # The result is as complete as the operand, until it is reduced.
            self._complete[op.results[0].id] = complete
        if op.name == ALL_REDUCE and not self.fallback.trust_shardings:
            # A sum of what is summed already, as after a second propagation of explicit collectives, changes nothing.
            self._complete[op.results[0].id] = (*complete, *op.attributes["reduction_axes"].axes)
        if op.name in MOVES and not self.fallback.trust_shardings:
            if has_unfit_axes(shard.result_shardings[0]):
                # As in the reference, collectives may pass by a sharding that no devices have: then nothing moves yet.
                self._shardings[op.results[0].id] = shard.operand_shardings[0]
                return shard.operands[0]
            if has_unfit_axes(self.program.sharding(op.operands[0])):
                return self.fallback.reshard(shard, 0, shard.result_shardings[0])
        remade = self._gathered_early(op, shard)
        return remade or CollectiveConverter(shard, self.options, complete).run()

    def _gathered_early(self, op: Op, shard: Shard) -> Value | None:
        """Return the result of an all-gather made from smaller gathered operands, or None where that cannot be."""
        is_early = self.options.early_gathers and not self.fallback.trust_shardings and op.name == ALL_GATHER
        producer = cheaper_producer(op, self.semantics) if is_early else None
        if producer is None:
            return None
        last, rule = shard.emit.block.last, self.semantics.get_sharding_rule(producer)
        one_by_one = self.options.per_dim_all_gather
        part = gathered_operands(op, shard, self._shard(producer, shard.emit), rule, one_by_one=one_by_one)
        if part is not None:
            try:
                form = local_constant if producer.name == CONSTANT else self._form_of(producer)
                (local_result,) = evolve(self.fallback, gathers=False).localize(producer, part, form).results
            except CannotLocalize:
                pass
            else:
                if local_result.type == shard.result_type():
                    return local_result
        shard.emit.erase_after(last)
        return None

    def _is_framework(self, op: Op) -> bool:
        """Return whether an op hands values on: calls, terminators and region ops with data-flow edges."""
        if op.name == CALL or self.semantics.has_trait(op, IsTerminator):
            return True
        return self.semantics.get_data_flow(op) is not None or (op.parent is not None and op.parent.last is op)

    def _inline(self, op: Op, emit: LocalEmitter) -> None:
        """Put the body of a manual computation in its place: outside, too, all is local now."""
        block, shard = op.regions[0].block, self._emitting_shard(op, emit)
        for argument, operand in zip(block.arguments, op.operands, strict=True):
            self._shardings[argument.id] = self.program.sharding(argument)
            self._local[argument.id] = self._border(shard, operand, argument).enter(self._local[operand.id])
        end = block.terminator
        for inner in block.ops:
            if inner is not end:
                self._convert(inner, emit)
        for result, value in zip(op.results, end.operands if end is not None else (), strict=True):
            self._local[result.id] = self._border(shard, result, value).leave(self._local[value.id])

    def _border(self, shard: Shard, outside: Value, inside: Value) -> ManualBorder:
        """Return the border of a manual computation for a value."""
        shapes = [static_shape(value.type) or () for value in (outside, inside)]
        return ManualBorder(shard, self._sharding(outside), self._sharding(inside), *shapes)

    def _changes_nothing(self, op: Op) -> bool:
        before, after = self._sharding(op.operands[0]), self._sharding(op.results[0])
        if before is None:
            return after is None or after.is_fully_replicated
        return before.is_equivalent(after, ignore_unreduced_axes=True)

    def _reshard(self, op: Op, shard: Shard) -> Value:
        """Return the operand of a reshard between two meshes, gathered: no collectives are made for it before.

        Raises:
            UnsupportedError: it is on one mesh, or nothing may be gathered.
        """
        ends = [item for item in (*shard.operand_shardings, *shard.result_shardings) if item is not None]
        is_partial = any(item.unreduced_axes for item in ends)
        if common_mesh(ends, self._meshes) is not None or is_partial:
            message = "a reshard between two shardings has no local form"
            hint = "run sdy-reshard-to-collectives first, or ask for explicit collectives"
            raise UnsupportedError(Diagnostic("reshard", message, hint=hint))
        if not self.fallback.gathers:
            message = "a reshard between two meshes is not a collective"
            hint = "put the values on one mesh, or allow ops to be gathered"
            raise UnsupportedError(Diagnostic("reshard", message, hint=hint))
        return self.fallback.reshard(shard, 0, shard.result_shardings[0])

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
            self._shardings[argument.id] = None if owner is None else self._sharding(owner)
        for result in op.results:
            owner = targets.get(result.id)
            if owner is not None and owner is not result:
                self._shardings[result.id] = self._sharding(owner)

    def _set_call_shardings(self, op: Op) -> None:
        for value, sharding in zip(op.results, self._receivers.called_results(op), strict=False):
            self._shardings[value.id] = sharding

    def _fill_padding(self, values: Sequence[Value], shard: Shard) -> None:
        if self.padding is None:
            return
        for value in values:
            local, sharding = self._local[value.id], self._sharding(value)
            self._local[value.id] = fill_padding(shard, local, value, sharding, self.padding)

    def _emitting_shard(self, op: Op, emit: LocalEmitter) -> Shard:
        """Return a shard of an op without operands, to emit ops that belong to its regions."""
        return Shard(op, (), (), (), self._meshes, self.semantics, emit, self.ops)

    def _shard(self, op: Op, emit: LocalEmitter) -> Shard:
        return Shard(
            op,
            [self._local[value.id] for value in op.operands],
            [self._sharding(value) for value in op.operands],
            [self._sharding(value) for value in op.results],
            self._meshes,
            self.semantics,
            emit,
            self.ops,
            lambda: [self._convert_region(region) for region in op.regions],
            lambda value: (self._local[value.id], self._sharding(value)) if value.id in self._local else None,
            is_resolved=self.fallback.trust_shardings and not self.fallback.gathers,
        )

    def _sharding(self, value: Value) -> TensorSharding | None:
        if value.id in self._shardings:
            return self._shardings[value.id]
        return self.program.sharding(value)

    def _type(self, type_: Type, sharding: TensorSharding | None, op: Op | None) -> Type:
        try:
            return local_type(type_, sharding, self._meshes)
        except CannotLocalize as error:
            if op is None:
                raise
            raise CannotLocalize(*(_placed(item, op) for item in error.diagnostics)) from None

    def _map(self, values: Sequence[Value], local: Sequence[Value]) -> None:
        for value, new in zip(values, local, strict=True):
            check_shard_type(value, self._sharding(value), new.type, self._meshes)
            self._local[value.id] = new
            if self.local_values is not None:
                self.local_values[value.id] = LocalValue(new, self._sharding(value))

    def _keep_shardings(self, values: Sequence[Value], local: Sequence[Value]) -> None:
        """Give local values the shardings of the global ones: they tell which part each device has."""
        table = self.program.shardings
        for value, new in zip(values, local, strict=True):
            sharding = table.get(value.id)
            if sharding is not None:
                table.setdefault(new.id, sharding)


def _argument_types(function: Op, regions: Sequence[Region]) -> list[Type]:
    if regions and regions[0].blocks:
        return [value.type for value in regions[0].blocks[0].arguments]
    return []


def _placed(item: Diagnostic, op: Op) -> Diagnostic:
    return evolve(item, op=item.op or op.name, location=item.location or op.location)
