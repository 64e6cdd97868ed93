"""The protocols of what plugins add to kernels: emitters, and passes over modules of kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol


class KernelEmitter(Protocol):
    """Makes the kernels of fusions that it accepts."""

    @property
    def name(self) -> str:
        """The name, for lists and reasons."""
        ...

    def accepts(self, fusion: Any) -> str:
        """Return why the emitter takes a fusion (`shardy_py.kernels.Fusion`), or "" where it does not."""
        ...

    def launch(self, fusion: Any, device: Any) -> Any:
        """Return the blocks and threads of a fusion: a `shardy_py.kernels.Launch`.

        Args:
            fusion: The fusion.
            device: The device, a `shardy_py.kernels.DeviceSpec`.
        """
        ...

    def entry(self, functions: Any, launch: Any) -> Any:
        """Return the entry function, an op ``func.func`` of xDSL.

        Args:
            functions: The functions of the fusion, which compute its elements: a ``FunctionEmitter``.
            launch: What `launch` returned.
        """
        ...


class KernelModulePass(Protocol):
    """A pass over the modules of kernels; a class that is made without arguments.

    Attributes:
        name: The name, as ``--stage`` takes it.
        of_kernels: True, which tells it from passes over programs.
        runs_before: The name of the pass before whose first run it runs; or it has ``runs_after``, and runs after the
            last run of that one.
    """

    name: ClassVar[str]
    of_kernels: ClassVar[bool]

    def run(self, module: Any, context: Any) -> None:
        """Rewrite a module of xDSL in place.

        Args:
            module: The module.
            context: What else is known, such as ``context.device``.
        """
        ...
