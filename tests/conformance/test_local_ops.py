"""Each op of StableHLO that has a rule gives on shards what it gives on one device, however its factors are sharded.

Every factor is sharded alone and in pairs, with sizes that divide and sizes that do not, and padding that must not
count. SHARDY_ALL_PROGRAMS runs all ops, not a sample.
"""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from shardy_py.plugins import Registry, RuleOptions
from tests.conformance.local_answers import answers
from tests.conformance.local_ops.cases import CASES

WORKER = "tests.conformance.run_local_ops"
STEP = 1 if "SHARDY_ALL_PROGRAMS" in os.environ else 17
ACROSS_DEVICES = {
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.cross-replica-sum",
    "stablehlo.reduce_scatter",
}
"""Ops without a meaning on one device; programs with them are in the sweep of programs."""
WITHOUT_REFERENCE = {
    "stablehlo.dynamic_conv",
    "stablehlo.unary_einsum",
    "stablehlo.uniform_dequantize",
    "stablehlo.uniform_quantize",
}
"""Ops that XLA:CPU does not compile for one device either."""


def test_all_ops_with_a_rule_have_a_case() -> None:
    """An op that gets a rule gets a case here, too."""
    registry = Registry.from_entry_points().with_options(RuleOptions(extended=True))
    names = {item.name for item in registry.definitions if item.rule is not None}
    stablehlo_names = {name for name in names if name.startswith("stablehlo.")}
    assert stablehlo_names - {case.op for case in CASES} == ACROSS_DEVICES


@pytest.mark.conformance
def test_ops_compute_the_same_on_shards() -> None:
    """Whatever factors are sharded, devices give what one device gives, and those with the same part agree."""
    rows = list(answers(WORKER, [str(number) for number in range(0, len(CASES), STEP)]))
    print(*(json.dumps(row) for row in rows), sep="\n")
    wrong = [row for row in rows if row["status"] not in ("equal", "no reference")]
    assert not wrong, json.dumps(wrong, indent=1)
    assert {row["op"] for row in rows if row["status"] == "no reference"} <= WITHOUT_REFERENCE
    assert all(row["ways"] for row in rows if row["status"] == "equal" and row["op"] != "stablehlo.custom_call")
