"""Training steps over two meshes against one device; run by `test_jit` in a process with four host devices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import shardy_py as sdy

TOPOLOGY = {"m0": {"x": 2}, "m1": {"x": 2}}
KEYS = jax.random.split(jax.random.key(0), 4)


@sdy.mpmd.named_computation(name="encode")
def encode(weights: Any, x: Any) -> Any:
    """Return the hidden layer."""
    return jnp.tanh(x @ weights["w"] + weights["b"])


@sdy.mpmd.named_computation(name="decode")
def decode(weights: Any, x: Any, target: Any, mask: Any) -> Any:
    """Return the loss of those rows that a mask of integers has."""
    return jnp.sum(((x @ weights - target) ** 2).mean(axis=1) * mask) / jnp.sum(mask)


def loss(weights: Any, x: Any, target: Any, mask: Any) -> Any:
    """Return the loss of a microbatch."""
    return decode(weights["decode"], encode(weights["encode"], x), target, mask)


def step(weights: Any, batches: Any) -> Any:
    """Return the weights after a step of gradient descent, and the loss."""
    total, gradients = 0.0, jax.tree.map(jnp.zeros_like, weights)
    for number, batch in enumerate(batches):
        value, more = sdy.mpmd.call(jax.value_and_grad(loss), call_counter=number)(weights, *batch)
        total, gradients = total + value, jax.tree.map(jnp.add, gradients, more)
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients), total


WEIGHTS = {
    "encode": {"w": jax.random.normal(KEYS[0], (8, 16)) / 4, "b": jnp.zeros(16)},
    "decode": jax.random.normal(KEYS[1], (16, 4)) / 4,
}
BATCHES = [
    (jax.random.normal(key, (32, 8)), jax.random.normal(key, (32, 4)), jnp.arange(32) % 2)
    for key in jax.random.split(KEYS[2], 4)
]
SPECS = ({"encode": {"w": P(None, "x"), "b": P("x")}, "decode": P("x", None)}, P())


def assert_same(ours: Any, theirs: Any) -> None:
    """Check that two trees of arrays are equal but for rounding."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("schedule", ["None", "GPipe", "1F1B", "ZeroBubbleH1"])
@pytest.mark.parametrize("specs", [None, SPECS])
def test_three_steps_are_those_of_one_device(schedule: str, specs: Any) -> None:
    """Weights and losses are equal, and weights stay on the meshes of the stages that use them."""
    pipeline = sdy.mpmd.jit(
        step,
        topology=TOPOLOGY,
        assignment={"encode": "m0", "decode": "m1"},
        schedule=schedule,
        in_shardings=specs,
    )
    ours = theirs = WEIGHTS
    for _ in range(3):
        ours, value = pipeline(ours, BATCHES)
        theirs, expected = jax.jit(step)(theirs, BATCHES)
        assert_same((ours, value), (theirs, expected))
    assert {device.id for device in ours["encode"]["w"].devices()} == {0, 1}
    assert {device.id for device in ours["decode"].devices()} == {2, 3}


def test_the_schedule_is_the_one_that_was_asked_for() -> None:
    """The order of the fragments of each mesh is that of the list."""
    for name, list_name in (("GPipe", "GPipe"), ("1F1B", "1F1B"), ("ZeroBubbleH1", "ZB-H1")):
        pipeline = sdy.mpmd.jit(step, topology=TOPOLOGY, assignment={"encode": "m0", "decode": "m1"}, schedule=name)
        schedule = pipeline.lower(WEIGHTS, BATCHES).program.schedule()
        assert schedule.orders == sdy.mpmd.build_schedule(list_name, meshes=2, microbatches=4).orders


def test_weights_of_a_step_go_into_another_function() -> None:
    """Arrays on several meshes are taken as they lie, and their specs are those of the other function's arguments."""
    assignment = {"encode": "m0", "decode": "m1"}
    train = sdy.mpmd.jit(step, topology=TOPOLOGY, assignment=assignment, in_shardings=SPECS)
    test = sdy.mpmd.jit(loss, topology=TOPOLOGY, assignment=assignment)
    weights, _ = train(WEIGHTS, BATCHES)
    expected, _ = jax.jit(step)(WEIGHTS, BATCHES)
    assert_same(test(weights, *BATCHES[0]), loss(expected, *BATCHES[0]))
    assert 'tensor<8x16xf32>, sharding=<@mesh, [{}, {"x"}]>' in test.lower(weights, *BATCHES[0]).program.text


def test_numbers_take_the_type_of_the_array() -> None:
    """A number of Python and an array of its type are calls of two programs, and so are settings of JAX."""

    def function(weights: Any, scale: Any) -> Any:
        return encode(weights, jnp.ones((4, 8), jnp.bfloat16)) * scale, jnp.arange(4)

    weights = jax.tree.map(lambda weight: weight.astype(jnp.bfloat16), WEIGHTS["encode"])
    run = sdy.mpmd.jit(function, topology=TOPOLOGY, assignment={"encode": "m1"})
    for scale in (2.0, jnp.float32(2), np.float32(2), 2.0):
        for has_x64 in (False, True):
            with jax.enable_x64(has_x64):
                actual, expected = run(weights, scale), jax.jit(function)(weights, scale)
            assert [item.dtype for item in actual] == [item.dtype for item in expected]


