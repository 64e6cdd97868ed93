"""The base of all values that can be attributes of an op."""

from __future__ import annotations

from typing import ClassVar


class SdyAttribute:
    """A value that can be an attribute of an op, such as ``#sdy.sharding<...>``.

    Attributes:
        mnemonic: The name of the attribute.
        is_array: Whether it is a mere array, which MLIR writes inside the brackets: ``#sdy<manual_axes{"x"}>``.
    """

    __slots__ = ()

    mnemonic: ClassVar[str]
    is_array: ClassVar[bool] = False
