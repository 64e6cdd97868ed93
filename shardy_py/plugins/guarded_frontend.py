"""Guarded frontends and emitters of plugins: each answer has the promised type, or is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from shardy_py.errors import with_article
from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import Check, Guard, InvalidAnswer, as_boolean
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.emission import KernelEmitter
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen
class GuardedFrontend(Frontend):
    """A frontend whose every method is called behind the guard.

    Args:
        frontend: The frontend of the plugin.
        owner: The words that name the plugin.
    """

    frontend: Frontend
    owner: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the frontend."""
        return self.frontend.name

    def accepts(self, source: object) -> bool:
        """Return whether the frontend accepts a source."""
        answer: bool = self._ask("accepts", source, check=as_boolean)
        return answer

    def import_program(self, source: Any) -> Program:
        """Return the op graph of a program."""
        program: Program = self._ask("import_program", source, check=_as(Program, "a Program"))
        return program

    def import_verified(self, source: Any) -> Program:
        """Return the op graph of a program that the caller knows to be valid."""
        program: Program = self._ask("import_verified", source, check=_as(Program, "a Program"))
        return program

    def source_name(self, source: Any) -> str:
        """Return the name of the file of a source, or ""."""
        name: str = self._ask("source_name", source, check=_as(str, "a str"))
        return name

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return a source in a form that is safe to read here."""
        return self._ask("isolate", source, name=name)

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the line that constrains a tensor, or ""."""
        line: str = self._ask("constraint_code", sharding, mesh, check=_as(str, "a str"))
        return line

    def with_sizes(self, source: Any, sizes: Mapping[str, int]) -> Any:
        """Return a source with sizes in the place of dynamic ones, or None."""
        return self._ask("with_sizes", source, sizes)

    def write_back(self, program: Program) -> Any:
        """Return the updated native form."""
        return self._ask("write_back", program)

    def print_text(self, source: Any) -> str:
        """Return the text of a native program."""
        text: str = self._ask("print_text", source, check=_as(str, "a str"))
        return text

    def parse_text(self, text: str, *, name: str = "-") -> Any:
        """Return a source from its text."""
        return self._ask("parse_text", text, name=name)

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of values by value id."""
        names = self._ask("printed_names", program, check=_names)
        return {number: PrintedName(*item) for number, item in names.items()}

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names of the arguments of a function in the native program."""
        names: Sequence[str] = self._ask("argument_names", program, function, check=_texts)
        return names

    def argument_aliases(self, program: Program, function: Op) -> Mapping[str, int]:
        """Return the further names of the arguments of a function, to their numbers."""
        aliases: Mapping[str, int] = self._ask("argument_aliases", program, function, check=_aliases)
        return aliases

    def op_scope(self, program: Program, op: Op) -> str:
        """Return the path of names that an op is in."""
        scope: str = self._ask("op_scope", program, op, check=_as(str, "a str"))
        return scope

    def extend_registry(self, program: Program, registry: Any) -> Any:
        """Return a registry extended by the frontend."""
        return self._ask("extend_registry", program, registry, check=_as(type(registry), "a Registry"))

    def to_bytes(self, source: Any) -> bytes:
        """Return the form for other processes."""
        content: bytes = self._ask("to_bytes", source, check=_as(bytes, "bytes"))
        return content

    def from_bytes(self, data: bytes, *, name: str = "-") -> Any:
        """Return a source from the form for other processes."""
        return self._ask("from_bytes", data, name=name)

    def write_file(self, native: Any, path: Path) -> None:
        """Write the native form to a file."""
        self._ask("write_file", native, path)

    @property
    def writes_files(self) -> bool:
        """True if the frontend has a form of files."""
        return self.frontend.writes_files

    @property
    def writes_local(self) -> bool:
        """True if the frontend has a form of local programs."""
        return self.frontend.writes_local

    def write_local(self, program: Program) -> Any:
        """Return the native form of a local program."""
        return self._ask("write_local", program)

    def argument_arrays(self, program: Program) -> Mapping[int, Any]:
        """Return the arrays of arguments that a program brings itself."""
        arrays: Mapping[int, Any] = self._ask("argument_arrays", program)
        return arrays

    def run_local(self, native: Any, device_count: int, shards: Sequence[Any]) -> Sequence[Any]:
        """Return the shards of the results on all devices."""
        results: Sequence[Any] = self._ask("run_local", native, device_count, shards)
        return results

    def to_mlir(self, native: Any) -> Any:
        """Return the native form as the MLIR frontend accepts it."""
        return self._ask("to_mlir", native)

    def verify_native(self, native: Any, *, name: str = "-") -> None:
        """Check the native form."""
        self._ask("verify_native", native, name=name)

    def run_native_pass(self, program: Program, name: str) -> None:
        """Run a pass of the native library."""
        self._ask("run_native_pass", program, name)

    def _ask(self, method: str, *arguments: Any, check: Check | None = None, **keywords: Any) -> Any:
        function = partial(getattr(self.frontend, method), **keywords)
        guard = Guard(function, f"{method} of the frontend {self.name!r}", self.owner, code="frontend-failed")
        return guard.call(*arguments, check=check)


