"""The program that a command line means, with the options of its session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from shardy_py.analysis.sweep.program_source import SessionOptions
from shardy_py.cli.files import read_input
from shardy_py.cli.propagate import parse_in_shardings, parse_mesh_sizes, parse_out_shardings
from shardy_py.cli.registry import make_registry
from shardy_py.plugins.plugin_files import plugin_files


@frozen
class GivenProgram:
    """What a command line says about its program.

    Args:
        module: The path, the bytes of stdin, or a module that another process has parsed.
        mesh: The sizes of a mesh, or None.
        in_shardings: The shardings of arguments, or None.
        out_shardings: The shardings of results, or None.
        options: The options of the session.
    """

    module: Any
    mesh: dict[str, int] | None
    in_shardings: dict[int | str, Any] | None
    out_shardings: dict[int | str, Any] | None
    options: SessionOptions

    @classmethod
    def of(
        cls,
        *,
        file: str,
        untrusted: bool,
        mesh: str | None,
        in_shardings: Iterable[str],
        out_shardings: Iterable[str],
        strategy: Any,
        dedup_functions_fully: bool,
        inline_calls: bool,
        plugins: tuple[str, ...],
        blocked: tuple[str, ...],
        strict_plugins: bool,
        conservative: bool,
        extended_rules: bool,
    ) -> GivenProgram:
        """Return the program of the options that `shardy_py.cli.options.session_options` adds.

        Raises:
            ShardyError: an option or a plugin is not valid.
        """
        # Says what is wrong with plugins, once and with the line.
        registry = make_registry(
            plugins=plugins,
            blocked=blocked,
            strict_plugins=strict_plugins,
            conservative=conservative,
            extended_rules=extended_rules,
        )
        options = SessionOptions(
            strategy,
            conservative,
            extended_rules,
            dedup_functions_fully,
            inline_calls,
            plugin_files=plugin_files(plugins),
            blocked=blocked,
        )
        sizes = parse_mesh_sizes(mesh) if mesh is not None else None
        given = parse_in_shardings(in_shardings) or None, parse_out_shardings(out_shardings) or None
        return cls(read_input(file, untrusted=untrusted, registry=registry), sizes, *given, options)
