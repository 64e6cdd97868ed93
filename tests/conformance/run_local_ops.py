"""Run single ops, sharded in all ways that follow from their rules, and print a JSON object a line for each.

Started by test_local_ops.py in a process of its own: JAX counts its devices once, and XLA may end the process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from shardy_py.api.options import LocalOptions
from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.deviations import compare_results
from shardy_py.jax.host import use_devices
from shardy_py.jax.local import make_local_program
from shardy_py.jax.local.replicas import as_replicas
from shardy_py.jax.local.run_worker import run
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.run import run_on_attributes
from tests.conformance.local_ops.case import Axes, Case, known_numbers, program, ways_to_shard
from tests.conformance.local_ops.cases import CASES

DEVICES = 9
RULES = (RuleOptions(), RuleOptions(extended=True))
"""The rules of the reference alone, and those of all ops; what a rule cannot shard is resharded before."""
EVEN = 'sdy.mesh @mesh = <["x"=3, "y"=3], device_ids=[3, 1, 0, 2, 8, 5, 4, 7, 6]>'
UNEVEN = 'sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[3, 1, 0, 2, 7, 6, 5, 4]>'
"""Meshes whose axes divide all, or next to none, of the sizes, which are odd multiples of three for the most part."""
RUNS = ((EVEN, None), (UNEVEN, float("nan")), (UNEVEN, 77.0))
"""Meshes, with what padding holds: the first shows in floating-point results, the second in integers."""


def check(case: Case) -> dict[str, Any]:
    """Return what became of an op under all shardings."""
    registry = Registry.from_entry_points().with_options(RuleOptions(extended=True))
    unsharded_text = program(case, None, "", [])
    arrays = known_numbers(case, np.random.default_rng(0))
    try:
        expected = [parts[0] for parts in run(unsharded_text.encode(), 1, [array[None] for array in arrays])]
    except Exception as error:
        return {"status": "no reference", "reason": str(error).splitlines()[0][:200]}
    op = next(op for op in import_module(parse_module(unsharded_text)).walk() if op.name == case.op)
    rule = registry.get_sharding_rule(op)
    if rule is None:
        return {"status": "no rule"}
    ways = ways_to_shard(rule)
    gathered, apart = 0, []
    has_own = registry.with_options(RULES[0]).get_sharding_rule(op) is not None and not rule.reduction_factors
    for options in RULES[:1] if has_own else RULES:
        for mesh, padding in RUNS:
            text = program(case, rule, mesh, ways)
            copies = arrays * max(1, len(ways))
            actual, count = _run_local(text, copies, padding, registry.with_options(options))
            gathered += count
            apart += _apart(case, ways, actual, expected, f"{rule} {mesh} {padding} {options}")
    return {"status": "differs" if apart else "equal", "ways": len(ways), "gathered": gathered, "apart": apart[:6]}


def _run_local(text: str, arrays: Sequence[Any], padding: float | None, registry: Registry) -> tuple[list[Any], int]:
    """Return the results of a program on all devices, and the number of ops that were gathered."""
    imported = import_module(parse_module(text))
    pipeline = PropagationPipeline(
        enable_insert_explicit_collectives=True,
        reshard_ops_without_rule=True,
        update_non_divisible_input_output_shardings=False,
    )
    run_on_attributes(imported, pipeline.passes, PassContext(registry))
    local = make_local_program(write_back(imported), registry=registry, options=LocalOptions(), padding=padding)
    pairs = enumerate(zip(local.arguments, arrays, strict=True))
    shards = [port.split(array, local.device_count, number) for number, (port, array) in pairs]
    actual = run(as_replicas(local.module), local.device_count, shards)
    joined = [port.join(parts, number) for number, (port, parts) in enumerate(zip(local.results, actual, strict=True))]
    return joined, sum(item.code == "gathered-op" for item in local.warnings)


def _apart(
    case: Case, ways: Sequence[Axes], collected: Sequence[Any], expected: Sequence[Any], run_name: str
) -> list[str]:
    """Return the results that differ from those of one device, with the way that the op was sharded."""
    result, count = [], len(expected)
    for number, way in enumerate(ways or [{}]):
        case_results = collected[number * count : (number + 1) * count]
        for place, item in enumerate(compare_results(case_results, expected, tolerance=case.tolerance)):
            if not item.is_within:
                result.append(f"{dict(way)}, result {place}, {run_name}: {item}")
    return result


def main() -> None:
    """Check the cases whose numbers are on the command line."""
    use_devices(DEVICES)
    for number in sys.argv[1:]:
        print(json.dumps({"start": number}), flush=True)
        case = CASES[int(number)]
        try:
            answer = check(case)
        except ShardyError as error:
            answer = {"status": "refused", "reason": error.diagnostics[0].show("error").splitlines()[0]}
        except Exception as error:
            answer = {"status": "broken", "reason": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"name": number, "op": case.op, **answer}), flush=True)


if __name__ == "__main__":
    main()
