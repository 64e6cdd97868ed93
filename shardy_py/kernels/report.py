"""Kernels as lines and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from shardy_py.kernels import Kernel, KernelCoverage
from shardy_py.kernels.fusion.fusion import element_type_of

if TYPE_CHECKING:
    from shardy_py.kernels.run.device import Timing


def kernel_data(kernel: Kernel) -> dict[str, Any]:
    """Return what is known about a kernel before it is lowered, as plain data with stable keys."""
    return {
        "kernel": kernel.name,
        "emitter": kernel.choice.name,
        "blocks": list(kernel.launch.blocks),
        "threads": list(kernel.launch.threads),
        "functions": [
            {
                "name": function.name,
                "shape": list(function.shape),
                "results": [element_type_of(root) for root in function.roots],
            }
            for function in kernel.functions
        ],
        "maps": [str(map_) for map_ in kernel.maps],
    }


def kernel_json(kernel: Kernel, target: str) -> str:
    """Return a kernel as JSON; with the target ``llvm``, ``ptx`` or ``sass`` its text in that form, too."""
    data = {**kernel_data(kernel), "ptx": kernel.ptx if target == "ptx" else None}
    data |= {"llvm": kernel.llvm} if target == "llvm" else {}
    data |= {"sass": kernel.sass} if target == "sass" else {}
    return json.dumps(data, indent=2)


def kernels_json(kernels: Sequence[Kernel]) -> str:
    """Return the pieces of a program as JSON."""
    return json.dumps(
        [
            {"number": number, **kernel_data(kernel), **_types(kernel), "ops": [op.name for op in kernel.fusion.ops]}
            for number, kernel in enumerate(kernels)
        ],
        indent=2,
    )


def _types(kernel: Kernel) -> dict[str, list[str]]:
    return {
        "parameters": [str(value.type) for value in kernel.fusion.parameters],
        "results": [str(value.type) for value in kernel.fusion.roots],
    }


def format_kernels(kernels: Sequence[Kernel]) -> str:
    """Return the pieces of a program, a line and their types each."""
    if not kernels:
        return "no piece of this program can be a kernel"
    return "\n".join(_lines(number, kernel) for number, kernel in enumerate(kernels))


def _lines(number: int, kernel: Kernel) -> str:
    grids = " x ".join(_grid(sizes) for sizes in (kernel.launch.blocks, kernel.launch.threads))
    types = _types(kernel)
    counts = Counter(op.name for op in kernel.fusion.ops)
    ops = ", ".join(name if count == 1 else f"{count} {name}" for name, count in counts.items())
    return (
        f"{number}  {kernel.name}: {kernel.choice.name}, {grids}\n"
        f"   ({', '.join(types['parameters'])}) -> {', '.join(types['results'])}\n"
        f"   {ops}"
    )


def format_coverage(coverage: KernelCoverage) -> str:
    """Return how many ops of a program are in kernels, and the others with the reasons why they are not."""
    lines = [f"kernels: {len(coverage.fusions)}, with {coverage.covered} of {coverage.ops} ops"]
    for row in coverage.uncovered:
        lines.append(f"  {row.count} {row.name}: {row.reason} [{row.code}]")
        lines += [f"    hint: {row.hint}"] if row.hint else []
        lines += [f"    first at {row.first}"] if row.first else []
    return "\n".join(lines)


def coverage_json(coverage: KernelCoverage) -> str:
    """Return the coverage of a program by kernels as JSON."""
    return json.dumps(
        {
            "kernels": len(coverage.fusions),
            "ops": coverage.ops,
            "covered": coverage.covered,
            "uncovered": [attrs.asdict(row) for row in coverage.uncovered],
        },
        indent=2,
    )


def _grid(sizes: Sequence[int]) -> str:
    """Return the sizes of a grid without the ones at the end."""
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes = sizes[:-1]
    return str(sizes[0]) if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"


def format_run(kernel: Kernel, results: Sequence[Any], *, tiles: int | None = None) -> str:
    """Return what a kernel computed, a line per result: its type, smallest and largest element, and their sum.

    Args:
        kernel: The kernel.
        results: Its results.
        tiles: The number of tiles where it ran a tile at a time.
    """
    grid = f"{_grid(kernel.launch.blocks)} x {_grid(kernel.launch.threads)} threads"
    lines = [f"{kernel.name}: {grid if tiles is None else f'{tiles} tile' + 's' * (tiles != 1)}"]
    for number, (root, array) in enumerate(zip(kernel.fusion.roots, results, strict=True)):
        least, greatest, total = extent(array)
        lines.append(f"result{number}: {root.type}, from {least} to {greatest}, in sum {total}")
    return "\n".join(lines)


def extent(array: Any) -> tuple[str, str, str]:
    """Return the smallest and the largest element of an array and their sum as text, those of integers exactly.

    Args:
        array: The array, with elements.
    """
    if array.dtype.kind in "iu":
        return str(array.min()), str(array.max()), str(sum(array.reshape(-1).tolist()))
    wide = array.astype("complex128" if array.dtype.kind == "c" else "float64")
    return f"{wide.min():g}", f"{wide.max():g}", f"{wide.sum():g}"


def format_timings(timings: Mapping[str, Timing]) -> str:
    """Return the times of kernels on a GPU, a line each, with what a later one takes of the first.

    Args:
        timings: The times, by the name of the kernel or of its file.
    """
    first = next(iter(timings.values()))
    lines = [f"on {first.device}:"]
    for name, timing in timings.items():
        part = "" if timing is first else f", {timing.seconds / first.seconds:.2f} times as long"
        lines.append(f"  {name}: {timing.seconds * 1e6:.1f} us{part}")
    return "\n".join(lines)
