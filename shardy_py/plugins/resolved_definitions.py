"""Resolve op definitions for look-ups: apply globs, and guard the functions of plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from shardy_py.errors import RuleError, ShardyError
from shardy_py.guards.guard import Guard
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.ops import (
    Contraction,
    Elementwise,
    MeshReferenceOpInterface,
    OpFacts,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.plugins.bodies.body_text import BodyText
from shardy_py.plugins.guarded_cost import guard_cost
from shardy_py.plugins.guarded_interfaces import (
    guard_applies,
    guard_context,
    guard_data_flow,
    guard_emission,
    guard_indexing,
    guard_local,
    guard_mesh_reference,
    guard_sizes,
    guard_traits_of,
)
from shardy_py.plugins.op_definition import OF_ONE_OP, CombinerOf, ContextOf, InitialOf, OpDefinition, TraitsOf
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.support.arguments import signature_of
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.indexing import OpIndexing
    from shardy_py.ir.interfaces.costs import CostOpInterface
    from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
    from shardy_py.ir.interfaces.local import Localize
    from shardy_py.ir.interfaces.result_sizes import SizesOf
    from shardy_py.plugins.bodies.shards import SharedBody

    IndexingOf = Callable[[Op], OpIndexing | None]
    EmissionOf = Callable[[ElementBuilder, Op], tuple[Scalar, ...]]

_MANY_NAMES = 10_000
_FRAME = frozenset(("builtin", "func", "sdy"))


@frozen
class ResolvedDefinition:
    """Definition of the ops of one name after globs are applied and the form of the rule is known.

    Args:
        owner: The words that name the plugin in errors.
        location: The line of the definition, or "".
        variants: The definitions that are about some of the ops only, with what holds for these.
    """

    traits: frozenset[Trait] = frozenset()
    predicates: tuple[TraitsOf, ...] = ()
    rule: Any = None
    takes_options: bool = False
    contextual: bool = False
    context_of: ContextOf | None = None
    data_flow: ShardableDataFlowOpInterface | None = None
    sharding_attribute: str = "sdy.sharding"
    mesh_reference: MeshReferenceOpInterface | None = None
    cost: Callable[[Op], CostOpInterface] | None = None
    indexing: IndexingOf | None = None
    emission: EmissionOf | None = None
    local: Localize | None = None
    local_applies: Callable[[Op], bool] | None = None
    any_sizes: bool = False
    combiner: Combiner | CombinerOf = Combiner.ADD
    initial_of: InitialOf | None = None
    sums_collectives: bool = False
    owner: str = "an unknown owner"
    location: str = ""
    counts_padding: Callable[[Op], str] | None = None
    sizes: SizesOf | None = None
    variants: tuple[tuple[OpDefinition, ResolvedDefinition], ...] = ()
    facts: OpFacts = field(init=False)
    rule_guard: Guard = field(init=False)
    is_plain: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "facts", OpFacts(self.traits, None))
        is_plain = not self.predicates and not self.contextual and self.context_of is None and self.rule is not None
        object.__setattr__(self, "is_plain", is_plain)
        guard = Guard(self.rule, "the rule function", self.owner, RuleError, "rule-failed", self.location)
        object.__setattr__(self, "rule_guard", guard)

    def variant_of(self, op: Op) -> ResolvedDefinition:
        """Return the variant for an op with the most conditions, or this definition."""
        return next((variant for definition, variant in self.variants if definition.is_about(op)), self)

    def traits_of(self, op: Op) -> frozenset[Trait]:
        """Return the traits of an op: of its name, of matching globs, and of predicates."""
        traits = self.traits
        for traits_of in self.predicates:
            more = traits_of(op)
            if more:
                traits = traits.union(more)
        return traits


class ResolvedDefinitions(dict[str, ResolvedDefinition]):
    """Op name to resolved definition; a missing one is resolved at once, so that look-ups need no call.

    Args:
        definitions: The definitions by name, globs among them.
        owners: The owner of each definition.
        tolerated: The plugins whose failures do not stop programs that do not need them.
    """

    def __init__(
        self, definitions: Iterable[OpDefinition], owners: Mapping[str, str], tolerated: frozenset[str]
    ) -> None:
        super().__init__()
        all_definitions = list(definitions)
        self.definitions = {item.name: item for item in all_definitions if not item.when}
        self._variants: dict[str, list[OpDefinition]] = {}
        for item in all_definitions:
            if item.when:
                self._variants.setdefault(item.name, []).append(item)
        self._globs = [item for item in self.definitions.values() if item.is_glob]
        self._owners = owners
        self._tolerated = tolerated

    def __missing__(self, name: str) -> ResolvedDefinition:
        if len(self) >= _MANY_NAMES:
            # The registry may live as long as the process; programs can have any names.
            self.clear()
        resolved = self[name] = self._resolve(name)
        return resolved

    def of(self, op: Op) -> ResolvedDefinition:
        """Return the definition for an op."""
        resolved = self[op.name]
        return resolved.variant_of(op) if resolved.variants else resolved

    def _resolve(self, name: str) -> ResolvedDefinition:
        base = self._resolve_all(name)
        variants = sorted(self._variants.get(name, ()), key=lambda item: (-len(item.when), item.key))
        if not variants:
            return base
        variant_traits = tuple(
            (lambda op, item=item: item.traits if item.is_about(op) else ()) for item in variants if item.traits
        )
        # Whoever asks for the traits of a name gets to know that they depend on the op.
        base = evolve(base, predicates=(*base.predicates, *variant_traits))
        return evolve(base, variants=tuple((item, self._variant(base, item)) for item in variants))

    def _variant(self, base: ResolvedDefinition, definition: OpDefinition) -> ResolvedDefinition:
        """Return the definition of a variant, with the missing parts from the base definition."""
        variant = self._resolve_one(definition, base.traits | definition.traits, base.predicates)
        inherited = {
            name: getattr(base, name)
            for name in (*OF_ONE_OP, "local_applies")
            if getattr(definition, name, None) is None
            and not (name == "local_applies" and definition.local is not None)
        }
        if definition.rule is None and variant.rule is None:
            inherited |= {
                name: getattr(base, name)
                for name in ("rule", "takes_options", "contextual", "context_of", "any_sizes", "owner", "location")
            }
        return evolve(variant, **inherited)

    def _resolve_all(self, name: str) -> ResolvedDefinition:
        globs = [item for item in self._globs if _touches(item.name, name)]
        definition = self.definitions.get(name)
        matching = ([definition] if definition else []) + globs
        traits = frozenset(trait for item in matching for trait in item.traits)
        predicates = tuple(self._guarded_predicate(item, name) for item in matching if item.traits_of)
        if definition is None:
            return ResolvedDefinition(traits, predicates)
        return self._resolve_one(definition, traits, predicates)

    def _resolve_one(
        self, definition: OpDefinition, traits: frozenset[Trait], predicates: tuple[TraitsOf, ...]
    ) -> ResolvedDefinition:
        """Return a definition with its functions behind the guard, and the traits of its ops."""
        owner, location = self._owner(definition.key), definition.location
        rule = getattr(definition.rule, "get_sharding_rule", definition.rule)
        indexing = (
            None if definition.indexing is None else guard_indexing(definition.indexing, owner=owner, location=location)
        )
        body = _shared_body(definition.emission, indexing)
        is_combined = body is not None and bool(body.word)
        if rule is None and definition.data_flow is None:
            rule = _derived_rule(definition, indexing, traits, body)
        return ResolvedDefinition(
            traits,
            predicates,
            rule,
            rule is not None and _takes_options(rule),
            definition.contextual is True,
            guard_context(definition.contextual, owner=owner, location=location),
            None
            if definition.data_flow is None
            else guard_data_flow(definition.data_flow, owner=owner, location=location),
            definition.sharding_attribute,
            None
            if definition.mesh_reference is None
            else guard_mesh_reference(definition.mesh_reference, owner=owner, location=location),
            None if definition.cost is None else guard_cost(definition.cost, owner=owner, location=location),
            indexing,
            None
            if definition.emission is None
            else guard_emission(definition.emission, owner=owner, location=location),
            None if definition.local is None else guard_local(definition.local, owner=owner, location=location),
            guard_applies(definition.local, owner=owner, location=location),
            definition.any_sizes,
            body.combiner
            if body is not None and is_combined and definition.combiner is Combiner.ADD
            else definition.combiner,
            definition.initial_of,
            definition.sums_collectives,
            owner,
            location,
            body.counts_padding if body is not None and is_combined else None,
            None if definition.sizes is None else guard_sizes(definition.sizes, owner=owner, location=location),
        )

    def _owner(self, name: str) -> str:
        return self._owners.get(name, "an unknown owner")

    def _guarded_predicate(self, item: OpDefinition, name: str) -> TraitsOf:
        """Return a predicate behind the guard; a tolerated plugin's may fail at ops that are not its own."""
        owner = self._owner(item.name)
        guarded = guard_traits_of(item.traits_of, owner=owner, location=item.location)
        if _plugin_of(owner) not in self._tolerated or self._is_of(owner, name):
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
        """Return whether a plugin defines ops of the dialect of a name."""
        space, plugin = name.partition(".")[0], _plugin_of(owner)
        defined = (other for other, other_owner in self._owners.items() if _plugin_of(other_owner) == plugin)
        return any(other.partition(".")[0] == space for other in defined)


