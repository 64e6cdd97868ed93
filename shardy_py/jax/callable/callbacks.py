"""Calls of Python functions in modules: which ops they are, and by which numbers they find their functions."""

from __future__ import annotations

import re
from typing import Any

from shardy_py.ir.graph.program import Op

is_python_target = re.compile(r"xla_(ffi_)?(partitioned_)?python_\w*callback").fullmatch
"""Match of a custom call's target that stands for a Python function, by a number or an address in the process."""
_CALL = "stablehlo.custom_call"
_CONFIGS = ("mhlo.backend_config", "backend_config")


def has_side_effects(op: Op) -> bool:
    """Return whether an op of StableHLO does something that its results do not show.

    A call that says in which memory a value lies is marked so, and does nothing.
    """
    is_marked = op.name == _CALL and op.attributes.get("has_side_effect") is True
    return is_marked and op.attributes.get("call_target_name") != "annotate_device_placement"


def move_callbacks(module: Any, base: int) -> None:
    """Give the calls of Python functions in a native module the numbers of another list of functions.

    Args:
        module: The module, which changes.
        base: The number of the first function in the other list.
    """
    from jaxlib.mlir import ir

    def visit(op: Any) -> Any:
        if op.name == _CALL and is_python_target(ir.StringAttr(op.attributes["call_target_name"]).value):
            for name in _CONFIGS:
                if name in op.attributes and isinstance(op.attributes[name], ir.DictAttr):
                    op.attributes[name] = _moved(ir, op.attributes[name], base)
        return ir.WalkResult.ADVANCE

    if base:
        with module.context, ir.Location.unknown():
            module.operation.walk(visit)


def _moved(ir: Any, config: Any, base: int) -> Any:
    entries = {item.name: item.attr for item in config}
    if "index" in entries:
        unsigned = ir.IntegerType.get_unsigned(64)
        entries["index"] = ir.IntegerAttr.get(unsigned, ir.IntegerAttr(entries["index"]).value + base)
    return ir.DictAttr.get(entries)
