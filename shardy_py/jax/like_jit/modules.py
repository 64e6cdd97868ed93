"""The frontend of modules that are already in the form that `jax.jit` propagates, such as those of other processes."""

from __future__ import annotations

from typing import Any

from attrs import field

from shardy_py.frontends.mlir import MLIR, import_module, parse_module
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen
class JitModule:
    """A module that was converted already, as MLIR.

    Args:
        content: The module, in bytecode or as text.
        name: What locations call its source.
    """

    content: bytes = field(repr=False)
    name: str = "-"


@frozen
class JitFrontend(Frontend):
    """Modules that were converted already; the MLIR frontend writes them back."""

    name: str = "jit"

    def accepts(self, source: object) -> bool:
        """Return whether this is such a module."""
        return isinstance(source, JitModule)

    def import_program(self, source: Any) -> Program:
        """Return the op graph of the module."""
        return import_module(parse_module(source.content, name=source.name), name=source.name)

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the line of JAX."""
        return MLIR.constraint_code(sharding, mesh)

    def write_back(self, program: Program) -> Any:
        """Update the module and return it."""
        return MLIR.write_back(program)

    def print_text(self, source: Any) -> str:
        """Return the module as text."""
        module = parse_module(source.content, name=source.name) if isinstance(source, JitModule) else source
        return MLIR.print_text(module)

    def to_bytes(self, source: Any) -> bytes:
        """Return the module, with the locations of its ops."""
        if isinstance(source, JitModule):
            return source.content
        from shardy_py.jax.modules import bytecode_of

        return bytecode_of(source)

    def from_bytes(self, data: bytes, *, name: str = "-") -> JitModule:
        """Return the module in bytecode or text."""
        return JitModule(data, name)


JIT = JitFrontend()
"""The frontend; it holds nothing."""
