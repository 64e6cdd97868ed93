"""Programs over several meshes: stages, transfers, pipeline schedules, their simulation and execution.

    import shardy_py as sdy

    step = sdy.mpmd.jit(step, topology={"m0": {"x": 2}, "m1": {"x": 2}}, assignment={"stage0": "m0", "stage1": "m1"})

Each name comes, with what it needs, when it is looked up first.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py.mpmd.jax_functions import broadcast, call, fori_loop, named_computation, named_tensor, reduce
    from shardy_py.mpmd.jit import jit
    from shardy_py.mpmd.pipeline_program import PipelineProgram, partition
    from shardy_py.mpmd.schedules.actions import Action, ActionKind
    from shardy_py.mpmd.schedules.builders import SCHEDULES, build_schedule
    from shardy_py.mpmd.schedules.schedule import PipelineSchedule
    from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate

__all__ = [
    "SCHEDULES",
    "Action",
    "ActionKind",
    "PipelineProgram",
    "PipelineSchedule",
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
    "reduce",
    "simulate",
]

_HOMES = {
    "shardy_py.mpmd.jax_functions": "broadcast call fori_loop named_computation named_tensor reduce",
    "shardy_py.mpmd.jit": "jit",
    "shardy_py.mpmd.pipeline_program": "PipelineProgram partition",
    "shardy_py.mpmd.schedules.actions": "Action ActionKind",
    "shardy_py.mpmd.schedules.builders": "SCHEDULES build_schedule",
    "shardy_py.mpmd.schedules.schedule": "PipelineSchedule",
    "shardy_py.mpmd.schedules.simulation": "StageTimes Timeline simulate",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
