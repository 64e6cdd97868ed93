"""The frontend of PyTorch: exported programs, graph modules with metadata, and ``.pt2`` files.

PyTorch is imported when a program of it comes, not before.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.torch.frontend.packed import PackedProgram
from shardy_py.values import frozen

__all__ = ["TORCH", "TorchFrontend"]

_SUFFIX = ".pt2"
_READER = "shardy_py.torch.frontend.isolated_worker"


@frozen
class TorchFrontend(Frontend):
    """PyTorch: an ``ExportedProgram``, a ``GraphModule`` whose nodes have fake tensors, and ``.pt2`` files.

    The op graph has one op per call, named after its overload: ``aten.linear.default``. Parameters and buffers are
    arguments with their fully qualified names. The exported program itself does not change; what propagation found
    is in `shardy_py.torch.parallel`.
    """

    name: str = "torch"

    def accepts(self, source: object) -> bool:
        """Return whether this is a program of PyTorch."""
        if isinstance(source, Path):
            return source.suffix == _SUFFIX
        if isinstance(source, PackedProgram):
            return True
        torch = sys.modules.get("torch")
        if torch is None or isinstance(source, (str, bytes, bytearray)):
            return False
        from shardy_py.torch.modules.joint import JointTrace

        return isinstance(source, (torch.export.ExportedProgram, torch.fx.GraphModule, JointTrace))

    def import_program(self, source: Any) -> Program:
        """Return the op graph of an exported program or a graph module.

        Raises:
            UnsupportedError: PyTorch is missing, a size is dynamic, or a node cannot be imported.
            ParseError: the file is no exported program.
        """
        from shardy_py.torch.frontend.importer import import_program
        from shardy_py.torch.frontend.load import load
        from shardy_py.torch.frontend.packing import unpack

        if isinstance(source, PackedProgram):
            return unpack(source, frontend=self)
        native = load(source) if isinstance(source, Path) else source
        return import_program(native, frontend=self)

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return the op graph of a file as another process has read it, without its tensors."""
        if not isinstance(source, Path):
            return super().isolate(source, name=name)
        from shardy_py.frontends.isolation import Reader, read_isolated
        from shardy_py.frontends.sources import source_bytes

        data, name = source_bytes(source, name)
        return PackedProgram(read_isolated(Reader(_READER, "PyTorch", "file"), data, name))

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the redistribution of a DTensor; "" where placements cannot say the sharding."""
        from shardy_py.torch.parallel.placements import placements_of

        try:
            placements = placements_of(sharding, mesh)
        except UnsupportedError:
            return ""
        return f"x = x.redistribute(placements=[{', '.join(map(str, placements))}])"

    def write_back(self, program: Program) -> Program:
        """Return the op graph; PyTorch has no place for shardings in its own."""
        return program

    def print_text(self, source: Any) -> str:
        """Return an op graph in MLIR's generic form, or the code of an exported program."""
        from shardy_py.ir.graph.printing import print_program

        return print_program(source) if isinstance(source, Program) else str(source)

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the fully qualified names of parameters and buffers, and the names of inputs."""
        return program.origin.argument_names

    def argument_aliases(self, program: Program, function: Op) -> Mapping[str, int]:
        """Return the further names of tied parameters and buffers."""
        return {name: number for number, item in enumerate(program.origin.arguments) for name in item.aliases}

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of parameters and inputs, and those of the nodes."""
        from shardy_py.torch.frontend.names import printed_names

        return printed_names(program)

    def op_scope(self, program: Program, op: Op) -> str:
        """Return the path of the module that calls an op, such as ``layers.0.mlp``, or ""."""
        path: str = program.origin.module_paths.get(op.id, "")
        return path

    def extend_registry(self, program: Program, registry: Any) -> Any:
        """Return a registry extended by the pointwise ops of the program, as PyTorch tags them."""
        from shardy_py.torch.frontend.semantics import extend

        return extend(program, registry)

    def to_bytes(self, source: Any) -> bytes:
        """Return the op graph of a source as bytes, without its tensors."""
        from shardy_py.torch.frontend.packing import pack

        if isinstance(source, PackedProgram):
            return source.data
        return pack(source if isinstance(source, Program) else self.import_program(source)).data

    def from_bytes(self, data: bytes, *, name: str = "-") -> Any:
        """Return the op graph in bytes; reading it needs no PyTorch."""
        return PackedProgram(data)


TORCH = TorchFrontend()
"""The frontend; it holds nothing."""
