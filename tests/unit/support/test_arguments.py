"""Wrong arguments of public functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py import layout
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.comparison import compare_schedules
from shardy_py.errors import OptionError, ShardyError
from shardy_py.support.arguments import as_integer, checked, parse_integer, shown

MODULE = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


class Silent:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


WRONG = [None, True, -1, 3.5, float("nan"), 10**5000, "", "x", "\ud800", "a\0b", b"\xff", (), (1,), ["x"], {"x": 1}]
WRONG += [{1: 2}, set(), object(), Silent(), Path("/nonexistent/file"), 2**64, [[1]], {"arg0": None}, "%0", Ellipsis]


def attempt(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Call a function; only an error of this package, or of its signature, may come out."""
    try:
        function(*args, **kwargs)
    except ShardyError:
        return
    except TypeError as error:
        if "argument" not in str(error):
            raise


@pytest.mark.parametrize("name", [name for name in inspect.signature(sdy.propagate).parameters if name != "module"])
def test_wrong_options_of_propagate(name: str) -> None:
    """Each option of each wrong kind is an error of this package, or works."""
    pytest.importorskip("jaxlib")
    for value in WRONG:
        if name != "dump_directory" or not isinstance(value, str | Path):
            attempt(sdy.propagate, MODULE, **{name: value})


def test_wrong_modules_and_shardings() -> None:
    """What is no program, no mesh, no argument or no sharding is told."""
    pytest.importorskip("jaxlib")
    for value in WRONG:
        attempt(sdy.propagate, value)
        attempt(sdy.propagate, MODULE, in_shardings={0: value})
        attempt(sdy.propagate, MODULE, in_shardings=[value])
        attempt(sdy.propagate, MODULE, in_shardings={0: (value, None)})
        attempt(sdy.propagate, MODULE, {"x": value})
        attempt(sdy.propagate, MODULE, op_priorities=[[value]])


def test_wrong_questions_to_a_result() -> None:
    """Values, dimensions and ops that do not exist are told."""
    pytest.importorskip("jaxlib")
    result = sdy.propagate(MODULE, trace=True)
    for value in WRONG:
        for method in (result.sharding, result.value, result.explain, result.explain_op, result.memory):
            attempt(method, value)
        attempt(result.explain, 0, value)


def test_wrong_calls_of_a_session() -> None:
    """Schedules, machines, links and layouts of another kind are told."""
    pytest.importorskip("jaxlib")
    session = Session.open(MODULE)
    for value in WRONG:
        attempt(session.solve, value)
        attempt(session.with_shardings, value)
        attempt(session.evaluate, None, value)
        attempt(session.evaluate, None, "tpu-v5e-4x4", axes={"x": value})
        attempt(session.evaluate, layout=value)
        attempt(get_machine, value)
        attempt(compare_schedules, session, value)


@pytest.mark.parametrize("name", [name for name in layout.__all__ if inspect.isroutine(getattr(layout, name))])
def test_wrong_calls_of_layout_functions(name: str) -> None:
    """What is no shape, no index and no name is told."""
    function = getattr(layout, name)
    shape = layout.parse_shape("f32[3,5]{1,0:T(2,2)}")
    for value in WRONG:
        attempt(function, value)
        attempt(function, shape, value)


@pytest.mark.parametrize("name", ["Bounded", "Layout", "MemorySpace", "Shape", "Split", "Tile"])
def test_wrong_values_of_layouts(name: str) -> None:
    """Sizes, tiles and layouts of another kind are told."""
    for value in WRONG:
        attempt(getattr(layout, name), value)
        attempt(getattr(layout, name), value, value)


def test_integers_of_numpy_are_numbers() -> None:
    """An argument can be named by an integer of numpy."""
    pytest.importorskip("jaxlib")
    numpy = pytest.importorskip("numpy")
    result = sdy.propagate(MODULE, {"x": numpy.int64(2)}, in_shardings={numpy.int32(0): ("x", None)}, trace=True)
    assert result.sharding(numpy.int64(0)) == result.sharding(0)
    assert str(result.explain(numpy.int64(0), numpy.int8(1)))
    assert layout.linear_index(layout.parse_array("f32[3,5]"), (numpy.int64(1), 2)) == 7
    assert [as_integer(value) for value in (numpy.int8(3), numpy.bool_(True), 2.0)] == [3, None, None]
    assert parse_integer("0" * 2000) is None


def test_the_error_names_function_argument_and_value() -> None:
    """A message says what was given and what should have been."""

    @checked
    def f(count: int, *, flag: bool = False, name: str | None = None) -> int:
        return count

    assert f(3, flag=True, name=None) == 3
    for arguments, expected in (
        (("x",), "f: count is 'x', not an integer of at most 63 bits"),
        ((True,), "f: count is True, not an integer of at most 63 bits"),
        ((10**5000,), "f: count is a number of 16610 bits, not an integer of at most 63 bits"),
    ):
        with pytest.raises(OptionError) as error:
            f(*arguments)  # type: ignore[arg-type]
        assert error.value.diagnostics[0].message == expected
    with pytest.raises(OptionError, match="flag is 1, not True or False"):
        f(3, flag=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(3, other=1)  # type: ignore[call-arg]
    assert shown(Silent()) == "a Silent"


def test_wrong_calls_of_the_kit() -> None:
    """What is no op, no shape, no function, no number and no registry is told by the functions for tests."""
    pytest.importorskip("numpy")
    from shardy_py import testing

    rule: dict[str, Any] = {"subject": "i j -> i j", "operands": [(8, 4)], "results": [(8, 4)]}
    calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (testing.make_op, {"name": "t.f", "operands": [(8, 4)], "results": [(8, 4)], "attributes": {}}),
        (testing.assert_rule, {**rule, "expected": "i j -> i j", "attributes": {}, "registry": None}),
        (testing.check_rule_numerically, {**rule, "function": lambda x: x, "trials": 1, "seed": 0, "rtol": None}),
        (testing.assert_data_flow, {"op": None, "registry": None}),
        (testing.assert_emits, {"subject": "t.f", "function": abs, "operands": [(8,)], "seed": 0, "rtol": None}),
    ]
    for function, good in calls:
        for name in good:
            for value in (item for item in WRONG if item is not Ellipsis):
                try:
                    attempt(function, **{**good, name: value})
                except AssertionError:
                    continue


def test_wrong_calls_of_a_builder() -> None:
    """Names, types, operands and attributes of another kind are told, however they show themselves."""
    good: dict[str, Any] = {"name": "t.f", "operands": (), "result_types": (), "attributes": None}
    for value in WRONG:
        for name in good:
            b = sdy.Builder(mesh={"x": 2})
            with b.function("main", [sdy.tensor(8)]):
                for method in (b.op, b.emit):
                    attempt(method, **{**good, name: value})
                for called in (b.mesh, b.declare, b.call, b.shard, b.constrain):
                    attempt(called, *[value] * (3 if called in (b.declare, b.call) else 2))
                b.return_()


def test_wrong_plugins_advice_and_rules() -> None:
    """Plugins that are no list, measures, budgets and rules of another kind are told."""
    pytest.importorskip("jaxlib")
    result = sdy.propagate(MODULE, trace=True)
    for value in WRONG:
        attempt(sdy.rule, value)
        attempt(sdy.Registry.from_entry_points, plugins=value, skip_broken=True)
        attempt(sdy.Registry.from_entry_points, blocked=value)
        attempt(sdy.Dialect("t").op, "t.f", combiner=value)
        if value is not None:
            attempt(result.advise, minimise=value)
        if not isinstance(value, int | float):
            attempt(result.advise, budget_memory=value, trials=1)
