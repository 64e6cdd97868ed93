"""The plan of the reshards around one op, as a value: it depends on the rule, the shardings and the sizes only.

Mirrors insert_explicit_reshards.cc::processOp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import field

from shardy_py.sharding.axis_lists import axis_set_difference, sort_and_merge
from shardy_py.sharding.manual_axes import common_mesh, resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.transforms.finish.reshards.common_axes import find_common_axes
from shardy_py.transforms.finish.reshards.projection import OpProjection
from shardy_py.values import frozen

Shardings = tuple[TensorSharding | None, ...]


class Mode(Enum):
    """The extent of resharding around an op.

    ``FULL`` whatever the op needs, ``RESHAPE`` the same for an op that keeps the row-major order of its elements,
    ``MINIMAL`` nothing, ``CONTRACTION`` the result of a contraction where that is cheaper than resharding an operand.
    ``PARTITIONER`` is ``FULL`` with the choices of XLA's partitioner, for estimates of what it will do, and ``JOINED``
    the same for a concatenation or a sort.
    """

    FULL = "full"
    RESHAPE = "reshape"
    MINIMAL = "minimal"
    CONTRACTION = "contraction"
    PARTITIONER = "partitioner"
    JOINED = "joined"

    @property
    def is_full(self) -> bool:
        """True if the op ends up with compatible shardings."""
        return self in (Mode.FULL, Mode.RESHAPE, Mode.PARTITIONER, Mode.JOINED)


@frozen(cache_hash=True)
class PlanKey:
    """The input of a plan, besides the meshes.

    Args:
        rule: The rule of the op.
        operands: The shardings of the operands, seen through propagation barriers.
        results: The shardings of the results.
        operand_sizes: The number of elements of every operand; 0 where it is unknown.
        result_sizes: The number of elements of every result; 0 where it is unknown.
        mode: The extent of resharding.
        own_operands: The shardings of the operands as they are, barriers or not.
        reduction: The combiner of the op's reductions; None where the sharding of each result gives it.
    """

    rule: OpShardingRule
    operands: Shardings
    results: Shardings
    operand_sizes: tuple[int, ...]
    result_sizes: tuple[int, ...]
    mode: Mode
    own_operands: Shardings
    reduction: ReductionOp | None = None


@frozen
class Plan:
    """The reshards and all-reduces around an op.

    Args:
        mesh: The mesh of the new shardings.
        operands: The sharding to bring each operand to, None where it stays.
        results: The sharding the op gives each result before it is brought to the one it had, None where it stays.
        reduced_axes: The axes along which every result is all-reduced; None if the op's results are to stay partial
            along its reduction factors, but its operands do not agree on those.
        reduction: The combiner of these all-reduces; None where the sharding of each result gives it.
    """

    mesh: str | Mesh
    operands: Shardings = field()
    results: Shardings = field()
    reduced_axes: Axes | None = ()
    reduction: ReductionOp | None = None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do."""
        return self.reduced_axes == () and not any(self.operands) and not any(self.results)


def make_plan(plan_key: PlanKey, meshes: Mapping[str, Mesh]) -> Plan | None:
    """Return the plan for an op; None where no mesh, several, or that of a single device is involved."""
    shardings = plan_key.operands + plan_key.results
    name = _mesh_of(shardings, meshes)
    mesh = None if name is None else resolve_mesh(name, meshes)
    if name is None or mesh is None:
        return None
    projection = OpProjection.build(plan_key.rule, shardings, mesh)
    if plan_key.mode.is_full:
        return _full_plan(plan_key, projection, name, meshes)
    return _minimal_plan(plan_key, projection, name)


def _mesh_of(shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]) -> str | Mesh | None:
    """Return the mesh, and so the order of devices, that most sharded tensors have; the first among equals.

    Mirrors insert_explicit_reshards.cc::getMostCommonMesh.
    """
    common = common_mesh(shardings, meshes, ignore_device_ids=True)
    mesh = None if common is None else resolve_mesh(common, meshes)
    if mesh is None or mesh.is_maximal:
        return None
    counts: dict[str | Mesh, int] = {}
    best, best_count = common, 0
    for sharding in shardings:
        if sharding is None or sharding.is_fully_replicated:
            continue
        count = counts[sharding.mesh] = counts.get(sharding.mesh, 0) + 1
        if count > best_count:
            best, best_count = sharding.mesh, count
    return best


