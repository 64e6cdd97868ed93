"""The registry: a frozen value with the definitions of all dialects, which implements `OpSemantics`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import OpaqueType, Type
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.ops import (
    Elementwise,
    MeshReferenceOpInterface,
    OpFacts,
    RuleOptions,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.plugins.dialect import Dialect, check_dialects
from shardy_py.plugins.op_definition import OpDefinition
from shardy_py.plugins.op_facts import make_facts_of
from shardy_py.plugins.plugin_info import PluginInfo, with_problems
from shardy_py.plugins.registry_parts import merge_parts
from shardy_py.plugins.resolved_definitions import ResolvedDefinitions
from shardy_py.plugins.rule_checks import find_notices, warn_of
from shardy_py.plugins.rule_view import RuleMemory
from shardy_py.plugins.type_definition import TypeDefinition, give_shape
from shardy_py.schedule.model import OpPriority
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.indexing import OpIndexing
    from shardy_py.ir.interfaces.costs import CostOpInterface
    from shardy_py.ir.interfaces.emission import KernelEmitter, KernelModulePass
    from shardy_py.ir.interfaces.local import Localize, LocalOps
    from shardy_py.ir.interfaces.result_sizes import SizesOf
    from shardy_py.plugins.guarded_frontend import GuardedEmitter
    from shardy_py.plugins.resolved_definitions import EmissionOf
    from shardy_py.sharding.rule import Reductions

DEFAULT_OPTIONS = RuleOptions()

_MANY_ANSWERS = 2000
"""The limit on the remembered answers about names; all are forgotten before there are more."""


@frozen(slots=False)
class Registry:
    """The definitions of all plugins; implements `shardy_py.ir.interfaces.ops.OpSemantics`.

    Args:
        definitions: One per op name or glob, sorted by name.
        owners: Op name to its owner (``plugin 'x', dialect 'y'``).
        options: The options of rule functions.
        plugins: The state of each plugin, sorted by name.
        passes: The passes of the plugins by their names.
        frontends: The frontends of the plugins by their names, sorted; those of this package are not among them.
        tolerated: The owners among the installed plugins whose failures do not stop programs that do not need them.
        types: The definitions of types by their names, sorted.
        type_owners: Type name to its owner.
        kernel_passes: The passes of the plugins over modules of kernels by their names.
        emitters: The emitters of the plugins by their names, sorted.
        devices: The files of the plugins' device specs by the names of the devices.
        local_ops: The ops for communication in local programs, by the dialects that have them.
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
    kernel_passes: Mapping[str, type[KernelModulePass]] = field(factory=dict)
    emitters: Mapping[str, GuardedEmitter] = field(factory=dict)
    devices: Mapping[str, Path] = field(factory=dict)
    local_ops: Mapping[str, LocalOps] = field(factory=dict)
    _resolved: ResolvedDefinitions = field(init=False, eq=False, repr=False)
    _under: dict[RuleOptions, Registry] = field(factory=dict, init=False, eq=False, repr=False)
    _completed: dict[object, Registry] = field(factory=dict, init=False, eq=False, repr=False)
    _rules: RuleMemory = field(factory=RuleMemory, init=False, eq=False, repr=False)
    _token: object = field(factory=object, init=False, eq=False, repr=False)
    _names: dict[tuple[frozenset[str], frozenset[Trait] | None], frozenset[str]] = field(
        factory=dict, init=False, eq=False, repr=False
    )

    def __attrs_post_init__(self) -> None:
        resolved = ResolvedDefinitions(self.definitions, self.owners, self.tolerated)
        object.__setattr__(self, "_resolved", resolved)

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
            options: The options of rule functions.

        Raises:
            PluginError: two dialects define the same op, two frontends have one name, or something is not a dialect.
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
        emitters: Iterable[tuple[str, KernelEmitter]] = (),
        devices: Iterable[tuple[str, Path]] = (),
        skip_broken: bool = False,
    ) -> Registry:
        """Return a registry of dialects, passes and frontends with the words that name their owners in errors.

        Args:
            owned: The dialects with their owners.
            options: The options of rule functions.
            plugins: The state of each plugin.
            passes: The passes with their owners.
            frontends: The frontends with their owners.
            emitters: The emitters of kernels with their owners.
            devices: The files of device specs with their owners.
            skip_broken: Whether an op, a pass or a frontend that is defined more than once is left to its first owner,
                and noted in `plugins`, instead of an error.

        Raises:
            PluginError: an op, a pass or a frontend is defined more than once; all are named, each with its owners.
        """
        parts, clashes = merge_parts(tuple(owned), passes, frontends, emitters, devices)
        if clashes and not skip_broken:
            raise PluginError(*(problem for _, problem in clashes))
        infos = [with_problems(info, clashes) for info in plugins]
        registry = cls(
            **parts,
            options=options,
            plugins=tuple(sorted(infos, key=lambda item: item.name)),
            tolerated=frozenset(info.owner for info in infos if info.origin and skip_broken),
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
            options: The options of rule functions.
            skip_broken: Whether a plugin that fails, and an op that several define, is recorded in `plugins` instead
                of raised; such an op is left to the bundled plugins, or else the first by name.

        Raises:
            PluginError: a plugin is broken, or two define the same op.
        """
        from shardy_py.plugins.manager import load_plugins

        loaded = load_plugins(plugins=plugins, blocked=blocked, skip_broken=skip_broken)
        return cls.build(
            loaded.dialects,
            options=options,
            plugins=loaded.infos,
            passes=loaded.passes,
            frontends=loaded.frontends,
            emitters=loaded.emitters,
            devices=loaded.devices,
            skip_broken=skip_broken,
        )

    def with_options(self, options: RuleOptions) -> Registry:
        """Return the same registry under other rule options."""
        if options == self.options:
            return self
        # Kept, as it resolves its definitions anew and a run asks for it several times.
        cached = self._under.get(options)
        if cached is None:
            cached = self._under[options] = evolve(self, options=options)
        return cached

    def with_dialects(self, other: Registry, dialects: Iterable[str]) -> Registry:
        """Return the registry with the definitions that another one has of some dialects, where it has none itself."""
        cached = self._completed.get(other._token)
        if cached is None:
            more = [item for item in other.definitions if item.name.partition(".")[0] in dialects]
            by_name = {item.key: item for item in (*more, *self.definitions)}
            owners = {name: other.owners.get(name, "") for name in by_name} | dict(self.owners)
            definitions = tuple(by_name[name] for name in sorted(by_name))
            cached = self._completed[other._token] = evolve(self, definitions=definitions, owners=owners)
        return cached

    def give_shape(self, type_: OpaqueType) -> Type | None:
        """Return a type of a dialect with its shape, unchanged if it is not a tensor, None if it is not defined.

        Raises:
            PluginError: the function of the plugin fails, or returns no shape.
        """
        return give_shape(type_, self.types, self.type_owners)

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Problems of plugins, each once; then the notices."""
        problems = (problem for info in self.plugins for problem in info.problems)
        return tuple(dict.fromkeys((*problems, *self.notices)))

    @cached_property
    def notices(self) -> tuple[Diagnostic, ...]:
        """Likely mistakes in the rules: factors without a mark that only operands have."""
        return find_notices(self.definitions, self.owners)

    @cached_property
    def priorities(self) -> tuple[OpPriority, ...]:
        """Op priorities that the plugins give to their own ops."""
        return tuple(item for info in self.plugins for item in info.priorities)

    @cached_property
    def trait_names(self) -> frozenset[str]:
        """The names of all traits that definitions give, or say that they may give."""
        return frozenset(trait.name for item in self.definitions for trait in (*item.traits, *item.may_have))

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of all defined ops, sorted; without globs."""
        return tuple(dict.fromkeys(item.name for item in self.definitions if not item.is_glob))

    def find(self, name: str) -> OpDefinition | None:
        """Return the definition of an op name, or None."""
        return self._resolved.definitions.get(name)

    def get_traits(self, op: Op) -> frozenset[Trait]:
        """Return all traits of an op: of its name, of matching globs, and of predicates."""
        resolved = self._resolved.of(op)
        return resolved.traits_of(op) if resolved.predicates else resolved.traits

    def has_trait(self, op: Op, trait: Trait) -> bool:
        """Return whether an op has a trait."""
        return trait in self.get_traits(op)

    def get_data_flow(self, op: Op) -> ShardableDataFlowOpInterface | None:
        """Return the data flow of an op, or None."""
        return self._resolved.of(op).data_flow

    def traits_of_name(self, name: str) -> frozenset[Trait] | None:
        """Return the traits that all ops of a name have; None where a predicate may give more."""
        resolved = self._resolved[name]
        return None if resolved.predicates else resolved.traits

    def names_with_traits(self, names: Iterable[str], traits: frozenset[Trait]) -> frozenset[str]:
        """Return the op names whose ops have one of some traits, or may have it where a predicate tells."""
        key = (frozenset(names), traits)
        cached = self._names.get(key)
        if cached is None:
            known = [(name, self.traits_of_name(name)) for name in key[0]]
            chosen = [name for name, name_traits in known if name_traits is None or not name_traits.isdisjoint(traits)]
            cached = self._keep_names(key, chosen)
        return cached

    def names_with_data_flow(self, names: Iterable[str]) -> frozenset[str]:
        """Return the op names whose ops have data-flow edges."""
        key = (frozenset(names), None)
        cached = self._names.get(key)
        if cached is None:
            cached = self._keep_names(key, [name for name in key[0] if self._resolved[name].data_flow is not None])
        return cached

    def _keep_names(self, key: tuple[frozenset[str], frozenset[Trait] | None], names: Iterable[str]) -> frozenset[str]:
        """Cache an answer about the names of a program, as its passes ask for it repeatedly."""
        if len(self._names) >= _MANY_ANSWERS:
            self._names.clear()
        return self._names.setdefault(key, frozenset(names))

    def names_with_mesh_reference(self, names: Iterable[str]) -> frozenset[str]:
        """Return the op names whose ops may refer to a mesh besides their shardings."""
        return frozenset([name for name in names if self._resolved[name].mesh_reference is not None])

    def get_sharding_attribute(self, op: Op) -> str:
        """Return the attribute that holds the sharding of the op's results."""
        return self._resolved.of(op).sharding_attribute

    def names_with_sharding_attribute(self, names: Iterable[str], attributes: Collection[str]) -> frozenset[str]:
        """Return the op names whose ops hold the shardings of their results in one of some attributes."""
        return frozenset([name for name in names if self._resolved[name].sharding_attribute in attributes])

    def get_mesh_reference(self, op: Op) -> MeshReferenceOpInterface | None:
        """Return the accessor of the mesh that an op refers to besides its shardings, or None."""
        return self._resolved.of(op).mesh_reference

    def get_cost(self, op: Op) -> CostOpInterface | None:
        """Return the cost of an op, or None."""
        cost_of = self._resolved.of(op).cost
        return None if cost_of is None else cost_of(op)

    def get_indexing(self, op: Op) -> OpIndexing | None:
        """Return the indexing maps of an op in both directions, or None where they are not known.

        Those of an `Elementwise` op follow from its shapes.

        Raises:
            PluginError: the plugin's function fails, or its maps do not fit the op.
        """
        indexing = self._resolved.of(op).indexing
        if indexing is not None:
            return indexing(op)
        if not self.has_trait(op, Elementwise):
            return None
        from shardy_py.plugins.bodies.map_texts import elementwise_indexing

        return elementwise_indexing(op)

    def get_emission(self, op: Op) -> EmissionOf | None:
        """Return the scalar body of an op, or None where it is not known."""
        return self._resolved.of(op).emission

    def get_local(self, op: Op) -> Localize | None:
        """Return the local form of an op, or None where it follows from its rule and its types."""
        resolved = self._resolved.of(op)
        return None if resolved.local_applies is not None and not resolved.local_applies(op) else resolved.local

    def get_sizes(self, op: Op) -> SizesOf | None:
        """Return what gives the sizes of the results of an op, or None where they follow from its rule."""
        return self._resolved.of(op).sizes

    def get_sharding_rule(self, op: Op) -> OpShardingRule | None:
        """Return the rule of an op: the rule written on it, else the rule of its definition, or None.

        Ops of the same name, types and attributes share one rule, unless their definition is contextual.

        Raises:
            RuleError: the plugin's function fails or returns a rule that does not fit the op.
        """
        return self.get_facts(op).rule

    def get_reductions(self, op: Op) -> Reductions:
        """Return the combiners and initial operands of the reductions of an op.

        Those of the rule come first; the definition of the op gives the others.

        Raises:
            RuleError: the plugin's function fails or returns something else.
        """
        from shardy_py.plugins.op_facts import reductions_of

        return reductions_of(op, self.get_sharding_rule(op), self._resolved.of(op))

    def sums_collectives(self, name: str) -> bool:
        """Return whether explicit collectives of the ops of a name are sums, however these reduce."""
        return self._resolved[name].sums_collectives

    def told_apart_by(self, name: str) -> str:
        """Return the attribute whose values tell kinds of the ops of a name apart, or ""."""
        definition = self.find(name)
        return "" if definition is None else definition.told_apart_by

    def get_facts(self, op: Op) -> OpFacts:
        """Return traits and rule of an op; see `get_sharding_rule`.

        Raises:
            RuleError: the plugin's function fails or returns a rule that does not fit the op.
        """
        return self.facts_of(op.program)(op)

    def facts_of(self, program: Program) -> Callable[[Op], OpFacts]:
        """Return the function that returns the facts of an op of a program, for callers with many ops."""
        facts = program.facts.get(self._token)
        if facts is None:
            # What it knows goes with the program: attribute keys may hold a frontend's native objects alive.
            facts = program.facts[self._token] = make_facts_of(
                self._resolved, self.options, self.types, program.rules, self._rules, self._token
            )
        return facts
