"""Attributes between MLIR and the op graph."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

from jaxlib.mlir import ir

from shardy_py.errors import VerificationError
from shardy_py.frontends.mlir import codec as codec_module
from shardy_py.frontends.mlir.attributes import AttributeSets
from shardy_py.frontends.mlir.codec import Codec
from shardy_py.frontends.mlir.context import make_context
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorShardingPerValue

ROW, COLUMN = (parse_tensor_sharding(f"<@mesh, [{text}]>") for text in ('{"x"}, {}', '{}, {"x", ?}'))


def test_what_is_parsed_together_is_what_is_parsed_alone() -> None:
    """Shardings, those of several values and those in the dictionaries of arguments become the same attributes."""
    context = make_context()
    values = [TensorShardingPerValue((ROW, COLUMN)), ({"sdy.sharding": COLUMN}, {}), "no sharding", ROW]
    together, alone = Codec(context), Codec(context)
    together.parse_together(values)
    assert set(together._shardy) == {values[0], COLUMN, ROW}
    assert [together.encode(value) for value in values] == [alone.encode(value) for value in values]


def test_a_bad_sharding_is_an_error_where_it_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR's message is about the sharding that it does not accept, whatever was parsed with it."""
    texts = {ROW: f"#sdy.sharding{ROW}", COLUMN: "#sdy.sharding<no mesh>"}
    monkeypatch.setattr(codec_module, "_text_of", texts.__getitem__)
    codec = Codec(make_context())
    codec.parse_together([ROW, COLUMN])
    assert str(codec.encode(ROW)) == texts[ROW]
    with pytest.raises(VerificationError, match="does not accept #sdy"):
        codec.encode(COLUMN)


@pytest.mark.parametrize("name", ["array<i64>", "array<i64: 3, 1, 4>", "array<i1: true, false>", "array<f32: 1.5>"])
def test_dense_arrays_are_tuples(name: str) -> None:
    """The elements of a dense array come in order, of whatever type."""
    native = ir.Attribute.parse(name, make_context())
    assert Codec(native.context).decode(native) == tuple(native)


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("3 : i32", 4, "4 : i32"),
        ("3 : ui16", 4, "4 : ui16"),
        ("3 : index", -4, "-4 : index"),
        ("3 : i8", 300, "300 : i64"),
        ("3 : ui8", -1, "-1 : i64"),
        ("3 : i32", True, "true"),
        ("1.0 : f16", 0.5, "5.000000e-01 : f16"),
        ("1.0 : bf16", 2, "2.000000e+00 : bf16"),
        ("array<i32: 3, 1>", (4,), "array<i32: 4>"),
        ("array<i8: 3>", (), "array<i8>"),
        ("array<i8: 3>", (300,), "array<i64: 300>"),
        ("array<f32: 1.0>", (2, 0.5), "array<f32: 2.000000e+00, 5.000000e-01>"),
        ("array<i1: true>", (False,), "array<i1: false>"),
        ("[3 : i32]", (4, 5), "[4 : i32, 5 : i32]"),
        ("[1 : i32, 2 : i8]", (3, 4, 5), "[3 : i32, 4 : i8, 5 : i8]"),
        ("{a = 3 : i32}", {"a": 4}, "{a = 4 : i32}"),
    ],
)
def test_numbers_keep_their_width(before: str, value: object, after: str) -> None:
    """A number that takes the place of another one has its type, if it fits."""
    codec = Codec(make_context())
    assert str(codec.encode(value, ir.Attribute.parse(before, codec.context))) == after


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{a = "@no_symbol", b = [1]}', []),
        ('{a = "x", b = {c = @f}}', ["f"]),
        ('[{a = @g}, @h, "@x"]', ["g", "h"]),
        ("@f", ["f"]),
    ],
)
def test_symbols_in_dictionaries_are_found(text: str, names: list[str]) -> None:
    """An attribute refers to the symbols in its parts; strings that look like some are none."""
    context = make_context()
    module = ir.Module.parse(f"module attributes {{toy.held = {text}}} {{}}", context)
    sets = AttributeSets(Codec(context))
    assert sets.of(module.operation).symbols == names


def look_of(text: str) -> object:
    """Return the look of an attribute, in a module and a context of its own."""
    context = make_context()
    module = ir.Module.parse(f"module attributes {{toy.held = {text}}} {{}}", context)
    return AttributeSets(Codec(context)).of(module.operation).look


@pytest.mark.parametrize(
    "text",
    ["1 : i64", "true", '"@f"', "array<i64: 1, 0>", "[dense<[1, 0]> : tensor<2xindex>]", "#stablehlo<precision HIGH>"],
)
def test_equal_attributes_look_the_same_in_all_modules(text: str) -> None:
    """The look is a value that does not depend on the context, and another one for any other attribute."""
    assert look_of(text) is not None
    assert look_of(text) == look_of(text) != look_of("1.0 : f32")
    assert (look_of(text) == look_of("true")) is (text == "true")


@pytest.mark.parametrize(
    "text", ["@f", "{a = [@f]}", "dense<1.5> : tensor<2xf32>", "dense_resource<r> : tensor<2xf32>"]
)
def test_what_is_of_one_module_has_no_look(text: str) -> None:
    """Symbols and resources mean something in their module only; constants are not looked at."""
    assert look_of(text) is None


@pytest.mark.parametrize(
    ("text", "shape", "element_type"),
    [
        ("tensor<f32>", (), "f32"),
        ("tensor<0x12xi1>", (0, 12), "i1"),
        ("tensor<?x3xindex>", (None, 3), "index"),
        ("tensor<2xf8E4M3FN>", (2,), "f8E4M3FN"),
        ("tensor<2xcomplex<f64>>", (2,), "complex<f64>"),
        ("tensor<?x4xf32, #stablehlo.bounds<8, ?>>", (None, 4), "f32"),
        ("tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>", (2,), "!quant.uniform<i8:f32, 5.000000e-01>"),
        ("tensor<2xvector<4xf32>>", (2,), "vector<4xf32>"),
    ],
)
def test_tensors_are_decoded(text: str, shape: tuple[int | None, ...], element_type: str) -> None:
    """Their sizes and element types are those that MLIR has, in all modules alike."""
    contexts = make_context(), make_context()
    decoded, other = [Codec(context).types[ir.Type.parse(text, context)] for context in contexts]
    assert decoded == other == TensorType(shape, element_type, text)


@pytest.mark.parametrize("text", ["tensor<*xf32>", "tuple<tensor<2xf32>>", "memref<2xf32>", "f32", "!stablehlo.token"])
def test_other_types_are_opaque(text: str) -> None:
    """Nothing but a ranked tensor has a shape."""
    context = make_context()
    assert Codec(context).types[ir.Type.parse(text, context)] == OpaqueType(text)
