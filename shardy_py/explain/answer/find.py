"""Look-up of values and ops by name, by op, or by place in the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.arguments import as_integer, parse_integer, shown
from shardy_py.trace.labels import EDGE_SUFFIX, Labels, OpLabel

_OF_KIND = re.compile(r"([\w.-]+) @(\S+)$")
_NUMBERED = re.compile(r"([\w.-]+)#(\d+)$")


def find_slot(labels: Labels, key: int | str) -> int:
    """Return the slot of a value.

    Args:
        labels: The names.
        key: The number of an argument of the main function; a name as the text has it, with or without the percent
            sign, outside the main function with the function's name before it (``%5``, ``%5#1``, ``arg0``,
            ``@f:%2``); of a constant that was copied for each use, with the user (``%0 for %3``); ``result0`` for a
            result of the main function; the name that the user's program gives an argument or result of it
            (``params['w']``); or what `find_step` takes, for the first result of the op.

    Raises:
        OptionError: there is no such value, or several.
    """
    number = as_integer(key)
    if number is None and not isinstance(key, str):
        raise _unknown(shown(key), "value", labels.slots)
    text = f"arg{shown(number)}" if number is not None else str(key).strip()
    copied = {name[: match.start()] for name in labels.slots for match in re.finditer(" for ", name)}
    function, colon, name = text.rpartition(":") if text.startswith("@") else ("", "", text)
    for candidate in (name, f"%{name.removeprefix('%')}"):
        known_slot = labels.slots.get(f"{function}{colon}{candidate}", labels.aliases.get(candidate))
        if known_slot is not None:
            return known_slot
        written = f"{function}{colon}{candidate}"
        if written in labels.unseen and written not in copied:
            raise _unseen(key)
    copies = [label for label in labels.slots if label.startswith((f"{text} for ", f"%{text} for "))]
    if len(copies) > 1:
        message = f"{key} was copied, one for each use"
        raise OptionError(Diagnostic("ambiguous-value", message, hint=f"take one of {', '.join(copies)}"))
    if copies:
        return labels.slots[copies[0]]
    step = _find_step(labels, text)
    slot = None if step is None else next((slot for slot in _results(labels, step) if slot >= 0), None)
    if slot is None:
        raise _unknown(key, "value", labels.slots)
    return slot


def find_step(labels: Labels, key: str) -> int:
    """Return the step of an op, or the number of one through which nothing propagates, see `Labels.other`.

    Args:
        labels: The names.
        key: The name of a result; the op's name, where it is the only one of that name, or with its number among
            those, from 0, behind a hash (``stablehlo.dot_general#2``); the op's name with its results, as answers name
            it (``stablehlo.add %3``); its kind, as the report of ops without a rule names it
            (``stablehlo.custom_call @rms_norm``); or a part of the op's location, where no other op has it
            (``model.py:12``).

    Raises:
        OptionError: there is no such op, or several.
    """
    if not isinstance(key, str):
        raise _unknown(shown(key), "op", [str(label) for label in labels.ops.values()])
    step = _find_step(labels, key.strip())
    if step is None:
        name = f"%{key.strip().removeprefix('%')}"
        slot = labels.slots.get(name, labels.slots.get(key.strip(), labels.slots.get(f"{name}#0")))
        step = None if slot is None else _maker(labels, slot)
    if step is None:
        raise _unknown(key, "op", [str(label) for label in labels.ops.values()])
    return step


def _find_step(labels: Labels, key: str) -> int | None:
    numbered = _NUMBERED.match(key)
    name = numbered[1] if numbered else key
    ops = labels.ops
    shown_alike = [step for step, label in ops.items() if str(label) == key != label.name]
    if len(shown_alike) == 1:
        return shown_alike[0]
    named = [step for step, label in ops.items() if label.name.removesuffix(EDGE_SUFFIX) == name]
    if numbered and named:
        number = parse_integer(numbered[2])
        return None if number is None or number >= len(named) else named[number]
    steps = (
        named
        or _find_kind(labels, key)
        or [step for step, label in ops.items() if key and _is_part(key, label.location)]
    )
    if len(steps) > 1:
        names = ", ".join(_distinct_names(ops, steps[:8]))
        more = f" and {len(steps) - 8} more" if len(steps) > 8 else ""
        raise OptionError(
            Diagnostic("ambiguous-op", f"{len(steps)} ops match {key}", hint=f"take one of {names}{more}")
        )
    return steps[0] if steps else None


def _find_kind(labels: Labels, key: str) -> list[int]:
    """Return the numbers of the ops without a rule whose kind depends on an attribute."""
    kind = _OF_KIND.match(key)
    if kind is None:
        return []
    has_value = re.compile(rf" = {re.escape(kind[2])}(?![^,;\s])")
    others = [other.label.name == kind[1] and bool(has_value.search(other.attributes)) for other in labels.others]
    return [len(labels.results) + number for number, is_of_kind in enumerate(others) if is_of_kind]


def _results(labels: Labels, step: int) -> tuple[int, ...]:
    other = labels.other(step)
    return labels.results[step] if other is None else other.results


def _maker(labels: Labels, slot: int) -> int | None:
    """Return the number of the op that makes a value."""
    step, other = labels.maker(slot), labels.other_maker(slot)
    return step if step is not None or other is None else len(labels.results) + labels.others.index(other)


def _distinct_names(ops: Mapping[int, OpLabel], steps: Iterable[int]) -> Iterator[str]:
    """Yield the name by which each op can be looked up: with its results, or its number among ops of the name."""
    for step in steps:
        label = ops[step]
        alike = [other for other, other_label in ops.items() if other_label.name == label.name]
        is_named = sum(str(other_label) == str(label) for other_label in ops.values()) == 1 and str(label) != label.name
        yield str(label) if is_named else f"{label.name}#{alike.index(step)}"


def _is_part(key: str, location: str) -> bool:
    """Return whether a location has a part that ends where the key does, so that line 1 is not line 12."""
    return re.search(rf"{re.escape(key)}(?!\d)", location) is not None


def _unseen(key: object) -> OptionError:
    hint = "arguments of the body of a reduction have no sharding, nor has what nobody uses"
    return OptionError(Diagnostic("unsharded-value", f"{key} takes no part in propagation", hint=hint))


def _unknown(key: object, noun: str, known: Iterable[str]) -> OptionError:
    names = list(known)
    hint = f"known are {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}"
    return OptionError(
        Diagnostic(
            f"unknown-{noun}", f"the program has no {noun} {key if isinstance(key, str) else shown(key)}", hint=hint
        )
    )
