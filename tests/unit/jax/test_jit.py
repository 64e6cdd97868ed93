"""`sdy.jit`: functions of JAX that are propagated here and run through XLA."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy
from shardy_py.jax.callable.device_program import DeviceProgram

MESH = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
PARAMS = {"w": np.ones((3, 4), np.float32)}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def counted(traces):
    """Return a function that counts how often it is traced."""

    def model(params, x, *, scale=2.0, mean=False):
        traces.append(x.shape)
        y = jnp.tanh(x @ params["w"]) * scale
        return {"y": y, "total": (y.mean() if mean else y.sum(),)}

    return model


def test_it_is_called_as_the_function() -> None:
    """Trees go in and out, and results lie over the mesh."""
    function = sdy.jit(counted([]), MESH, in_shardings=({"w": P(None, "x")}, P("x")))
    actual, expected = function(PARAMS, X, scale=3.0), counted([])(PARAMS, X, scale=3.0)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    assert np.allclose(actual["y"], expected["y"])
    assert isinstance(actual["y"].sharding, NamedSharding)
    single = sdy.jit(jnp.sin, MESH, in_shardings=(P("x"),))(X)
    assert isinstance(single, jax.Array)


def test_it_is_traced_once_for_each_kind_of_call() -> None:
    """Shapes, types, shardings and static arguments tell calls apart; values do not."""
    traces: list[tuple[int, ...]] = []
    function = sdy.jit(counted(traces), MESH, static_argnames="mean")
    for _ in range(2):
        function(PARAMS, X)
        function(PARAMS, X + 1)
    assert traces == [(2, 3)]
    function(PARAMS, np.ones((4, 3), np.float32))
    assert np.allclose(function(PARAMS, X, mean=True)["total"][0], counted([])(PARAMS, X, mean=True)["total"][0])
    function(PARAMS, jax.device_put(X, NamedSharding(MESH, P("x"))))
    assert len(traces) == 4
    function.clear_cache()
    assert function(PARAMS, X)["y"].shape == (2, 4)


def test_it_can_be_lowered_explained_and_priced() -> None:
    """A lowered call has its text, and answers questions; the function answers those about its latest call."""
    function = sdy.jit(counted([]), {"x": 4}, in_shardings=({"w": P(None, "x")}, P()))
    with pytest.raises(sdy.OptionError, match="not-called"):
        function.explain("result0")
    lowered = function.lower(PARAMS, X)
    assert '[{}, {"x"}]' in lowered.as_text()
    assert lowered.result.like == "jit"
    assert "comes from function argument params['w']" in str(function.explain("result['y']"))


def test_the_schedule_is_that_of_the_user() -> None:
    """A schedule without a way back leaves an argument alone that others shard as the result."""
    shape = jax.ShapeDtypeStruct((4, 4), "float32")
    arguments = [
        sdy.jit(jnp.sin, {"x": 2}, out_shardings=P("x"), schedule=schedule).lower(shape).result.arguments[0]
        for schedule in (None, "forward-only")
    ]
    assert [str(item) for item in arguments] == ['<@mesh, [{"x"}, {}]>', "None"]


def test_within_transformations_of_jax() -> None:
    """Under `jax.jit`, in scans, gradients and maps the function is traced with its shardings as constraints."""
    function = sdy.jit(jnp.sin, MESH, in_shardings=(P("x"),))
    assert np.allclose(jax.jit(lambda x: function(x) * 2)(X), 2 * np.sin(X))
    assert np.allclose(jax.lax.scan(lambda c, _: (function(c), None), X, None, length=2)[0], np.sin(np.sin(X)))
    assert np.allclose(jax.grad(lambda x: function(x).sum())(X), np.cos(X))
    assert np.allclose(jax.vmap(sdy.jit(jnp.cos))(X), np.cos(X))


def test_donated_arguments_are_gone() -> None:
    """An argument that is donated and distributed already is deleted."""
    function = sdy.jit(lambda x, y: x + y, donate_argnums=0)
    x = jax.device_put(X, NamedSharding(MESH, P("x")))
    y = jax.device_put(X, NamedSharding(MESH, P("x")))
    assert np.allclose(function(x, y), 2 * X)
    assert x.is_deleted()
    assert not y.is_deleted()


def test_as_a_decorator() -> None:
    """It keeps the name of the function, and takes options without one."""

    @sdy.jit(mesh=MESH)
    def double(x):
        """Twice."""
        return 2 * x

    assert (double.__name__, double.__doc__, repr(double)) == ("double", "Twice.", "<sdy.jit of double>")
    assert np.allclose(double(X), 2 * X)


def test_a_sharding_that_does_not_divide_is_warned_of() -> None:
    """The result has the rest of it, and the warning says so once for a call of new shapes."""
    run = sdy.jit(lambda x: x * 2, {"x": 4}, out_shardings=P("x"))
    with pytest.warns(UserWarning, match=r"given for result result0 .* becomes \[\{\"x\":\(1\)2\}, \{\}\]"):
        run.lower(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.lower(X)
        run.lower(np.ones((4, 3), np.float32))


def test_shardings_name_memories() -> None:
    """Arguments and results lie in the memory that their shardings name, as with `jax.jit`."""
    host = NamedSharding(jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,)), P("x"), memory_kind="pinned_host")
    try:
        jax.jit(lambda x: x, in_shardings=host, out_shardings=host)(X)
        jax.jit(lambda x: x * 2, out_shardings=host)(X)
    except jax.errors.JaxRuntimeError as error:
        pytest.skip(f"host devices of this jaxlib name no memories: {error}")
    run = sdy.jit(
        lambda x, y: {"sum": x + y, "x": x * 2}, in_shardings=(host, None), out_shardings={"sum": host, "x": P()}
    )
    results = run(X, X)
    kinds = {name: array.sharding.memory_kind for name, array in results.items()}
    assert kinds == {"sum": "pinned_host", "x": jax.devices()[0].default_memory().kind}
    assert np.allclose(results["sum"], 2 * X)
    assert run.lower(X, X).compile().in_shardings[0].memory_kind == "pinned_host"
    with pytest.raises(sdy.OptionError, match="gives memories of arguments by their names"):
        sdy.jit(lambda x: x, in_shardings={"x": host}).lower(X)


def test_what_is_no_function() -> None:
    """What cannot be called, and static arguments that cannot be hashed, are errors that say so."""
    with pytest.raises(sdy.OptionError, match="jit takes a function, not 3"):
        sdy.jit(3)
    with pytest.raises(sdy.OptionError, match="unhashable-argument"):
        sdy.jit(lambda x, y: x, static_argnums=1)(X, [1])


def typed(x, key):
    """Return results whose types modules do not say: keys, and weak types of scalars of Python."""
    return x * 2, jax.random.split(key, 2), 3


@pytest.mark.parametrize("partitioner", ["shardy_py", "xla"])
def test_results_have_the_types_of_jax_jit(partitioner) -> None:
    """Keys of random numbers are keys, and a scalar of Python gives a weak type."""
    arguments = 1.5, jax.random.key(3)
    results = sdy.jit(typed, MESH, partitioner=partitioner)(*arguments)
    expected = jax.jit(typed)(*arguments)
    assert [item.dtype for item in results] == [item.dtype for item in expected]
    assert [item.weak_type for item in (results[0], results[2])] == [True, True]
    assert (jax.random.key_data(results[1]) == jax.random.key_data(expected[1])).all()
    assert (results[0], results[2]) == (3.0, 3)


def test_results_have_the_types_of_jax_jit_inside_of_it() -> None:
    """What JAX traces has the same types."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    inner = sdy.jit(typed, mesh)
    shapes = [jax.eval_shape(function, 1.5, jax.random.key(3)) for function in (inner, typed)]
    assert [(item.dtype, item.weak_type) for item in shapes[0]] == [(item.dtype, item.weak_type) for item in shapes[1]]


