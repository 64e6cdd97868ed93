"""Passes that merge and order fragments as rules of a user say.

Mirrors mpmd/transforms/common/rule_based_merge.cc and optimize/rule_based_schedule.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.errors import Diagnostic, OptionError, VerificationError
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_fragment, mesh_of, mpmd_functions, stage_of
from shardy_py.mpmd.passes.fragments.merging import merge
from shardy_py.mpmd.passes.scheduling.fragment_rules import (
    FragmentInfo,
    FragmentMergeRule,
    parse_merge_rules,
    parse_schedule_rules,
)
from shardy_py.mpmd.passes.scheduling.pipeline_scheduler import Ancestors, order_block
from shardy_py.values import frozen


@frozen
class RuleBasedMergePass:
    """Merge the fragments that match the sources of a rule into one.

    Args:
        rules: The rules as text, such as ``FragmentMergeRule(sources=[FragmentInfo(...)],target=FragmentInfo(...))``.
    """

    name: ClassVar[str] = "mpmd-rule-based-merge"

    rules: str = ""

    def run(self, program: Program, context: PassContext) -> None:
        """Apply all rules to each function; sources that no fragment matches are warned about.

        Raises:
            OptionError: a rule is malformed, or merges fragments of two stages or meshes.
            VerificationError: the merged fragment would wait for itself.
        """
        rules = parse_merge_rules(self.rules)
        for function in mpmd_functions(program):
            for rule in rules:
                _merge(block_of(function), rule, context)


def _merge(block: Block, rule: FragmentMergeRule, context: PassContext) -> None:
    unmatched = [info for info in rule.sources if not any(map(info.matches, block.ops))]
    context.warnings.extend(map(_unmatched_rule, unmatched))
    sources = [op for op in block.ops if any(info.matches(op) for info in rule.sources)]
    meshes, stages = {mesh_of(op) for op in sources}, {stage_of(op) for op in sources} - {None}
    if (len(meshes | {rule.target.mesh}) > 1 and sources) or len(stages) > 1:
        message = f"a rule merges fragments of different {'stages' if len(stages) > 1 else 'meshes'}: {rule}"
        hint = "merge fragments of one mesh and one stage"
        raise OptionError(Diagnostic("merge-of-stages", message, sources[0].location, hint=hint))
    if len(sources) < 2:
        return
    _refuse_cycles(block, sources)
    merged = sources[0]
    for op in sources[1:]:
        merged = merge(merged, op, merged)
    rule.target.label(merged)
    order_block(block, [], "")


def _refuse_cycles(block: Block, sources: Sequence[Op]) -> None:
    """Check that no op between fragments that are merged needs one of them and is needed by another.

    Raises:
        VerificationError: there is such an op.
    """
    reachable = Ancestors(block)
    for op in block.ops:
        if op in sources or not any(reachable.depends(op, source) for source in sources):
            continue
        if any(reachable.depends(source, op) for source in sources):
            message = "Cycle detected in the program: an op needs one of the fragments to merge, and another needs it"
            hint = "merge fragments that follow each other on their mesh"
            raise VerificationError(Diagnostic("merge-cycle", message, op.location, op.name, hint))


@frozen
class RuleBasedSchedulePass:
    """Let the fragments of each rule run in its order.

    Args:
        rules: The rules as text, such as ``FragmentScheduleRule(ordered_fragments=[FragmentInfo(...)->...])``.
    """

    name: ClassVar[str] = "mpmd-rule-based-schedule"

    rules: str = ""

    def run(self, program: Program, context: PassContext) -> None:
        """Order the fragments of each function; pairs that cannot be ordered so are warned about.

        Raises:
            OptionError: a rule is malformed.
        """
        rules = parse_schedule_rules(self.rules)
        for function in mpmd_functions(program):
            block = block_of(function)
            pairs = [pair for rule in rules for pair in _pairs(block, rule.ordered_fragments, context)]
            context.warnings.extend(order_block(block, pairs, self.name))


def _pairs(block: Block, infos: Sequence[FragmentInfo], context: PassContext) -> list[tuple[Op, Op]]:
    """Return the neighbours of a rule, the first before the second."""
    reachable = Ancestors(block)
    fragments = [op for op in block.ops if is_fragment(op)]
    ordered: list[Op] = []
    for info in infos:
        op = next((item for item in fragments if info.matches(item)), None)
        if op is None:
            context.warnings.append(_unmatched_rule(info))
        else:
            ordered.append(op)
    result = []
    for number, first in enumerate(ordered):
        for second in ordered[number + 1 :]:
            if mesh_of(first) != mesh_of(second):
                problem = "is on another mesh than the fragment before it in the rule"
            elif reachable.depends(first, second):
                problem = "makes what the fragment before it in the rule uses"
            else:
                result.append((first, second))
                continue
            message = f"the rule is skipped here: this fragment {problem}"
            context.warnings.append(Diagnostic("conflicting-rule", message, second.location, second.name))
    return result


def _unmatched_rule(info: FragmentInfo) -> Diagnostic:
    hint = "what a rule leaves out must be missing in the fragment, too"
    return Diagnostic("unmatched-rule", f"no fragment matches {info}", hint=hint)
