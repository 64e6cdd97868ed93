"""The definition of ops with a common rule and traits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import field

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CombinerOf, ContextOf, Dialect, InitialOf, Pure, RuleOptions, Trait, TraitsOf
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen

_ARRAY = "array<i64"
RuleFunction = Callable[[Op], OpShardingRule | None]
RuleFunctionOfOptions = Callable[[Op, RuleOptions], OpShardingRule | None]


@frozen
class StaticRule:
    """A rule function that is asked only about ops all of whose tensors have static shapes.

    Args:
        function: The rule, a function of the op.
        of_options: The rule as a function of the op and the options; one of the two is given.
        extended: Whether the reference has no rule for the op, so that there is one under an option only.
        never_like_jit: Whether there is none even then in a program that is propagated like `jax.jit`.
    """

    function: RuleFunction | None = None
    of_options: RuleFunctionOfOptions | None = field(default=None, kw_only=True)
    extended: bool = field(default=False, kw_only=True)
    never_like_jit: bool = field(default=False, kw_only=True)

    def __call__(self, op: Op, options: RuleOptions) -> OpShardingRule | None:
        """Return the rule, or None for an op with dynamic shapes or, without the option, of an extended rule."""
        if self.extended and not options.extended:
            return None
        if self.never_like_jit and options.like_jit:
            return None
        if not has_static_shapes(op):
            return None
        if self.of_options is not None:
            return self.of_options(op, options)
        return self.function(op) if self.function is not None else None


def has_static_shapes(op: Op) -> bool:
    """Return whether no operand or result has a dynamic dimension; values without a shape do not count."""
    for values in (op.operands, op.results):
        for value in values:
            if None in getattr(value.type, "shape", ()):
                return False
    return True


def define(
    dialect: Dialect,
    names: str | Iterable[str],
    rule: RuleFunction | None = None,
    *,
    of_options: RuleFunctionOfOptions | None = None,
    extended: bool = False,
    never_like_jit: bool = False,
    traits: Iterable[Trait] = (Pure,),
    traits_of: TraitsOf | None = None,
    contextual: bool | ContextOf = False,
    any_sizes: bool = False,
    combiner: Combiner | CombinerOf = Combiner.ADD,
    initial_of: InitialOf | None = None,
    told_apart_by: str = "",
) -> None:
    """Define ops that share a rule and traits.

    Args:
        dialect: The dialect that gets them.
        names: One full op name or several.
        rule: The rule, a function of the op.
        of_options: The rule as a function of the op and the options.
        extended: Whether the rule is given under the option ``extended`` only.
        never_like_jit: Whether the rule is not given in programs that are propagated like `jax.jit`.
        traits: The traits; most ops have no side effects.
        traits_of: Traits that depend on the op.
        contextual: Whether the rule looks at producers, users or regions, or a function of what it finds there.
        any_sizes: Whether the factors of the rule may have other sizes than their dimensions.
        combiner: The combiner of reductions. The reference's rules and collectives know sums only, so it is given
            beside the rule.
        initial_of: Gives the initial operands of reductions.
        told_apart_by: The attribute whose values tell kinds of the ops apart that need rules of their own.
    """
    has_rule = rule is not None or of_options is not None
    static_rule = (
        StaticRule(rule, of_options=of_options, extended=extended, never_like_jit=never_like_jit) if has_rule else None
    )
    for name in (names,) if isinstance(names, str) else names:
        dialect.op(
            name,
            traits=traits,
            rule=static_rule,
            traits_of=traits_of,
            contextual=contextual,
            any_sizes=any_sizes,
            combiner=combiner,
            initial_of=initial_of,
            sums_collectives=True,
            told_apart_by=told_apart_by,
        )


def attribute(op: Op, name: str, default: Any = None) -> Any:
    """Return an attribute of an op, or ``default`` where it is absent; arrays that local forms wrote as numbers."""
    found = op.attributes.get(name, default)
    if isinstance(found, RawAttribute) and found.text.startswith(_ARRAY):
        return tuple(int(item) for item in found.text.removeprefix(_ARRAY).strip(": >").split(",") if item)
    return found
