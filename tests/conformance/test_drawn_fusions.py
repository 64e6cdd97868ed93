"""Fusions of programs and models: host, interpreter and PTX compute what XLA:CPU does, and the sanitizer is content.

Half of them are drawn from the shared programs, the other half from models of JAX.

``SHARDY_FUSIONS`` says how many are drawn, 40 by default; ``SHARDY_FUSIONS_SEED`` which. ``pytest -m fuzz`` with this
file runs them.
"""

from __future__ import annotations

import gzip
import os
import random
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from math import prod
from typing import Any

import pytest

pytest.importorskip("jax", reason="programs are lowered by JAX")
pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

import jax
import numpy as np

from shardy_py.kernels import Kernel, emit
from shardy_py.kernels.fusion.choose import EmitterKind, slices_of
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.opt.modules import read_module
from shardy_py.kernels.opt.run_module import module_arguments
from shardy_py.kernels.opt.sanitizer import sanitize
from shardy_py.kernels.run.arrays import random_arrays, run_fusion
from shardy_py.kernels.run.values import buffer_form, packed_array, unpacked_array
from shardy_py.layout.numpy_arrays import numpy_dtype
from tests.conformance.jax_models import JAX_MODELS
from tests.conformance.program_fusions import program_fusions
from tests.conformance.test_kernel_ptx import judge
from tests.conformance.test_kernel_ptx import pytestmark as needs_judge
from tests.conformance.test_program_kernels import FILES, MODELS, NEAR
from tests.conformance.xla_cpu import relative, run_on_xla

pytestmark = [pytest.mark.fuzz, *(mark for mark in needs_judge if mark.name == "skipif")]

PARTS = 8
COUNT = int(os.environ.get("SHARDY_FUSIONS", "40"))
SEED = os.environ.get("SHARDY_FUSIONS_SEED", "0")
# From one program at first, so that the draw is spread over many.
MOST_OF_ONE = 6
MOST_ELEMENTS = 1 << 14
# Instructions that the emulator runs for one kernel at most.
MOST_WORK = 4e7
PACKED = re.compile(r"\[(\d+)\] = \{([^}]*)\}")


