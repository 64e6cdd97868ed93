"""Scalar bodies and indexing maps that a dialect gives as texts."""

from __future__ import annotations

from typing import Any


def as_emission(name: str, emission: Any) -> Any:
    """Return the scalar body of a text; any other as it is.

    Args:
        name: The name of the op, for errors.
        emission: What the dialect gives.

    Raises:
        PluginError: a text is not a valid scalar body.
    """
    if not isinstance(emission, str):
        return emission
    from shardy_py.plugins.bodies.text import parse_body

    return parse_body(emission, op=name)


def as_indexing(name: str, indexing: Any) -> Any:
    """Return the maps of texts as a function of the op; any other as it is.

    Args:
        name: The name of the op, for errors.
        indexing: What the dialect gives.

    Raises:
        PluginError: a text is not a valid map.
    """
    if not isinstance(indexing, str | list | tuple):
        return indexing
    from shardy_py.plugins.bodies.map_texts import parse_maps

    return parse_maps(indexing, op=name)
