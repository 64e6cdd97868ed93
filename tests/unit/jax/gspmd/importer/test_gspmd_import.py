"""Shardings of GSPMD in modules that are written by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

from shardy_py import propagate
from shardy_py.errors import Diagnostic, ParseError, UnsupportedError, VerificationError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, verify_module, write_back
from shardy_py.jax.gspmd.importer import import_gspmd, import_round_trip

X = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"
MANUAL_Y = "{devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}"


def read(text: str) -> tuple[str, tuple[Diagnostic, ...] | None]:
    """Return a module with what it says in terms of GSPMD brought to Shardy, and the warnings."""
    program = import_module(parse_module(text))
    import_round_trip(program)
    warnings = import_gspmd(program)
    module = write_back(program)
    verify_module(module)
    return print_module(module), warnings


def function(body: str, *, arguments: str = "%a: tensor<8x8xf32>", results: str = "tensor<8x8xf32>") -> str:
    """Return a module with one function."""
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def call(target: str, operand: str, sharding: str, types: str, config: str = "") -> str:
    """Return a custom call."""
    attributes = f'{{backend_config = "{config}", mhlo.sharding = "{sharding}"}}'
    return f"stablehlo.custom_call @{target}({operand}) {attributes} : {types}"


BOTH = "{devices=[4,2]<=[8]}"
LOCAL = "(tensor<8x4xf32>) -> tensor<8x4xf32>"
SAME = "(tensor<8x8xf32>) -> tensor<8x8xf32>"


def test_a_module_without_annotations_stays() -> None:
    """Nothing is added to a module that says nothing."""
    text = function("return %a : tensor<8x8xf32>")
    assert read(text) == (print_module(parse_module(text)), None)


def test_arguments_results_and_ops() -> None:
    """Annotations become closed shardings; other attributes stay."""
    text, _ = read(
        function(
            f'%0 = stablehlo.negate %a {{mhlo.sharding = "{X}", k = 1 : i32}} : tensor<8x8xf32>\n'
            "return %0 : tensor<8x8xf32>",
            arguments='%a: tensor<8x8xf32> {jax.arg = "a", mhlo.sharding = "{replicated}"}',
            results='tensor<8x8xf32> {mhlo.sharding = "{devices=[1,8]<=[4,2]T(1,0)}"}',
        )
    )
    assert '{jax.arg = "a", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}' in text
    assert 'negate %arg0 {k = 1 : i32, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"_axis_0"}, {}]>]>}' in text
    assert '-> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"_axis_1", "_axis_0"}]>})' in text
    assert "mhlo.sharding" not in text


def test_shardings_of_shardy_win() -> None:
    """A value that has a sharding of Shardy keeps it, and the module's mesh is used."""
    text, _ = read(
        'sdy.mesh @m = <["x"=4, "y"=2]>\n'
        + function(
            "return %a : tensor<8x8xf32>",
            arguments=f'%a: tensor<8x8xf32> {{mhlo.sharding = "{X}", '
            f'sdy.sharding = #sdy.sharding<@m, [{{}}, {{"y"}}]>}}, %b: tensor<8x8xf32> {{mhlo.sharding = "{X}"}}',
        )
    )
    assert '{sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>}' in text
    assert '{sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}' in text
    assert text.count("sdy.mesh @") == 1


def test_several_orders_of_devices_are_several_meshes() -> None:
    """Orders of devices that have nothing in common need a mesh each."""
    text, _ = read(
        function(
            "return %a : tensor<8x8xf32>",
            arguments='%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}, '
            '%b: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]0,3,1,2}"}',
        )
    )
    assert 'sdy.mesh @mesh = <["_axis_0"=2, "_axis_1"=2]>' in text
    assert 'sdy.mesh @mesh_0 = <["_axis_0"=2, "_axis_1"=2], device_ids=[0, 3, 1, 2]>' in text
    assert '<@mesh_0, [{"_axis_0"}, {"_axis_1"}]>' in text


def test_modules_where_all_is_replicated() -> None:
    """Without tiles the number of partitions is the mesh; without that the mesh is empty."""
    plain = function("return %a : tensor<8x8xf32>", arguments='%a: tensor<8x8xf32> {mhlo.sharding = "{replicated}"}')
    assert "sdy.mesh @empty_mesh = <[]>" in read(plain)[0]
    counted = f"module attributes {{mhlo.num_partitions = 4 : i32}} {{ {plain} }}"
    assert 'sdy.mesh @mesh = <["_axis_0"=4]>' in read(counted)[0]


