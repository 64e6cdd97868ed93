"""Local programs on virtual devices."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy  # noqa: E402
from shardy_py.errors import OptionError, UnsupportedError  # noqa: E402
from shardy_py.testing import assert_runs_sharded, run_sharded  # noqa: E402

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[2, 0, 3, 1]>\n'
X = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
XY = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'
PURE = [sdy.Pure]


def plugin(**changes: Any) -> Any:
    """Return a plugin with a small dialect.

    Args:
        changes: Other arguments of its op ``my.sum``.
    """
    my = sdy.Dialect("my")
    my.op("my.add", traits=[sdy.Elementwise, *PURE], rule="..., ... -> ...")
    my.op("my.matmul", rule="i k, k j -> i j", reduction="k", traits=PURE)
    my.op("my.zeros", traits=[sdy.ConstantLike, *PURE], local=sdy.local_by_types)
    my.op("my.loop", data_flow=sdy.LoopDataFlow(), traits=[sdy.RecursiveMemoryEffects])
    my.op("my.yield", traits=[sdy.IsTerminator, *PURE])
    my.op("my.sum", traits=PURE, **{"rule": "i j -> i", "reduction": "j", **changes})
    my.op("my.cumsum", traits=PURE, rule="i j -> i j")

    class Plugin:
        @staticmethod
        @sdy.hookimpl
        def shardy_register_dialects() -> list[sdy.Dialect]:
            return [my]

    return Plugin()


def loop(value: Any, regions: Any) -> Any:
    """Run a body three times."""
    for _ in range(3):
        value = regions[0](value)
    return value


FUNCTIONS = {
    "my.add": np.add,
    "my.matmul": np.matmul,
    "my.zeros": lambda op: np.zeros(op.results[0].shape),
    "my.loop": loop,
    "my.sum": lambda x: x.sum(1),
    "my.cumsum": lambda x: x.cumsum(1),
}
LOOP = (
    MESH
    + f"""func.func @main(%x: tensor<8x16xf32> {X}, %w: tensor<16x32xf32>
    {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}}, %v: tensor<32x16xf32>) -> tensor<8x16xf32> {{
  %bias = "my.zeros"() : () -> tensor<8x32xf32>
  %dot = "my.matmul"(%x, %w) : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %sum = "my.add"(%dot, %bias) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %out = "my.loop"(%sum) ({{
  ^bb0(%carried: tensor<8x32xf32>):
    %next = "my.add"(%carried, %sum) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    "my.yield"(%next) : (tensor<8x32xf32>) -> ()
  }}) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %o = call @product(%out, %v) : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}}
func.func private @product(%a: tensor<8x32xf32>, %b: tensor<32x16xf32>) -> tensor<8x16xf32> {{
  %o = "my.matmul"(%a, %b) : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}}"""
)


def one_op(name: str, result: str) -> str:
    """Return a program of one op on a tensor that is sharded in both dimensions."""
    return (
        MESH
        + f"""func.func @main(%x: tensor<4x8xf32> {XY}) -> {result} {{
      %0 = "my.{name}"(%x) : (tensor<4x8xf32>) -> {result}
      %1 = "my.add"(%0, %0) : ({result}, {result}) -> {result}
      return %1 : {result}
    }}"""
    )


def test_a_dialect_runs_on_shards() -> None:
    """Loops, calls, constants and contractions of a user's dialect give on shards what they give on whole tensors."""
    x, w, v = (np.random.default_rng(0).normal(size=shape) for shape in ((8, 16), (16, 32), (32, 16)))
    run = assert_runs_sharded(LOOP, FUNCTIONS, None, x, w, v, plugins=[plugin()])
    np.testing.assert_allclose(run.found[0], 4 * x @ w @ v)
    assert (run.devices, run.collectives, run.gathered) == (4, ("all_reduce",), ())


def test_loops_may_hand_on_what_is_computed_before_them() -> None:
    """A barrier in a body is its operand on a device: each of its runs has the same value."""
    text = (
        MESH
        + f"""func.func @main(%x: tensor<4x8xf32> {XY}) -> tensor<4x8xf32> {{
      %0 = "my.loop"(%x) ({{
      ^bb0(%carried: tensor<4x8xf32>):
        %1 = sdy.propagation_barrier %x allowed_direction=NONE : tensor<4x8xf32>
        %2 = "my.add"(%carried, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
        "my.yield"(%2) : (tensor<4x8xf32>) -> ()
      }}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }}"""
    )
    assert_runs_sharded(text, FUNCTIONS, plugins=[plugin()])


