"""Coverage of programs by kernels: every op is in one, or has a reason."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="programs are read through the extra 'stablehlo'")

import shardy_py as sdy
from shardy_py.kernels import Fusion, emit, kernel_coverage
from shardy_py.testing import make_op

PROGRAM = """
func.func @main(%x: tensor<8x8xf32>, %n: tensor<i32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "odd.add"(%1, %0) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "odd.unknown"(%2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %unused = stablehlo.abs %x : tensor<8x8xf32>
  %4 = stablehlo.while(%i = %3) : tensor<8x8xf32> cond {
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %5 = stablehlo.sine %i : tensor<8x8xf32>
    stablehlo.return %5 : tensor<8x8xf32>
  }
  return %4, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}"""


def registry() -> sdy.Registry:
    """Return what the installed plugins say, and a dialect of one op."""
    from types import SimpleNamespace

    odd = sdy.Dialect("odd")
    odd.op("odd.add", traits=[sdy.Elementwise], emission="x, y -> x + y")
    plugin = SimpleNamespace(__name__="odd", shardy_register_dialects=sdy.hookimpl(lambda: [odd]))
    plugin.shardy_register_dialects.__name__ = "shardy_register_dialects"
    return sdy.Registry.from_entry_points(plugins=[plugin])


def test_every_op_is_covered_or_has_a_reason() -> None:
    """Contractions, loops, unknown and unused ops are named with their reasons; pieces are inside of loops, too."""
    coverage = kernel_coverage(PROGRAM, registry=registry())
    assert [fusion.roots[0].defining_op.name for fusion in coverage.fusions] == [
        "stablehlo.negate",
        "odd.add",
        "stablehlo.constant",
        "stablehlo.sine",
    ]
    reasons = {row.name: (row.count, row.code) for row in coverage.uncovered}
    assert reasons == {
        "odd.unknown": (1, "no-emission"),
        "stablehlo.abs": (1, "unused"),
        "stablehlo.dot": (1, "contraction"),
        "stablehlo.while": (1, "control-flow"),
    }
    assert coverage.ops == coverage.covered + sum(row.count for row in coverage.uncovered) == 8
    (unknown,) = (row for row in coverage.uncovered if row.name == "odd.unknown")
    assert "6:" in unknown.first
    assert "emission=" in unknown.hint


@pytest.mark.parametrize(
    ("trait", "maps", "body", "operands"),
    [
        (sdy.plugins.Reduction, ["(i)[k] -> (i, k)"], "x -> sum(x)", [(8, 64)]),
        (sdy.plugins.DynamicUpdate, ["(i) -> (i)"] * 2, "x, y -> max(x, y)", [(8,), (8,)]),
        (sdy.plugins.Scatter, ["(i) -> (i)"] * 2, "x, y -> x + y", [(8,), (8,)]),
    ],
)
def test_traits_alone_choose_no_emitter(trait, maps, body, operands) -> None:
    """An op that has the trait of an emitter, but not the form that it takes, is computed element by element."""
    odd = sdy.Dialect("odd")
    odd.op("odd.op", traits=[trait], indexing=maps, emission=body)
    op = make_op("odd.op", operands, [(8,)])
    kernel = emit(Fusion.of_function(op.program.functions["main"], sdy.Registry.of([odd])))
    assert kernel.choice.kind.value == "loop"
    assert "xla_gpu.loop" in kernel.stage("initial")


def test_progress_counts_the_pieces() -> None:
    """One step to read the program, then as many as there are pieces, each with the name of the next one."""
    steps: list[tuple[int, int, str]] = []
    coverage = kernel_coverage(PROGRAM, registry=registry(), on_progress=lambda *step: steps.append(step))
    names = [fusion.name for fusion in coverage.fusions]
    assert steps == [(0, 1, "reading the program"), *((number, 4, name) for number, name in enumerate(names))]
