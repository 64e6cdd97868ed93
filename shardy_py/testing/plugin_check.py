"""The numeric kit over a whole plugin: every op with a function is tried alone, and in the author's programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from shardy_py.api.given_sizes import ALL, module_of_sizes
from shardy_py.api.main_function import arguments_of, find_main
from shardy_py.api.source import read_program
from shardy_py.errors import ShardyError
from shardy_py.frontends.select import frontend_of
from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.dynamic_sizes import is_dynamic
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import ConstantLike, IsTerminator
from shardy_py.plugins import OpDefinition, Registry
from shardy_py.testing.numeric.bench import takes_local
from shardy_py.testing.numeric.check import check_rule_numerically
from shardy_py.testing.numeric.pieces import Local
from shardy_py.testing.ops import make_op
from shardy_py.testing.samples import sample_of_definition, samples_of_programs, takes_op
from shardy_py.testing.sharded.interpreter import is_constant
from shardy_py.testing.sharded.run import run_sharded
from shardy_py.values import frozen

Functions = Mapping[str, Callable[..., Any]]
"""The function of each op name, as `run_sharded` takes it."""
_MESH = {"a": 2, "b": 2}
_DEVICES = {"d": 2}
_DYNAMIC_SIZE = 8
"""The number in the place of dynamic sizes."""
_PARAMETERS = "a function gets one array per operand, and the op and its attributes by a parameter named op"


@frozen
class OpCheck:
    """The check of one op.

    Args:
        name: The name of the op.
        types: Its types, in words.
        runs: The number of its shardings that were run.
        problems: What is wrong, in words; empty where nothing is.
    """

    name: str
    types: str
    runs: int
    problems: tuple[str, ...]


@frozen
class ProgramRuns:
    """The runs of one program under random shardings.

    Args:
        name: The name of its file.
        runs: The number of shardings that were run.
        problems: What is wrong, in words; empty where nothing is.
    """

    name: str
    runs: int
    problems: tuple[str, ...]


@frozen
class PluginReport:
    """The results of the check of a plugin.

    Args:
        ops: The ops that were tried.
        programs: The programs.
        without_function: The names of ops that no function computes.
        without_sample: The names of ops that only a program can show: their rules are functions, or what computes them
            does not take made-up operands.
    """

    ops: tuple[OpCheck, ...]
    programs: tuple[ProgramRuns, ...] = ()
    without_function: tuple[str, ...] = ()
    without_sample: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not any(item.problems for item in self._checks)

    @property
    def _checks(self) -> list[OpCheck | ProgramRuns]:
        return [*self.ops, *self.programs]

    def __str__(self) -> str:
        lines = [
            line
            for item in self._checks
            for line in (_headline(item), *(f"  {text}" for problem in item.problems for text in problem.splitlines()))
        ]
        if self.without_function:
            lines.append(f"not checked, as FUNCTIONS has no function for them: {', '.join(self.without_function)}")
        if self.without_sample:
            lines.append(f"not checked, give a program that has them: {', '.join(self.without_sample)}")
        return "\n".join(lines or ["the plugin has no ops"])


def _headline(item: OpCheck | ProgramRuns) -> str:
    if isinstance(item, ProgramRuns) and item.problems and not item.runs:
        return f"{item.name}: NOT RUN"
    subject = f"{item.name} {item.types}" if isinstance(item, OpCheck) else item.name
    return f"{subject}: {'WRONG' if item.problems else 'ok'}, {item.runs} shardings"


def check_plugin(
    plugin: object,
    functions: Functions,
    programs: Iterable[Any] | Mapping[str, Any] = (),
    *,
    trials: int = 4,
    seed: int = 0,
    registry: Registry | None = None,
) -> PluginReport:
    """Check the ops of a plugin by what they compute: their rules, local forms and combiners.

    Each op is tried alone: its rule factor by factor, then its local form under each sharding of each dimension of its
    operands. Then each program runs under random shardings of its arguments. Ops with regions are tried in programs.

    Args:
        plugin: The plugin: a module or an object with hooks.
        functions: What each op computes on arrays of numpy, by its name; see `run_sharded`.
        programs: Programs, in any form that `propagate` takes, whose ops are tried instead of made-up ones; with their
            names or without.
        trials: The random shardings of each program.
        seed: The seed of operands and shardings.
        registry: A registry that has the plugin; one of the installed plugins and this one by default.

    Raises:
        ShardyError: the plugin is not valid, or a program cannot be read.
    """
    named = programs.items() if isinstance(programs, Mapping) else [(_name(item), item) for item in programs]
    sources = list(named)
    registry = Registry.from_entry_points(plugins=[plugin]) if registry is None else registry
    graphs = [_static_program(source, registry) for _, source in sources]
    samples_by_name = samples_of_programs(graphs)
    ops: list[OpCheck] = []
    without_function, without_sample = [], []
    definitions = list(_definitions(plugin))
    for definition in definitions:
        function = functions.get(definition.name)
        if function is None:
            needs_function = definition.traits.isdisjoint((ConstantLike, IsTerminator))
            without_function += [definition.name] if needs_function else []
            continue
        special = [
            item for item in definitions if item.name == definition.name and len(item.when) > len(definition.when)
        ]
        ops_of_name = samples_by_name.get(definition.name, ())
        samples = [
            op for op in ops_of_name if definition.is_about(op) and not any(item.is_about(op) for item in special)
        ]
        if not samples:
            try:
                sample = sample_of_definition(definition, function, seed)
            except TypeError as error:
                ops.append(OpCheck(definition.name, "", 0, (_raised(error),)))
                continue
            except Exception as error:  # an author's function raises what it likes, and the operands are made up
                without_sample.append(f"{definition.key} ({_raised(error)})")
                continue
            if sample is None and not special:
                without_sample.append(definition.key)
            samples = [] if sample is None else [sample]
        ops += [_check_op(op, function, registry, seed) for op in samples if _can_be_tried_alone(op)]
    checks = [
        _check_program(name, graph, functions, registry, trials=trials, seed=seed)
        for (name, _), graph in zip(sources, graphs, strict=True)
    ]
    unchecked = (tuple(dict.fromkeys(names)) for names in (without_function, without_sample))
    return PluginReport(tuple(ops), tuple(checks), *unchecked)


def _static_program(source: Any, registry: Registry) -> Program:
    """Return the op graph of a program, with a number for all of its dynamic sizes."""
    program = read_program(source, registry)
    if not any(is_dynamic(value.type) for value in arguments_of(find_main(program))):
        return program
    return read_program(module_of_sizes(source, frontend_of(program), {ALL: _DYNAMIC_SIZE}, registry), registry)


def _name(source: Any) -> str:
    return source.name if isinstance(source, Path) else "program"


def _definitions(plugin: object) -> Iterator[OpDefinition]:
    register = getattr(plugin, "shardy_register_dialects", None)
    for dialect in register() if register is not None else ():
        yield from (item for item in dialect.definitions if "*" not in item.name)


def _check_op(op: Op, function: Callable[..., Any], registry: Registry, seed: int) -> OpCheck:
    """Check one op alone."""
    types = f"({', '.join(str(value.type) for value in op.operands)})"
    if op.regions:
        return OpCheck(op.name, types, 0, ())
    problems: list[str] = []
    bound = _on_shard(op, function) if takes_op(function) else function
    try:
        if registry.get_sharding_rule(op) is not None:
            report = check_rule_numerically(op, bound, registry=registry, seed=seed)
            problems += [str(report)] if not report.ok else []
    except ShardyError as error:
        problems.append(str(error))
    except Exception as error:  # an author's function raises what it likes
        return OpCheck(op.name, types, 0, (_raised(error),))
    ways = list(_single_shardings(op))
    for way in ways:
        problems += _run_problem(_alone(op), {op.name: function}, _DEVICES, way, registry, seed)
    return OpCheck(op.name, types, len(ways), tuple(problems))


def _raised(error: Exception) -> str:
    """Say that what an author writes failed, which is no mistake of the kit."""
    return f"its function raised {describe_error(error)}; {_PARAMETERS}"


def _on_shard(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one with the op that a device has, whose types are those of its shards."""

    def call(*arrays: Any, local: Local | None) -> Any:
        shard = op if local is None else _with_shapes(op, local)
        more = {"local": local} if takes_local(function) else {}
        return function(*arrays, op=shard, **more)

    return call


