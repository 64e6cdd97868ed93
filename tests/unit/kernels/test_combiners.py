"""Laws of combiners, and how often initial values of reductions count."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.fusion.combiners import ScalarCombiner, starts_of
from shardy_py.kernels.fusion.fusion import Fusion
from tests.unit.kernels.fusions import fusion_of

REDUCE = """
func.func @main(%x: tensor<{shape}x{dtype}>, %i: tensor<{dtype}>) -> tensor<{result}{dtype}> {{
  %c = stablehlo.constant dense<{init}> : tensor<{dtype}>
  %0 = "stablehlo.reduce"(%x, {operand}) <{{dimensions = array<i64: {dims}>}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    {body}
  }}) : (tensor<{shape}x{dtype}>, tensor<{dtype}>) -> tensor<{result}{dtype}>
  return %0 : tensor<{result}{dtype}>
}}"""

# The ops of a region, and what they do to arrays.
BODIES: dict[str, tuple[str, Any]] = {
    "sum": ("%r = stablehlo.add %a, %b", lambda a, b: a + b),
    "product": ("%r = stablehlo.multiply %a, %b", lambda a, b: a * b),
    "difference": ("%r = stablehlo.subtract %a, %b", lambda a, b: a - b),
    "maximum": ("%r = stablehlo.maximum %a, %b", np.maximum),
    "minimum": ("%r = stablehlo.minimum %a, %b", np.minimum),
    "and": ("%r = stablehlo.and %a, %b", lambda a, b: a & b),
    "or": ("%r = stablehlo.or %a, %b", lambda a, b: a | b),
    "xor": ("%r = stablehlo.xor %a, %b", lambda a, b: a ^ b),
    # (1 + a)(1 + b) - 1 is associative and commutative, and 0 is its neutral element.
    "both": (
        "%p = stablehlo.multiply %a, %b : $T\n%q = stablehlo.add %p, %a : $T\n%r = stablehlo.add %q, %b",
        lambda a, b: a * b + a + b,
    ),
    "sum of squares": ("%p = stablehlo.multiply %b, %b : $T\n%r = stablehlo.add %a, %p", lambda a, b: a + b * b),
    "sum of doubles": (
        "%k = stablehlo.constant dense<2> : $T\n%p = stablehlo.multiply %b, %k : $T\n%r = stablehlo.add %a, %p",
        lambda a, b: a + 2 * b,
    ),
    "larger": (
        "%p = stablehlo.compare GT, %a, %b : ($T, $T) -> tensor<i1>\n"
        "%r = stablehlo.select %p, %a, %b : tensor<i1>, $T\nstablehlo.return %r : $T",
        np.maximum,
    ),
    "last": ("stablehlo.return %b : $T", lambda a, b: b),
    "first positive": (
        "%k = stablehlo.constant dense<0> : $T\n%p = stablehlo.compare GT, %a, %k : ($T, $T) -> tensor<i1>\n"
        "%r = stablehlo.select %p, %a, %b : tensor<i1>, $T\nstablehlo.return %r : $T",
        lambda a, b: np.where(a > 0, a, b),
    ),
}


def reduction(
    body: str,
    shape: tuple[int, ...] = (16, 40),
    dims: tuple[int, ...] = (1,),
    *,
    dtype: str = "i32",
    init: str = "3",
    operand: str = "%c",
) -> Fusion:
    """The fusion of a reduction."""
    text = BODIES[body][0]
    text = text if "return" in text else f"{text} : $T\nstablehlo.return %r : $T"
    return fusion_of(
        REDUCE.format(
            shape="x".join(map(str, shape)),
            result="".join(f"{size}x" for number, size in enumerate(shape) if number not in dims),
            dims=", ".join(map(str, dims)),
            body=text.replace("$T", f"tensor<{dtype}>"),
            dtype=dtype,
            init=init,
            operand=operand,
        )
    )


def starts(fusion: Fusion) -> tuple[int | None, ...] | None:
    """The starts of the reduction that a fusion is."""
    return starts_of(fusion, fusion.ops[-1])


def folded(body: str, x: Any, dims: tuple[int, ...], init: int) -> Any:
    """What one thread computes that goes over the elements once."""
    remaining = [size for number, size in enumerate(x.shape) if number not in dims]
    actual = np.full(remaining, init, x.dtype)
    for row in np.moveaxis(x, dims, range(len(dims))).reshape(-1, *remaining):
        actual = BODIES[body][1](actual, row)
    return actual


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sum", (0,)),
        ("product", (1,)),
        ("xor", (0,)),
        ("both", (0,)),
        *((body, (None,)) for body in ("maximum", "minimum", "and", "or", "larger")),
        *((body, None) for body in ("difference", "sum of squares", "sum of doubles", "last", "first positive")),
    ],
)
def test_threads_begin_with_what_counts_once(body: str, expected: tuple[int | None, ...] | None) -> None:
    """Threads share reductions by laws that hold; they begin with neutral numbers where 3 would count several times."""
    assert starts(reduction(body)) == expected
    assert starts(reduction(body, operand="%i")) == expected


@pytest.mark.parametrize(
    ("body", "init", "dtype"),
    [
        ("sum", "0", "i32"),
        ("sum", "0.0", "bf16"),
        ("product", "1.0", "f32"),
        ("xor", "0", "ui8"),
        ("both", "-1", "i32"),
    ],
)
def test_constants_that_change_nothing_stay(body: str, init: str, dtype: str) -> None:
    """Combining such a constant with itself gives it again, so that all threads begin with it, as in XLA."""
    assert starts(reduction(body, init=init, dtype=dtype)) == (None,)


def test_associative_bodies() -> None:
    """A choice of the last is associative; a difference is not."""
    for body, expected in (("last", True), ("sum", True), ("difference", False), ("sum of doubles", False)):
        fusion = reduction(body)
        assert ScalarCombiner(fusion, fusion.ops[-1]).is_associative is expected, body


@pytest.mark.parametrize(
    ("body", "shape", "dims", "operand"),
    [
        pytest.param("sum", (16, 40), (1,), "%c", id="row"),
        pytest.param("sum", (3, 2000), (1,), "%i", id="warps", marks=pytest.mark.slow),
        pytest.param("product", (64, 16), (1,), "%c", id="rows", marks=pytest.mark.slow),
        pytest.param("both", (4, 5, 70), (0, 2), "%i", id="parts"),
        pytest.param("sum", (12, 7), (0, 1), "%c", id="scalar", marks=pytest.mark.slow),
        pytest.param("xor", (300, 8), (0,), "%i", id="narrow"),
        pytest.param("sum", (300, 64), (0,), "%c", id="columns", marks=pytest.mark.slow),
        pytest.param("maximum", (300, 64), (0,), "%i", id="maximum", marks=pytest.mark.slow),
        pytest.param("sum of doubles", (16, 40), (1,), "%i", id="loop"),
    ],
)
def test_initial_values_count_once(body: str, shape: tuple[int, ...], dims: tuple[int, ...], operand: str) -> None:
    """A constant and a parameter are combined once with each result, however many threads share it."""
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    kernel = emit(reduction(body, shape, dims, operand=operand))
    x = np.random.default_rng(0).integers(-3, 9, shape).astype(np.int32)
    for on in ("host", "interpreter"):
        (actual,) = kernel.run(x, np.int32(3), on=on)  # type: ignore[arg-type]
        np.testing.assert_array_equal(actual, folded(body, x, dims, 3))


VARIADIC = """
func.func @main(%x: tensor<300x64xi32>, %i: tensor<i32>) -> (tensor<64xi32>, tensor<64xi32>) {
  %0:2 = stablehlo.reduce(%x init: %i), (%x init: %i) across dimensions = [0]
      : (tensor<300x64xi32>, tensor<300x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<64xi32>, tensor<64xi32>)
    reducer(%a: tensor<i32>, %b: tensor<i32>) (%m: tensor<i32>, %n: tensor<i32>) {
      %1 = stablehlo.add %a, %b : tensor<i32>
      %2 = stablehlo.maximum %m, %n : tensor<i32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<i32>
    }
  return %0#0, %0#1 : tensor<64xi32>, tensor<64xi32>
}"""


def test_results_that_share_nothing_begin_apart() -> None:
    """The sum of a region begins with zero, its maximum with the initial value."""
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    fusion = fusion_of(VARIADIC)
    assert starts(fusion) == (0, None)
    kernel = emit(fusion)
    assert kernel.choice.name == "reduction"
    x = np.random.default_rng(0).integers(-9, 9, (300, 64)).astype(np.int32)
    total, most = kernel.run(x, np.int32(100))
    np.testing.assert_array_equal(total, x.sum(0) + 100)
    np.testing.assert_array_equal(most, np.full(64, 100))


def test_a_region_uses_its_own_arguments_only() -> None:
    """A parameter of the function inside the region is refused with the op that uses it."""
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    text = REDUCE.format(
        shape="4x9",
        result="4x",
        dims="1",
        body="%r = stablehlo.add %a, %i : tensor<i32>\nstablehlo.return %r : tensor<i32>",
        dtype="i32",
        init="3",
        operand="%c",
    )
    with pytest.raises(UnsupportedError, match=r"'stablehlo.add' op: a region .* uses an argument from outside of it"):
        assert emit(fusion_of(text)).stages
