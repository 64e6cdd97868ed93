"""The stages of `sdy.jit`: what is traced, lowered, compiled and exported answers as that of `jax.jit`."""

from __future__ import annotations

import functools
from typing import Any

import pytest

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy
from shardy_py.jax.arguments import ArrayType
from shardy_py.jax.donations import ShardBuffer, unusable_buffers

MESH = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
X = np.arange(8, dtype=np.float32).reshape(4, 2)
PARTITIONERS = ("shardy_py", "xla")
TREES = ("in_tree", "out_tree", "args_info", "in_avals", "donate_argnums")


def model(params: Any, unused: Any, flag: bool, *, scale: Any) -> Any:
    """Return a tree, of a tree, an unused argument, a static one and one by keyword."""
    y = jnp.tanh(params["w"]) * scale
    return {"y": y if flag else -y, "key": jax.random.split(params["key"])[0]}


def arguments() -> tuple[Any, ...]:
    """Return arguments of `model` that may be donated."""
    return {"w": jnp.array(X), "key": jax.random.key(0)}, jnp.array(X), True


OPTIONS: dict[str, Any] = {"static_argnums": 2, "donate_argnums": 0}


def types_of(tree: Any) -> Any:
    """Return a tree with the shape and dtype of each leaf."""
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


def test_no_name_of_a_stage_of_jax_is_missing() -> None:
    """But for those that are about layouts; the docs list them."""
    function = sdy.jit(jnp.sin, MESH)
    lowered = function.lower(X)
    compiled = [sdy.jit(jnp.sin, MESH, partitioner=item).lower(X).compile() for item in PARTITIONERS]
    theirs = jax.jit(jnp.sin)
    pairs = [(function, theirs), (lowered, theirs.lower(X)), *((item, theirs.lower(X).compile()) for item in compiled)]
    for ours, stage in pairs:
        missing = {name for name in dir(stage) if not name.startswith("_")} - set(dir(ours))
        assert missing <= {"input_formats", "output_formats", "call"}, type(ours)


def test_a_lowered_function_answers_as_that_of_jax_jit() -> None:
    """Trees, types, donations and XLA's costs are those of `jax.jit`, whatever the mesh."""
    ours = sdy.jit(model, {"x": 4}, **OPTIONS).lower(*arguments(), scale=2.0)
    theirs = jax.jit(model, **OPTIONS).lower(*arguments(), scale=2.0)
    for name in TREES:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.donate_argnums == (0, 1)
    assert types_of(ours.out_info) == types_of(theirs.out_info)
    assert ours.cost_analysis()["flops"] == theirs.cost_analysis()["flops"]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_a_compiled_function_answers_as_that_of_jax_jit(partitioner: Any) -> None:
    """Trees, types, shardings and memory are those of `jax.jit`, as is what a call returns."""
    ours = sdy.jit(model, MESH, partitioner=partitioner, **OPTIONS).lower(*arguments(), scale=2.0).compile()
    theirs = jax.jit(model, **OPTIONS).lower(*arguments(), scale=2.0).compile()
    for name in TREES:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert types_of(ours.out_info) == types_of(theirs.out_info)
    (params, unused), keywords = ours.input_shardings
    assert unused is None
    for sharding in (params["w"], params["key"], keywords["scale"], *jax.tree.leaves(ours.output_shardings)):
        assert sharding.is_fully_replicated
    assert ours.out_info["y"].sharding == ours.output_shardings["y"]
    assert ours.as_text().startswith("HloModule")
    assert ours.as_text() == ours.hlo()
    assert ours.cost_analysis()["flops"] > 0
    assert ours.runtime_executable() is ours.executable
    ours_bytes, their_bytes = ours.memory_analysis(), theirs.memory_analysis()
    assert ours_bytes.argument_size_in_bytes == their_bytes.argument_size_in_bytes
    assert ours_bytes.output_size_in_bytes == their_bytes.output_size_in_bytes
    assert np.allclose(ours(*arguments()[:2], scale=2.0)["y"], 2 * np.tanh(X))


def test_a_program_without_trees_takes_arrays_by_position() -> None:
    """What is compiled of MLIR has flat trees."""
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {return %x : tensor<4xf32>}"
    compiled = sdy.propagate(text).to_jax()
    assert compiled.in_tree == jax.tree.structure(((0,), {}))
    assert compiled.out_tree == jax.tree.structure([0])
    assert types_of(compiled.args_info) == ((((4,), np.dtype("float32")),), {})
    assert compiled.in_avals[0][0].shape == (4,)
    assert (compiled.donate_argnums, compiled.input_shardings[1]) == ((), {})
    assert compiled.out_info[0].sharding == compiled.output_shardings[0]


def test_a_lowered_function_says_how_results_are_sharded() -> None:
    """Shardings are known before anything is compiled, also where JAX has too few devices for them."""
    lowered = sdy.jit(jnp.sin, {"x": 4}, in_shardings=(P("x"),)).lower(X)
    sharding = lowered.out_info.sharding
    assert (sharding.spec, dict(sharding.mesh.shape)) == (P("x", None), {"x": 4})
    assert sdy.jit(jnp.sin, MESH).lower(X).out_info.sharding.mesh == MESH
    assert sdy.jit(jnp.sin).lower(X).out_info.sharding is None


