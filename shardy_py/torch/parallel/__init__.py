"""Results for PyTorch: placements of DTensor, parallel plans, distributed parameters and redistributions."""

from typing import TYPE_CHECKING

from shardy_py.support.homes import look_up_in
from shardy_py.torch.parallel.distribute import distribute
from shardy_py.torch.parallel.placements import Placement, placements_of, to_torch_placements

if TYPE_CHECKING:
    from shardy_py.torch.parallel.compiled import LocalTorchProgram, make_local_torch_program
    from shardy_py.torch.parallel.explicit import explicit_program
    from shardy_py.torch.parallel.plan import ParallelPlan, PlanEntry, make_plan
    from shardy_py.torch.parallel.redistributions import Redistribution, list_redistributions
    from shardy_py.torch.parallel.styles import to_parallel_styles
    from shardy_py.torch.parallel.torch_program import TorchProgram

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

__getattr__ = look_up_in(
    __name__,
    {
        f"{__name__}.compiled": "LocalTorchProgram make_local_torch_program",
        f"{__name__}.explicit": "explicit_program",
        f"{__name__}.plan": "ParallelPlan PlanEntry make_plan",
        f"{__name__}.redistributions": "Redistribution list_redistributions",
        f"{__name__}.styles": "to_parallel_styles",
        f"{__name__}.torch_program": "TorchProgram",
    },
)
