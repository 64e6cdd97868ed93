"""Plans in PyTorch's classes, for ``parallelize_module``."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from shardy_py.torch.parallel.placements import Placement
from shardy_py.torch.parallel.plan import ParallelPlan, PlanEntry


def to_parallel_styles(plan: Mapping[str, PlanEntry]) -> dict[str, Any]:
    """Return a plan in PyTorch's classes, for ``parallelize_module``; ``torch`` must be installed.

    Layers that share a weight go on sharing it, as one DTensor.

    Args:
        plan: What `Result.parallelize_plan` returns.
    """
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    classes = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel}
    styles: dict[str, Any] = {}
    for path, entry in plan.items():
        layouts = {"input_layouts": entry.input, "output_layouts": entry.output}
        arguments = {name: _layout(item) for name, item in layouts.items() if item is not None}
        styles[path] = classes[entry.style](**arguments)
    for paths in plan.tied if isinstance(plan, ParallelPlan) else ():
        _tie(styles, [path for path in paths if path in styles])
    return styles


def _layout(placement: Placement) -> Any:
    from torch.distributed.tensor import Replicate, Shard

    return Shard(placement.dim) if placement.kind == "shard" else Replicate()


def _tie(styles: dict[str, Any], paths: list[str]) -> None:
    """Let styles leave a weight shared: each would give its module a DTensor of its own."""
    from torch.distributed.tensor.parallel import ParallelStyle

    # The weights of the module as it was, with what they became; those of a module that is gone are not met again.
    known: list[tuple[Any, Any]] = []
    styled: weakref.WeakSet[Any] = weakref.WeakSet()

    class TiedStyle(ParallelStyle):
        """The style of a layer whose weight other layers read, too."""

        def __init__(self, style: Any) -> None:
            super().__init__()
            self.style = style

        def _apply(self, module: Any, device_mesh: Any) -> Any:
            if module in styled:
                # One layer under two names.
                return module
            styled.add(module)
            self.style.src_data_rank = self.src_data_rank
            weight = module.weight
            applied = self.style._apply(module, device_mesh)
            for reference, distributed in known:
                if reference() is weight:
                    applied.weight = distributed
                    return applied
            known.append((weakref.ref(weight), applied.weight))
            return applied

        def __repr__(self) -> str:
            return repr(self.style)

    for path in paths:
        styles[path] = TiedStyle(styles[path])
