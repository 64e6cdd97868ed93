"""Reports as JSON: plain data with stable keys, and the origin of a record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import asdict

from shardy_py.api.main_function import argument_name, argument_names, arguments_of, result_name, result_names
from shardy_py.api.result import Result
from shardy_py.api.rules import OpRule
from shardy_py.api.summary import split_communications
from shardy_py.errors import Diagnostic
from shardy_py.extensions import function
from shardy_py.ir.graph.program import Value
from shardy_py.plugins import Registry
from shardy_py.report.summary import rule_text
from shardy_py.transforms.constant_copies import ConstantCopy

if TYPE_CHECKING:
    from shardy_py.cost.memory import MemoryReport


ORIGIN = "origin"


def record_json(
    data: Mapping[str, Any], origin: Mapping[str, Any] | None = None, *, warnings: Iterable[Diagnostic] | None = None
) -> str:
    """Return a record as JSON text.

    Args:
        data: The record.
        origin: What a reader needs to get the same record again; None where the caller knows it.
        warnings: What the user should know, as the key ``warnings``; None where the record has it.
    """
    record = dict(data) if origin is None else {ORIGIN: origin, **data}
    if warnings is not None:
        record["warnings"] = diagnostics_data(warnings)
    return json.dumps(record, indent=2, ensure_ascii=False)


def diagnostics_data(diagnostics: Iterable[Diagnostic]) -> list[dict[str, str]]:
    """Return diagnostics as plain data with stable keys."""
    return [
        {"code": item.code, "message": item.message, "location": item.location, "op": item.op, "hint": item.hint}
        for item in diagnostics
    ]


def report_data(result: Result, text: str | None = None) -> dict[str, Any]:
    """Return the summary, the coverage and the shardings of inputs and outputs as plain data.

    The copies of constants are there if they were recorded.

    Args:
        result: The result of a propagation.
        text: The module as it was written, where that was in another form than its own.
    """
    arguments = arguments_of(result.main)
    copies = {} if result.copies is None else {"copies": copies_data(result.copies)}
    communications = split_communications(result.communications, result.program, text)
    return {
        "function": result.main.attributes["sym_name"],
        "meshes": {name: str(mesh) for name, mesh in result.program.meshes.items()},
        "communications": dict(communications.written),
        "left_to_partitioner": dict(communications.left),
        "summary": {**asdict(result.summary), "axes_used": dict(result.summary.axes_used)},
        "coverage": {
            "ops": result.coverage.ops,
            "covered": result.coverage.covered,
            "missing": [asdict(item) for item in result.coverage.missing],
        },
        "arguments": [
            _value(result, value, argument_name(value.index), own_name)
            for value, own_name in zip(arguments, argument_names(result.main), strict=True)
        ],
        "results": [
            _value(result, value, result_name(value.index), own_name)
            for value, own_name in zip(result.main.function_results, result_names(result.main), strict=True)
        ],
        "warnings": diagnostics_data(result.warnings),
        **copies,
    }


def report_json(
    result: Result,
    *,
    text: str | None = None,
    memory: MemoryReport | None = None,
    origin: Mapping[str, Any] | None = None,
) -> str:
    """Return `report_data` as JSON text, with its origin, and what tensors take on a device where that is given."""
    sizes = {} if memory is None else {"memory": function("memory_data")(memory)}
    return record_json(report_data(result, text) | sizes, origin)


def rules_json(rules: Iterable[OpRule]) -> str:
    """Return the rules of a program as JSON text."""
    return _dump(
        [
            {
                "op": rule.op,
                "location": rule.location,
                "rule": None if rule.rule is None else rule_text(rule.rule),
                "data_flow": rule.data_flow,
            }
            for rule in rules
        ]
    )


def plugins_json(registry: Registry) -> str:
    """Return the plugins of a registry as JSON text."""
    return _dump(
        [
            {
                "name": plugin.name,
                "origin": plugin.origin,
                "source": plugin.source,
                "status": plugin.status,
                "dialects": list(plugin.dialects),
                "ops": list(plugin.op_names),
                "traits": list(plugin.traits),
                "types": list(plugin.types),
                "passes": list(plugin.passes),
                "frontends": list(plugin.frontends),
                "priorities": [str(item) for item in plugin.priorities],
                "problems": [item.show("warning") for item in plugin.problems],
            }
            for plugin in registry.plugins
        ]
    )


def copies_data(copies: Sequence[ConstantCopy]) -> list[dict[str, Any]]:
    """Return the copies as plain data."""
    return [
        {
            "op": item.op,
            "location": item.location,
            "type": item.type,
            "reason": item.reason.name.lower(),
            "user": item.user,
            "user_location": item.user_location,
            "operand": item.operand,
            "through": item.through or None,
            "original": item.original,
            "sharding": None if item.sharding is None else str(item.sharding),
            "outcome": item.outcome,
        }
        for item in copies
    ]


def _value(result: Result, value: Value, name: str, own_name: str) -> dict[str, Any]:
    sharding = result.sharding(value)
    return {
        "name": name,
        **({} if own_name == name else {"label": own_name}),
        "type": str(value.type),
        "sharding": None if sharding is None else str(sharding),
    }


def _dump(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


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
