"""Definitions of ops: every facet of an op is an argument of one call.

A family of ops is a module or a package. The module that registers it has its rules, indexing maps and small facets;
local forms, scalar bodies and costs that few programs need are in other modules of the package, which are imported
when one of them is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from attrs import field

from shardy_dialects.stablehlo.sizes import SIZES
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import no_local_form
from shardy_py.plugins import (
    CombinerOf,
    ContextOf,
    CostOpInterface,
    Dialect,
    InitialOf,
    MeshReferenceOpInterface,
    Pure,
    RuleOptions,
    ShardableDataFlowOpInterface,
    Trait,
    TraitsOf,
)
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.indexing import IndexingMap, OpIndexing
    from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
    from shardy_py.ir.interfaces.local import LocalOpInterface, LocalOps, Shard

    Maps = Sequence[IndexingMap]
    """One map for each operand, from the index of the result."""
    MapsOf = Callable[[Op], OpIndexing | Maps | None]
    Body = Callable[[ElementBuilder, Op], Scalar | Sequence[Scalar]]
    LocalForm = Callable[[Op, Shard], Sequence[Value]]

RuleFunction = Callable[[Op], OpShardingRule | None]
RuleFunctionOfOptions = Callable[[Op, RuleOptions], OpShardingRule | None]
P = ParamSpec("P")
R = TypeVar("R")


class Lazy(Generic[P, R]):
    """A call of a function whose module is imported when the call is made.

    Args:
        module: The module.
        name: The name of the function in it.
        arguments: The first arguments of the call.
        keywords: Arguments of the call by name.
    """

    __slots__ = ("arguments", "keywords", "module", "name")

    def __init__(self, module: str, name: str, *arguments: object, **keywords: object) -> None:
        self.module, self.name = module, name
        self.arguments, self.keywords = arguments, keywords

    def load(self) -> Callable[..., R]:
        """Return the function."""
        function: Callable[..., R] = getattr(import_module(self.module), self.name)
        return function

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function."""
        return self.load()(*self.arguments, *arguments, **self.keywords, **keywords)


class LazyFacets:
    """The facets of a family that are in other modules of its package.

    Args:
        package: The package.
    """

    __slots__ = ("package",)

    def __init__(self, package: str) -> None:
        self.package = package

    def local(self, name: str, module: str = "local") -> LocalForm:
        """Return a local form by the name of its function."""
        form: Lazy[[Op, Shard], Sequence[Value]] = Lazy(f"{self.package}.{module}", name)
        return form

    def body(self, name: str, *arguments: object, module: str = "body", **keywords: object) -> Body:
        """Return a scalar body by the name of its function, with arguments that come before builder and op."""
        body: Lazy[[ElementBuilder, Op], Scalar | Sequence[Scalar]] = Lazy(
            f"{self.package}.{module}", name, *arguments, **keywords
        )
        return body

    def cost(self, name: str, *arguments: object, **keywords: object) -> Callable[[], CostOpInterface]:
        """Return a function that makes a cost, by the name of the class, with the arguments of the class."""
        cost: Lazy[[], CostOpInterface] = Lazy(f"{self.package}.cost", name, *arguments, **keywords)
        return cost


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


class Definitions:
    """The dialects StableHLO, CHLO and MHLO, to which each family adds its ops.

    Args:
        local_ops: The ops for communication between devices.
    """

    def __init__(self, local_ops: LocalOps) -> None:
        self.stablehlo = Dialect("stablehlo", local_ops=local_ops)
        self.chlo = Dialect("chlo")
        self.mhlo = Dialect("mhlo")

    def define(
        self,
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
        data_flow: ShardableDataFlowOpInterface | None = None,
        mesh_reference: MeshReferenceOpInterface | None = None,
        maps: MapsOf | None = None,
        body: Body | None = None,
        local: LocalForm | LocalOpInterface | None = None,
        cost: CostOpInterface | Callable[[], CostOpInterface] | None = None,
    ) -> None:
        """Define ops that have all facets in common.

        Args:
            names: One full op name or several, of one dialect.
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
            data_flow: The data-flow edges, in the place of a rule.
            mesh_reference: Access to the mesh of replica groups.
            maps: The indexing maps of ops of static shapes with at least one element.
            body: The scalar body.
            local: The form on one device.
            cost: The cost, or a function that makes it.
        """
        has_rule = rule is not None or of_options is not None
        static_rule = (
            StaticRule(rule, of_options=of_options, extended=extended, never_like_jit=never_like_jit)
            if has_rule
            else None
        )
        for name in (names,) if isinstance(names, str) else names:
            dialect: Dialect = getattr(self, name.partition(".")[0])
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
                data_flow=data_flow,
                mesh_reference=mesh_reference,
                indexing=None if maps is None else _of_static_shapes(maps),
                emission=body,
                local=local,
                cost=cost,
                sizes=SIZES.get(name),
            )


def _of_static_shapes(maps: MapsOf) -> MapsOf:
    def indexing(op: Op) -> OpIndexing | Maps | None:
        shapes = [static_shape(value.type) for value in (*op.operands, *op.results)]
        known = op.results and has_static_shapes(op) and None not in shapes
        # Nothing is read of, or written to, a tensor without elements.
        return maps(op) if known and all(prod(shape or ()) for shape in shapes) else None

    return indexing


def has_static_shapes(op: Op) -> bool:
    """Return whether no operand or result has a dynamic dimension; values without a shape do not count."""
    for values in (op.operands, op.results):
        for value in values:
            if None in getattr(value.type, "shape", ()):
                return False
    return True


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the static shape of a value; () for anything without one."""
    return static_shape(value.type) or ()


def refuse_bounds(op: Op, shard: Shard) -> Sequence[Value]:
    """Refuse the local form of an op whose operands hold bounds of the whole tensor.

    Raises:
        CannotLocalize: always.
    """
    raise no_local_form("its operands hold bounds of the whole tensor")
