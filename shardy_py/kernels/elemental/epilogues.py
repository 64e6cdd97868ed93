"""Epilogues: what a kernel still computes of the values of its heroes, before it writes its roots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import builtin, func
from xdsl.ir import Block, Region, SSAValue

from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.ops import PureCallOp
from shardy_py.kernels.dialect.types import INDEX, element_dtype, scalar_type
from shardy_py.kernels.elemental.builder import element_of
from shardy_py.kernels.elemental.functions import NO_COMPUTE, RANGE, FunctionEmitter, range_attribute, read_element
from shardy_py.kernels.elemental.scope import Indices, Scope
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.kernels.partition import function_name
from shardy_py.values import frozen


@frozen(eq=False)
class Epilogue:
    """A function from one element of every hero to one element of every root.

    Mirrors ``EpilogueSpecification`` of XLA: it computes all that lies between roots, heroes and parameters itself.

    Args:
        heroes: The values that the function is given.
        maps: For every root the map from the function's indices to the index of its element; all have the same
            variables.
    """

    heroes: tuple[Value, ...]
    maps: Mapping[Value, IndexingMap]

    @classmethod
    def at_root(cls, hero: Value, root: Value) -> Epilogue:
        """Return the epilogue of one root at its own index."""
        return cls((hero,), {root: op_maps.identity(shape_of(root))})

    @property
    def roots(self) -> tuple[Value, ...]:
        """The values that the function returns."""
        return tuple(self.maps)

    def ops(self, fusion: Fusion) -> tuple[Op, ...]:
        """Return the ops that the function computes."""
        hero_ids = {hero.id for hero in self.heroes}
        ops_by_id: dict[int, Op] = {}
        pending = list(self.maps)
        while pending:
            value = pending.pop()
            op = fusion.producer(value)
            if op is not None and value.id not in hero_ids and op.id not in ops_by_id:
                ops_by_id[op.id] = op
                pending += op.operands
        return tuple(ops_by_id.values())


def emit_epilogue(functions: FunctionEmitter, epilogue: Epilogue) -> str:
    """Emit the function of an epilogue and return its name."""
    fusion = functions.fusion
    parameters = functions.parameter_types()
    bounds = [bound.interval for bound in epilogue.maps[epilogue.roots[0]].variables.values()]
    values = [scalar_type(element_dtype(hero)) for hero in epilogue.heroes]
    types = [*parameters, *([INDEX] * len(bounds)), *values]
    block = Block(arg_types=types)
    arguments = list(block.args)
    first, last = len(parameters), len(parameters) + len(bounds)
    known = {hero.id: value for hero, value in zip(epilogue.heroes, arguments[last:], strict=True)}
    scope = Scope(_EpilogueBody(functions, arguments[:first], known), Builder(InsertPoint.at_end(block)))
    elements = [_element(scope, root, map_, arguments[first:last], known) for root, map_ in epilogue.maps.items()]
    scope.builder.insert(func.ReturnOp(*elements))
    empty = builtin.DictionaryAttr({})
    ranges = [builtin.DictionaryAttr({RANGE: range_attribute(item.lower, item.upper)}) for item in bounds]
    function = func.FuncOp(
        function_name(fusion, epilogue.roots[0], kind="epilogue"),
        (types, [element.type for element in elements]),
        Region(block),
        visibility=builtin.StringAttr("private"),
        arg_attrs=builtin.ArrayAttr([*([empty] * first), *ranges, *([empty] * len(values))]),
    )
    if all(fusion.facts[op.id].moves_only for op in epilogue.ops(fusion)):
        function.attributes[NO_COMPUTE] = builtin.BoolAttr.from_bool(True)
    return functions.add_epilogue(function)


def call_epilogue(
    scope: Scope,
    name: str,
    epilogue: Epilogue,
    parameters: Sequence[SSAValue],
    indices: Sequence[SSAValue],
    values: Sequence[SSAValue],
) -> Mapping[Value, SSAValue]:
    """Call the function of an epilogue and return the elements of its roots.

    Args:
        scope: Where the call is added.
        name: The name of the function.
        epilogue: The epilogue.
        parameters: The parameters of the fusion.
        indices: The function's indices.
        values: The values of the heroes.
    """
    results = [scalar_type(element_dtype(root)) for root in epilogue.roots]
    call = PureCallOp(name, [*parameters, *indices, *values], results)
    scope.builder.insert(call)
    return dict(zip(epilogue.roots, call.results, strict=True))


def _element(
    scope: Scope, root: Value, map_: IndexingMap, indices: Sequence[SSAValue], known: Mapping[int, SSAValue]
) -> SSAValue:
    """Return the element of a root; that of a hero is there already, and needs no index."""
    if root.id in known:
        return known[root.id]
    count = len(map_.dims)
    return element_of(scope, root, tuple(scope.apply(map_, indices[:count], indices[count:])))


class _EpilogueBody:
    """Body of an epilogue: heroes are given, parameters are read, all else is computed."""

    def __init__(
        self, functions: FunctionEmitter, parameters: Sequence[SSAValue], known: Mapping[int, SSAValue]
    ) -> None:
        self.registry = functions.fusion.registry
        self.region_function = functions.region_function
        self.index_bits = functions.index_bits
        self._fusion = functions.fusion
        self._parameters = parameters
        self._known = known

    def computes(self, value: Value) -> bool:
        """Return whether a value is neither that of a hero nor a parameter."""
        return value.id not in self._known and value.id not in self._fusion.parameter_ids

    def outside(self, scope: Scope, value: Value, indices: Indices) -> SSAValue | None:
        """Return the value of a hero or the element of a parameter, or None."""
        if value.id in self._known:
            return self._known[value.id]
        if value.id in self._fusion.parameter_ids:
            return read_element(scope, self._parameters[self._fusion.parameter_numbers[value.id]], indices)
        return None
