"""``shardy mpmd explain``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from shardy_py.cli.files import echo_report, print_warnings, read_input
from shardy_py.cli.registry import plugin_registry
from shardy_py.cli.session import parse_in_shardings, parse_mesh_sizes
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.explanations.explain import OpPlacement, PipelineExplanation, explain_pipeline
from shardy_py.mpmd.explanations.removals import TransferRemoval
from shardy_py.mpmd.explanations.transfers import TransferExplanation
from shardy_py.mpmd.partitioning import Partitioning
from shardy_py.report.data import diagnostics_data


def run_explain(
    *,
    file: str,
    untrusted: bool,
    meshes: Sequence[str],
    assignments: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    in_shardings: Sequence[str],
    schedule: str,
    cheapest_transfers: bool,
    op: str | None,
    transfer: int | None,
    limit: int,
    as_json: bool,
    **plugins: Any,
) -> None:
    """Print why ops are on their meshes, or why there is a transfer and what would remove it."""
    if op is not None and transfer is not None:
        message, hint = "--op and --transfer exclude each other", "leave out one of them"
        raise OptionError(Diagnostic("option-conflict", message, hint=hint))
    registry = plugin_registry(**plugins)
    partitioning = Partitioning.of(
        read_input(file, untrusted=untrusted, registry=registry),
        parse_topology(meshes),
        assignments,
        schedule=schedule,
        inputs=inputs,
        outputs=outputs,
        cheapest_transfers=cheapest_transfers,
        in_shardings=parse_in_shardings(in_shardings) or None,
        registry=registry,
    )
    explanation = explain_pipeline(partitioning)
    print_warnings(explanation.warnings)
    if op is not None:
        placements = explanation.op(op)
        _print("\n".join(map(str, placements)), [placement_json(item) for item in placements], as_json=as_json)
    elif transfer is not None:
        explained = explanation.transfer(transfer)
        removals = explanation.removals(transfer, limit=limit)
        lines = [f"  {item}" for item in removals] or [f"  none of the changes that were tried, at most {limit}"]
        text = "\n".join([str(explained), "what would remove it:", *lines])
        data = transfer_json(explained) | {"removals": [removal_json(item) for item in removals]}
        _print(text, data, as_json=as_json)
    else:
        _print(str(explanation), explanation_json(explanation), as_json=as_json)


def parse_topology(texts: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the meshes of a command line.

    >>> parse_topology(["m0:x=2", "m1:x=2,y=4"])
    {'m0': {'x': 2}, 'm1': {'x': 2, 'y': 4}}

    Raises:
        OptionError: one has another form, or there are two of one name.
    """
    topology: dict[str, dict[str, int]] = {}
    for text in texts:
        name, colon, sizes = text.partition(":")
        if not colon or not name.strip() or name.strip() in topology:
            problem = "the name is there twice" if name.strip() in topology else "this is not NAME:AXIS=SIZE"
            message = f"--mesh {text}: {problem}"
            raise OptionError(Diagnostic("invalid-mesh", message, hint="--mesh m0:x=2 --mesh m1:x=2"))
        topology[name.strip()] = parse_mesh_sizes(sizes)
    return topology


def _print(text: str, data: Any, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(data, indent=2))
    else:
        echo_report(text)


def explanation_json(explanation: PipelineExplanation) -> dict[str, Any]:
    """Return an explanation as JSON values."""
    return {
        "ops": [placement_json(item) for item in explanation.placements],
        "transfers": [transfer_json(item) for item in explanation.transfers],
        "warnings": diagnostics_data(explanation.warnings),
    }


def placement_json(placement: OpPlacement) -> dict[str, Any]:
    """Return the placement of an op as JSON values."""
    return {
        "op": placement.op.name,
        "location": placement.op.location,
        "value": placement.op.value,
        "meshes": list(placement.meshes),
        "count": placement.count,
        "computation": placement.computation or None,
        "reason": placement.reason if placement.meshes else None,
    }


def transfer_json(transfer: TransferExplanation) -> dict[str, Any]:
    """Return a transfer as JSON values."""
    return {
        "number": transfer.number,
        "from": transfer.source.mesh,
        "to": transfer.target.mesh,
        "type": str(transfer.source.tensor),
        "count": transfer.count,
        "bytes_per_device": transfer.bytes_per_device,
        "made_by": transfer.made_by,
        "used_by": list(transfer.used_by),
    }


def removal_json(removal: TransferRemoval) -> dict[str, Any]:
    """Return a change that removes a transfer as JSON values."""
    return {"change": removal.change, "transfers": removal.transfers, "sent_bytes": removal.sent_bytes}
