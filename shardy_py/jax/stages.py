"""The frontend of JAX's stages: the results of tracing, lowering or exporting a function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shardy_py.frontends.mlir import MLIR, import_module, to_module
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.jax.modules import bytecode_of, is_stage
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen
class JaxFrontend(Frontend):
    """JAX: a ``Lowered``, a ``Traced`` or an ``Exported``; the op graph is that of a copy of its module.

    A jitted function is accepted, too, to say that it needs arguments. MLIR writes the copy back.
    """

    name: str = "jax"

    def accepts(self, source: object) -> bool:
        """Return whether the source has a module, or can be lowered to one."""
        return not isinstance(source, (str, bytes, bytearray, Path)) and is_stage(source)

    def import_program(self, source: Any) -> Program:
        """Return the op graph of a copy of the module."""
        return import_module(to_module(source))

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the line of JAX."""
        return MLIR.constraint_code(sharding, mesh)

    def write_back(self, program: Program) -> Any:
        """Update the copy and return it."""
        return MLIR.write_back(program)

    def print_text(self, source: Any) -> str:
        """Return the module as text."""
        return MLIR.print_text(source)

    def to_bytes(self, source: Any) -> bytes:
        """Return the module as bytecode, which has the locations of its ops."""
        return bytecode_of(to_module(source))

    def from_bytes(self, data: bytes, *, name: str = "-") -> bytes:
        """Return the bytecode, which the MLIR frontend accepts."""
        return data

    def parse_text(self, text: str, *, name: str = "-") -> Any:
        """Return the module in a text."""
        return MLIR.parse_text(text, name=name)


JAX = JaxFrontend()
"""The frontend; it holds nothing."""
