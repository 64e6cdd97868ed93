"""Dialects: named sets of op definitions and type definitions, as plugins register them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.errors import did_you_mean
from shardy_py.guards.error_texts import calling_location, shorten_location, shown
from shardy_py.ir.interfaces.ops import (
    MeshReferenceOpInterface,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Trait,
)
from shardy_py.plugins.argument_checks import refuse
from shardy_py.plugins.bodies import as_emission, as_indexing
from shardy_py.plugins.definition_checks import NO_CONDITION, as_traits, check_dialect_name, check_op_name
from shardy_py.plugins.op_definition import (
    CombinerOf,
    ContextOf,
    InitialOf,
    OpDefinition,
    Rule,
    TraitsOf,
    as_rule,
)
from shardy_py.plugins.type_definition import ShapeOf, TypeDefinition
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.emission import Emission
    from shardy_py.ir.interfaces.local import LocalOps
    from shardy_py.ir.interfaces.result_sizes import SizesOf
    from shardy_py.plugins.op_definition import Cost, Indexing, Local

Factors = str | Iterable[str]
Reduction = Factors | Mapping[str, str | Combiner]
_KINDS = ("reduction", "need_replication", "permutation", "blocked", "pass_through", "initial", "order")
_NO_MARKS = ((),) * len(_KINDS)


@define
class Dialect:
    """A named set of op definitions.

    >>> toy = Dialect("toy")
    >>> toy.op("toy.add").name
    'toy.add'

    Args:
        name: The name.
        local_ops: The ops of the dialect for communication between devices, in local programs.
    """

    name: str = field(validator=lambda dialect, attribute, name: check_dialect_name(name))
    local_ops: LocalOps | None = field(default=None, kw_only=True)
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
        order: Factors = (),
        data_flow: ShardableDataFlowOpInterface | None = None,
        sharding_attribute: str = "sdy.sharding",
        traits_of: TraitsOf | None = None,
        may_have: Iterable[Trait] = (),
        contextual: bool | ContextOf = False,
        mesh_reference: MeshReferenceOpInterface | None = None,
        cost: Cost | None = None,
        indexing: str | Sequence[str] | Indexing | None = None,
        emission: str | Emission | None = None,
        local: Local | None = None,
        sizes: SizesOf | None = None,
        any_sizes: bool = False,
        combiner: Combiner | CombinerOf = Combiner.ADD,
        initial_of: InitialOf | None = None,
        sums_collectives: bool = False,
        when: Mapping[str, Any] = NO_CONDITION,
        told_apart_by: str = "",
    ) -> OpDefinition:
        """Define an op; also a decorator over its rule function.

        Args:
            name: The full op name, or a glob that gives traits only.
            traits: The traits of every op of the name.
            rule: The rule: a function of the op, an object with ``get_sharding_rule``, or a text, see
                `shardy_py.rule`.
            reduction: The reduction factors of a rule given as a text.
            need_replication: The factors of such a rule that need replication.
            permutation: The factors of such a rule that need a permutation.
            blocked: The factors of such a rule that shardings do not propagate along.
            pass_through: The other factors of such a rule, if some tensors lack them on purpose.
            initial: The numbers of the initial operands of such a rule's reductions.
            order: The factors that come first in such a rule, in their order.
            data_flow: The data-flow edges of the op.
            sharding_attribute: The attribute that holds the sharding of the results.
            traits_of: A function of the op that gives more traits.
            may_have: The plugin's own traits that only ``traits_of`` gives.
            contextual: Whether the rule depends on producers, users or regions, or a function of the op that returns
                all that it takes from there as one value.
            mesh_reference: Access to the mesh to which the op refers besides its shardings.
            cost: The cost of the op, where it does not follow from the rule; or a function that makes it.
            indexing: The indexing maps of the op, as texts or as a function of the op; a rule follows from them where
                none is given.
            emission: The scalar body, for kernels: a text such as ``x, y -> x * tanh(y)``, or a function of a builder
                and the op.
            local: The form of the op on one device, where it does not follow from its rule and its types.
            sizes: The sizes of results once those of operands are known, where they do not follow from the rule.
            any_sizes: Whether factors may have other sizes than their dimensions.
            combiner: The combiner of the op's reductions, where the rule gives none.
            initial_of: Gives the initial operands of the reductions, where the rule gives none.
            sums_collectives: Whether explicit collectives of the op are sums all the same.
            when: The values of attributes of the ops that the definition is about, such as
                ``{"call_target_name": "rms_norm"}``; it may stand beside one for all ops of the name, also that of
                another plugin, which goes on to give what it does not.
            told_apart_by: The attribute whose values tell kinds of the op apart that need rules of their own.

        Returns:
            The definition.

        Raises:
            PluginError: the dialect defines the op already, or an argument is unfit.
            RuleError: the text is not a rule.
        """
        check_op_name(name)
        marks = (reduction, need_replication, permutation, blocked, pass_through, initial, order)
        # Most ops have none.
        kinds = {} if marks == _NO_MARKS else _by_kind(marks)
        return self.add(
            OpDefinition(
                name,
                traits=as_traits(traits, op=name),
                rule=as_rule(name, rule, kinds),
                data_flow=data_flow,
                sharding_attribute=sharding_attribute,
                traits_of=traits_of,
                may_have=as_traits(may_have, op=name, argument="may_have"),
                contextual=contextual,
                mesh_reference=mesh_reference,
                cost=cost,
                indexing=as_indexing(name, indexing),
                emission=as_emission(name, emission),
                local=local,
                sizes=sizes,
                location=calling_location(),
                any_sizes=any_sizes,
                combiner=combiner,
                initial_of=initial_of,
                sums_collectives=sums_collectives,
                when=when,
                told_apart_by=told_apart_by,
                register=self.replace,
            )
        )

    def add(self, definition: OpDefinition) -> OpDefinition:
        """Add a definition made elsewhere.

        Raises:
            PluginError: the dialect defines the op already, or it is not a definition.
        """
        self._check(definition)
        first = self._definitions.get(definition.key)
        if first is not None:
            hint = _other_location(first.location, definition.location)
            message = f"dialect {self.name!r} defines the op twice"
            raise refuse("duplicate-op", message, definition.name, hint=hint)
        self._definitions[definition.key] = definition
        return definition

    def replace(self, definition: OpDefinition) -> OpDefinition:
        """Replace the definition of the same name.

        Raises:
            PluginError: the dialect does not define the op, or it is not a definition.
        """
        self._check(definition)
        if definition.key not in self._definitions:
            hint = did_you_mean(definition.key, self._definitions)
            raise refuse("unknown-op", f"dialect {self.name!r} does not define the op", definition.name, hint=hint)
        self._definitions[definition.key] = definition
        return definition

    @property
    def types(self) -> tuple[TypeDefinition, ...]:
        """The definitions of types, in the order in which they were added."""
        return tuple(self._types.values())

    def type(self, name: str, *, shape_of: ShapeOf | None = None) -> TypeDefinition:
        """Define a type that is not a builtin tensor; also a decorator over its ``shape_of``.

        >>> torch = Dialect("torch")
        >>> torch.type("!torch.int").name
        '!torch.int'

        Args:
            name: The name with its dialect and without parameters: ``!torch.vtensor``.
            shape_of: A function of the type (an `OpaqueType` with ``name``, ``parameters`` and ``text``) that returns
                its sizes, None for a dynamic one; or a `TensorType`, which has the element type, too; or None for a
                type that is not a tensor. Without it no type of that name is a tensor.

        Returns:
            The definition.

        Raises:
            PluginError: the dialect defines the type already, or an argument is unfit.
        """
        definition = TypeDefinition.made_here(name, shape_of, self.replace_type)
        if name in self._types:
            first = self._types[name]
            hint = _other_location(first.location, definition.location)
            raise refuse("duplicate-type", f"dialect {self.name!r} defines the type {name} twice", hint=hint)
        self._types[name] = definition
        return definition

    def replace_type(self, definition: TypeDefinition) -> None:
        """Replace the definition of the type of the same name."""
        self._types[definition.name] = definition

    def _check(self, definition: Any) -> None:
        if not isinstance(definition, OpDefinition):
            message = f"{shown(definition)} is not an op definition"
            raise refuse("invalid-definition", message, hint=f"use {self.name}.op(name, ...)")


def _by_kind(marks: Iterable[Any]) -> dict[str, Any]:
    """Return the marks of factors by their kind, without those that are empty tuples."""
    return {kind: factors for kind, factors in zip(_KINDS, marks, strict=True) if factors != ()}


def _other_location(first: str, second: str) -> str:
    """Return a hint about the location of the first of two definitions; "" where it is not known."""
    if first and first == second:
        return f"{shorten_location(first)} ran twice: make the dialect again, too, as in a notebook"
    return f"it is defined at {shorten_location(first)}, too" if first else ""


def check_dialects(dialects: Any) -> tuple[Dialect, ...]:
    """Check an argument that is a list of dialects, and return it as a tuple.

    Raises:
        PluginError: they are not a list of dialects.
    """
    if isinstance(dialects, Dialect):
        raise refuse("invalid-dialect", f"the dialects are {shown(dialects.name)} alone", hint="give a list: [toy]")
    if isinstance(dialects, str) or not isinstance(dialects, Iterable):
        raise refuse("invalid-dialect", f"{shown(dialects)} is not a list of dialects", hint="give a list: [toy]")
    checked = tuple(dialects)
    for item in checked:
        if not isinstance(item, Dialect):
            hint = "a module with hooks goes to plugins=[...]" if inspect.ismodule(item) else 'sdy.Dialect("toy")'
            raise refuse("invalid-dialect", f"{shown(item)} is not a dialect", hint=hint)
    return checked
