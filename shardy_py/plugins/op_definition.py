"""Op definitions: traits, rule, data flow and the rest that a plugin gives for the ops of one name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, fields

from shardy_py.errors import Diagnostic, PluginError, RuleError
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import (
    MeshReferenceOpInterface,
    RuleOptions,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Trait,
)
from shardy_py.plugins.argument_checks import is_function_of, refuse
from shardy_py.plugins.definition_checks import (
    NO_CONDITION,
    as_condition,
    as_traits,
    check_attribute_name,
    check_contextual,
    check_cost,
    check_data_flow,
    check_emission,
    check_indexing,
    check_local,
    check_mesh_reference,
    check_op_name,
    check_rule,
    check_sizes,
    check_traits_of,
)
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.einsum.spec import RuleSpec
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.support.arguments import shown
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.indexing import IndexingMap, OpIndexing
    from shardy_py.ir.interfaces.costs import CostOpInterface
    from shardy_py.ir.interfaces.emission import Emission
    from shardy_py.ir.interfaces.local import Localize, LocalOpInterface
    from shardy_py.ir.interfaces.result_sizes import SizesOf

    Indexing = Callable[[Op], OpIndexing | Sequence[IndexingMap] | None]
    """The indexing maps of an op: in both directions, or one per operand from the index of its first result.

    None where they are not known.
    """
    Cost = CostOpInterface | Callable[[], CostOpInterface]
    """The cost of an op, or a function that makes it."""
    Local = Localize | LocalOpInterface
    """The form of an op on one device: a function of the op and its `Shard`, or an object with ``localize``."""

Made = OpShardingRule | RuleSpec | None
"""The answer of a rule function; a `RuleSpec` is bound to the shapes of the op."""
Rule = Callable[[Op], Made] | Callable[[Op, RuleOptions], Made]
"""A rule function; one with a second parameter gets the rule options."""
CombinerOf = Callable[[Op], Combiner | None]
"""Returns the combiner of the reductions of an op, None if they have none."""
InitialOf = Callable[[Op], Iterable[int]]
"""Returns the numbers of the initial operands of the reductions of an op."""
TraitsOf = Callable[[Op], Iterable[Trait]]
"""A predicate: the traits an op has because of its types or attributes, besides those of its name."""
ContextOf = Callable[[Op], Hashable]
"""Returns what a rule reads of producers, users or regions, as one value: ops with equal ones may share the rule."""
_GLOB_CHARACTERS = frozenset("*?[")
OF_ONE_OP = ("data_flow", "mesh_reference", "cost", "indexing", "emission", "local", "sizes")
"""The parts that only the definition of one op name can give."""
_CHECKS: Mapping[str, Callable[..., None]] = {
    "traits_of": check_traits_of,
    "data_flow": check_data_flow,
    "mesh_reference": check_mesh_reference,
    "cost": check_cost,
    "indexing": check_indexing,
    "emission": check_emission,
    "local": check_local,
    "sizes": check_sizes,
}
"""The checks of the parts that a definition may lack, in order."""
_PARTS = tuple(_CHECKS)
_parts_of: Callable[[Any], tuple[Any, ...]] = attrgetter(*_PARTS)
_ARGUMENT_COUNTS: Mapping[str, int] = {"traits_of": 1, "cost": 0, "indexing": 1, "emission": 2, "local": 2}
"""The number of arguments of the parts that are mostly plain functions, which need no other check."""


def _check_definition(definition: OpDefinition) -> None:
    """Check all arguments of a definition.

    Raises:
        PluginError: one is unfit.
    """
    name, is_glob = definition.name, definition.is_glob
    if is_glob or not is_function_of(definition.rule, 1):
        check_rule(definition.rule, op=name, is_glob=is_glob)
    _check_parts(name, zip(_PARTS, _parts_of(definition), strict=True))
    check_contextual(definition.contextual, op=name)
    check_attribute_name(definition.sharding_attribute, op=name)
    _check_together(definition)


def _check_parts(op: str, parts: Iterable[tuple[str, Any]]) -> None:
    """Check those of the parts that are there, given with their names."""
    for name, part in parts:
        if part is not None and not is_function_of(part, _ARGUMENT_COUNTS.get(name, -1)):
            _CHECKS[name](part, op=op)


def _check_together(definition: OpDefinition) -> None:
    """Check that the parts of a definition go with its name and with each other."""
    name = definition.name
    if definition.is_glob:
        if definition.when:
            message = "a name with wildcards cannot depend on attributes"
            raise refuse("invalid-glob", message, name, hint="leave out when")
        of_one_op = [item for item in OF_ONE_OP if getattr(definition, item) is not None]
        if of_one_op:
            message = f"a name with wildcards can only give traits, not {of_one_op[0]}"
            raise refuse("invalid-glob", message, name, hint=f"give {of_one_op[0]} to every full op name")
    if definition.when and (definition.data_flow is not None or definition.mesh_reference is not None):
        message = "data flow and mesh references are those of all ops of a name"
        raise refuse("invalid-condition", message, name, hint="leave out when, or give a rule")
    if definition.rule is not None and definition.data_flow is not None:
        message = "the op has a rule and a data flow; shardings go through it by one of them"
        raise refuse("rule-and-data-flow", message, name, hint="leave out the rule, or data_flow")


def _check_name(definition: OpDefinition, attribute: Any, name: Any) -> None:
    check_op_name(name)


def _check_combiner(definition: OpDefinition, attribute: Any, combiner: object) -> None:
    if not isinstance(combiner, Combiner) and not callable(combiner):
        message = f"{shown(combiner)} is neither a Combiner nor a function of the op"
        hint = "for example combiner=Combiner.MAX"
        raise PluginError(Diagnostic("invalid-combiner", message, op=definition.name, hint=hint))


@frozen
class OpDefinition:
    """Definition of the ops of one name.

    Args:
        name: The full op name, for example ``toy.add``; or a glob such as ``toy.add_*`` that gives traits only.
        traits: The traits of every op of that name.
        rule: A function of the op, or of the op and the `RuleOptions`, a `RuleSpec`, or an object with
            ``get_sharding_rule``. An `Elementwise` op without one is sharded alike in all of its tensors.
        data_flow: The data-flow edges of the op.
        sharding_attribute: The attribute that holds the sharding of the results.
        traits_of: A function of the op that gives more traits.
        may_have: The plugin's own traits that only ``traits_of`` gives; a schedule in a file may name them.
        contextual: Whether the rule looks further than names, types and attributes (at producers, users or regions),
            so that it must not be reused for an op that looks the same; or a function of the op that returns what it
            finds there, so that it can be reused where that is the same, too.
        mesh_reference: Access to the mesh to which the op refers besides its shardings.
        cost: The cost of the op, where it does not follow from the rule; or a function without arguments that returns
            it, called when a cost is asked for, so that its module need not be imported before.
        indexing: A function of the op that gives its indexing maps: one per operand from the index of the first
            result, or an `OpIndexing`, which also has those from the operands; None where they are not known. An op
            with maps and without a rule gets its rule from them.
        emission: The scalar body: a function of a builder and the op that builds one element of each result, for
            kernels.
        local: The form of the op on one device: a function of the op and its `Shard`, or an object with ``localize``.
            Without it, the form follows from the rule and the types.
        sizes: A function of the op, and of a function that returns the elements of small tensors of integers, that
            returns the `ResultSizes` where sizes do not follow from the rule.
        location: The line that defines it, for errors, or "".
        any_sizes: Whether the factors of the rule may have other sizes than their dimensions, as those of windows do
            that move in steps; nobody checks the sizes then.
        combiner: The combiner of the op's reductions, where the rule gives none.
        initial_of: Gives the numbers of the initial operands of the reductions, where the rule gives none.
        sums_collectives: Whether explicit collectives of the op are sums all the same, as the reference has them.
        when: The values of attributes of the ops that this definition is about, such as the target of a custom call;
            by default it is about all ops of the name. What it does not give, the definition for all of them does.
        told_apart_by: The attribute whose values tell kinds of the op apart that need rules of their own, or "".
    """

    name: str = field(validator=_check_name)
    traits: frozenset[Trait] = field(default=frozenset(), kw_only=True, converter=as_traits)
    rule: Rule | ShardingRuleOpInterface | None = field(default=None, kw_only=True)
    data_flow: ShardableDataFlowOpInterface | None = field(default=None, kw_only=True)
    sharding_attribute: str = field(default="sdy.sharding", kw_only=True)
    traits_of: TraitsOf | None = field(default=None, kw_only=True)
    may_have: frozenset[Trait] = field(default=frozenset(), kw_only=True, converter=as_traits)
    contextual: bool | ContextOf = field(default=False, kw_only=True)
    mesh_reference: MeshReferenceOpInterface | None = field(default=None, kw_only=True)
    cost: Cost | None = field(default=None, kw_only=True)
    indexing: Indexing | None = field(default=None, kw_only=True)
    emission: Emission | None = field(default=None, kw_only=True)
    local: Local | None = field(default=None, kw_only=True)
    sizes: SizesOf | None = field(default=None, kw_only=True)
    location: str = field(default="", kw_only=True, eq=False, repr=False)
    any_sizes: bool = field(default=False, kw_only=True)
    combiner: Combiner | CombinerOf = field(default=Combiner.ADD, kw_only=True, validator=_check_combiner)
    initial_of: InitialOf | None = field(default=None, kw_only=True)
    sums_collectives: bool = field(default=False, kw_only=True)
    when: Mapping[str, Any] = field(default=NO_CONDITION, kw_only=True, converter=as_condition)
    told_apart_by: str = field(default="", kw_only=True)
    _register: Callable[[OpDefinition], object] | None = field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _check_definition(self)

    @property
    def key(self) -> str:
        """The name, with the values of attributes that the definition is about."""
        return (
            f"{self.name}{{{', '.join(f'{name} = {value!r}' for name, value in self.when.items())}}}"
            if self.when
            else self.name
        )

    def is_about(self, op: Op) -> bool:
        """Return whether an op of the name has the attributes that the definition is about."""
        return all(op.attributes.get(name) == value for name, value in self.when.items())

    @property
    def is_glob(self) -> bool:
        """True if the name has wildcards."""
        return not _GLOB_CHARACTERS.isdisjoint(self.name)

    def with_parts(self, parts: Mapping[str, Any]) -> OpDefinition:
        """Return the definition with other parts; only these are checked.

        Args:
            parts: The parts, by the names of the arguments.

        Raises:
            PluginError: one is unfit.
        """
        if not parts.keys() <= _CHECKS.keys():
            return evolve(self, **parts)
        copied = object.__new__(OpDefinition)
        assign = object.__setattr__
        for name in _FIELDS:
            assign(copied, name, getattr(self, name))
        for name, part in parts.items():
            assign(copied, name, part)
        _check_parts(self.name, parts.items())
        _check_together(copied)
        return copied

    def __call__(self, rule: Rule) -> Rule:
        """Make the definition a decorator: take a function as the rule and hand it back.

        Raises:
            PluginError: the definition was not made by `Dialect.op`, or has a rule already.
        """
        if self._register is None or self.rule is not None:
            reason = "has a rule already" if self.rule is not None else "belongs to no dialect"
            raise PluginError(Diagnostic("invalid-rule", f"the definition {reason}", op=self.name))
        if rule is None:
            raise refuse("invalid-rule", "the decorator is over None, not over a rule function", self.name)
        self._register(evolve(self, rule=as_rule(self.name, rule, {})))
        return rule


_FIELDS = tuple(item.name for item in fields(OpDefinition))


def as_rule(
    name: str, rule: str | Rule | ShardingRuleOpInterface | None, kinds: dict[str, Any]
) -> Rule | ShardingRuleOpInterface | None:
    """Return the spec of a rule given as a text; any other rule as it is."""
    if isinstance(rule, str):
        from shardy_py.sharding.einsum import rule as parse_rule

        try:
            return parse_rule(rule, **kinds)
        except RuleError as error:
            raise RuleError(*(evolve(item, op=name) for item in error.diagnostics)) from None
    named = [kind for kind, factors in kinds.items() if factors not in ((), [], "")]
    if named:
        message = f"{named[0]} goes with a rule given as a text only"
        raise PluginError(Diagnostic("invalid-rule", message, op=name, hint="give it to rule(...), or to the builder"))
    return rule
