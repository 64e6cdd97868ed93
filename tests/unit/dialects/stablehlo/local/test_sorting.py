"""Local forms of sorts and of calls with a known target: the largest elements, and whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

import shardy_py as sdy
from tests.unit.dialects.stablehlo.local.on_devices import MESH, UNEVEN, Case, program_of, type_of
from tests.unit.local.host_devices import compare_padded

pytest.importorskip("jax", reason="programs run through XLA")


def sort(dimension: int) -> Case:
    """Return a sort of a matrix."""
    matrix = type_of((8, 16))
    compare = (
        "{{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "%s = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %s : tensor<i1>\n}}"
    )
    return Case(
        f'"stablehlo.sort"(%a) ({compare}) {{{{dimension = {dimension} : i64}}}} : ({matrix}) -> {matrix}', matrix
    )


@pytest.mark.parametrize(("sharding", "gathered"), [('[{"x"}, {"y"}]', 2), ('[{}, {"y"}]', 1), ("[{}, {}]", 0)])
def test_dimensions_may_be_counted_from_the_end(sharding: str, gathered: int) -> None:
    """Where the dimension of a sort along a negative one is sharded, it is gathered."""
    text, _ = program_of([sort(-1), sort(-2)], (8, 16), sharding)
    local = sdy.propagate(text, explicit_collectives=True).local()
    assert [warning.op for warning in local.warnings] == ["stablehlo.sort"] * gathered


pytest.importorskip("jax", reason="programs run through XLA")

TOP_K = '"chlo.top_k"(%a) <{k = 3 : i64}>'
CALL = "stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 3 : i64, largest = true}}"


def largest(mesh: str, size: int, *, op: str = TOP_K, sharding: str = '[{"x"}, {"y"}]') -> str:
    """Return a program that takes the three largest elements of each of three rows."""
    values, places, rows = "tensor<3x3xf32>", "tensor<3x3xi32>", f"tensor<3x{size}xf32>"
    return f"""{mesh}
    func.func @main(%a: {rows} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) -> ({values}, {places}) {{
      %0:2 = {op} : ({rows}) -> ({values}, {places})
      return %0#0, %0#1 : {values}, {places}
    }}"""


def gathered_types(text: str) -> tuple[list[str], list[str]]:
    """Return what is gathered in the local program of a text, and the names of the ops whose operands are."""
    local = sdy.propagate(text, local=True).local()
    actual = [str(item.type) for item in local.collectives if item.kind == "all_gather"]
    return actual, [item.op for item in local.warnings]


@pytest.mark.slow
def test_the_largest_elements_are_found_among_those_of_shards() -> None:
    """Values and places are those of one device: ties, infinities and whatever padding holds included."""
    rows = np.random.default_rng(0).integers(-3, 3, (3, 20)).astype(np.float32)
    rows[0, 3], rows[1], rows[2] = np.inf, -np.inf, 0
    assert compare_padded(largest(UNEVEN, 20), rows) == []
    assert compare_padded(largest(UNEVEN, 40, sharding='[{}, {"y", "x"}]'), np.tile(rows, 2)) == []


def test_only_the_largest_elements_of_shards_are_gathered() -> None:
    """Each device chooses for some rows among three elements of each part, and sends these and their places."""
    for op in (TOP_K, CALL):
        actual, warned = gathered_types(largest(MESH, 64, op=op, sharding='[{}, {"x", "y"}]'))
        assert (actual, warned) == (["tensor<8x3xf32>", "tensor<8x3xi32>"], [])


def test_all_elements_are_gathered_where_they_are_few() -> None:
    """Where the largest elements of shards with their places are no fewer than all elements, these are gathered."""
    actual, _ = gathered_types(largest(MESH, 32, sharding='[{}, {"x", "y"}]'))
    assert actual == ["tensor<3x32xf32>"]


@pytest.mark.parametrize(
    ("target", "sharding", "shard"),
    [
        ("Cholesky", '[{"x"}, {"y"}, {}]', "8x8x8"),
        ("Cholesky", '[{"x"}, {}, {}]', "4x8x8"),
        ("_SPMDInternalOp_RotateRight", '[{"x"}, {}, {}]', "8x8x8"),
        ("mhlo.erf", '[{"x"}, {"y"}, {}]', "4x2x8"),
        ("own", '[{"x"}, {}, {}]', "8x8x8"),
    ],
)
def test_a_call_gets_what_it_computes_on(target: str, sharding: str, shard: str) -> None:
    """A call on matrices gets them whole, one that moves elements gets all, an elementwise one its shard."""
    full_type = "tensor<8x8x8xf32>"
    text = f"""{MESH}
    func.func @main(%a: {full_type} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) -> {full_type} {{
      %0 = stablehlo.custom_call @{target}(%a) : ({full_type}) -> {full_type}
      return %0 : {full_type}
    }}"""
    local = sdy.propagate(text, local=True).local()
    (call,) = [op for op in local.program.walk() if op.name == "stablehlo.custom_call"]
    assert str(call.operands[0].type) == f"tensor<{shard}xf32>"
    assert len(local.warnings) == (shard == "8x8x8")


@pytest.mark.parametrize(("batch", "shard"), [("1", "4x8x8"), ("2", "4x2x8"), ("0", "8x8x8")])
def test_a_call_of_an_unknown_target_gets_its_part_of_the_batch(batch: str, shard: str) -> None:
    """JAX says how many dimensions of a call are a batch; the others are whole, and without a batch all are."""
    full_type = "tensor<8x8x8xf32>"
    sharding = '#sdy.sharding<@mesh, [{"x"}, {"y"}'
    text = f"""{MESH}
    func.func @main(%a: {full_type} {{sdy.sharding = {sharding}, {{}}]>}}) ->
        ({full_type} {{sdy.sharding = {sharding}, {{}}]>}}, tensor<8x8xi32> {{sdy.sharding = {sharding}]>}}) {{
      %0:2 = stablehlo.custom_call @own(%a) {{mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}}}
        : ({full_type}) -> ({full_type}, tensor<8x8xi32>)
      return %0#0, %0#1 : {full_type}, tensor<8x8xi32>
    }}"""
    local = sdy.propagate(text, like="jit").local()
    (call,) = [op for op in local.program.walk() if op.name == "stablehlo.custom_call"]
    assert str(call.operands[0].type) == f"tensor<{shard}xf32>"
    assert str(call.results[1].type) == f"tensor<{shard[:3]}xi32>"
    assert len(local.warnings) == (batch == "0")