def test_tuples_of_shardings() -> None:
    """Several results have one sharding each; unknown ones are open."""
    text, _ = read(
        function(
            f'%0:2 = stablehlo.custom_call @f(%a) {{mhlo.sharding = "{{{X}, {{unknown}}}}"}}'
            " : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>)\nreturn %0#0 : tensor<8x8xf32>"
        )
    )
    assert 'sdy.sharding_per_value<[<@mesh, [{"_axis_0"}, {}]>, <@mesh, [{?}]>]>' in text


def test_tuples_of_another_length_are_left_out() -> None:
    """A sharding that is not for the number of results is left out with a warning."""
    text, warnings = read(
        function(
            f'%0 = stablehlo.negate %a {{mhlo.sharding = "{{{X}, {X}}}"}} : tensor<8x8xf32>\n'
            "return %0 : tensor<8x8xf32>"
        )
    )
    assert "sdy.sharding =" not in text
    assert [(item.code, item.op) for item in warnings] == [("annotation-left-out", "stablehlo.negate")]


def test_constraints() -> None:
    """A custom call is a constraint, open where dimensions are unspecified; one that says nothing goes."""
    text, _ = read(
        function(
            f"%0 = {call('Sharding', '%a', X, SAME, 'unspecified_dims=[1]')}\n"
            f"%1 = {call('Sharding', '%0', '{unknown}', SAME)}\n"
            f"%2 = {call('Sharding', '%1', '{maximal device=3}', SAME)}\n"
            "return %2 : tensor<8x8xf32>"
        )
    )
    assert 'sdy.sharding_constraint %arg0 <@mesh, [{"_axis_0"}, {?}]>' in text
    assert "sdy.sharding_constraint %0 <mesh<[], device_ids=[3]>, []>" in text
    assert "custom_call" not in text


def test_shard_groups() -> None:
    """Members of a shard group are members of the sharding group of the same number."""
    text, _ = read(
        function(
            f"%0 = {call('Sharding', '%a', '{unknown shard_as 3}', SAME)}\n"
            '%1 = stablehlo.negate %0 {mhlo.sharding = "{unknown shard_like 3}"} : tensor<8x8xf32>\n'
            "return %1 : tensor<8x8xf32>"
        )
    )
    assert "sdy.sharding_group %arg0 group_id=3" in text
    assert "sdy.sharding_group %0 group_id=3" in text


def test_a_manual_computation_without_a_function() -> None:
    """Ops on shards between the custom calls are the body; constants that others use are copied into it."""
    text, _ = read(
        function(
            f"%c = stablehlo.constant dense<1.0> : tensor<8x4xf32>\n"
            f"%0 = {call('Sharding', '%a', '{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}', SAME)}\n"
            f"%1 = {call('SPMDFullToShardShape', '%0', MANUAL_Y, '(tensor<8x8xf32>) -> tensor<8x4xf32>')}\n"
            "%2 = stablehlo.add %1, %c : tensor<8x4xf32>\n"
            f"%3 = {call('Sharding', '%2', MANUAL_Y, LOCAL, 'unspecified_dims=[0,1]')}\n"
            f"%4 = {call('SPMDShardToFullShape', '%3', BOTH, '(tensor<8x4xf32>) -> tensor<8x8xf32>')}\n"
            "return %4, %c : tensor<8x8xf32>, tensor<8x4xf32>",
            results="tensor<8x8xf32>, tensor<8x4xf32>",
        )
    )
    assert 'in_shardings=[<@mesh, [{}, {"_axis_1"}]>] out_shardings=[<@mesh, [{"_axis_0"}, {"_axis_1"}]>]' in text
    assert 'manual_axes={"_axis_1"} (%arg1: tensor<8x4xf32>) {' in text
    assert text.count("stablehlo.constant") == 2
    assert "custom_call" not in text


