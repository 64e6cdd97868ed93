"""Local programs whose dimensions do not divide: what padding holds never counts."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

from shardy_py.api.options import LocalOptions
from shardy_py.jax.local import make_local_program
from shardy_py.plugins import Registry
from tests.unit.local.host_devices import compare_padded, propagate_unevenly

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[3, 1, 0, 2, 7, 6, 5, 4]>\n'
SIZES = range(3, 14)
AXES = ('"x"', '"y"', '"x", "y"')
COMBINING = {
    "add": ("f32", "0.0"),
    "multiply": ("f32", "1.0"),
    "maximum": ("f32", "0xFF800000"),
    "minimum": ("f32", "0x7F800000"),
    "and": ("i1", "true"),
    "or": ("i1", "false"),
}


def sharding(*dims: str) -> str:
    """Return the attribute of an argument."""
    return "{sdy.sharding = #sdy.sharding<@mesh, [" + ", ".join(f"{{{dim}}}" for dim in dims) + "]>}"


def numbers(*shape: int, dtype: str = "f32") -> np.ndarray:
    """Return numbers of both signs in a fixed order."""
    actual = np.random.default_rng(sum(shape)).normal(size=shape) - 0.3
    return actual < 0 if dtype == "i1" else actual.astype(np.float32)


def program(arguments: list[str], results: list[str], body: list[str], returned: list[str]) -> str:
    """Return a module."""
    signature = f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)})"
    return f"{MESH}{signature} {{\n" + "\n".join(body) + f"\nreturn {', '.join(returned)} : {', '.join(results)}\n}}"


@pytest.mark.slow
@pytest.mark.parametrize("op", COMBINING)
def test_reductions_see_real_elements_only(op: str) -> None:
    """Every combining function gives what one device gives, for sizes around the number of parts."""
    dtype, initial = COMBINING[op]
    arguments, body, arrays, returned = [], [f"%i = stablehlo.constant dense<{initial}> : tensor<{dtype}>"], [], []
    for size in SIZES:
        for axes in AXES:
            name = f"%v{len(arrays)}"
            arguments.append(f"{name}: tensor<2x{size}x{dtype}> {sharding('', axes)}")
            body.append(
                f"%r{len(arrays)} = stablehlo.reduce({name} init: %i) applies stablehlo.{op} across dimensions = [1]"
                f" : (tensor<2x{size}x{dtype}>, tensor<{dtype}>) -> tensor<2x{dtype}>"
            )
            returned.append(f"%r{len(arrays)}")
            arrays.append(numbers(2, size, dtype=dtype))
    text = program(arguments, [f"tensor<2x{dtype}>"] * len(arrays), body, returned)
    assert compare_padded(text, *arrays) == []


def test_products_and_softmaxes_see_real_elements_only() -> None:
    """A contraction masks both sides, and every step of a softmax has its own neutral value."""
    a, b = "tensor<7x10xf32>", "tensor<10x5xf32>"
    body = [
        f"%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> tensor<7x5xf32>",
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%1 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1]"
        f" : ({a}, tensor<f32>) -> tensor<7xf32>",
        f"%2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<7xf32>) -> {a}",
        f"%3 = stablehlo.subtract %a, %2 : {a}",
        f"%4 = stablehlo.exponential %3 : {a}",
        f"%5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1]"
        f" : ({a}, tensor<f32>) -> tensor<7xf32>",
        f"%6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<7xf32>) -> {a}",
        f"%7 = stablehlo.divide %4, %6 : {a}",
    ]
    arguments = [f"%a: {a} " + sharding('"x"', '"y"'), f"%b: {b} " + sharding('"y"', '"x"')]
    text = program(arguments, ["tensor<7x5xf32>", a], body, ["%0", "%7"])
    assert compare_padded(text, numbers(7, 10), numbers(10, 5)) == []


@pytest.mark.slow
def test_positions_of_largest_elements_are_real() -> None:
    """The position of the largest element is never one of the padding, even where all elements are negative."""
    arguments, body, arrays, returned, results = [], [], [], [], []
    body += [
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        "%first = stablehlo.constant dense<0> : tensor<i32>",
    ]
    for size in (3, 5, 6, 9, 13):
        for axes in AXES:
            number, type_ = len(arrays), f"tensor<3x{size}xf32>"
            positions = f"tensor<3x{size}xi32>"
            arguments.append(f"%v{number}: {type_} {sharding('', axes)}")
            body.append(f"%p{number} = stablehlo.iota dim = 1 : {positions}")
            body.append(
                f"""%r{number}:2 = stablehlo.reduce(%v{number} init: %low), (%p{number} init: %first)
                across dimensions = [1]
                : ({type_}, {positions}, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
                reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {{
                  %g = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
                  %x = stablehlo.select %g, %a, %c : tensor<i1>, tensor<f32>
                  %y = stablehlo.select %g, %b, %d : tensor<i1>, tensor<i32>
                  stablehlo.return %x, %y : tensor<f32>, tensor<i32>
                }}"""
            )
            returned += [f"%r{number}#0", f"%r{number}#1"]
            results += ["tensor<3xf32>", "tensor<3xi32>"]
            arrays.append(numbers(3, size) - 5)
    compare_padded(program(arguments, results, body, returned), *arrays)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (('"x"', '"y"'), ('"y"', '"x"')),
        (('"x", "y"', ""), ('"x"', '"y"')),
        (('"x", "y"', ""), ('"x"', "")),
        (('"x"', ""), ('"x", "y"', "")),
        (('"y":(1)2', ""), ('"y"', '"x"')),
        (('"x", "y"', ""), ("", '"y", "x"')),
    ],
)
def test_reshards_keep_real_elements(before: tuple[str, str], after: tuple[str, str]) -> None:
    """Parts that do not nest in those of other shardings get the elements that they lack."""
    arguments, body, arrays, returned, results = [], [], [], [], []
    for sizes in ((10, 5), (7, 6), (9, 3), (8, 13)):
        number, type_ = len(arrays), f"tensor<{sizes[0]}x{sizes[1]}xf32>"
        arguments.append(f"%v{number}: {type_} {sharding(*before)}")
        target = sharding(*after).removeprefix("{sdy.sharding = #sdy.sharding").removesuffix("}")
        body.append(f"%c{number} = sdy.sharding_constraint %v{number} {target} : {type_}")
        body.append(f"%r{number} = stablehlo.sine %c{number} : {type_}")
        returned.append(f"%r{number}")
        results.append(f"{type_}")
        arrays.append(numbers(*sizes))
    assert compare_padded(program(arguments, results, body, returned), *arrays) == []


@pytest.mark.parametrize(("before", "after"), [(('"y"', ""), ('"y":(1)2', "")), (('"x"', ""), ('"x", "y"', ""))])
def test_parts_that_do_not_nest_are_sent_in_pieces(before: tuple[str, str], after: tuple[str, str]) -> None:
    """A dimension that does not divide goes from some axes to more or fewer of them without gathering it."""
    target = sharding(*after).removeprefix("{sdy.sharding = #sdy.sharding").removesuffix("}")
    body = [
        f"%0 = sdy.sharding_constraint %x {target} : tensor<10x5xf32>",
        "%1 = stablehlo.sine %0 : tensor<10x5xf32>",
    ]
    result = f"tensor<10x5xf32> {sharding(*after)}"
    text = program([f"%x: tensor<10x5xf32> {sharding(*before)}"], [result], body, ["%1"])
    text = text.replace(f": {result}\n}}", ": tensor<10x5xf32>\n}")
    module, registry = propagate_unevenly(text), Registry.from_entry_points()
    local = make_local_program(module, registry=registry, options=LocalOptions())
    assert {item.kind for item in local.collectives} == {"collective_permute"}


@pytest.mark.slow
def test_ops_without_a_neutral_value_are_gathered() -> None:
    """What has to see a whole dimension sees it without padding."""
    type_ = "tensor<5x7xf32>"
    body = [
        f"""%0 = "stablehlo.sort"(%a) <{{dimension = 1 : i64, is_stable = true}}> ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %less : tensor<i1>
        }}) : ({type_}) -> {type_}""",
        f"%1 = stablehlo.reverse %a, dims = [1] : {type_}",
        f"%2 = stablehlo.concatenate %a, %a, dim = 1 : ({type_}, {type_}) -> tensor<5x14xf32>",
        f"%3 = stablehlo.reshape %a : ({type_}) -> tensor<35xf32>",
        f"%4 = stablehlo.slice %a [0:5, 2:7] : ({type_}) -> tensor<5x5xf32>",
    ]
    results = [type_, type_, "tensor<5x14xf32>", "tensor<35xf32>", "tensor<5x5xf32>"]
    text = program([f"%a: {type_} " + sharding('"x"', '"y"')], results, body, ["%0", "%1", "%2", "%3", "%4"])
    compare_padded(text, numbers(5, 7))


def test_parts_of_manual_axes_have_padding_of_their_own() -> None:
    """In a manual computation the halves of a dimension are tensors, each of which is cut along the other axes."""
    half = "tensor<6x4xf32>"
    cut = '[<@mesh, [{"x", "y"}, {}]>]'
    text = f"""{MESH}func.func @main(%a: tensor<12x4xf32>) -> tensor<12x4xf32> {{
      %0 = sdy.manual_computation(%a) in_shardings={cut} out_shardings={cut} manual_axes={{"x"}} (%b: {half}) {{
        %i = stablehlo.iota dim = 0 : {half}
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = stablehlo.add %b, %i : {half}
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0]
          : ({half}, tensor<f32>) -> tensor<4xf32>
        %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<4xf32>) -> {half}
        %4 = stablehlo.add %1, %3 : {half}
        sdy.return %4 : {half}
      }} : (tensor<12x4xf32>) -> tensor<12x4xf32>
      return %0 : tensor<12x4xf32>
    }}"""
    array = numbers(12, 4)
    halves = array.reshape(2, 6, 4) + np.arange(6, dtype=np.float32)[:, None]
    expected = (halves + halves.sum(axis=1, keepdims=True)).reshape(12, 4)
    local = make_local_program(
        propagate_unevenly(text), registry=Registry.from_entry_points(), options=LocalOptions(), padding=77.0
    )
    (actual,) = local.run(array)
    np.testing.assert_allclose(actual, expected, rtol=2e-5)
