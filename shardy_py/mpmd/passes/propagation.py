"""Shardings of programs over several meshes: within fragments, and through transfers between equal meshes."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.run import PassPipeline, Stage
from shardy_py.values import NoFields


class MpmdShardingPropagationPipeline(NoFields, PassPipeline):
    """Propagate shardings over the whole program: fragments are data flow, transfers elementwise."""

    name: ClassVar[str] = "mpmd-sharding-propagation-pipeline"

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        return PropagationPipeline().stages()
