"""Windows over sharded dimensions: reductions, selections and convolutions, on host devices."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import shardy_py as sdy
from shardy_py.jax.unsharded import compile_unsharded
from tests.unit.dialects.stablehlo.local.on_devices import Case, program_of, run_cases, run_padded, type_of

pytestmark = pytest.mark.slow

SHARDINGS = ['[{"x"}, {"y"}]', '[{}, {"y", "x"}]']


def pooled(
    op: str,
    size: int,
    *,
    stride: int = 1,
    steps: int = 1,
    base: int = 1,
    pad: tuple[int, int] = (0, 0),
    initial: str = "",
) -> Case:
    """Return a reduction of windows of the second dimension of eight by sixteen elements."""
    count = (15 * base + 1 + sum(pad) - (size - 1) * steps - 1) // stride + 1
    result, initial = type_of((8, count)), initial or {"add": "%zero", "maximum": "%lowest"}[op]
    attributes = (
        f"window_dimensions = array<i64: 1, {size}>, window_strides = array<i64: 1, {stride}>,"
        f"window_dilations = array<i64: 1, {steps}>, base_dilations = array<i64: 1, {base}>,"
        f"padding = dense<[[0, 0], [{pad[0]}, {pad[1]}]]> : tensor<2x2xi64>"
    )
    text = f"""\"stablehlo.reduce_window"(%a, {initial}) <{{{{{attributes}}}}}> ({{{{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %q = stablehlo.{op} %x, %y : tensor<f32>
        stablehlo.return %q : tensor<f32>
      }}}}) : ({type_of((8, 16))}, tensor<f32>) -> {result}"""
    return Case(text, result)


def selected(
    size: int, stride: int, pad: tuple[int, int] = (0, 0), direction: str = "GE", *, elements: int = 16
) -> Case:
    """Return a scatter of one number per window to the element of the window that is selected."""
    count = (elements + sum(pad) - size) // stride + 1
    attributes = (
        f"window_dimensions = array<i64: 1, {size}>, window_strides = array<i64: 1, {stride}>,"
        f"padding = dense<[[0, 0], [{pad[0]}, {pad[1]}]]> : tensor<2x2xi64>"
    )
    text = f"""\"stablehlo.select_and_scatter"(%a, {{0}}, %zero) <{{{{{attributes}}}}}> ({{{{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %q = stablehlo.compare {direction}, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %q : tensor<i1>
      }}}}, {{{{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %q = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %q : tensor<f32>
      }}}}) : ({type_of((8, elements))}, {type_of((8, count))}, tensor<f32>) -> {type_of((8, elements))}"""
    return Case(text, type_of((8, elements)), [(8, count)])


def convolved(
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    pads: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    *,
    base: tuple[int, int] = (1, 1),
    steps: tuple[int, int] = (1, 1),
    reverse: bool = False,
) -> Case:
    """Return a convolution over eight by sixteen places."""
    places = [
        ((size - 1) * gap + 1 + sum(pad) - (extent - 1) * step - 1) // stride + 1
        for size, gap, pad, extent, step, stride in zip((8, 16), base, pads, kernel, steps, strides, strict=True)
    ]
    flip = ", reverse = [true, true]" if reverse else ""
    window = (
        f"stride = {list(strides)}, pad = {[list(pad) for pad in pads]}, lhs_dilate = {list(base)},"
        f"rhs_dilate = {list(steps)}{flip}"
    )
    result = type_of((2, 4, *places))
    text = f"""stablehlo.convolution(%a, {{0}}) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {{{{{window}}}}} {{{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}}}
      : ({type_of((2, 3, 8, 16))}, {type_of((4, 3, *kernel))}) -> {result}"""
    return Case(text, result, [(4, 3, *kernel)])


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_windows_see_the_elements_of_other_devices(sharding: str) -> None:
    """Sums and maxima over windows with strides, dilations and padding are those of one device."""
    cases = [
        pooled("add", 3, pad=(1, 1)),
        pooled("maximum", 2, stride=2),
        pooled("maximum", 3, stride=2, pad=(0, 1)),
        pooled("add", 16, pad=(15, 0)),
        pooled("add", 3, steps=2, pad=(2, 2)),
        pooled("add", 2, base=2, pad=(0, 2)),
        pooled("maximum", 3, base=2, pad=(1, 2)),
        pooled("add", 3, base=3, stride=2, pad=(0, 3)),
        pooled("add", 4, pad=(3, 0), initial="%spread"),
        pooled("add", 3, pad=(-1, 0), initial="%c"),
    ]
    spread = "%spread = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<f32>"
    _, gathered = run_cases(cases, (8, 16), sharding, prelude=spread)
    assert gathered == []


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_scatters_to_selected_elements_cross_shards(sharding: str) -> None:
    """Each device adds what all windows that touch its elements scatter, and gaps between windows stay zero."""
    cases = [
        selected(2, 2),
        selected(3, 2, (0, 1)),
        selected(3, 2, (1, 1), "LE"),
        selected(2, 4),
        selected(5, 4, (1, 2)),
    ]
    _, gathered = run_cases([*cases, selected(3, 1, (1, 1), "GT")], (8, 16), sharding)
    assert gathered == []


@pytest.mark.parametrize(
    ("case", "sent"),
    [
        (selected(2, 2, elements=64), set()),
        (selected(2, 4, elements=64), set()),
        (selected(3, 2, (0, 1), elements=64), {"collective_permute"}),
    ],
)
def test_scatters_to_selected_elements_gather_nothing(case: Case, sent: set[str]) -> None:
    """Sources stay where they are: windows that stay apart need nothing else, those that overlap a halo."""
    sharding = '[{}, {"x"}]'
    text, arrays = program_of([case], (8, 64), sharding, others=sharding)
    result = f"(tensor<8x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}})"
    text = text.replace("-> (tensor<8x64xf32>)", f"-> {result}")
    propagated = sdy.propagate(text)
    local = propagated.local()
    kinds = ("all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter")
    assert {kind for kind in kinds if f".{kind}" in local.text} == sent
    (expected,) = compile_unsharded(text, semantics=propagated.registry)(*arrays)
    np.testing.assert_allclose(local.run(*arrays)[0], expected, rtol=2e-5, atol=2e-5)


def test_convolutions_exchange_halos_in_two_dimensions() -> None:
    """Convolutions over two sharded spatial dimensions, corners included, are those of one device."""
    cases = [
        convolved((3, 3), pads=((1, 1), (1, 1))),
        convolved((3, 3), (2, 2), ((1, 1), (0, 1))),
        convolved((1, 5), pads=((0, 0), (4, 0))),
        convolved((3, 3), pads=((2, 2), (2, 2)), steps=(2, 2)),
        convolved((2, 2), pads=((1, 1), (1, 1)), base=(2, 2)),
        convolved((3, 3), (1, 2), ((1, 2), (2, 2)), base=(2, 3)),
        convolved((3, 3), pads=((1, 1), (1, 1)), reverse=True),
    ]
    text, gathered = run_cases(cases, (2, 3, 8, 16), '[{}, {}, {"x"}, {"y"}]')
    assert gathered == []
    assert "all_gather" not in text


def test_a_sharded_kernel_gives_partial_sums() -> None:
    """Where the kernel is sharded along its window, each device reads the input that meets its part."""
    cases = [
        convolved((8, 16), pads=((1, 1), (1, 1))),
        convolved((8, 16), pads=((1, 1), (2, 1)), reverse=True),
    ]
    sharding = '[{}, {}, {"x"}, {"y"}]'
    text, gathered = run_cases(cases, (2, 3, 8, 16), sharding, others=sharding)
    assert gathered == []
    assert "all_gather" not in text


def test_windows_of_shards_that_do_not_divide_see_real_elements_only() -> None:
    """Padding, whatever it holds, gets into no window."""
    cases = [pooled("add", 3, pad=(1, 1)), pooled("maximum", 3, stride=2, pad=(0, 1)), pooled("add", 3, initial="%c")]
    cases += [pooled("maximum", 3, base=2, pad=(1, 2)), selected(3, 2, (1, 1)), selected(2, 4), selected(5, 4, (1, 2))]
    assert run_padded(cases, (8, 16), '[{"x"}, {"y"}]') == []


def test_convolutions_of_shards_that_do_not_divide_see_real_elements_only() -> None:
    """Padding, whatever it holds, gets into no sum, where the windows are sharded and where the kernel is."""
    sharding = '[{}, {}, {"x"}, {"y"}]'
    cases = [convolved((3, 3), pads=((1, 1), (1, 1))), convolved((3, 3), (1, 2), ((1, 2), (2, 2)), base=(2, 3))]
    assert run_padded(cases, (2, 3, 8, 16), sharding) == []
    assert run_padded([convolved((8, 16), pads=((1, 1), (2, 1)))], (2, 3, 8, 16), sharding, others=sharding) == []
