"""The module of a kernel as LLVM's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from types import MappingProxyType

from xdsl.dialects import builtin, func
from xdsl.dialects import llvm as llvm_dialect
from xdsl.ir import Attribute, Block, Operation, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.entry.arguments import ENTRY, INPUT_ALIGN
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower import control, floats, functions, integers, memory
from shardy_py.kernels.lower.buffer_table import BufferTable, takes_table
from shardy_py.kernels.lower.debug_lines import DebugLines
from shardy_py.kernels.lower.literals import Target, constant_text
from shardy_py.kernels.lower.writer import FunctionWriter, Handler, ModuleWriter
from shardy_py.kernels.passes.buffer_facts import NO_ALIAS, argument_attributes
from shardy_py.kernels.passes.integer_types import index_width

_FAMILIES = (integers, floats, functions, memory, control)
HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {name: handler for family in _FAMILIES for name, handler in family.HANDLERS.items()}
)
_ATTRIBUTES = "#0"
_ALIGNMENT = 16
METADATA = "!0 = !{}"
"""The node that marks invariant loads."""


def llvm_text(
    module: builtin.ModuleOp, launch: Launch, target: Target, lines: Mapping[Operation, int] | None = None
) -> str:
    """Return a kernel for a device as text for LLVM.

    Args:
        module: The module after the last pass.
        launch: Its grid.
        target: The device.
        lines: The lines of ops in a source, which LLVM then gives for its instructions; by default it gives none.

    Raises:
        UnsupportedError: an op or a type has no text.
    """
    writer = ModuleWriter(target, index_width(module))
    debug = None if lines is None else DebugLines(lines)
    for op in module.body.block.ops:
        if isinstance(op, llvm_dialect.GlobalOp):
            writer.globals.append(global_text(op, writer))
        elif isinstance(op, func.FuncOp) and not op.body.blocks:
            declare_function(op, writer)
        elif isinstance(op, func.FuncOp):
            writer.functions.append(function_text(op, writer, debug))
    size = ",".join(str(number) for number in launch.threads)
    attributes = f'attributes {_ATTRIBUTES} = {{ nounwind "nvvm.reqntid"="{size}" }}'
    return f"{writer.text}\n{attributes}\n{METADATA}\n{'' if debug is None else debug.text}"


def global_text(op: llvm_dialect.GlobalOp, writer: ModuleWriter) -> str:
    """Return a constant, or memory that threads share."""
    if op.value is None:
        shared = f"internal addrspace({op.addr_space.value.data}) global"
        return f"@{op.sym_name.data} = {shared} {writer.type(op.global_type)} undef, align {_tile_alignment(op)}"
    space = f"addrspace({writer.target.memory_space}) " if writer.target.memory_space else ""
    assert isinstance(op.value, Attribute)
    value = constant_text(op.value, writer.target, writer.index_width)
    text = f"@{op.sym_name.data} = internal unnamed_addr {space}constant {writer.type(op.global_type)} {value}"
    return f"{text}, align {_ALIGNMENT}"


def _tile_alignment(op: llvm_dialect.GlobalOp) -> int:
    """Return the alignment of memory that threads share: its size is a multiple of that of every vector in it."""
    array = op.global_type
    assert isinstance(array, llvm_dialect.LLVMArrayType)
    assert isinstance(array.type, builtin.FixedBitwidthType | builtin.ComplexType)
    return gcd(_ALIGNMENT, array.size.data * array.type.size)


def declare_function(function: func.FuncOp, module: ModuleWriter) -> None:
    """Note a function without a body, which is defined elsewhere."""
    type_ = function.function_type
    result = control.result_type(FunctionWriter(module), list(type_.outputs))
    module.declare(function.sym_name.data, result, [module.type(item) for item in type_.inputs])


def function_text(function: func.FuncOp, module: ModuleWriter, debug: DebugLines | None = None) -> str:
    """Return a function, with the lines of its ops if asked for; that of an entry function is a kernel."""
    writer = FunctionWriter(module)
    blocks = list(function.body.blocks)
    is_entry = ENTRY in function.attributes
    table = BufferTable(function, writer) if is_entry and takes_table(len(blocks[0].args)) else None
    arguments = function_arguments(function, writer, is_entry=is_entry) if table is None else [table.parameter]
    head = _head(function, arguments, writer, is_entry=is_entry)
    if debug is not None:
        head = debug.begin(function, head)
    for block in blocks:
        for argument in block.args if block is not blocks[0] else ():
            writer.bind(argument, writer.fresh())
    ordered = _in_order(blocks)
    texts: dict[Block, list[str]] = {}
    for block in ordered:
        if block is not blocks[0]:
            writer.lines = []
        if table is not None:
            table.load(block)
        for op in block.ops:
            written = len(writer.lines)
            write_op(op, writer)
            if debug is not None:
                writer.lines[written:] = [debug.located(line, op) for line in writer.lines[written:]]
        texts[block] = writer.lines
    # What loops pass back to their head is known only now.
    incoming = _incoming(ordered)
    body: list[str] = []
    for block in ordered:
        passed = incoming[block] if block is not blocks[0] else []
        phis = [_phi(argument, passed, number, writer) for number, argument in enumerate(block.args) if passed]
        body += [f"{writer.label(block)}:", *phis, *texts[block]]
    return "\n".join([head, *body, "}"])


def _head(function: func.FuncOp, arguments: Sequence[str], writer: FunctionWriter, *, is_entry: bool) -> str:
    """Return the line that begins a function."""
    signature = f"@{function.sym_name.data}({', '.join(arguments)})"
    if is_entry:
        return f"define ptx_kernel void {signature} {_ATTRIBUTES} {{"
    result = control.result_type(writer, list(function.function_type.outputs))
    return f"define internal {result} {signature} nounwind {{"


def function_arguments(function: func.FuncOp, writer: FunctionWriter, *, is_entry: bool) -> list[str]:
    """Return the arguments of a function, with what is known of buffers; their names are bound."""
    arguments = []
    for number, argument in enumerate(function.body.blocks[0].args):
        name = f"%arg{number}"
        writer.bind(argument, name)
        arguments.append(f"{writer.type(argument)} {_attributes(function, number, is_entry=is_entry)}{name}")
    return arguments


def _attributes(function: func.FuncOp, number: int, *, is_entry: bool) -> str:
    """Return the attributes of the argument of a buffer."""
    known = argument_attributes(function, number)
    attributes = []
    if is_entry and NO_ALIAS in known:
        attributes.append("noalias")
    align, size = known.get("llvm.align"), known.get("llvm.dereferenceable")
    if is_entry and isinstance(align, builtin.IntegerAttr):
        attributes.append(f"align {_usable_align(align.value.data, size)}")
    if is_entry and isinstance(size, builtin.IntegerAttr):
        attributes.append(f"dereferenceable({size.value.data})")
    if "xla.invariant" in known:
        attributes.append("readonly")
    return "".join(f"{item} " for item in attributes)


def _usable_align(align: int, size: Attribute | None) -> int:
    """Return the alignment of a buffer that LLVM is told.

    From an aligned buffer LLVM reads three elements as a vector of four, also behind its end: such a read stays within
    aligned memory. It is outside of the tensor all the same, so that what is read is as aligned as its size.

    Args:
        align: The alignment of the buffer; results, which are only written, have that of allocations.
        size: Its size in bytes.
    """
    is_read = align <= INPUT_ALIGN
    if not is_read or not isinstance(size, builtin.IntegerAttr):
        return align
    return gcd(align, size.value.data)


def write_op(op: Operation, writer: FunctionWriter) -> None:
    """Write the instructions of an op.

    Raises:
        UnsupportedError: there are none.
    """
    handler = HANDLERS.get(op.name)
    if handler is None:
        message, hint = "no instructions of LLVM are known for the op", "run all passes before"
        raise UnsupportedError(Diagnostic("llvm-op", message, op=op.name, hint=hint))
    handler(writer, op)


def _in_order(blocks: list[Block]) -> list[Block]:
    """Return the blocks, each behind those that dominate it."""
    post_order: list[Block] = []
    seen: set[Block] = {blocks[0]}
    pending = [(blocks[0], False)]
    while pending:
        block, is_done = pending.pop()
        if is_done:
            post_order.append(block)
            continue
        pending.append((block, True))
        assert block.last_op is not None
        for target, _ in control.successors(block.last_op):
            if target not in seen:
                seen.add(target)
                pending.append((target, False))
    return post_order[::-1]


def _incoming(blocks: list[Block]) -> dict[Block, list[tuple[Block, Sequence[SSAValue]]]]:
    """Return, for every block, its predecessors and the values that they pass."""
    incoming: dict[Block, list[tuple[Block, Sequence[SSAValue]]]] = {block: [] for block in blocks}
    for block in blocks:
        assert block.last_op is not None
        for target, passed in control.successors(block.last_op):
            incoming[target].append((block, passed))
    return incoming


def _phi(
    argument: SSAValue, incoming: Sequence[tuple[Block, Sequence[SSAValue]]], number: int, writer: FunctionWriter
) -> str:
    parts = ", ".join(f"[ {writer.get(passed[number])}, %{writer.label(block)} ]" for block, passed in incoming)
    return f"  {writer.get(argument)} = phi {writer.type(argument)} {parts}"
