"""Portable artifacts of StableHLO, alone or in a serialized export of JAX."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, ParseError

BYTECODE = b"ML\xefR"
"""The magic number of MLIR's bytecode."""
_PORTABLE = b"StableHLO_v"


def is_portable_artifact(data: bytes) -> bool:
    """Return whether bytes are a portable artifact of StableHLO."""
    return data.startswith(BYTECODE) and data[len(BYTECODE) + 1 :].startswith(_PORTABLE)


def is_serialized_export(data: bytes) -> bool:
    """Return whether bytes are what ``Exported.serialize`` returns: a portable artifact among other data."""
    return not data.startswith(BYTECODE) and BYTECODE in data


def module_of_bytecode(data: bytes, name: str = "-") -> Any:
    """Return the module in a portable artifact: VHLO, which is brought to StableHLO.

    Raises:
        ParseError: it cannot be read.
    """
    from jaxlib.mlir.dialects import stablehlo

    from shardy_py.frontends.mlir.context import make_context

    try:
        return stablehlo.deserialize_portable_artifact(make_context(), data)
    except Exception as error:  # what the bindings raise has no common base
        message = f"the portable artifact cannot be read: {error}"
        hint = "it may have been written by a newer StableHLO; upgrade jaxlib"
        raise ParseError(Diagnostic("malformed-module", message, name, hint=hint)) from None
