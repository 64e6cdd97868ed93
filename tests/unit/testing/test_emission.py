"""Kernels of ops of dialects that nobody knows, given by maps and scalar bodies only, against numpy."""

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py import tensor
from shardy_py.errors import OptionError
from shardy_py.indexing import IndexingMap
from shardy_py.testing import assert_emits

odd = sdy.Dialect("odd")
MATMUL = ["(i, j)[k] -> (i, k)", "(i, j)[k] -> (k, j)"]


def joined(op):
    """Return maps of operands that stand below each other: each is defined for its own rows."""
    maps, start = [], 0
    for value in op.operands:
        rows, columns = value.shape
        bounds = f"i in [{start}, {start + rows - 1}], j in [0, {columns - 1}]"
        maps.append(IndexingMap.parse(f"(i, j) -> (i - {start}, j), domain: {bounds}"))
        start += rows
    return maps


def windows(op):
    """Return the map of a window of three that begins one before the element, where that is inside."""
    size = op.operands[0].shape[0]
    domain = f"i in [0, {size - 1}], k in [0, 2], i + k - 1 in [0, {size - 1}]"
    return [IndexingMap.parse(f"(i)[k] -> (i + k - 1), domain: {domain}")]


def soft_max(b, op):
    """Divide an exponential by the sum of those of its row, less the largest of the row."""
    row = IndexingMap.parse(
        f"(i, j)[k] -> (i, k), domain: i in [0, 5], j in [0, 7], k in [0, {op.result.shape[1] - 1}]"
    )
    lowest, zero = b.constant(float("-inf"), "f32"), b.constant(0, "f32")
    (top,) = b.reduce(row, [lowest], lambda at, carried: [b.op("arith.maximumf", carried[0], b.operand(0, at))])

    def exponential(at=None):
        return b.op("math.exp", b.op("arith.subf", b.operand(0, at), top))

    (total,) = b.reduce(row, [zero], lambda at, carried: [b.op("arith.addf", carried[0], exponential(at))])
    return b.op("arith.divf", exponential(), total)


def polynomial(x, y):
    """Return what `odd.polynomial` computes."""
    return np.where(x > y, x**3 - 2 * x, np.abs(y) / 3), x > y


