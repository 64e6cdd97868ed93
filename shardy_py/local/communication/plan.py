"""The plan of what is gathered, exchanged and reduced, made anew for the fewest bytes.

Propagation decides where data is, one op after the other. This pass looks at all users of a value, and at all ops
that depend on each other: each runs sharded along some axes, or whole on every device, so that what has to be sent in
between is least. What is whole may be gathered before it is converted to a wider type, be made again from nothing, or
be gathered once before a loop; what is sharded may be cut before it is gathered.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import field

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.passes import NO_TEXT, PassContext
from shardy_py.local.communication.axis_group import AxisGroup
from shardy_py.local.communication.balance import Balance
from shardy_py.local.communication.choices import ModeChoices, functions_with_bodies, meshes_by_name
from shardy_py.local.communication.deliveries import deliveries
from shardy_py.local.communication.explicit_steps import write_collectives
from shardy_py.local.communication.known_modes import KnownModes
from shardy_py.local.communication.moves import moved_axes
from shardy_py.local.communication.own_exchanges import OwnExchanges
from shardy_py.local.communication.program_facts import ProgramFacts
from shardy_py.local.communication.report import record_change
from shardy_py.local.communication.rewriting import apply_improvement, describe
from shardy_py.local.communication.routes import STEPS
from shardy_py.local.communication.solve import improvements
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.values import frozen

GroupKey = tuple[str, frozenset[AxisRef]]
"""The name of a mesh and axes of it."""
_ROUNDS = 2
"""A change along some axes may make changes along others worthwhile."""


@frozen
class PlanCommunicationPass:
    """Choose for each op whether it runs sharded or whole, so that the fewest bytes are sent.

    Args:
        machine: What else costs as much as a byte that is sent.
        joins_axes: Whether axes along which one collective runs are looked at together, before each by itself.
    """

    name: ClassVar[str] = "plan-communication"

    machine: Balance = field(default=Balance(), metadata=NO_TEXT)
    joins_axes: bool = field(default=True, metadata=NO_TEXT)

    def run(self, program: Program, context: PassContext) -> None:
        """Change the shardings of ops, and the collectives between them."""
        looked_at: dict[GroupKey, int] = {}
        known: dict[GroupKey, KnownModes] = {}
        groups: dict[GroupKey, AxisGroup] = {}
        changes, facts = 0, ProgramFacts.of(program, context)
        for _ in range(_ROUNDS):
            for key in _axis_groups(program, groups, joins_axes=self.joins_axes):
                if looked_at.get(key) == changes:
                    # Nothing changed along other axes since.
                    continue
                if self._improve(facts, context, groups[key], known.setdefault(key, KnownModes())):
                    changes, facts = changes + 1, facts.after_change()
                looked_at[key] = changes

    def _improve(self, facts: ProgramFacts, context: PassContext, group: AxisGroup, known: KnownModes) -> bool:
        """Improve what is sent along some axes, and return whether anything changed."""
        program, semantics = facts.program, facts.semantics
        exchanges = OwnExchanges(semantics, facts.ops, group.mesh, dict(program.meshes))
        partial = context.partial_values.keys()
        changed = False
        for function in functions_with_bodies(program):
            choices = ModeChoices(
                program, semantics, group, facts.routes, facts.counts, exchanges, self.machine, partial, known
            )
            choices.add_function(function)
            for item in improvements(list(deliveries(choices))):
                record_change(context, describe(item))
                apply_improvement(program, item)
                changed = True
        if changed:
            write_collectives(program, semantics, context)
        return changed


def _axis_groups(program: Program, groups: dict[GroupKey, AxisGroup], *, joins_axes: bool) -> list[GroupKey]:
    """Return the axes along which collectives run, those of most devices first; all axes come last, each by itself.

    Args:
        program: The program.
        groups: The known groups, to which new ones are added.
        joins_axes: Whether the axes of one collective are one group, too.
    """
    meshes = meshes_by_name(program)
    keys: dict[GroupKey, None] = {}

    def add(mesh_name: str, axes: tuple[AxisRef, ...]) -> None:
        key = mesh_name, frozenset(axes)
        keys[key] = None
        if key not in groups:
            groups[key] = AxisGroup(mesh_name, meshes[mesh_name], axes)

    for op in ops_among(program, STEPS) if joins_axes else ():
        sharding = program.sharding(op.results[0])
        axes = moved_axes(op)
        if sharding is not None and isinstance(sharding.mesh, str) and sharding.mesh in meshes and axes:
            add(sharding.mesh, axes)
    for name in sorted({str(sharding.mesh) for sharding in program.shardings.values()} & meshes.keys()):
        for axis in meshes[name].axes:
            add(name, (AxisRef(axis.name),))
    return sorted(keys, key=lambda key: -axes_size(groups[key].axes, groups[key].mesh))
