"""Writing of op graphs to their native modules: only changed parts are touched.

Attributes report that they changed; the structure is compared with what the handles remember, block by block. An op
that replaced a call gets the location of the call around its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from jaxlib.mlir import ir

from shardy_py.frontends.mlir.attributes import NativeAttributes
from shardy_py.frontends.mlir.native_ops import (
    BlockHandle,
    Items,
    NativeOpMaker,
    NativeProgram,
    location_of,
    native_value,
    update_operands,
    write_items,
)
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.walk import all_ops, region_arguments
from shardy_py.support.identity import identity

_MAX_CALL_SITES = 100
"""The limit on nested call sites in a location; MLIR prints and writes locations recursively."""


class CallSites:
    """The locations of ops that replaced a call.

    Args:
        origin: The native side of the program.
        calls: Op id to the call that the op replaced; an entry is dropped once its op has a location.
    """

    __slots__ = ("_calls", "_origin", "_places")

    def __init__(self, origin: NativeProgram, calls: dict[int, Op]) -> None:
        self._origin = origin
        self._calls = calls
        # Where calls were that are gone, by their ids, and how many calls in each other that tells of.
        self._places: dict[int, tuple[ir.Location, int]] = {}

    def locate(self, op: Op, *, is_copy: bool) -> None:
        """Set the location of a new native op that replaced a call; any other keeps its own."""
        call = self._calls.pop(op.id, None)
        if call is not None:
            native = op.handle.native
            native.location = self._call_site(native.location, call) if is_copy else self._place_of(call)

    def _call_site(self, location: ir.Location, call: Op) -> ir.Location:
        return ir.Location.callsite(location, [self._place_of(call)], context=self._origin.module.context)

    def _place_of(self, call: Op) -> ir.Location:
        """Return the location of an inlined call, with those of the calls of its function around it."""
        chain = [call]
        while chain[-1].id not in self._places and chain[-1].id in self._calls:
            chain.append(self._calls[chain[-1].id])
        context = self._origin.module.context
        location, depth = self._places.get(chain[-1].id, (None, 0))
        for item in reversed(chain):
            if item.id not in self._places:
                place, is_inner = location_of(item, self._origin), location is not None and depth < _MAX_CALL_SITES
                depth = depth + 1 if is_inner else 0
                location = ir.Location.callsite(place, [location], context=context) if is_inner else place
                self._places[item.id] = location, depth
        return self._places[call.id][0]


def write(program: Program) -> ir.Module:
    """Update the native module; see `write_back`."""
    origin: NativeProgram = program.origin
    writer = _Writer(origin, program.call_sites, program.next_id())
    writer.parse_shardings()
    writer.rename(program.renamed)
    program.renamed.clear()
    writer.write_attributes()
    writer.sync(program.body)
    writer.erase_removed()
    program.call_sites.clear()
    return origin.module


def write_with_types(program: Program) -> ir.Module:
    """Update the native module and the types of all values; see `write_types`."""
    module, encode_type = write(program), program.origin.codec.encode_type
    for op in all_ops(program):
        for value in (*op.results, *region_arguments(op)):
            native_value(value).set_type(encode_type(value.type))
    return module


class _Writer:
    __slots__ = ("_call_sites", "_maker", "_num_placed", "_origin", "_positions", "_removed", "_replaced", "_seen")

    def __init__(self, origin: NativeProgram, call_sites: dict[int, Op], num_ids: int) -> None:
        self._origin = origin
        self._maker = NativeOpMaker(origin)
        self._call_sites = CallSites(origin, call_sites)
        self._removed: list[Op] = []
        self._replaced: list[Any] = []
        # By the ids of ops, flat, as sets and dictionaries of all ops would take ten times the memory: whether an op
        # was seen in a block that changed, and its position among the native ops of all such blocks, or -1.
        self._seen = bytearray(num_ids)
        self._positions = array("i", [-1]) * num_ids
        self._num_placed = 0

    def parse_shardings(self) -> None:
        """Parse the shardings that are to be written."""
        changed = self._origin.changed
        overlays = {identity(attributes.overlay): attributes.overlay or {} for attributes in changed.values()}
        self._origin.codec.parse_together(value for overlay in overlays.values() for value in overlay.values())

    def rename(self, ops: Iterable[Op]) -> None:
        """Put a native op of the new name in the place of each op that has another name now, for all of its users."""
        changed = self._origin.changed
        for op in ops:
            handle = op.handle
            # One that has gone since is erased with the others.
            if op.parent is None or handle is None:
                continue
            before = handle.native
            # Its operands may be of ops to come; they are brought up to date with those of all others.
            native = self._maker.make(op, ir.InsertionPoint(before), list(before.operands)).native
            self._replace(op, before, native)
            handle.base.release(before)
            handle.native = native
            self._call_sites.locate(op, is_copy=True)
            changed.pop(identity(handle), None)

    def write_attributes(self) -> None:
        """Write all changes of attributes."""
        changed = self._origin.changed
        # Ops with the same attributes that make the same change share it; nearly always it is one sharding.
        encoded: dict[int, tuple[str, ir.Attribute | None, Items]] = {}
        for attributes in changed.values():
            native, overlay = attributes.native, attributes.overlay
            if native is None or overlay is None:
                continue
            change = encoded.get(identity(overlay))
            if change is None:
                items = self._maker.changes(attributes.base, overlay)
                single = items[0] if len(items) == 1 else ("", None)
                change = encoded[identity(overlay)] = *single, items
            name, attribute, items = change
            if attribute is not None:
                native.attributes[name] = attribute
            else:
                write_items(native, items)
        changed.clear()

    def sync(self, block: Block) -> None:
        """Update one native block, and those inside."""
        handle: BlockHandle = block.handle
        ops = []
        op = block.first
        while op is not None:
            ops.append(op)
            op = op.next
        if ops != handle.ops:
            self._place(ops, handle)
        for op in ops:
            if op.operands is not op.handle.operands:
                self._update_operands(op, op.handle)
            if op.regions:
                self._sync_regions(op)

    def _sync_regions(self, op: Op) -> None:
        for index, region in enumerate(op.regions):
            blocks = region.blocks
            if region.handle is None or None in [block.handle for block in blocks]:
                native = op.handle.native.regions[index]
                for block in blocks:
                    if block.handle is None:
                        block.handle = _new_block(block, native, self._origin)
                    elif region.handle is None:
                        _move_block(block, native)
                region.handle = native
            for block in blocks:
                self.sync(block)

    def _place(self, ops: list[Op], handle: BlockHandle) -> None:
        """Create and move native ops until those of a block are in order; removed ops are erased at the end."""
        positions, seen = self._positions, self._seen
        # The positions of the blocks before are smaller: an op that stood there counts as one that moves.
        latest = self._num_placed
        for position, op in enumerate(handle.ops, latest):
            positions[op.id] = position
        self._num_placed += len(handle.ops)
        # Whatever is made goes here first.
        point = ir.InsertionPoint.at_block_begin(handle.native)
        anchor: Op | None = None
        for op in ops:
            position = positions[op.id]
            if op.handle is None:
                self._create(op, point)
                _move_after(op, anchor, handle.native)
            elif position < latest:
                _move_after(op, anchor, handle.native)
            else:
                latest = position
            anchor = op
            seen[op.id] = True
        # Some may come in a block further on; only those seen nowhere are erased in the end.
        self._removed += [op for op in handle.ops if not seen[op.id]]
        handle.ops = ops

    def _create(self, op: Op, point: ir.InsertionPoint) -> None:
        op.operands = tuple(op.operands)
        is_copy = isinstance(op.attributes, NativeAttributes)
        op.handle = op.attributes = self._maker.create(op, point)
        self._call_sites.locate(op, is_copy=is_copy)
        for region in op.regions:
            region.handle = None

    def _update_operands(self, op: Op, handle: NativeAttributes) -> None:
        before, operands = handle.operands, tuple(op.operands)
        if len(operands) != len(before):
            self._recreate(op, handle)
            return
        if operands != before:
            update_operands(handle.native, before, operands)
        handle.operands = op.operands = operands

    def _recreate(self, op: Op, handle: NativeAttributes) -> None:
        """Replace a native op by one with another number of operands; the bindings cannot resize it."""
        old = handle.native
        block = op.parent
        if block is None:
            return
        op.operands = tuple(op.operands)
        native_op = self._maker.make(op, ir.InsertionPoint.at_block_begin(block.handle.native))
        native = native_op.native
        native.move_after(old)
        self._replace(op, old, native)
        _forget(op)
        op.handle = op.attributes = native_op

    def _replace(self, op: Op, old: ir.Operation, native: ir.Operation) -> None:
        """Let a native op have the users and the blocks of another one, which is erased in the end."""
        for before, after in zip(list(old.results), list(native.results), strict=True):
            before.replace_all_uses_with(after)
        for region, native_region in zip(op.regions, native.regions, strict=True):
            for inner in [block for block in region.blocks if block.handle is not None]:
                _move_block(inner, native_region)
        self._replaced.append(old)

    def erase_removed(self) -> None:
        """Erase the native ops that are no longer in the program, users before producers."""
        for native in self._replaced:
            native.erase()
        for op in reversed(self._removed):
            if self._seen[op.id] or op.handle is None:
                continue
            native = op.handle.native
            if op.regions:
                self._forget_inside(op)
            _forget(op)
            native.erase()

    def _forget_inside(self, op: Op) -> None:
        """Drop the handles of the ops inside an op whose native op is erased."""
        for block in [block for region in op.regions for block in region.blocks if block.handle]:
            for inner in block.handle.ops:
                if inner.handle is not None and not self._seen[inner.id]:
                    self._forget_inside(inner)
                    _forget(inner)


def _forget(op: Op) -> None:
    """Drop the handle of an op whose native op is about to be erased."""
    op.handle.base.release(op.handle.native)
    op.handle = None
    if isinstance(op.attributes, NativeAttributes):
        op.attributes.native = None


def _move_after(op: Op, anchor: Op | None, native_block: ir.Block) -> None:
    native = op.handle.native
    if anchor is not None:
        native.move_after(anchor.handle.native)
        return
    operations = native_block.operations
    if not len(operations):
        native_block.append(native)
    elif operations[0] != native:
        native.move_before(operations[0])


def _new_block(block: Block, region: ir.Region, origin: NativeProgram) -> BlockHandle:
    types = [origin.codec.encode_type(argument.type) for argument in block.arguments]
    location = ir.Location.unknown(origin.module.context)
    return BlockHandle(region.blocks.append(*types, arg_locs=[location] * len(types)), [])


def _move_block(block: Block, region: ir.Region) -> None:
    block.handle.native.append_to(region)
    # The old object counts as invalid once the op is erased in which the block was when it was made.
    block.handle.native = region.blocks[len(region.blocks) - 1]
