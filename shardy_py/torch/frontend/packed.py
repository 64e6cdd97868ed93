"""Imported programs as bytes, for other processes."""

from __future__ import annotations

from attrs import field

from shardy_py.values import frozen


@frozen
class PackedProgram:
    """An op graph in the form for other processes.

    Args:
        data: The bytes, as `shardy_py.torch.frontend.packing.pack` makes them.
    """

    data: bytes = field(repr=False)