FULL = "(tensor<8x8xf32>) -> tensor<2x8xf32>"
BACK = "(tensor<2x8xf32>) -> tensor<8x8xf32>"


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (f"%0 = {call('Sharding', '%a', '{oops}', SAME)}\nreturn %0 : tensor<8x8xf32>", ParseError, "-:2:6: .*'oops'"),
        (
            f"%0 = {call('Sharding', '%a', '{devices=[8]<=[8]}', SAME)}\nreturn %0 : tensor<8x8xf32>",
            VerificationError,
            "rank 1, the tensor has rank 2",
        ),
        (
            f"%0 = {call('SPMDFullToShardShape', '%a', '{manual}', FULL)}\n"
            f"%1 = {call('SPMDShardToFullShape', '%0', X, BACK)}\nreturn %1 : tensor<8x8xf32>",
            UnsupportedError,
            "not said how the value is cut",
        ),
        (
            f"%s = {call('Sharding', '%a', X, SAME)}\n%c = stablehlo.constant dense<1.0> : tensor<2x8xf32>\n"
            f"%0 = {call('SPMDFullToShardShape', '%s', '{manual}', FULL)}\n"
            "%1 = stablehlo.add %0, %c : tensor<2x8xf32>\nreturn %s : tensor<8x8xf32>",
            None,
            "",
        ),
        (
            f"%s = {call('Sharding', '%a', X, SAME)}\n"
            f"%0 = {call('SPMDFullToShardShape', '%s', '{manual}', SAME)}\nreturn %0 : tensor<8x8xf32>",
            UnsupportedError,
            "a shard leaves its block",
        ),
        (
            f"%s = {call('Sharding', '%a', X, SAME)}\n"
            f"%0 = {call('SPMDFullToShardShape', '%s', '{manual}', SAME)}\n"
            "%1 = stablehlo.add %0, %a : tensor<8x8xf32>\n"
            f"%2 = {call('SPMDShardToFullShape', '%1', X, SAME)}\nreturn %2 : tensor<8x8xf32>",
            UnsupportedError,
            "a value that is whole is used as a shard",
        ),
        (
            f"%w = stablehlo.negate %a : tensor<8x8xf32>\n%s = {call('Sharding', '%a', X, SAME)}\n"
            f"%0 = {call('SPMDFullToShardShape', '%s', '{manual}', SAME)}\n"
            f"%x = {call('Sharding', '%a', X, SAME)}\n"
            f"%y = {call('SPMDFullToShardShape', '%x', MANUAL_Y, SAME)}\n"
            "%1 = stablehlo.add %0, %y : tensor<8x8xf32>\n"
            f"%2 = {call('SPMDShardToFullShape', '%1', X, SAME)}\nreturn %2 : tensor<8x8xf32>",
            UnsupportedError,
            "manual axes of shards that are used together differ",
        ),
    ],
)
def test_what_cannot_be_a_manual_computation(body: str, error: type[Exception] | None, message: str) -> None:
    """Annotations that cannot be read, and shards that are mixed with whole values, are refused with their place."""
    if error is None:
        assert "sdy.manual_computation" in read(function(body))[0]
        return
    with pytest.raises(error, match=message):
        read(function(body))


def test_shard_groups_of_arguments() -> None:
    """Members are in the order in which the module says them, which decides what wins."""
    arguments = f'%a: tensor<8x8xf32> {{mhlo.sharding = "{X}"}}, %b: tensor<8x8xf32> {{mhlo.sharding = "{BOTH}"}}'
    text, _ = read(
        function(
            f"%0 = {call('Sharding', '%a', '{unknown shard_as 3}', SAME)}\n"
            f"%1 = {call('Sharding', '%b', '{unknown shard_as 3}', SAME)}\n"
            "%2 = stablehlo.add %0, %1 : tensor<8x8xf32>\n"
            "return %2 : tensor<8x8xf32>",
            arguments=arguments,
        )
    )
    assert text.index("sdy.sharding_group %arg0") < text.index("sdy.sharding_group %arg1") < text.index("stablehlo.add")


def test_shard_groups_in_the_interface_of_a_function() -> None:
    """Arguments and returned values may be members, too."""
    argument = 'tensor<8x8xf32> {mhlo.sharding = "{replicated shard_as 3}"}'
    text, _ = read(
        function(
            "%0 = stablehlo.negate %b : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
            arguments=f"%a: {argument}, %b: {argument}",
            results=argument,
        )
    )
    members = [line.split()[1] for line in text.splitlines() if "sdy.sharding_group" in line]
    assert members == ["%arg0", "%arg1", "%0"]
    assert text.count("<@empty_mesh, [{}, {}]>") == 3


