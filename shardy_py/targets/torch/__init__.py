"""Results for PyTorch: placements of DTensor, parallel plans, distributed parameters and redistributions."""

from shardy_py.targets.torch.compiled import LocalTorchProgram, TorchProgram, make_local_torch_program
from shardy_py.targets.torch.distribute import distribute
from shardy_py.targets.torch.explicit import explicit_program
from shardy_py.targets.torch.placements import Placement, placements_of, to_torch_placements
from shardy_py.targets.torch.plan import PlanEntry, make_plan, to_parallel_styles
from shardy_py.targets.torch.redistributions import Redistribution, list_redistributions

__all__ = [
    "LocalTorchProgram",
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
