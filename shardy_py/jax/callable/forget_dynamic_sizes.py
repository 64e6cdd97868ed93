"""Leave out sizes that are set while the program runs, where no op reads elements beyond them."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import Elementwise, OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen

_SET_SIZE = "stablehlo.set_dimension_size"


@frozen
class ForgetDynamicSizesPass:
    """Remove ``stablehlo.set_dimension_size`` where only elementwise ops follow: modules of JAX have static shapes.

    The elements beyond the size that is set mean nothing, so they may have any value; a reduction would leave them out,
    and cannot be done so.
    """

    name: ClassVar[str] = "jax-forget-dynamic-sizes"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace such an op by its operand.

        Raises:
            UnsupportedError: an op that is not elementwise follows.
        """
        for op in ops_named(program, _SET_SIZE):
            other = _other_user(op, context.semantics)
            if other is not None:
                message = f"modules of JAX have static sizes only, and {other.name} would have to know the size set"
                hint = "select the elements with a mask instead"
                raise UnsupportedError(Diagnostic("dynamic-size", message, op.location, op.name, hint))
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _other_user(op: Op, semantics: OpSemantics) -> Op | None:
    """Return the first op behind this one that is neither elementwise nor the end of the program, or None."""
    seen: set[int] = set()
    waiting = [op]
    while waiting:
        current = waiting.pop()
        for user in (user for result in current.results for user in result.users):
            if user.id in seen or user.name == _SET_SIZE:
                continue
            seen.add(user.id)
            if user.name != RETURN and not semantics.has_trait(user, Elementwise):
                return user
            waiting.append(user)
    return None
