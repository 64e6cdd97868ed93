"""Names in the places where they have a meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION, NAMED_TENSOR, TOPOLOGY
from shardy_py.values import frozen

_WORDS = {NAMED_COMPUTATION: "Named computations", NAMED_TENSOR: "Named tensors"}


@frozen
class ValidateNamedOpsInMpmdFuncPass:
    """Report named computations and tensors outside of functions with a topology: their names have no effect.

    Args:
        fail_on_misplaced_names: Whether they are an error.
        of_public_functions: Whether only public functions are visited; private ones may still be inlined.
    """

    name: ClassVar[str] = "mpmd-validate-named-ops-in-mpmd-func"

    fail_on_misplaced_names: bool = False
    of_public_functions: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all of them.

        Raises:
            VerificationError: there is one, and the option is set.
        """
        report(self._problems(program), context, fails=self.fail_on_misplaced_names)

    def _problems(self, program: Program) -> Iterator[Diagnostic]:
        for op in ops_named(program, NAMED_COMPUTATION, NAMED_TENSOR):
            if not _has_meaning(op) and not (self.of_public_functions and _is_private(op.parent_op)):
                message = f"{_WORDS[op.name]} can only be nested in mpmd functions or mpmd ops."
                hint = "give the function a topology, or inline it into one that has one"
                yield Diagnostic("misplaced-name", message, op.location, op.name, hint)


def _has_meaning(op: Op) -> bool:
    parent = op.parent_op
    if parent is None:
        return False
    return parent.name.startswith("mpmd.") or (parent.name == FUNCTION and TOPOLOGY in parent.attributes)


def _is_private(parent: Op | None) -> bool:
    """Return whether an op is not a public function: it is within other ops, or a function that may be inlined."""
    if parent is None or parent.name != FUNCTION:
        return True
    return parent.attributes.get("sym_visibility") == "private"


def report(problems: Iterable[Diagnostic], context: PassContext, *, fails: bool) -> None:
    """Raise all problems as one error, or warn of each.

    Args:
        problems: The problems.
        context: Collects the warnings.
        fails: Whether a problem is an error.

    Raises:
        VerificationError: there are problems, and they are errors.
    """
    diagnostics = tuple(problems)
    if diagnostics and fails:
        raise VerificationError(*diagnostics)
    context.warnings.extend(diagnostics)
