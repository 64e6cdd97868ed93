"""Explicit collectives combine as rules say, and what no collective can combine is gathered first."""

import re

import pytest

import shardy_py as sdy
from shardy_py.ir.graph.enum_attributes import combiner_of_collective

MESH = {"a": 2, "b": 2}


def registry_of(*dialects):
    """Return a registry of dialects beside the bundled ones."""

    class Plugin:
        @sdy.hookimpl
        def shardy_register_dialects(self):
            return list(dialects)

    return sdy.Registry.from_entry_points(plugins=[Plugin()])


def shown(text):
    """Return a text with collectives as upstream prints them; jaxlib 0.10.2 has a number for the word."""
    for code, word in ((1, "max"), (2, "min")):
        text = re.sub(rf"sdy\.all_reduce (\{{.*)\{{reduction_op = {code} : i32\}}", rf"sdy.all_reduce {word} \1", text)
    return text


def reduced(reduction, *, element="f32", initial=(), operands=1, sharding=("b", "a"), start=None):
    """Return the text of a program in which a sharded dimension is reduced, with explicit reshards."""
    toy = sdy.Dialect("toy")
    text = "i k -> i" if operands == 1 else "i k, i -> i"
    toy.op("toy.reduce", rule=text, reduction=reduction, initial=initial, traits=[sdy.Pure])
    x, r = f"tensor<8x4x{element}>", f"tensor<8x{element}>"
    types = f"({x})" if operands == 1 else f"({x}, {r})"
    values = "%x" if operands == 1 else "%x, %s"
    module = f"""func.func @main(%x: {x}, %s: {r}) -> {r} {{
      %0 = "toy.reduce"({values}) : {types} -> {r}
      return %0 : {r}
    }}"""
    shardings = {0: sharding, 1: start or (None,)}
    result = sdy.propagate(module, MESH, in_shardings=shardings, registry=registry_of(toy), explicit_collectives=True)
    return shown(result.text)


@pytest.mark.parametrize(
    ("reduction", "element", "expected"),
    [
        ("k", "f32", 'sdy.all_reduce {"a"}'),
        ("k:max", "f32", 'sdy.all_reduce max {"a"}'),
        ("k:min", "i32", 'sdy.all_reduce min {"a"}'),
        ("k:or", "i1", 'sdy.all_reduce max {"a"}'),
        ("k:and", "i1", 'sdy.all_reduce min {"a"}'),
        ("k:mul", "f32", 'sdy.all_gather [{}, {"a"}]'),
        ("k:or", "i32", 'sdy.all_gather [{}, {"a"}]'),
        ("k:not", "f32", 'sdy.all_gather [{}, {"a"}]'),
    ],
)
def test_a_collective_combines_as_the_rule_says(reduction, element, expected):
    """Sums print as before, the largest and smallest have a word, and all else is gathered before the op."""
    text = reduced(reduction, element=element)
    assert expected in text
    assert ("all_reduce" in text) == ("all_reduce" in expected)
    assert text.index('"toy.reduce"') > text.index("all_gather") if "all_gather" in expected else True


def test_a_sum_that_starts_from_an_operand_is_not_reduced_on_shards():
    """An initial value would be added once per shard: what is summed is gathered. A largest may count twice."""
    assert "all_gather" in reduced("k", operands=2, initial=1)
    assert "all_reduce max" in reduced("k:max", operands=2, initial=1)
    assert "all_reduce" in reduced("k", operands=2)


