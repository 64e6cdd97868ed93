"""Modules of kernels as texts that users write: their entry function, their grid, and the lines of their ops."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic, OptionError, ParseError, ShardyError, VerificationError
from shardy_py.kernels.dialect.forall import ForallOp
from shardy_py.kernels.dialect.gpu import DIMENSIONS, BlockIdOp, ThreadIdOp
from shardy_py.kernels.dialect.nvvm import SpecialRegisterOp
from shardy_py.kernels.dialect.text import LineParser, located, make_context, print_kernel_module, readable_text
from shardy_py.kernels.dialect.types import LaunchGridAttr, Triple
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.locations import file_line
from shardy_py.kernels.opt.checks import check_ops
from shardy_py.kernels.opt.intrinsics import define_intrinsics
from shardy_py.kernels.passes.pipeline import verify_op
from shardy_py.kernels.run.kernel import entry_of, functions_of
from shardy_py.values import frozen

_LONGEST_LINE = 200
_UNKNOWN_OP = re.compile(r"Operation (\w+)\.[\w.]+ is not registered")
_NO_MEMREF = "kernels have no memrefs: buffers are tensors, such as tensor<8xf32>, or pointers of llvm"
_FROM_PROGRAM = "this is a program: shardy emit FILE --stage initial -o KERNEL writes the module of its kernel"
_HINTS = {"memref": _NO_MEMREF, "chlo": _FROM_PROGRAM, "stablehlo": _FROM_PROGRAM}
_KNOWN_SIZES = {
    "thread": ("gpu.known_block_size", "known_block_size", "nvvm.reqntid", "nvvm.maxntid"),
    "block": ("gpu.known_grid_size", "known_grid_size"),
}


@frozen(eq=False)
class KernelModule:
    """A module of a kernel.

    Args:
        module: The module.
        name: The name of its file, for errors.
    """

    module: builtin.ModuleOp
    name: str = ""

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions by name."""
        return functions_of(self.module)

    @property
    def entry(self) -> Any:
        """The entry function.

        Raises:
            VerificationError: no function is marked as such, and not exactly one is public.
        """
        return entry_of(self.functions, self.name)

    def print(self, *, spelling: str = "xla_gpu", generic: bool = False) -> str:
        """Return the text."""
        return print_kernel_module(self.module, spelling=cast(Any, spelling), generic=generic)


def read_module(text: str, name: str = "") -> KernelModule:
    """Return the module of a text: in the form of the document, or in MLIR's generic form.

    What only MLIR's own parser reads, such as ``gpu.func``, is read through that of jaxlib where it is installed.

    Raises:
        ParseError: it is malformed.
        VerificationError: it has no entry function, takes a memref, or is not valid as a whole.
    """
    try:
        parsed = _parsed(text, name)
    except ParseError as error:
        generic = _through_mlir(text, name)
        if generic is None:
            raise error from None
        # Lines of the generic form are not those of the file.
        parsed = _parsed(generic, name, parser=_plain_parser)
    # Passes and the interpreter begin there.
    parsed.entry.attributes.setdefault(ENTRY, builtin.UnitAttr())
    return parsed


def _plain_parser(text: str, name: str) -> Parser:
    return Parser(make_context(), text, name)


def _line_parser(text: str, name: str) -> Parser:
    return LineParser(make_context(), text, name)


def _parsed(text: str, name: str, *, parser: Callable[[str, str], Parser] = _line_parser) -> KernelModule:
    try:
        module = parser(readable_text(text, name), name or "<kernel>").parse_module()
    except (XdslParseError, VerifyException) as error:
        hint = "write the ops in the document's form or in generic form"
        if (unknown := _UNKNOWN_OP.search(str(error))) is not None:
            hint = _HINTS.get(unknown[1], "the reference of kernels lists the dialects that modules may have")
        lines = [line[:_LONGEST_LINE] for line in str(error).strip().splitlines()]
        raise ParseError(Diagnostic("malformed-kernel", "\n".join(lines), name, hint=hint)) from None
    except ParseError as error:
        raise located(error, name) from None
    _verify(module, name)
    _check_buffers(module, name)
    define_intrinsics(functions_of(module).values())
    check_ops(module, functions_of(module), name)
    return KernelModule(module, name)


def _verify(module: builtin.ModuleOp, name: str) -> None:
    """Verify every op by itself.

    Raises:
        ParseError: one is not valid.
    """
    for op in module.walk():
        try:
            verify_op(op)
        except VerifyException as error:
            message = str(error).strip()[: 5 * _LONGEST_LINE]
            raise ParseError(Diagnostic("malformed-kernel", message, file_line(op) or name, op.name)) from None


def _check_buffers(module: builtin.ModuleOp, name: str) -> None:
    """Check that no function takes a memref.

    Raises:
        VerificationError: one does.
    """
    for function in functions_of(module).values():
        for number, argument in enumerate(function.body.blocks[0].args if function.body.blocks else ()):
            if isinstance(argument.type, builtin.MemRefType):
                message = f"argument {number} is a {argument.type}"
                raise VerificationError(
                    Diagnostic("buffer-type", message, file_line(function) or name, function.name, _NO_MEMREF)
                )


