"""Dialects and op definitions: what a plugin registers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from shardy_py.errors import Diagnostic, PluginError, RuleError, did_you_mean
from shardy_py.indexing import IndexingMap, OpIndexing
from shardy_py.ir.costs import CostOpInterface
from shardy_py.ir.emission import Emission
from shardy_py.ir.graph import Op
from shardy_py.ir.guard import calling_place, shorten_place, shown
from shardy_py.ir.interfaces import (
    MeshReferenceOpInterface,
    RuleOptions,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Trait,
)
from shardy_py.plugins import checks
from shardy_py.plugins.type_definition import ShapeOf, TypeDefinition
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.einsum import RuleSpec
from shardy_py.sharding.einsum import rule as parse_rule
from shardy_py.sharding.rule import OpShardingRule

Made = OpShardingRule | RuleSpec | None
"""What a rule function returns; a `RuleSpec` is bound to the shapes of the op."""

Rule = Callable[[Op], Made] | Callable[[Op, RuleOptions], Made]
"""A rule function; one with a second parameter gets the rule options."""

Factors = str | Iterable[str]
Reduction = Factors | Mapping[str, str | Combiner]

CombinerOf = Callable[[Op], Combiner | None]
"""Returns how the reductions of an op combine, None where they cannot be combined."""

InitialOf = Callable[[Op], Iterable[int]]
"""Returns the numbers of the operands that the reductions of an op start from."""

TraitsOf = Callable[[Op], Iterable[Trait]]
"""A predicate: the traits an op has because of its types or attributes, besides those of its name."""

Indexing = Callable[[Op], OpIndexing | Sequence[IndexingMap] | None]
"""The indexing maps of an op: in both directions, or one per operand from the index of its first result.

None where they are not known.
"""

_GLOB_CHARACTERS = frozenset("*?[")
_OF_ONE_OP = ("data_flow", "mesh_reference", "cost", "indexing", "emission")


def _check_definition(definition: OpDefinition) -> None:
    """Check all arguments of a definition.

    Raises:
        PluginError: one is unfit.
    """
    name = definition.name
    checks.check_rule(definition.rule, op=name, is_glob=definition.is_glob)
    checks.check_traits_of(definition.traits_of, op=name)
    checks.check_data_flow(definition.data_flow, op=name)
    checks.check_mesh_reference(definition.mesh_reference, op=name)
    checks.check_cost(definition.cost, op=name)
    checks.check_indexing(definition.indexing, op=name)
    checks.check_emission(definition.emission, op=name)
    checks.check_flag(definition.contextual, op=name, argument="contextual")
    checks.check_attribute_name(definition.sharding_attribute, op=name)
    if definition.is_glob:
        given = [item for item in _OF_ONE_OP if getattr(definition, item) is not None]
        if given:
            message = f"a name with wildcards can only give traits, not {given[0]}"
            raise checks.refuse("invalid-glob", message, name, hint=f"give {given[0]} to every full op name")
    if definition.rule is not None and definition.data_flow is not None:
        message = "the op has a rule and a data flow; shardings go through it by one of them"
        raise checks.refuse("rule-and-data-flow", message, name, hint="leave out the rule, or data_flow")


def _check_name(definition: OpDefinition, attribute: Any, name: Any) -> None:
    checks.check_op_name(name)


def _check_combiner(definition: OpDefinition, attribute: Any, combiner: object) -> None:
    if not isinstance(combiner, Combiner) and not callable(combiner):
        message = f"{combiner!r} is neither a Combiner nor a function of the op"
        hint = "for example combiner=Combiner.MAX"
        raise PluginError(Diagnostic("invalid-combiner", message, op=definition.name, hint=hint))


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
        indexing: A function of the op that gives its indexing maps: one per operand from the index of the first
            result, or an `OpIndexing`, which also has those from the operands; None where they are not known. An op
            with maps and without a rule gets its rule from them.
        emission: The scalar body: a function of a builder and the op that builds one element of each result, for
            kernels.
        place: The line that defines it, for errors, or "".
        any_sizes: Whether the factors of the rule may have other sizes than their dimensions, as those of windows do
            that move in steps; nobody checks the sizes then.
        combiner: How the reductions of the op combine where its rule says nothing else: besides a sum.
        initial_of: Gives the numbers of the operands that the reductions start from, where the rule says nothing.
        sums_collectives: Whether explicit collectives of the op are sums all the same, as the reference has them.
    """

    name: str = field(validator=_check_name)
    traits: frozenset[Trait] = field(default=frozenset(), kw_only=True, converter=checks.as_traits)
    rule: Rule | ShardingRuleOpInterface | None = field(default=None, kw_only=True)
    data_flow: ShardableDataFlowOpInterface | None = field(default=None, kw_only=True)
    sharding_attribute: str = field(default="sdy.sharding", kw_only=True)
    traits_of: TraitsOf | None = field(default=None, kw_only=True)
    may_have: frozenset[Trait] = field(default=frozenset(), kw_only=True, converter=checks.as_traits)
    contextual: bool = field(default=False, kw_only=True)
    mesh_reference: MeshReferenceOpInterface | None = field(default=None, kw_only=True)
    cost: CostOpInterface | None = field(default=None, kw_only=True)
    indexing: Indexing | None = field(default=None, kw_only=True)
    emission: Emission | None = field(default=None, kw_only=True)
    place: str = field(default="", kw_only=True, eq=False, repr=False)
    any_sizes: bool = field(default=False, kw_only=True)
    combiner: Combiner | CombinerOf = field(default=Combiner.ADD, kw_only=True, validator=_check_combiner)
    initial_of: InitialOf | None = field(default=None, kw_only=True)
    sums_collectives: bool = field(default=False, kw_only=True)
    _dialect: Dialect | None = field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _check_definition(self)

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
        if rule is None:
            raise checks.refuse("invalid-rule", "the decorator is over None, not over a rule function", self.name)
        self._dialect.replace(evolve(self, rule=_spelled_out(self.name, rule, {})))
        return rule


