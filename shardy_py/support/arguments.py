"""Check the arguments of public functions: a wrong one is an error that names it."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import unwrap
from itertools import chain
from math import isnan
from numbers import Real
from operator import index
from types import UnionType
from typing import Any, ParamSpec, TypeVar

from shardy_py.errors import Diagnostic, OptionError, with_article
from shardy_py.values import without_addresses

_P = ParamSpec("_P")
_R = TypeVar("_R")
_WIDTH = 80
Check = tuple[Callable[[object], bool], str]
"""A predicate of values that fit, and words for them."""


def shown(value: object) -> str:
    """Return a value as Python writes it, shortened; it never fails, as that of numbers and of objects may.

    >>> shown("a" * 100)[-5:], shown(10**5000)
    ('aa...', 'a number of 16610 bits')
    """
    try:
        text = without_addresses(repr(value))
    except Exception:  # whatever the object of a caller raises
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a number of {bits} bits" if bits else with_article(type(value).__name__)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function refuse arguments that are not of the annotated types, as far as these are simple ones.

    The annotations are texts, as ``from __future__ import annotations`` makes them. A callable, a flag, an integer, a
    path, a registry, integers and instances of classes that the module knows are checked; everything else is left to
    the function.
    """
    inner: Any = unwrap(function)
    names = inner.__code__.co_varnames[: inner.__code__.co_argcount]
    checks = checks_of(inner.__annotations__, inner.__globals__)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        check_arguments(inner.__name__, checks, chain(zip(names, args, strict=False), kwargs.items()))
        return function(*args, **kwargs)

    return call


def checks_of(annotations: Mapping[str, object], known: Mapping[str, Any]) -> dict[str, Check]:
    """Return the checks of arguments, by name; those without a simple type have none.

    Args:
        annotations: Name to annotation, as text.
        known: The names that annotations may use.
    """
    checks = {name: _check_of(str(text), known) for name, text in annotations.items()}
    return {name: check for name, check in checks.items() if check is not None}


def check_arguments(function: str, checks: Mapping[str, Check], arguments: Iterable[tuple[str, object]]) -> None:
    """Refuse arguments that are not of their types.

    Args:
        function: The name of the function, for the error.
        checks: The checks by the names of arguments.
        arguments: The arguments by name.

    Raises:
        OptionError: one is of another type.
    """
    for name, value in arguments:
        check = checks.get(name)
        if check is not None and not check[0](value):
            message = f"{function}: {name} is {shown(value)}, not {check[1]}"
            raise OptionError(Diagnostic("invalid-argument", message))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool_"


def _is_integer(value: object) -> bool:
    number = as_integer(value)
    return number is not None and -INT64_MAX <= number <= INT64_MAX


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return not isnan(value)
    except OverflowError:
        return False


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike)) and "\0" not in os.fspath(value)


def _is_registry(value: object) -> bool:
    return "Registry" in [item.__name__ for item in type(value).__mro__]


def _is_policy(value: object) -> bool:
    return callable(getattr(value, "choose", None)) and hasattr(value, "name")


def _are_integers(value: object) -> bool:
    if isinstance(value, (str, bytes)) or not (isinstance(value, Sequence) or hasattr(value, "__array__")):
        return False
    items: Any = value
    try:
        return all(map(_is_integer, items))
    except TypeError:
        return False


def _is_links(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(axis, str) and isinstance(links, Sequence) and all(isinstance(link, str) for link in links)
        for axis, links in value.items()
    )


def _is_machine(value: object) -> bool:
    return isinstance(value, (str, os.PathLike)) or type(value).__name__ == "Machine"


def _is_naming(value: object) -> bool:
    return isinstance(value, str) and value in ("result", "input")


