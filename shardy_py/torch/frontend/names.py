"""Names of values: those of parameters, inputs and nodes."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.ir.graph.printing import value_names
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import PrintedName


def printed_names(program: Program) -> Mapping[int, PrintedName]:
    """Return the names of values by id: a node's own, with ``#number`` for one of several results.

    Values that passes have made have names as in MLIR.
    """
    known = program.origin.node_names
    return {
        value.id: PrintedName(known.get(value.id, name), known.get(value.id))
        for value, name in value_names(program).items()
    }
