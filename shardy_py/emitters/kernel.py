"""Kernels: a fusion, its emitter and launch, and its module after every pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from shardy_py.emitters.device import DeviceLike, DeviceSpec, get_device
from shardy_py.emitters.fusion.choose import Choice, EmitterKind, choose
from shardy_py.emitters.fusion.fusion import Fusion, shape_of
from shardy_py.emitters.launch.grid import Launch, loop_map
from shardy_py.emitters.launch.launches import launch_of
from shardy_py.emitters.partition import Partition, Subgraph, partition
from shardy_py.errors import Diagnostic, OptionError, did_you_mean, require_library
from shardy_py.indexing import IndexingMap

if TYPE_CHECKING:
    from xdsl.dialects import builtin

    from shardy_py.emitters.passes.base import KernelPass

Spelling = Literal["xla_gpu", "xla"]

INITIAL = "initial"
_SHAPED_LIKE_RESULT = (EmitterKind.LOOP,)


@frozen(eq=False, slots=False)
class Kernel:
    """A kernel for one fusion.

    Emitter, launch and functions are there for every fusion; what comes after them is made when it is asked for.

    Args:
        fusion: The fusion.
        device: The device that it is for.
        choice: The emitter, and why.
        launch: Its blocks and threads.
        partition: Its functions.
        spelling: The names of the dialect in texts.
    """

    fusion: Fusion
    device: DeviceSpec
    choice: Choice
    launch: Launch
    partition: Partition = field(repr=False)
    spelling: Spelling = "xla_gpu"

    @property
    def name(self) -> str:
        """The name of the entry function."""
        return self.fusion.name

    @property
    def functions(self) -> tuple[Subgraph, ...]:
        """The functions that compute elements, callers first."""
        return self.partition.emitted(self.fusion)

    @property
    def maps(self) -> tuple[IndexingMap, ...]:
        """The maps from threads and blocks to the indices of elements, of loops over a result."""
        if self.choice.kind not in _SHAPED_LIKE_RESULT:
            return ()
        root = self.fusion.roots[0]
        return (loop_map(self.launch, shape_of(root), self.fusion.layout_of(root)),)

    def module(self, after_pass: Callable[[int, KernelPass, builtin.ModuleOp], None] | None = None) -> builtin.ModuleOp:
        """Return a new module after all passes.

        Args:
            after_pass: Called after every pass with its number, the pass and the module.

        Raises:
            UnsupportedError: an op has no scalar body, or the emitter has no entry function.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        module = self._initial()
        self._run_passes(module, after_pass)
        return module

    @cached_property
    def stages(self) -> Mapping[str, str]:
        """The text of the module before the first pass, ``initial``, and after each one: ``03.erase-dead-functions``.

        Raises:
            UnsupportedError: an op has no scalar body, or the emitter has no entry function.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        module = self._initial()
        from shardy_py.emitters.dialect.text import print_kernel_module

        stages = {INITIAL: print_kernel_module(module, spelling=self.spelling)}

        def keep(number: int, step: KernelPass, current: builtin.ModuleOp) -> None:
            stages[f"{number:02}.{step.name}"] = print_kernel_module(current, spelling=self.spelling)

        self._run_passes(module, keep)
        return stages

    @property
    def text(self) -> str:
        """The module after the last pass."""
        return list(self.stages.values())[-1]

    def stage(self, name: str) -> str:
        """Return the text of the module at a stage.

        Args:
            name: Its name; of a pass its number, its name (the last one of this name counts), or both.

        Raises:
            OptionError: there is no such stage.
        """
        for known, text in reversed(list(self.stages.items())):
            number, _, pass_ = known.partition(".")
            if name in (known, pass_, number):
                return text
        hint = did_you_mean(name, [INITIAL, *self.stages], otherwise=f"there are {', '.join(self.stages)}")
        raise OptionError(Diagnostic("unknown-stage", f"there is no stage {name!r}", hint=hint))

    def run(self, *arrays: Any, stage: str | None = None) -> list[Any]:
        """Return what the kernel computes, by running the threads of its whole grid on the host.

        Args:
            arrays: An array of numpy for every parameter.
            stage: The stage that runs; by default the last one.

        Raises:
            VerificationError: arrays that do not fit, an access outside of a tensor, a race, a barrier that not all
                threads of a block reach.
        """
        module = self.module() if stage is None else self._parsed(stage)
        from shardy_py.emitters.run.arrays import run_fusion

        return run_fusion(self.fusion, module, self.launch, arrays, stage=stage or "")

    def _parsed(self, stage: str) -> builtin.ModuleOp:
        text = self.stage(stage)
        from shardy_py.emitters.dialect.text import parse_kernel_module

        return parse_kernel_module(text)

    def _initial(self) -> builtin.ModuleOp:
        """Return a new module before the first pass."""
        require_library("xdsl", purpose="kernels need", extra="codegen")
        from xdsl.dialects import builtin

        from shardy_py.emitters.elemental.functions import FunctionEmitter
        from shardy_py.emitters.entry.entries import entry_function

        functions = FunctionEmitter(self.fusion, self.partition)
        entry = entry_function(functions, self.choice, self.launch)
        return builtin.ModuleOp([entry, *functions.functions()])

    def _run_passes(
        self, module: builtin.ModuleOp, after_pass: Callable[[int, KernelPass, builtin.ModuleOp], None] | None
    ) -> None:
        from shardy_py.emitters.passes.base import KernelContext
        from shardy_py.emitters.passes.pipeline import LOOP_PIPELINE, run_passes

        run_passes(module, LOOP_PIPELINE, context=KernelContext(self.device), after_pass=after_pass)
        module.verify()


def emit(fusion: Fusion, *, device: DeviceLike = "h100", spelling: Spelling = "xla_gpu") -> Kernel:
    """Return the kernel of a fusion.

    Args:
        fusion: The fusion.
        device: The device that it is for: a spec, its name or a TOML file.
        spelling: The names of the dialect in the texts of the stages.

    Raises:
        OptionError: there is no such device.
    """
    spec = get_device(device)
    choice = choose(fusion)
    return Kernel(fusion, spec, choice, launch_of(fusion, choice, spec), partition(fusion, choice), spelling)
