"""Results for PyTorch: placements of DTensor, parallel plans, distributed parameters and redistributions."""

from shardy_py.torch.parallel.compiled import LocalTorchProgram, TorchProgram, make_local_torch_program
from shardy_py.torch.parallel.distribute import distribute
from shardy_py.torch.parallel.explicit import explicit_program
from shardy_py.torch.parallel.placements import Placement, placements_of, to_torch_placements
from shardy_py.torch.parallel.plan import ParallelPlan, PlanEntry, make_plan
from shardy_py.torch.parallel.redistributions import Redistribution, list_redistributions
from shardy_py.torch.parallel.styles import to_parallel_styles

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
