"""A plan as a value, and its forms: for JAX, for PyTorch, as MLIR, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

from attrs import field

from shardy_py.frontends.select import WRITTEN_AS_JAX
from shardy_py.plans.write import WrittenPlan
from shardy_py.report.sharding_html import ShardedTensor, sharding_table
from shardy_py.sharding.jax_text import axes_text, partition_spec
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.texts import format_bytes, format_seconds
from shardy_py.values import frozen

SPACE = (
    "each axis shards one dimension of a tensor or none, in the order of the mesh and without sub-axes; elementwise ops"
    " have the sharding of an operand"
)
"""The space in which the bound holds."""
SPACE_OF_REPEATS = f"{SPACE}; equal layers have equal shardings"
"""That of a large program."""


_NAMES = 6
_NOTABLE = 0.002
"""The part of a plan's time from which a difference is told."""
_TIMES = (("computes", "compute_seconds"), ("communicates", "communication_seconds"))


@frozen
class KnownLayout:
    """A known layout of the arguments beside a plan, with the best that the model has for the rest.

    Args:
        name: Its name.
        axes: What its axes do.
        plan: The best plan that has this layout.
        reason: The difference from the plan, in words.
    """

    name: str
    axes: str
    plan: ShardingPlan = field(repr=False)
    reason: str

    @classmethod
    def of(
        cls, name: str, axes: str, layout: ShardingPlan, plan: ShardingPlan, budget: float | None = None
    ) -> KnownLayout:
        """Return a layout, priced, beside a plan."""
        return cls(name, axes, layout, ", ".join(_differences(layout, plan, budget)))

    @property
    def seconds(self) -> float:
        """The time by the estimator."""
        return self.plan.seconds

    @property
    def sent_bytes(self) -> float:
        """The bytes that one device sends, by the estimator."""
        return self.plan.sent_bytes

    @property
    def peak_bytes(self) -> float:
        """The most memory that a device uses."""
        return self.plan.peak_bytes

    @property
    def title(self) -> str:
        """The name of the layout, and what each axis divides."""
        return f"{self.name} ({self.axes})" if self.axes else self.name

    def __str__(self) -> str:
        return f"{self.title}: {format_seconds(self.seconds)}, {self.reason}"

    def to_json(self) -> dict[str, Any]:
        """Return the layout as plain data; sizes are in bytes, times in seconds."""
        return {
            "name": self.name,
            "axes": self.axes,
            "seconds": self.seconds,
            "sent_bytes": self.sent_bytes,
            "peak_bytes": self.peak_bytes,
            "reason": self.reason,
            "inputs": self.plan.specs,
        }


def _differences(layout: ShardingPlan, plan: ShardingPlan, budget: float | None) -> Iterator[str]:
    """Yield what a layout does worse or better than a plan, the times first."""
    if plan.seconds:
        yield f"{layout.seconds / plan.seconds - 1:+.1%}"
    else:
        yield f"{inf if layout.seconds else 0.0:+.1%}"
    for label, field_name in _TIMES:
        difference = getattr(layout, field_name) - getattr(plan, field_name)
        if abs(difference) > _NOTABLE * plan.seconds:
            yield f"{label} {format_seconds(abs(difference))} {'longer' if difference > 0 else 'less'}"
    sent, peak = (
        tuple(format_bytes(round(size)) for size in pair)
        for pair in ((layout.sent_bytes, plan.sent_bytes), (layout.peak_bytes, plan.peak_bytes))
    )
    if sent[0] != sent[1]:
        yield f"{sent[0]} sent instead of {sent[1]}"
    if peak[0] != peak[1]:
        yield f"{peak[0]} at the peak instead of {peak[1]}"
    if budget is not None and layout.peak_bytes > budget:
        yield "which is above the budget"


@frozen
class PlannedConstraint:
    """A constraint on an operand or the result of an op.

    Args:
        op: The name of the op.
        location: The place in the source.
        operand: The number of the operand; None for the first result.
        sharding: Its sharding.
    """

    op: str
    location: str
    operand: int | None
    sharding: TensorSharding

    @property
    def tensor(self) -> str:
        """The tensor in words."""
        return f"the result of {self.op}" if self.operand is None else f"operand {self.operand} of {self.op}"