def test_a_rule_that_claims_too_much_is_found() -> None:
    """A running sum does not pass through along its dimension: the first op that differs is that sum."""
    run = run_sharded(one_op("cumsum", "tensor<4x8xf32>"), FUNCTIONS, plugins=[plugin()])
    assert not run.ok
    assert run.difference.startswith("my.cumsum at ")
    with pytest.raises(AssertionError, match=r"my\.cumsum at .* on device 0"):
        assert_runs_sharded(one_op("cumsum", "tensor<4x8xf32>"), FUNCTIONS, plugins=[plugin()])


def test_a_wrong_combiner_is_found() -> None:
    """Where maxima of shards are added, the collective behind them is the first op that differs."""
    functions = FUNCTIONS | {"my.sum": lambda x: x.max(1)}
    text = one_op("sum", "tensor<4xf32>")
    assert run_sharded(text, functions, plugins=[plugin()]).difference.startswith("sdy.all_reduce")
    assert_runs_sharded(text, functions, plugins=[plugin(combiner=sdy.Combiner.MAX)])


def test_ops_without_a_rule_run_whole() -> None:
    """An op that says nothing gets whole operands, and the program is right all the same."""
    text = one_op("sum", "tensor<4xf32>")
    run = assert_runs_sharded(text, FUNCTIONS, plugins=[plugin(rule=None, reduction=())])
    assert "all_gather" in run.collectives


def test_a_mesh_may_be_given() -> None:
    """A program without a mesh gets one, and the shardings of its arguments."""
    text = one_op("sum", "tensor<4xf32>").replace(MESH, "").replace(XY, "")
    run = assert_runs_sharded(text, FUNCTIONS, {"x": 4}, in_shardings={0: (None, "x")}, plugins=[plugin()])
    assert run.collectives == ("all_reduce",)


@pytest.mark.parametrize("combiner", [sdy.Combiner.ADD, sdy.Combiner.MAX, sdy.Combiner.MIN, sdy.Combiner.MUL])
def test_uneven_shards_see_real_elements_only(combiner: sdy.Combiner) -> None:
    """Where a dimension does not divide, padding holds NaN, and no reduction sees it."""
    text = one_op("sum", "tensor<5xf32>").replace("4x8x", "5x7x")
    function = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}[combiner.value]
    functions = FUNCTIONS | {"my.sum": lambda x: function.reduce(x, 1)}
    run = assert_runs_sharded(text, functions, plugins=[plugin(combiner=combiner)])
    assert run.collectives
    assert run.found[0].shape == (5,)


def test_missing_functions_are_named() -> None:
    """All ops without a function are named before anything runs."""
    with pytest.raises(OptionError, match=r"no function for my\.add, my\.matmul"):
        run_sharded(LOOP, {"my.zeros": np.zeros, "my.loop": loop}, plugins=[plugin()])


def test_functions_give_what_ops_have() -> None:
    """A function that gives the shape of the whole tensor on a device is refused there."""
    functions = FUNCTIONS | {"my.zeros": lambda: np.zeros((8, 32))}
    with pytest.raises(OptionError, match=r"my\.zeros.*shape \(8, 32\) where the op has tensor<4x16xf32>"):
        run_sharded(LOOP, functions, plugins=[plugin()])


def test_functions_give_numbers() -> None:
    """An array of Python objects is refused: it would be compared element by element without a tolerance."""
    functions = FUNCTIONS | {"my.zeros": lambda: np.zeros((8, 32)).astype(object)}
    with pytest.raises(OptionError, match=r"my\.zeros.*of dtype object where the op has tensor<8x32xf32>"):
        run_sharded(LOOP, functions, plugins=[plugin()])


def test_a_region_gets_as_many_arrays_as_it_takes() -> None:
    """The rows of the one array that a region returned are no arguments; the message says what it returns."""

    def rows(*values: Any, regions: Any) -> Any:
        for _ in range(3):
            values = regions[0](*values)
        return values

    message = (
        r"its region has 1 arguments, its function gives 8 \[region-arguments\]\n  hint: .* an array where it is one"
    )
    with pytest.raises(OptionError, match=message) as caught:
        run_sharded(LOOP, {**FUNCTIONS, "my.loop": rows}, plugins=[plugin()])
    assert caught.value.diagnostics[0].location