KEPT = r"""
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22a\22=2]>}"}} {
  func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%a) {has_side_effect = true,
      mhlo.frontend_attributes = {xla.sdy.allowed_direction = "2 : i32"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.custom_call @xla.sdy.ShardingGroup(%a) {has_side_effect = true,
      mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "7 : i64"}} : (tensor<4x4xf32>) -> ()
    stablehlo.custom_call @xla.sdy.ShardingGroup(%b) {has_side_effect = true,
      mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "7 : i64"}} : (tensor<4x4xf32>) -> ()
    %1 = stablehlo.custom_call @foo(%0) {mhlo.frontend_attributes = {
      xla.sdy.sharding_rule = "#sdy.op_sharding_rule<([i, j])->([i, k]) {i=4, j=4, k=4}, custom>"}}
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
"""


def test_barriers_groups_and_rules_that_are_kept_as_text() -> None:
    """They are what they were, in their order; rules do not need a sharding on their op."""
    text, _ = read(KEPT)
    assert "%0 = sdy.propagation_barrier %arg0 allowed_direction=BACKWARD" in text
    assert text.index("sdy.sharding_group %arg0") < text.index("sdy.sharding_group %arg1") < text.index("@foo")
    assert "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=4, j=4, k=4}, custom>" in text
    assert "xla.sdy" not in text


def test_barriers_that_are_kept_as_text_let_through_their_direction() -> None:
    """The number in the text is that of the direction also before MLIR has read it."""
    shardings = {1: ("a", None)}
    result = propagate(KEPT, in_shardings=shardings)
    assert str(result.arguments[0]) == str(result.arguments[1]) == '<@mesh, [{"a"}, {}]>'
    assert result.results[0] is None
    assert str(propagate(KEPT.replace("2 : i32", "1 : i32"), in_shardings=shardings).results[0]) == str(
        result.arguments[1]
    )


EXPORTED = r"""
module attributes {mhlo.frontend_attributes = {k = "v", xla.sdy.meshes = "{m = #sdy.mesh<[\\\22a\\\22=2]>, e = #sdy.mesh<[]>}"}} {
  func.func @main(%a: tensor<4x4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<4x4xf32> {mhlo.sharding = "{replicated}"}, tensor<4x4xf32>) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}",
      mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@m, [{\\\22a\\\22}, {?}]>]>"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1:2 = stablehlo.custom_call @local_xla.sdy.GlobalToLocalShape(%0, %a) {has_side_effect = true,
      mhlo.frontend_attributes = {
        xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@m, [{\22a\22}, {}]>, <@m, [{}, {}]>]>",
        xla.sdy.manual_axes = "#sdy<manual_axes{\22a\22}>"}} : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>)
    %2:2 = call @local_xla.sdy.manual_computation_body(%1#0, %1#1) {mhlo.frontend_attributes = {
        xla.sdy.manual_axes = "#sdy<manual_axes{\22a\22}>",
        xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@m, [{\22a\22}, {}]>, <@m, [{}, {}]>]>"}}
      : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>)
    %3:2 = stablehlo.custom_call @local_xla.sdy.LocalToGlobalShape(%2#0, %2#1) {mhlo.frontend_attributes = {
        xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@m, [{\22a\22}, {}]>, <@m, [{}, {}]>]>"}}
      : (tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %4 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%3#0) {has_side_effect = true,
      mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@m, [{\22a\22}, {}]>]>"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.negate %3#1 {mhlo.frontend_attributes = {k = "v", xla.sdy.sharding = "#sdy.sharding_per_value<[<@m, [{?}, {}]>]>"}} : tensor<4x4xf32>
    stablehlo.custom_call @xla.sdy.ShardingGroup(%5) {has_side_effect = true,
      mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "7 : i64"}} : (tensor<4x4xf32>) -> ()
    return %4, %5 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func private @local_xla.sdy.manual_computation_body(%a: tensor<2x4xf32>, %b: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>) {
    return %a, %b : tensor<2x4xf32>, tensor<4x4xf32>
  }
}
"""  # noqa: E501


