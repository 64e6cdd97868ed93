"""Kernels: a fusion, its emitter and launch, and its module after every pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from shardy_py.emitters.device import H100, DeviceSpec
from shardy_py.emitters.fusion.choose import Choice, EmitterKind, choose
from shardy_py.emitters.fusion.fusion import Fusion
from shardy_py.emitters.launch.grid import Launch
from shardy_py.emitters.launch.launches import launch_of
from shardy_py.emitters.partition import partition
from shardy_py.errors import Diagnostic, UnsupportedError, require_library

INITIAL = "initial"


@frozen
class Kernel:
    """A kernel for one fusion.

    Args:
        name: Its name.
        choice: The emitter, and why.
        launch: Its blocks and threads.
        stages: The text of the module before the first pass, under ``initial``, and after each one, under its number
            and name: ``03.erase-dead-functions``.
    """

    name: str
    choice: Choice
    launch: Launch
    stages: Mapping[str, str]

    @property
    def text(self) -> str:
        """The module after the last pass."""
        return list(self.stages.values())[-1]


def emit(fusion: Fusion, *, device: DeviceSpec = H100, spelling: Literal["xla_gpu", "xla"] = "xla_gpu") -> Kernel:
    """Return the kernel of a fusion.

    Args:
        fusion: The fusion.
        device: The device that it is for.
        spelling: The names of the dialect in the texts of the stages.

    Raises:
        UnsupportedError: an op has no scalar body, or the fusion's emitter has no entry function.
        OptionError: the libraries of the extra ``codegen`` are missing.
    """
    require_library("xdsl", purpose="kernels need", extra="codegen")
    from xdsl.dialects import builtin

    from shardy_py.emitters.dialect.text import print_kernel_module
    from shardy_py.emitters.elemental.functions import FunctionEmitter
    from shardy_py.emitters.entry.loop import loop_entry
    from shardy_py.emitters.passes.base import KernelContext, KernelPass
    from shardy_py.emitters.passes.pipeline import LOOP_PIPELINE, run_passes

    choice = choose(fusion)
    if choice.kind is not EmitterKind.LOOP:
        message = f"the fusion is for the emitter {choice.kind.value}: {choice.reason}"
        hint = "kernels of the loop emitter can be emitted; launch and functions are known for all"
        raise UnsupportedError(Diagnostic("no-entry-function", message, hint=hint))
    launch = launch_of(fusion, choice, device)
    functions = FunctionEmitter(fusion, partition(fusion, choice))
    module = builtin.ModuleOp([loop_entry(functions, launch), *functions.functions()])
    stages = {INITIAL: print_kernel_module(module, spelling=spelling)}

    def keep(number: int, step: KernelPass, current: builtin.ModuleOp) -> None:
        stages[f"{number:02}.{step.name}"] = print_kernel_module(current, spelling=spelling)

    run_passes(module, LOOP_PIPELINE, context=KernelContext(device), after_pass=keep)
    module.verify()
    return Kernel(fusion.name, choice, launch, stages)
