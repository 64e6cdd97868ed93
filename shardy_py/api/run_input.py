"""Input of a run, before its first pass: the registry, the program, and the shardings that the caller gives."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_py.api.given_shardings import (
    apply_in_shardings,
    apply_out_shardings,
    meshes_of_shardings,
    uses_mesh,
)
from shardy_py.api.main_function import (
    argument_name,
    argument_names,
    arguments_of,
    find_main,
    result_name,
    result_names,
)
from shardy_py.api.meshes import DEFAULT_NAME, add_mesh, as_mesh
from shardy_py.api.options import Like, ProgramInput, ProgramOptions
from shardy_py.api.registries import load_registry
from shardy_py.api.source import complete_registry, read_through
from shardy_py.errors import Diagnostic, OptionError, PluginError, VerificationError
from shardy_py.extensions import function
from shardy_py.frontends.select import find_frontend
from shardy_py.guards.error_texts import shorten_location, shown
from shardy_py.ir.graph.builder_checks import check_shardings
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.graph.verify_shardings import diagnose_shardings
from shardy_py.ir.graph.walk import names_with_trait, ops_among
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.ops import ConstantLike, IsTerminator, Trait
from shardy_py.plugins import OpDefinition, Registry, RuleOptions
from shardy_py.plugins.check_data_flow import check_data_flows
from shardy_py.plugins.installed import with_framework_dialects
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.propagation.engine import StageCallback
from shardy_py.propagation.user_priorities import warn_of_ignored_priorities
from shardy_py.transforms.prepare.add_data_flow_edges import replicate_results_on_no_edge
from shardy_py.transforms.reduced_shardings import warn_of_reduced_shardings
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.jax.signature import JaxSignature


def check_traits(program: Program, registry: Registry) -> None:
    """Check the ops with the traits `ConstantLike` and `IsTerminator`.

    Raises:
        PluginError: a constant has operands, or other than one result, or ops follow a terminator in its block; one
            diagnostic for each definition.
    """
    problems: dict[tuple[str, str], Diagnostic] = {}
    for op in ops_among(program, names_with_trait(program, registry, ConstantLike)):
        if (op.operands or len(op.results) != 1) and ConstantLike in registry.get_traits(op):
            _add(problems, op, registry, ConstantLike, "constant-with-operands")
    for op in ops_among(program, names_with_trait(program, registry, IsTerminator)):
        if op.next is not None and IsTerminator in registry.get_traits(op):
            _add(problems, op, registry, IsTerminator, "terminator-inside")
    if problems:
        raise PluginError(*problems.values())


def _add(problems: dict[tuple[str, str], Diagnostic], op: Op, registry: Registry, trait: Trait, code: str) -> None:
    """Add a problem of an op, unless there is one of the same definition already."""
    source = next((item for item in registry.definitions if _may_give(item, trait, op.name)), None)
    key = code, source.name if source else op.name
    if key in problems:
        return
    if trait is ConstantLike:
        message = f"the op has the trait ConstantLike, but {len(op.operands)} operands and {len(op.results)} results"
        hint = "a constant has no operand and one result; an op that is folded with its operands is ConstantFoldable"
    else:
        message = "the op has the trait IsTerminator, but other ops follow it in its block"
        hint = "a terminator ends its block; leave out the trait"
    if source is not None:
        place = f" at {shorten_location(source.location)}" if source.location else ""
        hint = f"{hint}; defined by {registry.owners.get(source.name, 'an unknown owner')}{place}"
    problems[key] = Diagnostic(code, message, op.location, op.name, hint)


def _may_give(definition: OpDefinition, trait: Trait, name: str) -> bool:
    is_said = trait in definition.traits or definition.traits_of is not None
    return is_said and fnmatchcase(name, definition.name)


KEEP_UNEVEN = "keep_uneven_shardings=True (--keep-uneven-shardings) keeps it and pads the last shards"
"""The way to keep a sharding that does not divide a size."""


def make_semantics(options: ProgramOptions, registry: Registry | None) -> Registry:
    """Return the definitions of ops for a run.

    Args:
        options: The options with the plugins, and those that rules depend on; those of a given registry stay, too.
        registry: The registry of the caller, which gets the ops of `func` and `sdy`; None for the installed plugins.

    Raises:
        OptionError: a registry is given together with options that choose plugins.
        PluginError: a plugin is broken.
    """
    rule_options = RuleOptions(options.conservative, options.extended_rules)
    if registry is None:
        return load_registry(
            plugins=options.plugins,
            blocked=options.blocked,
            options=rule_options,
            strict_plugins=options.strict_plugins,
        )
    if not isinstance(registry, Registry):
        message = f"registry is {shown(registry)}, not a Registry"
        raise OptionError(Diagnostic("invalid-registry", message, hint="Registry.of([toy]), or plugins=[module]"))
    excluded = {
        "plugins": tuple(options.plugins),
        "blocked": tuple(options.blocked),
        "strict_plugins": options.strict_plugins,
    }
    for name, value in excluded.items():
        if value:
            message = f"registry and {name} exclude each other"
            raise OptionError(Diagnostic("option-conflict", message, hint=f"build the registry with {name}"))
    registry = with_framework_dialects(registry)
    given_options = registry.options
    if not (rule_options.conservative or rule_options.extended):
        return registry
    return registry.with_options(
        evolve(
            given_options,
            conservative=given_options.conservative or rule_options.conservative,
            extended=given_options.extended or rule_options.extended,
        )
    )


@frozen(eq=False)
class RunInput:
    """A program that was read.

    Args:
        program: The program.
        main: Its main function.
        registry: The definitions of ops, with those that the module itself brings.
        source_name: The name of the file that it was read from, or "".
        attribute_names: The names of the attributes of its ops, or None where they are not known.
        like: What the program is propagated like: ``jit`` or ``passes``.
        warnings: Why that is not what was asked for, if so.
        signature: The trees of arguments and results of a function of JAX; None for other programs.
    """

    program: Program
    main: Op
    registry: Registry
    source_name: str
    attribute_names: Collection[str] | None
    like: Like = "passes"
    warnings: tuple[Diagnostic, ...] = ()
    signature: JaxSignature | None = None


def read_input(
    program_input: ProgramInput, registry: Registry, *, verify: bool = True, on_stage: StageCallback | None = None
) -> RunInput:
    """Return the program that a caller gives.

    Args:
        program_input: The program and what it starts from.
        registry: The definitions of ops.
        verify: Whether a native library verifies its module.
        on_stage: Called with ``convert`` before the program is brought into the form that `jax.jit` propagates.

    Raises:
        ShardyError: the module is not valid.
    """
    module = program_input.module
    if program_input.args is not None or program_input.kwargs is not None:
        module = function("lower_function")(module, program_input.args or (), program_input.kwargs or {})
    frontend = find_frontend(module, registry)
    source_name = frontend.source_name(module)
    if program_input.sizes:
        from shardy_py.api.given_sizes import module_of_sizes

        module = module_of_sizes(module, frontend, program_input.sizes, registry)
        frontend = find_frontend(module, registry)
    like = resolve_like(program_input.like, module, frontend)
    program: Program | None = None
    warnings: tuple[Diagnostic, ...] = ()
    if like == "jit":
        registry = _with_like_jit(registry, like_jit=True)
        if frontend.name != "jit":
            if on_stage is not None:
                on_stage("convert")
            program, warnings = function("read_like_jit")(module, frontend, registry)
            like = "passes" if program is None else "jit"
    if program is None:
        registry = _with_like_jit(registry, like_jit=like == "jit")
        program = read_through(frontend, module, verify=verify)
    # They hold until the first pass, and for nobody else who has the program.
    attribute_names, program.attribute_names = program.attribute_names, None
    main = find_main(program, source=source_name)
    registry = complete_registry(program, registry)
    signature = function("signature_of_stage")(module, len(arguments_of(main))) if frontend.name == "jax" else None
    return RunInput(program, main, registry, source_name, attribute_names, like, warnings, signature)


def _with_like_jit(registry: Registry, *, like_jit: bool) -> Registry:
    """Return a registry whose rules are those that `jax.jit` follows, or are not."""
    if registry.options.like_jit == like_jit:
        return registry
    return registry.with_options(evolve(registry.options, like_jit=like_jit))


def resolve_like(like: Like | None, module: Any, frontend: Frontend) -> Like:
    """Return the compiler whose propagation a program follows: by default `jax.jit` for programs of JAX."""
    if frontend.name == "jit":
        return "jit"
    if like is not None or frontend.name not in ("jax", "hlo", "mlir"):
        return like or "passes"
    return "jit" if function("is_jax_program")(module, frontend) else "passes"


def reduced_shardings(read: RunInput, options: ProgramOptions) -> tuple[Diagnostic, ...]:
    """Return a warning for each sharding that a program or its caller gives and the result will not have.

    Args:
        read: The program, with all shardings given.
        options: The options of the propagation.
    """
    if options.keep_uneven_shardings:
        return ()
    return warn_of_reduced_shardings(
        read.program,
        read.main,
        read.registry,
        hint=KEEP_UNEVEN,
        name_of=_own_names(read.main),
        inline_calls=options.inline_calls,
    )


def ignored_priorities(read: RunInput, options: ProgramOptions) -> tuple[Diagnostic, ...]:
    """Return a warning where shardings of a program or its caller have user priorities, and the strategy has none.

    Args:
        read: The program, with all shardings given.
        options: The options of the propagation.
    """
    if options.strategy == "user-priority":
        return ()
    return warn_of_ignored_priorities(read.program, options.strategy)


def _own_names(main: Op) -> Callable[[Value], str]:
    """Return a function that gives the user's own names of arguments and results of a function, "" for others."""
    names: dict[int, str] | None = None

    def name_of(value: Value) -> str:
        nonlocal names
        if names is None:
            arguments, results = arguments_of(main), main.function_results
            pairs = (*zip(arguments, argument_names(main), strict=True), *zip(results, result_names(main), strict=True))
            printed = {*map(argument_name, range(len(arguments))), *map(result_name, range(len(results)))}
            names = {value.id: name for value, name in pairs if name not in printed}
        return names.get(value.id, "")

    return name_of