@define
class Dialect:
    """A named set of op definitions.

    >>> toy = Dialect("toy")
    >>> toy.op("toy.add").name
    'toy.add'
    """

    name: str = field(validator=lambda dialect, attribute, name: checks.check_dialect_name(name))
    _definitions: dict[str, OpDefinition] = field(factory=dict, init=False)
    _types: dict[str, TypeDefinition] = field(factory=dict, init=False)

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
        reduction: Reduction = (),
        need_replication: Factors = (),
        permutation: Factors = (),
        blocked: Factors = (),
        pass_through: Factors = (),
        initial: int | Iterable[int] = (),
        data_flow: ShardableDataFlowOpInterface | None = None,
        sharding_attribute: str = "sdy.sharding",
        traits_of: TraitsOf | None = None,
        may_have: Iterable[Trait] = (),
        contextual: bool = False,
        mesh_reference: MeshReferenceOpInterface | None = None,
        cost: CostOpInterface | None = None,
        indexing: Indexing | None = None,
        emission: Emission | None = None,
        any_sizes: bool = False,
        combiner: Combiner | CombinerOf = Combiner.ADD,
        initial_of: InitialOf | None = None,
        sums_collectives: bool = False,
    ) -> OpDefinition:
        """Define an op; also a decorator over its rule function.

        Args:
            name: See `OpDefinition`; likewise the rest.
            traits: See there.
            rule: See there; or the rule as a text, see `shardy_py.rule`.
            reduction: For a rule given as a text, see `shardy_py.rule`; likewise the next five.
            need_replication: See there.
            permutation: See there.
            blocked: See there.
            pass_through: See there.
            initial: See there.
            data_flow: See there.
            sharding_attribute: See there.
            traits_of: See there.
            may_have: See there.
            contextual: See there.
            mesh_reference: See there.
            cost: See there.
            indexing: See there.
            emission: See there.
            any_sizes: See there.
            combiner: See there.
            initial_of: See there.
            sums_collectives: See there.

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
            "pass_through": pass_through,
            "initial": initial,
        }
        checks.check_op_name(name)
        checks.check_factor_marks({kind: marks for kind, marks in kinds.items() if kind != "initial"}, op=name)
        return self.add(
            OpDefinition(
                name,
                traits=checks.as_traits(traits, op=name),
                rule=_spelled_out(name, rule, kinds),
                data_flow=data_flow,
                sharding_attribute=sharding_attribute,
                traits_of=traits_of,
                may_have=checks.as_traits(may_have, op=name, argument="may_have"),
                contextual=contextual,
                mesh_reference=mesh_reference,
                cost=cost,
                indexing=indexing,
                emission=emission,
                place=calling_place(),
                any_sizes=any_sizes,
                combiner=combiner,
                initial_of=initial_of,
                sums_collectives=sums_collectives,
                dialect=self,
            )
        )

    def add(self, definition: OpDefinition) -> OpDefinition:
        """Add a definition made elsewhere.

        Raises:
            PluginError: the dialect defines the op already, or it is no definition.
        """
        self._check(definition)
        first = self._definitions.get(definition.name)
        if first is not None:
            hint = f"it is defined at {shorten_place(first.place)}, too" if first.place else ""
            message = f"dialect {self.name!r} defines the op twice"
            raise checks.refuse("duplicate-op", message, definition.name, hint=hint)
        self._definitions[definition.name] = definition
        return definition

    def replace(self, definition: OpDefinition) -> OpDefinition:
        """Put a definition in the place of the one of the same name.

        Raises:
            PluginError: the dialect does not define the op, or it is no definition.
        """
        self._check(definition)
        if definition.name not in self._definitions:
            hint = did_you_mean(definition.name, self._definitions)
            raise checks.refuse(
                "unknown-op", f"dialect {self.name!r} does not define the op", definition.name, hint=hint
            )
        self._definitions[definition.name] = definition
        return definition

    @property
    def types(self) -> tuple[TypeDefinition, ...]:
        """The definitions of types, in the order in which they were added."""
        return tuple(self._types.values())

    def type(self, name: str, *, shape_of: ShapeOf | None = None) -> TypeDefinition:
        """Define a type that is no builtin tensor; also a decorator over its ``shape_of``.

        >>> torch = Dialect("torch")
        >>> torch.type("!torch.int").name
        '!torch.int'

        Args:
            name: The name with its dialect and without parameters: ``!torch.vtensor``.
            shape_of: A function of the type (an `OpaqueType` with ``name``, ``parameters`` and ``text``) that returns
                its sizes, None for a dynamic one; or a `TensorType`, which has the element type, too; or None for a
                type that is no tensor. Without it no type of that name is a tensor.

        Returns:
            The definition.

        Raises:
            PluginError: the dialect defines the type already, or an argument is unfit.
        """
        definition = TypeDefinition.made_here(name, shape_of, self)
        if name in self._types:
            first = self._types[name]
            hint = f"it is defined at {shorten_place(first.place)}, too" if first.place else ""
            raise checks.refuse("duplicate-type", f"dialect {self.name!r} defines the type {name} twice", hint=hint)
        self._types[name] = definition
        return definition

    def replace_type(self, definition: TypeDefinition) -> None:
        """Put the definition of a type in the place of the one of the same name."""
        self._types[definition.name] = definition

    def _check(self, definition: Any) -> None:
        if not isinstance(definition, OpDefinition):
            message = f"{shown(definition)} is not an op definition"
            raise checks.refuse("invalid-definition", message, hint=f"use {self.name}.op(name, ...)")


def _spelled_out(
    name: str, given: str | Rule | ShardingRuleOpInterface | None, kinds: dict[str, Any]
) -> Rule | ShardingRuleOpInterface | None:
    """Return a rule that was given as a text as a spec, another as it is."""
    if isinstance(given, str):
        try:
            return parse_rule(given, **kinds)
        except RuleError as error:
            raise RuleError(*(evolve(item, op=name) for item in error.diagnostics)) from None
    named = [kind for kind, factors in kinds.items() if factors not in ((), [], "")]
    if named:
        message = f"{named[0]} goes with a rule given as a text only"
        raise PluginError(Diagnostic("invalid-rule", message, op=name, hint="give it to rule(...), or to the builder"))
    return given


def check_dialects(given: Any) -> tuple[Dialect, ...]:
    """Return dialects that a caller gives.

    Raises:
        PluginError: they are no list of dialects.
    """
    if isinstance(given, Dialect):
        raise checks.refuse("invalid-dialect", f"the dialects are {shown(given.name)} alone", hint="give a list: [toy]")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise checks.refuse("invalid-dialect", f"{shown(given)} is no list of dialects", hint="give a list: [toy]")
    found = tuple(given)
    for item in found:
        if not isinstance(item, Dialect):
            hint = "a module with hooks goes to plugins=[...]" if inspect.ismodule(item) else 'sdy.Dialect("toy")'
            raise checks.refuse("invalid-dialect", f"{shown(item)} is no dialect", hint=hint)
    return found
