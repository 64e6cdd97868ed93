"""Sources to xDSL modules, and xDSL's errors to ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError as NativeParseError
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError, VerificationError
from shardy_py.frontends.isolation import Reader, read_isolated
from shardy_py.frontends.sources import check_text, refuse_open_strings, source_bytes, source_text
from shardy_py.guards.error_texts import describe_error

_READER = Reader("shardy_py.frontends.xdsl.isolated_worker", "xDSL's parser", "module")


def make_context() -> Context:
    """Return a context with all dialects of xDSL, each loaded when it is met; others are allowed."""
    context = Context(allow_unregistered=True)
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    return context


def parse(source: str | Path, name: str, context: Any) -> ModuleOp:
    """Return the module in a text or file; see `parse_module`."""
    text, name = source_text(source, name)
    check_text(text.encode(), name)
    refuse_open_strings(text.encode(), name)
    try:
        module = Parser(context or make_context(), text, name).parse_module()
    except (NativeParseError, VerifyException) as error:
        raise ParseError(_diagnostic(error, name)) from None
    except Exception as error:
        # Parsers of attributes let out whatever their constructors raise.
        message = f"xDSL's parser fails: {describe_error(error)}"
        raise ParseError(Diagnostic("malformed-module", message, name)) from error
    _verify(module, name)
    return module


def parse_isolated(source: Path) -> ModuleOp:
    """Return the module in a file of unknown origin.

    xDSL is Python, and cannot do more than use up time and memory. So another process reads the text first; where that
    ends within its limits, this one reads the same text.
    """
    data, name = source_bytes(source, "-")
    read_isolated(_READER, data, name)
    return parse(data.decode(), name, None)


def load(source: Any) -> ModuleOp:
    """Return the module of a path, or the module itself; see `to_module`."""
    if isinstance(source, Path):
        return parse(source, "-", None)
    if isinstance(source, ModuleOp):
        _verify(source, "")
        return source
    raise UnsupportedError(
        Diagnostic(
            "unknown-input",
            f"an object of type {type(source).__name__} is not a module",
            hint="give an xdsl.dialects.builtin.ModuleOp, or the path of an .xdsl file",
        )
    )


def _verify(module: ModuleOp, name: str) -> None:
    try:
        _verify_with_calls(module)
    except VerifyException as error:
        raise VerificationError(Diagnostic("invalid-module", _reason(error), name)) from None


def _verify_with_calls(module: ModuleOp) -> None:
    """Run xDSL's verifiers, which look for functions no further than in the next op that xDSL does not know."""
    try:
        module.verify()
    except VerifyException:
        copy = module.clone()
        inside = [op for op in copy.walk() if isinstance(op, CallOp) and _is_in_unknown(op)]
        if not inside:
            raise
        for call in inside:
            call.detach()
            copy.body.block.add_op(call)
        copy.verify()


def _is_in_unknown(op: Operation) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, UnregisteredOp):
        around = around.parent_op()
    return around is not None


def _diagnostic(error: Exception, name: str) -> Diagnostic:
    span = getattr(error, "span", None)
    if span is None:
        return Diagnostic("malformed-module", _reason(error), name)
    before = span.input.content[: span.start]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Diagnostic("malformed-module", error.msg, f"{name}:{line}:{column}")  # type: ignore[attr-defined]


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