def give_shardings(read: RunInput, program_input: ProgramInput) -> tuple[Diagnostic, ...]:
    """Bring the caller's mesh and shardings into a program, and its own into its table.

    Returns:
        The annotations of the program that were left out, as warnings.

    Raises:
        ShardyError: they do not fit the program.
    """
    program, main, semantics = read.program, read.main, read.registry
    opaque = give_shapes(program, semantics)
    in_shardings, out_shardings = program_input.in_shardings, program_input.out_shardings
    if read.signature is not None:
        in_shardings, out_shardings = read.signature.flat_shardings(in_shardings, out_shardings)
    given = meshes_of_shardings(in_shardings, out_shardings)
    if program_input.mesh is not None:
        given = tuple(dict.fromkeys((as_mesh(program_input.mesh), *given)))
    names = read.attribute_names
    has_texts = function("import_round_trip")(program, attribute_names=names)
    if has_texts:
        names = None
    if not given and not program.meshes and (in_shardings or out_shardings):
        context = function("context_mesh")()
        given = () if context is None else (as_mesh(context),)
    added = [add_mesh(program, mesh, may_be_second=uses_mesh(mesh, in_shardings, out_shardings)) for mesh in given]
    warnings = function("import_gspmd")(program, may_add_meshes=not given, attribute_names=names)
    if warnings is not None:
        names = None
    # A mesh without axes says on which device something runs, such as a call into Python.
    meshes = program.meshes
    by_axes = next((name for name in meshes if meshes[name].axes), next(iter(meshes), DEFAULT_NAME))
    mesh_name = added[0] if added else by_axes
    check_data_flows(program, semantics)
    check_traits(program, semantics)
    left_out = replicate_results_on_no_edge(program, semantics)
    # A program that was built has its shardings in the table already.
    built = dict(program.shardings)
    check_shardings(program)
    load_shardings(program, semantics, attribute_names=names)
    if has_texts:
        _refuse_unknown_meshes(program)
    program.shardings.update(built)
    apply_in_shardings(program, main, in_shardings, mesh_name)
    apply_out_shardings(program, main, out_shardings, mesh_name)
    return (*read.warnings, *opaque, *(warnings or ()), *left_out)


def _refuse_unknown_meshes(program: Program) -> None:
    """Check that there are the meshes of shardings that were texts, which no verifier of MLIR knows.

    Raises:
        VerificationError: one is missing.
    """
    problems = [item for item in diagnose_shardings(program) if item.code == "unknown-mesh"]
    if problems:
        raise VerificationError(*problems)
