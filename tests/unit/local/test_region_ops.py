"""Region ops of a dialect in local programs: what is on no data-flow edge is whole, types fit, or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy  # noqa: E402
from shardy_py.errors import PluginError, ShardyError  # noqa: E402
from shardy_py.ir import Builder, tensor  # noqa: E402
from shardy_py.local.type_checks import check_calls, check_shard_type  # noqa: E402
from shardy_py.plugins import Dialect, OpOperand, Registry  # noqa: E402
from shardy_py.sharding.mesh import Mesh  # noqa: E402
from shardy_py.sharding.parse import parse_tensor_sharding  # noqa: E402
from shardy_py.testing import assert_runs_sharded, run_sharded  # noqa: E402

MESH = 'sdy.mesh @mesh = <["x"=2]>\n'
ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
FLAT = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
M = "tensor<4x8xf32>"
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "my.half": lambda x: x / 2,
    "my.sum": lambda x: x.sum(1),
    "my.add": np.add,
    "my.if": lambda condition, *values, regions: regions[0 if np.all(condition) else 1](*values),
    "my.map": lambda x, regions: regions[0](x),
    "my.box": lambda *values, regions: regions[0](*values),
    "my.table": lambda table, x, regions: regions[0](x) + table.sum(),
}


class First(sdy.ShardableDataFlowOpInterface):
    """A loop whose first result owns an edge, with the defaults for all else."""

    def get_op_result_edge_owners(self, op: Any) -> Any:
        return op.results[:1]

    def get_edge_sources(self, op: Any, owner: Any) -> Any:
        return [OpOperand(op, 0), OpOperand(op.regions[0].block.terminator, 0)]

    def get_edge_owner_from_target(self, op: Any, target: Any) -> Any:
        return op.results[0] if target.index == 0 else None

    def get_edge_owner_from_source(self, op: Any, source: Any) -> Any:
        return op.results[0] if source.number == 0 else None

    def get_non_edge_owner_targets(self, op: Any, owner: Any) -> Any:
        return [op.regions[0].block.arguments[0]]


def make_registry(flow: Any = None, **options: Any) -> Registry:
    """Return the registry of a small dialect.

    Args:
        flow: The data flow of ``my.if`` and ``my.table``.
        options: Arguments of ``my.map``.
    """
    my = Dialect("my")
    my.op("my.half", traits=[sdy.Elementwise, sdy.Pure])
    my.op("my.add", traits=[sdy.Elementwise, sdy.Pure], rule="..., ... -> ...")
    my.op("my.sum", rule="i j -> i", reduction="j")
    my.op("my.map", traits=[sdy.RecursiveMemoryEffects], **{"rule": "i j -> i j", **options})
    my.op("my.box", traits=[sdy.RecursiveMemoryEffects])
    my.op("my.if", data_flow=flow or sdy.BranchDataFlow(), traits=[sdy.RecursiveMemoryEffects])
    my.op("my.table", data_flow=flow or sdy.LoopDataFlow(first_operand=1), traits=[sdy.RecursiveMemoryEffects])
    my.op("my.scan", data_flow=flow or sdy.LoopDataFlow(carried=1), traits=[sdy.RecursiveMemoryEffects])
    my.op("my.yield", traits=[sdy.IsTerminator, sdy.Pure])

    class Plugin:
        @staticmethod
        @sdy.hookimpl
        def shardy_register_dialects() -> list[Dialect]:
            return [my]

    return Registry.from_entry_points(plugins=[Plugin()])


BRANCH = (
    MESH
    + f"""func.func @main(%c: tensor<i1>, %a: {M} {ROWS}) -> {M} {{
  %r = "my.if"(%c, %a) ({{
  ^bb0(%p: {M}):
    %1 = "my.half"(%p) : ({M}) -> {M}
    "my.yield"(%1) : ({M}) -> ()
  }}, {{
  ^bb0(%p: {M}):
    "my.yield"(%p) : ({M}) -> ()
  }}) : (tensor<i1>, {M}) -> {M}
  return %r : {M}
}}"""
)
TABLE = (
    MESH
    + f"""func.func @main(%t: tensor<6xf32> {FLAT}, %a: {M} {ROWS}) -> {M} {{
  %r = "my.table"(%t, %a) ({{
  ^bb0(%p: {M}):
    %1 = "my.half"(%p) : ({M}) -> {M}
    "my.yield"(%1) : ({M}) -> ()
  }}) : (tensor<6xf32>, {M}) -> {M}
  return %r : {M}
}}"""
)
FUSED = (
    MESH
    + f"""func.func @main(%a: {M} {ROWS}) -> {M} {{
  %r = "my.map"(%a) ({{
  ^bb0(%p: {M}):
    %1 = "my.half"(%p) : ({M}) -> {M}
    %2 = "my.add"(%1, %a) : ({M}, {M}) -> {M}
    "my.yield"(%2) : ({M}) -> ()
  }}) : ({M}) -> {M}
  return %r : {M}
}}"""
)


def scan(annotation: str = "") -> str:
    """Return a program with a loop that stacks a row per step."""
    types = f"({M}) -> ({M}, tensor<3x4xf32>)"
    return (
        MESH
        + f"""func.func @main(%a: {M} {ROWS}) -> ({M}, tensor<3x4xf32>) {{
      %r:2 = "my.scan"(%a) ({{
      ^bb0(%p: {M}):
        %1 = "my.half"(%p) : ({M}) -> {M}
        %2 = "my.sum"(%1) : ({M}) -> tensor<4xf32>
        "my.yield"(%1, %2) : ({M}, tensor<4xf32>) -> ()
      }}) {annotation} : {types}
      return %r#0, %r#1 : {M}, tensor<3x4xf32>
    }}"""
    )


def run_scan(value: Any, regions: Any) -> Any:
    """Run a body three times, and stack the rows."""
    rows = []
    for _ in range(3):
        value, row = regions[0](value)
        rows.append(row)
    return value, np.stack(rows)


def test_operands_on_no_edge_are_gathered() -> None:
    """A branch whose operands are on no edge, and a loop with a table, get these whole, with a warning that says so."""
    for text, name in ((BRANCH, "my.if"), (TABLE, "my.table")):
        run = assert_runs_sharded(text, FUNCTIONS, registry=make_registry())
        assert run.gathered == (name,)
        assert run.collectives[0] == "all_gather"


def test_operands_on_edges_stay_shards() -> None:
    """With first_operand, the operands of a branch are sharded as the arguments of its regions: nothing moves."""
    run = assert_runs_sharded(BRANCH, FUNCTIONS, registry=make_registry(sdy.BranchDataFlow(first_operand=1)))
    assert (run.collectives, run.gathered) == ((), ())


def test_shardings_of_arguments_on_edges_survive_a_text() -> None:
    """The shardings of the arguments of a branch are written on the op, and read again for the local program."""
    registry = make_registry(sdy.BranchDataFlow(first_operand=1))
    result = sdy.propagate(BRANCH, registry=registry, local=True)
    assert 'my.argument_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>' in result.text
    assert result.local().text.count("^bb0(%arg2: tensor<2x8xf32>)") == 2


@pytest.mark.parametrize("flow", [None, First()])
def test_stacked_outputs_are_whole(flow: Any) -> None:
    """What a loop yields on no edge is gathered before its terminator; the result is replicated."""
    functions = {**FUNCTIONS, "my.scan": run_scan}
    run = assert_runs_sharded(scan(), functions, registry=make_registry(flow))
    assert run.gathered == ("my.yield",)
    result = sdy.propagate(scan(), registry=make_registry(flow))
    assert [str(item) for item in result.results] == ['<@mesh, [{"x"}, {}]>', "None"]
    assert 'sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>' in result.text


def test_a_sharding_of_a_result_on_no_edge_is_left_out() -> None:
    """An annotation that nothing can follow is a warning, and the result is replicated."""
    text = scan('{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"x"}]>]>}')
    result = sdy.propagate(text, registry=make_registry())
    (warning,) = [item for item in result.warnings if item.code == "sharding-on-no-edge"]
    assert (warning.op, "result 1" in warning.message) == ("my.scan", True)
    assert '[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]' in result.text
    assert_runs_sharded(text, {**FUNCTIONS, "my.scan": run_scan}, registry=make_registry())


@pytest.mark.parametrize("options", [{}, {"local": lambda op, shard: shard.copy()}])
def test_bodies_with_tensors_compute_on_whole_tensors(options: dict[str, Any]) -> None:
    """A fused op with a rule gets whole operands where its region has tensors, also where a local form copies it."""
    run = assert_runs_sharded(FUSED, FUNCTIONS, registry=make_registry(**options))
    assert "my.map" in run.gathered


def test_bodies_with_scalars_compute_on_shards() -> None:
    """A region that computes one element is the same for shards."""
    text = FUSED.replace(f"^bb0(%p: {M})", "^bb0(%p: tensor<f32>)").replace(
        f'%1 = "my.half"(%p) : ({M}) -> {M}', '%2 = "my.half"(%p) : (tensor<f32>) -> tensor<f32>'
    )
    text = text.replace(f'%2 = "my.add"(%1, %a) : ({M}, {M}) -> {M}', "").replace(
        f"(%2) : ({M})", "(%2) : (tensor<f32>)"
    )
    functions = {"my.half": np.tanh, "my.map": lambda x, regions: np.vectorize(regions[0])(x)}
    run = assert_runs_sharded(text, functions, registry=make_registry())
    assert (run.collectives, run.gathered) == ((), ())


def test_regions_without_data_flow_are_whole() -> None:
    """A region op that nobody describes gets whole operands, and hands whole values back."""
    run = assert_runs_sharded(FUSED.replace("my.map", "my.box"), FUNCTIONS, registry=make_registry())
    assert {"my.box", "my.yield"} <= set(run.gathered)


@pytest.mark.parametrize(
    ("text", "name"), [(BRANCH, "my.if"), (TABLE, "my.table"), (scan(), "my.yield"), (FUSED, "my.map")]
)
def test_strict_refuses_what_would_be_gathered(text: str, name: str) -> None:
    """Where nothing may be gathered, an op with values on no edge, or with a body of tensors, is refused by name."""
    with pytest.raises(ShardyError) as caught:
        run_sharded(text, {**FUNCTIONS, "my.scan": run_scan}, registry=make_registry(), strict=True)
    assert caught.value.diagnostics[0].op == name


def whole_form(op: Any, shard: Any) -> Any:
    """Return what an author returns who forgets that results are shards."""
    return list(shard.emit.op_like(op, shard.operands, [op.result.type]).results)


@pytest.mark.parametrize("ops", [1, 2])
def test_a_local_form_that_returns_a_whole_type_is_an_error(ops: int) -> None:
    """The error names the op and the line of its local form, in the middle of a program and at its end."""
    lines = "\n".join(f'%{n + 1} = "my.map"(%{n}) : ({M}) -> {M}' for n in range(ops))
    text = f"{MESH}func.func @main(%0: {M} {ROWS}) -> {M} {{\n{lines}\nreturn %{ops} : {M}\n}}"
    with pytest.raises(PluginError, match=r"returned tensor<4x8xf32> for result 0, which is tensor<2x8xf32>") as caught:
        sdy.propagate(text, registry=make_registry(local=whole_form), local=True)
    (problem,) = caught.value.diagnostics
    assert problem.op == "my.map"
    assert f"test_region_ops.py:{whole_form.__code__.co_firstlineno}" in problem.hint


def test_the_type_of_a_shard_is_checked() -> None:
    """What stands for a value on a device has the type that its sharding makes, or the op is named."""
    b = Builder()
    with b.function("main", [tensor(4, 8)]) as (x,):
        value = b.op("my.half", [x], [tensor(4, 8)])
        b.return_(value)
    sharding, meshes = parse_tensor_sharding('<@mesh, [{"x"}, {}]>'), {"mesh": Mesh.of(x=2)}
    check_shard_type(value, sharding, tensor(2, 8), meshes)
    check_shard_type(value, None, tensor(None, 8), meshes)
    for type_ in (tensor(4, 8), tensor(2, 8, dtype="f64"), tensor(2)):
        with pytest.raises(ShardyError, match=r"'my\.half' op: result 0 .* is tensor<2x8xf32>"):
            check_shard_type(value, sharding, type_, meshes)


def test_calls_are_checked() -> None:
    """A call whose operands are other shards than the arguments of its function is an error."""
    b = Builder()
    with b.function("f", [tensor(2, 8)]) as (x,):
        b.return_(x)
    with b.function("main", [tensor(4, 8)]) as (x,):
        b.return_(b.call("f", [x], [tensor(4, 8)]))
    with pytest.raises(ShardyError, match="operands of the call and the arguments of @f differ"):
        check_calls(b.program)