def test_a_compiled_call_returns_the_tree_of_the_function() -> None:
    """One array is an array, and a tuple is a tuple."""
    assert isinstance(sdy.jit(jnp.sin, MESH).lower(X).compile()(X), jax.Array)
    assert isinstance(sdy.jit(lambda x: (x, -x), MESH).lower(X).compile()(X), tuple)


def test_what_a_function_raises_is_raised() -> None:
    """Errors of the function, and of JAX about it, are those of `jax.jit`."""

    def refuse(x):
        raise KeyError("w")

    with pytest.raises(KeyError, match="w"):
        sdy.jit(refuse, MESH)(X)
    with pytest.raises(TypeError, match="dot_general requires"):
        sdy.jit(lambda x: x @ x, MESH)(X)


@pytest.mark.parametrize("partitioner", ["shardy_py", "xla"])
def test_arrays_of_numpy_with_64_bits_are_read_as_jax_does(partitioner) -> None:
    """They have 32 bits, unless JAX is told to have 64."""
    function = sdy.jit(lambda x, at: x[at] * 2, MESH, partitioner=partitioner)
    arrays = np.arange(4.0), np.array([2, 1])
    assert function(*arrays).dtype == np.float32
    assert function(*arrays).tolist() == [4.0, 2.0]
    with jax.enable_x64(True):
        assert function(*arrays).dtype == np.float64


