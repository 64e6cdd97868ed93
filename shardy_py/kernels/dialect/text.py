"""Modules of kernels as text: reading both spellings of the dialect, writing either."""

from __future__ import annotations

import re
from bisect import bisect_left
from io import StringIO
from typing import Literal

from attrs import evolve
from xdsl.context import Context
from xdsl.dialects import builtin, cf, complex, dlti, func, math, scf, tensor, vector
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.guards.error_texts import describe_error
from shardy_py.kernels.dialect import forall, memory_ops, ops, tile_ops
from shardy_py.kernels.dialect.arith_and_llvm import ARITH, LLVM
from shardy_py.kernels.dialect.constants import special_floats_as_bytes
from shardy_py.kernels.dialect.gpu import GPU
from shardy_py.kernels.dialect.nvvm import NVVM
from shardy_py.kernels.dialect.types import IndexingMapAttr, LaunchGridAttr
from shardy_py.kernels.locations import file_location

DialectSpelling = Literal["xla_gpu", "xla"]
"""The names of the ops: those of 2025 (``xla_gpu.loop``, ``floordiv``) or today's (``xla.loop``, ``/``)."""

XLA_GPU = Dialect(
    "xla_gpu",
    [
        memory_ops.AllocateSharedOp,
        ops.ApplyIndexingOp,
        memory_ops.AtomicRMWOp,
        tile_ops.InsertOp,
        ops.LoopOp,
        tile_ops.MaterializeOp,
        memory_ops.PredicatedExtractOp,
        memory_ops.PredicatedInsertOp,
        ops.PureCallOp,
        tile_ops.ReduceOp,
        tile_ops.ReindexOp,
        memory_ops.ShuffleReduceOp,
        memory_ops.SyncThreadsOp,
        ops.YieldOp,
    ],
    [IndexingMapAttr, LaunchGridAttr, tile_ops.IndexedVectorType],
)
# Dialects of xDSL, with what it lacks.
_SCF = Dialect("scf", [*scf.Scf.operations, forall.ForallOp, forall.InParallelOp], [*scf.Scf.attributes])
_TENSOR = Dialect("tensor", [*tensor.Tensor.operations, forall.ParallelInsertSliceOp], [*tensor.Tensor.attributes])

_MOVED = (
    *("apply_indexing", "atomic_rmw", "indexing_map", "loop"),
    *("predicated_extract", "predicated_insert", "pure_call", "yield"),
)
_TODAY = re.compile(rf"(?<![\w.])xla\.({'|'.join(_MOVED)})\b")
_OURS = re.compile(rf"(?<![\w.])xla_gpu\.({'|'.join(_MOVED)})\b")
_MAP = re.compile(r'indexing_map<"[^"]*">')
_BARE_MAP = re.compile(r"indexing_map<\s*(\((?:->|[^<>\"])*)>")
# Several strings are one, whatever stands between them.
_LONG_MAP = re.compile(r'indexing_map<\s*"[^"]*"')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WIDE_INTEGER = re.compile(r"(?<![\w%@^#!.$])[su]?i(\d{8,})\b")
_MOST_BITS = (1 << 24) - 1
_SIMPLIFIED = re.compile(r",\s*is_simplified\s*:\s*(?:true|false)\b")


def make_context() -> Context:
    """Return a context that knows all dialects of kernels."""
    context = Context()
    for dialect in (
        builtin.Builtin,
        ARITH,
        cf.Cf,
        complex.Complex,
        dlti.DLTI,
        func.Func,
        LLVM,
        math.Math,
        NVVM,
        _SCF,
        _TENSOR,
        vector.Vector,
        GPU,
        XLA_GPU,
    ):
        context.load_dialect(dialect)
    return context


