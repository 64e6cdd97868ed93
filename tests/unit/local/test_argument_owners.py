"""Region ops whose arguments own the edges, with the defaults for all else: their results are targets only."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy  # noqa: E402
from shardy_py.errors import PluginError  # noqa: E402
from shardy_py.plugins import Dialect, OpOperand  # noqa: E402
from shardy_py.testing import assert_runs_sharded  # noqa: E402

M = "tensor<4x8xf32>"
COLUMNS = '<@mesh, [{}, {"x"}]>'
FUNCTIONS = {
    "my.half": lambda x: x / 2,
    "my.sum": lambda x: x.sum(0),
    "my.use": lambda x: x + x.sum(0),
    "my.add": np.add,
    "my.loop": lambda x, regions: regions[0](regions[0](x)),
}


class Arguments(sdy.ShardableDataFlowOpInterface):
    """A loop whose region arguments own the edges."""

    def get_block_argument_edge_owners(self, op: Any) -> Any:
        return op.regions[0].block.arguments

    def get_op_result_edge_owners(self, op: Any) -> Any:
        return ()

    def get_edge_sources(self, op: Any, owner: Any) -> Any:
        return [OpOperand(op, owner.index), OpOperand(op.regions[0].block.terminator, owner.index)]

    def get_edge_owner_from_target(self, op: Any, target: Any) -> Any:
        return op.regions[0].block.arguments[target.index]

    def get_edge_owner_from_source(self, op: Any, source: Any) -> Any:
        return op.regions[0].block.arguments[source.number]

    def get_non_edge_owner_targets(self, op: Any, owner: Any) -> Any:
        return [op.results[owner.index]]


class Forgetful(sdy.LoopDataFlow):
    """A loop that does not store the shardings of its results."""

    def set_op_result_edge_owner_shardings(self, op: Any, shardings: Any) -> None:
        pass


def make_plugin(flow: Any) -> Any:
    """Return a plugin with a small dialect."""
    my = Dialect("my")
    my.op("my.half", traits=[sdy.Elementwise])
    my.op("my.add", rule="i j, i j -> i j")
    my.op("my.sum", rule="i j -> j", reduction="i")
    my.op("my.use", rule="i j -> i j", need_replication="i")
    my.op("my.loop", data_flow=flow)
    my.op("my.yield", traits=[sdy.IsTerminator])

    class Plugin:
        @staticmethod
        @sdy.hookimpl
        def shardy_register_dialects() -> list[Dialect]:
            return [my]

    return Plugin()


def make_program(*, after: str = "", returned: str = "%r", type_: str = M, inside: str = "") -> str:
    """Return a program with a loop, ops behind it, and ops on what it yields."""
    return f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: {M} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {type_} {{
      %r = "my.loop"(%a) ({{
      ^bb0(%p: {M}):
        %y = "my.half"(%p) : ({M}) -> {M}
        {inside}
        "my.yield"({"%z" if inside else "%y"}) : ({M}) -> ()
      }}) : ({M}) -> {M}
      {after}
      return {returned} : {type_}
    }}"""


PROGRAMS = {
    "alone": make_program(),
    "a sum over the sharded dimension": make_program(
        after=f'%s = "my.sum"(%r) : ({M}) -> tensor<8xf32>', returned="%s", type_="tensor<8xf32>"
    ),
    "an op that needs the dimension whole": make_program(after=f'%s = "my.use"(%r) : ({M}) -> {M}', returned="%s"),
    "a constraint": make_program(
        after=f'%k = sdy.sharding_constraint %r {COLUMNS} : {M}\n%s = "my.add"(%r, %k) : ({M}, {M}) -> {M}',
        returned="%s",
    ),
    "a constraint on the argument": make_program(inside=f"%z = sdy.sharding_constraint %p {COLUMNS} : {M}"),
    "a constraint inside": make_program(inside=f"%z = sdy.sharding_constraint %y {COLUMNS} : {M}"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_on_edges_of_arguments_are_sharded_as_these(name: str) -> None:
    """The devices compute what the program computes: users of the result know how it is sharded."""
    assert_runs_sharded(PROGRAMS[name], FUNCTIONS, plugins=[make_plugin(Arguments())])


def test_shardings_of_arguments_are_stored_by_default() -> None:
    """The module has them, so that a second run and the local program begin with them."""
    plugins = [make_plugin(Arguments())]
    text = sdy.propagate(PROGRAMS["alone"], plugins=plugins).text
    assert 'my.argument_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>' in text
    assert sdy.propagate(text, plugins=plugins).text == text
    local = sdy.propagate(text, plugins=plugins, local=True).local()
    assert "tensor<4x8xf32>" not in local.text
    assert local.warnings == ()


def test_shardings_that_an_op_does_not_store_are_an_error() -> None:
    """The module would lack what propagation decided."""
    message = r"'my\.loop' op: get_op_result_edge_owner_shardings: expected .*, which set_op_result.* got \[\]"
    with pytest.raises(PluginError, match=message):
        sdy.propagate(PROGRAMS["alone"], plugins=[make_plugin(Forgetful())])
