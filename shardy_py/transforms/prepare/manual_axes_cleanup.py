"""Make manual computations name all their manual axes in every sharding, and sort them.

Mirrors manual_axes_cleanup.cc::ManualAxesCleanupPass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from attrs import evolve

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, REGION_RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference, sort_and_merge
from shardy_py.sharding.manual_axes import common_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.transforms.sharding_walker import IN_SHARDINGS, OUT_SHARDINGS, edit_manual_computation
from shardy_py.values import NoFields


class ManualAxesCleanupPass(NoFields):
    """Add manual axes that a sharding does not use to its replicated axes; sort the manual axes as in the mesh.

    After that, nothing can be sharded along a manual axis by propagation.
    """

    name: ClassVar[str] = "sdy-manual-axes-cleanup"

    def run(self, program: Program, context: PassContext) -> None:
        """Clean up all manual computations.

        Raises:
            VerificationError: a manual computation has manual axes but no shardings, so that nobody knows their mesh,
                and a body that is not empty; or its shardings are over different meshes.
        """
        meshes = program.meshes
        problems: list[Diagnostic] = []
        for op in ops_named(program, MANUAL_COMPUTATION):
            problem = _find_problem(op)
            if problem is not None:
                problems.append(problem)
            elif _shardings(op, IN_SHARDINGS) or _shardings(op, OUT_SHARDINGS):
                with edit_manual_computation(program, op, context.semantics):
                    _clean_up(op, meshes)
        if problems:
            raise VerificationError(*problems)


def _find_problem(op: Op) -> Diagnostic | None:
    if _shardings(op, IN_SHARDINGS) or _shardings(op, OUT_SHARDINGS) or not op.attributes["manual_axes"].names:
        return None
    first = op.regions[0].block.first
    if first is None or first.name == REGION_RETURN:
        return None
    return Diagnostic(
        "unknown-manual-mesh",
        "op has manual_axes when there are no in/out shardings and the body is not empty",
        location=op.location,
        op=op.name,
        hint="nothing says which mesh the axes belong to: leave the axes out, or pass a tensor in or out",
    )


def _clean_up(op: Op, meshes: Mapping[str, Mesh]) -> None:
    inputs, outputs = _shardings(op, IN_SHARDINGS), _shardings(op, OUT_SHARDINGS)
    reference = common_mesh((*inputs, *outputs), meshes)
    if reference is None:
        message = "the in/out shardings of a manual computation are over different meshes"
        raise VerificationError(Diagnostic("mesh-mismatch", message, op.location, op.name))
    mesh = _resolve(reference, meshes)
    names = sorted(op.attributes["manual_axes"].names, key=lambda name: mesh.sort_key(AxisRef(name)))
    op.attributes["manual_axes"] = ManualAxes(tuple(names))
    manual = tuple([AxisRef(axis) for axis in names])
    for name, shardings, values in ((IN_SHARDINGS, inputs, op.operands), (OUT_SHARDINGS, outputs, op.results)):
        changed = tuple(
            [
                _add_unused(sharding, manual, reference, mesh) if isinstance(value.type, TensorType) else sharding
                for sharding, value in zip(shardings, values, strict=True)
            ]
        )
        if changed != shardings:
            op.attributes[name] = TensorShardingPerValue(changed)


@lru_cache(maxsize=8192)
def _add_unused(
    sharding: TensorSharding, manual: tuple[AxisRef, ...], reference: str | Mesh, mesh: Mesh
) -> TensorSharding:
    """Return a sharding with the manual axes it does not use among the replicated ones, over the common mesh."""
    unused = axis_set_difference(manual, tuple(sharding.axes()), mesh)
    if not unused:
        return sharding
    replicated = sort_and_merge((*sharding.replicated_axes, *unused), mesh)
    return evolve(sharding, mesh=reference, replicated_axes=replicated)


def _resolve(reference: str | Mesh, meshes: Mapping[str, Mesh]) -> Mesh:
    return reference if isinstance(reference, Mesh) else meshes[reference]


def _shardings(op: Op, name: str) -> tuple[TensorSharding, ...]:
    held: Any = op.attributes.get(name)
    return held.shardings if held is not None else ()
