"""The shardings that `jax.jit` decides for a program: read from what XLA writes down while it compiles."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.jax.devices import choose_devices, device_count
from shardy_py.jax.executable import compile_bytecode
from shardy_py.jax.figures.collectives import list_collectives
from shardy_py.jax.figures.hlo_text import parse_computations
from shardy_py.jax.figures.measure import hlo_bindings
from shardy_py.jax.figures.values import XlaCollective
from shardy_py.jax.kernels import register_kernels
from shardy_py.values import frozen

_DUMPS = ("03.after_minimal_partitioner_with_global_shapes.mlir", "02.after_propagation.mlir")
"""The files in which XLA writes down a propagated module: with reshards around ops that want others, or before."""


@frozen(eq=False)
class JitDecisions:
    """The decisions of `jax.jit` about a program.

    Args:
        program: The module that XLA propagated, with a sharding for each op, and with reshards as a result has them.
        collectives: The collectives of the compiled program; None where XLA propagated it, but did not compile it.
        platform: What JAX calls the devices.
        problem: Why XLA did not compile it, or "".
    """

    program: Program
    collectives: tuple[XlaCollective, ...] | None
    platform: str
    problem: str = ""


def find_jit_decisions(
    bytecode: bytes, program: Program, semantics: OpSemantics, devices: Sequence[Any] | None = None
) -> JitDecisions:
    """Compile a program that is not propagated as `jax.jit` does, and return what XLA decides.

    Args:
        bytecode: The program as StableHLO, with the shardings that it starts from.
        program: The same as an op graph.
        semantics: The definitions of ops.
        devices: The devices; the first ones of ``jax.devices()`` by default.

    Raises:
        UnsupportedError: XLA refuses the program before it propagates.
        OptionError: there are fewer devices than the largest mesh has.
    """
    register_kernels()
    meshes = program.meshes
    chosen = choose_devices(device_count(meshes.values()), devices, meshes)
    main = program.functions["main"]
    arguments = main.regions[0].blocks[0].arguments
    open_interface = (
        [program.shardings.get(value.id) is None for value in arguments],
        [program.shardings.get(value.id) is None for value in main.function_results],
    )
    with tempfile.TemporaryDirectory() as folder:
        executable, problem = None, ""
        overrides: list[tuple[str, str | bool]] = [
            ("xla_dump_to", folder),
            ("xla_dump_hlo_pass_re", "shardy-xla"),
            ("xla_dump_hlo_as_text", True),
        ]
        try:
            executable = compile_bytecode(bytecode, chosen, overrides=overrides, open_interface=open_interface)
        except UnsupportedError as error:
            problem = error.diagnostics[0].message
        text = _after_propagation(Path(folder))
    if text is None:
        message = problem or "XLA wrote down no shardings: it did not propagate the program with Shardy"
        hint = "a program for one device is not propagated"
        raise UnsupportedError(Diagnostic("no-jit-decisions", message, hint=hint))
    decided = import_module(parse_module(text, name=_DUMPS[0]), name=_DUMPS[0])
    load_shardings(decided, semantics)
    collectives = None if executable is None else collectives_of(executable, len(chosen))
    return JitDecisions(decided, collectives, chosen[0].platform, problem)


def collectives_of(executable: Any, count: int) -> tuple[XlaCollective, ...]:
    """Return the collectives of a compiled program.

    Args:
        executable: XLA's loaded executable.
        count: The number of devices.
    """
    options = hlo_bindings().HloPrintOptions()
    options.print_large_constants = False
    text = executable.hlo_modules()[0].to_string(options)
    return tuple(list_collectives(parse_computations(text), count))


def _after_propagation(folder: Path) -> str | None:
    """Return the text of the propagated module among XLA's dumps: that of the last module that was propagated."""
    folders = sorted(folder.glob("shardy/module_*"), key=lambda path: int(path.name.split(".")[0].split("_")[1]))
    # One that XLA does not compile may have no reshards, and other versions of jaxlib have no dump of them.
    paths = [path for inner in reversed(folders) for name in _DUMPS if (path := inner / name).exists()]
    return paths[0].read_text() if paths else None
