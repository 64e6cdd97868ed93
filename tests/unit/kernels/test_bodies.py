"""Kernels of ops whose traits promise a movement or a reduction, and whose bodies or maps do something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

import shardy_py as sdy
from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.indexing import IndexingMap, bounds_of, dim, op_maps, symbol
from shardy_py.ir.graph.program import Op
from shardy_py.kernels import Fusion, emit
from shardy_py.kernels.fusion.choose import EmitterKind
from shardy_py.plugins import ElementBuilder, Scalar
from shardy_py.testing import assert_emits

CONCATENATE, LOOP, REDUCTION, TRANSPOSE = (
    EmitterKind.CONCATENATE,
    EmitterKind.LOOP,
    EmitterKind.REDUCTION,
    EmitterKind.TRANSPOSE,
)


def joined(op: Op) -> list[IndexingMap]:
    """The rows of each operand behind those of the ones before it."""
    output, sizes = op.result.type.shape, [value.type.shape[0] for value in op.operands]
    places = zip(accumulate(sizes, initial=0), sizes, strict=False)
    return [op_maps.concatenate(output, 0, place, size) for place, size in places]


def joined_backwards(op: Op) -> list[IndexingMap]:
    """The rows of the last operand first."""
    output, sizes = op.result.type.shape, [value.type.shape[0] for value in op.operands]
    return [op_maps.concatenate(output, 0, sum(sizes[n + 1 :]), size) for n, size in enumerate(sizes)]


def reshaped(op: Op) -> list[IndexingMap]:
    """The same place in memory."""
    return [op_maps.reshape(op.result.type.shape, op.operands[0].type.shape)]


def first_half(op: Op) -> list[IndexingMap]:
    """The first half of each row, and the initial value."""
    shape, columns = op.result.type.shape, op.operands[0].type.shape[1]
    half = IndexingMap((dim(0), symbol(0)), bounds_of(shape), bounds_of((columns // 2,)))
    return [half, op_maps.scalar(shape)]


def by_region(b: ElementBuilder, op: Op) -> Any:
    """Combine by the op's region."""
    return b.reduce(b.maps[0], [b.operand(1)], lambda at, carried: b.call(op, [*carried, b.operand(0, at)]))


def negated(b: ElementBuilder, op: Op) -> Scalar:
    """Combine by the op's region, and negate."""
    return b.op("arith.negf", by_region(b, op)[0])


ROWS = ["(i)[k] -> (i, k)", "(i) -> ()"]


@cache
def odd_registry() -> sdy.Registry:
    """A dialect beside the bundled ones whose ops keep or break what their traits promise."""
    odd = sdy.Dialect("odd")
    odd.op("odd.join", traits=[sdy.Concatenation], indexing=joined, emission="*xs -> pick(*xs)")
    odd.op("odd.join_twice", traits=[sdy.Concatenation], indexing=joined, emission="*xs -> 2 * pick(*xs)")
    odd.op("odd.join_back", traits=[sdy.Concatenation], indexing=joined_backwards, emission="*xs -> pick(*xs)")
    odd.op("odd.turn", indexing="(i, j) -> (j, i)", emission="x -> x")
    odd.op("odd.twice", traits=[sdy.Reshape], indexing=reshaped, emission="x -> x * 2")
    odd.op("odd.more", traits=[sdy.Bitcast], indexing=reshaped, emission="x -> x + 1")
    odd.op("odd.rows", traits=[sdy.Reduction], indexing=ROWS, emission=by_region)
    odd.op("odd.minus_rows", traits=[sdy.Reduction], indexing=ROWS, emission=negated)
    odd.op("odd.halves", traits=[sdy.Reduction], indexing=first_half, emission=by_region)
    maps = ["(i, j)[k] -> (j, i, k)", "(i, j) -> ()"]
    odd.op("odd.rows_turned", traits=[sdy.Reduction], indexing=maps, emission=by_region)
    odd.op("odd.from_each", traits=[sdy.Reduction], indexing=["(i)[k] -> (i, k)", "(i) -> (i)"], emission=by_region)

    class Plugin:
        __shardy_name__ = "odd"

        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [odd]

    return sdy.Registry.from_entry_points(plugins=[Plugin()])


def check(text: str, function: Callable[..., Any], arrays: list[Any], kind: EmitterKind) -> None:
    """The kernel of a function has an emitter, and computes what numpy does at the first and the last stage."""
    module = import_module(parse_module(f"func.func @main{text}"))
    kernel = emit(Fusion.of_function(module.functions["main"], odd_registry()))
    want = function(*arrays)
    for stage in ("initial", None):
        (actual,) = kernel.run(*arrays, stage=stage)
        np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-5)
    assert kernel.choice.kind is kind


