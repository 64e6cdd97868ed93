"""Steps with rules and shardings as text, projected to factors."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.propagation.step_outcomes import project_step
from shardy_py.propagation.steps.factors import Direction, Projection, StepContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import OpShardingRule

MESH = Mesh.of(a=2, b=2, c=4)
MATMUL = "<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>"
ADD = "<([i, j], [i, j])->([i, j]) {i=8, j=8}>"


def project_texts(rule: str, *dims: str | None) -> tuple[OpShardingRule, Projection]:
    """Return a rule and the projection of the shardings of operands, then results.

    Args:
        rule: The rule.
        dims: The dimension shardings of each tensor, with brackets where something follows them; None for no sharding.
    """
    parsed = parse_op_sharding_rule(rule)
    dim_texts = [text if text is None or text.startswith("[") else f"[{text}]" for text in dims]
    shardings = [None if text is None else parse_tensor_sharding(f"<@mesh, {text}>") for text in dim_texts]
    return parsed, project_step(parsed, shardings, MESH)


def context_of(
    rule: OpShardingRule,
    directions: Sequence[int] | None = None,
    *,
    conservative: bool = False,
    is_elementwise: bool = False,
) -> StepContext:
    """Return the context of a step, by default with both directions along every factor."""
    chosen = tuple(directions or (int(Direction.BOTH),) * rule.num_factors)
    return StepContext(rule.factor_sizes, chosen, MESH, conservative, is_elementwise)


def axes_of(projection: Projection, factor: int) -> list[str | None]:
    """Return the axes of every tensor along a factor as text, None where a tensor has not the factor."""
    entries = [tensor.factors.get(factor) for tensor in projection.tensors]
    return [None if entry is None else text_of(entry.axes) for entry in entries]


def text_of(axes: Axes) -> str:
    """Return axes as text."""
    return " ".join(str(axis).replace('"', "") for axis in axes)
