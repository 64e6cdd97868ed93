"""Constants that are made as they are needed, where they would be made in shards and moved."""

from __future__ import annotations

from typing import Any, ClassVar

from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.torch.frontend.types import DTYPES
from shardy_py.values import NoFields

_FILLED: dict[str, float | None] = {
    "aten.zeros_like.default": 0,
    "aten.zero.default": 0,
    # What such a tensor holds is not said.
    "aten.empty_like.default": 0,
    "aten.ones_like.default": 1,
    "aten.full_like.default": None,
}
"""Ops that take only sizes and a type from their operand, to what they fill with; None is said by an attribute."""


class RemakeConstantsPass(NoFields):
    """Make a constant again in place of a reshard of it.

    Every device can make all of a constant: `arange`, a mask of ones, zeros of the size of another tensor.
    """

    name: ClassVar[str] = "remake-constants"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the reshards of constants."""
        for reshard in list(ops_named(program, RESHARD)):
            source = reshard.operands[0].defining_op
            constant = None if source is None else _remade(program, source, context.semantics)
            if constant is None or source is None or reshard.parent is None:
                continue
            reshard.parent.insert_before(reshard, constant)
            sharding = program.shardings.get(reshard.results[0].id)
            if sharding is not None:
                program.shardings[constant.results[0].id] = sharding
            else:
                program.shardings.pop(constant.results[0].id, None)
            reshard.results[0].replace_all_uses_with(constant.results[0])
            reshard.erase()
            if not source.results[0].uses:
                source.erase()


def _remade(program: Program, source: Op, semantics: OpSemantics) -> Op | None:
    """Return an op that makes the same constant, in no block yet, or None where an op makes something else."""
    if not source.operands and len(source.results) == 1 and semantics.has_trait(source, ConstantLike):
        return clone_op(source, {})
    type_ = source.results[0].type if source.results else None
    if source.name not in _FILLED or not isinstance(type_, TensorType):
        return None
    fill = _FILLED[source.name]
    attributes: dict[str, Any] = {
        "size": tuple(type_.shape),
        "fill_value": source.attributes["fill_value"] if fill is None else fill,
        "dtype": f"torch.{DTYPES[type_.element_type]}",
        "device": source.attributes.get("device") or "cpu",
        "operand_names": (),
    }
    return Op(program, "aten.full.default", (), [type_], attributes)
