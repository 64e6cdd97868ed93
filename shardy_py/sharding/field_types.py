"""The types of the parts of shardings and meshes, for values that callers make themselves."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.arguments import shown
from shardy_py.support.integers import as_integer

_FIELDS: dict[type, dict[str, tuple[type, ...]]] = {
    MeshAxis: {"name": (str,), "size": (int,)},
    Mesh: {"axes": (MeshAxis,), "device_ids": (int,)},
    SubAxis: {"pre_size": (int,), "size": (int,)},
    AxisRef: {"name": (str,), "sub_axis": (SubAxis, type(None))},
    DimensionSharding: {"axes": (AxisRef,), "is_closed": (bool,), "priority": (int, type(None))},
    TensorSharding: {
        "mesh": (str, Mesh),
        "dim_shardings": (DimensionSharding,),
        "replicated_axes": (AxisRef,),
        "unreduced_axes": (AxisRef,),
        "reduction_op": (str,),
    },
}
_EXAMPLE = 'TensorSharding("mesh", (DimensionSharding((AxisRef("x"),)), DimensionSharding())), on Mesh.of(x=2)'
_WORDS = {str: "a text", int: "an integer", bool: "True or False", type(None): "None"}
_TUPLES = {"axes", "device_ids", "dim_shardings", "replicated_axes", "unreduced_axes"}


def field_problem(value: Any) -> Diagnostic | None:
    """Return the first part of a sharding or a mesh that is of another type than its class says.

    >>> print(field_problem(DimensionSharding(("x",))).message)
    axes of DimensionSharding is ('x',), not a tuple of AxisRef
    """
    for name, classes in _FIELDS.get(type(value), {}).items():
        given = getattr(value, name)
        items = given if name in _TUPLES and isinstance(given, tuple) else (given,)
        if not all(_fits(item, classes) for item in items):
            known = " or ".join(_WORDS.get(item, item.__name__) for item in classes)
            wanted = f"a tuple of {known}" if name in _TUPLES else known
            message = f"{name} of {type(value).__name__} is {shown(given)}, not {wanted}"
            return Diagnostic("invalid-field", message, hint=_EXAMPLE)
        for item in items:
            problem = field_problem(item)
            if problem is not None:
                return problem
    return None


def _fits(item: object, classes: tuple[type, ...]) -> bool:
    if isinstance(item, str):
        # Half a pair of surrogates is no Unicode, and MLIR has no text for it.
        return str in classes and item == item.encode(errors="ignore").decode()
    if type(item).__name__ in ("bool", "bool_"):
        return bool in classes
    return isinstance(item, classes) or (int in classes and as_integer(item) is not None)
