"""Layouts of buffers, which arguments and results of a function and the fragments next to them have in common.

Mirrors mpmd/transforms/export/mark_input_output_with_layouts.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, return_of, set_attributes_at
from shardy_py.mpmd.dialect.fragments import is_fragment, mpmd_functions
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.types import is_host_mesh, require_mesh_tensor
from shardy_py.mpmd.passes.export.memory import (
    ARGUMENTS,
    LAYOUT,
    RESULTS,
    argument_attributes,
    result_attributes,
    set_fragment_attributes,
)
from shardy_py.support.identity import identity
from shardy_py.values import NoFields, define

AUTO, DEFAULT = "auto", "default"


class MarkInputOutputWithLayoutsPass(NoFields):
    """Give fragments the layouts of the arguments and results of the function that they use and make.

    A layout is a text, ``default`` where there is none, or ``auto``: the compiler of the function chooses. One tensor
    has one layout, also behind transfers between devices; a layout that is chosen for one user does not fit another.
    """

    name: ClassVar[str] = "mpmd-mark-input-output-with-layouts"

    def run(self, program: Program, context: PassContext) -> None:
        """Mark all functions.

        Raises:
            VerificationError: one tensor has two layouts.
        """
        for function in mpmd_functions(program):
            _Layouts(function, context.warnings).mark()


@define
class _Buffer:
    """A tensor with all that must have its layout.

    Args:
        layouts: The layouts that were asked for, each with the argument or result that asks.
        uses: The number of fragments and results that use it.
        is_default: Whether a transfer to or from the host forces the default.
    """

    layouts: list[tuple[str, str, int]] = field(factory=list)
    uses: int = 0
    is_default: bool = False

    def layout(self) -> str:
        """Return the layout: the one that is not chosen by a compiler, else its choice for a single user."""
        fixed = next((layout for layout, _, _ in self.layouts if layout != AUTO), None)
        if self.is_default:
            return DEFAULT
        if fixed is not None:
            return fixed
        return AUTO if self.uses <= 1 and (self.layouts or not self.uses) else DEFAULT


class _Layouts:
    """The layouts of the values of one function."""

    def __init__(self, function: Op, warnings: list[Diagnostic]) -> None:
        self._function = function
        self._warnings = warnings
        self._block = block_of(function)
        self._returned = return_of(function)
        self._buffers: dict[int, _Buffer] = {}

    def mark(self) -> None:
        """Write the layouts to the function and to its fragments."""
        function, block, returned = self._function, self._block, self._returned
        arguments = attributes_at(function, ARGUMENTS, len(block.arguments))
        results = attributes_at(function, RESULTS, len(returned.operands))
        for value, item in zip(block.arguments, arguments, strict=True):
            self._ask(value, item, "Arg")
        self._unite_transfers()
        for number, (value, item) in enumerate(zip(returned.operands, results, strict=True)):
            self._ask(value, item, "Result", number)
        self._check_all()
        self._check_transfers()
        self._write(block.arguments, arguments)
        self._write(returned.operands, results)
        set_attributes_at(function, ARGUMENTS, arguments)
        set_attributes_at(function, RESULTS, results)
        for op in block.ops:
            if is_fragment(op):
                operands, fragment_results = argument_attributes(op), result_attributes(op)
                self._write(op.operands, operands)
                self._write(op.results, fragment_results)
                set_fragment_attributes(op, operands, fragment_results)

    def _of(self, value: Value) -> _Buffer:
        return self._buffers.setdefault(value.id, _Buffer())

    def _ask(self, value: Value, attributes: dict[str, Any], kind: str, number: int | None = None) -> None:
        layout = str(attributes.get(LAYOUT, DEFAULT))
        self._of(value).layouts.append((layout, kind, value.index if number is None else number))

    def _unite_transfers(self) -> None:
        """Let both sides of a transfer be one buffer, and count users."""
        for op in self._block.ops:
            if op.name == TRANSFER:
                source, target = op.operands[0], op.results[0]
                if _is_with_host(op):
                    self._of(source).is_default = self._of(target).is_default = True
                else:
                    self._buffers[target.id] = self._of(source)
            else:
                for value in op.operands:
                    self._of(value).uses += 1

    def _check_all(self) -> None:
        problems = [item for buffer in self._distinct() for item in self._conflicts(buffer)]
        if problems:
            raise VerificationError(*problems)

    def _distinct(self) -> Iterable[_Buffer]:
        return {identity(buffer): buffer for buffer in self._buffers.values()}.values()

    def _conflicts(self, buffer: _Buffer) -> list[Diagnostic]:
        """Return an error for each layout that is not the first one asked for."""
        fixed = [item for item in buffer.layouts if item[0] != AUTO]
        hint = "give both one layout, or one of them auto"
        result = []
        for layout, kind, number in fixed[1:]:
            first, first_kind, first_number = fixed[0]
            if layout == first or buffer.is_default:
                continue
            if first_kind == "Arg":
                message = f"Arg #{first_number} is returned as result #{number}, but with incompatible layouts: "
                op, texts = self._function, (first, layout)
            else:
                message = (
                    f"{kind} #{number} is also returned as result #{first_number}, but with incompatible layouts: "
                )
                op, texts = self._returned, (layout, first)
            message += f'"{texts[0]}" vs. "{texts[1]}"'
            result.append(Diagnostic("incompatible-layouts", message, op.location, op.name, hint))
        return result

    def _check_transfers(self) -> None:
        """Warn of layouts that are lost in transfers to and from the host."""
        for op in self._block.ops:
            if op.name != TRANSFER or not _is_with_host(op):
                continue
            source = op.operands[0]
            lost = [item[0] for item in self._of(source).layouts if item[0] not in (AUTO, DEFAULT)]
            if lost:
                name, owner = ("Arg", self._function) if source.is_block_argument else ("Result", source.owning_op)
                message = (
                    f'{name} #{source.index} is used in a transfer op, but with a non-default layout: "{lost[0]}". '
                    "Forcing the layout to default."
                )
                self._warnings.append(Diagnostic("layout-of-transfer", message, owner.location, owner.name))

    def _write(self, values: Iterable[Value], attributes: list[dict[str, Any]]) -> None:
        for value, item in zip(values, attributes, strict=True):
            layout = self._of(value).layout()
            if layout == DEFAULT:
                item.pop(LAYOUT, None)
            else:
                item[LAYOUT] = layout


def _is_with_host(op: Op) -> bool:
    """Return whether a transfer goes to or from a mesh of hosts."""
    return any(is_host_mesh(require_mesh_tensor(value).mesh) for value in (op.operands[0], op.results[0]))
