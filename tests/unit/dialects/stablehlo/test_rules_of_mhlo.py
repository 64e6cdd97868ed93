"""Rules of ops of MHLO, as XLA prints them in its dumps of `jax.jit`."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

import shardy_py as sdy


def ragged(dot: str, ragged_dim: int, groups: str, types: tuple[str, str, str, str]) -> str:
    """Return a module with a ragged dot."""
    lhs, rhs, sizes, result = types
    group_dims = f", rhs_group_dimensions = [{groups}]" if groups else ""
    return (
        'sdy.mesh @mesh = <["x"=2]>\n'
        f"func.func @main(%a: {lhs}, %b: {rhs}, %g: {sizes}) -> {result} {{\n"
        '%0 = "mhlo.ragged_dot"(%a, %b, %g) <{ragged_dot_dimension_numbers = #mhlo.ragged_dot<'
        f"dot_dimension_numbers = #mhlo.dot<{dot}>, lhs_ragged_dimensions = [{ragged_dim}]{group_dims}>}}>"
        f" : ({lhs}, {rhs}, {sizes}) -> {result}\nreturn %0 : {result}\n}}\n"
    )


def rule_of(text: str, name: str) -> str:
    """Return the rule of the op of a name."""
    session = sdy.Session.open(text)
    return str(next(session.rule_of(op) for op in session.program.walk() if op.name == name))


@pytest.mark.parametrize(
    ("dot", "ragged_dim", "groups", "types", "rule"),
    [
        (
            "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]",
            0,
            "0",
            ("tensor<32x16xf32>", "tensor<4x16x8xf32>", "tensor<4xi32>", "tensor<32x8xf32>"),
            "<([i, k], [l, k, j], [l])->([i, j]) {i=32, j=8, k=16, l=4} reduction={k} need_replication={i, l}>",
        ),
        (
            "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]",
            0,
            "",
            ("tensor<32x16xf32>", "tensor<32x8xf32>", "tensor<4xi32>", "tensor<4x16x8xf32>"),
            "<([k, i], [k, j], [l])->([l, i, j]) {i=16, j=8, k=32, l=4} need_replication={k, l}>",
        ),
        (
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2],"
            " rhs_contracting_dimensions = [2]",
            1,
            "0",
            ("tensor<8x16x4xf32>", "tensor<3x8x4x6xf32>", "tensor<8x3xi32>", "tensor<8x16x6xf32>"),
            "<([i, j, l], [m, i, l, k], [i, m])->([i, j, k]) {i=8, j=16, k=6, l=4, m=3} reduction={l}"
            " need_replication={j, m}>",
        ),
        (
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],"
            " rhs_contracting_dimensions = [1]",
            0,
            "",
            ("tensor<8x16x4xf32>", "tensor<8x4x6xf32>", "tensor<3xi32>", "tensor<8x16x6xf32>"),
            "<([i, j, l], [i, l, k], [m])->([i, j, k]) {i=8, j=16, k=6, l=4, m=1} reduction={l}>",
        ),
    ],
    ids=["free", "contracting", "free-in-batches", "batch"],
)
def test_ragged_dots(dot: str, ragged_dim: int, groups: str, types: tuple[str, str, str, str], rule: str) -> None:
    """A ragged dimension is replicated with the groups, unless it is a batch."""
    assert rule_of(ragged(dot, ragged_dim, groups, types), "mhlo.ragged_dot") == rule


def scan(attributes: str, input_: str, carry: str, dimension: int) -> str:
    """Return a module with a running sum."""
    return (
        f"func.func @main(%a: {input_}, %i: {carry}) -> {input_} {{\n"
        f"%0:2 = mhlo.scan(%a) inits (%i) dimension={dimension} attributes {{{attributes}}} {{\n"
        f"^bb0(%x: {carry}, %c: {carry}):\n%s = stablehlo.add %x, %c : {carry}\n"
        f"mhlo.return %s, %s : {carry}, {carry}\n}} : ({input_}, {carry}) -> ({input_}, {carry})\n"
        f"return %0#0 : {input_}\n}}\n"
    )


@pytest.mark.parametrize(
    ("attributes", "input_", "carry", "dimension", "rule"),
    [
        (
            "is_associative = true",
            "tensor<32x16xf32>",
            "tensor<32xf32>",
            1,
            "<([i, j], [i])->([i, j], [i]) {i=32, j=16} permutation={j}>",
        ),
        (
            "is_associative = true",
            "tensor<8x32x16xf32>",
            "tensor<8x16xf32>",
            1,
            "<([i, j, k], [i, k])->([i, j, k], [i, k]) {i=8, j=32, k=16} permutation={j}>",
        ),
        (
            "is_associative = false",
            "tensor<32x16xf32>",
            "tensor<16xf32>",
            0,
            "<([i, j], [j])->([i, j], [j]) {i=32, j=16} need_replication={i}>",
        ),
    ],
)
def test_scans(attributes: str, input_: str, carry: str, dimension: int, rule: str) -> None:
    """Shards of an associative scan exchange totals; any other scan needs the whole dimension."""
    assert rule_of(scan(attributes, input_, carry, dimension), "mhlo.scan") == rule


def test_a_bitcast_to_elements_of_another_size_relates_nothing() -> None:
    """The dimensions of the two have nothing to do with each other, and costs know the op."""
    types = "(tensor<8x4xf32>) -> tensor<64xf16>"
    text = (
        'sdy.mesh @mesh = <["x"=2]>\n'
        'func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<64xf16> {\n'
        f'%0 = "mhlo.bitcast"(%a) : {types}\nreturn %0 : tensor<64xf16>\n}}\n'
    )
    session = sdy.Session.open(text, extended_rules=True)
    op = next(op for op in session.program.walk() if op.name == "mhlo.bitcast")
    assert session.rule_of(op) is None
    assert session.evaluate(machine="cpu-8").cost.communication_bytes.value is not None
