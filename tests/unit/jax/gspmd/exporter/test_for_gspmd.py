"""The form for GSPMD, op by op."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

from shardy_py import Mesh, OptionError, UnsupportedError, propagate
from shardy_py.api.registries import load_registry
from shardy_py.errors import Diagnostic
from shardy_py.jax.gspmd.exporter import for_gspmd
from shardy_py.jax.gspmd.result import gspmd_module
from shardy_py.plugins import RuleOptions

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def written(body: str, *, mesh: str = MESH) -> tuple[str, tuple[Diagnostic, ...]]:
    """Return the form of a module that is not propagated, and the warnings."""
    program, warnings = for_gspmd(mesh + body, semantics=load_registry(options=RuleOptions()))
    return str(program.origin.module), warnings


def test_values_without_a_sharding_are_replicated() -> None:
    """Arguments, results and ops without a sharding are said to be replicated; scalars alone say nothing."""
    text, warnings = written("""
    func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
        -> tensor<8xf32> {
      %c = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = stablehlo.add %a, %b : tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    assert text.count('"{replicated}"') == 3
    assert text.count('"{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"') == 1
    assert "stablehlo.constant dense<1.000000e+00>" in text
    assert "mhlo.num_partitions = 8 : i32" in text
    assert not warnings


def test_devices_in_another_order_are_listed() -> None:
    """The order of a mesh's devices is in the tile assignment."""
    text, _ = written(
        'func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) { return }',
        mesh='sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[0, 3, 1, 2]>\n',
    )
    assert "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}" in text


def test_replica_groups_along_axes_hold_their_mesh() -> None:
    """Where replica groups name a mesh, they hold it afterwards, as its symbol goes."""
    text, _ = written("""
    func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>,
          use_global_device_ids}> ({
        ^bb0(%b: tensor<f32>, %c: tensor<f32>):
          %1 = stablehlo.add %b, %c : tensor<f32>
          stablehlo.return %1 : tensor<f32>
      }) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    assert "@mesh" not in text
    assert '<mesh = #stablehlo.mesh<axes=[<name = "x", size = 4>, <name = "y", size = 2>]>' in text


def test_one_device() -> None:
    """A value on a mesh of one device is maximal."""
    text, _ = written(
        "func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, []>}) { return }",
        mesh="sdy.mesh @one = <[], device_ids=[3]>\n",
    )
    assert 'mhlo.sharding = "{maximal device=3}"' in text


def test_several_results_are_a_tuple() -> None:
    """The sharding of an op with several results is one of a tuple."""
    text, _ = written("""
    func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}]>]>}
        : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
      return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
    }""")
    assert '"{{devices=[4,2]<=[8] last_tile_dim_replicate}, {replicated}}"' in text


def test_a_function_inside_and_outside_is_two() -> None:
    """A function that is called in a manual computation and outside of it is copied: its values differ."""
    text, _ = written("""
    func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
      %1 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>]
          manual_axes={"x"} (%b: tensor<8xf32>) {
        %2 = func.call @f(%b) : (tensor<8xf32>) -> tensor<8xf32>
        sdy.return %2 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %0, %1 : tensor<8xf32>, tensor<8xf32>
    }
    func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %a : tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    manual = "{devices=[1,4,2]<=[8] last_tile_dims={manual, replicated}}"
    assert f'stablehlo.negate %arg0 {{mhlo.sharding = "{manual}"}}' in text
    assert 'stablehlo.negate %arg0 {mhlo.sharding = "{replicated}"}' in text


def test_reshards_and_collectives_are_custom_calls() -> None:
    """Whatever changes a sharding is a custom call that says the new one; barriers and groups go."""
    text, warnings = written("""
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
      sdy.sharding_group %a group_id=0 : tensor<8xf32>
      %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
      %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8xf32>
      %2 = sdy.reshard %1 <@mesh, [{"y"}]> : tensor<8xf32>
      %3 = sdy.named_computation<"f">(%2) (%b: tensor<8xf32>) {
        %4 = stablehlo.negate %b : tensor<8xf32>
        sdy.return %4 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %3 : tensor<8xf32>
    }""")
    assert text.count("@Sharding") == 2
    assert "sdy." not in text
    (warning,) = warnings
    assert "1 members of sharding groups, 1 propagation barriers" in warning.message


def test_what_gspmd_cannot_say_is_listed_once() -> None:
    """One warning counts the shardings that lose something."""
    _, warnings = written("""
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1]>},
        %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], replicated={"y"}>}) { return }""")
    assert [item.message for item in warnings] == [
        "GSPMD has no words for what the module says here: 2 shardings with open dimensions, "
        "1 shardings with priorities, 1 shardings with replicated axes"
    ]


def test_ops_that_propagation_removes_are_refused() -> None:
    """An edge has no counterpart; the module has to be propagated first."""
    with pytest.raises(UnsupportedError, match=r"'sdy.data_flow_edge' op: .*no counterpart"):
        written("""
        func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
          %0 = sdy.data_flow_edge %a : tensor<8xf32>
          return %0 : tensor<8xf32>
        }""")


def test_results_keep_their_module() -> None:
    """The form is a copy."""
    text = 'func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) { return }'
    result = propagate(MESH + text)
    before = str(result)
    assert "{devices=[4,2]<=[8] last_tile_dim_replicate}" in str(result.for_gspmd())
    assert str(result) == before


def test_warnings_go_where_the_caller_wants_them() -> None:
    """Warnings go into a list, without one through Python's warnings."""
    text = MESH + 'func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1]>}) { return }'
    registry, diagnostics = load_registry(options=RuleOptions()), list[Diagnostic]()
    gspmd_module(text, registry, diagnostics)
    assert [item.code for item in diagnostics] == ["no-gspmd-form"]
    with pytest.warns(UserWarning, match="1 shardings with priorities"):
        gspmd_module(text, registry, None)


def test_rules_that_were_kept_are_counted_as_lost() -> None:
    """GSPMD has no sharding rules, so that keeping them has no effect on the form, which a warning says."""
    argument = '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    body = "%0 = stablehlo.tanh %a : tensor<8xf32>  return %0 : tensor<8xf32>"
    text = MESH + f"func.func @main({argument}) -> tensor<8xf32> {{ {body} }}"
    diagnostics = list[Diagnostic]()
    propagate(text, keep_sharding_rules=True).for_gspmd(warnings=diagnostics)
    assert [item.message.partition(": ")[2] for item in diagnostics] == ["1 sharding rules"]


def test_a_mesh_that_does_not_fit_is_refused() -> None:
    """A module whose tiles are no parts of the axes of the given mesh is refused with both."""
    text = 'func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) { return }'
    with pytest.raises(OptionError, match=r"\{devices=\[4\]<=\[4\]\} .* cannot be said"):
        propagate(text, Mesh.of(x=8))


def test_attributes_of_any_name_that_hold_shardings_go() -> None:
    """A compiler that does not know Shardy cannot parse them, whichever dialect they belong to."""
    text, _ = written("""
    func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.add %a, %a {my.argument_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>,
        my.rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=8}>, my.kept = 3 : i64} : tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    assert "sdy" not in text
    assert "my.kept = 3" in text
