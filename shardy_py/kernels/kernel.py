"""Kernels: a fusion, its emitter and launch, its module after every pass, and what machines run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, field

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError, did_you_mean
from shardy_py.indexing import IndexingMap
from shardy_py.kernels.device import DeviceLike, DeviceSpec, get_device
from shardy_py.kernels.fusion.choose import Choice, choose, slices_of
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.fusion.refusals import problems_of_values
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.launches import launch_of, maps_of
from shardy_py.kernels.partition import Partition, Subgraph, partition
from shardy_py.kernels.requirements import require_xdsl
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.values import frozen

if TYPE_CHECKING:
    from xdsl.dialects import builtin

    from shardy_py.kernels.lower.host import HostKernel
    from shardy_py.kernels.page.stages_page import StagesPage
    from shardy_py.kernels.run.device import DeviceKernel, Timing
    from shardy_py.kernels.run.kernel import Output

Spelling = Literal["xla_gpu", "xla"]

INITIAL, TO_LLVM = "initial", "to-llvm"


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
        libdevice: The file of NVIDIA's functions for devices, or its folder; None for that of NVIDIA's wheels.
    """

    fusion: Fusion
    device: DeviceSpec
    choice: Choice
    launch: Launch
    partition: Partition = field(repr=False)
    spelling: Spelling = "xla_gpu"
    libdevice: Path | None = None

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
        """The maps from threads and blocks to the indices of elements, of the loops of the entry function."""
        return maps_of(self.fusion, self.choice, self.launch, self.device)

    def module(
        self, after_pass: Callable[[str, builtin.ModuleOp], None] | None = None, *, for_host: bool = False
    ) -> builtin.ModuleOp:
        """Return a new module after all passes.

        Args:
            after_pass: Called after every pass with its name and the module.
            for_host: Whether loops of more than a few steps, and reductions over lanes, stay what they are.

        Raises:
            UnsupportedError: an op has no scalar body.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        with no_garbage_collection():
            module = self.initial_module()
            self._run_passes(module, after_pass, for_host=for_host)
        return module

    @cached_property
    def _last(self) -> builtin.ModuleOp:
        """The module after all passes, for those that leave it as it is."""
        return self.module()

    @cached_property
    def stages(self) -> Mapping[str, str]:
        """The text of the module before the first pass, ``initial``, and after each one: ``03.erase-dead-functions``.

        Raises:
            UnsupportedError: an op has no scalar body.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        module = self.initial_module()
        from shardy_py.kernels.dialect.text import print_kernel_module

        stages = {INITIAL: print_kernel_module(module, spelling=self.spelling)}

        def keep(name: str, current: builtin.ModuleOp) -> None:
            # The module before the first pass is a stage without a number.
            stages[f"{len(stages) - 1:02}.{name}"] = print_kernel_module(current, spelling=self.spelling)

        self._run_passes(module, keep)
        return stages

    @property
    def text(self) -> str:
        """The module after the last pass."""
        from shardy_py.kernels.dialect.text import print_kernel_module

        return print_kernel_module(self._last, spelling=self.spelling)

    @cached_property
    def llvm(self) -> str:
        """The kernel for the device as text for LLVM.

        Raises:
            UnsupportedError: an op has no scalar body or no instructions, or a function needs libdevice and there
                is none.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        if not self.device.capability:
            message = f"{self.device.name} is not a device of NVIDIA: its kernels are neither LLVM's for NVPTX nor PTX"
            hint = "print the module by --stage, or run it in the interpreter"
            raise UnsupportedError(Diagnostic("no-ptx", message, op=self.name, hint=hint))
        module = self._last
        from shardy_py.kernels.lower.literals import nvptx
        from shardy_py.kernels.lower.llvm import llvm_text
        from shardy_py.kernels.requirements import find_libdevice

        return llvm_text(module, self.launch, nvptx(has_libdevice=find_libdevice(self.libdevice) is not None))

    @cached_property
    def ptx(self) -> str:
        """The kernel as PTX.

        Raises:
            UnsupportedError: as for `llvm`.
            OptionError: the libraries of the extra ``codegen`` are missing.
            VerificationError: LLVM refuses the kernel.
        """
        from shardy_py.kernels.lower.machine import ptx_text
        from shardy_py.kernels.requirements import find_libdevice

        return ptx_text(self.llvm, self.name, self.device, find_libdevice(self.libdevice))

    @property
    def sass(self) -> str:
        """The instructions of the device, by NVIDIA's ``ptxas`` and ``nvdisasm`` where these are installed.

        Raises:
            UnsupportedError: as for `llvm`.
            OptionError: one of the programs is missing.
            VerificationError: LLVM or ``ptxas`` refuses the kernel.
        """
        from shardy_py.kernels.machine_code import sass_text

        return sass_text(self.ptx, self.device)

    def stage(self, name: str) -> str:
        """Return the text of the module at a stage.

        Args:
            name: Its name; of a pass its number, its name (the last one of this name counts), or both. ``to-llvm`` is
                the text for LLVM.

        Raises:
            OptionError: there is no such stage.
        """
        if name == TO_LLVM:
            return self.llvm
        from shardy_py.kernels.dialect.text import print_kernel_module

        if name == INITIAL:
            # No pass has to run for it.
            return print_kernel_module(self.initial_module(), spelling=self.spelling)
        if "stages" in vars(self):
            # All were printed before.
            texts = [text for stage, text in self.stages.items() if name in (stage, *stage.split(".", 1))]
            if texts:
                return texts[-1]
        known: list[str] = []
        found: builtin.ModuleOp | None = None

        def keep(pass_: str, current: builtin.ModuleOp) -> None:
            nonlocal found
            number = f"{len(known):02}"
            known.append(f"{number}.{pass_}")
            if name in (known[-1], pass_, number):
                found = current.clone()

        self.module(keep)
        if found is not None:
            return print_kernel_module(found, spelling=self.spelling)
        passes = dict.fromkeys([INITIAL, *[stage.partition(".")[2] for stage in known]])
        hint = did_you_mean(name, [*passes, TO_LLVM], otherwise=f"there are {', '.join([INITIAL, *known])}")
        raise OptionError(Diagnostic("unknown-stage", f"there is no stage {name!r}", hint=hint))

    def page(self) -> StagesPage:
        """Return a page with the stages, PTX and machine code beside each other, linked by op, and the index maps.

        Raises:
            UnsupportedError: as for `llvm`.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        require_xdsl()
        from shardy_py.kernels.page.stages_page import stages_page

        return stages_page(self)

    def run(
        self, *arrays: Any, on: Literal["interpreter", "host", "gpu"] = "interpreter", stage: str | None = None
    ) -> list[Any]:
        """Return what the kernel computes, by running the threads of its whole grid on this machine.

        Args:
            arrays: An array of numpy for every parameter.
            on: ``interpreter`` checks every access, ``host`` runs machine code of the last stage, ``gpu`` runs the PTX
                on a GPU of this machine.
            stage: The stage that the interpreter runs; by default the last one before the text for LLVM.

        Raises:
            VerificationError: arrays that do not fit; in the interpreter also an access outside of a tensor, a race, a
                barrier that not all threads of a block reach.
            OptionError: there is no such stage, it cannot be run so, or there is no GPU.
        """
        from shardy_py.kernels.run.arrays import run_fusion

        if on != "interpreter":
            if stage is not None:
                message, hint = f"the {on} runs the last stage only", 'leave stage out, or give on="interpreter"'
                raise OptionError(Diagnostic("stage-on-host", message, hint=hint))
            return run_fusion(self.fusion, arrays, self.host.run if on == "host" else self._on_gpu(self.ptx).run)
        module = self._last if stage is None else self.parsed(stage)
        from shardy_py.kernels.run.kernel import run_kernel

        def interpret(inputs: Sequence[Any], outputs: Sequence[Output]) -> list[Any]:
            slices = slices_of(self.fusion, self.choice)
            warp = self.device.threads_per_warp
            return run_kernel(module, self.launch, inputs, outputs, stage=stage or "", slices=slices, warp=warp)

        return run_fusion(self.fusion, arrays, interpret, stage=stage or "")

    def time(self, *arrays: Any, ptx: str | None = None) -> Timing:
        """Return how long the kernel takes on a GPU of this machine.

        Args:
            arrays: An array of numpy for every parameter.
            ptx: PTX of the same kernel from elsewhere, which is timed instead of its own.

        Raises:
            OptionError: there is no GPU, or a library is missing.
            VerificationError: arrays that do not fit, or the GPU's driver refuses the kernel.
        """
        from shardy_py.kernels.run.arrays import run_fusion

        kernel = self._on_gpu(self.ptx if ptx is None else ptx)
        timings: list[Timing] = []

        def run(inputs: Sequence[Any], outputs: Sequence[Output]) -> list[Any]:
            timings.append(kernel.time(inputs, outputs))
            return kernel.run(inputs, outputs)

        run_fusion(self.fusion, arrays, run)
        return timings[0]

    def _on_gpu(self, ptx: str) -> DeviceKernel:
        from shardy_py.kernels.run.device import DeviceKernel, entry_name, entry_threads

        launch = evolve(self.launch, threads=entry_threads(ptx) or self.launch.threads)
        return DeviceKernel(ptx, entry_name(ptx), launch, slices_of(self.fusion, self.choice))

    @cached_property
    def host(self) -> HostKernel:
        """The kernel as machine code of this processor.

        Raises:
            UnsupportedError: as for `llvm`.
            OptionError: the libraries of the extra ``codegen`` are missing.
            VerificationError: LLVM refuses the kernel.
        """
        from shardy_py.kernels.lower.host import compile_host

        return compile_host(self.module(for_host=True), self.launch, warp=self.device.threads_per_warp)

    def parsed(self, stage: str) -> builtin.ModuleOp:
        """Return a new module, as it is at a stage.

        Raises:
            OptionError: there is no such stage, or it is not a module.
        """
        if stage == TO_LLVM:
            message, hint = "the interpreter does not run text for LLVM", 'give on="host", or another stage'
            raise OptionError(Diagnostic("stage-in-interpreter", message, hint=hint))
        text = self.stage(stage)
        from shardy_py.kernels.dialect.text import parse_kernel_module

        return parse_kernel_module(text)

    def initial_module(self) -> builtin.ModuleOp:
        """Return a new module before the first pass.

        Raises:
            UnsupportedError: an op has no scalar body.
            OptionError: the libraries of the extra ``codegen`` are missing.
        """
        require_xdsl()
        from xdsl.dialects import builtin

        from shardy_py.kernels.elemental.functions import FunctionEmitter
        from shardy_py.kernels.entry.entries import entry_function
        from shardy_py.kernels.locations import locate_entry

        functions = FunctionEmitter(self.fusion, self.partition)
        entry = entry_function(functions, self.choice, self.launch, self.device)
        heroes = {hero for hero in self.choice.heroes if hero is not None} or {
            root.defining_op for root in self.fusion.roots if root.defining_op is not None
        }
        locate_entry(entry, heroes)
        return builtin.ModuleOp([entry, *functions.functions()])

    def _run_passes(
        self,
        module: builtin.ModuleOp,
        after_pass: Callable[[str, builtin.ModuleOp], None] | None,
        *,
        for_host: bool = False,
    ) -> None:
        from shardy_py.kernels.entry.arguments import ENTRY
        from shardy_py.kernels.passes.base import KernelContext, functions
        from shardy_py.kernels.passes.pipeline import (
            HOST_PIPELINE,
            LOOP_PIPELINE,
            verify_ops,
            with_plugin_passes,
        )
        from shardy_py.kernels.passes.shared_memory import check_barriers, check_shared_memory
        from shardy_py.transforms.run import passes_of, run

        # Bodies of ops may be wrong, which the entry function only calls; what passes make of right ones LLVM verifies.
        for function in functions(module):
            if ENTRY not in function.attributes:
                verify_ops(function)
        check_shared_memory(module, self.device)
        check_barriers(module)
        has_warps = self.device.threads_per_warp > 1
        pipeline = LOOP_PIPELINE if has_warps and not for_host else HOST_PIPELINE
        passes = with_plugin_passes(passes_of(pipeline), self.fusion.registry)
        run(module, passes, KernelContext(self.device), after_pass)


