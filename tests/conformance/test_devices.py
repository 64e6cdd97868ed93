"""Every program runs: on as many host devices as its meshes have it computes what it computes on one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from tests.conformance.asked_process import AskedProcess
from tests.conformance.conformance_data import DATA, need
from tests.conformance.sample import sample

need("programs")

WORKER = "tests.conformance.run_program"
LARGE = 10_000
"""Bytes of a compressed program above which XLA compiles it without optimizations, as these take most of the time."""
FILES = sorted((DATA / "programs").glob("*.mlir.gz"), key=lambda path: (path.stat().st_size, path.name))
IS_LARGE = {path.name.removesuffix(".mlir.gz"): path.stat().st_size > LARGE for path in FILES}
NAMES = [
    *sample((name for name, is_large in IS_LARGE.items() if not is_large), 4),
    *sample((name for name, is_large in IS_LARGE.items() if is_large), 20),
]
"""Every fourth small program and every twentieth large one, by size."""
MORE_DEVICES = {"big_mesh_64_5d": 64}
"""Programs for more than 16 devices."""
UNOPTIMIZED = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

REFUSED_BY_XLA = {
    "custom_partitioning_rule": "No registered implementation for untyped custom call to CustomSPMDPartitioning",
    "hand_dynamic_conv": "'stablehlo.dynamic_conv' op can't be translated to XLA HLO",
    "hand_sdy_custom_sharding_rule_on_op": "No registered implementation for untyped custom call to mm for Host",
    "hand_unary_einsum": "'stablehlo.unary_einsum' op can't be translated to XLA HLO",
    "linalg_svd_cuda": "No FFI handler registered for cusolver_gesvdj_ffi",
    "moe_ragged_tpu": "HLO opcode `ragged-dot` is not supported by XLA:CPU",
}
"""Programs that XLA does not compile for one host device either, with its words."""

ROUNDED = {
    "haiku_mobilenet_train": (0.01, "gradients of batch norms cancel, and processors round their sums differently"),
}
"""Programs whose results are further apart than others', relative to the largest element, with the reason."""

NEVER_ENDING = {
    "hand_tokens": "waits for data that nothing hands over",
    "unordered_effects_in_loop": "calls a Python function of the process that wrote the module",
}
"""Programs that XLA compiles, but that wait for ever or end the process when they run on one device, with ours."""


@pytest.fixture(scope="module")
def shared() -> Iterator[AskedProcess]:
    """The process that small programs share."""
    process = AskedProcess(WORKER, flags="--xla_force_host_platform_device_count=16")
    yield process
    process.close()


def run(name: str, shared: AskedProcess) -> dict[str, Any]:
    """Return what a process says about a program; large ones, and those for more devices, have one of their own."""
    path = DATA / "programs" / f"{name}.mlir.gz"
    if not IS_LARGE[name] and name not in MORE_DEVICES:
        return dict(shared.ask(str(path)))
    flags = f"--xla_force_host_platform_device_count={MORE_DEVICES.get(name, 16)}"
    process = AskedProcess(WORKER, flags=f"{flags} {UNOPTIMIZED}" if IS_LARGE[name] else flags)
    try:
        return dict(process.ask(str(path)))
    finally:
        process.close()


@pytest.mark.conformance
@pytest.mark.parametrize("name", NAMES)
def test_programs_compute_the_same_on_devices(name: str, shared: AskedProcess) -> None:
    """Results are those of one device, within the tolerance of their dtype, and have no other NaNs."""
    answer = run(name, shared)
    if name in REFUSED_BY_XLA:
        assert REFUSED_BY_XLA[name] in answer["refused_on_one_device"]
        return
    if name in NEVER_ENDING:
        assert NEVER_ENDING[name] in answer["refused"]
        return
    assert "refused" not in answer, answer
    assert answer["results"] > 0
    if name in ROUNDED:
        most, _ = ROUNDED[name]
        assert answer["largest"] <= most
        return
    assert answer["apart"] == []