def test_shardings_that_are_kept_as_text() -> None:
    """Meshes, shardings, groups and manual computations that XLA keeps as text are as they were; HLO's go."""
    text, _ = read(EXPORTED)
    assert 'sdy.mesh @m = <["a"=2]>' in text
    assert "sdy.mesh @e = <[]>" in text
    assert 'sdy.sharding_constraint %arg0 <@m, [{"a"}, {?}]>' in text
    assert "sdy.manual_computation(%0, %arg0)" in text
    assert 'in_shardings=[<@m, [{"a"}, {}]>, <@m, [{}, {}]>] out_shardings=[<@m, [{"a"}, {}]>, <@m, [{}, {}]>]' in text
    assert '-> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, tensor<4x4xf32>)' in text
    assert 'mhlo.frontend_attributes = {k = "v"}, sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}, {}]>]>' in text
    assert "sdy.sharding_group %2 group_id=7" in text
    assert all(word not in text for word in ("xla.sdy", "mhlo.sharding", "custom_call", "func.func private"))


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("@m, [{?}, {}]", "@m, [{?}, {}", ParseError, "'stablehlo.negate' op"),
        (
            "#sdy.sharding_per_value<[<@m, [{?}, {}]>]>",
            "#sdy.sharding<@m, [{?}, {}]>",
            ParseError,
            "'stablehlo.negate' op: expected #sdy.sharding_per_value",
        ),
        (
            '%a: tensor<4x4xf32> {mhlo.sharding = "{replicated}"}',
            '%a: tensor<4x4xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[]>"}}',
            ParseError,
            "'func.func' op: expected #sdy.sharding<",
        ),
        (r"[<@m, [{\\\22a\\\22}, {?}]>]>", "[]>", ParseError, "expected one sharding"),
        ("7 : i64", "seven", ParseError, "expected the number of a sharding group, but found seven"),
        ("e = #sdy.mesh<[]>", "e = #sdy.mesh<[]", ParseError, "^error: column"),
        ("e = #sdy", "m = #sdy", ParseError, "symbol of the name of the mesh m"),
        ("(%1#0, %1#1)", "(%1#1, %1#1)", None, ""),
    ],
)
def test_texts_that_do_not_fit(old: str, new: str, error: type[Exception] | None, message: str) -> None:
    """Texts that cannot be read are errors; so is a body that is called with other values."""
    changed = EXPORTED.replace(old, new)
    assert changed != EXPORTED
    if error is None:
        error, message = Exception, "manual-call|expects different type|type mismatch|requires"
    with pytest.raises(error, match=message):
        read(changed)


@pytest.mark.parametrize("like", ["passes", "jit"])
@pytest.mark.parametrize("on_argument", [True, False])
def test_texts_of_a_module_without_the_list_of_meshes(like: str, on_argument: bool) -> None:
    """Those with a mesh in them count; a name of a mesh that is not there is an error at its op, as in JAX."""
    mesh = r"mesh<[\22a\22=2]>"
    sharding = rf"<{mesh}, [{{\22a\22}}, {{?}}]>"
    text = f"sharding{sharding}" if on_argument else f"sharding_per_value<[{sharding}]>"
    kept = f'{{mhlo.frontend_attributes = {{xla.sdy.sharding = "#sdy.{text}"}}}}'
    argument, op = (kept, "") if on_argument else ("", kept)
    module = function(
        f"%0 = stablehlo.negate %a {op} : tensor<8x8xf32>\n return %0 : tensor<8x8xf32>",
        arguments=f"%a: tensor<8x8xf32> {argument}",
    )
    module = f"module @m attributes {{mhlo.num_partitions = 2 : i32}} {{ {module} }}"
    result = propagate(module, like=like)
    assert str(result.sharding(0).dim_shardings[0]) == '{"a"}'
    with pytest.raises(VerificationError, match=r"unknown mesh: @mesh.*\n.*sdy\.mesh @mesh") as error:
        propagate(module.replace(mesh, "@mesh"))
    assert error.value.diagnostics[0].op == ("func.func" if on_argument else "stablehlo.negate")
    assert propagate(module.replace(mesh, "@mesh"), {"a": 2}).sharding(0) == result.sharding(0)
