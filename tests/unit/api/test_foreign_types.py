"""Values whose types are no builtin tensors are sharded where a plugin knows their shape, and reported elsewhere."""

from pathlib import Path
from types import ModuleType

import pytest

import shardy_py as sdy
from shardy_py.api.rules import list_rules
from shardy_py.cost.session import Session
from shardy_py.ir.graph.types import OpaqueType, TensorType

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

TEXT = """
func.func @main(%x: !torch.vtensor<[8,16],f32>, %w: !torch.vtensor<[16,4],f32>) -> !torch.vtensor<[8,4],f32> {
  %0 = "torch.aten.mm"(%x, %w)
    : (!torch.vtensor<[8,16],f32>, !torch.vtensor<[16,4],f32>) -> !torch.vtensor<[8,4],f32>
  %1 = "torch.aten.relu"(%0) : (!torch.vtensor<[8,4],f32>) -> !torch.vtensor<[8,4],f32>
  func.return %1 : !torch.vtensor<[8,4],f32>
}
"""
AS_TENSORS = (
    TEXT.replace("!torch.vtensor<[8,16],f32>", "tensor<8x16xf32>")
    .replace("!torch.vtensor<[16,4],f32>", "tensor<16x4xf32>")
    .replace("!torch.vtensor<[8,4],f32>", "tensor<8x4xf32>")
)
IN = {0: ("a", None), 1: (None, "b")}
CONTRACTED = {0: (None, "a"), 1: ("a", None)}


def torch(*, shapes: bool = True) -> sdy.Dialect:
    """Return a dialect with tensors of its own."""
    dialect = sdy.Dialect("torch")
    dialect.op("torch.aten.mm", rule="i k, k j -> i j", reduction=("k",))
    dialect.op("torch.aten.relu", traits=[sdy.Elementwise])
    dialect.type("!torch.int")
    if shapes:

        @dialect.type("!torch.vtensor")
        def vtensor(type_: OpaqueType) -> TensorType:
            sizes, _, element = type_.parameters.partition("],")
            return sdy.tensor(*[None if size == "?" else int(size) for size in sizes[1:].split(",")], dtype=element)

    return dialect


def registry(*, shapes: bool = True) -> sdy.Registry:
    """Return what is installed, and the dialect."""
    plugin = ModuleType("torch_plugin")

    def shardy_register_dialects() -> list[sdy.Dialect]:
        return [torch(shapes=shapes)]

    vars(plugin)["shardy_register_dialects"] = sdy.hookimpl(shardy_register_dialects)
    return sdy.Registry.from_entry_points(plugins=[plugin])


REGISTRY = registry()


def without_types(text: str) -> list[str]:
    """Return the lines of a text without what tells the types and what follows from that."""
    text = text.replace("shardy.", "sdy.")
    for foreign, builtin in ((f"!torch.vtensor<[{a},{b}],f32>", f"tensor<{a}x{b}xf32>") for a, b in SIZES):
        text = text.replace(foreign, builtin)
    return text.splitlines()


SIZES = ((8, 16), (16, 4), (8, 4))


def test_they_are_sharded_as_tensors_are() -> None:
    """The shardings are those of the same program over builtin tensors."""
    result = sdy.propagate(TEXT, {"a": 2, "b": 2}, in_shardings=IN, registry=REGISTRY)
    other = sdy.propagate(AS_TENSORS, {"a": 2, "b": 2}, in_shardings=IN, registry=REGISTRY)
    assert str(result.results[0]) == '<@mesh, [{"a"}, {"b"}]>'
    assert without_types(result.text) == without_types(other.text)
    assert result.warnings == ()
    assert result.summary == other.summary


@pytest.mark.parametrize("explicit", [False, True])
def test_what_is_written_is_read_again(explicit: bool) -> None:
    """MLIR accepts the written module, which has the shardings and collectives under names that it lets stand."""
    result = sdy.propagate(
        TEXT, {"a": 2}, in_shardings=CONTRACTED, registry=REGISTRY, explicit_collectives=explicit, trace=True
    )
    assert ("shardy.all_reduce" in result.text) is explicit
    assert "sdy.sharding =" not in result.text
    again = sdy.propagate(result.text, registry=REGISTRY)
    assert again.arguments == result.arguments
    assert again.text == result.text
    assert [op.name for op in again.program.walk()] == [op.name for op in result.program.walk()]
    assert ("sdy.all_reduce" in [op.name for op in again.program.walk()]) is explicit


def test_xdsl_programs_have_such_types_too(tmp_path: Path) -> None:
    """XDSL writes the same shardings, and MLIR reads what xDSL wrote."""
    pytest.importorskip("xdsl")
    path = tmp_path / "program.xdsl"
    path.write_text(TEXT)
    result = sdy.propagate(path, {"a": 2, "b": 2}, in_shardings=IN, registry=REGISTRY)
    native = sdy.propagate(TEXT, {"a": 2, "b": 2}, in_shardings=IN, registry=REGISTRY)
    assert result.results == native.results
    assert sdy.propagate(result.text, registry=REGISTRY).text == native.text


