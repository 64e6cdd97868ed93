"""The functions of a partition, each of which computes one element of its roots, and those of regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import arith, builtin, func, tensor
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Region, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.ops import PureCallOp
from shardy_py.kernels.dialect.types import INDEX, element_dtype, index_attribute, scalar_type, tensor_type
from shardy_py.kernels.elemental.builder import element_of
from shardy_py.kernels.elemental.scope import Indices, Scope
from shardy_py.kernels.fusion.bodies import region_of
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.partition import Partition, Subgraph
from shardy_py.plugins import Registry

NO_COMPUTE = "xla.no_compute"
RANGE = "xla.range"


class FunctionEmitter:
    """Emits the functions of one fusion into a module.

    Args:
        fusion: The fusion.
        partition: Its partition.
    """

    def __init__(self, fusion: Fusion, partition: Partition) -> None:
        self.fusion = fusion
        self.partition = partition
        # XLA's loop emitter has indices of 32 bits from the start, those with heroes narrow them later.
        self.index_bits = 64 if partition.heroes else 32
        self._regions: dict[tuple[int, int], func.FuncOp] = {}
        self._arguments: list[func.FuncOp] = []
        self._epilogues: list[func.FuncOp] = []

    def functions(self) -> list[func.FuncOp]:
        """Return the functions of the partition, callers first, then those of regions and epilogues."""
        emitted = [self._function(subgraph) for subgraph in self.partition.emitted(self.fusion)]
        return [*emitted, *self._regions.values(), *self._arguments, *self._epilogues]

    def add_epilogue(self, function: func.FuncOp) -> str:
        """Take a function that the entry function calls with the values of heroes; return its name.

        The results of one op, and a result that is returned twice, have functions of their own.
        """
        name = function.sym_name.data
        names = {epilogue.sym_name.data for epilogue in self._epilogues}
        unique = next(item for item in chain([name], (f"{name}_{number}" for number in count(1))) if item not in names)
        function.sym_name = builtin.StringAttr(unique)
        self._epilogues.append(function)
        return unique

    def parameter_types(self) -> list[Attribute]:
        """Return the types of the parameters, which every function takes first."""
        return [tensor_type(value, self.fusion.layout_of(value)) for value in self.fusion.parameters]

    def _function(self, subgraph: Subgraph) -> func.FuncOp:
        parameters = self.parameter_types()
        shape = subgraph.shape
        results = [scalar_type(element_dtype(root)) for root in subgraph.roots]
        block = Block(arg_types=[*parameters, *([INDEX] * len(shape))])
        arguments = list(block.args)
        body = _FunctionBody(self, subgraph, arguments[: len(parameters)])
        scope = Scope(body, Builder(InsertPoint.at_end(block)))
        index = tuple(arguments[len(parameters) :])
        same_place = [self.fusion.same_place(subgraph.roots[0], root) for root in subgraph.roots]
        elements = [
            element_of(scope, root, tuple(scope.apply(map_, index)))
            for root, map_ in zip(subgraph.roots, same_place, strict=True)
        ]
        scope.builder.insert(func.ReturnOp(*elements))
        ranges = [builtin.DictionaryAttr({})] * len(parameters)
        ranges += [builtin.DictionaryAttr({RANGE: range_attribute(0, size - 1)}) for size in shape]
        function = func.FuncOp(
            subgraph.name,
            ([*parameters, *([INDEX] * len(shape))], results),
            Region(block),
            visibility=builtin.StringAttr("private"),
            arg_attrs=builtin.ArrayAttr(ranges),
        )
        if self._moves_only(subgraph):
            function.attributes[NO_COMPUTE] = builtin.BoolAttr.from_bool(True)
        return function

    def _moves_only(self, subgraph: Subgraph) -> bool:
        """Return whether a function only moves elements: nothing in it computes."""
        return all(not isinstance(node, Op) or self.fusion.facts[node.id].moves_only for node in subgraph.nodes)

    def region_function(self, op: Op, region: int = 0) -> str:
        """Return the name of the function of an op's region; equal regions of different ops have their own."""
        function = self._regions.get((op.id, region))
        if function is None:
            name = f"{self.fusion.name}_region_{len(self._regions)}"
            function = self._regions[op.id, region] = region_function(self.fusion.registry, op, name, region)
            self._arguments += unused_argument_functions(op, name, region)
            if self.fusion.facts[op.id].is_reduction:
                _ignore_signs_of_zeros(function)
        return function.sym_name.data


def _ignore_signs_of_zeros(function: func.FuncOp) -> None:
    """Let additions drop a zero that they begin with, whatever the sign of the sum, as XLA does in reductions."""
    for op in function.walk():
        if isinstance(op, arith.AddfOp):
            op.fastmath = arith.FastMathFlagsAttr([FastMathFlag.NO_SIGNED_ZEROS])


def range_attribute(lower: int, upper: int) -> builtin.ArrayAttr[Attribute]:
    """Return the bounds of an index as the attribute ``xla.range``."""
    return builtin.ArrayAttr([index_attribute(lower), index_attribute(upper)])


