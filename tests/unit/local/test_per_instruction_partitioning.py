"""The pass that makes manual computations of single ops."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

from shardy_py.api.options import LocalOptions
from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.local import make_local_program
from shardy_py.jax.unsharded import compile_unsharded
from shardy_py.local.per_instruction_partitioning import InstructionFilter, PerInstructionPartitioningPass
from shardy_py.plugins import Registry
from shardy_py.transforms.run import run_on_attributes
from tests.unit.local.host_devices import propagate_unevenly

REGISTRY = Registry.from_entry_points()
ROWS, COLUMNS, BOTH = '<@mesh, [{"a"}, {}]>', '<@mesh, [{}, {"a", "b"}]>', '<@mesh, [{"a"}, {"b"}]>'
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2], device_ids=[2, 0, 3, 1]>\n'


def shard(sharding: str) -> str:
    """Return the attribute of an op."""
    return f"{{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}"


PROGRAM = f"""{MESH}
func.func @main(%x: tensor<8x12xf32> {{sdy.sharding = #sdy.sharding{BOTH}}}, %y: tensor<12x4xf32>)
    -> (tensor<7x4xf32>, tensor<7xf32>, tensor<11x8xf32>) {{
  %c = stablehlo.constant dense<0.5> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.slice %x [0:7, 0:11] {shard(BOTH)} : (tensor<8x12xf32>) -> tensor<7x11xf32>
  %t = stablehlo.tanh %s {shard(BOTH)} : tensor<7x11xf32>
  %m = stablehlo.reduce(%t init: %low) applies stablehlo.maximum across dimensions = [1]
    {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"a"}}]>]>}} : (tensor<7x11xf32>, tensor<f32>) -> tensor<7xf32>
  %p = stablehlo.pad %t, %c, low = [1, 0], high = [0, 0], interior = [0, 0] {shard(BOTH)}
    : (tensor<7x11xf32>, tensor<f32>) -> tensor<8x11xf32>
  %r = sdy.reshard %p {COLUMNS} : tensor<8x11xf32>
  %q = stablehlo.transpose %r, dims = [1, 0] {shard('<@mesh, [{"a", "b"}, {}]>')}
    : (tensor<8x11xf32>) -> tensor<11x8xf32>
  %z = stablehlo.slice %y [0:11, 0:4] : (tensor<12x4xf32>) -> tensor<11x4xf32>
  %d = stablehlo.dot %t, %z {shard(ROWS)} : (tensor<7x11xf32>, tensor<11x4xf32>) -> tensor<7x4xf32>
  return %d, %m, %q : tensor<7x4xf32>, tensor<7xf32>, tensor<11x8xf32>
}}"""


def partitioned(text: str, **options: object) -> str:
    """Return a program after the pass."""
    program = import_module(parse_module(text))
    run_on_attributes(program, [PerInstructionPartitioningPass(**options)], PassContext(REGISTRY))  # type: ignore[arg-type]
    return str(write_back(program))


@pytest.mark.slow
@pytest.mark.parametrize("exchange", [False, True])
def test_each_op_computes_what_it_did(exchange: bool) -> None:
    """Products, reductions, pads and reshards of what does not divide compute the same as manual computations."""
    arrays = [np.random.default_rng(0).normal(size=shape).astype(np.float32) for shape in ((8, 12), (12, 4))]
    text = partitioned(PROGRAM, enable_halo_exchange=exchange)
    assert text.count("sdy.manual_computation") == 7
    expected = compile_unsharded(PROGRAM, semantics=REGISTRY)(*arrays)
    local = make_local_program(propagate_unevenly(text), registry=REGISTRY, options=LocalOptions(strict=True))
    for actual, reference in zip(local.run(*arrays), expected, strict=True):
        np.testing.assert_allclose(actual, reference, rtol=1e-5, atol=1e-5)


def test_halos_replace_gathers() -> None:
    """With halo exchange the pad sends elements to neighbours, where it gathered a dimension otherwise."""
    texts = [partitioned(PROGRAM, filter="pad", enable_halo_exchange=exchange) for exchange in (False, True)]
    gathers, permutes = (
        [text.count(f"stablehlo.{kind}") for text in texts] for kind in ("all_gather", "collective_permute")
    )
    assert gathers[0] > gathers[1] == 0
    assert permutes[1] > permutes[0]


def test_the_other_ops_stay() -> None:
    """Ops that are not chosen are as before, and the body of the chosen one has no sharding and no mesh."""
    text = partitioned(PROGRAM, filter="tanh")
    assert text.count("sdy.manual_computation") == 1
    assert "stablehlo.tanh %arg2 : tensor<4x6xf32>" in text
    assert "stablehlo.dot" in text
    assert text.count("sdy.mesh @mesh") == 1


def test_ops_are_numbered() -> None:
    """Numbers count the ops that could be chosen: those with a sharded operand or result."""
    text = partitioned(PROGRAM, filter="selectLow=1, selectHigh=2")
    bodies = text.split("sdy.manual_computation")[1:]
    assert ["stablehlo.tanh" in body for body in bodies] == [True, False]
    assert "stablehlo.reduce" in bodies[1]


@pytest.mark.parametrize(
    ("text", "name", "number", "chosen"),
    [
        ("", "toy.add", 5, True),
        ("dot, add", "toy.add", 5, True),
        ("dot", "toy.add", 5, False),
        ("selectLow=6", "toy.add", 5, False),
        ("selectHigh=5, add", "toy.add", 5, True),
        ("selectHigh=4", "toy.add", 5, False),
    ],
)
def test_filters(text: str, name: str, number: int, chosen: bool) -> None:
    """A filter names parts of op names and a range of numbers; both must fit."""
    assert InstructionFilter.parse(text).selects(name, number) is chosen


def test_bad_filters_are_refused() -> None:
    """A range needs numbers."""
    with pytest.raises(OptionError, match="'selectLow=x' has no number"):
        InstructionFilter.parse("selectLow=x")


def test_ops_over_several_meshes_are_refused() -> None:
    """One manual computation has one mesh."""
    text = PROGRAM.replace(MESH, MESH + 'sdy.mesh @other = <["a"=4]>\n').replace(
        f"%t = stablehlo.tanh %s {shard(BOTH)}", f"%t = stablehlo.tanh %s {shard('<@other, [{}, {}]>')}"
    )
    with pytest.raises(UnsupportedError, match="several meshes"):
        partitioned(text)


def test_ops_that_use_values_around_them_stay() -> None:
    """An op whose region reads a value from outside has no function of its own; one that reads none has."""
    body = f"""{MESH}func.func @main(%x: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}]>}},
        %y: tensor<8xf32>, %n: tensor<i1>) -> tensor<8xf32> {{
      %0 = "stablehlo.if"(%n) ({{
        stablehlo.return %x : tensor<8xf32>
      }}, {{
        stablehlo.return %y : tensor<8xf32>
      }}) {shard('<@mesh, [{"a"}]>')} : (tensor<i1>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    assert "sdy.manual_computation" not in partitioned(body)
