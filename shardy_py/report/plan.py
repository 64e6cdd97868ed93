"""Parallel plans of programs of PyTorch as JSON."""

from __future__ import annotations

import json
from typing import Any

from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic


def plan_data(result: Result, *, warnings: list[Diagnostic] | None = None) -> dict[str, Any]:
    """Return the styles of layers along each dimension of the mesh, and the placements of parameters, as plain data.

    Args:
        result: The propagated program of PyTorch.
        warnings: Gets what no style says; without it, Python's `warnings` do.

    Raises:
        OptionError: it is no program of PyTorch.
        UnsupportedError: placements cannot say a sharding.
    """
    mesh = next(iter(result.program.meshes.values()), None)
    axes = () if mesh is None else mesh.axes
    if not axes:
        # A program of another kind has no plan, which the call says.
        result.parallelize_plan()
    plans = {axis.name: result.parallelize_plan(axis=axis.name, warnings=warnings) for axis in axes}
    arguments = result.program.origin.arguments
    return {
        "mesh": {axis.name: axis.size for axis in axes},
        "plans": {
            axis: {module: _entry(entry) for module, entry in plan.items()} for axis, plan in plans.items() if plan
        },
        "warnings": list(dict.fromkeys(item.message for plan in plans.values() for item in plan.warnings)),
        "notes": [item.message for plan in plans.values() for item in plan.notes],
        "placements": {
            name: [str(placement) for placement in result.placements(number)]
            for number, item in enumerate(arguments)
            if item.kind in ("parameter", "buffer")
            for name in item.names
        },
    }


def _entry(entry: Any) -> dict[str, str]:
    """Return the style of a layer, with the placements that are not the style's own."""
    layouts = {"input_layouts": entry.input, "output_layouts": entry.output}
    return {"style": entry.style, **{name: str(item) for name, item in layouts.items() if item is not None}}


def plan_json(result: Result, *, warnings: list[Diagnostic] | None = None) -> str:
    """Return `plan_data` as JSON."""
    return json.dumps(plan_data(result, warnings=warnings), indent=2) + "\n"
