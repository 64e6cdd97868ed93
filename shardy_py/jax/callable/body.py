"""The module of a local program in the form in which JAX merges it into a module of its own."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from attrs import field

from shardy_py.frontends.mlir import import_module, write_back
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.jax.arguments import ArrayType
from shardy_py.jax.callable.callbacks import has_side_effects
from shardy_py.jax.local.local_program import LocalProgram
from shardy_py.jax.local.replicas import keep_layout
from shardy_py.jax.unsharded import without_shardings
from shardy_py.transforms.exported_ops import count_from_the_front
from shardy_py.values import frozen


@frozen(eq=False)
class LocalBody:
    """A local program that JAX can merge; two bodies are equal only if they are the same one.

    Args:
        bytecode: Its module, without shardings and attributes of arguments.
        results: The types of its results on one device.
        has_side_effects: Whether it does something that its results do not show.
        is_ordered: Whether this happens in the order of the caller's effects: then its first argument is a token, and
            its first result.
        host_callbacks: The functions of this process that it calls, by the numbers that it has for them.
        keepalive: What has to live as long as these functions may be called.
    """

    bytecode: bytes = field(repr=False)
    results: tuple[ArrayType, ...]
    has_side_effects: bool = False
    is_ordered: bool = False
    host_callbacks: tuple[Any, ...] = ()
    keepalive: Any = field(default=None, repr=False)


def make_body(local: LocalProgram, copies: Sequence[Sequence[int]], *, is_ordered: bool) -> LocalBody:
    """Return the body of a local program.

    Args:
        local: The local program; it stays as it is.
        copies: For each group of devices that runs the program, the partition that each of its devices is.
        is_ordered: Whether its main function takes a token and gives one.

    Raises:
        CannotLocalize: the program cannot be written for these partitions.
    """
    program = local.copied_program()
    for op in program.walk():
        local.ops.list_groups(op)
    program = import_module(without_shardings(write_back(program)))
    count_from_the_front(program)
    if [list(copy) for copy in copies] != [list(range(local.device_count))]:
        local.ops.renumber_devices(program, copies)
    for op in ops_named(program, "stablehlo.fft"):
        keep_layout(program, op)
    acts = any(has_side_effects(op) for op in program.walk())
    _drop_port_attributes(program)
    bytecode = BytesIO()
    write_back(program).operation.write_bytecode(bytecode)
    results = tuple(ArrayType(port.shard_shape, port.type.dtype) for port in local.results)
    return LocalBody(bytecode.getvalue(), results, acts, is_ordered)


def _drop_port_attributes(program: Program) -> None:
    """Leave donations, layouts and memories of arguments and results to the caller."""
    main = program.functions["main"]
    for name in ("arg_attrs", "res_attrs"):
        if name in main.attributes:
            del main.attributes[name]
