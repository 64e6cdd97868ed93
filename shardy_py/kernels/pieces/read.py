"""Fusions out of whatever a caller gives: a module as one fusion, or the candidate pieces of a program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.select import find_frontend
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.hlo import HloModule, import_hlo
from shardy_py.kernels.fusion.fusion import Fusion, Layouts
from shardy_py.kernels.pieces.greedy import PieceCallback, is_control_flow, no_callback, pieces_of
from shardy_py.kernels.pieces.hlo import FUSION, check_tuples, fusion_names, hlo_layouts
from shardy_py.plugins import Registry
from shardy_py.plugins.installed import installed_registry
from shardy_py.transforms.prepare.inline_calls import InlineCallsPass
from shardy_py.values import frozen


@frozen(eq=False)
class _ReadProgram:
    """A program as it was read: its main function, and the names and layouts that its text holds.

    Args:
        function: The main function.
        name: What a kernel for all of it is called.
        layouts: The layouts of values that are not row-major.
        fused: The names of the fusions in it, in their order.
    """

    function: Op
    name: str
    layouts: Layouts
    fused: tuple[str, ...] = ()

    @property
    def block(self) -> Block:
        """The body of the function."""
        (block,) = self.function.regions[0].blocks
        return block


def read_fusion(source: Any, *, registry: Registry | None = None, name: str = "") -> Fusion:
    """Return a module as one fusion: all that its main function computes, or the only fusion in it.

    Args:
        source: HLO text, or whatever `shardy_py.propagate` takes.
        registry: What is known about the ops; by default what the installed plugins say.
        name: The name of the kernel; by default that of the fusion, the function or the module.

    Raises:
        ParseError: the text cannot be read.
        UnsupportedError: there are several fusions, or something that no kernel can have inside.
    """
    known = registry or installed_registry(skip_broken=True)
    module = _read(source, known)
    fusions = [op for op in module.block.ops if op.name == FUSION]
    if not fusions:
        return Fusion.of_function(module.function, known, name=name or module.name, layouts=module.layouts)
    others = [op for op in module.block.ops if op.name != FUSION and op is not module.block.terminator]
    if len(fusions) > 1 or others:
        message = f"the module has {len(fusions)} fusions and {len(others)} other ops"
        hint = "'shardy emit FILE --list' shows the pieces, --fusion N takes one; read_fusions in Python"
        raise UnsupportedError(Diagnostic("several-fusions", message, module.function.location, hint=hint))
    return _of_region(fusions[0], name or kernel_name(module.fused[0]), module, known)


def read_fusions(source: Any, *, registry: Registry | None = None) -> tuple[Fusion, ...]:
    """Return the candidate pieces of a program: its fusions, and what `pieces_of` finds in the rest.

    Calls are inlined first. The pieces inside of loops and branches are behind those outside of them.

    Args:
        source: HLO text, or whatever `shardy_py.propagate` takes.
        registry: What is known about the ops; by default what the installed plugins say.

    Raises:
        ParseError: the text cannot be read.
        UnsupportedError: a fusion has something that no kernel can have inside.
    """
    return read_pieces(source, registry or installed_registry(skip_broken=True))[1]


def read_pieces(
    source: Any, registry: Registry, *, on_piece: PieceCallback = no_callback
) -> tuple[Block, tuple[Fusion, ...]]:
    """Return the body of a program, its calls inlined, with its candidate pieces; see `read_fusions`."""
    module = _read(source, registry)
    ops = [op for op in module.block.ops if op.name == FUSION]
    numbers = {value.id: number for number, op in enumerate(module.block.ops) for value in op.results}
    names = module.fused if len(module.fused) == len(ops) else [f"fusion_{number}" for number in range(len(ops))]
    numbered = [
        (numbers[op.results[0].id], _of_region(op, kernel_name(name), module, registry))
        for op, name in zip(ops, names, strict=True)
    ]
    pieces = pieces_of(blocks_of(module.block, registry), registry, module.layouts, on_piece=on_piece)
    numbered += [(numbers.get(fusion.roots[0].id, len(numbers)), fusion) for fusion in pieces]
    return module.block, tuple(fusion for _, fusion in sorted(numbered, key=lambda item: item[0]))


def blocks_of(block: Block, registry: Registry) -> list[Block]:
    """Return a block and those inside of its control flow, which starts the kernels of their pieces itself."""
    blocks = [block]
    for op in block.ops:
        if is_control_flow(op, registry):
            blocks += [
                nested for region in op.regions for inner in region.blocks for nested in blocks_of(inner, registry)
            ]
    return blocks


def kernel_name(name: str) -> str:
    """Return a name as PTX and LLVM take it.

    >>> kernel_name("wrapped_add.1"), kernel_name("0-x")
    ('wrapped_add_1', '_0_x')
    """
    return re.sub(r"^(?=\d)", "_", re.sub(r"\W", "_", name, flags=re.ASCII)) or "kernel"


def _of_region(op: Op, name: str, module: _ReadProgram, registry: Registry) -> Fusion:
    return Fusion.of_function(op, registry, name=name, layouts=module.layouts)


def _read(source: Any, registry: Registry) -> _ReadProgram:
    frontend = find_frontend(source, registry)
    if frontend.name != "hlo":
        program = _inlined(frontend.import_program(source), registry)
        function = _main(program)
        return _ReadProgram(function, _name(function, str(program.attributes.get("sym_name", ""))), {})
    module = source if isinstance(source, HloModule) else _hlo(source)
    check_tuples(module.text)
    program = _inlined(module.program, registry)
    layouts = hlo_layouts(module, program)
    return _ReadProgram(_main(program), kernel_name(module.name), layouts, fusion_names(module.text))


def _hlo(source: str | bytes | Path) -> HloModule:
    return import_hlo(source.decode(errors="replace") if isinstance(source, bytes) else source)


def _inlined(program: Program, registry: Registry) -> Program:
    if not any(op.name == CALL for op in program.walk()):
        return program
    copied = copy_program(program)
    InlineCallsPass().run(copied, PassContext(registry))
    return copied


def _main(program: Program) -> Op:
    functions = program.functions
    public = [op for op in functions.values() if op.attributes.get("sym_visibility") != "private"]
    candidates = [functions["main"]] if "main" in functions else public
    if len(candidates) != 1 or not candidates[0].regions or len(candidates[0].regions[0].blocks) != 1:
        message = f"a kernel is made of one function with one block; the module has {len(functions)} functions"
        hint = "call the function main, or make the others private"
        raise UnsupportedError(Diagnostic("no-fusion", message, hint=hint))
    return candidates[0]


def _name(function: Op, module: str) -> str:
    name = str(function.attributes.get("sym_name", ""))
    return kernel_name(module if name == "main" and module else name)
