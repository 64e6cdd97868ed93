"""Plans for modules: where parameters, inputs and what is between them go, for the least time within a memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field

from shardy_py.api.main_function import find_main
from shardy_py.api.meshes import add_mesh, as_mesh
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.extensions import function
from shardy_py.ir.graph.program import Program
from shardy_py.torch.frontend import TORCH
from shardy_py.torch.modules.joint import JointTrace
from shardy_py.values import frozen

MACHINES = {"cpu": "cpu-8"}
"""Kind of device to the machine for which plans are made by default."""
DEFAULT_MACHINE = "h100-8"


@frozen
class PlanRequest:
    """Limits of a plan: the machine and its memory.

    Args:
        machine: The machine, as `shardy_py.plan` takes it.
        budget_memory: The bytes that a device may use at most, or None.
    """

    machine: Any
    budget_memory: float | None


@frozen(eq=False)
class AutomaticPlan:
    """A plan for a traced module; as text, its cost and the placements of inputs and parameters.

    Args:
        text: That text.
        written: The plan, which is written into the program of the module.
    """

    text: str
    written: Any = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def program(self, trace: JointTrace, device_mesh: Any) -> Program:
        """Return the op graph of the traced module with the plan."""
        program = TORCH.import_program(trace)
        add_mesh(program, as_mesh(device_mesh))
        self.written.write_into(program, find_main(program))
        return program


def plan_request(plan: str | None, machine: Any, budget_memory: float | None, kind: str) -> PlanRequest | None:
    """Return what a plan has to keep to, or None where there is to be none.

    Args:
        plan: ``auto``, or None.
        machine: The machine, or None for that of the kind of device.
        budget_memory: The bytes that a device may use at most, or None.
        kind: The kind of device.

    Raises:
        OptionError: the arguments do not go together.
    """
    if plan == "auto":
        return PlanRequest(MACHINES.get(kind, DEFAULT_MACHINE) if machine is None else machine, budget_memory)
    if plan is not None:
        raise OptionError(Diagnostic("unknown-plan", f"{plan!r} is not a valid plan", hint="give plan='auto', or None"))
    if machine is not None or budget_memory is not None:
        message = "machine and budget_memory are for a plan, and there is none"
        raise OptionError(Diagnostic("no-plan", message, hint="give plan='auto'"))
    return None


def automatic_plan(
    trace: JointTrace, device_mesh: Any, request: PlanRequest, fix: Mapping[Any, Any], options: Mapping[str, Any]
) -> AutomaticPlan:
    """Return the plan for a traced module, solved by the first process and broadcast to the others.

    Args:
        trace: The traced module.
        device_mesh: The devices.
        request: The constraints on the plan.
        fix: Shardings of inputs, parameters and buffers that it has to keep, as `shardy_py.propagate` takes them.
        options: Options of `shardy_py.propagate`; the plan is for those with another meaning than shardings.

    Raises:
        ShardyError: no plan fits into the memory, or an argument is not valid.
    """
    import torch.distributed as dist

    ranks = device_mesh.mesh.flatten().tolist()
    is_shared = sorted(ranks) == list(range(dist.get_world_size())) and len(ranks) > 1
    solution: list[Any] = [None]
    if not is_shared or dist.get_rank() == ranks[0]:
        try:
            solution = [_solved(trace, device_mesh, request, fix, options)]
        except Exception as error:
            # The others wait for it.
            solution = [error]
    if is_shared:
        dist.broadcast_object_list(solution, src=ranks[0])
    if isinstance(solution[0], Exception):
        raise solution[0]
    return AutomaticPlan(*solution[0])


def _solved(
    trace: JointTrace, device_mesh: Any, request: PlanRequest, fix: Mapping[Any, Any], options: Mapping[str, Any]
) -> tuple[str, Any]:
    plan = function("plan")(
        trace,
        as_mesh(device_mesh),
        machine=request.machine,
        budget_memory=request.budget_memory,
        fix=dict(fix),
        **options,
    )
    return plan.to_torch(), plan.written
