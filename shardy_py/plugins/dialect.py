"""Dialects and op definitions: what a plugin registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, evolve, field, frozen

from shardy_py.errors import Diagnostic, PluginError, RuleError
from shardy_py.ir.costs import CostOpInterface
from shardy_py.ir.graph import Op
from shardy_py.ir.interfaces import (
    MeshReferenceOpInterface,
    RuleOptions,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Trait,
)
from shardy_py.sharding.einsum import RuleSpec
from shardy_py.sharding.einsum import rule as parse_rule
from shardy_py.sharding.rule import OpShardingRule

Made = OpShardingRule | RuleSpec | None
"""What a rule function returns; a `RuleSpec` is bound to the shapes of the op."""

Rule = Callable[[Op], Made] | Callable[[Op, RuleOptions], Made]
"""A rule function; one with a second parameter gets the rule options."""

Factors = str | Iterable[str]

TraitsOf = Callable[[Op], Iterable[Trait]]
"""A predicate: the traits an op has because of its types or attributes, besides those of its name."""

_GLOB_CHARACTERS = frozenset("*?[")


def _frozen_traits(traits: Iterable[Trait]) -> frozenset[Trait]:
    return frozenset(traits)


def _check_name(definition: OpDefinition, attribute: Any, name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise PluginError(Diagnostic("invalid-op-name", f"an op is registered under its full name, not {name!r}"))


def _check_traits(definition: OpDefinition, attribute: Any, traits: frozenset[Trait]) -> None:
    for trait in traits:
        if not isinstance(trait, Trait):
            raise PluginError(
                Diagnostic(
                    "invalid-trait",
                    f"{trait!r} is not a trait",
                    op=definition.name,
                    hint="use the markers of shardy_py.plugins, for example traits=[Elementwise]",
                )
            )


def _check_rule(definition: OpDefinition, attribute: Any, rule: object) -> None:
    if rule is None:
        return
    if definition.is_glob:
        raise PluginError(
            Diagnostic(
                "invalid-glob",
                "a name with wildcards can only give traits, not a sharding rule",
                op=definition.name,
                hint="register the rule under every full op name",
            )
        )
    if not callable(rule) and not isinstance(rule, ShardingRuleOpInterface):
        raise PluginError(
            Diagnostic(
                "invalid-rule",
                f"{rule!r} is neither a function of the op nor an object with get_sharding_rule",
                op=definition.name,
            )
        )


def _check_data_flow(definition: OpDefinition, attribute: Any, data_flow: object) -> None:
    if isinstance(data_flow, type):
        message = f"the data flow is the class {data_flow.__name__}, not an object"
        raise PluginError(Diagnostic("invalid-data-flow", message, op=definition.name, hint=f"{data_flow.__name__}()"))
    if data_flow is not None and not hasattr(data_flow, "get_edge_sources"):
        hint = "give an object with the methods of ShardableDataFlowOpInterface, such as LoopDataFlow()"
        message = f"{data_flow!r} does not describe data flow"
        raise PluginError(Diagnostic("invalid-data-flow", message, op=definition.name, hint=hint))


@frozen
class OpDefinition:
    """All that is known about the ops of one name.

    Args:
        name: The full op name, for example ``toy.add``; or a glob such as ``toy.add_*`` that gives traits only.
        traits: The traits of every op of that name.
        rule: A function of the op, or of the op and the `RuleOptions`, a `RuleSpec`, or an object with
            ``get_sharding_rule``. An `Elementwise` op without one is sharded alike in all of its tensors.
        data_flow: What describes the data-flow edges of the op.
        sharding_attribute: The attribute that holds the sharding of the results.
        traits_of: Gives more traits from the op itself.
        may_have: The traits of one's own that only ``traits_of`` gives, so that a schedule in a file may name them.
        contextual: Whether the rule looks further than names, types and attributes (at producers, users or regions),
            so that it must not be reused for an op that looks the same.
        mesh_reference: What knows the mesh to which the op refers besides its shardings.
        cost: What says what the op costs, where its rule does not tell.
    """

    name: str = field(validator=_check_name)
    traits: frozenset[Trait] = field(
        default=frozenset(), kw_only=True, converter=_frozen_traits, validator=_check_traits
    )
    rule: Rule | ShardingRuleOpInterface | None = field(default=None, kw_only=True, validator=_check_rule)
    data_flow: ShardableDataFlowOpInterface | None = field(default=None, kw_only=True, validator=_check_data_flow)
    sharding_attribute: str = field(default="sdy.sharding", kw_only=True)
    traits_of: TraitsOf | None = field(default=None, kw_only=True)
    may_have: frozenset[Trait] = field(
        default=frozenset(), kw_only=True, converter=_frozen_traits, validator=_check_traits
    )
    contextual: bool = field(default=False, kw_only=True)
    mesh_reference: MeshReferenceOpInterface | None = field(default=None, kw_only=True)
    cost: CostOpInterface | None = field(default=None, kw_only=True)
    _dialect: Dialect | None = field(default=None, kw_only=True, eq=False, repr=False)

    @property
    def is_glob(self) -> bool:
        """Whether the name has wildcards."""
        return not _GLOB_CHARACTERS.isdisjoint(self.name)

    def __call__(self, rule: Rule) -> Rule:
        """Make the definition a decorator: take a function as the rule and hand it back.

        Raises:
            PluginError: the definition was not made by `Dialect.op`, or has a rule already.
        """
        if self._dialect is None or self.rule is not None:
            reason = "has a rule already" if self.rule is not None else "belongs to no dialect"
            raise PluginError(Diagnostic("invalid-rule", f"the definition {reason}", op=self.name))
        self._dialect.replace(evolve(self, rule=rule))
        return rule


@define
class Dialect:
    """A named set of op definitions.

    >>> toy = Dialect("toy")
    >>> toy.op("toy.add").name
    'toy.add'
    """

    name: str
    _definitions: dict[str, OpDefinition] = field(factory=dict, init=False)

    @property
    def definitions(self) -> tuple[OpDefinition, ...]:
        """The definitions, in the order in which they were added."""
        return tuple(self._definitions.values())

    def op(
        self,
        name: str,
        *,
        traits: Iterable[Trait] = (),
        rule: str | Rule | ShardingRuleOpInterface | None = None,
        reduction: Factors = (),
        need_replication: Factors = (),
        permutation: Factors = (),
        blocked: Factors = (),
        data_flow: ShardableDataFlowOpInterface | None = None,
        sharding_attribute: str = "sdy.sharding",
        traits_of: TraitsOf | None = None,
        may_have: Iterable[Trait] = (),
        contextual: bool = False,
        mesh_reference: MeshReferenceOpInterface | None = None,
        cost: CostOpInterface | None = None,
    ) -> OpDefinition:
        """Define an op; also a decorator over its rule function.

        Args:
            name: See `OpDefinition`; likewise the rest.
            traits: See there.
            rule: See there; or the rule as a text, see `shardy_py.sharding.einsum.rule`.
            reduction: For a rule given as a text, see there; likewise the next three.
            need_replication: See there.
            permutation: See there.
            blocked: See there.
            data_flow: See there.
            sharding_attribute: See there.
            traits_of: See there.
            may_have: See there.
            contextual: See there.
            mesh_reference: See there.
            cost: See there.

        Returns:
            The definition.

        Raises:
            PluginError: the dialect defines the op already, or an argument is unfit.
            RuleError: the text is not a rule.
        """
        kinds = {
            "reduction": reduction,
            "need_replication": need_replication,
            "permutation": permutation,
            "blocked": blocked,
        }
        return self.add(
            OpDefinition(
                name,
                traits=frozenset(traits),
                rule=_spelled_out(name, rule, kinds),
                data_flow=data_flow,
                sharding_attribute=sharding_attribute,
                traits_of=traits_of,
                may_have=frozenset(may_have),
                contextual=contextual,
                mesh_reference=mesh_reference,
                cost=cost,
                dialect=self,
            )
        )

    def add(self, definition: OpDefinition) -> OpDefinition:
        """Add a definition made elsewhere.

        Raises:
            PluginError: the dialect defines the op already.
        """
        if definition.name in self._definitions:
            raise PluginError(
                Diagnostic("duplicate-op", f"dialect {self.name!r} defines the op twice", op=definition.name)
            )
        self._definitions[definition.name] = definition
        return definition

    def replace(self, definition: OpDefinition) -> OpDefinition:
        """Put a definition in the place of the one of the same name.

        Raises:
            PluginError: the dialect does not define the op.
        """
        if definition.name not in self._definitions:
            raise PluginError(
                Diagnostic("unknown-op", f"dialect {self.name!r} does not define the op", op=definition.name)
            )
        self._definitions[definition.name] = definition
        return definition


def _spelled_out(
    name: str, given: str | Rule | ShardingRuleOpInterface | None, kinds: dict[str, Factors]
) -> Rule | ShardingRuleOpInterface | None:
    """Return a rule that was given as a text as a spec, another as it is."""
    if isinstance(given, str):
        try:
            return parse_rule(given, **kinds)  # type: ignore[arg-type]
        except RuleError as error:
            raise RuleError(*(evolve(item, op=name) for item in error.diagnostics)) from None
    named = [kind for kind, factors in kinds.items() if tuple(factors)]
    if named:
        message = f"{named[0]} goes with a rule given as a text only"
        raise PluginError(Diagnostic("invalid-rule", message, op=name, hint="give it to rule(...), or to the builder"))
    return given