def _through_mlir(text: str, name: str) -> str | None:
    """Return a module in MLIR's generic form, as its own parser reads it; None where it does not."""
    from shardy_py.frontends.mlir import parse_module, print_module

    try:
        return print_module(parse_module(text, name=name), generic=True)
    except ShardyError:
        return None


def launch_of_module(kernel: KernelModule, *, blocks: Triple | None = None, threads: Triple | None = None) -> Launch:
    """Return the grid of a module.

    It is said by ``xla_gpu.launch_grid``, by the block and grid sizes that ops of ``gpu`` and ``nvvm`` are marked with,
    or by the ranges of the numbers of threads and blocks; a dimension along which nothing has a number has size 1.

    Args:
        kernel: The module.
        blocks: The blocks, where the caller says them.
        threads: The threads of a block, where the caller says them.

    Raises:
        OptionError: the module uses numbers of which it does not say how many there are, or says it twice.
    """
    overrides = {"block": blocks, "thread": threads}
    marked = _marked_sizes(kernel.entry)
    sizes_of_kind: dict[str, list[int]] = {}
    for kind in ("block", "thread"):
        ranges, used = _ranges(kernel.module, kind)
        sizes = overrides[kind] or marked.get(kind)
        wrong = [number for number in ranges if sizes is not None and ranges[number] != sizes[number]]
        if sizes is not None and wrong:
            message = (
                f"the module is for {ranges[wrong[0]]} {kind}s along {DIMENSIONS[wrong[0]]}, not for {sizes[wrong[0]]}"
            )
            raise OptionError(Diagnostic("launch-conflict", message, kernel.name, hint=f"leave --{kind}s out"))
        if sizes is None and (missing := [DIMENSIONS[number] for number in sorted(used) if number not in ranges]):
            message = f"the module does not say how many {kind}s there are along {', '.join(missing)}"
            hint = f"give --{kind}s X,Y,Z, or mark the op that reads the number by xla.range"
            raise OptionError(Diagnostic("unknown-launch", message, kernel.name, hint=hint))
        sizes_of_kind[kind] = list(sizes or (ranges.get(number, 1) for number in range(len(DIMENSIONS))))
    first, second = (cast(Triple, tuple(sizes_of_kind[kind])) for kind in ("block", "thread"))
    return Launch(first, second)


def _marked_sizes(entry: Operation) -> dict[str, Triple]:
    """Return the block and grid sizes in the attributes of an entry function."""
    attributes = {**entry.properties, **entry.attributes}
    grid = attributes.get(LaunchGridAttr.name)
    if isinstance(grid, LaunchGridAttr):
        return dict(zip(("block", "thread"), grid.data, strict=True))
    marked = {}
    for kind, names in _KNOWN_SIZES.items():
        value = next((attributes[name] for name in names if name in attributes), None)
        if isinstance(value, builtin.DenseArrayBase):
            sizes = [int(size) for size in value.get_values()]
            marked[kind] = cast(Triple, (*sizes, 1, 1)[:3])
    return marked


def _ranges(module: builtin.ModuleOp, kind: str) -> tuple[dict[int, int], set[int]]:
    """Return the sizes along dimensions that ops say, and the dimensions along which ops read a number."""
    sizes: dict[int, int] = {}
    used: set[int] = set()
    for op in module.walk():
        number, size = None, None
        if isinstance(op, ThreadIdOp if kind == "thread" else BlockIdOp):
            number, size = DIMENSIONS.index(op.dimension.data.value), _range_size(op.attributes.get("xla.range"))
            used |= {number} if any(result.uses.get_length() for result in op.results) else set()
        elif isinstance(op, SpecialRegisterOp) and op.register == ("tid" if kind == "thread" else "ctaid"):
            number, size = op.dimension, None if op.range is None else op.range.data[2]
            used.add(number)
        elif isinstance(op, ForallOp):
            mapped = zip(op.mapped, op.sizes, strict=True)
            for (of, dimension), count in mapped:
                if of == kind:
                    sizes[dimension] = max(count, sizes.get(dimension, 1))
        if number is not None and size is not None:
            sizes[number] = max(size, sizes.get(number, 1))
    return sizes, used


def _range_size(attribute: Attribute | None) -> int | None:
    if not isinstance(attribute, builtin.ArrayAttr) or not attribute.data:
        return None
    last = attribute.data[-1]
    return last.value.data + 1 if isinstance(last, builtin.IntegerAttr) else None


def parse_sizes(text: str) -> Triple:
    """Return three sizes from ``128``, ``128,2`` or ``128,2,1``.

    Raises:
        OptionError: it is something else.
    """
    if not re.fullmatch(r"[1-9]\d{0,9}(?:,[1-9]\d{0,9}){0,2}", text):
        hint = "write one to three positive numbers, such as 128 or 32,4"
        raise OptionError(Diagnostic("invalid-sizes", f"{text!r} is not a size of a grid", hint=hint))
    numbers = [int(part) for part in text.split(",")]
    return cast(Triple, (*numbers, 1, 1)[:3])
