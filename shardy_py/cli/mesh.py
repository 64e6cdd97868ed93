"""Meshes and shardings as a command line gives them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.arguments import parse_integer


def parse_mesh_sizes(text: str) -> dict[str, int]:
    """Return the axis sizes of ``data=4,model=2``.

    Raises:
        OptionError: it has another form.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (item.strip() for item in part.partition("="))
        number = parse_integer(size)
        if not name or number is None or name in sizes:
            raise OptionError(
                Diagnostic("invalid-mesh", f"--mesh {text}: {part!r} is not NAME=SIZE", hint="--mesh data=4,model=2")
            )
        sizes[name] = number
    return sizes


def parse_in_shardings(texts: Iterable[str]) -> dict[int | str, Any]:
    """Return the shardings of arguments that a command line gives.

    Raises:
        ShardyError: one has another form than ``arg0=data,None``.
    """
    return dict(_name_and_spec(text, "in-sharding", "arg0") for text in texts)


def parse_out_shardings(texts: Iterable[str]) -> dict[int | str, Any]:
    """Return the shardings of results that a command line gives.

    Raises:
        ShardyError: one has another form than ``result0=data,None``.
    """
    return dict(_name_and_spec(text, "out-sharding", "result0") for text in texts)


def _name_and_spec(text: str, option: str, example: str) -> tuple[str, Any]:
    name, equals, spec = text.partition("=")
    if not equals or not name.strip():
        kind = example.rstrip("0").upper()
        raise OptionError(
            Diagnostic(
                f"invalid-{option}s",
                f"--{option} {text}: this is not {'ARGUMENT' if kind == 'ARG' else kind}=SHARDING",
                hint=f"--{option} {example}=data,None",
            )
        )
    from shardy_py.api.specs import parse_spec

    return name.strip(), parse_spec(spec)
