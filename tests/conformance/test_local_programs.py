"""Every program runs without a partitioner: its local program gives on host devices what one device gives."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from tests.conformance.conformance_data import DATA, need
from tests.conformance.local_answers import answers
from tests.conformance.sample import sample

need("programs")

LONG = {
    "conv_patch": "computes the holes of a dilated convolution for minutes, on one device, too",
    "gpt_scan_remat_dots_fsdp": "compiles for minutes",
    "linalg_chol_grad_cpu": "16 devices wait for each other for minutes on two cores",
    "while_body_calls_private_fn_open": "its loop ends for few inputs",
}
"""Programs that give no answer in time on one device or on all, with the reason."""
LARGE = 10_000
"""Bytes of a compressed program from which on XLA compiles for long."""
KNOWN = [
    path
    for path in sorted((DATA / "programs").glob("*.mlir.gz"), key=lambda path: path.stat().st_size)
    if path.name.removesuffix(".mlir.gz") not in LONG
]
FILES = [
    *sample((path for path in KNOWN if path.stat().st_size < LARGE), 5),
    *sample((path for path in KNOWN if path.stat().st_size >= LARGE), 20),
]
"""Every fifth small program and every twentieth large one, by size."""
PROCESSES = 1
WORKER = "tests.conformance.run_local_programs"

REFUSED = {
    "hand_tokens": "side-effects",
    "host_offload_remat": "side-effects",
    "unordered_effects_in_loop": "python-callback",
}
"""Programs without a local program, with the codes of the errors."""
WITHOUT_REFERENCE = {
    "custom_partitioning_rule": "No registered implementation",
    "hand_dynamic_conv": "can't be translated to XLA HLO",
    "hand_sdy_custom_sharding_rule_on_op": "No registered implementation",
    "hand_unary_einsum": "can't be translated to XLA HLO",
    "linalg_svd_cuda": "No FFI handler registered",
    "moe_ragged_tpu": "is not supported by XLA:CPU",
}
"""Programs that XLA does not compile for one host device either, with its words."""
NOT_RUN = {"big_mesh_64_5d": "64 devices"}
"""Programs that are not run here, with the reason."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    """What became of each program."""
    shares = [[str(path) for path in FILES[number::PROCESSES]] for number in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        rows = [row for share in pool.map(lambda files: list(answers(WORKER, files)), shares) for row in share]
    return {Path(row["name"]).name.removesuffix(".mlir.gz"): row for row in rows}


def table(outcomes: dict[str, dict[str, Any]]) -> str:
    """Return what became of each program, one a line."""
    lines = []
    for name, row in sorted(outcomes.items()):
        gathered = ", ".join(f"{count} {op}" for op, count in sorted(row.get("gathered", {}).items()))
        lines.append(
            f"{name:40} {row['status']:14} {row.get('ops', ''):>6}  {gathered} {row.get('reason', '')}".rstrip()
        )
    return "\n".join(lines)


@pytest.mark.conformance
def test_local_programs_compute_the_same(outcomes: dict[str, dict[str, Any]]) -> None:
    """All programs with static shapes give what one device gives, and devices with the same part agree."""
    print(table(outcomes))
    wrong = {name: row for name, row in outcomes.items() if row["status"] in ("differs", "failed", "crash", "broken")}
    assert not wrong, json.dumps(wrong, indent=1)
    assert len(outcomes) == len(FILES)
    assert sum(row["status"] == "equal" for row in outcomes.values()) >= 0.8 * len(FILES)


@pytest.mark.conformance
def test_programs_that_are_not_compared_have_a_reason(outcomes: dict[str, dict[str, Any]]) -> None:
    """What is refused, and what XLA does not run on one device, is listed with the reason."""
    refused = {name: row["reason"] for name, row in outcomes.items() if row["status"] == "refused"}
    assert refused.keys() <= REFUSED.keys(), refused
    assert all(f"[{REFUSED[name]}]" in reason for name, reason in refused.items()), refused
    missing = {name: row["reason"] for name, row in outcomes.items() if row["status"] == "no reference"}
    assert missing.keys() <= WITHOUT_REFERENCE.keys(), missing
    assert all(WITHOUT_REFERENCE[name] in reason for name, reason in missing.items()), missing
    others = {name for name, row in outcomes.items() if row["status"] == "too many devices"}
    assert others <= NOT_RUN.keys()
