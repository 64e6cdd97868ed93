"""What a run needs before its first pass: the registry, and the shardings that the caller gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from shardy_py.api.check_traits import check_traits
from shardy_py.api.foreign_types import give_shapes
from shardy_py.api.given_shardings import (
    InShardings,
    OutShardings,
    apply_in_shardings,
    apply_out_shardings,
    mesh_of_shardings,
)
from shardy_py.api.meshes import DEFAULT_NAME, add_mesh, as_mesh
from shardy_py.api.registries import load_registry
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.gspmd import import_gspmd, import_round_trip
from shardy_py.ir.builder_checks import check_shardings
from shardy_py.ir.check_data_flow import check_data_flows
from shardy_py.ir.error_texts import shown
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.shardings import load_shardings
from shardy_py.plugins import Registry, RuleOptions


def make_semantics(
    registry: Registry | None, plugins: Iterable[object], options: RuleOptions, *, strict_plugins: bool = False
) -> Registry:
    """Return what a run knows about ops.

    Args:
        registry: What the caller gives, or None for the installed plugins.
        plugins: More plugins besides the installed ones.
        options: What rules depend on besides their op; those of a given registry stay, too.
        strict_plugins: Whether what is wrong with an installed plugin is an error.

    Raises:
        OptionError: both a registry and plugins are given.
        PluginError: a plugin is broken.
    """
    if registry is not None and not isinstance(registry, Registry):
        message = f"registry is {shown(registry)}, not a Registry"
        raise OptionError(Diagnostic("invalid-registry", message, hint="Registry.of([toy]), or plugins=[module]"))
    if registry is None:
        return load_registry(plugins=plugins, options=options, strict_plugins=strict_plugins)
    more = tuple(plugins)
    if more:
        raise OptionError(
            Diagnostic(
                "option-conflict", "registry and plugins exclude each other", hint="build the registry with both"
            )
        )
    given = registry.options
    return registry.with_options(
        evolve(
            given,
            conservative=given.conservative or options.conservative,
            extended=given.extended or options.extended,
        )
    )


def give_shardings(
    program: Program,
    main: Op,
    semantics: Registry,
    *,
    mesh: Any,
    in_shardings: InShardings | None,
    out_shardings: OutShardings | None = None,
) -> tuple[Diagnostic, ...]:
    """Bring the caller's mesh and shardings into a program, and its own into its table.

    Returns:
        What the program says that was left out, as warnings.

    Raises:
        ShardyError: they do not fit the program.
    """
    opaque = give_shapes(program, semantics)
    given = mesh_of_shardings(in_shardings, out_shardings) if mesh is None else as_mesh(mesh)
    import_round_trip(program)
    mesh_name = None if given is None else add_mesh(program, given)
    warnings = import_gspmd(program, may_add_meshes=given is None)
    mesh_name = mesh_name or next(iter(program.meshes), DEFAULT_NAME)
    check_data_flows(program, semantics)
    check_traits(program, semantics)
    # A program that was built has its shardings in the table already.
    built = dict(program.shardings)
    check_shardings(program)
    load_shardings(program, semantics)
    program.shardings.update(built)
    apply_in_shardings(program, main, in_shardings, mesh_name)
    apply_out_shardings(program, main, out_shardings, mesh_name)
    return (*opaque, *warnings)