def sigmoid(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


EACH = {"traits": [sdy.Elementwise]}
odd.op("odd.gate", **EACH, emission="x, y -> x * sigmoid(y)")
odd.op("odd.polynomial", **EACH, emission="x, y -> x ** 3 - 2 * x if x > y else abs(y) / 3, x > y")
odd.op("odd.divide", **EACH, emission="x, y -> x // y, x % y")
odd.op("odd.bits", **EACH, emission="x, y -> (x & y) ^ (x >> 2), ~x, x > y")
odd.op("odd.leaky", **EACH, emission="x -> x if x > 0 else slope * x")
odd.op("odd.polar", **EACH, emission="x -> abs(x), real(x) + imag(x), exp(x)")
odd.op("odd.casts", **EACH, emission="x -> i32(x), ui8(x), f64(x), bf16(x), x != 0")
odd.op("odd.swap", indexing="(i, j) -> (j, i)", emission="x -> x")
odd.op("odd.repeat", indexing="(i, j) -> (j)", emission="x -> x")
odd.op("odd.rotate", indexing="(i, j) -> (i, (j + 3) mod 8)", emission="x -> -x if d1 < 4 else x")
odd.op("odd.triangle", indexing="(i, j) -> (i, j)", emission="x -> x if d1 <= d0 else 0")
odd.op(
    "odd.interleave",
    indexing=["(i) -> (i floordiv 2)"] * 2,
    emission="x, y -> select(d0 % 2 == 0, x, y) + f32(d0 // 3)",
)
odd.op("odd.parts", indexing="(i, j) -> (i, j)", emission="x -> x, x")
odd.op("odd.count", emission="-> f32(d0 * 10 + d1)")
odd.op("odd.join", indexing=joined, emission="*parts -> pick(*parts)")
odd.op("odd.join_negated", indexing=joined, emission="x, y -> x if inside(x) else -y")
odd.op("odd.matmul", indexing=MATMUL, traits=[sdy.Contraction], emission="x, w -> sum(x * w)")
odd.op("odd.wide_matmul", indexing=MATMUL, emission="x, w -> bf16(sum(f32(x) * f32(w)))")
odd.op("odd.row", indexing="(i)[k] -> (i, k)", emission="x -> max(x), min(x), sum(x)")
odd.op("odd.norm", indexing="(i)[k] -> (i, k)", emission="x -> sqrt(sum(x * x)), mean(x), prod(x)")
odd.op("odd.tests", indexing="(i)[k] -> (i, k)", emission="x -> any(x > 1), all(x)")
odd.op("odd.window", indexing=windows, emission="x -> max(x)")
odd.op("odd.softmax", indexing="(i, j) -> (i, j)", emission=soft_max)
REGISTRY = sdy.Registry.of([odd])


def integers(*values, dtype="int32"):
    """Return an array of integers."""
    return np.array(values, dtype)


CASES = {
    "gate": ("odd.gate", lambda x, y: x * sigmoid(y), [(8, 4), (8, 4)]),
    "gate-bf16": ("odd.gate", lambda x, y: x * sigmoid(y), [tensor(8, 4, dtype="bf16")] * 2),
    "two-results": ("odd.polynomial", polynomial, [(8, 4), (8, 4)]),
    "division": (
        "odd.divide",
        lambda x, y: (np.floor_divide(x, y), np.mod(x, y)),
        [integers(-7, 7, -7, 7, 5, -(2**31), 0), integers(2, -2, -2, 2, -1, 3, 4)],
    ),
    "bits": ("odd.bits", lambda x, y: ((x & y) ^ (x >> 2), ~x, x > y), [tensor(30, dtype="ui8")] * 2),
    "attribute": ("odd.leaky", lambda x: np.where(x > 0, x, 0.25 * x), [(9,)], None, {"slope": 0.25}),
    "complex": (
        "odd.polar",
        lambda x: (np.abs(x), x.real + x.imag, np.exp(x)),
        [tensor(12, dtype="complex<f32>")],
        [(12,), (12,), tensor(12, dtype="complex<f32>")],
    ),
    "casts": (
        "odd.casts",
        lambda x: (x.astype(int), x.astype(np.uint8), x, x, x != 0),
        [np.arange(9, dtype=np.float32)],
        [tensor(9, dtype=item) for item in ("i32", "ui8", "f64", "bf16", "i1")],
    ),
    "transpose": ("odd.swap", np.transpose, [tensor(5, 7, dtype="i16")]),
    "broadcast": ("odd.repeat", lambda x: np.broadcast_to(x, (4, 6)), [(6,)]),
    "rotation": ("odd.rotate", lambda x: np.where(np.arange(8) < 4, -1, 1) * np.roll(x, -3, 1), [(3, 8)]),
    "mask": ("odd.triangle", np.tril, [(6, 6)]),
    "no-operand": ("odd.count", lambda: np.add.outer(np.arange(4.0) * 10, np.arange(3)), [], [(4, 3)]),
    "index": ("odd.interleave", lambda x, y: np.stack([x, y], 1).ravel() + np.arange(10) // 3, [(5,), (5,)]),
    "pieces": ("odd.join", lambda *x: np.concatenate(x), [(2, 4), (5, 4), (1, 4)]),
    "two-pieces": ("odd.join_negated", lambda x, y: np.concatenate([x, -y]), [(2, 4), (5, 4)]),
    "contraction": ("odd.matmul", np.matmul, [(8, 4), (4, 6)]),
    "contraction-i32": ("odd.matmul", np.matmul, [tensor(8, 4, dtype="i32"), tensor(4, 6, dtype="i32")]),
    "contraction-f16": (
        "odd.matmul",
        np.matmul,
        [tensor(8, 4, dtype="f16"), tensor(4, 6, dtype="f16")],
        [tensor(8, 6, dtype="f16")],
    ),
    "contraction-bf16": (
        "odd.wide_matmul",
        np.matmul,
        [tensor(8, 4, dtype="bf16"), tensor(4, 6, dtype="bf16")],
        [tensor(8, 6, dtype="bf16")],
    ),
    "reductions": ("odd.row", lambda x: (x.max(1), x.min(1), x.sum(1)), [(6, 5)]),
    "reductions-i8": (
        "odd.row",
        lambda x: (x.max(1), x.min(1), x.sum(1)),
        [tensor(6, 5, dtype="i8")],
        [tensor(6, dtype="i8")] * 3,
    ),
    "norm": ("odd.norm", lambda x: (np.sqrt((x * x).sum(1)), x.mean(1), x.prod(1)), [(6, 5)]),
    "tests": ("odd.tests", lambda x: ((x > 1).any(1), (x != 0).all(1)), [integers([1, 2], [0, 1], [1, 1])]),
    "windows": ("odd.window", lambda x: np.maximum.reduce([x, np.append(x[1:], -9), np.append(-9, x[:-1])]), [(9,)]),
    "function": ("odd.softmax", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), [(6, 8)]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_kernels_compute_what_numpy_does(case):
    """An op that is given by maps and a scalar body only has a kernel that computes what its author's function does."""
    assert_emits(*case, registry=REGISTRY, stages=("initial",))


def test_all_ways_to_run_agree():
    """Before the passes, after them, and as machine code, a kernel computes the same."""
    kernel = assert_emits("odd.matmul", np.matmul, [(8, 4), (4, 6)], registry=REGISTRY, on_host=True)
    assert kernel.choice.kind.value == "loop"
    kernel = assert_emits("odd.swap", np.transpose, [(20, 18)], registry=REGISTRY)
    assert kernel.choice.kind.value == "transpose"


def test_arithmetic_of_indices_is_machine_code():
    """Quotients and remainders of indices, rounded down, go through all passes."""
    assert_emits(*CASES["index"], registry=REGISTRY, on_host=True)


def test_results_have_as_many_elements():
    """Results of one op with different numbers of elements are refused, and named."""
    with pytest.raises(AssertionError, match=r"'odd.parts' op: .* gives tensor<8x4xf32> and tensor<8xf32>"):
        assert_emits("odd.parts", lambda x: (x, x[:, 0]), [(8, 4)], registry=REGISTRY)


def test_wrong_bodies_are_found():
    """A function that computes something else is a failure that shows the first element that differs."""
    with pytest.raises(AssertionError, match=r"wrong at the stage initial: result 0 differs in 32 of 32 .* instead of"):
        assert_emits("odd.gate", lambda x, y: x * np.tanh(y) + 1, [(8, 4)] * 2, registry=REGISTRY, stages=("initial",))


def test_maps_that_lead_outside_are_found():
    """A map to elements that the operand has not is a failure that names the map and the place."""
    wrong = sdy.Dialect("wrong")
    wrong.op("wrong.shift", indexing="(i) -> (i + 3)", emission="x -> x")
    with pytest.raises(AssertionError, match=r"leads outside: .*\n  at \(5\) it gives 8 for dimension 0"):
        assert_emits("wrong.shift", lambda x: x, [(8,)], registry=sdy.Registry.of([wrong]))


def test_ops_without_a_body_are_failures():
    """An op without a scalar body has no kernel, and the failure says what to give."""
    with pytest.raises(AssertionError, match=r"no kernel computes 'odd.none'(.|\n)*needs emission="):
        assert_emits("odd.none", lambda x: x, [(8,)], registry=REGISTRY)


def test_shapes_are_needed():
    """The name of an op alone is not enough."""
    with pytest.raises(OptionError, match="needs the shapes"):
        assert_emits("odd.gate", np.add, registry=REGISTRY)
