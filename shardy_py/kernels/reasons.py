"""Reasons for a kernel: for its emitter, its grid and the elements of a thread, in the terms of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from shardy_py.ir.graph.program import Value
from shardy_py.kernels.fusion.choose import EmitterKind
from shardy_py.kernels.fusion.fusion import bits_of, element_type_of
from shardy_py.kernels.fusion.in_place import form_of, in_place_updates
from shardy_py.kernels.fusion.transposes import Transpose
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.launch.launches import is_expensive, longest_operand
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.kernels.launch.reductions import plan_reduction
from shardy_py.kernels.launch.scatters import updates_of
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
        *_REASONS[kernel.choice.kind](kernel),
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


def _loop(kernel: Kernel) -> Iterator[str]:
    yield f"elements: those of the first root, {kernel.fusion.roots[0].type}"
    yield _unroll(kernel, kernel.fusion.roots[0])


def _unroll(kernel: Kernel, over: Value) -> str:
    """Return why a thread takes as many elements as it does."""
    fusion, device, unroll = kernel.fusion, kernel.device, kernel.launch.unroll
    elements = fusion.elements(over)
    expensive = [op.name for op in fusion.ops if is_expensive(fusion, op)]
    if unroll > 1 and bits_of(element_type_of(over)) * unroll <= 8:
        return f"unroll {unroll}: as many elements as a byte has, so that no byte is shared"
    if elements < device.threads:
        return f"unroll {unroll}: {elements} elements are fewer than the {device.threads} threads of {device.name}"
    if unroll == 1 and expensive:
        return f"unroll 1: {expensive[0]} computes much for one element"
    return f"unroll {unroll}: the greatest divisor of {elements} elements up to 4, as {device.name} is full"


def _joined(kernel: Kernel) -> Iterator[str]:
    (hero,) = kernel.choice.heroes
    assert hero is not None
    longest = longest_operand(hero)
    yield f"elements: those of the longest operand, {longest.type}; each operand has a loop of its own"
    reason = _unroll(kernel, longest)
    yield reason + "; it divides the length of all operands" if kernel.launch.unroll > 1 else reason


def _in_place(kernel: Kernel) -> Iterator[str]:
    update = in_place_updates(kernel.fusion)[0].operands[1]
    yield f"elements: those of the update, {update.type}; all others stay as they are in the parameter's memory"
    yield _unroll(kernel, update)


def _transpose(kernel: Kernel) -> Iterator[str]:
    transpose = kernel.choice.transpose
    assert transpose is not None
    first, second = transpose.swapped
    yield (
        f"transpose: dimensions of size one dropped and neighbours merged, {_sizes(transpose.shape)} by "
        f"{list(transpose.permutation)}; the fast dimension {_moves(transpose)}, {first} and {second} swap"
    )
    tiles = transpose_tiles(kernel.choice, kernel.launch)
    if isinstance(tiles, PackedTiles):
        form = tiles.form
        yield (
            f"packed: {form.vector} elements of {transpose.bits} bits fill a word of shared memory; a tile of "
            f"{_sizes(tiles.tile)} has {form.tiles[2]} rows of {form.tiles[0] * form.tiles[1]} in use"
        )
        return
    shared = f"{_sizes(tiles.tile)} in shared memory, one more against conflicts"
    yield f"tiled: a block takes {_sizes(tiles.block)}; {shared}"
    yield f"vector {tiles.vector}: {_vector(kernel, tiles.vector)}"


def _moves(transpose: Transpose) -> str:
    return "moves" if transpose.moves_minor else "stays"


def _vector(kernel: Kernel, vector: int) -> str:
    transpose = kernel.choice.transpose
    assert transpose is not None
    if vector > 1:
        return "there are threads, shared memory and neighbours enough for it"
    if transpose.bits >= 32:
        return "an element fills a word"
    return "more would leave threads idle, or does not divide both dimensions"


def _reduction(kernel: Kernel) -> Iterator[str]:
    plan = plan_reduction(kernel.fusion, kernel.choice, kernel.device, kernel.launch)
    form = plan.form
    kind = "row" if form.is_row else "column"
    yield f"{plan.style}: {plan.per_row} threads share a {kind}, a block has {plan.rows}"
    bits = min(bits_of(element_type_of(value)) for value in kernel.fusion.parameters)
    yield f"vector {plan.vector}: {plan.vector * bits} bits of the smallest parameter at once"


def _scatter(kernel: Kernel) -> Iterator[str]:
    root = kernel.fusion.producer(kernel.fusion.roots[0])
    assert root is not None
    form = form_of(kernel.fusion)
    updates = ", ".join(str(value.type) for value in updates_of(root))
    yield f"elements: those of the updates, {updates}; {_sizes(form.window)} of a window are neighbours"
    yield f"unroll {kernel.launch.unroll}: a thread stays in one window"
    for copy, number in enumerate(kernel.fusion.copied, start=len(kernel.fusion.argument_parameters)):
        yield f"parameter {copy} is a copy of parameter {number}: it is updated while threads read the other one"


def _plugin(kernel: Kernel) -> Iterator[str]:
    yield "the grid is that of the plugin's emitter"


def _sizes(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes)) or "one element"


_REASONS = {
    EmitterKind.LOOP: _loop,
    EmitterKind.TRANSPOSE: _transpose,
    EmitterKind.REDUCTION: _reduction,
    EmitterKind.CONCATENATE: _joined,
    EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE: _in_place,
    EmitterKind.SCATTER: _scatter,
    EmitterKind.PLUGIN: _plugin,
}
