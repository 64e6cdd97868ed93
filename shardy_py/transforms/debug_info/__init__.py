"""Upstream's debug information: where shardings came from, as attributes on the ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.ops import OpSemantics

if TYPE_CHECKING:
    from shardy_py.transforms.debug_info.recorder import DebugRecorder


def make_recorder(program: Program, semantics: OpSemantics, *, origins: bool, edges: bool) -> DebugRecorder | None:
    """Return the recorder of the debug information that a pass leaves, None if it leaves none.

    Args:
        program: The program.
        semantics: The definitions of its ops.
        origins: Whether to leave ``sdy.sharding_origins``: the annotation every axis goes back to.
        edges: Whether to leave ``sdy.propagation_edges``: how axes went through every op.
    """
    if not origins and not edges:
        return None
    from shardy_py.transforms.debug_info.recorder import DebugOptions, DebugRecorder

    return DebugRecorder(program, semantics, DebugOptions(origins, edges))
