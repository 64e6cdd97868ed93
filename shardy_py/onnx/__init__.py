"""The frontend of ONNX: models as protocol buffers and ``.onnx`` files.

The package onnx is imported when a model comes, not before; onnxruntime when a local program runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shardy_py.errors import require_library
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.values import frozen

__all__ = ["ONNX", "OnnxFrontend"]

_SUFFIX = ".onnx"


@frozen
class OnnxFrontend(Frontend):
    """ONNX: a ``ModelProto``, and ``.onnx`` files.

    The op graph has one op per node, named after its operator: ``onnx.MatMul``. The initializers are arguments with
    their names, behind the inputs of the model. Shardings go back as ONNX's own specification for several devices,
    ``ShardingSpecProto`` of each node, and as metadata, from which they are read again.
    """

    name: str = "onnx"

    def accepts(self, source: object) -> bool:
        """Return whether this is a model of ONNX, a local one of this package, or the path of one."""
        if isinstance(source, Path):
            return source.suffix == _SUFFIX
        onnx = sys.modules.get("onnx")
        return onnx is not None and isinstance(source, onnx.ModelProto)

    def import_program(self, source: Any) -> Program:
        """Return the op graph of a model.

        Raises:
            UnsupportedError: the package onnx is missing, or the type of a tensor is not known.
            ParseError: the file is not a model.
        """
        require_library("onnx", purpose="reading a model of ONNX needs", extra="onnx")
        from shardy_py.onnx.importer import import_model
        from shardy_py.onnx.load import load

        return import_model(load(source), frontend=self)

    def with_sizes(self, source: Any, sizes: Mapping[str, int]) -> Any:
        """Return a model with numbers for its symbols (``batch``), or for dimensions of inputs (``x.0``)."""
        require_library("onnx", purpose="reading a model of ONNX needs", extra="onnx")
        from shardy_py.onnx.load import load
        from shardy_py.onnx.symbols import with_sizes

        return with_sizes(load(source), sizes)

    def write_back(self, program: Program) -> Any:
        """Return a copy of the model with the shardings of its tensors."""
        from shardy_py.onnx.specifications import annotated_model

        return annotated_model(program)

    def print_text(self, source: Any) -> str:
        """Return a model in ONNX's own text form; large tensors are left out."""
        from shardy_py.onnx.load import model_text

        return model_text(source)

    def to_bytes(self, source: Any) -> bytes:
        """Return the serialized model."""
        from shardy_py.onnx.load import load

        return bytes(load(source).SerializeToString(deterministic=True))

    def from_bytes(self, data: bytes, *, name: str = "-") -> Any:
        """Return the model of its serialized form."""
        require_library("onnx", purpose="reading a model of ONNX needs", extra="onnx")
        from shardy_py.onnx.load import parse

        return parse(data, name)

    def write_file(self, native: Any, path: Path) -> None:
        """Write the serialized model."""
        path.write_bytes(self.to_bytes(native))

    def write_local(self, program: Program) -> Any:
        """Return the model of one device; collectives are nodes of the domain ``shardy.collective``."""
        from shardy_py.onnx.write_local import local_model

        return local_model(program)

    def argument_arrays(self, program: Program) -> Mapping[int, Any]:
        """Return the initializers."""
        from shardy_py.onnx.load import initializer_arrays

        names = list(program.origin.argument_names)
        arrays = initializer_arrays(program.origin.model)
        return {number: arrays[name] for number, name in enumerate(names) if name in arrays}

    def run_local(self, native: Any, device_count: int, shards: Sequence[Any]) -> Sequence[Any]:
        """Run the model of a device on simulated devices, by onnxruntime between collectives."""
        require_library("onnxruntime", purpose="running a local model of ONNX needs", extra="onnx")
        from shardy_py.onnx.run_local import run_local

        return run_local(native, device_count, shards)

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of tensors."""
        names = {value.id: PrintedName(name, name) for name, value in program.origin.values.items()}
        return {**super().printed_names(program), **names}

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names of inputs and initializers."""
        names: Sequence[str] = program.origin.argument_names
        return names


ONNX = OnnxFrontend()
"""The frontend; it holds nothing."""
