"""Import of xDSL modules as op graphs, with checks of Shardy's attributes, which xDSL does not know."""

from __future__ import annotations

from typing import Any

from attrs import evolve, field
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as NativeBlock

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.frontends.xdsl.codec import XdslCodec
from shardy_py.ir.graph.foreign_types import shardy_name
from shardy_py.ir.graph.op_names import FUNCTION, MESH
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.verify_shardings import wrong_attributes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.verify import verify_mesh
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.values import define


def check_attributes(op: Op) -> None:
    """Check that attributes of Shardy have values of the right kind.

    Raises:
        ParseError: one is missing, holds something else, or is a mesh that is not valid.
    """
    problems = [
        Diagnostic("malformed-attribute", f"{name} holds {value}, which is no {expected}", op.location, op.name)
        for name, value, expected in wrong_attributes(op)
    ]
    mesh = op.attributes.get("mesh") if op.name == MESH else None
    if isinstance(mesh, Mesh):
        problems += [evolve(item, location=op.location, op=op.name) for item in verify_mesh(mesh)]
    if problems:
        raise ParseError(*problems)


OP_NAME = "op_name__"
"""The attribute with the name of an unregistered op in xDSL."""


class XdslAttributes(dict[str, Any]):
    """The decoded attributes of an op.

    Attributes:
        model: The native op they were read from; a copy of the attributes keeps it.
        read: The attributes as they were read.
    """

    def __init__(self, items: dict[str, Any], model: Operation, read: dict[str, Any]) -> None:
        super().__init__(items)
        self.model = model
        self.read = read

    def copy(self) -> XdslAttributes:
        """Return a copy for another op."""
        return XdslAttributes(self, self.model, self.read)

    __copy__ = copy


@define
class XdslNativeProgram:
    """The native side of a program, as `write_back` needs it.

    Args:
        module: The native module.
        codec: The codec.
        natives: Every op of the module, each before those inside.
        classes: The class of the ops of each name.
    """

    module: ModuleOp
    codec: XdslCodec
    natives: list[Operation] = field(factory=list)
    classes: dict[str, type[Operation]] = field(factory=dict)


def op_name(native: Operation) -> str:
    """Return the name of an op, also of an unregistered one."""
    return native.op_name.data if isinstance(native, UnregisteredOp) else native.name


def native_attributes(native: Operation) -> dict[str, Attribute]:
    """Return properties and attributes in one."""
    attributes = {**native.properties, **native.attributes}
    attributes.pop(OP_NAME, None)
    return attributes


def import_native(module: ModuleOp) -> Program:
    """Return the op graph of a module; see `import_module`."""
    program = Program()
    program.origin = XdslNativeProgram(module, XdslCodec())
    program.attributes = _attributes(module, program.origin.codec)
    program.locate = _locate
    with no_garbage_collection(keep=True):
        _Importer(program).run(module)
    return program


def _attributes(native: Operation, codec: XdslCodec) -> XdslAttributes:
    decoded = {name: codec.decode(item) for name, item in native_attributes(native).items()}
    return XdslAttributes(decoded, native, dict(decoded))


def _locate(op: Op) -> str:
    place = op.handle.location if op.handle is not None else None
    if not isinstance(place, FileLineColLoc):
        return ""
    return f"{place.filename.data}:{place.line.data}:{place.column.data}"


class _Importer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._origin: XdslNativeProgram = program.origin
        self._values: dict[SSAValue, Value] = {}
        self._forward: dict[SSAValue, Value] = {}

    def run(self, module: ModuleOp) -> None:
        self._program.body.handle = module.body.block
        self._fill(self._program.body, module.body.block)
        for native, placeholder in self._forward.items():
            placeholder.replace_all_uses_with(self._values[native])

    def _fill(self, block: Block, native_block: NativeBlock) -> None:
        for native in native_block.ops:
            block.append(self._convert(native))

    def _convert(self, native: Operation) -> Op:
        origin = self._origin
        name = shardy_name(op_name(native))
        op = Op(
            self._program,
            name,
            [self._operand(value) for value in native.operands],
            [origin.codec.decode_type(value.type) for value in native.results],
            _attributes(native, origin.codec),
            register_uses=False,
        )
        op.handle = native
        check_attributes(op)
        origin.natives.append(native)
        origin.classes.setdefault(name, type(native))
        self._values.update(zip(native.results, op.results, strict=True))
        if name == FUNCTION:
            outputs = native_attributes(native)["function_type"].outputs.data  # type: ignore[attr-defined]
            self._program.new_function_results(op, [origin.codec.decode_type(type_) for type_ in outputs])
        for native_region in native.regions:
            # A region of a declaration has no blocks.
            region = Region([self._new_block(block) for block in native_region.blocks])
            region.handle = native_region
            op.add_region(region)
            for block in region.blocks:
                self._fill(block, block.handle)
        op.register_uses()
        return op

    def _operand(self, native: SSAValue) -> Value:
        """Return an operand, or a placeholder for a value that is defined later."""
        value = self._values.get(native) or self._forward.get(native)
        if value is None:
            block = Block(self._program, [self._origin.codec.decode_type(native.type)])
            value = self._forward[native] = block.arguments[0]
        return value

    def _new_block(self, native: NativeBlock) -> Block:
        block = Block(self._program, [self._origin.codec.decode_type(argument.type) for argument in native.args])
        block.handle = native
        self._values.update(zip(native.args, block.arguments, strict=True))
        return block
