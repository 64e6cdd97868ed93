"""Programs of JAX run with the trees, meshes and memories of their functions."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from shardy_py import OptionError, UnsupportedError, propagate

MESH = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
SHARDED = NamedSharding(MESH, P("x"))
X = np.arange(6, dtype=np.float32).reshape(2, 3)
PARAMS = {"w": np.ones((3, 4), np.float32), "unused": np.zeros(5, np.float32)}


def model(params, x, *, scale):
    """A function with a dictionary in and out, and an argument that is not used."""
    y = x @ params["w"] * scale
    return {"y": y, "parts": (y.sum(), x)}


def lowered():
    """Return the function, lowered."""
    return jax.jit(model).lower(PARAMS, jax.device_put(X, SHARDED), scale=2.0)


def test_a_program_is_called_as_its_function() -> None:
    """Trees go in and out, arguments by keyword, and those that the module has not; a flat list stays one."""
    run = propagate(lowered()).to_jax()
    actual = run(PARAMS, X, scale=2.0)
    expected = model(PARAMS, X, scale=2.0)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    assert all(np.allclose(a, b) for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True))
    flat = run(PARAMS["w"], X, np.float32(2))
    assert isinstance(flat, list)
    assert np.allclose(flat[-1], expected["y"])
    with pytest.raises(OptionError, match="argument-count"):
        run(PARAMS["w"], X, other=2.0)


def test_one_array_and_flat_tuples_are_lists() -> None:
    """A function of arrays that returns one or several gives a list, as a module that is not of JAX does."""
    single = propagate(jax.jit(jnp.sin).lower(X)).to_jax()(X)
    two = propagate(jax.jit(lambda x: (x, x + 1)).lower(X)).to_jax()(X)
    nested = propagate(jax.jit(lambda x: {"y": x}).lower(X)).to_jax()(X)
    assert (type(single), len(single), type(two), len(two)) == (list, 1, list, 2)
    assert list(nested) == ["y"]


def test_shardings_in_trees() -> None:
    """Shardings are given as `jax.jit` takes them, one in the place of all below it, and come back in trees."""
    mesh = {"x": 4}
    in_specs = ({"w": P(None, "x"), "unused": P()}, None)
    result = propagate(jax.jit(model).lower(PARAMS, X, scale=2.0), mesh, in_shardings=in_specs)
    arguments, keywords = result.in_specs()
    assert arguments[0]["w"] == P(None, "x")
    assert arguments[0]["unused"] is None
    assert list(keywords) == ["scale"]
    assert result.out_specs()["y"] == P(None, "x")
    named = result.out_specs(jax.sharding.AbstractMesh((4,), ("x",)))
    assert named["y"].spec == P(None, "x")
    prefix = propagate(
        jax.jit(model).lower(PARAMS, X, scale=2.0), mesh, in_shardings=[{"w": P(None, "x"), "unused": P()}, P()]
    )
    assert str(prefix.arguments[0]) == '<@mesh, [{}, {"x"}]>'
    results = propagate(
        jax.jit(model).lower(PARAMS, X, scale=2.0), mesh, out_shardings={"y": P(None, "x"), "parts": P()}
    )
    assert str(results.results[-1]) == '<@mesh, [{}, {"x"}]>'
    with pytest.raises(OptionError, match="invalid-sharding-tree"):
        propagate(jax.jit(model).lower(PARAMS, X, scale=2.0), mesh, in_shardings=({"v": P()}, None))
    with pytest.raises(OptionError, match="no-signature"):
        propagate(lowered().as_text()).out_specs()


@pytest.mark.parametrize(
    "in_specs", [(P(), P("x"), P(None, "x")), [P(), P(), P("x"), P(None, "x")]], ids=["prefix", "flat"]
)
def test_shardings_of_arguments_that_the_module_drops(in_specs) -> None:
    """Arguments that JAX leaves out of the module are counted; a sharding in place of a dictionary is for all in it."""
    program = jax.jit(lambda unused, x, y: (x + 1, y)).lower({"a": X, "b": X}, X, X.T)
    result = propagate(program, {"x": 2}, in_shardings=in_specs)
    assert [str(sharding) for sharding in result.arguments] == ['<@mesh, [{"x"}, {}]>', '<@mesh, [{}, {"x"}]>']


@pytest.mark.parametrize("out_shardings", [{"s": P(), "y": P("x")}, [P(), P("x")]])
@pytest.mark.parametrize("in_shardings", [(None, P("x")), [None, P("x")]])
def test_effects_in_order_do_not_move_shardings(in_shardings, out_shardings) -> None:
    """Their token stands before the arguments and results of the module, and gets no sharding."""

    def function(w, x):
        number = io_callback(lambda v: v, jax.ShapeDtypeStruct((), "float32"), x.sum(), ordered=True)
        return {"s": number, "y": x @ w}

    lowered = jax.jit(function).lower(PARAMS["w"], np.ones((4, 3), np.float32))
    result = propagate(lowered, {"x": 2}, in_shardings=in_shardings, out_shardings=out_shardings)
    assert (result.in_specs(), result.out_specs()) == ((P(), P("x", None)), {"s": P(), "y": P("x", None)})


def test_arguments_and_results_are_asked_for_by_their_names() -> None:
    """Those of JAX, beside the numbered ones."""
    program = jax.jit(model).lower(PARAMS, X, scale=2.0)
    result = propagate(program, {"x": 4}, in_shardings={"params['w']": P(None, "x")})
    names = ("params['w']", "result['y']", "result0")
    assert [str(result.sharding(name)) for name in names] == [
        '<@mesh, [{}, {"x"}]>',
        str(result.results[2]),
        str(result.results[0]),
    ]
    assert result.devices("params['w']")[1] == (slice(0, 3), slice(1, 2))


def test_a_sharding_for_all_in_an_argument_or_result() -> None:
    """One entry per argument or result counts for all arrays in it, as in `jax.jit`."""
    program = jax.jit(lambda x, pair: ({"a": x, "b": pair["b"]}, pair["c"])).lower(X, {"b": X, "c": X})
    result = propagate(program, {"x": 2}, in_shardings=(P(), P("x")))
    assert [str(sharding) for sharding in result.arguments] == ["<@mesh, [{}, {}]>", *['<@mesh, [{"x"}, {}]>'] * 2]
    asked = propagate(program, {"x": 2}, out_shardings=(P("x"), P()))
    assert [str(sharding) for sharding in asked.results] == [*['<@mesh, [{"x"}, {}]>'] * 2, "<@mesh, [{}, {}]>"]


def test_the_mesh_of_the_context() -> None:
    """Shardings without a mesh are over the one that the caller has set, as in `jax.jit`."""
    program = jax.jit(jnp.sin).lower(X)
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("x",))):
        result = propagate(program, in_shardings=[P("x")])
    assert str(result.results[0]) == '<@mesh, [{"x"}, {}]>'
    with pytest.raises(OptionError, match="no-mesh"):
        propagate(program, in_shardings=[P("x")])


def test_results_are_over_the_mesh_of_the_arguments() -> None:
    """A result mixes with arrays over a mesh whose axes are explicit."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    (y,) = propagate(jax.jit(jnp.sin).lower(x)).to_jax()(x)
    assert y.sharding.mesh == mesh
    assert np.allclose(x + y, X + np.sin(X))


