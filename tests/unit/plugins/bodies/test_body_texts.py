"""Scalar bodies and indexing maps as texts: what is refused, where, and with which advice."""

import re

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py.errors import PluginError, ShardyError
from shardy_py.kernels import Fusion, emit
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.plugins.bodies.combining import neutral
from shardy_py.sharding.combiner import Combiner
from shardy_py.testing import make_op


def kernel_of(emission, *, operands=((8,),), results=((8,),), attributes=None, **definition):
    """Return the kernel of an op with a scalar body."""
    dialect = sdy.Dialect("odd")
    dialect.op("odd.op", emission=emission, **definition)
    op = make_op("odd.op", operands, results, attributes)
    return emit(Fusion.of_function(op.program.functions["main"], sdy.Registry.of([dialect])))


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        ("x * 2", "has no '->'", 5, "name the operands first"),
        ("x -> x +* 2", "is not an expression", 8, "emission="),
        ("x -> tahn(x)", "there is no function 'tahn'", 5, "tanh"),
        ("x, x -> x", "'x' stands twice", 3, ""),
        ("sum -> 1", "'sum' is a function", 0, "another name"),
        ("d0 -> d0", "'d0' is an index of the element", 0, "another name"),
        ("x -> [x]", "no List inside", 5, ""),
        ("x -> x[0]", "no Subscript inside", 5, ""),
        ("x -> 0 < x < 2", "two sides", 5, "a < b and b < c"),
        ("x -> 'a'", "'a' is not a number", 5, ""),
        ("x -> max(x, key=x)", "takes no names of arguments", 5, ""),
    ],
)
def test_wrong_texts_are_shown(text, message, column, hint):
    """A text that is no scalar body is refused where it is written, with a mark under the place."""
    with pytest.raises(PluginError) as caught:
        sdy.Dialect("odd").op("odd.op", emission=text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "invalid-emission"
    assert problem.op == "odd.op"
    assert message in problem.message
    assert hint in problem.hint
    assert problem.excerpt == f"{text}\n{' ' * column}^"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("x -> x, x", "has 2 results, the op 1", "an expression for each"),
        ("x, y -> x + y", "has 2 operands, the op 1", "*star"),
        ("x -> alpha * x", "alpha is neither an operand nor an attribute", "did you mean alhpa?"),
        ("x -> i32(x)", "elements of f32, its expression is of i32", "f32(...)"),
        ("x -> x + d0", "f32 and index stand side by side", "f32(...)"),
        ("x -> x & 1", "f32 has no operator &", ""),
        ("x -> 1 if x else 0", "f32 is not a condition", "x != 0"),
        ("x -> sum(x)", "no operand in it has a map with symbols", "(i)[k] -> (i, k)"),
        ("x -> x + d1", "the result has no dimension d1", "1 dimensions"),
        ("x -> i32(x) / 2", "i32 has no operator /", "//"),
        ("x -> f32(i32(x) + 0.5)", "0.5 is not i32", "f32(...)"),
        ("x -> f32(atan2(x))", "atan2 takes 2 arguments, not 1", ""),
    ],
)
def test_bodies_that_do_not_fit_are_refused(text, message, hint):
    """A scalar body that does not fit the types of its op is an error that names the op and its definition."""
    with pytest.raises(ShardyError) as caught:
        _ = kernel_of(text, traits=[sdy.Elementwise], attributes={"alhpa": 2.0}).stages
    (problem,) = caught.value.diagnostics
    assert problem.op == "odd.op"
    assert message in problem.message
    assert hint in problem.hint
    assert "test_body_texts.py:" in problem.hint


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (["(i) -> (q)"], "'q' is not a variable"),
        (["(i)[k] -> (i + k)"], "nothing tells over what the symbol 0"),
        (["(i, j) -> (i)"], "has 2 dimensions, the result of the op 1"),
        (["(i) -> (i)"] * 2, "2 indexing maps are given for 1 operands"),
        ([3], "a list with int"),
        (["(i)[k] -> (k)"], "has symbols, so that many elements are read"),
        (["(i) -> (i), domain: i in [0, 3]"], "has no element for a part of the result"),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, message):
    """A map that is none, or does not fit the op or its scalar body, is an error that names the op."""
    with pytest.raises(ShardyError) as caught:
        _ = kernel_of("x -> x", indexing=maps).stages
    (problem,) = caught.value.diagnostics
    assert problem.op == "odd.op"
    assert message in problem.message


