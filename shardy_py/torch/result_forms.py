"""The forms of a propagated program in PyTorch: placements, plans of modules, DTensors, programs on processes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardy_py.api.main_function import arguments_of
from shardy_py.api.summary import sharding_of
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.torch.parallel import (
    LocalTorchProgram,
    ParallelPlan,
    Placement,
    Redistribution,
    TorchProgram,
    distribute,
    explicit_program,
    list_redistributions,
    make_local_torch_program,
    make_plan,
    placements_of,
)
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.torch.parallel.other_sizes import OtherSizes
    from shardy_py.torch.result_methods import TorchMethods


def local_torch(result: TorchMethods) -> LocalTorchProgram:
    """Return the program that each device runs of a program of PyTorch.

    Raises:
        ShardyError: an op has no local form.
    """
    forms = result.torch_forms
    return make_local_torch_program(forms.explicit, forms.registry)


@define(frozen=True, slots=False, eq=False)
class TorchForms:
    """The forms of one propagated program; all but placements are for programs that come from PyTorch.

    Args:
        program: The propagated program.
        main: Its main function.
        registry: The definitions of ops.
        is_explicit: Whether all communication is explicit.
    """

    program: Program
    main: Op
    registry: Registry
    is_explicit: bool

    def placements(self, value: Value, name: str) -> tuple[Placement, ...]:
        """Return how a value is placed along each dimension of the mesh; ``name`` is for messages."""
        sharding = sharding_of(self.program, value, self.registry)
        return placements_of(sharding, self._mesh(sharding), name=name)

    def plan(self, axis: str | None, *, verify: bool = True) -> ParallelPlan:
        """Return the style of each linear and embedding layer, by module path."""
        self.require_torch()
        return make_plan(self.program, self.registry, axis=axis, verify=verify)

    def distribute(self, module: Any, device_mesh: Any) -> dict[str, Any]:
        """Return the parameters and buffers of a module as DTensors, by fully qualified name."""
        self.require_torch()
        arguments = arguments_of(self.main)
        placements = {
            name: self.placements(arguments[number], name)
            for number, item in enumerate(self.program.origin.arguments)
            if item.kind in ("parameter", "buffer")
            for name in item.names
        }
        return distribute(module, device_mesh, placements, self._mesh(None))

    def redistributions(self, *, optimize: bool = True) -> tuple[Redistribution, ...]:
        """Return the communication, by node, module and source line.

        Args:
            optimize: Whether it is moved to where the fewest bytes are sent, as `on_processes` does.
        """
        return list_redistributions(self.explicit, self.registry, is_explicit=True, optimize=optimize)

    def on_processes(
        self,
        device_mesh: Any,
        *,
        state: Mapping[str, Any] | None,
        strict: bool,
        optimize: bool,
        sizes: OtherSizes | None = None,
    ) -> TorchProgram:
        """Return the program on the processes of a device mesh; ``sizes`` is how to propagate it at other ones."""
        local = make_local_torch_program(self.explicit, self.registry, strict=strict, optimize=optimize)
        return TorchProgram(local, device_mesh, state, sizes)

    @cached_property
    def explicit(self) -> Program:
        """The program with all of its communication explicit.

        Raises:
            OptionError: it is no program of PyTorch.
        """
        self.require_torch()
        return self.program if self.is_explicit else explicit_program(self.program, self.registry)

    def require_torch(self) -> None:
        """Check that the program comes from PyTorch.

        Raises:
            OptionError: it does not.
        """
        if frontend_of(self.program).name != "torch":
            message = "the program does not come from PyTorch"
            raise OptionError(Diagnostic("not-torch", message, hint="propagate what torch.export.export returns"))

    def _mesh(self, sharding: TensorSharding | None) -> Mesh:
        """Return the mesh of a sharding, or without one the first of the program."""
        if sharding is not None and isinstance(sharding.mesh, Mesh):
            return sharding.mesh
        meshes = self.program.meshes
        return next(iter(meshes.values()), Mesh()) if sharding is None else meshes[str(sharding.mesh)]
