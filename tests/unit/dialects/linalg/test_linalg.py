"""The dialects linalg, arith, math and tensor, over xDSL, without StableHLO."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shardy_py as sdy
from shardy_dialects import func, linalg
from shardy_dialects import sdy as sdy_dialects
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.plugins import ConstantFoldable, ConstantLike, Elementwise, Registry
from shardy_py.sharding.unknown_size import STAND_IN_SIZE
from shardy_py.testing import make_op

ROOT = Path(__file__).parents[4]
REGISTRY = Registry.of(
    [dialect for module in (func, sdy_dialects, linalg) for dialect in module.shardy_register_dialects()]
)

TEXT = """builtin.module {
  func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>) -> tensor<8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x16xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
    %d = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>) outs(%i : tensor<8x16xf32>) -> tensor<8x16xf32>
    %bb = linalg.broadcast ins(%b : tensor<16xf32>) outs(%e : tensor<8x16xf32>) dimensions = [0]
    %s = arith.addf %d, %bb : tensor<8x16xf32>
    %t = math.tanh %s : tensor<8x16xf32>
    %e3 = tensor.empty() : tensor<16x8xf32>
    %tr = linalg.transpose ins(%t : tensor<8x16xf32>) outs(%e3 : tensor<16x8xf32>) permutation = [1, 0]
    %e4 = tensor.empty() : tensor<8xf32>
    %red = linalg.reduce ins(%tr : tensor<16x8xf32>) outs(%e4 : tensor<8xf32>) dimensions = [0]
      (%in: f32, %out: f32) {
        %sum = arith.addf %in, %out : f32
        linalg.yield %sum : f32
      }
    %g = linalg.generic {
        indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
      } ins(%red : tensor<8xf32>) outs(%e4 : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8xf32>
    func.return %g : tensor<8xf32>
  }
}
"""


def rule_of(name, operands, result, attributes=None):
    """Return the rule of one op as text."""
    b = Builder()
    with b.function("main", operands) as values:
        new_op = b.op(name, list(values), [result], attributes or {})
        b.return_(new_op)
    return str(REGISTRY.get_sharding_rule(new_op.owner))


def test_a_program_without_stablehlo_propagates() -> None:
    """Shardings flow through contractions, broadcasts, transposes, reductions and generic ops."""
    pytest.importorskip("xdsl")
    from shardy_py.frontends.xdsl import parse_module

    in_shardings = {0: ("x", None), 1: (None, "y")}
    result = sdy.propagate(parse_module(TEXT), {"x": 2, "y": 4}, in_shardings=in_shardings, registry=REGISTRY)
    actual = {name: str(result.sharding(name)) for name in ("b", "d", "t", "tr", "red", "g")}
    assert actual == {
        "b": '<@mesh, [{"y"}]>',
        "d": '<@mesh, [{"x"}, {"y"}]>',
        "t": '<@mesh, [{"x"}, {"y"}]>',
        "tr": '<@mesh, [{"y"}, {"x"}]>',
        "red": '<@mesh, [{"x"}]>',
        "g": '<@mesh, [{"x"}]>',
    }
    assert result.coverage.missing == ()
    again = sdy.propagate(parse_module(result.text), registry=REGISTRY)
    assert again.text == result.text


def test_neither_jaxlib_nor_the_stablehlo_plugin_is_imported(tmp_path) -> None:
    """With the StableHLO plugin blocked, linalg over xDSL needs nothing of either."""
    pytest.importorskip("xdsl")
    path = tmp_path / "program.xdsl"
    path.write_text(TEXT, encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; import shardy_py as sdy\n"
        "registry = sdy.Registry.from_entry_points(blocked=['stablehlo'])\n"
        "if registry.find('linalg.matmul') is None:\n"
        "    import shardy_dialects.linalg as plugin\n"
        "    registry = sdy.Registry.from_entry_points(plugins=[plugin], blocked=['stablehlo'])\n"
        "result = sdy.propagate(Path(sys.argv[1]), {'x': 2}, in_shardings={0: ('x', None)}, registry=registry)\n"
        "print(result.sharding('red'))\n"
        "banned = ('jax', 'jaxlib', 'shardy_dialects.stablehlo', 'shardy_py.frontends.mlir')\n"
        "print([name for name in sys.modules if name in banned])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "dialects")])}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['<@mesh, [{"x"}]>', "[]"]


def test_rules_follow_from_the_loops() -> None:
    """Named ops have the rules that their loops tell; outputs are sharded as the results."""
    t = tensor
    assert rule_of("linalg.batch_matmul", [t(2, 8, 4), t(2, 4, 16), t(2, 8, 16)], t(2, 8, 16)) == (
        "<([i, j, l], [i, l, k], [i, j, k])->([i, j, k]) {i=2, j=8, k=16, l=4} reduction={l}>"
    )
    maps = [f"affine_map<(d0, d1, d2) -> {text}>" for text in ("(d0, d2)", "(d1, d2)", "(d0, d1)")]
    transposed = {"indexing_maps": tuple(map(RawAttribute, maps))}
    assert rule_of("linalg.matmul", [t(8, 4), t(16, 4), t(8, 16)], t(8, 16), transposed) == (
        "<([i, k], [j, k], [i, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>"
    )
    assert rule_of("linalg.fill", [t(), t(8)], t(8)) == "<([], [i])->([i]) {i=8}>"
    assert rule_of("linalg.dot", [t(8), t(8), t()], t()) == "<([i], [i], [])->([]) {i=8} reduction={i}>"


def test_generic_ops_may_regroup() -> None:
    """A generic op that merges two dimensions has a compound."""
    maps = ("affine_map<(d0, d1) -> (d0 * 4 + d1)>", "affine_map<(d0, d1) -> (d0, d1)>")
    attributes = {"indexing_maps": tuple(map(RawAttribute, maps)), "iterator_types": ("parallel", "parallel")}
    actual = rule_of("linalg.generic", [tensor(32), tensor(8, 4)], tensor(8, 4), attributes)
    assert actual == "<([ij], [i, j])->([i, j]) {i=8, j=4}>"


def test_tensor_ops() -> None:
    """Reassociations are compounds, cut dimensions need a permutation, joined ones replication."""
    groups = {"reassociation": ((0, 1), (2,))}
    assert rule_of("tensor.collapse_shape", [tensor(2, 4, 8)], tensor(8, 8), groups) == (
        "<([i, j, k])->([ij, k]) {i=2, j=4, k=8}>"
    )
    assert rule_of("tensor.expand_shape", [tensor(8, 8)], tensor(2, 4, 8), groups) == (
        "<([ij, k])->([i, j, k]) {i=2, j=4, k=8}>"
    )
    assert rule_of("tensor.extract_slice", [tensor(8, 8)], tensor(4, 8)) == (
        "<([i, j])->([i, j]) {i=8, j=8} permutation={i}>"
    )
    assert rule_of("tensor.concat", [tensor(8, 2), tensor(8, 6)], tensor(8, 8), {"dim": 1}) == (
        "<([i, j], [i, j])->([i, j]) {i=8, j=8} need_replication={j}>"
    )
    sizes = {"static_sizes": (1, 4, 1)}
    assert rule_of("tensor.extract_slice", [tensor(2, 8, 1)], tensor(4, 1), sizes) == (
        "<([i, j, k])->([j, k]) {i=2, j=8, k=1} need_replication={i} permutation={j}>"
    )
    assert rule_of("tensor.extract_slice", [tensor(2, 8)], tensor(4), {"static_sizes": (2, 2)}) == "None"
    large = tensor(2, 8, 3)
    assert rule_of("tensor.insert_slice", [tensor(4, 3), large], large, {"static_sizes": (1, 4, 3)}) == (
        "<([k, l], [i, j, l])->([i, j, l]) {i=2, j=8, k=4, l=3}>"
    )
    assert rule_of("tensor.splat", [tensor()], tensor(8, None)) == f"<([])->([i, j]) {{i=8, j={STAND_IN_SIZE}}}>"


def test_traits() -> None:
    """Generators are constants, fills fold, and a generic op is elementwise where its maps say so."""
    b = Builder()
    same = RawAttribute("affine_map<(d0) -> (d0)>")
    with b.function("main", [tensor(8)]) as (x,):
        generic = b.op("linalg.generic", [x, x], [tensor(8)], {"indexing_maps": (same, same)})
        b.return_(generic)
    assert REGISTRY.has_trait(generic.owner, Elementwise)
    assert ConstantLike in REGISTRY.get_traits(make_op("tensor.empty", [], [(8, 4)]))
    assert ConstantFoldable in REGISTRY.find("linalg.fill").traits
