"""Writing of op graphs to their native modules: only changed parts are touched.

Attributes tell themselves that they changed; the structure is compared with what the handles remember, block by block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir.attributes import MISSING, AttributeSet, NativeAttributes
from shardy_py.frontends.mlir.importer import BlockHandle, Origin
from shardy_py.ir.foreign_types import native_name
from shardy_py.ir.graph import Block, Op, Program, Value

Items = Sequence[tuple[str, ir.Attribute | None]]
"""Names with native attributes, None for those that were removed."""


def write(program: Program) -> ir.Module:
    """Update the native module; see `write_back`."""
    origin: Origin = program.origin
    writer = _Writer(origin, program.call_sites)
    writer.write_attributes()
    writer.sync(program.body)
    writer.erase_removed()
    program.call_sites.clear()
    return origin.module


def _write_items(native: ir.Operation, items: Items) -> None:
    target = native.attributes
    for name, attribute in items:
        if attribute is not None:
            target[name] = attribute
        elif name in target:
            del target[name]


_MAX_CALL_SITES = 100
"""The limit on nested call sites in a location; MLIR prints and writes locations recursively."""


class _Writer:
    def __init__(self, origin: Origin, call_sites: dict[int, Op]) -> None:
        # Ops that make the same change share its overlay: by identity, with what it becomes.
        self._encoded: dict[int, tuple[Mapping[str, Any], Items]] = {}
        self._origin = origin
        self._has_foreign = origin.codec.types.has_foreign
        self._removed: list[Op] = []
        self._replaced: list[Any] = []
        self._seen: set[int] = set()
        # The attributes of ops that were made, by their name and the attributes they were made with.
        self._made: dict[Any, AttributeSet] = {}
        self._call_sites = call_sites
        # Where calls were that are gone, by their ids, and how many calls in each other that tells of.
        self._places: dict[int, tuple[ir.Location, int]] = {}

    def write_attributes(self) -> None:
        """Write all changes of attributes."""
        changed = self._origin.changed
        for attributes in changed.values():
            if attributes.native is not None and attributes.overlay is not None:
                _write_items(attributes.native, self._changes(attributes.base, attributes.overlay))
        changed.clear()

    def _changes(self, base: AttributeSet, overlay: Mapping[str, Any]) -> Items:
        known = self._encoded.get(id(overlay))
        if known is None:
            known = self._encoded[id(overlay)] = overlay, self._encode_items(base, overlay)
        return known[1]

    def _encode_items(self, base: AttributeSet, items: Mapping[str, Any]) -> Items:
        encode, native = self._origin.codec.encode, base.native
        return [(name, None if value is MISSING else encode(value, native.get(name))) for name, value in items.items()]

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
        """Create and move native ops until those of a block stand in order; what has gone is erased at the end."""
        positions = {op.id: position for position, op in enumerate(handle.ops)}
        # Whatever is made goes here first.
        point = ir.InsertionPoint.at_block_begin(handle.native)
        anchor: Op | None = None
        latest = -1
        for op in ops:
            position = positions.get(op.id, -1)
            if op.handle is None:
                self._create(op, point)
                _move_after(op, anchor, handle.native)
            elif position < latest or position < 0:
                _move_after(op, anchor, handle.native)
            else:
                latest = position
            anchor = op
        here = {op.id for op in ops}
        self._seen |= here
        self._removed.extend([op for op in handle.ops if op.id not in here])
        handle.ops = ops

    def _create(self, op: Op, point: ir.InsertionPoint) -> None:
        op.operands = tuple(op.operands)
        is_copy = isinstance(op.attributes, NativeAttributes)
        made = self._clone(op, point)
        # A mapping without attributes counts as false.
        op.handle = op.attributes = self._make(op, point) if made is None else made
        call = self._call_sites.pop(op.id, None)
        if call is not None:
            native = op.handle.native
            native.location = self._call_site(native.location, call) if is_copy else self._place_of(call)
        for region in op.regions:
            region.handle = None

    def _call_site(self, location: ir.Location, call: Op) -> ir.Location:
        return ir.Location.callsite(location, [self._place_of(call)], context=self._origin.module.context)

    def _place_of(self, call: Op) -> ir.Location:
        """Return the location of an inlined call, with those of the calls of its function around it."""
        chain = [call]
        while chain[-1].id not in self._places and chain[-1].id in self._call_sites:
            chain.append(self._call_sites[chain[-1].id])
        context = self._origin.module.context
        found, depth = self._places.get(chain[-1].id, (None, 0))
        for item in reversed(chain):
            if item.id not in self._places:
                place, is_inner = _location(item, self._origin), found is not None and depth < _MAX_CALL_SITES
                depth = depth + 1 if is_inner else 0
                found = ir.Location.callsite(place, [found], context=context) if is_inner else place
                self._places[item.id] = found, depth
        return self._places[call.id][0]

    def _clone(self, op: Op, point: ir.InsertionPoint) -> NativeAttributes | None:
        """Return a copy of the native op whose attributes this op has, with its operands, if it is that simple.

        A copy keeps what the op graph does not hold: the width of numbers, large constants, the location.
        """
        attributes = op.attributes
        if not isinstance(attributes, NativeAttributes):
            return None
        model = attributes if attributes.model is None else attributes.model
        native = model.native
        if native is None or len(model.operands) != len(op.operands) or op.regions:
            return None
        if native.name != op.name or len(native.regions):
            return None
        types = [self._origin.codec.encode_type(value.type) for value in op.results]
        if native.results.types != types:
            return None
        # The bindings return the op as its own class, whose properties may be something else than those of all ops.
        native = native.clone(point).operation
        _update_operands(native, model.operands, op.operands)
        if attributes.overlay is not model.overlay:
            self._adapt(native, attributes, model)
        return NativeAttributes(attributes.base, native, op.operands, attributes.overlay)

    def _adapt(self, native: ir.Operation, attributes: NativeAttributes, model: NativeAttributes) -> None:
        """Make the attributes of a copy the given ones; those of its model may have changed since, too."""
        base, overlay = attributes.base, attributes.overlay
        if model.overlay is None and overlay is not None:
            items = self._changes(base, overlay)
        else:
            changed = {**(model.overlay or {}), **(overlay or {})}
            items = self._encode_items(base, {name: attributes.get(name, MISSING) for name in changed})
        _write_items(native, items)

    def _make(self, op: Op, point: ir.InsertionPoint) -> NativeAttributes:
        """Return a new native op with the attributes and operands of this op."""
        encode_type = self._origin.codec.encode_type
        try:
            attributes = self._encode(op.attributes)
        except TypeError:
            return self._origin.attributes_of(self._make_from_text(op, point), op.operands)
        native = ir.Operation.create(
            native_name(op) if self._has_foreign else op.name,
            results=[encode_type(value.type) for value in op.results],
            operands=[native_value(value) for value in op.operands],
            attributes=attributes,
            regions=len(op.regions),
            loc=_location(op, self._origin),
            ip=point,
        ).operation
        key = op.name, tuple(attributes.items())
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._origin.sets.of(native)
        return NativeAttributes(made, native, op.operands)

    def _encode(self, attributes: Mapping[str, Any]) -> dict[str, ir.Attribute]:
        """Return native attributes.

        Raises:
            TypeError: the bindings have no class for one.
        """
        encode = self._origin.codec.encode
        if not isinstance(attributes, NativeAttributes):
            return {name: encode(value) for name, value in attributes.items()}
        base, overlay = attributes.base, attributes.overlay
        if not base.is_complete:
            return {name: encode(value, base.native.get(name)) for name, value in attributes.items()}
        if overlay is None:
            return base.native
        result = dict(base.native)
        for name, attribute in self._changes(base, overlay):
            if attribute is None:
                result.pop(name, None)
            else:
                result[name] = attribute
        return result

    def _make_from_text(self, op: Op, point: ir.InsertionPoint) -> ir.Operation:
        """Make an op with an attribute that the bindings have no class for, such as a complex constant."""
        if op.operands or op.regions:
            message = "an attribute of a copied op cannot be handled by MLIR's Python bindings"
            raise UnsupportedError(Diagnostic("unsupported-attribute", message, op.location, op.name))
        codec, named = self._origin.codec, {}
        texts = []
        for name, value in op.attributes.items():
            try:
                named[name] = codec.encode(value)
            except TypeError:
                texts.append(f'"{name}" = {value}')
        types = ", ".join(str(value.type) for value in op.results)
        text = f'%0:{len(op.results)} = "{op.name}"() {{{", ".join(texts)}}} : () -> ({types})'
        native = ir.Operation.parse(text, context=self._origin.module.context)
        point.insert(native)
        # Only inside the module can be verified what refers to its symbols, such as the mesh of a sharding.
        for name, attribute in named.items():
            native.operation.attributes[name] = attribute
        return native.operation

    def _update_operands(self, op: Op, handle: NativeAttributes) -> None:
        before, operands = handle.operands, tuple(op.operands)
        if len(operands) != len(before):
            self._recreate(op, handle)
            return
        if operands != before:
            _update_operands(handle.native, before, operands)
        handle.operands = op.operands = operands

    def _recreate(self, op: Op, handle: NativeAttributes) -> None:
        """Replace a native op by one with another number of operands; the bindings cannot resize it."""
        old = handle.native
        block = op.parent
        if block is None:
            return
        op.operands = tuple(op.operands)
        made = self._make(op, ir.InsertionPoint.at_block_begin(block.handle.native))
        native = made.native
        native.move_after(old)
        for before, after in zip(list(old.results), list(native.results), strict=True):
            before.replace_all_uses_with(after)
        for region, native_region in zip(op.regions, native.regions, strict=True):
            for inner in region.blocks:
                _move_block(inner, native_region)
        _forget(op)
        op.handle = op.attributes = made
        self._replaced.append(old)

    def erase_removed(self) -> None:
        """Erase the native ops that are no longer in the program, users before what they use."""
        for native in self._replaced:
            native.erase()
        for op in reversed(self._removed):
            if op.id in self._seen or op.handle is None:
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
                if inner.handle is not None and inner.id not in self._seen:
                    self._forget_inside(inner)
                    _forget(inner)


def _update_operands(native: ir.Operation, before: Sequence[Value], operands: Sequence[Value]) -> None:
    native_operands = native.operands
    for number, new in enumerate(operands):
        if before[number] is not new:
            native_operands[number] = native_value(new)


def _forget(op: Op) -> None:
    op.handle = None
    if isinstance(op.attributes, NativeAttributes):
        op.attributes.native = None


def native_value(value: Value) -> ir.Value:
    """Return the native value of a value.

    Raises:
        UnsupportedError: the op that defines it is not in the program.
    """
    owner = value.owner
    handle = owner.handle
    if handle is None:
        message = f"an op uses {value!r}, which is not in the program"
        raise UnsupportedError(Diagnostic("dangling-operand", message))
    if isinstance(owner, Block):
        return handle.native.arguments[value.index]
    return handle.native.result if len(owner.results) == 1 else handle.native.results[value.index]


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


def _new_block(block: Block, region: ir.Region, origin: Origin) -> BlockHandle:
    types = [origin.codec.encode_type(argument.type) for argument in block.arguments]
    location = ir.Location.unknown(origin.module.context)
    return BlockHandle(region.blocks.append(*types, arg_locs=[location] * len(types)), [])


def _move_block(block: Block, region: ir.Region) -> None:
    block.handle.native.append_to(region)
    # The old object counts as invalid once the op is erased in which the block was when it was made.
    block.handle.native = region.blocks[len(region.blocks) - 1]


def _location(op: Op, origin: Origin) -> ir.Location:
    """Return the location for a new op: that of the op it comes from, of the op before it, or of the op around it."""
    if op.handle is not None:
        return op.handle.native.location
    model = op.attributes.model_native if isinstance(op.attributes, NativeAttributes) else None
    if model is not None:
        return model.location
    near = op.prev or op.parent_op
    if near is None or near.handle is None:
        return ir.Location.unknown(origin.module.context)
    return near.handle.native.location