_SIMPLE: dict[str, Check] = {
    "bool": (_is_flag, "True or False"),
    "int": (_is_integer, "an integer of at most 63 bits"),
    "float": (_is_number, "a number"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "str | Path": (_is_path, "a path"),
    "Registry": (_is_registry, "a Registry"),
    "LayoutPolicy": (_is_policy, "a LayoutPolicy"),
    "AxisLinks": (_is_links, "a mapping of axis names to lists of names of links"),
    "MachineLike": (_is_machine, "a Machine, the name of one, or the path of a TOML file"),
    "Measure": (lambda value: isinstance(value, str), "the name of a measure"),
    "Literal['result', 'input']": (_is_naming, "'result' or 'input'"),
    "Sequence[int]": (_are_integers, "a sequence of integers"),
    "tuple[int, ...]": (_are_integers, "a sequence of integers"),
    "StageCallback": (callable, "a function"),
    "ProgressCallback": (callable, "a function"),
    "AfterPass": (callable, "a function"),
    "Progress": (callable, "a function"),
    "Observer": (callable, "a function"),
}
"""The text of an annotation to what says whether a value fits it, and what the value should be."""


_GENERIC: tuple[tuple[str, Any, str], ...] = (
    ("Callable[", Callable, "a function"),
    ("Mapping[", Mapping, "a mapping"),
    ("Iterable[", Iterable, "a list"),
    ("Sequence[", Sequence, "a list"),
)
"""The beginning of an annotation, the class of its values, and the words for such a value."""


def _check_of(text: str, known: Mapping[str, Any]) -> Check | None:
    """Return the check of an annotation, or None where it is not a simple one."""
    simple = _SIMPLE.get(text)
    if simple is not None:
        return simple
    parts = [_part(part, known) for part in _alternatives(text)]
    checks = [part for part in parts if part is not None]
    if len(checks) < len(parts):
        return None
    return lambda value: any(check(value) for check, _ in checks), " or ".join(what for _, what in checks)


def _alternatives(text: str) -> list[str]:
    """Return the alternatives of an annotation, split at bars outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _part(text: str, known: Mapping[str, Any]) -> Check | None:
    if text == "None":
        return lambda value: value is None, "None"
    if text in _SIMPLE:
        return _SIMPLE[text]
    generic = next((item for item in _GENERIC if text.startswith(item[0])), None)
    if generic is not None:
        _, classes, what = generic
        return lambda value: isinstance(value, classes) and not isinstance(value, (str, bytes)), what
    # What a function takes in many forms it explains better itself.
    class_: Any = None if text == "Any" or text.endswith("Like") else known.get(text)
    is_union = isinstance(class_, UnionType) and all(isinstance(item, type) for item in class_.__args__)
    if is_union or (isinstance(class_, type) and not getattr(class_, "_is_protocol", False)):
        return lambda value: isinstance(value, class_), with_article(text)
    return None


INT64_MAX = 2**63 - 1
_MOST_DIGITS = 1000


def as_integer(value: Any) -> int | None:
    """Return an integer of Python or numpy; None for anything else, be it a Boolean.

    >>> as_integer(3), as_integer(True), as_integer("3")
    (3, None, None)
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def parse_integer(text: str) -> int | None:
    """Return the value of a decimal number without a sign; None for any other text, and beyond 64 bits.

    >>> parse_integer("12"), parse_integer("-1"), parse_integer("9" * 5000)
    (12, None, None)
    """
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return None
    value = int(text)
    return value if value <= INT64_MAX else None


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, even if its annotations cannot be evaluated.

    From Python 3.14 on annotations are evaluated when they are asked for, which `inspect.signature` does by itself.

    Raises:
        TypeError: it cannot be called.
        ValueError: it has no signature, as some functions of C.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.STRING)
    return inspect.signature(function)


def parameter_names(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters of a function; none where it has no signature.

    >>> sorted(parameter_names(lambda x, op=None: x))
    ['op', 'x']
    """
    try:
        return frozenset(signature_of(function).parameters)
    except (TypeError, ValueError):
        return frozenset()