def _with_shapes(op: Op, local: Local) -> Op:
    """Return an op with the types of shards."""
    operands, results = (
        [
            TensorType(shard.shape, value.type.element_type) if isinstance(value.type, TensorType) else value.type
            for value, shard in zip(values, shards, strict=True)
        ]
        for values, shards in ((op.operands, local.operands), (op.results, local.results))
    )
    shard_op: Op = make_op(op.name, operands, results, op.attributes)
    return shard_op


def _single_shardings(op: Op) -> Iterator[dict[int, Any]]:
    """Yield a sharding of each dimension of each operand that divides."""
    for number, value in enumerate(op.operands):
        shape = value.type.shape if isinstance(value.type, TensorType) else ()
        for dim, size in enumerate(shape):
            if size is not None and size and size % 2 == 0:
                yield {number: [None] * dim + ["d"]}


def _alone(op: Op) -> Program:
    """Return a program of one op, whose operands are its arguments."""
    builder = Builder()
    with builder.function("main", [value.type for value in op.operands]) as values:
        alone = builder.emit(op.name, values, [value.type for value in op.results], dict(op.attributes))
        builder.return_(*alone.results)
    return builder.build()


def _check_program(
    name: str, program: Program, functions: Functions, registry: Registry, *, trials: int, seed: int
) -> ProgramRuns:
    missing = sorted({op.name for op in program.walk() if _needs_function(op, registry)} - set(functions))
    if missing:
        return ProgramRuns(name, 0, (f"FUNCTIONS has no function for {', '.join(missing)}",))
    mesh = None if program.meshes else _MESH
    axes = list(_MESH) if mesh is not None else [axis.name for axis in next(iter(program.meshes.values())).axes]
    shapes = [getattr(value.type, "shape", ()) for value in arguments_of(find_main(program))]
    random, problems = Random(seed), []
    for _ in range(trials):
        way = _random_shardings(shapes, axes, random)
        problems += _run_problem(copy_program(program), functions, mesh, way, registry, seed)
    return ProgramRuns(name, trials, tuple(problems))


