"""Schedules as TOML.

::

    then = "default"

    [[level]]
    name = "additions"
    entries = ["toy.add", { names = ["toy.mul"], uses = "single", direction = "forward" }]

An entry is a name or a glob, or a table with some of ``names``, ``traits``, ``except-names``, ``except-traits``,
``factors``, ``uses`` and ``direction``. ``then`` says what follows the levels: a built-in schedule, ``default`` where
it is left out, or ``nothing``. ``settles = true`` repeats the last level until nothing changes; left out, it is as what
follows has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from shardy_py.errors import Diagnostic, OptionError, did_you_mean, read_text_file
from shardy_py.ir.interfaces.ops import TRAITS, Trait
from shardy_py.schedule.builtin import DEFAULT, NAMED
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector, Uses
from shardy_py.sharding.rule import FactorKind
from shardy_py.support.texts import parse_toml

NOTHING = "nothing"
_ENTRY_KEYS = ("names", "traits", "except-names", "except-traits", "factors", "uses", "direction")
_KINDS = {kind.value: kind for kind in FactorKind}
_DIRECTIONS = {
    "both": Direction.BOTH,
    "forward": Direction.FORWARD,
    "backward": Direction.BACKWARD,
    "none": Direction.NONE,
}
_USES = {uses: uses for uses in get_args(Uses)}


def format_schedule(schedule: Schedule) -> str:
    """Return a schedule as TOML that `parse_schedule` reads back.

    Raises:
        OptionError: an entry has a predicate, which is not data.
    """
    blocks = [f"then = {_string(NOTHING)}\n" + ("settles = true\n" if schedule.settles else "")]
    for level in schedule.levels:
        entries = "".join(f"  {_entry_text(entry)},\n" for entry in level.entries)
        blocks.append(f"[[level]]\nname = {_string(level.name)}\nentries = [\n{entries}]\n")
    return "\n".join(blocks)


def parse_schedule(
    text: str, *, source: str = "", rest: Schedule = DEFAULT, more_traits: Iterable[str] = ()
) -> Schedule:
    """Return the schedule of a TOML text.

    Args:
        text: The text.
        source: The name of its file, for errors.
        rest: The schedule of ``then = "default"``.
        more_traits: The names of traits that may be named besides the bundled ones.

    Raises:
        OptionError: it is not TOML, or not a schedule; all problems are listed.
    """
    data = parse_toml(text, code="invalid-schedule", source=source)
    reader = _Reader(source, frozenset((*more_traits, *(trait.name for trait in TRAITS))))
    schedule = reader.schedule(data, {**NAMED, "default": rest})
    if schedule is None or reader.problems:
        raise OptionError(*reader.problems)
    return schedule


def read_schedule(path: str | Path, *, rest: Schedule = DEFAULT, more_traits: Iterable[str] = ()) -> Schedule:
    """Return the schedule in a TOML file.

    Args:
        path: The file.
        rest: See `parse_schedule`.
        more_traits: See `parse_schedule`.

    Raises:
        OptionError: the file cannot be read or holds no schedule.
    """
    builtin = f"give a TOML file, or one of the built-in schedules: {', '.join(NAMED)}"
    hint = did_you_mean(str(path), NAMED, otherwise=builtin)
    text = read_text_file(path, code="invalid-schedule", what="the schedule", hint=hint)
    return parse_schedule(text, source=str(path), rest=rest, more_traits=more_traits)


def _entry_text(entry: Entry) -> str:
    selector = entry.selector
    if selector.is_predicated:
        message = f"the entry {entry} has a function, which cannot be written as TOML"
        raise OptionError(Diagnostic("invalid-schedule", message, hint="use a trait that traits_of gives"))
    lists = {
        "names": selector.names,
        "traits": [trait.name for trait in selector.traits],
        "except-names": selector.excluded_names,
        "except-traits": [trait.name for trait in selector.excluded_traits],
        "factors": [kind.value for kind in selector.factor_kinds],
    }
    parts = [f"{key} = {_strings(values)}" for key, values in lists.items() if values]
    if selector.uses != "any":
        parts.append(f"uses = {_string(selector.uses)}")
    if entry.direction is not Direction.BOTH:
        name = next(name for name, item in _DIRECTIONS.items() if item == entry.direction)
        parts.append(f"direction = {_string(name)}")
    return f"{{ {', '.join(parts)} }}" if parts else "{}"


def _strings(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_string, values))}]"


def _string(value: str) -> str:
    # A basic string of TOML is one of JSON, but for the delete character.
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class _Reader:
    """Reader of the tables of one file; it collects all problems."""

    def __init__(self, source: str, known_traits: frozenset[str]) -> None:
        self.source = source
        self.known_traits = known_traits
        self.problems: list[Diagnostic] = []

    def problem(self, context: str, message: str, *, hint: str = "") -> None:
        where = f"{context}: " if context else ""
        self.problems.append(Diagnostic("invalid-schedule", f"{where}{message}", self.source, hint=hint))

    def schedule(self, data: Mapping[str, Any], builtin: Mapping[str, Schedule]) -> Schedule | None:
        """Return the schedule of the whole file."""
        self.known_keys("", data, ("then", "settles", "level"))
        tables = data.get("level", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.problem("", "level is not a list of tables", hint="write [[level]]")
            return None
        levels = tuple(self.level(index, table) for index, table in enumerate(tables))
        then = data.get("then", "default")
        if not isinstance(then, str) or (then != NOTHING and then not in builtin):
            self.problem("", f"then is {then!r}", hint=f"write one of {', '.join([*builtin, NOTHING])}")
            return None
        rest = None if then == NOTHING else builtin[then]
        levels += () if rest is None else rest.levels
        if not levels:
            self.problem("", "the schedule has no level", hint="write [[level]], or leave out then")
            return None
        settles = data.get("settles", rest is not None and rest.settles)
        if not isinstance(settles, bool):
            self.problem("", f"settles is {settles!r}", hint="write true or false")
            return None
        return Schedule(levels, settles=settles)

    def level(self, index: int, table: Mapping[str, Any]) -> Level:
        """Return one level."""
        context = f"level {index}"
        self.known_keys(context, table, ("name", "entries"))
        name = table.get("name", context)
        if not isinstance(name, str):
            self.problem(context, f"name is {name!r}, not a text")
        entries = table.get("entries", [])
        if not isinstance(entries, list) or not entries:
            self.problem(context, "there are no entries", hint='write entries = ["toy.add"]')
            return Level(str(name), ())
        return Level(str(name), tuple(self.entry(f"{context}, entry {i}", item) for i, item in enumerate(entries)))

    def entry(self, context: str, item: Any) -> Entry:
        """Return one entry."""
        if isinstance(item, str):
            return Entry(Selector(names=(item,)))
        if not isinstance(item, dict):
            self.problem(context, f"{item!r} is neither a name nor a table")
            return Entry(Selector())
        self.known_keys(context, item, _ENTRY_KEYS)
        selector = Selector(
            names=self.texts(context, item, "names"),
            traits=self.traits(context, item, "traits"),
            excluded_names=self.texts(context, item, "except-names"),
            excluded_traits=self.traits(context, item, "except-traits"),
            factor_kinds=tuple(
                self.choice(context, "factors", kind, _KINDS) for kind in self.texts(context, item, "factors")
            ),
            uses=self.choice(context, "uses", item.get("uses", "any"), _USES),
        )
        return Entry(selector, self.choice(context, "direction", item.get("direction", "both"), _DIRECTIONS))

    def texts(self, context: str, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = table.get(key, [])
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return tuple(values)
        self.problem(context, f"{key} is {values!r}, not a list of texts")
        return ()

    def traits(self, context: str, table: Mapping[str, Any], key: str) -> tuple[Trait, ...]:
        """Return a list of traits."""
        names = self.texts(context, table, key)
        for name in names:
            if name not in self.known_traits:
                meant = did_you_mean(name, self.known_traits)
                hint = f"{meant} the known traits are {', '.join(sorted(self.known_traits))}".lstrip()
                self.problem(context, f"{key}: there is no trait {name!r}", hint=hint)
        return tuple(map(Trait, names))

    def choice(self, context: str, key: str, value: Any, choices: Mapping[str, Any]) -> Any:
        """Return the value of a word."""
        if isinstance(value, str) and value in choices:
            return choices[value]
        self.problem(context, f"{key} is {value!r}", hint=f"write one of {', '.join(choices)}")
        return next(iter(choices.values()))

    def known_keys(self, context: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        """Find keys that mean nothing."""
        for key in table:
            if key not in known:
                self.problem(context, f"unknown key {key!r}", hint=f"the keys are {', '.join(known)}")
