"""Parallel plans: the styles of linear and embedding layers, for ``parallelize_module``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.op_names import ALL_GATHER, RETURN
from shardy_py.sharding.mesh import Mesh
from shardy_py.targets.reshard_ops import RESHARDS
from shardy_py.targets.torch.placements import Placement, placements_of
from shardy_py.values import frozen

Style = Literal["colwise", "rowwise"]
_LINEAR, _EMBEDDING = "aten.linear.default", "aten.embedding.default"
_THROUGH = frozenset(("aten.t.default", "aten.transpose.int", "aten.alias.default", "aten.clone.default"))


@frozen
class PlanEntry:
    """The style of one module.

    Args:
        style: ``colwise`` or ``rowwise``.
        input: The placement of the input, where it is not the style's own.
        output: The placement of the output, where it is not the style's own.
    """

    style: Style
    input: Placement | None = None
    output: Placement | None = None

    def __str__(self) -> str:
        given = [("input_layouts", self.input), ("output_layouts", self.output)]
        arguments = ", ".join(f"{name}={value}" for name, value in given if value is not None)
        return f"{'Colwise' if self.style == 'colwise' else 'Rowwise'}Parallel({arguments})"


def make_plan(program: Program, explicit: Program, *, axis: str | None = None) -> dict[str, PlanEntry]:
    """Return the style of each linear and embedding layer whose weight is sharded.

    Args:
        program: The propagated program.
        explicit: The same with its collectives; see `shardy_py.targets.torch.explicit_program`.
        axis: The dimension of the mesh; by default the only one along which weights of such layers are sharded.

    Raises:
        OptionError: there is no such dimension, or weights are sharded along several and none is given.
    """
    layers = list(_layers(program))
    mesh = next(iter(program.meshes.values()), Mesh())
    placements = {name: placements_of(program.shardings.get(weight.id), mesh, name=name) for name, weight, _ in layers}
    number = _axis_number([item.name for item in mesh.axes], placements, axis)
    if number is None:
        return {}
    gathered = _gathered(explicit)
    plan = {}
    for name, _, op in layers:
        placement = placements[name][number]
        if placement.kind == "shard":
            is_gathered = op.results[0].id in gathered
            plan[name.rpartition(".")[0]] = _entry(op.name == _EMBEDDING, placement.dim, is_gathered=is_gathered)
    return plan


def _entry(is_embedding: bool, dim: int, *, is_gathered: bool) -> PlanEntry:
    replicated = Placement()
    if is_embedding:
        if dim == 0:
            return PlanEntry("rowwise", input=replicated)
        return PlanEntry("colwise", output=replicated if is_gathered else None)
    if dim == 0:
        return PlanEntry("colwise", output=replicated if is_gathered else None)
    return PlanEntry("rowwise")


def _layers(program: Program) -> Iterator[tuple[str, Value, Op]]:
    """Yield the name, the value and the op of the weight of each layer, each weight once."""
    names = program.origin.argument_names
    main = program.functions["main"]
    for name, value in zip(names, main.regions[0].blocks[0].arguments, strict=True):
        found = _layer_of(value)
        if found is not None and name.endswith("weight"):
            yield name, value, found


def _layer_of(value: Value) -> Op | None:
    for user, operand in value.uses:
        if (user.name, operand) in ((_LINEAR, 1), (_EMBEDDING, 0)):
            return user
        if user.name in _THROUGH | RESHARDS.keys():
            found = _layer_of(user.results[0])
            if found is not None:
                return found
    return None


def _axis_number(names: list[str], placements: Mapping[str, tuple[Placement, ...]], axis: str | None) -> int | None:
    if axis is not None:
        if axis not in names:
            hint = f"its dimensions are {', '.join(names)}"
            raise OptionError(Diagnostic("unknown-axis", f"the mesh has no dimension {axis!r}", hint=hint))
        return names.index(axis)
    used = sorted({n for found in placements.values() for n, item in enumerate(found) if item.kind == "shard"})
    if len(used) > 1:
        among = ", ".join(names[number] for number in used)
        hint = "say which one: parallelize_plan(axis=...)"
        raise OptionError(Diagnostic("several-axes", f"weights are sharded along {among}", hint=hint))
    return used[0] if used else None


def _gathered(explicit: Program) -> frozenset[int]:
    """Return the ids of the values that are gathered or returned, behind ops that keep their shards."""
    found: set[int] = set()
    for op in explicit.walk():
        if op.name in (ALL_GATHER, RETURN):
            found.update(value.id for value in op.operands)
    return frozenset(found)


def to_parallel_styles(plan: Mapping[str, PlanEntry]) -> dict[str, Any]:
    """Return a plan in PyTorch's classes, for ``parallelize_module``; ``torch`` must be installed."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    def layout(placement: Placement | None) -> Any:
        if placement is None:
            return None
        return Shard(placement.dim) if placement.kind == "shard" else Replicate()

    styles = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel}
    return {
        name: styles[entry.style](
            **{
                key: layout(placement)
                for key, placement in (("input_layouts", entry.input), ("output_layouts", entry.output))
                if placement is not None
            }
        )
        for name, entry in plan.items()
    }