def test_symbols_run_over_one_size():
    """Two operands that give a symbol two sizes are refused."""
    maps = ["(i)[k] -> (i, k)", "(i)[k] -> (k)"]
    with pytest.raises(PluginError, match="runs over 5 elements here, 4 elsewhere"):
        kernel_of("x, y -> sum(x * y)", indexing=maps, operands=[(8, 4), (5,)])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda b, op: b.op("arith.addf", b.operand(0), b.constant(1, "i32")), "does not take (f32, i32) -> f32"),
        (lambda b, op: b.op("math.tahn", b.operand(0)), "kernels have no op 'math.tahn'"),
        (lambda b, op: b.op("arith.cmpf", b.operand(0), b.operand(0), predicate="lt"), "no predicate 'lt'"),
        (lambda b, op: b.op("arith.truncf", b.operand(0), dtype="bf16"), "gives bf16 for result 0"),
        (lambda b, op: b.operand(1), "there is no operand 1"),
        (lambda b, op: b.operand(0, []), "is read at ()"),
        (lambda b, op: b.operand(0, [b.constant(0, "i32")]), "is read at (i32)"),
        (
            lambda b, op: b.choose(b.constant(1, "i1"), lambda: b.operand(0), lambda: b.constant(1, "f64")),
            "the branches of a choice give f32 and f64",
        ),
    ],
)
def test_functions_that_build_wrong_ops_are_refused(body, message):
    """A function that builds an op of wrong types is an error at that op, not after all passes."""
    with pytest.raises(ShardyError) as caught:
        _ = kernel_of(body, traits=[sdy.Elementwise]).stages
    (problem,) = caught.value.diagnostics
    assert message in problem.message
    assert "test_body_texts.py:" in problem.hint


@pytest.mark.parametrize(
    ("name", "dtype", "number"),
    [("sum", "f32", 0), ("all", "i1", 1), ("max", "bf16", float("-inf")), ("min", "i8", 127), ("max", "ui8", 0)],
)
def test_neutral_numbers(name, dtype, number):
    """Each function that combines begins with the number that changes nothing in its type."""
    assert neutral(name, dtype) == number


def test_rules_follow_from_texts_of_maps():
    """Maps that are given as texts give the rule, too."""
    dialect = sdy.Dialect("odd")
    dialect.op("odd.matmul", indexing=["(i, j)[k] -> (i, k)", "(i, j)[k] -> (k, j)"], traits=[sdy.Contraction])
    rule = sdy.Registry.of([dialect]).get_sharding_rule(make_op("odd.matmul", [(8, 4), (4, 6)], [(8, 6)]))
    assert str(rule) == "<([i, k], [k, j])->([i, j]) {i=8, j=6, k=4} reduction={k}>"


@pytest.mark.parametrize(
    ("emission", "combiner"),
    [
        ("x -> sum(x)", Combiner.ADD),
        ("x -> bf16(sum(f32(x)))", Combiner.ADD),
        ("x -> max(x)", Combiner.MAX),
        ("x -> all(x)", Combiner.AND),
        ("x -> mean(x)", None),
        ("x -> sum(x) + 1", None),
    ],
)
def test_bodies_tell_how_to_combine(emission, combiner):
    """An op whose body combines what it reads reduces along the symbols, by that combiner; others replicate them."""
    dialect = sdy.Dialect("odd")
    dialect.op("odd.row", indexing="(i)[k] -> (i, k)", emission=emission)
    registry = sdy.Registry.of([dialect])
    op = make_op("odd.row", [(8, 4)], [(8,)])
    kind = "reduction={j}" if combiner is not None else "need_replication={j}"
    assert str(registry.get_sharding_rule(op)) == f"<([i, j])->([i]) {{i=8, j=4}} {kind}>"
    if combiner is not None:
        assert registry.get_reductions(op).combiners.get(1, Combiner.ADD) is combiner


