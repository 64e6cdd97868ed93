"""Programs over several meshes: stages, transfers, pipeline schedules, their simulation and execution.

    import shardy_py as sdy

    step = sdy.mpmd.jit(step, topology={"m0": {"x": 2}, "m1": {"x": 2}}, assignment={"stage0": "m0", "stage1": "m1"})

Each name comes, with what it needs, when it is looked up first.
"""

from typing import TYPE_CHECKING

from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.mpmd.explanations.explain import PipelineExplanation
    from shardy_py.mpmd.jax_functions import broadcast, call, fori_loop, named_computation, named_tensor, reduce
    from shardy_py.mpmd.jit import jit
    from shardy_py.mpmd.pipeline_plan import PipelineOutcome, PipelinePlan, plan
    from shardy_py.mpmd.pipeline_program import PipelineProgram, partition
    from shardy_py.mpmd.program_timeline import ProgramTimeline
    from shardy_py.mpmd.schedules.actions import Action, ActionKind
    from shardy_py.mpmd.schedules.builders import SCHEDULES, build_schedule
    from shardy_py.mpmd.schedules.schedule import PipelineSchedule
    from shardy_py.mpmd.schedules.search import search_schedule
    from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate
    from shardy_py.mpmd.torch_pipelining import torch_stages

__all__ = [
    "SCHEDULES",
    "Action",
    "ActionKind",
    "PipelineExplanation",
    "PipelinePlan",
    "PipelineProgram",
    "PipelineSchedule",
    "PipelineOutcome",
    "ProgramTimeline",
    "StageTimes",
    "Timeline",
    "broadcast",
    "build_schedule",
    "call",
    "fori_loop",
    "jit",
    "named_computation",
    "named_tensor",
    "partition",
    "plan",
    "reduce",
    "search_schedule",
    "simulate",
    "torch_stages",
]

__getattr__ = look_up_in(
    __name__,
    {
        f"{__name__}.explanations.explain": "PipelineExplanation",
        f"{__name__}.jax_functions": "broadcast call fori_loop named_computation named_tensor reduce",
        f"{__name__}.jit": "jit",
        f"{__name__}.pipeline_program": "PipelineProgram partition",
        f"{__name__}.pipeline_plan": "PipelinePlan PipelineOutcome plan",
        f"{__name__}.program_timeline": "ProgramTimeline",
        f"{__name__}.schedules.actions": "Action ActionKind",
        f"{__name__}.schedules.builders": "SCHEDULES build_schedule",
        f"{__name__}.schedules.schedule": "PipelineSchedule",
        f"{__name__}.schedules.search": "search_schedule",
        f"{__name__}.schedules.simulation": "StageTimes Timeline simulate",
        f"{__name__}.torch_pipelining": "torch_stages",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
