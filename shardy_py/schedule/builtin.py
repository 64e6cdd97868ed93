"""Schedules that have names: the one file that a new one touches."""

from __future__ import annotations

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.interfaces.ops import Broadcast, Contraction, Elementwise, ForwardPassThrough, PassThrough
from shardy_py.schedule.default import DEFAULT, EDGES, FLAT
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector
from shardy_py.sharding.rule import FactorKind

EVERYTHING = Level("everything", (Entry(Selector()),))
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