def readable_text(text: str, name: str = "") -> str:
    """Return a text in today's or the document's spelling as the parser here reads it.

    Args:
        text: The text.
        name: The name of its file, for errors.

    Raises:
        ParseError: a string does not end in its line.
    """
    # Maps once stood there without quotes, and said whether they are simplified.
    text = _BARE_MAP.sub(r'indexing_map<"\1">', _SIMPLIFIED.sub("", special_floats_as_bytes(text)))
    # The lines behind a string that is longer than one keep their numbers.
    text = _LONG_MAP.sub(lambda match: match[0].replace("\n", " ") + "\n" * match[0].count("\n"), text)
    _check_strings(text, name)
    _check_widths(text, name)
    return _TODAY.sub(r"xla_gpu.\1", text).replace("#xla.indexing_map<", "#xla_gpu.indexing_map<")


def _check_strings(text: str, name: str) -> None:
    """Check that each string ends in its line: the lexer of xDSL takes very long for one that does not.

    Raises:
        ParseError: one does not.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count('"') % 2 and _STRING.sub("", line).partition("//")[0].count('"'):
            message = f"a string of line {number} does not end in the line"
            hint = "close it there, or cut it into several strings"
            raise ParseError(Diagnostic("malformed-kernel", message, name, hint=hint))


def _check_widths(text: str, name: str) -> None:
    """Check the bits of integer types: xDSL computes the largest number of each type that it reads.

    Raises:
        ParseError: one has more than MLIR allows.
    """
    # Strings may name anything; they end in their line.
    code = _STRING.sub('""', text) if _WIDE_INTEGER.search(text) else ""
    for match in _WIDE_INTEGER.finditer(code):
        if len(match[1]) > len(str(_MOST_BITS)) or int(match[1]) > _MOST_BITS:
            line = code.count("\n", 0, match.start()) + 1
            message = f"integers have at most {_MOST_BITS} bits"
            raise ParseError(Diagnostic("malformed-kernel", message, f"{name}:{line}" if name else ""))


def located(error: ParseError, location: str) -> ParseError:
    """Return an error about a text in a module, such as that of an indexing map, with the location of the text."""
    return ParseError(*(item if item.location else evolve(item, location=location) for item in error.diagnostics))


class LineParser(Parser):
    """A parser that gives each op the location of its line.

    Args:
        context: The dialects.
        text: The text.
        name: The name of its file.
    """

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self._name = name
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def parse_operation(self) -> Operation:
        """Read an op, and locate it where its text begins."""
        line = bisect_left(self._ends, self._current_token.span.start) + 1
        try:
            op = super().parse_operation()
        except (XdslParseError, VerifyException, RecursionError, MemoryError):
            raise
        except ParseError as error:
            raise located(error, f"{self._name}:{line}") from None
        except Exception as error:
            # So xDSL ends at some malformed texts, such as one with a label twice.
            message = f"the parser ends with {describe_error(error)}"
            raise ParseError(Diagnostic("malformed-kernel", message, f"{self._name}:{line}")) from None
        op.location = file_location(self._name, line)
        return op


def parse_kernel_module(text: str) -> builtin.ModuleOp:
    """Return the module that a text says, in either spelling.

    Raises:
        ParseError: it is none.
    """
    try:
        return Parser(make_context(), readable_text(text)).parse_module()
    except (XdslParseError, VerifyException) as error:
        hint = "write the ops in the document's form or in generic form"
        raise ParseError(Diagnostic("malformed-kernel", str(error).strip(), hint=hint)) from None


def print_kernel_module(
    module: builtin.ModuleOp, *, spelling: DialectSpelling = "xla_gpu", generic: bool = False
) -> str:
    """Return the text of a module; `parse_kernel_module` gives the module back.

    Args:
        module: The module.
        spelling: The names of the ops and the division.
        generic: Whether all ops are written in MLIR's generic form.
    """
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    text = stream.getvalue() + "\n"
    if spelling == "xla_gpu":
        return text
    text = _MAP.sub(lambda match: match[0].replace(" floordiv ", " / "), text)
    return _OURS.sub(r"xla.\1", text).replace("#xla_gpu.indexing_map<", "#xla.indexing_map<")
