"""Functions of a module as text while they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, Operation, SSAValue

from shardy_py.kernels.lower.literals import Target, scalar_text, type_text

Handler = Callable[["FunctionWriter", Any], None]
"""The writer of an op."""


@final
class ModuleWriter:
    """The text of a module: declarations, globals, functions.

    Args:
        target: The processor.
        index_width: The bits of an index.
    """

    def __init__(self, target: Target, index_width: int) -> None:
        self.target = target
        self.index_width = index_width
        self.globals: list[str] = []
        self.functions: list[str] = []
        self._declared: dict[str, str] = {}

    def type(self, type_: Attribute) -> str:
        """Return a type as text."""
        return type_text(type_, self.target, self.index_width)

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        """Note a function that is defined elsewhere."""
        self._declared.setdefault(name, f"declare {result} @{name}({', '.join(arguments)})")

    @property
    def text(self) -> str:
        """The whole module."""
        target = self.target
        head = []
        if target.layout:
            head.append(f'target datalayout = "{target.layout}"')
        if target.triple:
            head.append(f'target triple = "{target.triple}"')
        declared = [self._declared[name] for name in sorted(self._declared)]
        parts = ["\n".join(part) for part in (head, self.globals) if part]
        return "\n\n".join([*parts, *self.functions, *(["\n".join(declared)] if declared else [])]) + "\n"


@final
class FunctionWriter:
    """The text of one function.

    Args:
        module: The module that it is in.
    """

    def __init__(self, module: ModuleWriter) -> None:
        self.module = module
        self.lines: list[str] = []
        self._names: dict[SSAValue, str] = {}
        self._labels: dict[Block, str] = {}
        self._count = 0

    @property
    def target(self) -> Target:
        """The processor."""
        return self.module.target

    def type(self, value: SSAValue | Attribute) -> str:
        """Return a type, or that of a value, as text."""
        return self.module.type(value.type if isinstance(value, SSAValue) else value)

    def get(self, value: SSAValue) -> str:
        """Return a value: its name, or the constant that it is."""
        return self._names[value]

    def typed(self, value: SSAValue) -> str:
        """Return a value behind its type."""
        return f"{self.type(value)} {self.get(value)}"

    def bind(self, value: SSAValue, text: str) -> None:
        """Let a value be written as a text."""
        self._names[value] = text

    def fresh(self) -> str:
        """Return a name that nothing has."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def new(self, text: str) -> str:
        """Write an instruction and return its result."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def let(self, result: SSAValue, text: str) -> None:
        """Write an instruction whose result is that of an op."""
        self.bind(result, self.new(text))

    def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]], attributes: str = "") -> str:
        """Call a function that is defined elsewhere, and return its result.

        Args:
            name: Its name.
            result: The type of its result.
            arguments: Types and values.
            attributes: What stands behind ``call``.
        """
        self.module.declare(name, result, [type_ for type_, _ in arguments])
        passed = ", ".join(f"{type_} {value}" for type_, value in arguments)
        return self.new(f"call {attributes}{result} @{name}({passed})")

    def label(self, block: Block) -> str:
        """Return the name of a block."""
        if block not in self._labels:
            self._labels[block] = f"b{len(self._labels)}"
        return self._labels[block]

    def number(self, value: Any, type_: Attribute) -> str:
        """Return a number of a type as text."""
        return scalar_text(value, type_, self.target)


def is_short(value: SSAValue | Attribute, target: Target) -> bool:
    """Return whether a value is a ``bf16`` that the processor does not know."""
    type_ = value.type if isinstance(value, SSAValue) else value
    return isinstance(type_, builtin.BFloat16Type) and not target.has_bfloat


def operands(writer: FunctionWriter, op: Operation) -> list[str]:
    """Return the operands of an op as text."""
    return [writer.get(value) for value in op.operands]