def _as(class_: type, wanted: str) -> Check:
    def check(answer: Any, op: Op) -> Any:
        if not isinstance(answer, class_):
            hint = "is a return missing?" if answer is None else ""
            raise InvalidAnswer(f"returned {shown(answer)}, not {wanted}", hint)
        return answer

    return check


def _names(answer: Any, op: Op) -> Any:
    if not isinstance(answer, Mapping):
        raise InvalidAnswer(f"returned {shown(answer)}, not a mapping of value ids to names")
    for number, item in answer.items():
        if not isinstance(number, int) or not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], str):
            raise InvalidAnswer(f"gives {shown(item)} for {shown(number)}, not a PrintedName for the id of a value")
    return answer


def _texts(answer: Any, op: Op) -> tuple[str, ...]:
    if not isinstance(answer, (list, tuple)) or not all(isinstance(item, str) for item in answer):
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of names", "return () for none")
    return tuple(answer)


def _aliases(answer: Any, op: Op) -> Any:
    if not isinstance(answer, Mapping):
        raise InvalidAnswer(f"returned {shown(answer)}, not a mapping of names to numbers", "return {} for none")
    for name, number in answer.items():
        if not isinstance(name, str) or type(number) is not int:
            raise InvalidAnswer(f"gives {shown(number)} for {shown(name)}, not the number of an argument for a name")
    return answer


@frozen(eq=False)
class GuardedEmitter:
    """An emitter whose every method is called behind the guard.

    Args:
        emitter: The emitter of the plugin.
        owner: The words that name the plugin.
    """

    emitter: KernelEmitter
    owner: str

    @property
    def name(self) -> str:
        """The name of the emitter."""
        return self.emitter.name

    def accepts(self, fusion: Any) -> str:
        """Return why the emitter takes a fusion, or ""."""
        answer: str = self._guard("accepts").call(fusion, check=_text)
        return answer

    def launch(self, fusion: Any, device: Any) -> Any:
        """Return the blocks and threads of a fusion."""
        return self._guard("launch").call(fusion, device, check=_one("Launch"))

    def entry(self, functions: Any, launch: Any) -> Any:
        """Return the entry function."""
        return self._guard("entry").call(functions, launch, check=_one("FuncOp"))

    def _guard(self, method: str) -> Guard:
        function = getattr(self.emitter, method)
        return Guard(function, f"{method} of the emitter {self.name!r}", self.owner, code="emitter-failed")


def _text(answer: Any, op: Op) -> str:
    if not isinstance(answer, str):
        raise InvalidAnswer(
            f"returned {shown(answer)}, not a text", 'return the reason, or "" for a fusion that it does not take'
        )
    return answer


def _one(name: str) -> Any:
    def check(answer: Any, op: Op) -> Any:
        # The classes are those of rooms above this one, and of xDSL.
        if type(answer).__name__ != name:
            raise InvalidAnswer(f"returned {shown(answer)}, not {with_article(name)}")
        return answer

    return check