def test_a_region_gets_arrays_of_the_shapes_of_its_arguments() -> None:
    """An array of another shape than the argument of a region is refused where it comes in."""
    functions = {**FUNCTIONS, "my.loop": lambda value, regions: regions[0](value[:1])}
    with pytest.raises(OptionError, match=r"region argument 0 is tensor<8x32xf32>, .* array of shape \(1, 32\)"):
        run_sharded(LOOP, functions, plugins=[plugin()])


def shifted(shift: float) -> Any:
    """Return a sum that depends on the number of rows a little, so that it differs on shards."""
    return lambda x, y: np.add(x, y, dtype=np.float64) + shift * len(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_values_are_compared_as_precisely_as_what_they_come_from(dtype: str) -> None:
    """Doubles that a function computed from floats differ as floats do; doubles from doubles as doubles."""
    text = one_op("cumsum", "tensor<4x8xf32>").replace(XY, X)
    array = np.random.default_rng(0).normal(size=(4, 8)).astype(dtype)
    allowed = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-8}[dtype]
    for factor, is_equal in ((0.05, True), (20, False)):
        functions = {**FUNCTIONS, "my.add": shifted(factor * allowed)}
        run = run_sharded(text, functions, None, array, plugins=[plugin()])
        assert run.ok is is_equal, str(run)
        assert run.results[0].dtype == np.float64
    assert run_sharded(text, functions, None, array, plugins=[plugin()], rtol=1.0).ok


def test_tolerances_go_through_calls_and_regions() -> None:
    """What a function or a region makes of floats is compared as floats, whatever its dtype."""
    functions = {**FUNCTIONS, "my.matmul": lambda x, y: np.matmul(x, y, dtype=np.float64)}
    arrays = [np.random.default_rng(0).normal(size=size).astype("float32") for size in ((8, 16), (16, 32), (32, 16))]
    text = LOOP.replace("%o = call", "%p = call").replace(
        "  return %o : tensor<8x16xf32>\n}\nfunc",
        """
  %o = "my.add"(%p, %p) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}
func""",
    )
    for factor, is_equal in ((1e-6, True), (1e-2, False)):
        assert (
            run_sharded(text, {**functions, "my.add": shifted(factor)}, None, *arrays, plugins=[plugin()]).ok
            is is_equal
        )


def test_devices_stay_together() -> None:
    """Devices of which some end a loop before a collective that others come to are an error, not a deadlock."""
    text = LOOP.replace('"my.add"(%carried, %sum)', '"my.add"(%carried, %carried)').replace(
        '%next = "my.add"(%carried, %carried) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>',
        '%p = "my.matmul"(%carried, %v) : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>\n'
        '%next = "my.matmul"(%p, %w) : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>',
    )

    def until_large(value: Any, regions: Any) -> Any:
        for _ in range(int(abs(value[0, 0]) * 7) % 5):
            value = regions[0](value)
        return value

    with pytest.raises((UnsupportedError, AssertionError), match="not all devices come to this collective"):
        assert_runs_sharded(text, FUNCTIONS | {"my.loop": until_large}, plugins=[plugin()])


