"""Local programs on virtual devices, compared value by value with the program on whole tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field

from shardy_py.api.options import LocalOptions
from shardy_py.api.propagate import propagate
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.local import LocalValue
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.arguments import as_numpy
from shardy_py.local.pipeline import local_passes
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import checked
from shardy_py.testing.numeric.bench import Arrays
from shardy_py.testing.numeric.operands import make_generator, make_operand
from shardy_py.testing.numeric.pieces import Array
from shardy_py.testing.sharded.collectives import COLLECTIVES
from shardy_py.testing.sharded.comparison import ShardComparison, find_tolerances
from shardy_py.testing.sharded.devices import VirtualDevices
from shardy_py.testing.sharded.interpreter import Functions, Interpreter, check_program
from shardy_py.testing.sharded.virtual_ops import SPACE, VirtualOps
from shardy_py.transforms.finish.input_output_shardings import (
    UpdateNonDivisibleInputOutputShardingsPass,
)
from shardy_py.transforms.run import run
from shardy_py.values import define, frozen


@define
class UnevenKept:
    """Called after each pass: gives arguments and results back what the pass for even shardings took from them.

    Virtual devices pad the parts, which a caller with whole arrays does not see.
    """

    _before: dict[int, TensorSharding] = field(factory=dict, init=False)

    def __call__(self, name: str, program: Program) -> None:
        """Keep the shardings, or put those from before the pass in their places."""
        if name == UpdateNonDivisibleInputOutputShardingsPass.name:
            program.shardings.update(self._before)
        self._before = {
            value.id: sharding for value in _ports(program) if (sharding := program.sharding(value)) is not None
        }


def _ports(program: Program) -> Iterator[Value]:
    """Give the arguments and results of the main function."""
    main = main_function(program)
    if main is not None:
        yield from entry_arguments(main)
        yield from main.function_results


@frozen
class ShardedRun:
    """The outcome of a local program on virtual devices.

    Args:
        devices: The number of devices.
        results: The results of the program on whole tensors.
        found: The results of the devices, joined.
        difference: What differs first, in words, or "".
        gathered: The names of the ops that ran on gathered operands.
        collectives: The collectives that each device runs, in the order of the program.
    """

    devices: int
    results: Arrays
    found: Arrays
    difference: str
    gathered: tuple[str, ...]
    collectives: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if the devices compute what the program computes on whole tensors."""
        return not self.difference

    def __str__(self) -> str:
        verdict = self.difference or "the devices compute what the program computes on whole tensors"
        lines = [f"{self.devices} devices: {verdict}"]
        if self.collectives:
            lines.append(f"collectives: {', '.join(self.collectives)}")
        if self.gathered:
            lines.append(f"gathered: {', '.join(self.gathered)}")
        return "\n".join(lines)