def test_a_lowered_function_has_a_text_in_each_dialect() -> None:
    """The text and the module are those of the propagated program, in StableHLO and in HLO."""
    lowered = sdy.jit(jnp.sin, {"x": 4}, in_shardings=(P("x"),)).lower(X)
    sharding = 'sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>'
    assert sharding in lowered.as_text()
    assert sharding in str(lowered.compiler_ir("stablehlo"))
    assert lowered.as_text("stablehlo") == lowered.as_text()
    assert "loc(" not in lowered.as_text()
    assert "loc(" in lowered.as_text(debug_info=True)
    assert "sharding={devices=[4,1]<=[4]}" in lowered.as_text("hlo")
    assert "metadata=" not in lowered.as_text("hlo")
    assert lowered.compiler_ir("hlo").as_hlo_module().name == "jit_sin"
    with pytest.raises(sdy.OptionError, match="unknown-dialect"):
        lowered.as_text("llvm")
    # To change the module is to change a copy.
    lowered.compiler_ir().operation.attributes["mark"] = lowered.compiler_ir().operation.attributes["sym_name"]
    assert "mark" not in lowered.as_text(debug_info=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"out_shardings": {"y": NamedSharding(MESH, P("x")), "key": None}}, NamedSharding(MESH, P("x"))),
        ({"mesh": MESH, "out_shardings": {"y": P("x"), "key": None}}, NamedSharding(MESH, P("x"))),
        ({"mesh": {"x": 4}, "out_shardings": {1: P("x")}}, None),
    ],
)
def test_shapes_of_results_without_propagating(options: Any, expected: Any) -> None:
    """They are those of `jax.jit`, with the shardings of JAX that are given for them."""
    ours = sdy.jit(model, static_argnums=2, **options).eval_shape(*arguments(), scale=1.0)
    theirs = jax.jit(model, static_argnums=2).eval_shape(*arguments(), scale=1.0)
    assert types_of(ours) == types_of(theirs)
    assert ours["y"].weak_type == theirs["y"].weak_type
    assert ours["y"].sharding == expected


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_a_traced_function_is_that_of_jax(partitioner: Any) -> None:
    """It has JAX's own class, and what it is lowered to runs."""
    function = sdy.jit(model, MESH, partitioner=partitioner, in_shardings=({"w": P("x"), "key": P()}, P()), **OPTIONS)
    assert isinstance(function, jax.stages.Wrapped)
    traced = function.trace(*arguments(), scale=2.0)
    theirs = jax.jit(model, **OPTIONS).trace(*arguments(), scale=2.0)
    assert isinstance(traced, jax.stages.Traced)
    for name in ("in_tree", "out_tree", "donate_argnums", "fun_name"):
        assert getattr(traced, name) == getattr(theirs, name), name
    assert types_of(traced.out_info) == types_of(theirs.out_info)
    assert traced.out_info["y"].sharding == NamedSharding(MESH, P())
    assert ("shardy_function[call=<propagated model>]" in str(traced.jaxpr)) == (partitioner == "shardy_py")
    ours = traced.lower().compile()(*arguments()[:2], scale=2.0)
    assert np.allclose(ours["y"], 2 * np.tanh(X))


def test_an_exported_function_runs_after_it_was_read_back() -> None:
    """A function is exported as those of `jax.jit` are, without one around it."""
    function = sdy.jit(lambda x: jnp.sin(x).sum(), MESH, in_shardings=(P("x"),))
    exported = jax.export.export(function)(X)
    assert exported.fun_name == "<lambda>"
    again = jax.export.deserialize(exported.serialize())
    assert np.allclose(jax.jit(again.call)(X), np.sin(X).sum(), rtol=1e-5)
    assert np.allclose(jax.jit(exported.vjp().call)(X, np.float32(1))[0], np.cos(X), rtol=1e-5)


def test_what_is_propagated_is_not_propagated_again() -> None:
    """`propagate` names the result that the function has already."""
    function = sdy.jit(jnp.sin, {"x": 4})
    for source, options in ((function, {"args": (X,)}), (function, {}), (function.lower(X), {})):
        with pytest.raises(sdy.UnsupportedError, match="already-propagated"):
            sdy.propagate(source, **options)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_options_of_xla(partitioner: Any) -> None:
    """They are XLA's, for whatever is compiled, and not for what JAX traces."""
    unknown: dict[str, Any] = {"compiler_options": {"xla_that_is_not_an_option": True}}
    jit = functools.partial(sdy.jit, jnp.sin, MESH, partitioner=partitioner)
    assert np.allclose(jit(compiler_options={"xla_cpu_enable_fast_math": False})(X), np.sin(X))
    message = "No such compile option: 'xla_that_is_not_an_option'"
    with pytest.raises(sdy.UnsupportedError, match=message):
        jit(**unknown)(X)
    with pytest.raises(sdy.UnsupportedError, match=message):
        jit().lower(X).compile(**unknown).as_text()
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        sdy.jit(jnp.sin, partitioner=partitioner, **unknown)(X)
    with pytest.raises(sdy.UnsupportedError, match="traced-options"):
        jax.jit(jit(compiler_options={"xla_cpu_enable_fast_math": False}))(X)