def test_numbers_by_their_names() -> None:
    """Infinity, NaN and pi are numbers, unless an attribute of the op has the name."""
    text = "x -> select(x > 0, pi * x, -inf)"
    (known,) = kernel_of(text, traits=[sdy.Elementwise]).run(np.array([2, -1] * 4, np.float32))
    assert list(known[:2]) == [np.float32(2 * np.pi), -np.inf]
    (result,) = kernel_of(text, traits=[sdy.Elementwise], attributes={"pi": 3.0}).run(np.full(8, 2, np.float32))
    assert result[0] == 6


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_quotients_of_floats(dtype) -> None:
    """Quotient and remainder are rounded down from the exact remainder, as numpy has them, zeros with their signs."""
    left = [1, 6, 49, 5.5, -7, 7, 3, -3, 0, -0.0, 1, np.inf, -1, np.nan, 5, -5, -1e-4, 20]
    right = [0.1, 3, 49, -2, 3, -3, np.inf, np.inf, 3, 3, 0, 2, np.inf, 1, 0, 0, 1, -0.3]
    arrays = [np.array(item, numpy_dtype(dtype)) for item in (left, right)]
    wide = [item.astype(np.float64 if dtype == "f64" else np.float32) for item in arrays]
    with np.errstate(all="ignore"):
        expected = [item.astype(arrays[0].dtype) for item in (wide[0] // wide[1], wide[0] % wide[1])]
    type_ = sdy.tensor(len(left), dtype=dtype)
    kernel = kernel_of(
        "x, y -> x // y, x % y", operands=(type_, type_), results=(type_, type_), traits=[sdy.Elementwise]
    )
    for on in ("interpreter", "host"):
        for actual, other in zip(kernel.run(*arrays, on=on), expected, strict=True):
            np.testing.assert_array_equal(actual.astype(np.float64), other.astype(np.float64))
            signs = (np.signbit(item.astype(np.float64))[actual == 0] for item in (actual, other))
            np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(i, j) -> (i + 1, j)", r"operand 0 leads outside: .* at \(3, 6\) it gives 4 for dimension 0, which has 4"),
        ("(i, j) -> (i - 1, j)", r"at \(0, 0\) it gives -1 for dimension 0"),
        ("(i, j) -> (i, (j * 2) mod 9)", r"at \(0, 4\) it gives 8 for dimension 1, which has 7"),
    ],
)
def test_maps_that_lead_outside(text, message) -> None:
    """A kernel is not made of a map that reads where the operand has no element."""
    with pytest.raises(PluginError, match=message) as caught:
        kernel_of("x -> x", operands=[(4, 7)], results=[(4, 7)], indexing=text).run(np.zeros((4, 7), np.float32))
    assert caught.value.diagnostics[0].op == "odd.op"


def test_a_domain_is_cut_by_the_result() -> None:
    """A map may be bounded for a larger result, as that of the whole tensor is on a shard."""
    text = "(i, j) -> (i, j - 1), domain: i in [0, 8], j in [1, 9]"
    kernel = kernel_of("x -> x if inside(x) else 0", operands=[(4, 7)], results=[(4, 7)], indexing=text)
    numbers = np.arange(28, dtype=np.float32).reshape(4, 7)
    np.testing.assert_array_equal(kernel.run(numbers)[0], np.pad(numbers, ((0, 0), (1, 0)))[:, :-1])


