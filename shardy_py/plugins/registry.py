"""The registry: a frozen value that answers all questions about ops from the definitions of the dialects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from shardy_py.errors import Diagnostic, PluginError, RuleError, ShardyError
from shardy_py.indexing import OpIndexing
from shardy_py.ir.attributes import freeze, shared_key
from shardy_py.ir.costs import CostOpInterface
from shardy_py.ir.emission import ElementBuilder, Scalar
from shardy_py.ir.frontend import Frontend
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.guard import Guard, describe_error
from shardy_py.ir.interfaces import (
    Contraction,
    Elementwise,
    MeshReferenceOpInterface,
    OpFacts,
    RuleOptions,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.ir.passes import Pass
from shardy_py.ir.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.types import OpaqueType, Type, static_shape
from shardy_py.plugins.clashes import (
    PluginInfo,
    clash,
    first_of_each,
    frontend_clash,
    pass_clash,
    type_clash,
    with_problems,
)
from shardy_py.plugins.dialect import CombinerOf, Dialect, InitialOf, OpDefinition, TraitsOf, check_dialects
from shardy_py.plugins.guarded_frontend import GuardedFrontend
from shardy_py.plugins.guarded_interfaces import (
    guard_cost,
    guard_data_flow,
    guard_emission,
    guard_indexing,
    guard_mesh_reference,
    guard_traits_of,
    look_of,
)
from shardy_py.plugins.rule_checks import as_combiner, as_operand_numbers, check_written_rule, checked_rule
from shardy_py.plugins.rule_notices import find_notices, warn_of
from shardy_py.plugins.type_definition import TypeDefinition, give_shape, has_unknown_shape
from shardy_py.rules import elementwise
from shardy_py.schedule.model import OpPriority
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.derivation import rule_from_op_maps
from shardy_py.sharding.einsum import RuleSpec
from shardy_py.sharding.reductions import Reductions
from shardy_py.sharding.rule import OpShardingRule

DEFAULT_OPTIONS = RuleOptions()
_MANY_NAMES = 10_000
_FRAME = frozenset(("builtin", "func", "sdy"))
_T = TypeVar("_T")

IndexingOf = Callable[[Op], OpIndexing | None]
EmissionOf = Callable[[ElementBuilder, Op], tuple[Scalar, ...]]


@frozen
class _Resolved:
    """A definition made ready for look-ups: globs applied, the form of the rule found out."""

    traits: frozenset[Trait] = frozenset()
    predicates: tuple[TraitsOf, ...] = ()
    rule: Any = None
    takes_options: bool = False
    contextual: bool = False
    data_flow: ShardableDataFlowOpInterface | None = None
    sharding_attribute: str = "sdy.sharding"
    mesh_reference: MeshReferenceOpInterface | None = None
    cost: CostOpInterface | None = None
    indexing: IndexingOf | None = None
    emission: EmissionOf | None = None
    any_sizes: bool = False
    combiner: Combiner | CombinerOf = Combiner.ADD
    initial_of: InitialOf | None = None
    sums_collectives: bool = False
    facts: OpFacts = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "facts", OpFacts(self.traits, None))


@frozen(slots=False)
class Registry:
    """The definitions of all plugins; implements `shardy_py.ir.interfaces.OpSemantics`.

    Args:
        definitions: One per op name or glob, sorted by name.
        owners: For each op name, who defines it (``plugin 'x', dialect 'y'``).
        options: What rules depend on besides their op.
        plugins: What became of each plugin, sorted by name.
        passes: The passes of the plugins by their names.
        frontends: The frontends of the plugins by their names, sorted; those of this package are not among them.
        tolerated: The owners among the installed plugins whose failures do not stop programs that do not need them.
        types: The definitions of types by their names, sorted.
        type_owners: For each name of a type, who defines it.
    """

    definitions: tuple[OpDefinition, ...] = ()
    owners: Mapping[str, str] = field(factory=dict)
    options: RuleOptions = DEFAULT_OPTIONS
    plugins: tuple[PluginInfo, ...] = ()
    passes: Mapping[str, type[Pass]] = field(factory=dict)
    frontends: Mapping[str, Frontend] = field(factory=dict)
    tolerated: frozenset[str] = frozenset()
    types: Mapping[str, TypeDefinition] = field(factory=dict)
    type_owners: Mapping[str, str] = field(factory=dict)
    _resolved: dict[str, _Resolved] = field(factory=dict, init=False, eq=False, repr=False)
    _by_name: dict[str, OpDefinition] = field(init=False, eq=False, repr=False)
    _token: object = field(factory=object, init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {item.name: item for item in self.definitions})

    @classmethod
    def of(
        cls,
        dialects: Iterable[Dialect] = (),
        *,
        frontends: Iterable[Frontend] = (),
        options: RuleOptions = DEFAULT_OPTIONS,
    ) -> Registry:
        """Return a registry of the given dialects, without looking for plugins.

        Args:
            dialects: The dialects.
            frontends: Frontends besides those of this package.
            options: What rules depend on besides their op.

        Raises:
            PluginError: two dialects define the same op, two frontends have one name, or something is no dialect.
        """
        return cls.build(
            [(f"dialect {dialect.name!r}", dialect) for dialect in check_dialects(dialects)],
            options=options,
            frontends=[(f"the class {type(item).__name__}", item) for item in frontends],
        )

    @classmethod
    def build(
        cls,
        owned: Iterable[tuple[str, Dialect]],
        *,
        options: RuleOptions = DEFAULT_OPTIONS,
        plugins: Iterable[PluginInfo] = (),
        passes: Iterable[tuple[str, type[Pass]]] = (),
        frontends: Iterable[tuple[str, Frontend]] = (),
        skip_broken: bool = False,
    ) -> Registry:
        """Return a registry of dialects, passes and frontends with the words that name their owners in errors.

        Args:
            owned: The dialects with their owners.
            options: What rules depend on besides their op.
            plugins: What became of each plugin.
            passes: The passes with their owners.
            frontends: The frontends with their owners.
            skip_broken: Whether an op, a pass or a frontend that is defined more than once is left to its first owner,
                and noted in `plugins`, instead of an error.

        Raises:
            PluginError: an op, a pass or a frontend is defined more than once; all are named, each with its owners.
        """
        owned = tuple(owned)
        definitions = [(owner, item.name, item) for owner, dialect in owned for item in dialect.definitions]
        classes = [(owner, class_.name, class_) for owner, class_ in passes]
        by_name, op_clashes = first_of_each(definitions, clash)
        by_pass, pass_clashes = first_of_each(classes, pass_clash)
        by_frontend, frontend_clashes = first_of_each(
            [(owner, item.name, GuardedFrontend(item, owner)) for owner, item in frontends], frontend_clash
        )
        types = [(owner, item.name, item) for owner, dialect in owned for item in dialect.types]
        by_type, type_clashes = first_of_each(types, type_clash)
        clashes = [*op_clashes, *pass_clashes, *frontend_clashes, *type_clashes]
        if clashes and not skip_broken:
            raise PluginError(*(problem for _, problem in clashes))
        infos = [with_problems(info, clashes) for info in plugins]
        registry = cls(
            definitions=tuple(by_name[name][1] for name in sorted(by_name)),
            owners={name: by_name[name][0] for name in sorted(by_name)},
            options=options,
            plugins=tuple(sorted(infos, key=lambda item: item.name)),
            passes={name: by_pass[name][1] for name in sorted(by_pass)},
            frontends={name: by_frontend[name][1] for name in sorted(by_frontend)},
            tolerated=frozenset(info.owner for info in infos if info.origin and skip_broken),
            types={name: by_type[name][1] for name in sorted(by_type)},
            type_owners={name: by_type[name][0] for name in sorted(by_type)},
        )
        warn_of(registry.notices)
        return registry

    @classmethod
    def from_entry_points(
        cls,
        *,
        plugins: Iterable[object] = (),
        blocked: Iterable[str] = (),
        options: RuleOptions = DEFAULT_OPTIONS,
        skip_broken: bool = False,
    ) -> Registry:
        """Return a registry of all installed plugins; the order in which they are found does not matter.

        Args:
            plugins: More plugins: modules or objects with hook implementations.
            blocked: Names of plugins that are not even imported.
            options: What rules depend on besides their op.
            skip_broken: Whether a plugin that fails, and an op that several define, is recorded in `plugins` instead
                of raised; such an op is left to the bundled plugins, or else the first by name.

        Raises:
            PluginError: a plugin is broken, or two define the same op.
        """
        from shardy_py.plugins.manager import load_plugins

        found = load_plugins(plugins=plugins, blocked=blocked, skip_broken=skip_broken)
        return cls.build(
            found.dialects,
            options=options,
            plugins=found.infos,
            passes=found.passes,
            frontends=found.frontends,
            skip_broken=skip_broken,
        )

    def with_options(self, options: RuleOptions) -> Registry:
        """Return the same registry under other rule options."""
        return self if options == self.options else evolve(self, options=options)

    def give_shape(self, type_: OpaqueType) -> Type | None:
        """Return a type of a dialect with its shape, as it is where it is no tensor, None where nobody defines it.

        Raises:
            PluginError: the function of the plugin fails, or returns no shape.
        """
        return give_shape(type_, self.types, self.type_owners)

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """What is wrong with plugins, each problem once; then the notices."""
        found = (problem for info in self.plugins for problem in info.problems)
        return tuple(dict.fromkeys((*found, *self.notices)))

    @cached_property
    def notices(self) -> tuple[Diagnostic, ...]:
        """What is most likely a mistake in the rules: factors that only operands have and no mark speaks of."""
        return find_notices(self.definitions, self.owners)

    @property
    def priorities(self) -> tuple[OpPriority, ...]:
        """What the plugins say of the priorities of their own ops."""
        return tuple(item for info in self.plugins for item in info.priorities)

    @cached_property
    def trait_names(self) -> frozenset[str]:
        """The names of all traits that definitions give, or say that they may give."""
        return frozenset(trait.name for item in self.definitions for trait in (*item.traits, *item.may_have))

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of all defined ops, sorted; without globs."""
        return tuple(item.name for item in self.definitions if not item.is_glob)

    def find(self, name: str) -> OpDefinition | None:
        """Return the definition of an op name, or None."""
        return self._by_name.get(name)

    def get_traits(self, op: Op) -> frozenset[Trait]:
        """Return all traits of an op: of its name, of matching globs, and of predicates."""
        resolved = self._resolved.get(op.name) or self._resolve(op.name)
        if not resolved.predicates:
            return resolved.traits
        return resolved.traits.union(*(traits_of(op) for traits_of in resolved.predicates))

    def has_trait(self, op: Op, trait: Trait) -> bool:
        """Return whether an op has a trait."""
        return trait in self.get_traits(op)

    def get_data_flow(self, op: Op) -> ShardableDataFlowOpInterface | None:
        """Return what describes the op's data-flow edges, or None."""
        return (self._resolved.get(op.name) or self._resolve(op.name)).data_flow

    def traits_of_name(self, name: str) -> frozenset[Trait] | None:
        """Return the traits that all ops of a name have; None where a predicate may give more."""
        resolved = self._resolve(name)
        return None if resolved.predicates else resolved.traits

    def names_with_data_flow(self, names: Iterable[str]) -> frozenset[str]:
        """Return which of some op names have data-flow edges."""
        return frozenset([name for name in names if self._resolve(name).data_flow is not None])

    def names_with_mesh_reference(self, names: Iterable[str]) -> frozenset[str]:
        """Return which of some op names may refer to a mesh besides their shardings."""
        return frozenset([name for name in names if self._resolve(name).mesh_reference is not None])

    def get_sharding_attribute(self, op: Op) -> str:
        """Return the attribute that holds the sharding of the op's results."""
        return self._resolve(op.name).sharding_attribute

    def get_mesh_reference(self, op: Op) -> MeshReferenceOpInterface | None:
        """Return what knows the mesh the op refers to besides its shardings, or None."""
        return self._resolve(op.name).mesh_reference

    def get_cost(self, op: Op) -> CostOpInterface | None:
        """Return what says what the op costs, or None."""
        return self._resolve(op.name).cost

    def get_indexing(self, op: Op) -> OpIndexing | None:
        """Return the indexing maps of an op in both directions, or None where they are not known.

        Raises:
            PluginError: the plugin's function fails, or its maps do not fit the op.
        """
        indexing = self._resolve(op.name).indexing
        return None if indexing is None else indexing(op)

    def get_emission(self, op: Op) -> EmissionOf | None:
        """Return what builds one element of each result of an op, or None where it is not known."""
        return self._resolve(op.name).emission

    def get_sharding_rule(self, op: Op) -> OpShardingRule | None:
        """Return the rule of an op: the one written on it, else the one its definition gives, or None.

        Ops of the same name, types and attributes share one rule, unless their definition is contextual.

        Raises:
            RuleError: the plugin's function fails or returns a rule that does not fit the op.
        """
        return self.get_facts(op).rule

    def get_reductions(self, op: Op) -> Reductions:
        """Return how the partial results along the reduction factors of the op's rule combine.

        A rule that says so itself keeps its word; of the others the definition of the op tells.

        Raises:
            RuleError: the plugin's function fails or returns something else.
        """
        rule = self.get_sharding_rule(op)
        if rule is None or not rule.reduction_factors:
            return Reductions()
        resolved = self._resolved.get(op.name) or self._resolve(op.name)
        found = Reductions.of_rule(rule)
        if rule.is_custom:
            return found
        if not rule.combiners and resolved.combiner is not Combiner.ADD:
            found = evolve(found, combiners=dict.fromkeys(rule.reduction_factors, self._combiner(op, resolved)))
        if not rule.initial_operands and resolved.initial_of is not None:
            guard = self._reduction_guard(op, resolved.initial_of, "the function that tells the initial operands")
            found = evolve(found, initial_operands=guard.call(op, check=as_operand_numbers))
        return evolve(found, shape_collectives=not resolved.sums_collectives)

    def _combiner(self, op: Op, resolved: _Resolved) -> Combiner | None:
        if isinstance(resolved.combiner, Combiner):
            return resolved.combiner
        guard = self._reduction_guard(op, resolved.combiner, "the function that tells the combiner")
        found: Combiner | None = guard.call(op, check=as_combiner)
        return found

    def _reduction_guard(self, op: Op, function: Any, role: str) -> Guard:
        return Guard(function, role, self._owner(op.name), RuleError, "rule-failed", self._place(op.name))

    def get_facts(self, op: Op) -> OpFacts:
        """Return traits and rule of an op; see `get_sharding_rule`.

        Raises:
            RuleError: the plugin's function fails or returns a rule that does not fit the op.
        """
        return self.facts_of(op.program)(op)

    def facts_of(self, program: Program) -> Callable[[Op], OpFacts]:
        """Return the function that returns the facts of an op of a program, for whoever asks about many."""
        found = program.facts.get(self._token)
        if found is None:
            # What it knows goes with the program: attribute keys may hold a frontend's native objects alive.
            found = program.facts[self._token] = self._make_facts_of(program.rules)
        return found

    def _make_facts_of(self, rules: Mapping[int, OpShardingRule]) -> Callable[[Op], OpFacts]:
        all_resolved, resolve = self._resolved, self._resolve
        memo: dict[Any, tuple[OpFacts, Any]] = {}
        # The keys of attributes without a rule.
        bare: set[Any] = set()

        def facts_of_op(op: Op) -> OpFacts:
            name = op.name
            resolved = all_resolved.get(name) or resolve(name)
            if rules and op.id in rules:
                return OpFacts(self.get_traits(op), rules[op.id])
            if resolved.contextual:
                return OpFacts(self.get_traits(op), self._make_rule(op, resolved))
            attributes, operands = op.attributes, op.operands
            attributes_key = shared_key(attributes)
            if resolved.rule is None and (attributes_key in bare or RULE_ATTRIBUTE not in attributes):
                if attributes_key is not None:
                    bare.add(attributes_key)
                return OpFacts(self.get_traits(op), None) if resolved.predicates else resolved.facts
            if attributes_key is not None:
                key = _identity_key(name, attributes_key, operands, op.results)
            else:
                types = [value.type for value in (*operands, *op.results)]
                key = (name, freeze(attributes), len(operands), *types)
            known = memo.get(key)
            if known is None:
                # The types stay alive with the entry, or others could get their identities.
                types = [value.type for value in (*operands, *op.results)]
                known = memo[key] = (OpFacts(resolved.traits, self._make_rule(op, resolved)), types)
            return OpFacts(self.get_traits(op), known[0].rule) if resolved.predicates else known[0]

        return facts_of_op

    def _make_rule(self, op: Op, resolved: _Resolved) -> OpShardingRule | None:
        written = op.attributes.get(RULE_ATTRIBUTE)
        if written is not None:
            return check_written_rule(op, written)
        if resolved.rule is None:
            return None
        try:
            return self._ask_for_rule(op, resolved)
        except RuleError:
            if has_unknown_shape(op, self.types):
                # No function can do better; that the shape is missing is reported where the program is read.
                return None
            raise

    def _ask_for_rule(self, op: Op, resolved: _Resolved) -> OpShardingRule | None:
        guard, before = self._guard(op.name, resolved.rule), look_of(op)
        rule = guard.call(op, self.options) if resolved.takes_options else guard.call(op)
        if look_of(op) != before:
            op.name, op.operands, op.results, op.regions = before[:4]
            raise guard.refusal("changed its op", op, hint="a rule function looks at its op only; a pass may change it")
        if isinstance(rule, RuleSpec):
            rule = evolve(guard, function=rule).call(op)
        if rule is None:
            return None
        try:
            return checked_rule(guard, rule, op, any_sizes=resolved.any_sizes)
        except ShardyError:
            raise
        except Exception as error:
            # The parts of a rule that is made by hand can be anything.
            message = f"made a rule that cannot be checked: {describe_error(error)}"
            raise guard.refusal(message, op, hint="use sdy.rule(...) or the builder") from error

    def _guard(self, name: str, rule: Any) -> Guard:
        """Return the guard of the rule of the ops of a name."""
        return Guard(rule, "the rule function", self._owner(name), RuleError, "rule-failed", self._place(name))

    def _owner(self, name: str) -> str:
        return self.owners.get(name, "an unknown owner")

    def _place(self, name: str) -> str:
        found = self._by_name.get(name)
        return found.place if found else ""

    def _guarded_predicate(self, item: OpDefinition, name: str) -> TraitsOf:
        """Return a predicate behind the guard; one that fails at ops that are not its plugin's may be left out."""
        owner = self._owner(item.name)
        guarded = guard_traits_of(item.traits_of, owner=owner, place=item.place)
        if _plugin_of(owner) not in self.tolerated or self._is_of(owner, name):
            return guarded

        def tolerant(op: Op) -> Iterable[Trait]:
            try:
                return guarded(op)
            except ShardyError as error:
                for problem in error.diagnostics:
                    op.program.plugin_problems.setdefault((problem.message, problem.hint), problem)
                return frozenset()

        return tolerant

    def _is_of(self, owner: str, name: str) -> bool:
        """Return whether the ops of a name are of a plugin, which defines others of their dialect, if not them."""
        space, plugin = name.partition(".")[0], _plugin_of(owner)
        defined = (other for other, found in self.owners.items() if _plugin_of(found) == plugin)
        return any(other.partition(".")[0] == space for other in defined)

    def _resolve(self, name: str) -> _Resolved:
        found = self._resolved.get(name)
        if found is None:
            if len(self._resolved) >= _MANY_NAMES:
                # The registry may live as long as the process; programs can have any names.
                self._resolved.clear()
            found = self._resolved[name] = self._resolve_definition(name)
        return found

    def _resolve_definition(self, name: str) -> _Resolved:
        globs = [item for item in self.definitions if item.is_glob and _touches(item.name, name)]
        own = self._by_name.get(name)
        matching = ([own] if own else []) + globs
        traits = frozenset(trait for item in matching for trait in item.traits)
        predicates = tuple(self._guarded_predicate(item, name) for item in matching if item.traits_of)
        if own is None:
            return _Resolved(traits, predicates)
        owner, place = self._owner(name), own.place
        rule = getattr(own.rule, "get_sharding_rule", own.rule)
        indexing = None if own.indexing is None else guard_indexing(own.indexing, owner=owner, place=place)
        if rule is None and own.data_flow is None:
            rule = elementwise if Elementwise in traits else _rule_of(indexing, traits)
        return _Resolved(
            traits,
            predicates,
            rule,
            rule is not None and _takes_options(rule),
            own.contextual,
            None if own.data_flow is None else guard_data_flow(own.data_flow, owner=owner, place=place),
            own.sharding_attribute,
            None if own.mesh_reference is None else guard_mesh_reference(own.mesh_reference, owner=owner, place=place),
            None if own.cost is None else guard_cost(own.cost, owner=owner, place=place),
            indexing,
            None if own.emission is None else guard_emission(own.emission, owner=owner, place=place),
            own.any_sizes,
            own.combiner,
            own.initial_of,
            own.sums_collectives,
        )


