"""A collective, before there is an op for it."""

from __future__ import annotations

from shardy_py.sharding.op_attributes import AllToAllParamList, ListOfAxisRefLists
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen
class Collective:
    """A collective to insert.

    Args:
        name: The name of the op.
        out_sharding: The sharding of its result.
        attribute: The name of the attribute that says what it does, or "".
        value: The value of that attribute.
    """

    name: str
    out_sharding: TensorSharding
    attribute: str = ""
    value: ListOfAxisRefLists | AllToAllParamList | None = None
