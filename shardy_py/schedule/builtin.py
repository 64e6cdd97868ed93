"""The built-in schedules by name, the default among them, and the directions that they give to factors.

A new built-in schedule touches this file only.

Mirrors op_priority_propagation.cc::opPropagationSchedule.
"""

from __future__ import annotations

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import Broadcast, Contraction, Elementwise, ForwardPassThrough, PassThrough, Trait
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector
from shardy_py.sharding.rule import FactorKind

EDGES = (DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE)
EVERYTHING = Level("everything", (Entry(Selector()),))

_early = Selector(names=EDGES, traits=(Elementwise, PassThrough))
_early_single = Selector(names=EDGES, traits=(Elementwise, PassThrough), uses="single")

FLAT = Schedule((EVERYTHING,))
"""One level: every op in both directions."""

DEFAULT = Schedule(
    (
        Level(
            "pass-through ops whose operands have one use",
            (
                Entry(_early_single),
                Entry(Selector(traits=(ForwardPassThrough,), uses="single"), Direction.FORWARD),
            ),
        ),
        Level(
            "pass-through ops",
            (Entry(_early), Entry(Selector(traits=(ForwardPassThrough,)), Direction.FORWARD)),
        ),
        Level(
            "pass-through factors, broadcasts backward",
            (
                Entry(Selector(excluded_traits=(Broadcast,), factor_kinds=(FactorKind.PASS_THROUGH,))),
                Entry(Selector(traits=(Broadcast,), factor_kinds=(FactorKind.PASS_THROUGH,)), Direction.BACKWARD),
            ),
        ),
        Level(
            "all factors, broadcasts backward",
            (
                Entry(Selector(excluded_traits=(Broadcast,))),
                Entry(Selector(traits=(Broadcast,)), Direction.BACKWARD),
            ),
        ),
        EVERYTHING,
    )
)
"""The reference's schedule."""

_MOVES = (Elementwise, PassThrough, ForwardPassThrough)
_COSTLY = (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


def _forward(level: Level) -> Level:
    entries = tuple(evolve(entry, direction=entry.direction & Direction.FORWARD) for entry in level.entries)
    return Level(level.name, tuple(entry for entry in entries if entry.direction))


ELEMENTWISE_FIRST = Schedule(
    (Level("elementwise ops", (Entry(Selector(names=EDGES, traits=(Elementwise,))),)), EVERYTHING)
)
"""Elementwise ops, then everything, as in GSPMD."""

CONTRACTIONS_FIRST = Schedule((Level("contractions", (Entry(Selector(traits=(Contraction,))),)), *DEFAULT.levels))
"""Products that sum, then as by default."""

FORWARD_ONLY = Schedule(tuple(_forward(level) for level in DEFAULT.levels))
"""The default levels, from operands to results only."""

REVERSED = Schedule(
    (
        Level(
            "factors that cost communication, broadcasts forward",
            (
                Entry(Selector(factor_kinds=_COSTLY)),
                Entry(Selector(traits=(Broadcast,)), Direction.FORWARD),
            ),
        ),
        Level("all but pass-through ops", (Entry(Selector(excluded_names=EDGES, excluded_traits=_MOVES)),)),
        Level("ops with an operand that has several uses", (Entry(Selector(uses="multiple")),)),
        EVERYTHING,
    )
)
"""The default levels in reverse: the last ops come first."""

SETTLED = evolve(DEFAULT, settles=True)
"""As by default, and then on until nothing changes."""

BUILTIN: dict[str, Schedule] = {
    "default": DEFAULT,
    "flat": FLAT,
    "elementwise-first": ELEMENTWISE_FIRST,
    "contractions-first": CONTRACTIONS_FIRST,
    "forward-only": FORWARD_ONLY,
    "reversed": REVERSED,
}
"""The built-in schedules by name, with which comparisons begin."""

NAMED: dict[str, Schedule] = {**BUILTIN, "settled": SETTLED}
"""All schedules that have names: those of `BUILTIN`, and the one that differs from the default in where it ends."""


def builtin_schedule(name: str) -> Schedule:
    """Return a built-in schedule.

    Raises:
        OptionError: there is none of that name.
    """
    if name not in NAMED:
        hint = f"the built-in schedules are {', '.join(NAMED)}"
        raise OptionError(Diagnostic("unknown-schedule", f"there is no schedule named {name!r}", hint=hint))
    return NAMED[name]


def matching_entries(schedule: Schedule, op: Op, traits: frozenset[Trait]) -> tuple[int, ...]:
    """Return the indices into `Schedule.entries` that select an op, uses and factors aside."""
    key = (op.name, traits)
    cached: tuple[int, ...] | None = None if schedule.is_predicated else schedule.derived.get(key)
    if cached is None:
        entries = enumerate(schedule.entries)
        cached = tuple([index for index, (_, entry) in entries if entry.selector.matches_op(op, traits)])
        if not schedule.is_predicated:
            schedule.derived[key] = cached
    return cached


FACTOR_KINDS = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION, FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)
Vector = tuple[int, ...]
"""The direction of every kind of factor, in the order of `FACTOR_KINDS`; last that of blocked factors, none."""


def vectors_of_levels(schedule: Schedule, entries: tuple[int, ...], *, multi_use: bool) -> tuple[Vector, ...]:
    """Return the vector of every level, kept with the schedule; see `kind_directions`."""
    key = (entries, multi_use)
    cached: tuple[Vector, ...] | None = schedule.derived.get(key)
    if cached is None:
        levels = [
            kind_directions(schedule, entries, level, multi_use=multi_use) for level in range(len(schedule.levels))
        ]
        cached = tuple([(*[int(level[kind]) for kind in FACTOR_KINDS], 0) for level in levels])
        schedule.derived[key] = cached
    return cached


def kind_directions(
    schedule: Schedule, entries: tuple[int, ...], level: int, *, multi_use: bool
) -> dict[FactorKind, Direction]:
    """Return the direction of every kind of factor at a level: the union over this and the earlier levels.

    Mirrors op_priority_propagation.cc::getOpBasedDirectionToPropagate.

    Args:
        schedule: The schedule.
        entries: The entries that select the op (see `matching_entries`).
        level: The index of the level.
        multi_use: Whether an operand of the op that is not a scalar has not exactly one use.
    """
    all_entries = schedule.entries
    directions = dict.fromkeys(FactorKind, Direction.NONE)
    for index in entries:
        entry_level, entry = all_entries[index]
        if entry_level > level or not entry.selector.matches_uses(multi_use=multi_use):
            continue
        for kind in FactorKind:
            if entry.selector.matches_factor(kind):
                directions[kind] |= entry.direction
    return directions
