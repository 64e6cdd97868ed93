"""Mutants of the solver: order of visits, levels, strategies, user priorities, outcomes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SOLVE = "shardy_py/propagation/solve.py"
DEPENDENTS = "shardy_py/propagation/dependents.py"
COMPILE = "shardy_py/propagation/compile.py"
ENGINE = "shardy_py/propagation/engine.py"
OUTCOMES = "shardy_py/propagation/step_outcomes.py"
PRIORITIES = "shardy_py/propagation/user_priorities.py"
TABLE = "shardy_py/propagation/sharding_table.py"
GROUPS = "shardy_py/propagation/initial_shardings.py"
BASIC = "shardy_py/propagation/steps/basic.py"
AGGRESSIVE = "shardy_py/propagation/steps/aggressive.py"
DEFAULT = "shardy_py/schedule/builtin.py"

ORDER = (
    Mutant("the worklist is first in, first out", SOLVE, "step = stack.pop()", "step = stack.pop(0)"),
    Mutant(
        "a level begins at the last op",
        SOLVE,
        "step = find(1, cursor)\n                if step < 0:\n                    break\n"
        "                cursor = step + 1",
        "step = waiting.rfind(1)\n                if step < 0:\n                    break\n"
        "                cursor = len(waiting)",
    ),
    Mutant(
        "an op that waits for its first turn is visited at once",
        SOLVE,
        "waiting[other] = 1\n                        if other < cursor:\n",
        "waiting[other] = 1\n                        if True:\n",
    ),
    Mutant(
        "users of results are put back oldest use first",
        DEPENDENTS,
        "steps = [defining_step, *[step_of[user.id] for user, _ in reversed(uses)]]",
        "steps = [defining_step, *[step_of[user.id] for user, _ in uses]]",
    ),
    Mutant(
        "users of arguments are put back oldest use first",
        DEPENDENTS,
        "for user, number in reversed(value.uses):",
        "for user, number in value.uses:",
    ),
    Mutant(
        "the op that makes a value is put back behind its users",
        DEPENDENTS,
        "steps = [defining_step, *[step_of[user.id] for user, _ in reversed(uses)]]",
        "steps = [*[step_of[user.id] for user, _ in reversed(uses)], defining_step]",
    ),
    Mutant(
        "the op that makes a value with one use is not put back",
        DEPENDENTS,
        "return defining_step, other\n",
        "return (other,)\n",
    ),
    Mutant(
        "the op that makes a value with several uses is not put back",
        DEPENDENTS,
        "steps = [defining_step, *[step_of[user.id] for user, _ in reversed(uses)]]",
        "steps = [step_of[user.id] for user, _ in reversed(uses)]",
    ),
    Mutant(
        "the only user of a value is not put back",
        DEPENDENTS,
        "return defining_step, other\n",
        "return (defining_step,)\n",
    ),
    Mutant(
        "users behind calls are not put back",
        DEPENDENTS,
        "if user.name == CALL:",
        "if user.name == CALL and False:",
    ),
    Mutant(
        "the edge that begins at a use is not put back",
        DEPENDENTS,
        "        self._add(edge, steps)\n        return True",
        "        return True",
    ),
    Mutant(
        "users of the targets of an edge are not put back",
        DEPENDENTS,
        "if edge is not None:\n                for target",
        "if edge is None:\n                for target",
    ),
    Mutant(
        "results of the function take no part before the first op",
        SOLVE,
        "            self._sync_function_results(strategy)\n            self._fixpoint",
        "            self._fixpoint",
    ),
    Mutant(
        "results of the function take no part after the last op",
        SOLVE,
        "(self._begin(level, strategy))\n            self._sync_function_results(strategy)",
        "(self._begin(level, strategy))",
    ),
    Mutant(
        "ops without uses shard others before they are erased",
        SOLVE,
        "if removal is not None and removal.is_unused(step):",
        "if removal is not None and removal.is_unused(step) and False:",
    ),
    Mutant(
        "the loss of a use does not change the level of an op",
        SOLVE,
        "        for other in erasure.touched:\n            self._set_multi_use(other, removal, work)\n",
        "",
    ),
    Mutant(
        "the other results of an op do not become open",
        SOLVE,
        "for other, rank in self.problem.siblings.get(slot, ()) if was_missing else ():",
        "for other, rank in ():",
    ),
)
"""Faults in the order of visits, and in who is visited again."""

LEVELS = (
    Mutant(
        "levels do not add up",
        DEFAULT,
        "if entry_level > level or not entry.selector",
        "if entry_level != level or not entry.selector",
    ),
    Mutant(
        "uses of operands do not count",
        DEFAULT,
        "matches_uses(multi_use=multi_use)",
        "matches_uses(multi_use=False)",
    ),
    Mutant(
        "broadcasts go forward at the third level",
        DEFAULT,
        "factor_kinds=(FactorKind.PASS_THROUGH,)), Direction.BACKWARD)",
        "factor_kinds=(FactorKind.PASS_THROUGH,)), Direction.FORWARD)",
    ),
    Mutant(
        "broadcasts go both ways at the fourth level",
        DEFAULT,
        "Entry(Selector(traits=(Broadcast,)), Direction.BACKWARD)",
        "Entry(Selector(traits=(Broadcast,)))",
    ),
    Mutant(
        "all factors take part at the third level",
        DEFAULT,
        "Entry(Selector(excluded_traits=(Broadcast,), factor_kinds=(FactorKind.PASS_THROUGH,)))",
        "Entry(Selector(excluded_traits=(Broadcast,)))",
    ),
    Mutant(
        "the last level is missing",
        DEFAULT,
        '        EVERYTHING,\n    )\n)\n"""The reference',
        '    )\n)\n"""The reference',
    ),
    Mutant(
        "aggressive propagation comes before basic propagation",
        ENGINE,
        "(Strategy.BASIC, Strategy.AGGRESSIVE)",
        "(Strategy.AGGRESSIVE, Strategy.BASIC)",
    ),
    Mutant(
        "only the first strategy runs",
        SOLVE,
        "for strategy in self.strategies:",
        "for strategy in self.strategies[:1]:",
    ),
    Mutant("user priorities run in reverse", PRIORITIES, "sorted(pending)]", "sorted(pending, reverse=True)]"),
    Mutant(
        "axes of later user priorities are free before",
        PRIORITIES,
        "sorted([*original.replicated_axes, *hidden], key=mesh.sort_key)",
        "sorted([*original.replicated_axes], key=mesh.sort_key)",
    ),
    Mutant(
        "dimensions of later user priorities are there from the start",
        PRIORITIES,
        "CLOSED if dim.priority_or_default else evolve(dim, priority=None)",
        "evolve(dim, priority=None)",
    ),
    Mutant(
        "axes of a user priority stay replicated",
        PRIORITIES,
        "tuple(axis for axis in sharding.replicated_axes if axis not in shown)",
        "sharding.replicated_axes",
    ),
    Mutant("a user priority runs one level only", SOLVE, "for level in range(last + 1):", "for level in range(1):"),
)
"""Faults in levels, strategies and user priorities."""