def numbers(*shape: int) -> Any:
    """Random numbers."""
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


X = "(%x: tensor<48x64xf32>"
JOIN = (
    X
    + """, %y: tensor<16x64xf32>) -> tensor<64x64xf32> {{
  %0 = "odd.{name}"(%x, %y) : (tensor<48x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}}"""
)


@pytest.mark.parametrize(
    ("name", "function", "kind"),
    [
        ("join", lambda x, y: np.concatenate([x, y]), CONCATENATE),
        ("join_twice", lambda x, y: 2 * np.concatenate([x, y]), LOOP),
        ("join_back", lambda x, y: np.concatenate([y, x]), LOOP),
    ],
)
def test_concatenations(name: str, function: Callable[..., Any], kind: EmitterKind) -> None:
    """Operands that are joined in order, as they are, go through the emitter of concatenates; others through loops."""
    check(JOIN.format(name=name), function, [numbers(48, 64), numbers(16, 64)], kind)


def test_a_reshape_that_computes_behind_a_transpose() -> None:
    """A body behind tiles is computed."""
    text = (
        X
        + """) -> tensor<3072xf32> {
  %0 = "odd.turn"(%x) : (tensor<48x64xf32>) -> tensor<64x48xf32>
  %1 = "odd.twice"(%0) : (tensor<64x48xf32>) -> tensor<3072xf32>
  return %1 : tensor<3072xf32>
}"""
    )
    check(text, lambda x: 2 * x.T.reshape(-1), [numbers(48, 64)], LOOP)


def test_a_bitcast_that_computes_behind_an_update() -> None:
    """All elements of an update in place stay as they are, so that a body behind it takes a loop."""
    text = (
        X
        + """, %u: tensor<5x6xf32>) -> tensor<3072xf32> {
  %i = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
      : (tensor<48x64xf32>, tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<48x64xf32>
  %1 = "odd.more"(%0) : (tensor<48x64xf32>) -> tensor<3072xf32>
  return %1 : tensor<3072xf32>
}"""
    )

    def function(x: Any, update: Any) -> Any:
        actual = x.copy()
        actual[3:8, 3:9] = update
        return actual.reshape(-1) + 1

    check(text, function, [numbers(48, 64), numbers(5, 6)], LOOP)


REDUCE = """(%x: tensor<{shape}xf32>, %z: tensor<{init}f32>) -> tensor<{result}xf32> {{
  %0 = "odd.{name}"(%x, %z) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) : (tensor<{shape}xf32>, tensor<{init}f32>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}"""


@pytest.mark.parametrize(
    ("name", "function", "kind"),
    [
        ("rows", lambda x, z: x.sum(1) + z, REDUCTION),
        ("minus_rows", lambda x, z: -(x.sum(1) + z), LOOP),
        ("halves", lambda x, z: x[:, :32].sum(1) + z, LOOP),
        ("from_each", lambda x, z: x.sum(1) + z, LOOP),
        ("rows_turned", lambda x, z: x.sum(2).T + z, LOOP),
    ],
)
def test_reductions(name: str, function: Callable[..., Any], kind: EmitterKind) -> None:
    """Whole dimensions that a region combines, and nothing else, are a reduction by shared memory; others are loops."""
    is_turned, has_inits = name == "rows_turned", name == "from_each"
    shape, result = ((6, 8, 64), "8x6") if is_turned else ((48, 64), "48")
    sizes, init = "x".join(map(str, shape)), "48x" if has_inits else ""
    text = REDUCE.format(name=name, shape=sizes, result=result, init=init)
    inits = numbers(48) if has_inits else np.array(0, np.float32)
    check(text, function, [numbers(*shape), inits], kind)


def test_the_lowest_bit_is_no_copy() -> None:
    """Integers of 8 bits are cut to one bit as bytes of booleans are, which nothing may take for a plain transpose."""

    def lowest(b: ElementBuilder, op: Op) -> Scalar:
        return b.op("arith.extui", b.op("arith.trunci", b.operand(0), dtype="i1"), dtype="i8")

    dialect = sdy.Dialect("odd")
    dialect.op("odd.swap", indexing="(i, j) -> (j, i)", emission=lowest)
    registry = sdy.Registry.of([dialect])
    numbers = np.random.default_rng(0).integers(-128, 127, (64, 64)).astype(np.int8)
    assert assert_emits("odd.swap", lambda x: x.T & 1, [numbers], registry=registry).choice.kind is LOOP
    booleans = numbers > 0
    assert assert_emits("odd.swap", np.transpose, [booleans], registry=registry).choice.kind is TRANSPOSE