def _rule_of(indexing: IndexingOf | None, traits: frozenset[Trait]) -> Callable[[Op], OpShardingRule | None] | None:
    """Return the rule function that follows from indexing maps."""
    if indexing is None:
        return None

    def rule(op: Op) -> OpShardingRule | None:
        found = indexing(op)
        shapes = [static_shape(value.type) for value in (*op.operands, *op.results)]
        if found is None or None in shapes:
            return None
        known = [shape or () for shape in shapes]
        count = len(op.operands)
        return rule_from_op_maps(found.output_to_input, known[:count], known[count:], sums=Contraction in traits)

    return rule


def _plugin_of(owner: str) -> str:
    return owner.partition(", dialect ")[0]


def _touches(glob: str, name: str) -> bool:
    """Return whether a glob speaks of an op; of those that hold functions together only if it names their dialect."""
    space = name.partition(".")[0]
    return fnmatchcase(name, glob) and (space not in _FRAME or glob.startswith(f"{space}."))


def _identity_key(
    name: str, attributes: object, operands: Sequence[Value], results: Sequence[Value]
) -> tuple[object, ...]:
    """Return a key that is equal for ops of a name with the same attributes and types, for as long as these live.

    Identities are hashed much faster than types, and a frontend with keys of its own has one object for equal types.
    Most ops have one result and few operands; comprehensions would take twice as long for them.
    """
    count = len(operands)
    if len(results) == 1 and 0 < count < 3:
        if count == 1:
            return name, attributes, id(operands[0].type), id(results[0].type)
        return name, attributes, id(operands[0].type), id(operands[1].type), id(results[0].type)
    # No identity is as small as this number, so that the two kinds of keys never meet.
    return (name, attributes, count, *[id(value.type) for value in operands], *[id(value.type) for value in results])


def _takes_options(rule: Any) -> bool:
    """Return whether a rule function has a second required parameter, or one named ``options``."""
    try:
        parameters = list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        return False
    return positional[1].default is inspect.Parameter.empty or positional[1].name == "options"
