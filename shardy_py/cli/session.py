"""The program that a command line gives, with its mesh, its shardings and the options of its propagation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from shardy_py.api.keywords import keywords
from shardy_py.api.options import Like, Options, ProgramInput, ProgramOptions
from shardy_py.api.program_source import SessionOptions
from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.cli.files import read_input
from shardy_py.cli.registry import make_registry
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.select import find_frontend
from shardy_py.plugins.plugin_files import plugin_files
from shardy_py.support.arguments import parse_integer
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.cost.session import Session


def parse_mesh_sizes(text: str) -> dict[str, int]:
    """Return the axis sizes of ``data=4,model=2``.

    Raises:
        OptionError: it has another form.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (item.strip() for item in part.partition("="))
        number = parse_integer(size)
        if name in sizes:
            message = f"--mesh {text}: the axis {name!r} is there twice"
            raise OptionError(Diagnostic("invalid-mesh", message, hint="give each axis a name of its own"))
        if not name or number is None:
            raise OptionError(
                Diagnostic("invalid-mesh", f"--mesh {text}: {part!r} is not NAME=SIZE", hint="--mesh data=4,model=2")
            )
        sizes[name] = number
    return sizes


def parse_in_shardings(texts: Iterable[str]) -> dict[int | str, Any]:
    """Return the shardings of arguments that a command line gives.

    Raises:
        ShardyError: one has another form than ``arg0=data,None``.
    """
    return dict(_name_and_spec(text, "in-sharding", "arg0") for text in texts)


def parse_out_shardings(texts: Iterable[str]) -> dict[int | str, Any]:
    """Return the shardings of results that a command line gives.

    Raises:
        ShardyError: one has another form than ``result0=data,None``.
    """
    return dict(_name_and_spec(text, "out-sharding", "result0") for text in texts)


def parse_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Return the sizes of dynamic dimensions that a command line gives.

    Raises:
        OptionError: one has another form than ``arg0.0=64``.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, size = (item.strip() for item in text.rpartition("="))
        number = parse_integer(size)
        if not name or number is None:
            message = f"--size {text}: this is not DIMENSION=SIZE"
            raise OptionError(Diagnostic("invalid-size", message, hint="--size arg0.0=64"))
        sizes[name] = number
    return sizes


def _name_and_spec(text: str, option: str, example: str) -> tuple[str, Any]:
    name, equals, spec = text.partition("=")
    if not equals or not name.strip():
        kind = example.rstrip("0").upper()
        raise OptionError(
            Diagnostic(
                f"invalid-{option}s",
                f"--{option} {text}: this is not {'ARGUMENT' if kind == 'ARG' else kind}=SHARDING",
                hint=f"--{option} {example}=data,None",
            )
        )
    from shardy_py.api.specs import parse_spec

    return name.strip(), parse_spec(spec)


@frozen
class GivenProgram:
    """A program of a command line; it can be pickled.

    Args:
        input: The program: the path, the bytes of stdin, or a module that another process has parsed.
        options: The options of its propagation.
        file: The name of its file as it was given, a dash for stdin.
    """

    input: ProgramInput
    options: SessionOptions
    file: str = ""

    @classmethod
    def of(
        cls,
        *,
        file: str,
        untrusted: bool,
        mesh: str | None,
        in_shardings: Iterable[str],
        out_shardings: Iterable[str],
        sizes: Iterable[str],
        plugins: tuple[str, ...],
        like: Like | None = None,
        format_name: str | None = None,
        **options: Any,
    ) -> GivenProgram:
        """Return the program of the options that `shardy_py.cli.options.program_options` adds.

        Raises:
            ShardyError: an option or a plugin is not valid.
        """
        session_options = SessionOptions(plugin_files=plugin_files(plugins), **options)
        # Says what is wrong with plugins, once and with the line.
        registry = make_registry(session_options)
        program_input = ProgramInput(
            read_input(file, untrusted=untrusted, registry=registry, format_name=format_name),
            None if mesh is None else parse_mesh_sizes(mesh),
            in_shardings=parse_in_shardings(in_shardings) or None,
            out_shardings=parse_out_shardings(out_shardings) or None,
            sizes=parse_sizes(sizes) or None,
            like=like,
        )
        return cls(program_input, session_options, file)

    def propagate(self, **options: Any) -> Result:
        """Return the propagated program.

        Args:
            options: More options of `shardy_py.propagate`.
        """
        return propagate(**keywords(self.input), **self.options.run_options(), **options)

    @property
    def module(self) -> Any:
        """The module as it was given, with the sizes that were given with it."""
        given = self.input
        if not given.sizes:
            return given.module
        registry = make_registry(self.options)
        from shardy_py.api.given_sizes import module_of_sizes

        return module_of_sizes(given.module, find_frontend(given.module, registry), given.sizes, registry)

    def open(self, *, keep_names: bool = False) -> Session:
        """Return the session of the program.

        Args:
            keep_names: Whether the session keeps the names of values for reports.
        """
        return self.options.open(self.input, keep_names=keep_names)


def take_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options that only `propagate` has out of those of a command, and return them."""
    names = {item.name for item in attrs.fields(Options)} - {item.name for item in attrs.fields(ProgramOptions)}
    return {name: options.pop(name) for name in sorted(names & options.keys())}
