"""Gathers of what is made from little, in local programs."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import shardy_py as sdy
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from tests.unit.local.host_devices import compare

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 1, 0, 2]>\n'
CUT = 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]>'


def program(producer_text: str, argument: str = 'tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}') -> str:
    """Return a module that makes a tensor, cuts it and gathers it."""
    return f"""{MESH}func.func @main(%v: {argument}) -> tensor<4x6xf32> {{
  %0 = {producer_text}
  %1 = {CUT} : tensor<4x6xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{{}}, {{}}]> : tensor<4x6xf32>
  %3 = stablehlo.sine %2 : tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}}"""


VECTOR = program("stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>")
SCALAR = program("stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) -> tensor<4x6xf32>", "tensor<f32>")
COUNTER = program("stablehlo.iota dim = 1 : tensor<4x6xf32>")
SINE = program(
    "stablehlo.cosine %v : tensor<4x6xf32>",
    'tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}',
)


def collectives(text: str) -> list[str]:
    """Return the collectives of the local program of a module."""
    local = sdy.propagate(text, explicit_collectives=True).local(optimize=False)
    return [f"{item.kind} {item.type}" for item in local.collectives]


def test_a_broadcast_is_gathered_before() -> None:
    """What is spread is sent, not its copies; what is the same everywhere is not sent at all."""
    assert collectives(VECTOR) == ["all_gather tensor<4xf32>"]
    assert collectives(SCALAR) == collectives(COUNTER) == []


def test_a_part_of_an_axis_is_gathered_before() -> None:
    """The operand keeps the major part of an axis whose minor part its result loses."""
    text = VECTOR.replace('"x"=2, "y"=2', '"x"=4').replace('{"y"}', "{}").replace("[{}, {}]>", '[{"x":(1)2}, {}]>')
    assert collectives(text)[0] == "all_gather tensor<2xf32>"


def test_gathers_may_stay_where_they_are() -> None:
    """Without early gathers, the collectives are those that the program with explicit ones has."""
    result = sdy.propagate(VECTOR, explicit_collectives=True)
    program = copy_program(result.program)
    convert = ConvertGlobalToLocalPass(trust_shardings=False, early_gathers=False)
    convert.run(program, PassContext(result.registry))
    sent = [prod(op.operands[0].shape) for op in program.walk() if op.name == "stablehlo.all_gather"]
    assert sent == [2 * 3], "the shard of the broadcast, and not the two elements that it spreads"


def test_an_op_with_operands_as_large_as_its_result_is_gathered_behind() -> None:
    """An elementwise op runs on shards, and its result is gathered."""
    assert [item.partition(" ")[0] for item in collectives(SINE)] == ["all_gather"]
    local = sdy.propagate(SINE, explicit_collectives=True).local()
    assert local.text.index("stablehlo.cosine") < local.text.index("stablehlo.all_gather")


@pytest.mark.slow
@pytest.mark.parametrize("text", [VECTOR, SCALAR, COUNTER])
def test_values_are_those_of_one_device(text: str) -> None:
    """The elements are the same wherever the gather stands."""
    vector = np.arange(1, 5, dtype=np.float32)
    assert compare(text, vector[2] if text is SCALAR else vector) == []


@pytest.mark.parametrize(
    "producer", ["stablehlo.iota dim = 1 :", "stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) ->"]
)
def test_what_is_made_from_scalars_is_made_in_parts(producer: str) -> None:
    """An iota, or a scalar that is spread, is never whole on a device that needs a part of it only."""
    replicated = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    text = f"""{MESH}func.func @main(%v: tensor<f32>) -> (tensor<5x6xf32> {replicated}) {{
  %0 = {producer} tensor<5x6xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{}}]> : tensor<5x6xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{{"x"}}, {{"y"}}]> : tensor<5x6xf32>
  %3 = stablehlo.sine %2 : tensor<5x6xf32>
  return %3 : tensor<5x6xf32>
}}"""
    assert "sdy.all_slice" in str(sdy.propagate(text, explicit_collectives=True))
    compare(text, np.float32(3))
    lines = (
        sdy.propagate(text, explicit_collectives=True)
        .local(optimize=False)
        .text.partition("stablehlo.sine")[0]
        .splitlines()
    )
    assert not any("tensor<5x6xf32>" in line for line in lines if "func.func" not in line)
