"""Comparing modules."""

import pytest

pytest.importorskip("jaxlib")

from shardy_py.oracle.compare import compare, per_value

ONE = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""


def test_a_module_equals_itself():
    """The same text, spaces at the ends of lines aside, is equal."""
    assert compare(ONE, ONE.replace("\n", "  \n")).kind == "text-equal"


def test_names_do_not_count():
    """Other SSA names and another layout are the same structure."""
    assert compare(ONE, ONE.replace("%0", "%x").replace("{?}", "{ ? }")).kind == "structural-equal"


@pytest.mark.parametrize(
    ("old", "new", "place", "what"),
    [
        ('[{"a"}, {?}]', '[{"b"}, {?}]', "@main/0", "sdy.sharding of value 0"),
        ('[{"a"}, {}]', '[{"a"}, {?}]', "@main", "argument 0, sdy.sharding"),
        ("%arg0, %0", "%0, %arg0", "@main/1", "operand 0"),
        ('"b"=2', '"b"=4', "module/0", "attribute mesh"),
        ("stablehlo.negate", "stablehlo.abs", "@main/0", "ops"),
        ("tensor<8x8xf32> {\n", "(tensor<8x8xf32> {jax.x = 1}) {\n", "@main", "result 0, jax.x"),
    ],
)
def test_the_first_difference_is_named(old, new, place, what):
    """A report says where, and what differs."""
    assert old in ONE
    comparison = compare(ONE, ONE.replace(old, new))
    assert comparison.kind == "different"
    assert (comparison.differences[0].place, comparison.differences[0].what) == (place, what)
    assert what in str(comparison)


def test_attributes_without_a_class_are_compared_as_texts():
    """A complex constant, which the bindings cannot show, hides no difference and is one where it differs."""
    text = """
    func.func @main(%x: tensor<2xcomplex<f32>>) -> (tensor<2xcomplex<f32>>, tensor<2xf32>) {
      %c = stablehlo.constant dense<(1.0,0.0)> : tensor<2xcomplex<f32>>
      %0 = stablehlo.add %x, %c : tensor<2xcomplex<f32>>
      %1 = stablehlo.real %0 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
      return %0, %1 : tensor<2xcomplex<f32>>, tensor<2xf32>
    }"""
    assert compare(text, text.replace("real", "imag")).differences[0].what == "ops"
    (actual,) = compare(text, text.replace("(1.0,", "(2.0,")).differences
    assert (actual.place, actual.what) == ("@main/0", "attribute value")


def test_a_missing_op_does_not_hide_the_rest():
    """Ops that only one side has are listed, and those around them are still compared."""
    shorter = ONE.replace("%1 = stablehlo.add %arg0, %0", "%1 = stablehlo.add %arg0, %arg0")
    shorter = "\n".join(line for line in shorter.splitlines() if "negate" not in line)
    assert [item.what for item in compare(ONE, shorter).differences] == ["ops", "operand 1"]


def test_text_that_does_not_parse_is_a_difference():
    """The side that does not parse is named."""
    comparison = compare(ONE, "nonsense")
    assert comparison.kind == "unparsable"
    assert comparison.differences[0].place == "actual"


def test_shardings_per_value_are_taken_apart():
    """Commas inside a sharding or in quotes do not separate values."""
    text = '#sdy.sharding_per_value<[<@m, [{"a,", ?}, {}], replicated={"b"}>, <@m, []>]>'
    assert per_value(text) == ['<@m, [{"a,", ?}, {}], replicated={"b"}>', "<@m, []>"]
    assert per_value("#sdy.sharding_per_value<[]>") == []
    assert per_value("#sdy.sharding<@m, []>") is None