class _FunctionBody:
    """Body of one function: parameters are read, other functions are called."""

    def __init__(self, emitter: FunctionEmitter, subgraph: Subgraph, parameters: Sequence[SSAValue]) -> None:
        self.registry: Registry = emitter.fusion.registry
        self.index_bits = emitter.index_bits
        self._emitter = emitter
        self._subgraph = subgraph
        self._parameters = parameters

    def outside(self, scope: Scope, value: Value, indices: Indices) -> SSAValue | None:
        """Return the element of a parameter or of another function's root, or None."""
        fusion = self._emitter.fusion
        node = fusion.producer(value) or value
        owner = self._emitter.partition.function_of(node)
        if owner is not self._subgraph:
            return call_element(scope, owner, value, self._parameters, indices)
        if not isinstance(node, Op):
            number = fusion.parameter_numbers[value.id]
            return read_element(scope, self._parameters[number], indices)
        return None

    def computes(self, value: Value) -> bool:
        """Return whether a value is the result of an op of this function."""
        op = self._emitter.fusion.producer(value)
        return op is not None and self._emitter.partition.function_of(op) is self._subgraph

    def region_function(self, op: Op, region: int = 0) -> str:
        """Return the name of the function of an op's region."""
        return self._emitter.region_function(op, region)


def read_element(scope: Scope, source: SSAValue, indices: Indices) -> SSAValue:
    """Return an element of a tensor."""
    assert isinstance(source.type, builtin.TensorType)
    return scope.add(tensor.ExtractOp(source, list(indices), source.type.element_type))


def call_element(
    scope: Scope, function: Subgraph, value: Value, parameters: Sequence[SSAValue], indices: Indices
) -> SSAValue:
    """Return an element that another function computes."""
    return call_elements(scope, function, parameters, indices)[[root.id for root in function.roots].index(value.id)]


def call_elements(
    scope: Scope, function: Subgraph, parameters: Sequence[SSAValue], indices: Indices
) -> Sequence[SSAValue]:
    """Return the elements of all roots of a function at an index of the first one."""
    results = [scalar_type(element_dtype(root)) for root in function.roots]
    call = PureCallOp(function.name, [*parameters, *indices], results)
    scope.builder.insert(call)
    return call.results


def region_function(registry: Registry, op: Op, name: str, region: int = 0) -> func.FuncOp:
    """Return a function over scalars that computes what a region of an op computes.

    Raises:
        UnsupportedError: the region has not one block.
    """
    arguments, returned = region_of(op, region)
    types = [scalar_type(element_dtype(value)) for value in arguments]
    block = Block(arg_types=types)
    builder = Builder(InsertPoint.at_end(block))
    builder.insert(func.ReturnOp(*region_elements(registry, op, builder, block.args, region=region)))
    results = [scalar_type(element_dtype(value)) for value in returned]
    return func.FuncOp(name, (types, results), Region(block), visibility=builtin.StringAttr("private"))


def unused_argument_functions(op: Op, name: str, region: int = 0) -> list[func.FuncOp]:
    """Return a function for each argument of a region of an op that the region does not use.

    Mirrors ``PartitionedComputation`` of XLA, which has a function for every instruction that is not an operand. No
    function calls them.

    Args:
        op: The op.
        name: The name of the region's function.
        region: The number of the region.
    """
    arguments, returned = region_of(op, region)
    types = [scalar_type(element_dtype(value)) for value in arguments]
    used = {value.id for value in returned}
    used |= {value.id for inner in op.regions[region].blocks[0].ops for value in inner.operands}
    unused = []
    for number, value in enumerate(arguments):
        if value.id not in used:
            block = Block(arg_types=types)
            Builder(InsertPoint.at_end(block)).insert(func.ReturnOp(block.args[number]))
            signature = (types, [types[number]])
            private = builtin.StringAttr("private")
            unused.append(func.FuncOp(f"{name}_param_{number}", signature, Region(block), visibility=private))
    return unused


def region_elements(
    registry: Registry,
    op: Op,
    builder: Builder,
    arguments: Sequence[SSAValue | None],
    *,
    result: int | None = None,
    region: int = 0,
) -> list[SSAValue]:
    """Emit what the region of an op computes of scalars, and return the results.

    Args:
        registry: What is known about the ops.
        op: The op.
        builder: Where ops are added.
        arguments: The arguments of the region; None for those that are not read.
        result: The number of the only result that is computed; by default all are.
        region: The number of the region.

    Raises:
        UnsupportedError: the region has not one block.
    """
    inner, returned = region_of(op, region)
    pairs = zip(inner, arguments, strict=True)
    known = {value.id: argument for value, argument in pairs if argument is not None}
    scope = Scope(_RegionBody(registry, known), builder)
    return [element_of(scope, value, ()) for value in (returned if result is None else returned[result : result + 1])]


class _RegionBody:
    """Body of a region: results computed from its arguments."""

    index_bits = 64

    def __init__(self, registry: Registry, arguments: Mapping[int, SSAValue]) -> None:
        self.registry = registry
        self._arguments = arguments

    def outside(self, scope: Scope, value: Value, indices: Indices) -> SSAValue | None:
        """Return the argument of the function for an argument of the region, or None for any other value.

        Raises:
            UnsupportedError: it is an argument of something around the region.
        """
        argument = self._arguments.get(value.id)
        if argument is None and value.defining_op is None:
            message = "a region that combines elements uses an argument from outside of it"
            raise UnsupportedError(Diagnostic("combiner", message, hint="let the region use its own arguments only"))
        return argument

    def computes(self, value: Value) -> bool:
        """Return whether a value is the result of an op of the region."""
        return value.id not in self._arguments and value.defining_op is not None

    def region_function(self, op: Op, region: int = 0) -> str:
        """Refuse regions inside regions."""
        message = "an op inside a region that combines elements has no region itself"
        raise UnsupportedError(Diagnostic("combiner", message, op.location, op.name))
