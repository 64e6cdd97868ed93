"""Results for PyTorch: placements of DTensor, parallel plans, distributed parameters and redistributions."""

from shardy_py.targets.torch.compiled import LocalTorchProgram, TorchProgram, make_local_torch_program
from shardy_py.targets.torch.distribute import distribute
from shardy_py.targets.torch.explicit import explicit_program
from shardy_py.targets.torch.placements import Placement, placements_of, to_torch_placements
from shardy_py.targets.torch.plan import ParallelPlan, PlanEntry, make_plan
from shardy_py.targets.torch.redistributions import Redistribution, list_redistributions
from shardy_py.targets.torch.styles import to_parallel_styles

__all__ = [
    "LocalTorchProgram",
    "ParallelPlan",
    "Placement",
    "PlanEntry",
    "Redistribution",
    "TorchProgram",
    "distribute",
    "explicit_program",
    "list_redistributions",
    "make_local_torch_program",
    "make_plan",
    "placements_of",
    "to_parallel_styles",
    "to_torch_placements",
]