@pytest.mark.parametrize(
    "text", ["(i) -> (i floordiv 0)", "(i) -> (i mod 0)", "(i) -> (i), domain: i in [0, 3], i mod 0 in [0, 0]"]
)
def test_maps_that_divide_by_zero(text) -> None:
    """No place is a number divided by zero."""
    with pytest.raises(PluginError, match="divides by zero"):
        sdy.Dialect("odd").op("odd.op", indexing=text, emission="x -> x")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda b, at, carried: [carried[0], carried[0]], r"gives \(f32, f32\), the loop carries \(f32\)"),
        (lambda b, at, carried: [b.constant(0, "i32")], r"gives \(i32\), the loop carries \(f32\)"),
        (lambda b, at, carried: [], r"gives \(\), the loop carries \(f32\)"),
    ],
)
def test_loops_carry_what_they_begin_with(step, message) -> None:
    """A body of a loop gives a value of the same type for each initial one."""

    def by_map(b, op):
        return b.reduce(b.maps[0], [b.constant(0, "f32")], lambda at, carried: step(b, at, carried))

    def by_count(b, op):
        return b.repeat(3, [b.constant(0, "f32")], lambda carried: step(b, None, carried))

    for body in (by_map, by_count):
        with pytest.raises(ShardyError, match=message) as caught:
            kernel_of(body, operands=[(4, 7)], results=[(4,)], indexing="(i)[k] -> (i, k)").run(
                np.zeros((4, 7), np.float32)
            )
        assert caught.value.diagnostics[0].op == "odd.op"


def test_values_of_loops_stay_inside() -> None:
    """A value of a loop or a branch is an error behind it, as a result and in an op."""

    def leaked(b):
        inner = []
        b.reduce(b.maps[0], [b.constant(0, "f32")], lambda at, carried: [inner.append(b.operand(0, at)) or carried[0]])
        return inner[0]

    for body in (lambda b, op: leaked(b), lambda b, op: b.op("math.exp", leaked(b))):
        with pytest.raises(ShardyError, match="a value of a loop or a branch outside of it"):
            kernel_of(body, operands=[(4, 7)], results=[(4,)], indexing="(i)[k] -> (i, k)").run(
                np.zeros((4, 7), np.float32)
            )


def test_types_without_a_cast() -> None:
    """The advice names no cast that expressions do not have."""
    with pytest.raises(PluginError, match="its expression is of f32") as caught:
        kernel_of("x -> x", results=[sdy.tensor(8, dtype="i4")], traits=[sdy.Elementwise]).run(np.zeros(8, np.float32))
    assert "give emission= a function" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f8E5M2", "f8E4M3B11FNUZ"])
def test_floats_of_one_byte(dtype) -> None:
    """They are combined in f32, also where the type has no infinity to begin with, and have casts."""
    short, wide = sdy.tensor(6, 9, dtype=dtype), sdy.tensor(6)
    numbers = np.random.default_rng(0).normal(size=(6, 9)).astype(numpy_dtype(dtype))
    text = f"x -> max(x), min(x), sum(x), f32(max(x)), {dtype}(f64(sum(f32(x))))"
    results = [*[sdy.tensor(6, dtype=dtype)] * 3, wide, sdy.tensor(6, dtype=dtype)]
    kernel = kernel_of(text, operands=[short], results=results, indexing="(i)[k] -> (i, k)")
    single = numbers.astype(np.float32)
    total = single.sum(1).astype(numbers.dtype)
    expected = [single.max(1), single.min(1), total, single.max(1), total]
    for on in ("interpreter", "host"):
        for actual, other in zip(kernel.run(numbers, on=on), expected, strict=True):
            np.testing.assert_array_equal(actual.astype(np.float32), other.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x -> x * 9**9**9", "is a number of more than 4096 bits"),
        ("x -> x * 0**-1", "0 ** -1 is not a number"),
        ("x -> x * 2.0**5000", "is not a number: OverflowError"),
        ("x -> x + " + "+".join("x" * 3000), "nested too deeply"),
        ("x -> x + " + "+".join("x" * 300), "nested too deeply"),
        ("x -> " + "-" * 600 + "x", "nested too deeply"),
    ],
)
def test_numbers_and_sums_beyond_all_limits(text: str, message: str) -> None:
    """A power that would take hours, one that is no number, and a sum of thousands are errors at once."""
    with pytest.raises(PluginError, match=re.escape(message)):
        kernel_of(text, traits=[sdy.Elementwise]).run(np.zeros(8, np.float32))


def test_a_long_sum_is_built() -> None:
    """A sum of 150 terms is within the limit."""
    kernel = kernel_of("x -> " + "+".join("x" * 150), traits=[sdy.Elementwise])
    np.testing.assert_array_equal(kernel.run(np.ones(8, np.float32))[0], np.full(8, 150, np.float32))