def _can_be_tried_alone(op: Op) -> bool:
    """Return whether operands of an op can be made up, and its function needs no functions of regions."""
    return not op.regions and all(isinstance(value.type, TensorType) for value in op.operands)


def _needs_function(op: Op, registry: Registry) -> bool:
    is_of_core = op.name.partition(".")[0] in ("func", "sdy", "builtin")
    return not (is_of_core or is_constant(op) or IsTerminator in registry.get_traits(op))


def _random_shardings(shapes: Sequence[Any], axes: Sequence[str], random: Random) -> dict[int, Any]:
    """Return random shardings of some arguments: each axis along at most one dimension of each."""
    ways: dict[int, Any] = {}
    for number, shape in enumerate(shapes):
        dims: list[Any] = [None] * len(shape)
        for axis in axes:
            free = [dim for dim, size in enumerate(shape) if dims[dim] is None and size and size % 2 == 0]
            if free and random.random() < 0.7:
                dims[random.choice(free)] = axis
        if any(dims):
            ways[number] = dims
    return ways


def _run_problem(
    program: Program, functions: Functions, mesh: Any, way: Mapping[int, Any], registry: Registry, seed: int
) -> list[str]:
    """Return what is wrong with the local program under some shardings, as a list of one or no text."""
    shown = ", ".join(f"operand {number} {[axis or '-' for axis in dims]}" for number, dims in way.items())
    try:
        run = run_sharded(program, functions, mesh, in_shardings=dict(way), registry=registry, seed=seed)
    except ShardyError as error:
        return [f"sharded by {shown}: {error}"]
    except Exception as error:  # an author's function raises what it likes; the notes say of which op it is
        return [f"sharded by {shown}: {', '.join([describe_error(error), *getattr(error, '__notes__', ())])}"]
    return [] if run.ok else [f"sharded by {shown}: {run.difference}"]