def test_python_functions_of_this_process_are_called() -> None:
    """Callbacks run in the process that wrote them; a module as text says that they are gone."""
    seen = []

    def function(x):
        jax.debug.callback(lambda total: seen.append(float(total)), x.sum())
        return x * 2

    program = jax.jit(function).lower(X)
    assert np.allclose(propagate(program).to_jax()(X)[0], 2 * X)
    jax.effects_barrier()
    assert seen == [X.sum()]
    with pytest.raises(UnsupportedError, match="python-callback"):
        propagate(program.as_text()).to_jax()
    # The mesh without axes, which says where a callback runs, is beside that of the shardings.
    sharded = propagate(program, {"x": 2}, in_shardings=[P("x")])
    assert str(sharded.arguments[0]) == '<@mesh, [{"x"}, {}]>'


def test_a_program_is_traced() -> None:
    """Under `jax.jit` it is part of the program there; what XLA partitioned is refused with what to do."""
    result = propagate(jax.jit(jnp.sin).lower(X))
    run = result.to_jax()
    assert np.allclose(jax.jit(lambda x: run(x)[0] * 2)(X), 2 * np.sin(X))
    partitioned = result.to_jax(partitioner="xla")
    with pytest.raises(UnsupportedError, match="traced-argument"):
        jax.jit(lambda x: partitioned(x)[0])(X)
    with pytest.raises(OptionError, match="invalid-partitioner"):
        result.to_jax(partitioner="gspmd")
    with pytest.raises(OptionError, match="option-conflict"):
        result.to_jax(leave_open=True)


def test_results_in_the_memory_of_the_host() -> None:
    """A result that the program wants in pinned memory lies there."""
    host = NamedSharding(MESH, P("x"), memory_kind="pinned_host")
    (actual,) = propagate(jax.jit(jnp.sin, out_shardings=host).lower(X)).to_jax()(X)
    assert actual.sharding.memory_kind == "pinned_host"


def test_a_memory_that_the_module_does_not_name_is_refused() -> None:
    """A sharding that is given for a lowered program may name the memory that it has, and no other one."""
    host = NamedSharding(MESH, P("x"), memory_kind="pinned_host")
    propagate(jax.jit(jnp.sin, out_shardings=host).lower(X), out_shardings=[host])
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(OptionError, match="it is in the memory 'pinned_host'"):
            propagate(jax.jit(jnp.sin).lower(X), **{option: [host]})
    mesh = jax.sharding.AbstractMesh((1,), ("x",))
    with pytest.raises(OptionError, match="it is in the memory 'pinned_host'"):
        propagate(jax.jit(jnp.sin).lower(X), in_shardings=[NamedSharding(mesh, P("x"), memory_kind="pinned_host")])
    propagate(jax.jit(jnp.sin).lower(X), in_shardings=[NamedSharding(mesh, P("x"), memory_kind="device")])


def test_local_programs_without_the_partitioner_of_xla() -> None:
    """A function that says to XLA how it is partitioned is refused where there is no partitioner."""
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<2x3xf32> {
      %0 = stablehlo.custom_call @CustomSPMDPartitioning(%a) {
        sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=2, j=3}>
      } : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    """
    local = propagate(text, local=True).local()
    with pytest.raises(UnsupportedError, match="partitioned-by-jax"):
        local.run(X)


def test_a_program_that_is_not_known_any_more() -> None:
    """A module that was annotated in place has to be given again for a comparison with jit."""
    from shardy_py.frontends.mlir import parse_module

    result = propagate(parse_module(lowered().as_text()))
    with pytest.raises(OptionError, match="no-source"):
        result.compare_jit()