def test_arrays_of_numpy_with_64_bits_inside_of_jax_jit() -> None:
    """They stand beside values that JAX traces."""
    function = sdy.jit(lambda x, at: x[at] * 2, MESH)
    assert jax.jit(lambda x: function(x, np.array([2, 1])))(np.arange(4.0)).tolist() == [4.0, 2.0]


def test_a_repeated_call_goes_to_its_program_at_once(monkeypatch) -> None:
    """Arrays that lie where the program wants them, and scalars of Python, are neither compared nor moved again."""

    def step(params, x, unused, rate, *, power):
        return {"w": params["w"] - rate * x.sum() ** power, "one": 1}, None

    function = sdy.jit(step, MESH, static_argnames="power")
    placed = jax.device_put((PARAMS, X, X), NamedSharding(MESH, P()))
    expected = step(*placed, 0.5, power=2)[0]["w"]
    function(*placed, 0.5, power=2)
    function(*placed, 0.5, power=3)
    monkeypatch.setattr(DeviceProgram, "run", None)
    actual, nothing = function(*placed, 0.5, power=2)
    assert nothing is None
    assert np.allclose(actual["w"], expected)
    assert (int(actual["one"]), actual["one"].weak_type) == (1, True)
    assert not np.allclose(function(*placed, 0.5, power=3)[0]["w"], expected)
    assert not np.allclose(function(*placed, 0.25, power=2)[0]["w"], expected)
    with pytest.raises(TypeError):
        function(*placed, 1, power=2)


def test_a_call_that_came_twice_runs_without_python(monkeypatch) -> None:
    """JAX dispatches it as one of its own; any other call does not take its program."""

    def step(params, x, rate):
        return {"w": params["w"] - rate * x.sum(), "one": 1}

    function = sdy.jit(step, MESH)
    params, x = jax.device_put((PARAMS, X), NamedSharding(MESH, P()))
    for _ in range(2):
        function(params, x, rate=0.5)
    with monkeypatch.context() as context:
        context.setattr(type(function), "_run", None)
        actual = function(params, x + 1, rate=0.25)
        assert np.allclose(actual["w"], step(params, X + 1, 0.25)["w"])
        assert (int(actual["one"]), actual["one"].weak_type) == (1, True)
        for others in ((params, X, 0.5), (params, x, 1), (params, x[:1], 0.5)):
            with pytest.raises(TypeError, match="not callable"):
                function(others[0], others[1], rate=others[2])
    assert np.allclose(function(params, x[:1], rate=0.5)["w"], step(params, X[:1], 0.5)["w"])


def test_a_jax_with_other_names_inside_calls_a_program_from_python(monkeypatch) -> None:
    """What JAX dispatches calls by is private, and a call needs none of it."""

    def look_inside(*arguments):
        raise AttributeError("module 'jax._src.interpreters.pxla' has no such attribute")

    monkeypatch.setattr("shardy_py.jax.callable.dispatch._dispatch_data", look_inside)
    function = sdy.jit(lambda x: x + 1, MESH)
    x = jax.device_put(X, NamedSharding(MESH, P()))
    assert all(np.allclose(function(x), X + 1) for _ in range(3))


def test_static_arguments_that_are_equal_but_of_other_types() -> None:
    """True and 1.0 do not run the program of 1, unless an older JAX traces it once for all of them."""

    def add(x, value):
        return x * 0 + jnp.asarray(value)

    actual, expected = (
        [str(function(np.int8(3), value=value).dtype) for value in (1, True, 1.0, 1)]
        for function in (sdy.jit(add, MESH, static_argnames="value"), jax.jit(add, static_argnames="value"))
    )
    assert actual == expected
    assert expected == ["int8", "int8", "float32", "int8"] or jax.__version_info__ < (0, 10)


@pytest.mark.parametrize("options", [{"static_argnames": "power"}, {"static_argnums": 1}])
def test_static_arguments_by_number_and_by_name(options) -> None:
    """One of both is enough for calls of either form, as with `jax.jit`, also where the argument is left out."""

    def function(x, power=2, y=1.0):
        return x**power + y if power > 1 else x

    ours, theirs = sdy.jit(function, MESH, **options), jax.jit(function, **options)
    for arguments, keywords in [((X, 3, X), {}), ((X,), {"power": 3}), ((X,), {"y": X}), ((X,), {"power": 1, "y": X})]:
        np.testing.assert_array_equal(ours(*arguments, **keywords), theirs(*arguments, **keywords))