@frozen(eq=False)
class ShardingPlan:
    """A plan for a program on a machine.

    Args:
        seconds: The time by the estimator, of the program with the plan written into it.
        compute_seconds: The time of computing.
        communication_seconds: The time of communicating.
        bound_seconds: No plan of the space takes less in the linear model with strict prices; None if the estimator
            prices the plan below that, so that the model charges too much for a bound.
        sent_bytes: The bytes that one device sends in the collectives of the local program, which is what runs; by the
            estimator for programs of more than a thousand ops, and where there is no local program.
        peak_bytes: The most memory that a device uses.
        machine: The name of the machine.
        mesh: Axis to size.
        inputs: Argument to sharding.
        results: Number of a result to its sharding, for those that have that of an argument.
        constraints: Constraints inside.
        result_count: The number of results.
        roles: Axis to what it does, with the patterns of the names of the arguments that it does this with.
        written: The plan by places in the program, to be written into it.
        space: The space in which the bound holds.
        known: Known layouts beside it, the cheapest first.
        estimated_bytes: The bytes that one device sends by the estimator; None where `sent_bytes` are these.
        frontend: The name of the frontend that the program came through.
    """

    seconds: float
    compute_seconds: float
    communication_seconds: float
    bound_seconds: float | None
    sent_bytes: float
    peak_bytes: float
    machine: str
    mesh: Mapping[str, int]
    inputs: Mapping[str, TensorSharding]
    results: Mapping[int, TensorSharding]
    constraints: tuple[PlannedConstraint, ...]
    result_count: int
    roles: Mapping[str, Mapping[str, tuple[str, ...]]]
    written: WrittenPlan = field(repr=False)
    _write: Callable[[], str] = field(repr=False)
    space: str = SPACE
    known: tuple[KnownLayout, ...] = ()
    estimated_bytes: float | None = None
    frontend: str = "mlir"

    @property
    def gap(self) -> float | None:
        """The part by which the plan's time exceeds the bound; None without one."""
        return self.seconds / self.bound_seconds - 1 if self.bound_seconds else None

    @property
    def specs(self) -> dict[str, str]:
        """Argument to sharding as JAX writes it."""
        return {name: partition_spec(sharding) for name, sharding in self.inputs.items()}

    @property
    def title(self) -> str:
        """Roles with the axes that have them, such as ``batch over data``; ``replicated`` without any axis."""
        axes: dict[str, list[str]] = {}
        for axis, roles in self.roles.items():
            axes.setdefault(" and ".join(roles) or "replicated", []).append(axis)
        return ", ".join(f"{roles} over {' and '.join(names)}" for roles, names in axes.items()) or "replicated"

    @property
    def head(self) -> tuple[str, ...]:
        """Lines with the cost of the plan and its bound."""
        mesh = ",".join(f"{name}={size}" for name, size in self.mesh.items())
        return (
            f"Plan for {mesh} on {self.machine}",
            f"{format_seconds(self.seconds)} by the estimator, {self._sent},"
            f" {format_bytes(round(self.peak_bytes))} at the peak",
            self._bound,
            *self._roles,
            *(f"beside it, {layout}" for layout in self.known),
        )

    @property
    def _sent(self) -> str:
        sent, estimated = format_bytes(round(self.sent_bytes)), self.estimated_bytes
        if estimated is None or format_bytes(round(estimated)) == sent:
            return f"{sent} sent"
        return f"{sent} sent ({format_bytes(round(estimated))} by the estimator)"

    @property
    def _roles(self) -> list[str]:
        """Lines with the roles of each axis."""
        lines = []
        for axis, roles in self.roles.items():
            parts = [f"{role}: {_few(patterns)}" for role, patterns in roles.items()]
            lines.append(f"axis {axis}: {'; '.join(parts) or 'nothing'}")
        return lines

    @property
    def _bound(self) -> str:
        if self.bound_seconds is None or self.gap is None:
            return "No bound: the linear model charges more for this program than the estimator"
        bound = f"{format_seconds(self.bound_seconds)} in the linear model (gap {self.gap:.1%})"
        return f"No plan of this space takes less than {bound}: {self.space}"

    def __str__(self) -> str:
        return self.to_jax() if self.frontend in WRITTEN_AS_JAX else self.to_propagate()

    def _repr_html_(self) -> str:
        tensors = [ShardedTensor(name, sharding) for name, sharding in self.inputs.items()]
        return sharding_table("\n".join(self.head), self.mesh.items(), tensors)

    def to_jax(self) -> str:
        """Return the plan as Python for `jax.jit`, with the constraints as comments."""
        lines = [
            *(f"# {line}" for line in self.head),
            "from jax.sharding import PartitionSpec as P",
            "",
            "in_shardings = {",
        ]
        lines += [f"    {name!r}: {spec}," for name, spec in self.specs.items()]
        lines += ["}"]
        if self.results:
            shardings = (self.results.get(number) for number in range(self.result_count))
            specs = ("None" if sharding is None else partition_spec(sharding) for sharding in shardings)
            lines += ["out_shardings = [", *(f"    {spec}," for spec in specs), "]"]
        lines += [
            f"# with_sharding_constraint on {constraint.tensor}:"
            f" {partition_spec(constraint.sharding)}  {constraint.location}"
            for constraint in self.constraints
        ]
        return "\n".join(lines)

    def to_propagate(self) -> str:
        """Return the plan as Python for `propagate`, with the constraints as comments."""
        lines = [*(f"# {line}" for line in self.head), "in_shardings = {"]
        lines += [f"    {name!r}: {axes_text(sharding)}," for name, sharding in self.inputs.items()]
        lines += ["}"]
        if self.results:
            shardings = [f"    {number}: {axes_text(sharding)}," for number, sharding in self.results.items()]
            lines += ["out_shardings = {", *shardings, "}"]
        lines += [f"# on {item.tensor}: {axes_text(item.sharding)}  {item.location}" for item in self.constraints]
        return "\n".join(lines)

    def to_torch(self) -> str:
        """Return the plan as placements of DTensor, one per axis of the mesh."""
        lines = [*(f"# {line}" for line in self.head), "from torch.distributed.tensor import Replicate, Shard", ""]
        lines += ["placements = {"]
        lines += [f"    {name!r}: [{', '.join(self._placements(sharding))}]," for name, sharding in self.inputs.items()]
        return "\n".join([*lines, "}"])

    def _placements(self, sharding: TensorSharding) -> list[str]:
        dims = {axis.name: dim for dim, dim_sharding in enumerate(sharding.dim_shardings) for axis in dim_sharding.axes}
        return [f"Shard({dims[axis]})" if axis in dims else "Replicate()" for axis in self.mesh]

    def to_mlir(self) -> str:
        """Return the program with the plan written into it."""
        return self._write()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data; sizes are in bytes, times in seconds."""
        return {
            "machine": self.machine,
            "mesh": dict(self.mesh),
            "seconds": self.seconds,
            "bound_seconds": self.bound_seconds,
            "gap": self.gap,
            "space": self.space,
            "sent_bytes": self.sent_bytes,
            "estimated_bytes": self.estimated_bytes,
            "peak_bytes": self.peak_bytes,
            "known_layouts": [layout.to_json() for layout in self.known],
            "roles": {axis: {role: list(names) for role, names in roles.items()} for axis, roles in self.roles.items()},
            "inputs": self.specs,
            "shardings": {name: str(sharding) for name, sharding in self.inputs.items()},
            "results": {str(number): partition_spec(sharding) for number, sharding in self.results.items()},
            "constraints": [
                {
                    "op": constraint.op,
                    "operand": constraint.operand,
                    "sharding": partition_spec(constraint.sharding),
                    "location": constraint.location,
                }
                for constraint in self.constraints
            ],
        }


def _few(names: tuple[str, ...]) -> str:
    """Return some names as text."""
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