def _derived_rule(
    definition: OpDefinition, indexing: IndexingOf | None, traits: frozenset[Trait], body: SharedBody | None
) -> Callable[[Op], OpShardingRule | None] | None:
    """Return the rule function of a definition without rule: elementwise, or derived from indexing maps.

    Args:
        definition: The definition.
        indexing: The indexing maps.
        traits: The traits of the ops.
        body: The scalar body, where it is a text.
    """
    if Elementwise in traits:
        from shardy_py.sharding.rules import elementwise

        return elementwise if body is None else _elementwise_rule(body)
    if indexing is None:
        return None
    from shardy_py.sharding.derivation import rule_from_op_maps, with_whole_dims

    def rule(op: Op) -> OpShardingRule | None:
        op_indexing = indexing(op)
        shapes = [static_shape(value.type) for value in (*op.operands, *op.results)]
        if op_indexing is None or None in shapes:
            return None
        known = [shape or () for shape in shapes]
        count, maps = len(op.operands), op_indexing.output_to_input
        is_combined = body is not None and not any(item.constraints for item in maps) and body.combiner(op) is not None
        derived = rule_from_op_maps(maps, known[:count], known[count:], sums=Contraction in traits or is_combined)
        if definition.emission is None:
            return derived
        from shardy_py.plugins.bodies.replicated_dims import whole_dims

        return with_whole_dims(derived, whole_dims(definition.emission, op, maps))

    return rule


