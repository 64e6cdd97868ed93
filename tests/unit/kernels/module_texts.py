"""Modules of kernels for the tests of passes, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.base import KernelContext, KernelPass
from shardy_py.kernels.passes.pipeline import HOST_PIPELINE, LOOP_PIPELINE
from shardy_py.kernels.run.kernel import run_kernel
from shardy_py.transforms.run import passes_of
from shardy_py.transforms.run import run as run_passes

ONE_THREAD = Launch((1, 1, 1), (1, 1, 1))


def after(text: str, *passes: KernelPass) -> str:
    """The text of a module after some passes."""
    module = parse_kernel_module(text)
    for step in passes:
        step.run(module, KernelContext())
        module.verify()
    return print_kernel_module(module)


def run_loop_pipeline(module: Any, after_pass: Callable[[str, Any], None] | None = None) -> None:
    """Run all passes of kernels over a module."""
    run_passes(module, passes_of(LOOP_PIPELINE), KernelContext(), after_pass)


def run_host_pipeline(module: Any) -> None:
    """Run all passes of kernels for the host over a module."""
    run_passes(module, passes_of(HOST_PIPELINE), KernelContext())


def function(body: str, arguments: str = "%x: tensor<64xf32>, %o: tensor<64xf32>, %i: index, %c: i1") -> str:
    """The text of a module with one entry function that returns `%r`, a tensor of 64 elements."""
    return f"""builtin.module {{
  func.func @main({arguments}) -> tensor<64xf32> attributes {{xla.entry}} {{
    {body}
    func.return %r : tensor<64xf32>
  }}
}}"""


def run(text: str, *arrays: Any, like: Any = None, launch: Launch = ONE_THREAD, slices: Sequence[int] = ()) -> Any:
    """What a module writes to its only result.

    Args:
        text: The module.
        arrays: The arrays that it reads.
        like: An array of the result's shape and type; by default the first one.
        launch: The grid; by default one thread.
        slices: The buffers of arrays and result, if they are not all different.
    """
    like = arrays[0] if like is None else like
    numbers = slices or range(len(arrays) + 1)
    outputs = [(like.shape, like.dtype)]
    (actual,) = run_kernel(parse_kernel_module(text), launch, [*map(np.asarray, arrays)], outputs, slices=numbers)
    return actual