def test_options_of_xla_for_derivatives() -> None:
    """What JAX makes of a function is compiled with the options of the function."""
    function = sdy.jit(jnp.sin, MESH, compiler_options={"xla_that_is_not_an_option": True})
    with pytest.raises(sdy.UnsupportedError, match="No such compile option"):
        jax.vmap(function)(X)


def test_options_that_contradict_each_other() -> None:
    """A function that is propagated is not inlined, and one on a device is not distributed."""
    with pytest.raises(sdy.OptionError, match=r"(?s)inline=True.*partitioner='xla'"):
        sdy.jit(jnp.sin, inline=True)
    assert np.allclose(sdy.jit(jnp.sin, MESH, inline=True, partitioner="xla")(X), np.sin(X))
    for beside in ({"mesh": MESH}, {"in_shardings": P()}, {"out_shardings": P()}):
        with pytest.raises(sdy.OptionError, match="backend is for a function on one device"):
            sdy.jit(jnp.sin, backend="cpu", **beside)


@pytest.mark.filterwarnings("ignore:backend and device argument")
def test_a_function_on_one_device() -> None:
    """It runs where `jax.jit` runs it, also when it was lowered first, or is traced."""
    (device,) = jax.devices()
    for options in ({"device": device}, {"backend": "cpu"}):
        function = sdy.jit(jnp.sin, **options)
        for result in (function(X), function.lower(X).compile()(X), function.trace(X).lower().compile()(X)):
            assert np.allclose(result, np.sin(X))
            assert result.devices() == {device}


def test_donated_buffers_that_no_result_can_take() -> None:
    """Each result takes a buffer like it, or else one of its size in its memory."""

    def buffer(*shape: int, dtype: str = "float32", memory: str | None = None) -> ShardBuffer:
        return ShardBuffer(ArrayType(shape, np.dtype(dtype)), memory)

    a, b = buffer(2, 4), buffer(4, 2)
    assert unusable_buffers([a], [a]) == []
    assert unusable_buffers([a, a], [a]) == [a]
    assert unusable_buffers([a], [b]) == []
    assert unusable_buffers([a, b], [b]) == [a]
    assert unusable_buffers([a], [buffer(2, 4, dtype="int32")]) == []
    assert unusable_buffers([a], [buffer(2, 2), buffer(2, 4, memory="pinned_host")]) == [a]


def test_a_donated_argument_that_is_not_usable_is_warned_of() -> None:
    """The warning is that of `jax.jit`, once for each kind of call, and with what one device holds."""
    message = r"Some donated buffers were not usable: float32\[{},2\]"
    with pytest.warns(UserWarning, match=message.format(4)):
        sdy.jit(lambda x: x.sum(), donate_argnums=0).lower(X)
    options: dict[str, Any] = {"in_shardings": (P("x"),), "donate_argnums": 0}
    with pytest.warns(UserWarning, match=message.format(1)):
        sdy.jit(lambda x: x.sum(), {"x": 4}, out_shardings=P(), **options).lower(X)


@pytest.mark.parametrize("out_shardings", [None, P(P.UNCONSTRAINED, None), "[{?}, {}]"])
def test_what_propagation_decides_is_not_warned_of(recwarn: Any, out_shardings: Any) -> None:
    """As with `jax.jit`, a result that may be sharded in any way may take the place of an argument."""
    jit = functools.partial(sdy.jit, mesh={"x": 4}, in_shardings=(P("x"),), donate_argnums=0)
    jit(lambda x: x[:2], out_shardings=out_shardings).lower(X)
    assert not [item for item in recwarn if "donated" in str(item.message)]


def ordered(x: Any) -> Any:
    """Return two arrays, and have an effect that keeps its order."""
    total = io_callback(lambda value: value, jax.ShapeDtypeStruct((), np.float32), x.sum(), ordered=True)
    return x + 1, total


def test_numbers_do_not_count_the_token_of_ordered_effects() -> None:
    """Number 0 is the first array; a name of the text that is the token's is refused."""
    result = sdy.jit(ordered, {"x": 4}, in_shardings={0: P("x")}, trace=True).lower(X).result
    assert result.signature is not None
    assert result.signature.tokens == 1
    expected = '<@mesh, [{"x"}, {}]>'
    for key in (0, "x", "arg1", "result[0]", "result1"):
        assert str(result.sharding(key)) == expected, key
    assert "comes from function argument x" in str(result.explain(0, 0))
    assert len(result.devices(0)) == 4
    for key in ("arg0", "%arg0", "result0"):
        with pytest.raises(sdy.OptionError, match="is the token that orders effects"):
            result.sharding(key)
    with pytest.raises(sdy.OptionError, match="unknown-argument"):
        sdy.jit(ordered, {"x": 4}, in_shardings={-1: P("x")}).lower(X)