FACTOR_KINDS = (
    Mutant(
        "blocked factors propagate",
        OUTCOMES,
        "(BLOCKED, rule.blocked_propagation_factors)",
        "(0, rule.blocked_propagation_factors)",
    ),
    Mutant(
        "need-replication factors pass through",
        OUTCOMES,
        "(2, rule.need_replication_factors)",
        "(0, rule.need_replication_factors)",
    ),
    Mutant(
        "permutation factors pass through", OUTCOMES, "(3, rule.permutation_factors)", "(0, rule.permutation_factors)"
    ),
    Mutant("reduction factors pass through", OUTCOMES, "(1, rule.reduction_factors)", "(0, rule.reduction_factors)"),
    Mutant(
        "outcomes do not depend on directions",
        OUTCOMES,
        "key = (rule_id, directions, strategy",
        "key = (rule_id, strategy",
    ),
    Mutant(
        "outcomes do not depend on the strategy",
        OUTCOMES,
        "strategy is Strategy.BASIC, is_elementwise",
        "is_elementwise",
    ),
    Mutant(
        "outcomes do not depend on whether the op is elementwise",
        OUTCOMES,
        "Strategy.BASIC, is_elementwise, conservative)",
        "Strategy.BASIC, conservative)",
    ),
    Mutant(
        "rules are alike whatever the sizes of tensors",
        OUTCOMES,
        "_ranks(sizes, mappings) if len(distinct) > 1 else ()",
        "()",
    ),
    Mutant(
        "shardings on different meshes mix",
        TABLE,
        "not name_and_mesh[1].is_empty and name_and_mesh[1] != common[1]:\n                return None",
        "not name_and_mesh[1].is_empty and name_and_mesh[1] != common[1]:\n                continue",
    ),
    Mutant("barriers let everything through", COMPILE, "op.results[0], fixed=direction)", "op.results[0])"),
    Mutant(
        "shardings of manual computations go in and out as they are",
        COMPILE,
        "if step is not None and self._transforms(info.data_flow):",
        "if step is None:",
    ),
    Mutant(
        "members of a group do not follow",
        SOLVE,
        "for member, steps in problem.tied.get(slot, NO_TIES).others():\n            work",
        "for member, steps in ():\n            work",
    ),
    Mutant(
        "members of a group start apart",
        GROUPS,
        "        for value in values:\n            _set(program, slots, value, common)\n        return",
        "        return",
    ),
    Mutant(
        "a conflict in a group goes unnoticed",
        GROUPS,
        "            return common, True\n",
        "            return common, False\n",
    ),
)
"""Faults in the kinds of factors, in what outcomes depend on, and in special ops."""
