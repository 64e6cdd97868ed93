"""Parts of shardings over meshes that HLO cannot express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_names import PROPAGATION_BARRIER, SHARDING_GROUP
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.walk import ops_named
from shardy_py.sharding.tensor import TensorSharding


def find_losses(program: Program) -> tuple[Diagnostic, ...]:
    """Return one warning that lists what gets lost, or none."""
    losses = Counter(loss for sharding in program.shardings.values() for loss in _losses_of(sharding))
    groups = len(ops_named(program, SHARDING_GROUP))
    barriers = len(ops_named(program, PROPAGATION_BARRIER))
    rules = sum(RULE_ATTRIBUTE in op.attributes for op in program.walk())
    losses.update({"members of sharding groups": groups, "propagation barriers": barriers, "sharding rules": rules})
    counts = {mesh.total_size for mesh in program.meshes.values() if mesh.axes}
    if len(counts) > 1:
        losses["meshes of different numbers of devices"] = len(counts)
    parts = [f"{count} {loss}" for loss, count in sorted(losses.items()) if count]
    if not parts:
        return ()
    message = f"GSPMD has no words for what the module says here: {', '.join(parts)}"
    return (Diagnostic("no-gspmd-form", message, hint="a compiler that knows Shardy takes the module as it is"),)


def _losses_of(sharding: TensorSharding) -> Iterator[str]:
    if any(not dim.is_closed for dim in sharding.dim_shardings):
        yield "shardings with open dimensions"
    if any(dim.priority is not None for dim in sharding.dim_shardings):
        yield "shardings with priorities"
    if sharding.replicated_axes:
        yield "shardings with replicated axes"
    if sharding.unreduced_axes and sharding.reduction_op != "sum":
        yield f"shardings reduced by {sharding.reduction_op}"
