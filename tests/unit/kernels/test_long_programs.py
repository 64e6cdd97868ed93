"""Fusions of many ops, operands or dimensions, which no recursion limit stops."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import sys

import numpy as np
from xdsl.ir import Block

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.partition import MAX_OPS
from tests.unit.kernels.fusions import fusion_of

KIND = "tensor<64xf32>"


def chain(count: int, *steps: str) -> str:
    """A chain of ops; V stands for the value before, T for its type."""
    kinds = [step.replace("T", KIND) for step in steps]
    lines = [f"%v{n + 1} = {kinds[n % len(kinds)].replace('V', f'%v{n}')}" for n in range(count)]
    head = f"func.func @main(%v0: {KIND}, %i: tensor<i32>) -> {KIND} {{"
    return "\n".join([head, *lines, f"return %v{count} : {KIND}", "}"])


def test_chains_are_emitted() -> None:
    """More ops behind each other than Python's recursion goes deep: elementwise ones, and those that move elements."""
    count = sys.getrecursionlimit() + 10
    text = chain(count, "stablehlo.negate V : T", "stablehlo.reverse V, dims = [0] : T", "stablehlo.add %v0, V : T")
    module = emit(fusion_of(text)).initial_module()
    assert sum(op.name == "arith.negf" for op in module.walk()) == -(-count // 3)


def test_ops_that_read_inside_each_other_are_refused() -> None:
    """Ops whose reads are nested beyond the recursion limit are refused with the place, and no plugin is blamed."""
    text = chain(300, "stablehlo.dynamic_slice V, %i, sizes = [64] : (T, tensor<i32>) -> T")
    with pytest.raises(UnsupportedError, match="are nested too deeply") as error:
        emit(fusion_of(text)).initial_module()
    assert error.value.diagnostics[0].code == "nested-too-deeply"
    assert error.value.diagnostics[0].location


def test_ops_behind_padding_are_read_in_the_branch() -> None:
    """What is behind a condition is not read before it, as it may lie outside of memory."""
    text = """func.func @main(%x: tensor<50xf32>, %z: tensor<f32>) -> tensor<100xf32> {
      %0 = stablehlo.negate %x : tensor<50xf32>
      %1 = stablehlo.pad %0, %z, low = [25], high = [25], interior = [0]
          : (tensor<50xf32>, tensor<f32>) -> tensor<100xf32>
      %2 = stablehlo.abs %1 : tensor<100xf32>
      return %2 : tensor<100xf32>
    }"""
    x = np.linspace(-1, 1, 50, dtype=np.float32)
    (actual,) = emit(fusion_of(text)).run(x, np.zeros((), np.float32), stage="initial")
    np.testing.assert_array_equal(actual, np.pad(np.abs(x), 25))


def test_many_operands_are_read_by_one_function() -> None:
    """Parameters beyond the most ops of a function have none of their own, which would take all of them each."""
    count = MAX_OPS + 50
    names = [f"%x{number}" for number in range(count)]
    arguments = ", ".join(f"{name}: tensor<2xf32>" for name in names)
    types, result = ", ".join(["tensor<2xf32>"] * count), f"tensor<{2 * count}xf32>"
    text = f"""func.func @main({arguments}) -> {result} {{
      %0 = stablehlo.concatenate {", ".join(names)}, dim = 0 : ({types}) -> {result}
      return %0 : {result}
    }}"""
    assert len(emit(fusion_of(text)).functions) == 1


def test_dimensions_of_size_one() -> None:
    """Dimensions of size one add nothing to a place in memory, however many there are."""
    kind = f"tensor<{'1x' * 600}8xf32>"
    text = f"func.func @main(%x: {kind}) -> {kind} {{ %0 = stablehlo.add %x, %x : {kind} return %0 : {kind} }}"
    assert "tensor.extract" in emit(fusion_of(text)).stage("flatten-tensors")


def count_block_steps(operands: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often xDSL goes from a block to the next one while the kernel of a concatenate is lowered and verified."""
    names, kinds = ", ".join(["%x"] * operands), ", ".join(["tensor<2xf32>"] * operands)
    result = f"tensor<{2 * operands}xf32>"
    text = f"""func.func @main(%x: tensor<2xf32>) -> {result} {{
      %0 = stablehlo.concatenate {names}, dim = 0 : ({kinds}) -> {result}
      return %0 : {result}
    }}"""
    kernel = emit(fusion_of(text))
    steps = 0

    def next_block(block: Block) -> Block | None:
        nonlocal steps
        steps += 1
        return block._next_block

    with monkeypatch.context() as patch:
        patch.setattr(Block, "next_block", property(next_block))
        kernel.module()
    return steps


def test_work_for_many_operands_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many operands take about twice as many steps from block to block, and not four times as many."""
    assert count_block_steps(160, monkeypatch) < 2.5 * count_block_steps(80, monkeypatch)
