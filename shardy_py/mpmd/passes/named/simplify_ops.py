"""The place where dialects simplify their ops, before these get meshes."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.transforms.plugin_passes import with_plugin_passes
from shardy_py.values import NoFields


class SimplifyOpsPass(NoFields):
    """Run the passes with which dialects simplify their ops: those of plugins with ``runs_after`` this name.

    Each op outside of names needs a mesh, and perhaps transfers; what folds needs none.
    """

    name: ClassVar[str] = "mpmd-simplify-ops"

    def run(self, program: Program, context: PassContext) -> None:
        """Run the passes of the registry, if there is one."""
        if isinstance(context.semantics, Registry):
            for item in with_plugin_passes([self], context.semantics):
                if item is not self:
                    item.run(program, context)