@pytest.mark.parametrize("options", [{"donate_argnames": "y"}, {"donate_argnums": (1,)}])
def test_donated_arguments_by_number_and_by_name(options) -> None:
    """One of both is enough for calls of either form, as with `jax.jit`."""

    def given():
        return [jax.device_put(X + number, NamedSharding(MESH, P())) for number in range(2)]

    for make in (sdy.jit, jax.jit):
        for by_name in (False, True):
            x, y = given()
            make(lambda x, y: x + y, **options)(*([x] if by_name else [x, y]), **({"y": y} if by_name else {}))
            assert (x.is_deleted(), y.is_deleted()) == (False, True)


def test_unused_arguments_are_kept() -> None:
    """With ``keep_unused`` they are arguments of the program, as with `jax.jit`."""
    counts = [
        len(sdy.jit(lambda x, y: x, MESH, keep_unused=keep).lower(X, X).result.arguments) for keep in (False, True)
    ]
    assert counts == [1, 2]


def test_an_option_that_does_not_exist() -> None:
    """It is refused where it is given, in words about `jit`."""
    with pytest.raises(TypeError, match=r"jit\(\) got an unexpected keyword argument 'donate_argnum'; did you mean"):
        sdy.jit(jnp.sin, donate_argnum=0)


def test_without_a_mesh_results_are_on_the_device_of_the_arguments() -> None:
    """They may be combined with arrays on other devices, as those of `jax.jit`, unless an argument is committed."""
    actual = sdy.jit(jnp.sin)(X)
    assert not actual.committed
    np.testing.assert_array_equal(actual, jax.jit(jnp.sin)(X))
    traces: list[Any] = []
    function = sdy.jit(lambda x: traces.append(1) or -x)
    assert function(jax.device_put(X, jax.devices()[0])).committed
    assert len(traces) == 1


def test_methods_are_bound() -> None:
    """A decorated method gets its object, also where it has options."""

    class Model:
        def __init__(self) -> None:
            self.weight = PARAMS["w"]

        @functools.partial(sdy.jit, mesh=MESH, static_argnums=0)
        def __call__(self, x):
            return x @ self.weight

        @sdy.jit(mesh=MESH, static_argnames=("self", "times"))
        def scaled(self, x, times=1):
            return x @ self.weight * times

    model = Model()
    np.testing.assert_allclose(model(X), X @ PARAMS["w"])
    np.testing.assert_allclose(model.scaled(X, 3), X @ PARAMS["w"] * 3)
    assert Model.scaled(model, X).shape == (2, 4)


def test_not_finite_results_are_errors_where_jax_is_told_so() -> None:
    """Under ``jax.debug_nans`` the op that gives one is named, and without one nothing is raised."""
    with jax.debug_nans(True):
        function = sdy.jit(lambda x: jnp.log(x), MESH)
        for _ in range(2):
            function(X + 1)
        with pytest.raises(FloatingPointError, match="log"):
            function(-X - 1)


def test_a_function_that_fails_while_jax_traces_it_raises_its_error() -> None:
    """That a traced argument cannot be asked whether it is gone does not hide it."""

    def check(x, limit):
        if x.ndim > limit:
            raise ValueError("too many dimensions")
        return x.sum()

    function = sdy.jit(lambda x: check(x, 1), MESH)
    function(X[0])
    with pytest.raises(ValueError, match="too many dimensions"):
        jax.grad(function)(X)


def test_a_repeated_call_says_which_array_is_gone() -> None:
    """A donated array cannot be given again."""
    function = sdy.jit(lambda x: x + 1, MESH, donate_argnums=0)
    x = jax.device_put(X, NamedSharding(MESH, P()))
    for _ in range(2):
        x, last = function(x), x
    with pytest.raises(sdy.OptionError, match="argument 0 is an array that was deleted"):
        function(last)


def test_settings_of_jax_make_other_programs() -> None:
    """A program is that of the settings in which it is called."""
    function = sdy.jit(lambda x: x @ x.T, MESH)
    assert "HIGHEST" not in function.lower(X).as_text()
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in function.lower(X).as_text()


def test_without_jit() -> None:
    """Where JAX is told not to compile, the function itself runs."""
    with jax.disable_jit():
        assert sdy.jit(lambda x: x * (2 if x.sum() > 0 else 3), MESH)(X).tolist() == (2 * X).tolist()