def _elementwise_rule(body: SharedBody) -> Callable[[Op], OpShardingRule | None]:
    """Return the rule function of elementwise ops; dimensions whose index the body names are replicated."""
    from shardy_py.plugins.bodies.replicated_dims import named_dims
    from shardy_py.sharding.derivation import with_whole_dims
    from shardy_py.sharding.rules import elementwise

    dims = named_dims(body.body)
    return (lambda op: with_whole_dims(elementwise(op), dims)) if dims else elementwise


def _shared_body(emission: Any, indexing: IndexingOf | None) -> SharedBody | None:
    """Return the scalar body on shards of an op that gives it as a text."""
    if not isinstance(emission, BodyText):
        return None
    from shardy_py.plugins.bodies.shards import SharedBody

    return SharedBody(emission, indexing)


def _plugin_of(owner: str) -> str:
    return owner.partition(", dialect ")[0]


def _touches(glob: str, name: str) -> bool:
    """Return whether a glob covers an op; an op of func, sdy or builtin only if the glob names that dialect."""
    space = name.partition(".")[0]
    return fnmatchcase(name, glob) and (space not in _FRAME or glob.startswith(f"{space}."))


def _takes_options(rule: Any) -> bool:
    """Return whether a rule function has a second required parameter, or one named ``options``."""
    try:
        parameters = list(signature_of(rule).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        return False
    return positional[1].default is Parameter.empty or positional[1].name == "options"
