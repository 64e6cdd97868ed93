"""Mutants of factor propagation within one op, of axes and of shardings by factor."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FACTORS = "shardy_py/propagation/steps/factors.py"
AGGRESSIVE = "shardy_py/propagation/steps/aggressive.py"
WHOLE_AXIS = "shardy_py/propagation/steps/whole_axis.py"
PROJECTION = "shardy_py/sharding/projection.py"
AXES = "shardy_py/sharding/axes.py"

STEPS = (
    Mutant(
        "basic propagation extends what tensors differ in",
        FACTORS,
        "        else:\n            return tuple(result), False",
        "        else:\n            return tuple(result), can_expand",
    ),
    Mutant(
        "whole axes extend what tensors differ in",
        WHOLE_AXIS,
        "_common_prefix(axes, other), False",
        "_common_prefix(axes, other), True",
    ),
    Mutant(
        "both sides give axes whatever the direction",
        FACTORS,
        "    if direction != Direction.BOTH:\n        can_expand = False\n",
        "",
    ),
    Mutant(
        "whole axes come from both sides whatever the direction",
        WHOLE_AXIS,
        "    if direction != _BOTH:\n        num_sources = in_operands",
        "    if direction == -1:\n        num_sources = in_operands",
    ),
    Mutant(
        "forward is backward",
        FACTORS,
        "backward = direction == Direction.BACKWARD",
        "backward = direction == Direction.FORWARD",
    ),
    Mutant(
        "whole axes go forward instead of backward",
        WHOLE_AXIS,
        "        if direction == _BACKWARD:",
        "        if direction != _BACKWARD:",
    ),
    Mutant(
        "of equal sources the last one wins",
        AGGRESSIVE,
        "-rank.sharded, rank.tensor, rank.factor)",
        "-rank.sharded, -rank.tensor, rank.factor)",
    ),
    Mutant(
        "of equal sources of whole axes the last one wins",
        WHOLE_AXIS,
        "return (-size, -sharded, source, factor)",
        "return (-size, -sharded, -source, factor)",
    ),
    Mutant(
        "the smallest source wins",
        WHOLE_AXIS,
        "return (-size, -sharded, source, factor)",
        "return (size, -sharded, source, factor)",
    ),
    Mutant(
        "the less sharded factor wins",
        WHOLE_AXIS,
        "return (-size, -sharded, source, factor)",
        "return (-size, sharded, source, factor)",
    ),
    Mutant(
        "closed dimensions are sharded further", WHOLE_AXIS, "if dim is None or old.closed[dim]:", "if dim is None:"
    ),
    Mutant(
        "closed factors are sharded further",
        FACTORS,
        "if not entry.is_closed and not entry.overflow_axes:",
        "if not entry.overflow_axes:",
    ),
    Mutant(
        "factors grow behind overflow axes",
        FACTORS,
        "if not entry.is_closed and not entry.overflow_axes:",
        "if not entry.is_closed:",
    ),
    Mutant(
        "replicated axes are available",
        FACTORS,
        "result = prefix_without_overlap(axis, tensor.replicated_axes)",
        "result: AxisRef | None = axis",
    ),
    Mutant(
        "unreduced axes are available",
        FACTORS,
        "result = prefix_without_overlap(result, tensor.unreduced_axes)",
        "pass",
    ),
    Mutant(
        "replicated and unreduced whole axes are available",
        WHOLE_AXIS,
        "_available(axes, count, old.elsewhere, dims)",
        "_available(axes, count, (), dims)",
    ),
    Mutant(
        "unreduced whole axes are available",
        WHOLE_AXIS,
        "(*sharding.replicated_axes, *sharding.unreduced_axes)",
        "sharding.replicated_axes",
    ),
    Mutant(
        "whole axes of other dimensions are available",
        WHOLE_AXIS,
        "if name in elsewhere or name in chain.from_iterable(dims):",
        "if name in elsewhere:",
    ),
    Mutant(
        "axes of other factors are available",
        FACTORS,
        "            result = prefix_without_overlap(result, entry.axes)\n",
        "            pass\n",
    ),
    Mutant(
        "overflow axes of other factors are available",
        FACTORS,
        "            result = prefix_without_overlap(result, entry.overflow_axes)\n",
        "            pass\n",
    ),
    Mutant(
        "operands of elementwise ops take more than results have",
        WHOLE_AXIS,
        "range(count, len(tensors)) if is_elementwise else ()",
        "()",
    ),
    Mutant(
        "the same, with sub-axes",
        AGGRESSIVE,
        "if axes and context.is_elementwise and position < num_operands:",
        "if axes and context.is_elementwise and position < 0:",
    ),
    Mutant(
        "a factor that is not the last takes axes that do not divide it", FACTORS, "if common == size:", "if common:"
    ),
    Mutant(
        "sub-axes are introduced conservatively",
        FACTORS,
        "(context.conservative and prefix.sub_axis is not None)",
        "False",
    ),
    Mutant(
        "the axes after a shortened one are kept",
        FACTORS,
        "        if prefix != axis:\n            return (*axes[:index], prefix)\n",
        "        if prefix != axis:\n            return (*axes[:index], prefix, *axes[index + 1 :])\n",
    ),
)
"""Faults within one op."""

VIEWS = (
    Mutant(
        "the minor part of an axis is taken first",
        PROJECTION,
        "part = SubAxis(self.pre_size or 1, size)\n",
        "part = SubAxis((self.pre_size or 1) * self.size // size, size)\n",
    ),
    Mutant(
        "what does not divide a factor is given to the next one",
        PROJECTION,
        "if remaining > 1 and not cursor.done:",
        "if False:",
    ),
    Mutant(
        "axes behind a factor that is not full are kept",
        PROJECTION,
        "if axes_size(entry.axes, mesh) < factor_sizes[factor]:",
        "if False:",
    ),
    Mutant(
        "a closed dimension of several factors becomes open",
        PROJECTION,
        "is_closed = is_closed or entry.is_closed",
        "is_closed = is_closed and entry.is_closed",
    ),
    Mutant(
        "parts of an axis are not merged",
        AXES,
        "return self.sub_axis.next_pre_size == other.sub_axis.pre_size",
        "return False",
    ),
    Mutant(
        "a prefix is cut off at the wrong side",
        AXES,
        "SubAxis(self.pre_size, other.pre_size // self.pre_size)",
        "SubAxis(other.pre_size, other.pre_size // self.pre_size)",
    ),
    Mutant(
        "every part of an axis is its prefix",
        AXES,
        "return other.contains(self) and self.pre_size == other.pre_size",
        "return other.contains(self)",
    ),
    Mutant(
        "parts side by side overlap",
        AXES,
        "self.sub_axis.pre_size < other.sub_axis.next_pre_size\n",
        "self.sub_axis.pre_size <= other.sub_axis.next_pre_size\n",
    ),
    Mutant(
        "a whole axis does not contain its parts",
        AXES,
        "if self.sub_axis is None:\n            return True\n        if other.sub_axis is None:",
        "if self.sub_axis is None:\n            return other.sub_axis is None\n        if other.sub_axis is None:",
    ),
)
"""Faults in axes, and in shardings by factor."""
