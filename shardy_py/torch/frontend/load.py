"""Exported programs from files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.torch.frontend.output_types import register_unknown_types


def load(path: Path) -> Any:
    """Return the exported program in a ``.pt2`` file.

    Raises:
        ParseError: the file is missing, or holds no exported program.
        UnsupportedError: PyTorch is missing.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ParseError(Diagnostic("unreadable-file", str(error.strerror or error), str(path))) from error
    return load_bytes(data, str(path))


def load_bytes(data: bytes, name: str) -> Any:
    """Return the exported program in the bytes of a ``.pt2`` file; errors as of `load`.

    Args:
        data: The bytes.
        name: What errors call them.
    """
    torch = import_torch(name)
    try:
        register_unknown_types(data)
        return torch.export.load(io.BytesIO(data))
    except Exception as error:
        message = (
            f"PyTorch cannot read an exported program from it: {str(error).splitlines()[0] if str(error) else error!r}"
        )
        hint = "write the file by torch.export.save, with the same release of PyTorch"
        raise ParseError(Diagnostic("invalid-pt2", message, name, hint=hint)) from error


def import_torch(name: str) -> Any:
    """Return the package ``torch``.

    Raises:
        UnsupportedError: it is missing.
    """
    try:
        import torch
    except ImportError as error:
        hint = "pip install 'shardy_py[torch]'"
        raise UnsupportedError(Diagnostic("missing-torch", "PyTorch is not installed", name, hint=hint)) from error
    return torch
