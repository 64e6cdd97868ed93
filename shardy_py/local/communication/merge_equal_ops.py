"""Equal ops on equal operands: the first one serves the users of all."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar

from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics, Pure
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.explicit_steps import erase_unused
from shardy_py.local.communication.routes import STEPS
from shardy_py.values import NoFields

_MOST_IN_BODY = 2
"""The ops in the body of a collective that combines: one that adds, for example, and the end."""
_NO_MATTER = frozenset(("channel_handle", "sdy.sharding", "mhlo.frontend_attributes"))


def is_step(op: Op) -> bool:
    """Return whether an op is a collective of Shardy."""
    return op.name in STEPS


class MergeEqualOpsPass(NoFields):
    """Compute and send equal things once, and nothing that no op uses: ops without effects, and collectives."""

    name: ClassVar[str] = "merge-equal-ops"

    def run(self, program: Program, context: PassContext) -> None:
        """Merge equal ops in all blocks, and erase unused ones."""
        erase_unused(program, context.semantics)
        for function in program.functions.values():
            for region in function.regions:
                for block in region.blocks:
                    merge_equal_ops(block, context.semantics)


def merge_equal_ops(block: Block, semantics: OpSemantics, is_repeatable: Callable[[Op], bool] = is_step) -> None:
    """Merge the equal ops of a block, and of the blocks inside.

    Args:
        block: The block.
        semantics: What is known about ops.
        is_repeatable: Whether an op gives the same each time although it is not pure.
    """
    first: dict[Hashable, Op] = {}
    similar: dict[Hashable, Op | None] = {}
    """The first op on the same operands, until it is among those above."""
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                merge_equal_ops(inner, semantics, is_repeatable)
        look = op.name, *(value.id for value in op.operands)
        earlier = similar.setdefault(look, op)
        if earlier is op:
            continue
        if earlier is not None:
            first[_key(earlier, semantics, is_repeatable)] = earlier
            similar[look] = None
        key = _key(op, semantics, is_repeatable)
        if key is None:
            continue
        equal_op = first.setdefault(key, op)
        if equal_op is not op:
            for value, same in zip(op.results, equal_op.results, strict=True):
                value.replace_all_uses_with(same)
            op.erase()


def _key(op: Op, semantics: OpSemantics, is_repeatable: Callable[[Op], bool]) -> Hashable | None:
    """Return what equal ops have in common; None for an op that has to stay."""
    if not op.results or not (is_repeatable(op) or (not op.regions and _may_be_merged(op, semantics))):
        return None
    body = tuple((inner.name, len(inner.operands)) for inner in op.walk() if inner is not op)
    if len(body) > _MOST_IN_BODY:
        return None
    attributes = sorted((name, str(value)) for name, value in op.attributes.items() if name not in _NO_MATTER)
    operands = tuple(value.id for value in op.operands)
    shardings = tuple(op.program.sharding(value) for value in op.results)
    return op.name, operands, tuple(str(value.type) for value in op.results), tuple(attributes), shardings, body


def _may_be_merged(op: Op, semantics: OpSemantics) -> bool:
    if op.name == CONSTANT:
        return True
    if semantics.get_data_flow(op) is not None:
        # A barrier keeps copies apart on purpose.
        return False
    return semantics.has_trait(op, Pure) or semantics.has_trait(op, ConstantLike)
