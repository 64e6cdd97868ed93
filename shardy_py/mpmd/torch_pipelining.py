"""Stages for ``torch.distributed.pipelining``, run in the order of a schedule of this package."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.mpmd.schedules.builders import build_schedule
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.support.arguments import shown


def torch_stages(
    module: Any,
    arguments: Sequence[Any],
    cuts: Sequence[str],
    *,
    microbatches: int,
    schedule: str | PipelineSchedule = "1F1B",
    loss: Callable[[Any, Any], Any] | None = None,
    device: Any = "cpu",
    group: Any = None,
) -> Any:
    """Return the stages of this process with what runs them: call its ``step``, as with schedules of PyTorch.

    Every process of the group makes it of an equal module. Optimizers take the parameters of the stages,
    ``stage.submod.parameters()`` for each in `stages_of`.

    Args:
        module: The module.
        arguments: Its arguments for one microbatch.
        cuts: The paths of the submodules at which a stage begins, in order: ``["layers.2", "layers.4"]``.
        microbatches: The number of microbatches.
        schedule: The name of one of `SCHEDULES`, or a schedule such as a search finds.
        loss: The loss of the result and the target of a microbatch.
        device: The device of this process.
        group: The processes, one per mesh of the schedule; by default all.

    Raises:
        OptionError: a path is not one of the module, or the schedule does not fit the stages and processes.
    """
    require_library("torch", purpose="stages for torch.distributed.pipelining need", extra="torch")
    import torch.distributed as dist
    from torch.distributed.pipelining import SplitPoint, pipeline
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    _check_cuts(module, cuts)
    processes, rank = dist.get_world_size(group), dist.get_rank(group)
    value = _schedule(schedule, len(cuts) + 1, processes, microbatches)
    split = pipeline(module, tuple(arguments), split_spec=dict.fromkeys(cuts, SplitPoint.BEGINNING))
    numbers = sorted({action.stage for action in value.orders[rank]})
    stages = [split.build_stage(number, device, group) for number in numbers]
    runtime = _PipelineScheduleRuntime(stages, microbatches, loss_fn=loss)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.csv"
        path.write_text(f"{value}\n", encoding="utf-8")
        runtime._load_csv(str(path))
    return runtime


def stages_of(runtime: Any) -> list[Any]:
    """Return the stages of a process, in order, of what `torch_stages` returns."""
    return list(runtime._stages)


def _check_cuts(module: Any, cuts: Sequence[str]) -> None:
    paths = [path for path, _ in module.named_modules() if path]
    for cut in cuts:
        if cut not in paths:
            message = f"the module has no submodule {shown(cut)}"
            hint = f"give a path such as {paths[len(paths) // 2]!r}" if paths else "give a module with submodules"
            raise OptionError(Diagnostic("unknown-submodule", message, hint=hint))
    if len(set(cuts)) < len(cuts):
        raise OptionError(Diagnostic("duplicate-cut", "a submodule begins one stage only", hint="leave out the second"))


def _schedule(schedule: str | PipelineSchedule, stages: int, processes: int, microbatches: int) -> PipelineSchedule:
    """Return a schedule that fits, and that is not a deadlock."""
    value = schedule
    if isinstance(value, str):
        if stages % processes:
            message = f"{stages} stages do not divide among {processes} processes"
            raise OptionError(Diagnostic("stage-count", message, hint=f"give {processes - 1} cuts"))
        value = build_schedule(value, meshes=processes, microbatches=microbatches, chunks=stages // processes)
    value.check()
    required, actual = (processes, stages, microbatches), (value.mesh_count, value.stage_count, value.microbatch_count)
    if required != actual:
        words = ("{} processes, {} stages and {} microbatches".format(*numbers) for numbers in (actual, required))
        message = "the schedule is for {}, not for {}".format(*words)
        raise OptionError(Diagnostic("schedule-size", message, hint="change the cuts, or build it for these numbers"))
    if value.has_replicated_stages:
        message = "the schedule runs a stage in two processes, which PyTorch does not"
        raise OptionError(Diagnostic("stage-twice", message, hint="choose another schedule than DualPipe"))
    meshes = value.meshes_of_stages()
    if processes > 1 and any(meshes[stage] == meshes[stage + 1] for stage in range(stages - 1)):
        message = "the schedule runs neighbouring stages in one process, which cannot send to itself"
        raise OptionError(Diagnostic("stage-neighbours", message, hint="choose another schedule than ZB-V"))
    return value