def emit(
    fusion: Fusion,
    *,
    device: DeviceLike = "h100",
    spelling: Spelling = "xla_gpu",
    libdevice: str | Path | None = None,
) -> Kernel:
    """Return the kernel of a fusion.

    Args:
        fusion: The fusion.
        device: The device that it is for: a spec, its name or a TOML file.
        spelling: The names of the dialect in the texts of the stages.
        libdevice: The file of NVIDIA's functions for devices, or its folder; by default ``SHARDY_LIBDEVICE``, then what
            NVIDIA's wheels hold. Without it functions are computed by instructions, as far as these reach.

    Raises:
        OptionError: this is not a fusion, or there is no such device.
        UnsupportedError: a result has no elements, or none that a kernel computes, or a scatter cannot update the
            memory of its operand.
    """
    if not isinstance(fusion, Fusion):
        message, hint = f"a {type(fusion).__name__} is not a fusion", "read one from text by read_fusion"
        raise OptionError(Diagnostic("not-a-fusion", message, hint=hint))
    if problems := tuple(problems_of_values(fusion.roots, ())):
        raise UnsupportedError(*problems)
    spec = get_device(device, known=fusion.registry.devices)
    library = None if libdevice is None else Path(libdevice)
    choice = choose(fusion, spec)
    if isinstance(choice.form, RootScatter):
        fusion = choice.form.fusion
    return Kernel(fusion, spec, choice, launch_of(fusion, choice, spec), partition(fusion, choice), spelling, library)
