"""The native side of a program, and the creation of native ops for ops that passes made or copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir.attributes import MISSING, AttributeSet, AttributeSets, NativeAttributes
from shardy_py.frontends.mlir.codec import Codec
from shardy_py.ir.graph.foreign_types import native_name
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.support.identity import identity
from shardy_py.values import define


class BlockHandle:
    """The native block of a block, and the ops it has there."""

    __slots__ = ("native", "ops")

    def __init__(self, native: ir.Block, ops: list[Op]) -> None:
        self.native = native
        self.ops = ops


@define
class NativeProgram:
    """The native side of a program, as `write_back` needs it.

    Args:
        module: The native module.
        codec: The codec of its context.
        sets: The attribute sets seen.
        name: What locations call a source without a name of its own.
    """

    module: ir.Module
    codec: Codec
    sets: AttributeSets
    name: str = "-"

    @property
    def changed(self) -> dict[int, NativeAttributes]:
        """The attributes that changed since the last `write_back`, by identity."""
        return self.sets.changed

    def attributes_of(self, native: ir.Operation, operands: Sequence[Value] = ()) -> NativeAttributes:
        """Return the attributes of a native op as a mapping."""
        return NativeAttributes(self.sets.of(native), native, operands)


Items = Sequence[tuple[str, ir.Attribute | None]]
"""Names with native attributes, None for those that were removed."""


class NativeOpMaker:
    """Makes the native ops of one program, and encodes changes of attributes."""

    __slots__ = ("_encoded", "_has_foreign", "_made", "_origin")

    def __init__(self, origin: NativeProgram) -> None:
        self._origin = origin
        self._has_foreign = origin.codec.types.has_foreign
        # Ops that make the same change share its overlay: by identity, with what it becomes.
        self._encoded: dict[int, tuple[Mapping[str, Any], Items]] = {}
        # The attributes of ops that were made, by their name and the attributes they were made with.
        self._made: dict[Any, AttributeSet] = {}

    def changes(self, base: AttributeSet, overlay: Mapping[str, Any]) -> Items:
        """Return the native attributes of a change."""
        known = self._encoded.get(identity(overlay))
        if known is None:
            known = self._encoded[identity(overlay)] = overlay, self._encode_items(base, overlay)
        return known[1]

    def _encode_items(self, base: AttributeSet, items: Mapping[str, Any]) -> Items:
        encode, native_of = self._origin.codec.encode, base.native_of
        return [(name, None if value is MISSING else encode(value, native_of(name))) for name, value in items.items()]

    def create(self, op: Op, point: ir.InsertionPoint) -> NativeAttributes:
        """Return the attributes of a new native op for an op, which is a copy of its model if there is one."""
        native = self._clone(op, point)
        # A mapping without attributes counts as false.
        return self.make(op, point) if native is None else native

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
        update_operands(native, model.operands, op.operands)
        if attributes.overlay is not model.overlay:
            self._adapt(native, attributes, model)
        return NativeAttributes(attributes.base, native, op.operands, attributes.overlay)

    def _adapt(self, native: ir.Operation, attributes: NativeAttributes, model: NativeAttributes) -> None:
        """Make the attributes of a copy the given ones; those of its model may have changed since, too."""
        base, overlay = attributes.base, attributes.overlay
        if model.overlay is None and overlay is not None:
            items = self.changes(base, overlay)
        else:
            changed = {**(model.overlay or {}), **(overlay or {})}
            items = self._encode_items(base, {name: attributes.get(name, MISSING) for name in changed})
        write_items(native, items)

    def make(self, op: Op, point: ir.InsertionPoint, operands: Sequence[ir.Value] | None = None) -> NativeAttributes:
        """Return a new native op with the attributes of this op, and with its operands unless others are given."""
        encode_type = self._origin.codec.encode_type
        try:
            attributes = self._encode(op.attributes)
        except TypeError:
            return self._origin.attributes_of(self._make_from_text(op, point), op.operands)
        native = ir.Operation.create(
            native_name(op) if self._has_foreign else op.name,
            results=[encode_type(value.type) for value in op.results],
            operands=[native_value(value) for value in op.operands] if operands is None else operands,
            attributes=attributes,
            regions=len(op.regions),
            loc=location_of(op, self._origin),
            ip=point,
        ).operation
        return NativeAttributes(self._set_of(op, attributes, native), native, op.operands)

    def _set_of(self, op: Op, attributes: Mapping[str, ir.Attribute], native: ir.Operation) -> AttributeSet:
        """Return the attributes of an op that was made with some, to which MLIR may add defaults."""
        present = op.attributes
        # A constant of Shardy has the attributes of the one that it was copied from.
        base = present.base if isinstance(present, NativeAttributes) and attributes is present.base.natives() else None
        if base is not None and len(native.attributes) == len(attributes):
            return base
        key = op.name, tuple(attributes.items())
        attribute_set = self._made.get(key)
        if attribute_set is None:
            attribute_set = self._made[key] = self._origin.sets.of(native)
        return attribute_set

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
            return {name: encode(value, base.native_of(name)) for name, value in attributes.items()}
        if overlay is None:
            return base.natives()
        result = dict(base.natives())
        for name, attribute in self.changes(base, overlay):
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


def write_items(native: ir.Operation, items: Items) -> None:
    """Set and remove attributes of a native op."""
    target = native.attributes
    for name, attribute in items:
        if attribute is not None:
            target[name] = attribute
        elif name in target:
            del target[name]


def update_operands(native: ir.Operation, before: Sequence[Value], operands: Sequence[Value]) -> None:
    """Set the operands of a native op that changed."""
    native_operands = native.operands
    for number, new in enumerate(operands):
        if before[number] is not new:
            native_operands[number] = native_value(new)


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


def location_of(op: Op, origin: NativeProgram) -> ir.Location:
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
