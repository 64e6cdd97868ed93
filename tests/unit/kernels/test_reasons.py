"""Reasons for emitter, grid and unroll factor."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

from shardy_py.kernels import emit
from shardy_py.kernels.reasons import explain
from tests.unit.kernels.fusions import NEGATE, SUM, TRANSPOSE, UPDATE, fusion_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NEGATE.format(shape="300"), ("emitter loop", "unroll 1: 300 elements are fewer than the 270336 threads")),
        (NEGATE.format(shape="270336"), ("emitter loop", "unroll 4: the greatest divisor")),
        (
            TRANSPOSE.format(shape="20x160x170", result="170x160x20", dims="2, 1, 0", dtype="f32"),
            ("emitter transpose", "170 and 20 swap", "32 x 1 x 33 in shared", "an element fills a word"),
        ),
        (
            TRANSPOSE.format(shape="64x64", result="64x64", dims="1, 0", dtype="bf16"),
            ("packed: 2 elements of 16 bits", "64 x 64 has 64 rows of 64 in use"),
        ),
        (SUM.format(shape="1024x4096", dim=1, result="1024"), ("emitter reduction", "256 threads share a row")),
        (
            UPDATE.format(read="", update="%u"),
            ("emitter in_place_dynamic_update_slice", "those of the update, tensor<5x6xf32>"),
        ),
    ],
)
def test_reasons(text: str, expected: tuple[str, ...]) -> None:
    """The reasons name the rule that applied, with the numbers of this kernel and its device."""
    kernel = emit(fusion_of(text))
    found = "\n".join(explain(kernel))
    for part in expected:
        assert part in found
    assert found.endswith(f"grid: {kernel.launch.blocks[0]} blocks of {kernel.launch.threads[0]} threads")
