"""Functions of XLA's library of intrinsics, such as ``@xla.exp.f64``, which modules declare without a body."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import builtin, func
from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import UnsupportedError
from shardy_py.kernels.elemental.scalars import make_op

_TRUNCATION = "xla.fptrunc"


def define_intrinsics(functions: Iterable[Operation]) -> None:
    """Give functions of the library their bodies: each is one op of ``math``, or rounds a float to a shorter type.

    Args:
        functions: The functions of a module; others, and those that have a body, stay as they are.
    """
    for function in functions:
        if isinstance(function, func.FuncOp) and not function.body.blocks:
            _define(function)


def _define(function: func.FuncOp) -> None:
    """Give a function its body, if its name and its types are those of the library."""
    inputs, outputs = list(function.function_type.inputs), list(function.function_type.outputs)
    op_name = _op_name(function.sym_name.data, inputs, outputs)
    if op_name is None:
        return
    block = Block(arg_types=inputs)
    try:
        op = make_op(op_name, list(block.args), outputs[0], {})
        op.verify()
    except (UnsupportedError, VerifyException):
        return
    block.add_ops([op, func.ReturnOp(*op.results)])
    for item in block.ops:
        item.location = function.location
    function.body.add_block(block)


def _op_name(name: str, inputs: list[Attribute], outputs: list[Attribute]) -> str | None:
    """Return the op that a function of the library is, or None where it is another one."""
    library, _, rest = name.partition(".")
    short, _, types = rest.partition(".")
    if library != "xla" or not inputs or len(outputs) != 1:
        return None
    if name == f"{_TRUNCATION}.{_type_name(inputs[0])}.to.{_type_name(outputs[0])}":
        return "arith.truncf"
    return f"math.{short}" if types == ".".join(map(_type_name, inputs)) else None


def _type_name(type_: Attribute) -> str:
    """Return a type as it stands in names: ``f64``, or ``v4f64`` for a vector."""
    if isinstance(type_, builtin.VectorType):
        return f"v{'x'.join(map(str, type_.get_shape()))}{type_.element_type}"
    return str(type_)