def sources(part: int) -> Iterator[str]:
    """The programs of a part, in an order that the seed says; those of odd parts are models."""
    models = {**MODELS, **JAX_MODELS}
    names: list[Any] = [*models] if part % 2 else [*FILES]
    random.Random(SEED).shuffle(names)
    for name in names[part // 2 :: PARTS // 2]:
        if isinstance(name, str):
            function, arguments = models[name]
            yield jax.jit(function).lower(*arguments).as_text()
        else:
            data = name.read_bytes()
            yield (gzip.decompress(data) if name.suffix == ".gz" else data).decode()


def drawn(part: int) -> Iterator[tuple[Fusion, str]]:
    """The fusions of a part, each once, with the modules that compute them."""
    return islice(_spread(part), COUNT // PARTS)


def _spread(part: int) -> Iterator[tuple[Fusion, str]]:
    """All fusions of a part, each once: a few of each program, then the others of all, as many programs are small."""
    known: set[str] = set()
    others: dict[str, Fusion] = {}
    for text in sources(part):
        pieces = {module: fusion for fusion, module in program_fusions(text) if is_small(fusion)}
        new = sorted(pieces.keys() - known)
        random.Random(f"{SEED} {len(known)}").shuffle(new)
        known.update(new[:MOST_OF_ONE])
        yield from ((pieces[module], module) for module in new[:MOST_OF_ONE])
        others |= {module: pieces[module] for module in new[MOST_OF_ONE:]}
    left = sorted(others.keys() - known)
    random.Random(SEED).shuffle(left)
    yield from ((others[module], module) for module in left)


def is_small(fusion: Fusion) -> bool:
    """Whether the emulator of PTX is done with a fusion within seconds."""
    return sum(prod(shape_of(value)) for value in (*fusion.parameters, *fusion.roots)) <= MOST_ELEMENTS


def difference(expected: Sequence[Any], actual: Sequence[Any]) -> str:
    """How results differ, or nothing."""
    for number, (want, got) in enumerate(zip(expected, map(np.asarray, actual), strict=True)):
        if want.dtype.kind in "fc" and want.dtype.itemsize > 1:
            if (distance := relative(want, got)) > NEAR:
                return f"result {number}: {distance:.1f} units"
        elif not np.array_equal(want, got):
            return f"result {number}: {int((want != got).sum())} of {want.size} elements"
    return ""


def emulated(kernel: Kernel, arrays: Sequence[Any]) -> list[Any] | None:
    """The results of PTX in the judge's emulator; None where it would run for long, or the PTX calls a function."""
    facts = judge("facts").ptx_facts(kernel.ptx, kernel.name)
    if (
        "\tcall" in kernel.ptx
        or prod(kernel.launch.blocks) * prod(kernel.launch.threads) * facts["instructions"] > MOST_WORK
    ):
        return None
    slices = slices_of(kernel.fusion, kernel.choice)
    # The emulator takes initializers that leave out zeros at the end for the whole array.
    ptx = PACKED.sub(_padded, kernel.ptx)

    def run(inputs: Sequence[Any], outputs: Sequence[tuple[Sequence[int], Any]]) -> list[Any]:
        buffers: dict[int, Any] = {}
        for array, slice_ in zip(map(packed_array, inputs), slices, strict=False):
            buffers.setdefault(slice_, np.array(array))
        written = slices[len(inputs) :]
        for output, slice_ in zip(outputs, written, strict=True):
            buffers.setdefault(slice_, np.zeros(*buffer_form(*output)))
        order = [buffers[slice_] for slice_ in slices]
        judge("ptxrun").run(ptx, kernel.name, kernel.launch.blocks, kernel.launch.threads, order, stats={})
        return [
            unpacked_array(buffers[slice_].reshape(buffer_form(*output)[0]), *output)
            for output, slice_ in zip(outputs, written, strict=True)
        ]

    return run_fusion(kernel.fusion, arrays, run)


def _padded(match: re.Match[str]) -> str:
    numbers = match[2].split(", ") + ["0"] * int(match[1])
    return f"[{match[1]}] = {{{', '.join(numbers[: int(match[1])])}}}"


def faults(kernel: Kernel, arrays: Sequence[Any]) -> list[str]:
    """The codes of what the sanitizer says of the first stage, but those that the reference explains."""
    module = read_module(kernel.stage("initial"), "initial")
    places = module_arguments(module)
    outputs = [np.zeros(shape_of(root), numpy_dtype(element_type_of(root))) for root in kernel.fusion.roots]
    buffers = [np.array(array).view(place.dtype) for array, place in zip([*arrays, *outputs], places, strict=True)]
    codes = [fault.code for fault in sanitize(module, kernel.launch, places, buffers, stage="initial")]
    # Packed transposes read beyond the borders of their tiles and drop what they read.
    explained = {"uninitialized-read"} if kernel.choice.kind is EmitterKind.TRANSPOSE else set()
    return [code for code in codes if code not in explained]


def problem(fusion: Fusion, text: str, seed: int) -> str:
    """What is wrong with the kernel of a fusion, or nothing."""
    kernel = emit(fusion)
    arrays = random_arrays(kernel.fusion, seed)
    expected = run_on_xla(text, arrays[: len(fusion.parameters)])
    ways = {"host": kernel.run(*arrays, on="host"), "interpreter": kernel.run(*arrays)}
    if (results := emulated(kernel, arrays)) is not None:
        ways["PTX"] = results
    wrong = [f"{way}: {item}" for way, actual in ways.items() if (item := difference(expected, actual))]
    if wrong and all(is_as_near(text, arrays[: len(fusion.parameters)], expected, actual) for actual in ways.values()):
        wrong = []
    return "; ".join([*wrong, *faults(kernel, arrays)])


def is_as_near(text: str, arrays: Sequence[Any], expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Whether results of f32 are as near to those of f64 as XLA's: sums of both signs depend on their order."""
    if {array.dtype for array in (*arrays, *expected)} != {np.dtype(np.float32)}:
        return False
    exact = run_on_xla(text.replace("f32", "f64"), [array.astype(np.float64) for array in arrays])
    return all(
        relative(want.astype(np.float32), np.asarray(got)) <= 2 * relative(want.astype(np.float32), theirs) + NEAR
        for want, got, theirs in zip(exact, actual, expected, strict=True)
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_kernels_of_drawn_fusions(part: int) -> None:
    """None is refused, and every way to run one gives what XLA:CPU gives."""
    problems: dict[str, str] = {}
    count = 0
    for count, (fusion, text) in enumerate(drawn(part), start=1):
        try:
            item = problem(fusion, text, count)
        except Exception as error:
            item = f"{type(error).__name__}: {error}"
        if item:
            problems[text] = item
    assert not problems, "\n".join(f"{item}\n{text}" for text, item in problems.items())
    assert 0 < count == COUNT // PARTS
