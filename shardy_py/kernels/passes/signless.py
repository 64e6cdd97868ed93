"""Integers without a sign in their type."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import builtin, func
from xdsl.ir import Attribute

from shardy_py.kernels.passes.base import KernelContext, retype_values, walk_ops
from shardy_py.values import frozen


@frozen
class Signless:
    """Drop the sign of integer types: from here on it is the ops that read a sign, or none."""

    name: str = "convert-to-signless"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if isinstance(op, func.FuncOp):
                type_ = op.function_type
                inputs, outputs = map(signless, type_.inputs), map(signless, type_.outputs)
                op.properties["function_type"] = builtin.FunctionType.from_lists(list(inputs), list(outputs))
            retype_values(op, signless)


def signless(type_: Attribute) -> Attribute:
    """Return a type whose integers have no sign."""
    if isinstance(type_, builtin.IntegerType):
        return builtin.IntegerType(type_.width.data)
    if isinstance(type_, builtin.TensorType):
        return builtin.TensorType(signless(type_.element_type), type_.get_shape(), type_.encoding)
    if isinstance(type_, builtin.VectorType):
        element: Any = signless(type_.element_type)
        return builtin.VectorType(element, type_.get_shape())
    return type_
