"""Checks of Shardy's attributes on the ops of an xDSL module, which xDSL does not know."""

from __future__ import annotations

from attrs import evolve

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.verify_shardings import wrong_attributes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.verify import verify_mesh


def check_attributes(op: Op) -> None:
    """Check that attributes of Shardy hold what they are for.

    Raises:
        ParseError: one is missing, holds something else, or is a mesh that is not valid.
    """
    problems = [
        Diagnostic("malformed-attribute", f"{name} holds {value}, which is no {expected}", op.location, op.name)
        for name, value, expected in wrong_attributes(op)
    ]
    mesh = op.attributes.get("mesh") if op.name == MESH else None
    if isinstance(mesh, Mesh):
        problems += [evolve(item, location=op.location, op=op.name) for item in verify_mesh(mesh)]
    if problems:
        raise ParseError(*problems)
