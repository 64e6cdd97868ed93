"""Programs over several meshes on virtual devices of numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.mpmd.execution import PipelineExecution
from shardy_py.mpmd.pipeline_program import PipelineProgram
from shardy_py.plugins import Registry
from shardy_py.support.arguments import checked
from shardy_py.testing.numeric.bench import Arrays
from shardy_py.testing.sharded.interpreter import Functions
from shardy_py.testing.sharded.run import run_sharded
from shardy_py.values import frozen


@frozen(eq=False)
class VirtualRuntime:
    """Meshes of virtual devices: each fragment runs on shards, and is compared with itself on whole tensors.

    Args:
        functions: The function of each op name; see `run_sharded`.
        registry: What is known about ops.
    """

    functions: Functions
    registry: Registry

    def function(self, text: str, mesh: str) -> Callable[..., Arrays]:
        """Return what runs a module on the virtual devices of its mesh."""
        return partial(self._run, text, mesh)

    def transfer(self, value: Any, mesh: str) -> Any:
        """Return the array: arrays of numpy are on no mesh."""
        return value

    def _run(self, text: str, mesh: str, *arrays: Any) -> Arrays:
        outcome = run_sharded(text, self.functions, None, *arrays, registry=self.registry)
        if not outcome.ok:
            message = f"a fragment on {mesh} differs on its devices: {outcome.difference}"
            raise VerificationError(Diagnostic("different-fragment", message, hint="check the rules of its ops"))
        return outcome.found


@checked
def run_pipeline(program: PipelineProgram, functions: Functions, *arrays: Any) -> list[Any]:
    """Run a program over several meshes on virtual devices of numpy, in any dialect.

    Each fragment runs on the virtual devices of its mesh, in the order of the schedule.

    Args:
        program: What `shardy_py.mpmd.partition` returns.
        functions: The function of each op name; see `run_sharded`.
        arrays: One array per argument.

    Returns:
        One whole array per result.

    Raises:
        OptionError: an op has no function, or there is not one array per argument.
        VerificationError: the devices of a mesh do not compute what its fragment computes on whole tensors.
    """
    return PipelineExecution.of(program, VirtualRuntime(functions, program.registry))(*arrays)