def test_factors_that_combine_differently_are_not_both_reduced_on_shards():
    """Partial sums and partial maxima combine in one order only: the second kind is gathered."""
    toy = sdy.Dialect("toy")
    toy.op("toy.reduce", rule="j k -> ", reduction="j, k:max", traits=[sdy.Pure])
    module = """func.func @main(%x: tensor<8x4xf32>) -> tensor<f32> {
      %0 = "toy.reduce"(%x) : (tensor<8x4xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    registry = registry_of(toy)
    result = sdy.propagate(module, MESH, in_shardings={0: ("a", "b")}, registry=registry, explicit_collectives=True)
    assert 'sdy.all_gather [{}, {"b"}]' in result.text
    assert 'sdy.all_reduce {"a"}' in result.text


CAPTURED = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
                %table: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {
  %0 = "toy.map"(%x) ({
  ^bb0(%in: f32):
    %1 = "toy.take"(%table, %in) : (tensor<16xf32>, f32) -> f32
    "toy.yield"(%1) : (f32) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


def test_a_tensor_that_a_region_captures_is_whole_on_every_device():
    """What a region reads from outside is gathered before the op, as its elements are numbered as a whole."""
    toy = sdy.Dialect("toy")
    toy.op("toy.map", rule="i -> i", traits=[sdy.Pure])
    toy.op("toy.take", traits=[sdy.Pure])
    toy.op("toy.yield", traits=[sdy.IsTerminator, sdy.Pure])
    result = sdy.propagate(CAPTURED, registry=registry_of(toy), explicit_collectives=True)
    assert 'sdy.all_gather [{"b"}] %arg1 out_sharding=<@mesh, [{}]>' in result.text
    assert '"toy.take"(%0,' in result.text
    partitioned = sdy.propagate(CAPTURED, registry=registry_of(toy)).text
    assert "sdy.reshard %arg1 <@mesh, [{}]>" in partitioned
    assert '"toy.take"(%0,' in partitioned


REDUCE = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.maximum across dimensions = [1]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


def test_the_collectives_of_stablehlo_are_those_of_the_reference():
    """The reference writes a sum behind any reduction; how it combines is said beside it, or with extended rules."""
    result = sdy.propagate(REDUCE, explicit_collectives=True)
    assert 'sdy.all_reduce {"a"}' in result.text
    (collective,) = [op for op in result.program.walk() if op.name == "sdy.all_reduce"]
    assert combiner_of_collective(collective, sdy.Registry.from_entry_points()) is sdy.Combiner.MAX
    extended = sdy.propagate(REDUCE, explicit_collectives=True, extended_rules=True)
    assert 'sdy.all_reduce max {"a"}' in shown(extended.text)
    (collective,) = [op for op in extended.program.walk() if op.name == "sdy.all_reduce"]
    assert combiner_of_collective(collective, sdy.Registry.from_entry_points()) is sdy.Combiner.MAX


def test_explanations_say_how_factors_combine():
    """The explanation of an op has the combiner of each reduced factor, whether the rule has it or the plugin."""
    explanation = sdy.propagate(REDUCE, trace=True).explain_op("stablehlo.reduce")
    assert [factor.combiner for factor in explanation.factors] == ["", "max"]
    assert "reduction by max" in str(explanation)


def test_rules_in_a_module_say_how_they_combine():
    """Attributes beside a rule in a module have what the reference's has no words for, and they are kept."""
    module = """sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8xf32> {
      %0 = "toy.reduce"(%x) {shardy_py.reductions = {j = "max"},
        sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j}>}
        : (tensor<8x4xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    registry = registry_of()
    result = sdy.propagate(module, registry=registry, explicit_collectives=True)
    assert 'sdy.all_reduce max {"a"}' in shown(result.text)
    toy = sdy.Dialect("toy")
    toy.op("toy.reduce", rule="i k -> i", reduction="k:mul")
    bare = module.replace('shardy_py.reductions = {j = "max"},', "").replace(
        "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j}>", ""
    )
    with_rules = sdy.propagate(bare, registry=registry_of(toy), keep_sharding_rules=True).text
    assert 'shardy_py.reductions = {j = "mul"}' in with_rules
    with pytest.raises(sdy.RuleError, match="'maximal'"):
        sdy.propagate(module.replace('"max"', '"maximal"'), registry=registry)
    with pytest.raises(sdy.RuleError, match="i, which is not a reduction factor"):
        sdy.propagate(module.replace('{j = "max"}', '{i = "max"}'), registry=registry)


def test_explaining_a_run_survives_reductions_that_nobody_uses():
    """An op that the engine erases is not asked how it combines."""
    dead = REDUCE.replace("return %0 : tensor<8xf32>", "return %s : tensor<8xf32>").replace(
        "%init =", "%s = stablehlo.slice %y [0:8] : (tensor<8xf32>) -> tensor<8xf32>\n  %init ="
    )
    module = dead.replace(") -> tensor<8xf32> {\n", ", %y: tensor<8xf32>) -> tensor<8xf32> {\n", 1)
    assert "stablehlo.reduce" not in sdy.propagate(module, trace=True).text
