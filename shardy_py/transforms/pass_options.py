"""The options of a pass as text: ``sdy-pass{keep-all limit=3}``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

import attrs

from shardy_py.errors import Diagnostic, OptionError, unknown_name
from shardy_py.ir.interfaces.passes import Pass

_PassT = TypeVar("_PassT", bound=Pass)
_TRUE = frozenset(("true", "1", ""))
_FALSE = frozenset(("false", "0"))
_CLOSING = {"{": "}", '"': '"', "'": "'"}


def split_options(text: str) -> dict[str, str]:
    """Split ``a=1 b={x y} c`` into names and values, in order.

    A value may be quoted or stand in braces; an option without a value gets "".

    Raises:
        OptionError: a quote or brace is not closed, or a name is missing.
    """
    return dict(_options(text))


def _options(text: str) -> Iterator[tuple[str, str]]:
    position, size = 0, len(text)
    while True:
        while position < size and text[position].isspace():
            position += 1
        if position == size:
            return
        start = position
        while position < size and not text[position].isspace() and text[position] != "=":
            position += 1
        name = text[start:position]
        if not name:
            raise OptionError(Diagnostic("malformed-option", f"an option name is missing in {text!r}"))
        if position == size or text[position] != "=":
            yield name, ""
            continue
        start = position + 1
        position = _end_of_value(text, start)
        yield name, _unwrap(text[start:position])


def _end_of_value(text: str, position: int) -> int:
    """Return where the value that starts at ``position`` ends: at white space outside quotes and braces."""
    expected: list[str] = []
    while position < len(text):
        char = text[position]
        if expected and char == expected[-1]:
            expected.pop()
        elif char in _CLOSING and not (expected and expected[-1] in "\"'"):
            expected.append(_CLOSING[char])
        elif char.isspace() and not expected:
            return position
        position += 1
    if expected:
        raise OptionError(Diagnostic("malformed-option", f"a {expected[-1]} is missing at the end of {text!r}"))
    return position


def _unwrap(value: str) -> str:
    if len(value) >= 2 and _CLOSING.get(value[0]) == value[-1]:
        return value[1:-1]
    return value


def option_fields(class_: type[Any]) -> dict[str, attrs.Attribute[Any]]:
    """Return the options of a pass by their names in pipelines."""
    # A plugin may have a pass of an ordinary class, without options.
    fields = attrs.fields(class_) if attrs.has(class_) else ()
    return {item.name.replace("_", "-"): item for item in fields if item.metadata.get("text", True)}


def make_pass(class_: type[_PassT], options: Mapping[str, str]) -> _PassT:
    """Return a pass from the text of its options.

    Raises:
        OptionError: the pass has no such option, or a value does not fit.
    """
    fields = option_fields(class_)
    values = {}
    for name, text in options.items():
        field = fields.get(name)
        if field is None:
            raise OptionError(_unknown_option(class_.name, name, fields))
        values[field.name] = _convert(class_.name, name, text, field.default)
    try:
        return class_(**values)
    except ValueError as error:
        raise OptionError(Diagnostic("invalid-option", f"{class_.name}: {error}")) from None


def _unknown_option(pass_name: str, name: str, known: Iterable[str]) -> Diagnostic:
    return unknown_name("unknown-option", f"{pass_name} has no option {name!r}", name, known)


def _convert(pass_name: str, option: str, text: str, default: Any) -> Any:
    """Return the value of an option, of the same kind as its default."""
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = default.factory()
    try:
        return _convert_like(text, default)
    except ValueError as error:
        message = f"{text!r} is not a valid value for the option {option} of {pass_name}"
        raise OptionError(Diagnostic("invalid-option", message, hint=str(error))) from None


def _convert_like(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return _boolean(text)
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise ValueError("expected an integer") from None
    if isinstance(default, Enum):
        return _enum(text, type(default))
    if isinstance(default, tuple):
        return tuple(item.strip() for item in text.split(",") if item.strip())
    return text


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("expected true or false")


def _enum(text: str, class_: type[Enum]) -> Enum:
    try:
        return class_(text)
    except ValueError:
        raise ValueError("expected " + " or ".join(str(item.value) for item in class_)) from None
