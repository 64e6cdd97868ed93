"""Writing of op graphs to their xDSL modules: only changed parts are touched."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as NativeBlock
from xdsl.ir import Region as NativeRegion

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.xdsl.importer import OP_NAME, XdslAttributes, XdslNativeProgram, native_attributes, op_name
from shardy_py.ir.graph.foreign_types import native_name
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.support.identity import identity


def write(program: Program) -> ModuleOp:
    """Update the native module; see `write_back`."""
    origin: XdslNativeProgram = program.origin
    writer = _Writer(origin)
    writer.write_attributes(origin.module, program.attributes)
    writer.sync(program.body)
    alive = [op.handle for op in program.walk()]
    _erase(origin.natives, alive)
    origin.natives = alive
    return origin.module


def _erase(natives: list[Operation], alive: list[Operation]) -> None:
    """Erase removed ops, users before producers, nested ops before their parents."""
    alive_ids = set(map(identity, alive))
    for native in reversed(natives):
        if identity(native) not in alive_ids:
            if native.parent is not None:
                native.detach()
            native.erase(safe_erase=False)


class _Writer:
    def __init__(self, origin: XdslNativeProgram) -> None:
        self._origin = origin

    def sync(self, block: Block) -> None:
        """Update one native block, and those inside."""
        native_block: NativeBlock = block.handle
        ops = list(block.ops)
        for op in ops:
            if op.handle is None or op_name(op.handle) != native_name(op):
                self._create(op)
            else:
                self._update(op)
        wanted = [op.handle for op in ops]
        if wanted != list(native_block.ops):
            _arrange(native_block, wanted)
        for op in ops:
            for region in op.regions:
                for inner in region.blocks:
                    self.sync(inner)

    def write_attributes(self, native: Operation, attributes: Any) -> None:
        """Write the attributes that changed since they were read."""
        if not isinstance(attributes, XdslAttributes) or attributes == attributes.read:
            return
        current = native_attributes(native)
        for name in [name for name in attributes.read if name not in attributes]:
            native.properties.pop(name, None)
            native.attributes.pop(name, None)
        for name, value in attributes.items():
            if name not in attributes.read or attributes.read[name] != value:
                holder = native.properties if _is_property(name, type(native), native) else native.attributes
                holder[name] = self._origin.codec.encode(value, current.get(name))
        attributes.read = dict(attributes)

    def _update(self, op: Op) -> None:
        native: Operation = op.handle
        self.write_attributes(native, op.attributes)
        operands = [native_value(value) for value in op.operands]
        if operands != list(native.operands):
            native.operands = operands
        for region in op.regions:
            for block in region.blocks:
                if block.handle is None:
                    block.handle = self._new_block(block)
                    region.handle.add_block(block.handle)

    def _create(self, op: Op) -> None:
        codec = self._origin.codec
        class_ = self._origin.classes.get(op.name) or UnregisteredOp.with_name(native_name(op))
        properties, attributes = self._encoded(op, class_)
        native = class_.create(
            operands=[native_value(value) for value in op.operands],
            result_types=[codec.encode_type(value.type) for value in op.results],
            properties=properties,
            attributes=attributes,
            regions=[self._take_region(region) for region in op.regions],
            location=_location(op),
        )
        model = op.attributes.model if isinstance(op.attributes, XdslAttributes) else None
        if model is not None and len(model.results) == len(native.results):
            for result, old in zip(native.results, model.results, strict=True):
                result.name_hint = old.name_hint
        read = dict(op.attributes)
        op.attributes = XdslAttributes(read, native, dict(read))
        op.handle = native

    def _encoded(self, op: Op, class_: type[Operation]) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        """Return the native properties and attributes of an op; a copied attribute keeps its exact native form."""
        copied = op.attributes if isinstance(op.attributes, XdslAttributes) else None
        models = native_attributes(copied.model) if copied is not None else {}
        model = copied.model if copied is not None and op_name(copied.model) == native_name(op) else None
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        for name, value in op.attributes.items():
            if name == OP_NAME:
                continue
            holder = properties if _is_property(name, class_, model) else attributes
            holder[name] = self._origin.codec.encode(value, models.get(name))
        return properties, attributes

    def _take_region(self, region: Region) -> NativeRegion:
        """Return the native region for a region of a new op: that which the region had in another op, or a new one."""
        native: NativeRegion = region.handle or NativeRegion()
        if native.parent is not None:
            native.parent.detach_region(native)
        for block in region.blocks:
            if block.handle is None:
                block.handle = self._new_block(block)
            if block.handle.parent is not native:
                if block.handle.parent is not None:
                    block.handle.parent.detach_block(block.handle)
                native.add_block(block.handle)
        region.handle = native
        return native

    def _new_block(self, block: Block) -> NativeBlock:
        codec = self._origin.codec
        return NativeBlock(arg_types=[codec.encode_type(argument.type) for argument in block.arguments])


def _arrange(native_block: NativeBlock, wanted: list[Operation]) -> None:
    """Give a block exactly the wanted ops; those that have gone keep their operands until they are erased."""
    for native in list(native_block.ops):
        native.detach()
    for native in wanted:
        if native.parent is not None:
            native.detach()
        native_block.add_op(native)


def _is_property(name: str, class_: type[Operation], model: Operation | None) -> bool:
    """Return whether an attribute is a property: the class says so, or the op, registered or not, has it as one."""
    if model is not None and name in model.properties:
        return True
    definition = getattr(class_, "get_irdl_definition", None)
    return definition is not None and name in definition().properties


def native_value(value: Value) -> SSAValue:
    """Return the native value of a value.

    Raises:
        UnsupportedError: the op that defines it is not in the program.
    """
    handle = value.owner.handle
    if handle is None:
        message = f"an op uses {value!r}, which is not in the program"
        raise UnsupportedError(Diagnostic("dangling-operand", message))
    return handle.args[value.index] if isinstance(value.owner, Block) else handle.results[value.index]


def _location(op: Op) -> Any:
    """Return the location for a new op: that of the op it comes from, or of the op before it."""
    model = op.attributes.model if isinstance(op.attributes, XdslAttributes) else None
    near = op.prev or op.parent_op
    location = model or (near.handle if near is not None else None)
    return None if location is None else location.location
