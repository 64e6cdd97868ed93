"""Programs run op by op, with a function on arrays for each op name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import field

from shardy_py.errors import Diagnostic, OptionError, ShardyError, UnsupportedError
from shardy_py.ir.graph.attributes import Attribute, DenseElements, OpaqueElements, RawAttribute
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.support.arguments import parameter_names, shown
from shardy_py.testing.numeric.bench import Arrays, as_arrays
from shardy_py.testing.numeric.pieces import Array, make_local
from shardy_py.testing.sharded.collectives import COLLECTIVES, collective, own_op
from shardy_py.testing.sharded.rendezvous import Rendezvous
from shardy_py.testing.sharded.virtual_ops import ON_DEVICE, SPACE
from shardy_py.values import define

Functions = Mapping[str, Callable[..., Any]]


@define
class Interpreter:
    """Runs a program, or what one device does of it.

    Attributes:
        program: The program.
        functions: The function of each op name; see `shardy_py.testing.run_sharded`.
        semantics: What is known about ops.
        device: The number of the device.
        rendezvous: Where it meets the others.
        seen: Every value of each result, by the id of the result, in the order of the run.
        failed: The op whose function raised an exception.
    """

    program: Program
    functions: Functions
    semantics: OpSemantics
    device: int = 0
    rendezvous: Rendezvous = field(factory=lambda: Rendezvous(1))
    seen: dict[int, list[Array]] = field(factory=dict)
    failed: Op | None = None

    def run(self, name: str, arguments: Sequence[Array]) -> Arrays:
        """Return the results of a function of the program.

        Args:
            name: Its name.
            arguments: Its arguments.
        """
        return self._region(self.program.functions[name].regions[0], arguments, {})

    def _region(self, region: Region, arguments: Sequence[Array], outer: Mapping[int, Array]) -> Arrays:
        block: Block = region.block
        if len(arguments) != len(block.arguments):
            op = block.parent_op
            message = f"its region has {len(block.arguments)} arguments, its function gives {len(arguments)}"
            hint = "what a region returns is an array where it is one, else a tuple"
            place, name = (op.location, op.name) if op else ("", "")
            raise OptionError(Diagnostic("region-arguments", message, place, name, hint))
        values = dict(outer)
        for argument, array in zip(block.arguments, arguments, strict=True):
            values[argument.id] = np.asarray(array)
            _check_argument(argument, values[argument.id])
            self.seen.setdefault(argument.id, []).append(values[argument.id])
        end = block.terminator
        for op in block.ops:
            operands = tuple(values[value.id] for value in op.operands)
            if op is end and (not op.results or self.semantics.has_trait(op, IsTerminator)):
                return operands
            for result, array in zip(op.results, self._op(op, operands, values), strict=True):
                values[result.id] = array
                self.seen.setdefault(result.id, []).append(array)
        return ()

    def _op(self, op: Op, operands: Arrays, values: Mapping[int, Array]) -> Arrays:
        if op.name in COLLECTIVES:
            return (collective(op, self.device, self.rendezvous.exchange(self.device, op, operands[0])),)
        if op.name == ON_DEVICE:
            if self.device == op.attributes["device"]:
                return self._region(op.regions[0], (), values)
            return tuple(nothing(result.type) for result in op.results)
        if op.name.startswith(f"{SPACE}."):
            return (np.asarray(own_op(op, self.device, operands)),)
        if op.name == CALL:
            return self.run(callee_of(op) or "", operands)
        if op.name in self.functions:
            return self._call_function(op, operands, values)
        if is_constant(op):
            return (constant_array(op),)
        if op.name.startswith("sdy.") and len(op.results) == len(op.operands) and op.name != MANUAL_COMPUTATION:
            # Where elements are changes; on whole tensors, nothing does.
            return operands
        if not op.results:
            return ()
        raise missing_functions([op.name])

    def _call_function(self, op: Op, operands: Arrays, values: Mapping[int, Array]) -> Arrays:
        function = self.functions[op.name]
        parameters = _parameters(function)
        extras: dict[str, Any] = {}
        if "op" in parameters:
            extras["op"] = op
        if "regions" in parameters:
            extras["regions"] = [self._callable(region, values) for region in op.regions]
        if "local" in parameters:
            shapes = [*(array.shape for array in operands), *(static_shape(item.type) or () for item in op.results)]
            extras["local"] = make_local(shapes, len(operands))
        try:
            with np.errstate(all="ignore"):
                # Copies, as a function may work in place.
                returned = function(*map(np.array, operands), **extras)
        except Exception as error:
            if not isinstance(error, ShardyError):
                self.failed = op
                error.add_note(f"in the function of {op.name}{f' at {op.location}' if op.location else ''}")
            raise
        arrays = as_arrays(returned) if op.results else ()
        if len(arrays) != len(op.results):
            message = f"its function gives {len(arrays)} arrays, the op has {len(op.results)} results"
            raise OptionError(Diagnostic("result-count", message, op.location, op.name))
        for number, (array, result) in enumerate(zip(arrays, op.results, strict=True)):
            shape = static_shape(result.type)
            if shape is not None and array.shape != shape:
                message = f"its function gives a result {number} of shape {array.shape} where the op has {result.type}"
                hint = "a function that needs sizes takes them from its operands, or from a parameter 'op'"
                raise OptionError(Diagnostic("result-shape", message, op.location, op.name, hint))
            if array.dtype.kind in "OSU":
                message = f"its function gives a result {number} of dtype {array.dtype} where the op has {result.type}"
                hint = "return numbers: array.astype of a dtype such as float32"
                raise OptionError(Diagnostic("result-type", message, op.location, op.name, hint))
        return arrays

    def _callable(self, region: Region, values: Mapping[int, Array]) -> Callable[..., Any]:
        def call(*arguments: Array) -> Any:
            results = self._region(region, arguments, values)
            return results[0] if len(results) == 1 else results

        return call


def _check_argument(argument: Value, array: Array) -> None:
    """Check that a region gets an array of the shape of its argument.

    Raises:
        OptionError: it has another one.
    """
    shape, op = static_shape(argument.type), argument.owning_op
    if shape is None or array.shape == shape:
        return
    message = f"region argument {argument.index} is {argument.type}, its function gives an array of shape {array.shape}"
    raise OptionError(Diagnostic("region-arguments", message, op.location, op.name))


def is_constant(op: Op) -> bool:
    """Return whether an op is a constant whose elements are an attribute."""
    return not op.operands and isinstance(_elements(op), (DenseElements, OpaqueElements, RawAttribute, int, float))


def _elements(op: Op) -> Attribute | None:
    """Return the attribute that holds the elements of a constant: ``value``, or ``values`` as in TOSA."""
    return op.attributes.get("value", op.attributes.get("values"))


def nothing(type_: Type) -> Array:
    """Return zeros of a type."""
    dtype = numpy_dtype(type_.element_type) if isinstance(type_, TensorType) else np.dtype("float32")
    return np.zeros(static_shape(type_) or (), dtype)


def constant_array(op: Op) -> Array:
    """Return the elements of a constant."""
    value, type_ = _elements(op), op.results[0].type
    if not isinstance(type_, TensorType):
        if isinstance(value, RawAttribute):
            # A scalar with its type: ``8 : index``.
            number, _, of_type = value.text.partition(" : ")
            return np.asarray(_number(number, np.dtype("int64") if of_type == "index" else numpy_dtype(of_type)))
        return np.asarray(value.values if isinstance(value, DenseElements) else value)
    shape, dtype = static_shape(type_) or (), numpy_dtype(type_.element_type)
    if isinstance(value, (int, float)):
        return np.full(shape, value, dtype)
    if isinstance(value, DenseElements):
        elements = np.array(value.values, dtype)
        return np.full(shape, elements[0]) if elements.size == 1 else elements.reshape(shape)
    text = str(value).removeprefix("dense<").partition("> :")[0]
    if not text.startswith(("[", '"')):
        return np.full(shape, _number(text, dtype))
    return np.array(getattr(value, "native", value)).astype(dtype).reshape(shape)


def missing_functions(names: Iterable[str]) -> OptionError:
    """Return the error for ops that have no function."""
    message = f"there is no function for {', '.join(sorted(set(names)))}"
    hint = "functions={'toy.add': lambda x, y: x + y}, or FUNCTIONS of its plugin; with regions: lambda x, regions: ..."
    return OptionError(Diagnostic("missing-function", message, hint=hint))


def _invalid_functions(message: str) -> OptionError:
    return OptionError(Diagnostic("invalid-functions", message, hint="functions={'toy.add': lambda x, y: x + y}"))


def check_program(program: Program, functions: Functions, semantics: OpSemantics) -> None:
    """Check that a program can be run.

    Raises:
        OptionError: the functions are not a mapping of names to functions, or ops have none.
        UnsupportedError: the program has manual computations.
    """
    if not isinstance(functions, Mapping):
        raise _invalid_functions(f"functions is {shown(functions)}, not a mapping of names of ops to functions")
    wrong = next((name for name, function in functions.items() if not callable(function)), None)
    if wrong is not None:
        raise _invalid_functions(f"the function of {shown(wrong)} is {shown(functions[wrong])}, not a function")
    missing: set[str] = set()
    for function in program.functions.values():
        for region in function.regions:
            _collect_missing(region, functions, semantics, missing)
    if missing:
        raise missing_functions(missing)


def _collect_missing(region: Region, functions: Functions, semantics: OpSemantics, missing: set[str]) -> None:
    for op in region.block.ops:
        if op.name == MANUAL_COMPUTATION:
            message = "the body is written for one device, and has no meaning on whole tensors"
            raise UnsupportedError(Diagnostic("manual-computation", message, op.location, op.name))
        is_builtin = op.name == CALL or op.name.startswith((f"{SPACE}.", "sdy.")) or is_constant(op)
        if op.name in functions:
            inner = op.regions if "regions" in _parameters(functions[op.name]) else ()
            for part in inner:
                _collect_missing(part, functions, semantics, missing)
        elif op.results and not is_builtin and not semantics.has_trait(op, IsTerminator):
            missing.add(op.name)


def _number(text: str, dtype: Any) -> Any:
    if text.startswith("0x"):
        raw = int(text, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(raw, dtype)[0]
    return np.array(float(text) if "." in text or "e" in text else int(text)).astype(dtype)


@cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    return parameter_names(function)
