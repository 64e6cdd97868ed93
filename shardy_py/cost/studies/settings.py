"""The settings of a study, which a TOML file has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from attrs import evolve, field, fields

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.api.specs import parse_spec
from shardy_py.cost.sweeps.comparison import MEASURES, Measure, choose_measure
from shardy_py.errors import Diagnostic, OptionError, read_text_file, unknown_name
from shardy_py.plugins.plugin_files import plugin_files
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.support.texts import parse_toml
from shardy_py.values import frozen

TIE = 0.05
"""The part by which two estimates have to differ to rank schedules as XLA's bytes do, see the page on costs."""


@frozen
class StudyProgram:
    """A program of a study.

    Args:
        name: Its name in the table.
        file: The path of its file.
        in_shardings: Argument to sharding, as in ``data,None``.
        mesh: Axis to size; None for the meshes of the study.
    """

    name: str
    file: Path
    in_shardings: Mapping[str, str] = field(factory=dict)
    mesh: Mapping[str, int] | None = None

    def input(self, mesh: Mapping[str, int] | None) -> ProgramInput:
        """Return the program on a mesh; None for its own."""
        shardings: dict[int | str, Any] = {name: parse_spec(text) for name, text in self.in_shardings.items()}
        return ProgramInput(self.file, None if mesh is None else dict(mesh), in_shardings=shardings or None)


@frozen
class Study:
    """The settings of a study.

    Args:
        programs: The programs.
        schedules: Names of schedules, or paths of TOML files; the first is the one that others are compared with.
        meshes: The meshes, each axis to size; none for those that the programs have.
        machines: Names of machines, or paths of TOML files.
        random: The number of random schedules of each seed.
        seeds: The seeds.
        drop_entries: Whether to add each schedule without each of its entries: ablations.
        sorted_by: The measure by which schedules are ranked.
        tie: The part by which estimates have to differ to count as different.
        against_xla: Whether to compile each program in XLA for host devices, and count the bytes that it sends.
        plugins: Paths of plugin files.
    """

    programs: tuple[StudyProgram, ...]
    schedules: tuple[str, ...] = tuple(BUILTIN)
    meshes: tuple[Mapping[str, int], ...] = ()
    machines: tuple[str, ...] = ()
    random: int = 0
    seeds: tuple[int, ...] = (0,)
    drop_entries: bool = False
    sorted_by: Measure | None = None
    tie: float = TIE
    against_xla: bool = False
    plugins: tuple[str, ...] = ()

    @property
    def measure(self) -> Measure:
        """The measure by which schedules are ranked: by default time, and bytes without machines."""
        return choose_measure(self.sorted_by, self.machines or None)

    @property
    def options(self) -> SessionOptions:
        """Options with which programs are opened."""
        return SessionOptions(plugin_files=plugin_files(self.plugins))

    def combinations(self) -> Iterator[tuple[StudyProgram, Mapping[str, int] | None, str | None]]:
        """Yield each program with each of its meshes and each machine."""
        for program in self.programs:
            for mesh in (program.mesh,) if program.mesh is not None else self.meshes or (None,):
                for machine in self.machines or (None,):
                    yield program, mesh, machine


def read_study(path: str | Path) -> Study:
    """Return the study of a TOML file; paths in it are relative to its folder.

    Raises:
        OptionError: it cannot be read, or a setting is not valid.
    """
    file = Path(path)
    text = read_text_file(file, code="study", what="the study", hint="give a TOML file with the settings of a study")
    data = parse_toml(text, code="study", source=str(file))
    known = [item.name for item in fields(Study)]
    for name, value in data.items():
        if name not in known:
            problem = unknown_name("invalid-study", f"{name!r} is not a setting", name, known)
            raise OptionError(evolve(problem, location=str(file)))
        if name != "programs":
            is_valid, expected, example = _CHECKS[name]
            if not is_valid(value):
                _refuse(file, name, expected, example)
    programs = data.get("programs")
    if not isinstance(programs, dict) or not programs:
        _refuse(file, "programs", "names to files", '[programs]\nmlp = "mlp.mlir"')
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name != "programs"
    }
    for name in ("schedules", "machines", "plugins"):
        if name in settings:
            settings[name] = tuple(_path_or_name(item, file.parent) for item in settings[name])
    return Study(tuple(_program(name, value, file) for name, value in programs.items()), **settings)


def _program(name: str, value: Any, file: Path) -> StudyProgram:
    settings: Any = {"file": value} if isinstance(value, str) else value
    example = f'{name} = {{ file = "{name}.mlir", mesh = {{ data = 4 }}, in_shardings = {{ x = "data,None" }} }}'
    if not isinstance(settings, dict) or not isinstance(settings.get("file"), str):
        _refuse(file, f"programs.{name}", "a file, or a table with one", example)
    if unknown := settings.keys() - {"file", "mesh", "in_shardings"}:
        _refuse(file, f"programs.{name}.{min(unknown)}", "file, mesh or in_shardings", example)
    mesh, shardings = settings.get("mesh"), settings.get("in_shardings", {})
    if mesh is not None and not _is_mesh(mesh):
        _refuse(file, f"programs.{name}.mesh", "axes to sizes", example)
    if not isinstance(shardings, dict) or not all(isinstance(item, str) for item in shardings.values()):
        _refuse(file, f"programs.{name}.in_shardings", "arguments to shardings", example)
    return StudyProgram(name, file.parent / settings["file"], shardings, mesh)


def _path_or_name(text: str, folder: Path) -> str:
    return str(folder / text) if (folder / text).is_file() else text


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_mesh(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(_is_count(size) and size for size in value.values())


def _is_list_of(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_item, value))


_CHECKS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "schedules": (_is_list_of(_is_text), "a list of texts", 'schedules = ["default", "flat"]'),
    "machines": (_is_list_of(_is_text), "a list of texts", 'machines = ["h100-8"]'),
    "plugins": (_is_list_of(_is_text), "a list of texts", 'plugins = ["toy.py"]'),
    "meshes": (_is_list_of(_is_mesh), "a list of tables from axes to sizes", "meshes = [{ data = 4, model = 2 }]"),
    "seeds": (_is_list_of(_is_count), "a list of integers from 0 on", "seeds = [0, 1]"),
    "random": (_is_count, "an integer from 0 on", "random = 10"),
    "drop_entries": (lambda value: isinstance(value, bool), "true or false", "drop_entries = true"),
    "against_xla": (lambda value: isinstance(value, bool), "true or false", "against_xla = true"),
    "sorted_by": (lambda value: value in MEASURES, "time, bytes or memory", 'sorted_by = "time"'),
    "tie": (_is_number, "a number from 0 on", "tie = 0.05"),
}
"""The check of each setting but the programs, what it expects, and an example."""


def _refuse(file: Path, name: str, expected: str, example: str) -> NoReturn:
    raise OptionError(Diagnostic("invalid-study", f"expected {name} to be {expected}", str(file), hint=example))
