"""The protocol of passes: frozen values with options as fields and a method that rewrites a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import attrs

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.tensor import TensorSharding

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.communication import CommunicationChange
    from shardy_py.ir.interfaces.local import LocalValue
    from shardy_py.transforms.constant_copies import CopyLog

NO_TEXT = {"text": False}
"""The metadata of a field of a pass that is not an option in the text of pipelines."""


@attrs.frozen
class PassContext:
    """The context of a pass: semantics of ops, and lists for warnings, snapshots and records.

    Args:
        semantics: Answers questions about ops.
        warnings: Where a pass adds what the user should know.
        dump: Writes a program, as it is now, to a file; None where there is nothing that could.
        copies: Where passes record the copies of constants that they make and merge; None where nobody asks.
        local_values: Where the conversion to a local program records what each value became, by the id of the value;
            None where nobody asks.
        local_collectives: Where it records the collectives that each op became, by the id of the op, in order; None
            where nobody asks.
        partial_values: Where passes on communication record the values that some ops use as partial results, by the id
            of the value, with the axes along which they are partial.
        communication: Where passes on communication record what they changed; None where nobody asks.
        sent_bytes: Where the bytes that a device sends are recorded before these passes run, as a lower bound; None
            where nobody asks.
    """

    semantics: OpSemantics
    warnings: list[Diagnostic] = attrs.field(factory=list)
    dump: Callable[[Program, Path], None] | None = None
    copies: CopyLog | None = None
    local_values: dict[int, LocalValue] | None = None
    local_collectives: dict[int, list[Op]] | None = None
    partial_values: dict[int, TensorSharding] = attrs.field(factory=dict)
    communication: list[CommunicationChange] | None = None
    sent_bytes: list[float] | None = None

    def write_snapshot(self, program: Program, directory: str, name: str, *, index: int | None = None) -> None:
        """Write a program to ``directory/NN.name.mlir``, or ``directory/name.mlir`` without an index.

        A file that cannot be written is a warning, as in the reference.

        Raises:
            OptionError: there is nothing that could write programs.
        """
        if self.dump is None:
            message = f"the snapshot {name} cannot be written to {directory}: the context has no dump function"
            raise OptionError(Diagnostic("no-dump", message, hint="give PassContext a dump function"))
        path = Path(directory, f"{name}.mlir" if index is None else f"{index:02}.{name}.mlir")
        try:
            self.dump(program, path)
        except OSError as error:
            reason = error.strerror or str(error)
            self.warnings.append(Diagnostic("snapshot", f"error when writing file {path}: {reason}"))


class Pass(Protocol):
    """A rewrite of a program; an attrs class whose fields are the options.

    A pass of a plugin may also have ``runs_before`` or ``runs_after``: the name of another pass, beside which it runs
    in every pipeline that has that one.

    Attributes:
        name: The name in pipelines, the same as upstream's, for example ``sdy-add-data-flow-edges``.
    """

    name: ClassVar[str]

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite ``program`` in place; shardings are read from and written to its table."""
        ...