@checked
def run_sharded(
    program: Any,
    functions: Functions,
    mesh: Any = None,
    *arrays: Any,
    in_shardings: Any = None,
    plugins: Iterable[object] = (),
    registry: Registry | None = None,
    strict: bool = False,
    optimize: bool = False,
    rtol: float | None = None,
    seed: int = 0,
) -> ShardedRun:
    """Run the local program of a program on virtual devices of numpy, and compare with the program on whole tensors.

    No hardware and no compiler is involved: each op is one call of its function, collectives are computed here.
    Shardings of arguments and results stay where they do not divide: shards are padded.

    Args:
        program: The program, in any form that `propagate` takes; its main function is called main.
        functions: The function of each op name. It takes one array per operand and returns an array, or a tuple of
            several. With a parameter ``op`` it gets the op, on a device the local one; with ``regions`` one function
            per region, which takes and returns arrays; with ``local`` what a function for `check_rule_numerically`
            gets.
        mesh: For a program without a mesh: a mesh, as for `propagate`.
        arrays: One array per argument; without any, random ones.
        in_shardings: Shardings of arguments, as for `propagate`.
        plugins: More plugins besides the installed ones.
        registry: The definitions of ops; by default those of the plugins.
        strict: Whether an op without a local form is an error; otherwise it runs on gathered operands.
        optimize: Whether ops run where the fewest bytes are sent; otherwise each runs as propagation left it, so that
            its local form is seen at work.
        rtol: The largest difference of elements relative to the largest one; by default it depends on the least
            precise dtype that a value was computed from.
        seed: The seed of random arguments.

    Returns:
        The outcome; its text names the first op whose shards are not those of the whole tensor.

    Raises:
        OptionError: an op has no function, or a function gives other shapes than its op has.
        ShardyError: there is no local program.
    """
    result = propagate(
        program,
        mesh,
        in_shardings=in_shardings,
        plugins=plugins,
        registry=registry,
        explicit_collectives=True,
        on_pass=UnevenKept(),
    )
    main = str(result.main.attributes["sym_name"])
    global_program, local = copy_program(result.program), copy_program(result.program)
    check_program(global_program, functions, result.registry)
    argument_arrays = _arguments(result.main, arrays, seed)
    reference = Interpreter(global_program, functions, result.registry)
    expected_results = reference.run(main, argument_arrays)
    values: dict[int, LocalValue] = {}
    context = PassContext(evolve(result.registry, local_ops={SPACE: VirtualOps()}), local_values=values)
    run(local, local_passes(LocalOptions(strict=strict, optimize=optimize)), context)
    check_program(local, functions, result.registry)
    devices = VirtualDevices(local, functions, result.registry, main)
    joined = tuple(
        array[tuple(slice(size) for size in expected.shape)]
        for array, expected in zip(devices.run(argument_arrays), expected_results, strict=True)
    )
    tolerances = (
        find_tolerances(global_program, reference.seen) if rtol is None else dict.fromkeys(reference.seen, rtol)
    )
    comparison = ShardComparison(global_program, devices, values, tolerances, result.registry)
    end = global_program.functions[main].regions[0].block.terminator
    return ShardedRun(
        devices.count,
        expected_results,
        joined,
        # What ops compute can be told apart only where each still stands where it was.
        ("" if optimize else comparison.first_difference(reference.seen))
        or comparison.of_results(expected_results, joined, end.operands if end is not None else ()),
        tuple(item.op for item in context.warnings if item.code == "gathered-op"),
        tuple(op.name.removeprefix(f"{SPACE}.") for op in local.walk() if op.name in COLLECTIVES),
    )


def assert_runs_sharded(
    program: Any, functions: Functions, mesh: Any = None, *arrays: Any, **settings: Any
) -> ShardedRun:
    """Assert that `run_sharded` finds no difference.

    Args:
        program: The program.
        functions: The function of each op name.
        mesh: For a program without a mesh: a mesh.
        arrays: One array per argument; without any, random ones.
        settings: The settings of `run_sharded`.

    Returns:
        The outcome.

    Raises:
        AssertionError: the message names the first op whose shards are not those of the whole tensor.
    """
    outcome = run_sharded(program, functions, mesh, *arrays, **settings)
    if not outcome.ok:
        raise AssertionError(str(outcome))
    return outcome


def _arguments(main: Op, arrays: Sequence[Any], seed: int) -> list[Array]:
    """Return the arguments of a function: the given ones, or random ones."""
    arguments = entry_arguments(main)
    if arrays and len(arrays) != len(arguments):
        message = f"the program has {len(arguments)} arguments, given are {len(arrays)}"
        raise OptionError(Diagnostic("argument-count", message, hint="give one whole array per argument, or none"))
    numpy_arrays = [as_numpy(item, number) for number, item in enumerate(arrays)]
    for number, (array, value) in enumerate(zip(numpy_arrays, arguments, strict=False)):
        if not _has_shape(array, value.type):
            message = f"argument {number} has the type {value.type}, given is an array of the shape {array.shape}"
            raise OptionError(Diagnostic("argument-type", message, hint="give the whole array, not a shard"))
    generator = make_generator(seed)
    return numpy_arrays or [_random_argument(value, generator) for value in arguments]


def _has_shape(array: Array, type_: Type) -> bool:
    """Return whether an array has the static sizes of a type; one without a shape is a scalar."""
    shape = type_.shape if isinstance(type_, TensorType) else ()
    return array.ndim == len(shape) and all(size in (None, real) for size, real in zip(shape, array.shape, strict=True))


def _random_argument(value: Value, generator: np.random.Generator) -> Array:
    """Return random numbers for an argument; the error that there are none says for which."""
    try:
        return make_operand(value.type, generator)
    except OptionError as error:
        items = (_of_argument(item, value) for item in error.diagnostics)
        raise OptionError(*items) from None


def _of_argument(item: Diagnostic, value: Value) -> Diagnostic:
    function = value.owning_op
    message = f"argument {value.index}: {item.message}"
    return evolve(
        item, message=message, location=function.location, op=function.name, hint="give an array per argument"
    )