def printing(sharding: str) -> str:
    """Return a program that prints before and in a loop."""
    return f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%x: tensor<5x8xf32> {sharding}) -> tensor<5x8xf32> {{
      "my.print"(%x) : (tensor<5x8xf32>) -> ()
      %0 = "my.loop"(%x) ({{
      ^bb0(%carried: tensor<5x8xf32>):
        %1 = "my.add"(%carried, %carried) : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
        "my.print"(%1) : (tensor<5x8xf32>) -> ()
        "my.yield"(%1) : (tensor<5x8xf32>) -> ()
      }}) : (tensor<5x8xf32>) -> tensor<5x8xf32>
      return %0 : tensor<5x8xf32>
    }}"""


@pytest.mark.parametrize(("sharding", "gathers"), [(XY, 2), ("", 0)])
def test_what_acts_outside_of_the_program_happens_once(sharding: str, gathers: int) -> None:
    """An op without results that is not pure runs on one device, on whole operands, as often as on one device."""
    seen: list[Any] = []
    functions = {**FUNCTIONS, "my.print": lambda x: seen.append(x)}
    run = assert_runs_sharded(printing(sharding), functions, plugins=[plugin()], strict=True)
    assert run.collectives.count("all_gather") == gathers
    half = len(seen) // 2
    assert half == 4
    for reference, actual in zip(seen[:half], seen[half:], strict=True):
        np.testing.assert_array_equal(actual, reference)


SUMS = """func.func @main(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %0 = "my.cumsum"(%x) : (tensor<4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}"""


def sums_in_place(x: Any) -> Any:
    """Write sums along rows over the operand."""
    return np.cumsum(x, 1, out=x)


def test_a_function_may_work_in_place() -> None:
    """A function that writes into its operand changes no array of the caller, and hides no wrong rule."""
    array = np.arange(24.0).reshape(4, 6)
    settings: Any = {"in_shardings": {0: (None, "a")}, "plugins": [plugin()]}
    run = run_sharded(SUMS, {"my.cumsum": sums_in_place}, {"a": 2}, array, **settings)
    assert not run.ok
    np.testing.assert_array_equal(array, np.arange(24.0).reshape(4, 6))
    np.testing.assert_array_equal(run.results[0], np.cumsum(array, 1))


@pytest.mark.parametrize("functions", [None, ["my.cumsum"], {"my.cumsum": "x"}, {"my.cumsum": None}])
def test_functions_that_are_none(functions: Any) -> None:
    """Whatever is no mapping of names to functions is an error that shows one."""
    with pytest.raises(OptionError, match=r"not a (mapping|function)"):
        run_sharded(SUMS, functions, {"a": 2}, plugins=[plugin()])


def test_a_function_that_fails() -> None:
    """The exception of a function is left as it is, with a note about the op."""
    with pytest.raises(ZeroDivisionError) as caught:
        run_sharded(SUMS, {"my.cumsum": lambda x: 1 // 0}, {"a": 2}, plugins=[plugin()])
    assert caught.value.__notes__ == ["in the function of my.cumsum at -:2:8"]


def test_arrays_are_whole_and_fit_the_arguments() -> None:
    """An array of another shape would be computed with, as numpy repeats what is of size 1."""
    text = f"""{MESH}func.func @main(%x: tensor<4x6xf32> {X}) -> tensor<4x6xf32> {{
      %0 = "my.add"(%x, %x) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }}"""
    assert run_sharded(text, FUNCTIONS, None, np.ones((4, 6)), plugins=[plugin()]).ok
    with pytest.raises(OptionError, match=r"argument 0 is no array: ValueError: .*inhomogeneous"):
        run_sharded(text, FUNCTIONS, None, [[1.0], [2.0, 3.0]], plugins=[plugin()])
    for array in (np.ones((1, 6)), np.ones((2, 6)), 1.0):
        with pytest.raises(
            OptionError, match=r"argument 0 has the type tensor<4x6xf32>, given is an array of the shape"
        ):
            run_sharded(text, FUNCTIONS, None, array, plugins=[plugin()])


INDEX = (
    MESH
    + """func.func @main(%x: tensor<8xindex> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %n: ARGUMENT)
    -> tensor<8xindex> {
  %0 = "my.add"(%x, %x) : (tensor<8xindex>, tensor<8xindex>) -> tensor<8xindex>
  return %0 : tensor<8xindex>
}
"""
)


def test_index_has_random_numbers() -> None:
    """They are those of 64 bits."""
    done = assert_runs_sharded(INDEX.replace("ARGUMENT", "tensor<index>"), FUNCTIONS, plugins=[plugin()])
    assert done.results[0].dtype == np.int64


def test_an_argument_without_random_numbers_is_named() -> None:
    """The error has its number, the place of the function and the fix; an array with dimensions is none."""
    text = INDEX.replace("ARGUMENT", "index")
    with pytest.raises(OptionError, match=r"argument 1: there are no random numbers of type index") as caught:
        run_sharded(text, FUNCTIONS, plugins=[plugin()])
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.location, diagnostic.op, diagnostic.hint) == ("-:2:1", "func.func", "give an array per argument")
    assert run_sharded(text, FUNCTIONS, None, np.arange(8), np.int64(3), plugins=[plugin()]).ok
    with pytest.raises(OptionError, match="argument 1 has the type index, given is an array of the shape"):
        run_sharded(text, FUNCTIONS, None, np.arange(8), np.arange(8), plugins=[plugin()])
