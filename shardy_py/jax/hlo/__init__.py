"""HLO modules in: converted to StableHLO, with the layouts of the entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir import MLIR, import_module, parse_module
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.late_patterns import late_pattern
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.layout.shape import AnyShape

__all__ = ["HloFrontend", "HloModule", "import_hlo"]

_SUFFIXES = (".hlo", ".hlo.txt")
_TEXT = late_pattern(r"(?:\s++|//[^\n]*+\n|/\*.*?\*/)*+HloModule\s", re.DOTALL)
_HEAD = late_pattern(r"^\s*HloModule\s.*", re.MULTILINE)
_PARTITIONS = late_pattern(r"\bnum_partitions=(\d+)")
_BYTES = late_pattern(_TEXT.pattern.encode(), re.DOTALL)


@frozen(eq=False)
class HloModule:
    """A module read from HLO text.

    Args:
        name: The name of the module.
        stablehlo: The module as StableHLO, in MLIR's bytecode; `shardy_py.propagate` takes it.
        program: The op graph.
        parameters: The shapes of the parameters of the entry computation, with their layouts.
        result: The shape of its result, with its layouts.
        text: The module in XLA's canonical text.
    """

    name: str
    stablehlo: bytes
    program: Program
    parameters: tuple[AnyShape, ...]
    result: AnyShape
    text: str = field(repr=False)


def import_hlo(source: str | Path, *, name: str = "-") -> HloModule:
    """Return the module in HLO text.

    Args:
        source: The text, or the path of a file with it.
        name: What locations call the text; a path is called by its own name.

    Raises:
        ParseError: the text cannot be read, or is not valid HLO.
        UnsupportedError: jaxlib is missing.
    """
    from shardy_py.jax.hlo.load import load

    return load(source, name)


@frozen
class HloFrontend(Frontend):
    """HLO: text that begins with ``HloModule``, files that end in ``.hlo``, and what `import_hlo` returns.

    The op graph is that of the StableHLO module, which the MLIR frontend writes back.
    """

    name: str = "hlo"

    def accepts(self, source: object) -> bool:
        """Return whether this is HLO."""
        if isinstance(source, Path):
            return source.name.endswith(_SUFFIXES)
        if isinstance(source, (str, bytes)):
            return _begins_with_keyword(source)
        return isinstance(source, HloModule)

    def import_program(self, source: Any) -> Program:
        """Return the op graph of the module as StableHLO.

        Raises:
            UnsupportedError: the module is that of one device already.
        """
        name = str(source) if isinstance(source, Path) else "-"
        module = self._module(source)
        _refuse_partitioned(module.text, name)
        return import_module(parse_module(module.stablehlo, name=name), name=name)

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return a text as XLA's process has converted it, and MLIR's process has read what that wrote."""
        if isinstance(source, bytes):
            source = source.decode(errors="replace")
        if not isinstance(source, (str, Path)):
            return super().isolate(source, name=name)
        from shardy_py.jax.hlo.load import load

        return load(source, name, isolated=True)

    def serialize(self, source: Any) -> bytes:
        """Return the module as XLA serializes it.

        Raises:
            ParseError: the text cannot be read, or is not valid HLO.
            UnsupportedError: the module is that of one device already, or jaxlib is missing.
        """
        from shardy_py.frontends.sources import source_text
        from shardy_py.jax.hlo.load import serialize

        name = self.source_name(source) or "-"
        if isinstance(source, HloModule):
            source = source.text
        text, name = source_text(source.decode(errors="replace") if isinstance(source, bytes) else source, name)
        _refuse_partitioned(text, name)
        return serialize(text, name)

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the line of JAX."""
        return MLIR.constraint_code(sharding, mesh)

    def write_back(self, program: Program) -> Any:
        """Return the StableHLO module."""
        return MLIR.write_back(program)

    def print_text(self, source: Any) -> str:
        """Return the module as StableHLO, in MLIR's text."""
        return str(parse_module(self._module(source).stablehlo))

    def parse_text(self, text: str, *, name: str = "-") -> HloModule:
        """Return the module in HLO text."""
        return import_hlo(text, name=name)

    def to_bytes(self, source: Any) -> bytes:
        """Return the StableHLO module as bytecode."""
        return self._module(source).stablehlo

    def from_bytes(self, data: bytes, *, name: str = "-") -> Any:
        """Return the bytecode, which the MLIR frontend accepts."""
        return data

    def _module(self, source: Any) -> HloModule:
        if isinstance(source, HloModule):
            return source
        return import_hlo(source.decode(errors="replace") if isinstance(source, bytes) else source)


HLO = HloFrontend()
"""The frontend; it holds nothing."""


def _refuse_partitioned(text: str, name: str) -> None:
    """Refuse the text of a compiled program, whose shapes are those of shards and whose shardings are of whole tensors.

    Raises:
        UnsupportedError: it is scheduled, and for several devices.
    """
    line = _HEAD.search(text)
    head = line[0] if line else ""
    count = _PARTITIONS.search(head)
    if "is_scheduled=true" in head and count is not None and int(count[1]) > 1:
        message = f"the module is what each of {count[1]} devices runs: the compiler has partitioned it"
        hint = "give the program before that: lowered.as_text(dialect='hlo') of JAX, in place of compiled.as_text()"
        raise UnsupportedError(Diagnostic("partitioned-module", message, name, hint=hint))


def _begins_with_keyword(source: str | bytes) -> bool:
    """Return whether the first word outside of comments is that of an HLO module."""
    if isinstance(source, bytes):
        return _BYTES.match(source) is not None
    return _TEXT.match(source) is not None