def test_arguments_by_keyword() -> None:
    """They are arguments of the program, in the order that JAX has them in; shardings are for the others."""
    assignment = {"encode": "m0", "decode": "m1"}
    x, target, mask = BATCHES[0]
    run = sdy.mpmd.jit(loss, topology=TOPOLOGY, assignment=assignment)
    lowered = run.lower(WEIGHTS, x, mask=mask, target=target)
    assert lowered.in_tree == jax.tree.structure(((WEIGHTS, x), {"mask": mask, "target": target}))
    for function in (run, lowered):
        assert_same(function(WEIGHTS, x, target=target, mask=mask), loss(WEIGHTS, *BATCHES[0]))
    assert run.lower(WEIGHTS, x, target=target, mask=mask) is lowered
    with pytest.raises(sdy.OptionError, match="expected arguments in the tree"):
        lowered(WEIGHTS, x, target, mask)
    sharded = sdy.mpmd.jit(loss, topology=TOPOLOGY, assignment=assignment, in_shardings=(SPECS[0], P("x"), P(), P()))
    with pytest.raises(sdy.OptionError, match="target, mask are given by keyword"):
        sharded(WEIGHTS, x, target=target, mask=mask)


def test_types_are_those_of_jax() -> None:
    """Keys come back as keys, arrays of numpy with 64 bits are read as JAX does, and other meshes do not matter."""

    def function(key: Any, weights: Any, x: Any, rows: Any) -> Any:
        return jax.random.split(key)[0], encode(weights, x)[rows], rows + 1

    run = sdy.mpmd.jit(function, topology=TOPOLOGY, assignment={"encode": "m1"})
    elsewhere = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("rows",)), P("rows"))
    arguments = (KEYS[3], WEIGHTS["encode"], jax.device_put(BATCHES[0][0], elsewhere), np.array([3, 1]))
    actual, expected = run(*arguments), jax.jit(function)(*arguments)
    assert [item.dtype for item in actual] == [item.dtype for item in expected]
    assert_same(jax.random.key_data(actual[0]), jax.random.key_data(expected[0]))
    assert_same(actual[1:], expected[1:])


def test_a_stage_runs_on_the_devices_of_its_mesh_of_jax() -> None:
    """Meshes of JAX say which devices they have; tensors can be put on a mesh by name."""
    devices = jax.devices()
    meshes = {
        name: jax.sharding.Mesh(chosen, ("x",)) for name, chosen in zip("ab", (devices[2:], devices[:2]), strict=True)
    }

    def f(weights: Any, x: Any) -> Any:
        return encode(weights, sdy.mpmd.named_tensor(x * 2.0, "doubled"))

    run = sdy.mpmd.jit(f, topology=meshes, assignment={"encode": "a", "doubled": "b"})
    x = BATCHES[0][0]
    result = run(WEIGHTS["encode"], x)
    assert_same(result, f(WEIGHTS["encode"], x))
    assert {device.id for device in result.devices()} == {2, 3}
    assert run.lower(WEIGHTS["encode"], x).as_text().count(" = mpmd.transfer") == 1


def test_names_mean_nothing_to_one_device() -> None:
    """Values, gradients, batches and second derivatives are those of the plain function."""

    def plain(weights: Any, x: Any) -> Any:
        return jnp.tanh(x @ weights["w"] + weights["b"])

    weights, x = WEIGHTS["encode"], BATCHES[0][0]
    assert_same(encode(weights, x), plain(weights, x))
    assert_same(jax.grad(lambda w: encode(w, x).sum())(weights), jax.grad(lambda w: plain(w, x).sum())(weights))
    many = jnp.stack([x, x + 1.0])
    assert_same(jax.vmap(encode, (None, 0))(weights, many), jax.vmap(plain, (None, 0))(weights, many))
    assert_same(jax.jit(jax.checkpoint(encode))(weights, x), plain(weights, x))


def test_too_few_devices_are_an_error() -> None:
    """The message says how to get more."""
    run = sdy.mpmd.jit(encode, topology={"m0": {"x": 8}}, assignment={"encode": "m0"})
    with pytest.raises(sdy.OptionError, match="needs 8 devices") as caught:
        run(WEIGHTS["encode"], BATCHES[0][0])
    assert "xla_force_host_platform_device_count=8" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("specs", "size", "message"),
    [
        ((None, P("y")), 2, "mesh-conflict"),
        ((None, P("x")), 8, "too-few-devices"),
        ((None, ("x",)), 2, "which is not a PartitionSpec"),
    ],
)
def test_shardings_of_arguments_are_checked(specs: Any, size: int, message: str) -> None:
    """They are specs over the axes of the first mesh, of which there are devices."""
    run = sdy.mpmd.jit(encode, topology={"m0": {"x": size}}, assignment={"encode": "m0"}, in_shardings=specs)
    with pytest.raises(sdy.OptionError, match=message):
        run(WEIGHTS["encode"], BATCHES[0][0])


@pytest.mark.parametrize("name", ["", "main", 3])
def test_names_are_checked(name: Any) -> None:
    """A name is a text, and not that of the main function."""
    with pytest.raises(sdy.OptionError, match="not a valid name"):
        sdy.mpmd.named_computation(encode, name=name)


@pytest.mark.parametrize("counter", [-1, 1.5, True])
def test_counters_are_checked(counter: Any) -> None:
    """Microbatches are numbered from 0 on."""
    with pytest.raises(sdy.OptionError, match="not a number from 0 on"):
        sdy.mpmd.call(encode, call_counter=counter)