def test_programs_that_were_built_have_such_types_too() -> None:
    """A program of a Builder gets shapes for its types; a sharding of another rank is refused then."""
    b = sdy.Builder(mesh={"a": 2})
    type_ = OpaqueType("!torch.vtensor<[8,4],f32>")
    with b.function("main", [type_]) as (x,):
        b.shard(x, '[{"a"}, {}]')
        y = b.op("torch.aten.relu", [x], [type_])
        b.return_(y)
    assert str(sdy.propagate(b.build(), registry=REGISTRY).sharding(y)) == '<@mesh, [{"a"}, {}]>'
    b.shard(x, '[{"a"}]')
    with pytest.raises(sdy.VerificationError, match="doesn't match tensor rank: 1 != 2"):
        sdy.propagate(b.build(), registry=REGISTRY)


def test_types_that_nobody_defines_are_reported() -> None:
    """Without a shape there is one warning for each name of types, and with strict an error; tokens are known."""
    registry_without_shapes = registry(shapes=False)
    result = sdy.propagate(TEXT, {"a": 2}, registry=registry_without_shapes)
    (warning,) = result.warnings
    assert warning.code == "opaque-type"
    assert (
        warning.message == "!torch.vtensor<[8,16],f32> has no known shape; 5 values of !torch.vtensor get no sharding"
    )
    assert 'dialect.type("!torch.vtensor", shape_of=...)' in warning.hint
    assert warning in Session.open(TEXT, {"a": 2}, registry=registry_without_shapes).warnings
    with pytest.raises(sdy.UnsupportedError, match="has no known shape"):
        sdy.propagate(TEXT, {"a": 2}, registry=registry_without_shapes, strict=True)
    token = "func.func @main(%t: !stablehlo.token) -> !stablehlo.token {\n  return %t : !stablehlo.token\n}"
    assert sdy.propagate(token, {"a": 2}).warnings == ()


@pytest.mark.parametrize(("answer", "problem"), [(None, "raised KeyError: 'rows'"), ((-1,), "returned (-1,)")])
def test_a_function_that_fails_is_reported_with_the_op(answer: tuple[int] | None, problem: str) -> None:
    """The error names the op that has the type first, where it stands, the plugin and the line, and its cause."""
    dialect = sdy.Dialect("t")

    @dialect.type("!t.rows")
    def rows(type_: OpaqueType) -> tuple[int, ...]:
        return answer or ({}["rows"],)

    text = 'func.func @main(%x: tensor<2xf32>) {\n  %0 = "t.make"(%x) : (tensor<2xf32>) -> !t.rows<2>\n  return\n}\n'
    with pytest.raises(sdy.PluginError) as caught:
        sdy.propagate(text, {"a": 2}, registry=sdy.Registry.of([dialect]))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.op, diagnostic.location.rpartition(":")[0]) == ("t.make", "-:2")
    assert f"shape_of for !t.rows<2> {problem}" in diagnostic.message
    assert "defined by dialect 't' at" in diagnostic.hint
    assert "attributes" not in diagnostic.hint
    assert isinstance(caught.value.__cause__, Exception)
    assert not isinstance(caught.value.__cause__, sdy.PluginError)


def test_rules_are_made_for_such_types() -> None:
    """A rule has the sizes that the plugin gives."""
    (mm,) = [item.rule for item in list_rules(TEXT, registry=REGISTRY) if item.op == "torch.aten.mm"]
    assert str(mm) == "<([i, j], [j, k])->([i, k]) {i=8, j=16, k=4} reduction={j}>"


def test_dynamic_sizes_are_sharded_as_those_of_tensors_are() -> None:
    """A size that is not known makes the type a dynamic one, which keeps its own text."""
    text = TEXT[TEXT.index("  %1") :].replace("[8,4]", "[?,4]").replace("%0", "%x").replace("%1", "%y")
    text = f"func.func @main(%x: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32> {{\n{text}"
    result = sdy.propagate(text, {"a": 2}, registry=REGISTRY, in_shardings={0: ("a", None)})
    assert str(result.results[0]) == '<@mesh, [{"a"}, {}]>'
    assert "!torch.vtensor<[?,4],f32>" in result.text


def test_tokens_beside_tensors_change_nothing() -> None:
    """An op with a token among its results keeps its shardings under Shardy's own name, as the reference writes it."""
    text = """
      sdy.mesh @mesh = <["a"=2]>
      func.func @main(%t: !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token) {
        %0:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]],
          sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, []>]>}
          : (!stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
        return %0#0, %0#1 : tensor<8xf32>, !stablehlo.token
      }
    """
    result = sdy.propagate(text)
    assert 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, []>]>' in result.text
    assert "shardy.sharding" not in result.text
    assert result.warnings == ()
