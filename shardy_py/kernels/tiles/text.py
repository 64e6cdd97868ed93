"""Reading modules of kernels at the level of tiles."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import builtin, math, tensor
from xdsl.ir import Dialect
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.kernels.dialect.arith_and_llvm import ARITH
from shardy_py.kernels.dialect.text import XLA_GPU, LineParser, readable_text
from shardy_py.kernels.tiles.dialect import XTILE
from shardy_py.kernels.tiles.tensor_ops import STABLEHLO, TENSOR_OPS


def parse_tile_module(text: str, name: str = "<tiles>") -> builtin.ModuleOp:
    """Return the module that a text at the level of tiles says, in either spelling; its ops have their lines.

    Args:
        text: The text.
        name: The name of its file, for errors.

    Raises:
        ParseError: it is none.
    """
    context = Context()
    others = [op for op in ARITH.operations if op.name not in TENSOR_OPS]
    arith = Dialect("arith", [*others, *TENSOR_OPS.values()], [*ARITH.attributes])
    for dialect in (builtin.Builtin, arith, math.Math, tensor.Tensor, XLA_GPU, STABLEHLO, XTILE):
        context.load_dialect(dialect)
    try:
        return LineParser(context, readable_text(text), name).parse_module()
    except (XdslParseError, VerifyException) as error:
        hint = "write the ops as 'shardy emit --level tile' prints them"
        raise ParseError(Diagnostic("malformed-kernel", str(error).strip(), hint=hint)) from None
