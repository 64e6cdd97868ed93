"""Programs of JAX to the StableHLO module that XLA makes of them on the way to Shardy: through HLO and back.

No device is needed and nothing is compiled. Objects of JAX are converted in this process, text and bytecode of other
origin in the process of XLA's parser, which they may end.
"""

from __future__ import annotations

import base64
from typing import Any

from jaxlib.mlir import ir, passmanager

from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir.context import make_context
from shardy_py.jax.hlo.parser_process import PARSER
from shardy_py.jax.like_jit import ConversionError
from shardy_py.jax.like_jit.inline_calls import inline_calls
from shardy_py.jax.like_jit.main_interface import copy_main_interface
from shardy_py.jax.modules import bytecode_of


def convert_native(module: ir.Module, *, isolated: bool, name: str) -> ir.Module:
    """Return the module that Shardy would get inside of `jax.jit`, for one in StableHLO.

    Args:
        module: The module; it stays as it is.
        isolated: Whether XLA runs in another process.
        name: What errors call the source.

    Raises:
        ConversionError: XLA cannot convert it.
    """
    code = bytecode_of(module)
    proto = _ask("lower", code, name) if isolated else _lower(code)
    converted = _module_of(proto, isolated=isolated, name=name)
    copy_main_interface(module, converted)
    return converted


def convert_hlo(proto: bytes, *, name: str) -> ir.Module:
    """Return the module that Shardy would get inside of `jax.jit`, for a serialized module of HLO.

    Raises:
        ConversionError: XLA cannot convert it.
    """
    return _module_of(proto, isolated=True, name=name)


def _module_of(proto: bytes, *, isolated: bool, name: str) -> ir.Module:
    """Return the StableHLO module of a serialized module of HLO, with its calls inlined and no unused functions."""
    try:
        inlined = inline_calls(proto)
    except (ValueError, KeyError, IndexError) as error:
        raise ConversionError(f"its HLO module cannot be read: {error!r}") from None
    code = _ask("raise", inlined, name) if isolated else _raise(inlined)
    try:
        module = ir.Module.parse(code, make_context())
        with module.context:
            passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
    except ir.MLIRError as error:
        raise ConversionError(f"MLIR refuses what XLA makes of it: {_first_line(error)}") from None
    return module


def _lower(code: bytes) -> bytes:
    """Return a serialized module of HLO for one in StableHLO."""
    try:
        from jaxlib import _jax

        computation = _jax.mlir.mlir_module_to_xla_computation(code, use_tuple_args=False, return_tuple=False)
        proto: bytes = computation.as_serialized_hlo_module_proto()
    except Exception as error:  # what the bindings raise has no common base
        raise ConversionError(f"XLA cannot convert it to HLO: {_first_line(error)}") from None
    return proto


def _raise(proto: bytes) -> bytes:
    """Return the StableHLO bytecode of a serialized module of HLO."""
    try:
        from jaxlib import _jax

        code: bytes = _jax.mlir.hlo_to_stablehlo(proto)
    except Exception as error:  # what the bindings raise has no common base
        raise ConversionError(f"XLA cannot convert its HLO module to StableHLO: {_first_line(error)}") from None
    return code


def _ask(command: str, data: bytes, name: str) -> bytes:
    """Convert a module in the process of XLA's parser."""
    try:
        answer = PARSER.ask(command, data, name)
    except ShardyError as error:
        raise ConversionError(error.diagnostics[0].message) from None
    if "error" in answer:
        raise ConversionError(f"XLA cannot convert it: {answer['error'].strip().splitlines()[0]}")
    return base64.b64decode(answer["module"])


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
