"""Reports as JSON: plain data with stable keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import asdict

from shardy_py.api.communications import split_communications
from shardy_py.api.main_function import argument_name, argument_names, arguments_of, result_name, result_names
from shardy_py.api.result import Result
from shardy_py.api.rules import OpRule
from shardy_py.extensions import function
from shardy_py.ir.graph.program import Value
from shardy_py.plugins import Registry
from shardy_py.report.copies import copies_data
from shardy_py.report.diagnostics import diagnostics_data
from shardy_py.report.json_text import record_json

if TYPE_CHECKING:
    from shardy_py.cost.memory import MemoryReport


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
            _value(result, value, argument_name(value.index), own)
            for value, own in zip(arguments, argument_names(result.main), strict=True)
        ],
        "results": [
            _value(result, value, result_name(value.index), own)
            for value, own in zip(result.main.function_results, result_names(result.main), strict=True)
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
                "rule": None if rule.rule is None else str(rule.rule),
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


def _value(result: Result, value: Value, name: str, own: str) -> dict[str, Any]:
    sharding = result.sharding(value)
    return {
        "name": name,
        **({} if own == name else {"label": own}),
        "type": str(value.type),
        "sharding": None if sharding is None else str(sharding),
    }


def _dump(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