def _full_plan(plan_key: PlanKey, projection: OpProjection, name: str | Mesh, meshes: Mapping[str, Mesh]) -> Plan:
    shardings = plan_key.operands + plan_key.results
    numbers = range(len(shardings))
    overflowing = [projection.has_overflow_axes(number) for number in numbers]
    if plan_key.mode is Mode.RESHAPE and any(overflowing):
        from shardy_py.transforms.finish.reshards.contractions_and_reshapes import fit_overflow_axes

        axes = fit_overflow_axes(projection, name)
        present = plan_key.own_operands + plan_key.results
        moved = [not are_equivalent(present[number], projection.sharding(number, name)) for number in numbers]
    else:
        if plan_key.mode in (Mode.PARTITIONER, Mode.JOINED):
            from shardy_py.transforms.finish.reshards.partitioner_axes import find_result_axes

            axes = find_result_axes(
                projection,
                len(plan_key.operands),
                is_result_open=not any(plan_key.results),
                is_joined=plan_key.mode is Mode.JOINED,
                sizes=plan_key.operand_sizes + plan_key.result_sizes,
            )
        else:
            axes = find_common_axes(projection, plan_key.operand_sizes + plan_key.result_sizes)
        for factor, common in enumerate(axes):
            projection.update(factor, common)
        moved = [changed or overflow for changed, overflow in zip(projection.changed, overflowing, strict=True)]
    wanted = tuple(
        projection.sharding(number, name)
        if moved[number] or _has_other_devices(shardings[number], projection.mesh, meshes)
        else None
        for number in numbers
    )
    count = len(plan_key.operands)
    reduced = tuple(axis for factor in plan_key.rule.reduction_factors for axis in axes[factor])
    to_reduce = _to_all_reduce(reduced, plan_key, projection.mesh)
    return Plan(name, wanted[:count], wanted[count:], to_reduce, plan_key.reduction)


def _has_other_devices(sharding: TensorSharding | None, mesh: Mesh, meshes: Mapping[str, Mesh]) -> bool:
    """Return whether a sharded tensor has its devices in another order than the mesh of the op."""
    if sharding is None or sharding.is_fully_replicated:
        return False
    sharding_mesh = resolve_mesh(sharding.mesh, meshes)
    return sharding_mesh is not None and sharding_mesh.device_ids != mesh.device_ids


def _minimal_plan(plan_key: PlanKey, projection: OpProjection, name: str | Mesh) -> Plan:
    results: list[TensorSharding | None] = [None] * len(plan_key.results)
    if plan_key.mode is Mode.CONTRACTION:
        from shardy_py.transforms.finish.reshards.contractions_and_reshapes import shard_result_like_operand

        if shard_result_like_operand(projection, plan_key.operand_sizes + plan_key.result_sizes):
            results[0] = projection.sharding(len(plan_key.operands), name)
    nothing = (None,) * len(plan_key.operands)
    reduced = _axes_to_all_reduce_beside_unreduced(plan_key, projection)
    return Plan(name, nothing, tuple(results), reduced, plan_key.reduction)


def _axes_to_all_reduce_beside_unreduced(plan_key: PlanKey, projection: OpProjection) -> Axes | None:
    """Return the axes to all-reduce an op's results along that are to stay partial along some others.

    Where results have no unreduced axes, the reduction of the op is left to the partitioner.
    """
    if not _unreduced_axes(plan_key):
        return ()
    reduced: Axes = ()
    for factor in plan_key.rule.reduction_factors:
        axes = projection.common_axes(factor)
        if axes is None:
            return None
        reduced += axes
    return _to_all_reduce(reduced, plan_key, projection.mesh)


def _to_all_reduce(reduced: Axes, plan_key: PlanKey, mesh: Mesh) -> Axes:
    """Return the reduced axes without those along which the results stay partial, in mesh order.

    Mirrors explicit_reshards_util.cc::getReductionAxes.
    """
    if not reduced or not plan_key.results:
        return ()
    return sort_and_merge(axis_set_difference(reduced, _unreduced_axes(plan_key), mesh), mesh)


def _unreduced_axes(plan_key: PlanKey) -> Axes:
    """Return the unreduced axes of the first result, which all results have."""
    first = plan_key.results[0] if plan_key.results else None
    return first.unreduced_axes if first is not None else ()


def are_equivalent(present: TensorSharding | None, wanted: TensorSharding | None) -> bool:
    """Return whether no reshard is needed from one sharding to another; a missing one counts as replicated.

    Where none is given, unreduced axes that are wanted do not count: there is nothing to tell how to make them from.
    """
    if present is None:
        return wanted is None or wanted.is_fully_replicated
    return present.is_equivalent(wanted)
