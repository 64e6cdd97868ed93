"""Programs with explicit collectives as what each device runs, with what each op became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field

from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, as_warnings
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.interfaces.communication import CommunicationChange
from shardy_py.ir.interfaces.local import LocalValue
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.local.communication.guard import Attempt, with_least_communication
from shardy_py.local.communication.sent_bytes import local_sent_bytes
from shardy_py.local.communication.tidy import TidyLocalProgramPass
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.local.local_ops import find_local_ops
from shardy_py.local.pipeline import communication_passes
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.torch.frontend.semantics import extend
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.transforms.run import run
from shardy_py.values import define

IN_PLACE = LocalOptions(optimize=False)
"""The options under which collectives stay where the program with explicit ones has them."""


@define(frozen=True, eq=False)
class Localized:
    """A local program, and what the values and ops of the global one became.

    Args:
        program: The local program.
        moved: The global program with its collectives where the communication passes leave them.
        values: What each value became, by its id in the global program.
        collectives: The collectives that each op became, by its id in the global program.
        warnings: The ops that run on gathered operands.
        communication: What the communication passes changed.
    """

    program: Program
    moved: Program
    values: Mapping[int, LocalValue]
    collectives: Mapping[int, Sequence[Op]]
    warnings: tuple[Diagnostic, ...] = field(converter=as_warnings)
    communication: tuple[CommunicationChange, ...] = ()

    def locations(self) -> dict[int, str]:
        """Return the source locations of the ops of the local program, by id, as far as they are known."""
        locations: dict[int, str] = {}
        for op in self.moved.walk():
            for value in op.results:
                local = self.values.get(value.id)
                maker = None if local is None else local.value.defining_op
                if maker is not None and op.location:
                    locations.setdefault(maker.id, op.location)
            for collective in self.collectives.get(op.id, ()):
                location = op.location or _location_of(moved_tensor(self.source(op, collective)))
                locations[collective.id] = location
        return locations

    def source(self, op: Op, collective: Op) -> Value:
        """Return the operand of an op of the global program whose elements a collective moves.

        Args:
            op: The op of the global program.
            collective: A collective that it became.
        """
        known = {item.value.id: value for value in op.operands if (item := self.values.get(value.id)) is not None}
        maker: Op | None = collective
        while maker is not None and maker.operands:
            if maker.operands[0].id in known:
                return known[maker.operands[0].id]
            maker = maker.operands[0].defining_op
        return op.operands[0]


def moved_tensor(value: Value) -> Value:
    """Return the tensor that one or several collectives move."""
    while value.defining_op is not None and value.defining_op.name in RESHARDS:
        value = value.defining_op.operands[0]
    return value


def _location_of(value: Value) -> str:
    return "" if value.defining_op is None else value.defining_op.location


def localized(explicit: Program, registry: Registry, *, options: LocalOptions = IN_PLACE) -> Localized:
    """Return what each device runs, with the passes on communication under which it sends least.

    Args:
        explicit: The program with its collectives; it stays as it is.
        registry: What is known about ops.
        options: The options; by default collectives stay where the program with explicit ones has them.

    Raises:
        ShardyError: an op has no local form.
    """
    if not options.optimize:
        return _localized(explicit, registry, options, ()).form

    def attempt(passes: Sequence[Pass]) -> Attempt[Localized]:
        return _localized(explicit, registry, options, passes)

    least = with_least_communication(attempt, communication_passes(reorder_sums=options.reorder_sums))
    return evolve(least.form, warnings=(*least.form.warnings, *least.warnings)) if least.warnings else least.form


def _localized(
    explicit: Program, registry: Registry, options: LocalOptions, communication: Sequence[Pass]
) -> Attempt[Localized]:
    """Return what each device runs under some passes on communication."""
    program = copy_program(explicit)
    registry = extend(program, registry)
    values: dict[int, LocalValue] = {}
    collectives: dict[int, list[Op]] = {}
    changes: list[CommunicationChange] = []
    sent: list[float] = []
    context = PassContext(
        registry, local_values=values, local_collectives=collectives, communication=changes, sent_bytes=sent
    )
    convert = ConvertGlobalToLocalPass(
        trust_shardings=False, gather_unsupported_ops=not options.strict, early_gathers=options.optimize
    )
    tidying = (TidyLocalProgramPass(),) if options.optimize else ()
    run(program, communication, context)
    moved = explicit
    if communication:
        moved = copy_program(program)
        moved.origin, moved.frontend = explicit.origin, explicit.frontend
    run(program, [convert, *tidying], context)
    # What is tidied away runs no more.
    running_ids = {op.id for op in program.walk()}
    running = {number: [op for op in ops if op.id in running_ids] for number, ops in collectives.items()}
    form = Localized(program, moved, values, running, tuple(context.warnings), tuple(changes))
    mesh = next(iter(program.meshes.values()), Mesh())
    after = local_sent_bytes(program, find_local_ops(program, registry), registry, mesh)
    return Attempt(form, after, sum(sent), bool(changes))
