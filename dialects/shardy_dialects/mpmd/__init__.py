"""The ops of the mpmd dialect: programs over several meshes. MLIR's own verifiers check them."""

from __future__ import annotations

from shardy_dialects.mpmd.data_flow import FragmentDataFlow, LoopCarriedDataFlow, NamedBodyDataFlow
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.plugins import (
    Dialect,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    RecursiveMemoryEffects,
    ReturnLike,
    hookimpl,
)
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import pointwise_rule
from shardy_py.support.late_patterns import late_pattern

mpmd = Dialect("mpmd")

_TENSOR = late_pattern(r"tensor<((?:(?:\d+|\?)x)*)([^<>]+|complex<[^<>]+>)>")
_MESH_NAME = late_pattern(r'^"((?:[^"\\]|\\.)*)"')
_MESH_OF_TOPOLOGY = late_pattern(r'<"((?:[^"\\]|\\.)*)"\s*:\s*(<\[[^\]]*\](?:,\s*device_ids=\[[^\]]*\])?>)')


@mpmd.type("!mpmd.mesh_tensor")
def mesh_tensor_shape(type_: OpaqueType) -> TensorType | None:
    """Return the global shape of a tensor on a mesh."""
    match = _TENSOR.search(type_.parameters)
    if match is None:
        return None
    sizes = [None if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return TensorType(tuple(sizes), match[2])


def transfer_rule(op: Op) -> OpShardingRule | None:
    """Tie both sides of a transfer together where their meshes are equal; else they have no axes in common."""
    meshes = dict(_MESH_OF_TOPOLOGY.findall(_topology_text(op)))
    sides = [meshes.get(_mesh_name(value.type.text)) for value in (op.operands[0], op.results[0])]
    return pointwise_rule(op) if sides[0] is not None and sides[0] == sides[1] else None


def _mesh_name(text: str) -> str:
    match = _MESH_NAME.match(text.partition("<")[2])
    return match[1] if match else ""


def _topology_text(op: Op) -> str:
    """Return the text of the topology of the function around an op."""
    parent = op.parent_op
    while parent is not None and "topology" not in parent.attributes:
        parent = parent.parent_op
    return "" if parent is None else str(parent.attributes["topology"])


REGION_OP_TRAITS = (IsolatedFromAbove, RecursiveMemoryEffects)
mpmd.op("mpmd.named_computation", traits=REGION_OP_TRAITS, data_flow=NamedBodyDataFlow())
mpmd.op("mpmd.fragment", traits=REGION_OP_TRAITS, data_flow=FragmentDataFlow())
mpmd.op("mpmd.for", traits=(RecursiveMemoryEffects,), data_flow=LoopCarriedDataFlow())

mpmd.op("mpmd.named_tensor", traits=[Pure], rule=pointwise_rule)
mpmd.op("mpmd.assign", traits=[Pure], rule=pointwise_rule)
mpmd.op("mpmd.unassign", traits=[Pure], rule=pointwise_rule)
mpmd.op("mpmd.transfer", traits=[Pure], rule=transfer_rule, contextual=_topology_text)
mpmd.op("mpmd.broadcast", traits=[Pure], rule=pointwise_rule)
mpmd.op("mpmd.reduce", traits=[Pure], rule=pointwise_rule)
mpmd.op("mpmd.call", traits=[Pure])
mpmd.op("mpmd.fragment_call", traits=[Pure])
mpmd.op("mpmd.return", traits=[IsTerminator, ReturnLike, Pure])


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialect mpmd."""
    return [mpmd]
