"""Methods of `Result` that give the program back to PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from warnings import warn

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.transforms.reduced_shardings import CODE as REDUCED

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult as _Base
    from shardy_py.torch.parallel import ParallelPlan, Placement, Redistribution, TorchProgram
    from shardy_py.torch.result_forms import TorchForms
else:
    _Base = object


class TorchMethods(_Base):
    """Methods of a result that make placements, plans and programs of PyTorch."""

    def placements(self, value: Any) -> tuple[Placement, ...]:
        """Return how a tensor is placed along each dimension of the mesh, in DTensor's words.

        Args:
            value: What `sharding` takes, such as the fully qualified name of a parameter.

        Raises:
            OptionError: there is no such value.
            UnsupportedError: placements cannot say it.
        """
        return self.torch_forms.placements(self.value(value), str(value))

    def parallelize_plan(
        self, *, axis: str | None = None, verify: bool = True, warnings: list[Diagnostic] | None = None
    ) -> ParallelPlan:
        """Return the style of each linear and embedding layer of a program of PyTorch, by module path.

        `shardy_py.torch.parallel.to_parallel_styles` makes of it what ``parallelize_module`` takes. A layer whose
        output an op behind it cannot take in shards gathers it. Parameters that are sharded, but by no style, are
        warned of, and so are given shardings that propagation reduced, as the plan has what is left of them.

        Args:
            axis: The dimension of the mesh; by default the only one along which weights of such layers are sharded.
            verify: Whether to check that a module by the plan computes what it computes without one.
            warnings: Gets what no style says; without it, Python's `warnings` do.

        Raises:
            OptionError: it is no program of PyTorch, or weights are sharded along several dimensions.
            VerificationError: the plan does not compute what the program does.
        """
        plan = self.torch_forms.plan(axis, verify=verify)
        reduced = [item for item in self.warnings if item.code == REDUCED]
        plan = evolve(plan, warnings=(*reduced, *plan.warnings))
        if warnings is not None:
            warnings.extend(plan.warnings)
        else:
            for item in plan.warnings:
                warn(str(item), stacklevel=2)
        return plan

    def distribute(self, module: Any, device_mesh: Any) -> dict[str, Any]:
        """Return the parameters and buffers of a module as DTensors, by fully qualified name.

        Args:
            module: The module that was exported.
            device_mesh: A ``DeviceMesh`` with the dimensions of the mesh.

        Raises:
            OptionError: it is no program of PyTorch, or module or mesh do not fit it.
        """
        return self.torch_forms.distribute(module, device_mesh)

    @cached_property
    def redistributions(self) -> tuple[Redistribution, ...]:
        """The communication that runs in a program of PyTorch, by node, module and source line.

        It stands where `to_torch` runs it, moved to where the fewest bytes are sent;
        ``torch_forms.redistributions(optimize=False)`` has it where propagation left it.

        Raises:
            OptionError: it is no program of PyTorch.
        """
        return self.torch_forms.redistributions()

    def to_torch(
        self,
        device_mesh: Any,
        *,
        state: Mapping[str, Any] | None = None,
        strict: bool = False,
        optimize: bool = True,
    ) -> TorchProgram:
        """Return the program on the processes of a device mesh: each runs it on its shards, with collectives between.

        Call it with the whole inputs; it returns the whole outputs. Inputs may have other sizes than those of the
        example where the program was exported with dynamic ones. Gradients are not recorded: a training step holds its
        own backward pass.

        Args:
            device_mesh: A ``DeviceMesh`` with the dimensions of the mesh; every process calls this.
            state: The parameters and buffers by name; by default those of the exported program.
            strict: Whether an op without a local form is an error; otherwise it runs on gathered operands.
            optimize: Whether to send the fewest bytes; otherwise each op communicates as propagation left it.

        Raises:
            OptionError: it is no program of PyTorch, or the device mesh does not fit.
            ShardyError: an op has no local form.
        """
        from shardy_py.torch.parallel.other_sizes import other_sizes

        forms = self.torch_forms
        forms.require_torch()
        sizes = other_sizes(self, strict=strict, optimize=optimize)
        return forms.on_processes(device_mesh, state=state, strict=strict, optimize=optimize, sizes=sizes)

    @cached_property
    def torch_forms(self) -> TorchForms:
        """The forms of the program for PyTorch."""
        from shardy_py.torch.result_forms import TorchForms

        return TorchForms(self.program, self.main, self.registry, is_explicit=self.has_explicit_collectives)
