"""Differences between what two stages of a module compute, and the first pass behind which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from attrs import field

from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.opt.modules import KernelModule
from shardy_py.kernels.opt.run_module import ModuleArgument, ModuleResult, run_module
from shardy_py.kernels.opt.stages import ModuleStage, module_stages
from shardy_py.kernels.passes.base import KernelPass
from shardy_py.values import frozen

UNITS = 8
"""Units in the last place by which floats may differ: passes turn functions into others that round otherwise."""


@frozen
class ResultDifference:
    """Elements of a result that differ between two runs.

    Args:
        name: The result.
        count: How many differ.
        size: Of how many.
        index: The index of the first one.
        expected: Its value in the first run.
        actual: Its value in the second one.
        units: The largest difference, in units in the last place; None for integers.
    """

    name: str
    count: int
    size: int
    index: tuple[int, ...]
    expected: Any
    actual: Any
    units: float | None = None

    def __str__(self) -> str:
        place = f"[{', '.join(map(str, self.index))}]"
        text = f"{self.name}: {self.count} of {self.size} elements differ, the first at {place}: "
        text += f"{self.expected} and {self.actual}"
        return text if self.units is None else f"{text}; by {self.units:.3g} units in the last place at most"


def differences(
    expected: Sequence[ModuleResult], actual: Sequence[ModuleResult], *, units: float = UNITS
) -> list[ResultDifference]:
    """Return how results of a second run differ from those of a first one.

    Args:
        expected: The results of the first run. Those that only one run has are left out.
        actual: The results of the second one.
        units: The units in the last place by which floats may differ.
    """
    actual_arrays = {result.name: result.array for result in actual}
    pairs = [
        (result.name, result.array, actual_arrays[result.name]) for result in expected if result.name in actual_arrays
    ]
    results = (_difference(name, first, second, units) for name, first, second in pairs)
    return [item for item in results if item is not None]


def _difference(name: str, expected: Any, actual: Any, units: float) -> ResultDifference | None:
    if expected.dtype.kind == "c":
        expected, actual = (_parts(array) for array in (expected, actual))
    is_exact = expected.dtype.kind in "biu" or "int" in expected.dtype.name
    if is_exact:
        wrong, distance = np.asarray(expected != actual), None
    else:
        distance = _units(expected, actual)
        wrong = distance > units
    if not wrong.any():
        return None
    index = tuple(int(place) for place in np.argwhere(wrong)[0])
    largest = None if distance is None else float(distance.max())
    values = expected[index], actual[index]
    return ResultDifference(name, int(wrong.sum()), expected.size, index, *values, units=largest)


def _parts(array: Any) -> Any:
    return np.stack([array.real, array.imag], axis=-1)


def _units(expected: Any, actual: Any) -> Any:
    """Return the distances of floats in units in the last place of the larger one; two NaNs have none."""
    limits = ml_dtypes.finfo(expected.dtype)
    first, second = expected.astype(np.float64), actual.astype(np.float64)
    with np.errstate(all="ignore"):
        largest = np.maximum(np.maximum(np.abs(first), np.abs(second)), float(limits.smallest_normal))
        distances = np.abs(first - second) / (largest * float(limits.eps))
    is_equal = (first == second) | (np.isnan(first) & np.isnan(second))
    return np.where(is_equal, 0.0, np.where(np.isfinite(distances), distances, np.inf))


@frozen(eq=False)
class Culprit:
    """The first stage at which a module differs from itself before the first pass, or fails.

    Args:
        stage: The stage.
        before: The stage before it; the same one where the module fails before the first pass.
        number: The number of the pass; -1 before the first one.
        differences: How its results differ.
        error: What the pass, or the run behind it, ends with.
    """

    stage: ModuleStage
    before: ModuleStage
    number: int
    differences: tuple[ResultDifference, ...] = field(default=())
    error: Diagnostic | None = None

    @property
    def code(self) -> str:
        """The code of the error, or ``different-result``."""
        return "different-result" if self.error is None else self.error.code


def first_difference(
    kernel: KernelModule,
    passes: Sequence[KernelPass],
    device: DeviceSpec,
    launch: Launch,
    arguments: Sequence[ModuleArgument],
    arrays: Sequence[Any],
    *,
    units: float = UNITS,
) -> Culprit | None:
    """Return the first pass after which a module computes something else, or fails; None if there is none.

    Args:
        kernel: The module before the first pass.
        passes: The passes.
        device: The device that it is for.
        launch: The grid.
        arguments: Its arguments.
        arrays: An array for each.
        units: The units in the last place by which floats may differ.
    """
    expected: list[ModuleResult] = []
    before: ModuleStage | None = None
    for number, stage in enumerate(module_stages(kernel, passes, device)):
        known = before or stage
        if stage.error is not None:
            return Culprit(stage, known, number - 1, error=stage.error.diagnostics[0])
        if before is None or not stage.kernel.module.is_structurally_equivalent(before.kernel.module):
            try:
                results = run_module(
                    stage.kernel, launch, arguments, arrays, stage=stage.label, warp=device.threads_per_warp
                )
            except ShardyError as error:
                return Culprit(stage, known, number - 1, error=error.diagnostics[0])
            expected = results if before is None else expected
            if wrong := differences(expected, results, units=units):
                return Culprit(stage, known, number - 1, tuple(wrong))
        before = stage
    return None
