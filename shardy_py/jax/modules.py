"""Modules of JAX's objects: functions, their stages, and exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, ParseError, UnsupportedError
from shardy_py.frontends.mlir.portable_artifacts import module_of_bytecode
from shardy_py.support.arguments import shown

_SAY_ARGUMENTS = "give example arguments: propagate(f, args=(x, w)); or what f.lower(x, w) or f.trace(x, w) returns"


def is_stage(source: object) -> bool:
    """Return whether an object is a ``Lowered``, a ``Traced``, a jitted function or an ``Exported``."""
    return _is_exported(source) or hasattr(source, "compiler_ir") or callable(getattr(source, "lower", None))


def is_function(source: object) -> bool:
    """Return whether an object is a jitted function, which needs arguments to be lowered."""
    return callable(source) and callable(getattr(source, "trace", None)) and not hasattr(source, "compiler_ir")


def module_of_stage(source: Any) -> Any:
    """Return a native module of its own for an object of JAX; see `shared_module_of_stage`."""
    module = shared_module_of_stage(source)
    if _is_exported(source):
        return module
    return type(module).parse(bytecode_of(module), module.context)


def bytecode_of(module: Any) -> bytes:
    """Return a native module as bytecode."""
    buffer = BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def hlo_computation(module: Any) -> Any:
    """Return XLA's own form of a native module: an ``XlaComputation``, as ``Lowered.compiler_ir("hlo")`` does."""
    from jaxlib import _jax

    return _jax.mlir.mlir_module_to_xla_computation(bytecode_of(module), use_tuple_args=False)


def hlo_text(computation: Any, *, debug_info: bool) -> str:
    """Return the text of XLA's own form of a module.

    Args:
        computation: What `hlo_computation` returns.
        debug_info: Whether the text has metadata, such as locations.
    """
    try:
        from jaxlib._hlo import HloPrintOptions
    except ImportError:
        from jaxlib._jax import HloPrintOptions
    options = HloPrintOptions.short_parsable()
    options.print_metadata = debug_info
    text: str = computation.as_hlo_module().to_string(options)
    return text


def shared_module_of_stage(source: Any) -> Any:
    """Return the native module of an object of JAX, which is JAX's own.

    Raises:
        UnsupportedError: it is propagated already, it is a function that still needs arguments, or it was exported for
            several platforms or with symbolic dimensions.
        OptionError: JAX cannot lower it.
    """
    _refuse_propagated(source)
    if _is_exported(source):
        return _module_of_exported(source)
    if is_function(source):
        message = "a jitted function has no module before its arguments are known"
        raise UnsupportedError(Diagnostic("arguments-needed", message, hint=_SAY_ARGUMENTS))
    if not hasattr(source, "compiler_ir"):
        source = lower_traced(source)
    return source.compiler_ir("stablehlo")


def lower_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the ``Lowered`` of a jitted function for example arguments: arrays or `jax.ShapeDtypeStruct`.

    Raises:
        OptionError: it is not a jitted function, or JAX cannot trace or lower it for these arguments.
        UnsupportedError: it is a function of `sdy.jit`.
    """
    _refuse_propagated(function)
    if not is_function(function):
        is_plain = callable(function) and not is_stage(function)
        message = f"args and kwargs are for a jitted function, not for a {type(function).__name__}"
        hint = "wrap the function: jax.jit(f)" if is_plain else "leave them out"
        raise OptionError(Diagnostic("unexpected-arguments", message, hint=hint))
    try:
        traced = function.trace(*arguments, **keywords)
    except Exception as error:
        raise _not_lowered(error) from error
    return lower_traced(traced)


def _refuse_propagated(source: Any) -> None:
    """Check that an object is JAX's, and not what `sdy.jit` makes, which has the methods of JAX's and can explain.

    Raises:
        UnsupportedError: it is not.
    """
    if callable(getattr(source, "explain", None)):
        message = f"{shown(source)} is propagated already"
        hint = "f.lower(*arguments).result of sdy.jit(f) is what propagate returns; else give jax.jit of the function"
        raise UnsupportedError(Diagnostic("already-propagated", message, hint=hint))


def lower_traced(traced: Any) -> Any:
    """Return the ``Lowered`` of a ``Traced``; where all meshes are abstract, for the platform JAX runs on.

    Raises:
        OptionError: JAX cannot lower it.
    """
    import jax

    try:
        return traced.lower()
    except ValueError as error:
        if "lowering_platforms" not in str(error):
            raise _not_lowered(error) from error
    except Exception as error:
        raise _not_lowered(error) from error
    try:
        return traced.lower(lowering_platforms=(jax.default_backend(),))
    except Exception as error:
        raise _not_lowered(error) from error


def _not_lowered(error: Exception) -> OptionError:
    reason = str(error).split("\n--------------------\n", 1)[0]
    return OptionError(Diagnostic("not-lowered", f"JAX cannot lower the function: {type(error).__name__}: {reason}"))


def _is_exported(source: object) -> bool:
    return hasattr(source, "mlir_module_serialized") and hasattr(source, "platforms")


def _module_of_exported(exported: Any) -> Any:
    platforms = tuple(exported.platforms)
    if len(platforms) > 1:
        message = f"the function was exported for several platforms: {', '.join(platforms)}"
        hint = f"export it for one: jax.export.export(f, platforms=[{platforms[0]!r}])"
        raise UnsupportedError(Diagnostic("several-platforms", message, hint=hint))
    symbolic = [
        f"argument {number} has the shape ({', '.join(map(str, aval.shape))})"
        for number, aval in enumerate(exported.in_avals)
        if any(not isinstance(size, int) for size in aval.shape)
    ]
    if symbolic:
        message = f"the function was exported with symbolic dimensions: {'; '.join(symbolic)}"
        raise UnsupportedError(Diagnostic("symbolic-dimensions", message, hint="export it for shapes of numbers"))
    return module_of_bytecode(bytes(exported.mlir_module_serialized))


def module_of_serialized(data: bytes, name: str = "-") -> Any:
    """Return the module in what ``Exported.serialize`` returned.

    Raises:
        ParseError: it cannot be read.
        UnsupportedError: JAX or its library for these bytes is missing, or see `module_of_stage`.
    """
    try:
        from jax import export

        exported = export.deserialize(bytearray(data))
    except ImportError as error:
        message = f"reading serialized exports needs JAX and flatbuffers: {error}"
        raise UnsupportedError(Diagnostic("no-jax", message, hint="pip install 'shardy_py[jax]'")) from None
    except Exception as error:  # flatbuffers raise whatever the bytes lead to
        message = f"this is no serialized export that JAX can read: {error}"
        raise ParseError(Diagnostic("malformed-module", message, name)) from None
    return _module_of_exported(exported)
