"""Reasons for a kernel: for its emitter, its grid and the elements of a thread, in the terms of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from shardy_py.kernels.fusion.choose import EmitterKind
from shardy_py.kernels.fusion.fusion import IterationSpace, bits_of, element_type_of
from shardy_py.kernels.fusion.reductions import RootReductions
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.fusion.transposes import RootTransposes
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.kernels.launch.reductions import ReductionPlan, plan_reduction
from shardy_py.kernels.launch.transposes import transpose_tiles
from shardy_py.kernels.recompute import least_bytes, recomputation
from shardy_py.kernels.roofline import roofline


def explain(kernel: Kernel) -> tuple[str, ...]:
    """Return the reasons for emitter, heroes, grid and unroll factor, a line each.

    Args:
        kernel: The kernel.
    """
    return (
        f"emitter {kernel.choice.name}: {kernel.choice.reason}",
        *_heroes(kernel),
        *_form(kernel),
        *_work(kernel),
        f"grid: {_count(prod(kernel.launch.blocks), 'block')} of {_count(prod(kernel.launch.threads), 'thread')}",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _work(kernel: Kernel) -> Iterator[str]:
    """Yield lines on the fewest bytes that a kernel moves, and on the elements that it computes for them."""
    read, written = least_bytes(kernel)
    recomputed = recomputation(kernel)
    yield f"bytes: at least {read} of parameters and {written} of results"
    limits = roofline(kernel)
    numbers = f"{limits.operations} operations, {limits.intensity:.3g} for each byte"
    yield f"roofline: {numbers}; {limits.limit} is the limit, as a core has time for {limits.balance:.2g} for each byte"
    if recomputed.factor > 1:
        worst = ", ".join(f"{item.op.name} {item.factor:.3g} times" for item in recomputed.ops[:3])
        yield f"recompute: each element is computed {recomputed.factor:.3g} times on average: {worst}"


def _heroes(kernel: Kernel) -> Iterator[str]:
    fusion = kernel.fusion
    for number, hero in enumerate(kernel.choice.heroes):
        root = fusion.producer(fusion.roots[number])
        if root is None or hero is None:
            yield f"root {number} is a parameter"
        elif root is hero:
            yield f"root {number}, {root.name}, is its own hero"
        else:
            yield f"root {number}, {root.name}: its hero is {hero.name}, behind which elements stay apart"


def _form(kernel: Kernel) -> Iterator[str]:
    """Yield lines on what the emitter is for."""
    form = kernel.choice.form
    match form:
        case RootTransposes():
            yield from _transpose(form, kernel.launch)
        case RootReductions():
            yield from _reduction(kernel, plan_reduction(form, kernel.device, kernel.launch))
        case RootScatter():
            yield from _scatter(form, kernel.launch)
        case IterationSpace():
            yield from _space(kernel, form)
        case _:
            yield "the grid is that of the plugin's emitter"


def _space(kernel: Kernel, space: IterationSpace) -> Iterator[str]:
    type_, unroll = space.value.type, _unroll(kernel, space)
    if kernel.choice.kind is EmitterKind.CONCATENATE:
        yield f"elements: those of the longest operand, {type_}; each operand has a loop of its own"
        unroll += "; it divides the length of all operands" if kernel.launch.unroll > 1 else ""
    elif kernel.choice.kind is EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
        yield f"elements: those of the update, {type_}; all others stay as they are in the parameter's memory"
    else:
        yield f"elements: those of the first root, {type_}"
    yield unroll


def _unroll(kernel: Kernel, space: IterationSpace) -> str:
    """Return why a thread takes as many elements as it does."""
    fusion, device, unroll, elements = kernel.fusion, kernel.device, kernel.launch.unroll, space.elements
    expensive = [op.name for op in fusion.ops if fusion.facts[op.id].is_expensive]
    if unroll > 1 and space.bits * unroll <= 8:
        return f"unroll {unroll}: as many elements as a byte has, so that no byte is shared"
    if elements < device.threads:
        return f"unroll {unroll}: {elements} elements are fewer than the {device.threads} threads of {device.name}"
    if unroll == 1 and expensive:
        return f"unroll 1: {expensive[0]} computes much for one element"
    return f"unroll {unroll}: the greatest divisor of {elements} elements up to 4, as {device.name} is full"


def _transpose(transposes: RootTransposes, launch: Launch) -> Iterator[str]:
    form = transposes.form
    first, second = form.swapped
    yield (
        f"transpose: dimensions of size one dropped and neighbours merged, {_sizes(form.shape)} by "
        f"{list(form.permutation)}; the fast dimension {'moves' if form.moves_minor else 'stays'}, "
        f"{first} and {second} swap"
    )
    tiles = transpose_tiles(transposes, launch)
    if isinstance(tiles, PackedTiles):
        packed = tiles.form
        yield (
            f"packed: {packed.vector} elements of {form.bits} bits fill a word of shared memory; a tile of "
            f"{_sizes(tiles.tile)} has {packed.tiles[2]} rows of {packed.tiles[0] * packed.tiles[1]} in use"
        )
        return
    shared = f"{_sizes(tiles.tile)} in shared memory, one more against conflicts"
    yield f"tiled: a block takes {_sizes(tiles.block)}; {shared}"
    reason = "more would leave threads idle, or does not divide both dimensions"
    if tiles.vector > 1:
        reason = "there are threads, shared memory and neighbours enough for it"
    elif form.bits >= 32:
        reason = "an element fills a word"
    yield f"vector {tiles.vector}: {reason}"


def _reduction(kernel: Kernel, plan: ReductionPlan) -> Iterator[str]:
    kind = "row" if plan.form.is_row else "column"
    if plan.style == "strip":
        results = "a row" if plan.form.is_row else f"{plan.per_row} columns"
        yield f"strip: a thread reduces {results} by itself; partial results for each {kind}: {plan.rows}"
        return
    yield f"{plan.style}: {plan.per_row} threads share a {kind}, a block has {plan.rows}"
    bits = min(bits_of(element_type_of(value)) for value in kernel.fusion.parameters)
    yield f"vector {plan.vector}: {plan.vector * bits} bits of the smallest parameter at once"


def _scatter(scatter: RootScatter, launch: Launch) -> Iterator[str]:
    updates = ", ".join(str(value.type) for value in scatter.updates)
    yield f"elements: those of the updates, {updates}; {_sizes(scatter.form.window)} of a window are neighbours"
    yield f"unroll {launch.unroll}: a thread stays in one window"
    fusion = scatter.fusion
    for copy, number in enumerate(fusion.copied, start=len(fusion.argument_parameters)):
        yield f"parameter {copy} is a copy of parameter {number}: it is updated while threads read the other one"


def _sizes(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes)) or "one element"
