"""Functions of JAX from local programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError, require_library
from shardy_py.frontends.mlir import write_back
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.arguments import TOKEN, refuse_index
from shardy_py.jax.callable.device_program import DeviceProgram
from shardy_py.jax.callable.forget_dynamic_sizes import ForgetDynamicSizesPass
from shardy_py.jax.callable.meshes import make_mesh, uncut_axes
from shardy_py.jax.callable.placement import place_program
from shardy_py.jax.devices import choose_devices
from shardy_py.jax.form.donate_arguments import donated_arguments
from shardy_py.jax.kernels import register_kernels
from shardy_py.jax.local.local_program import LocalProgram
from shardy_py.jax.named_shardings import memory_kinds
from shardy_py.jax.signature import JaxSignature
from shardy_py.jax.unsupported_programs import refuse_what_cannot_run, refuse_what_xla_partitions


def make_device_program(
    local: LocalProgram,
    main: Op,
    semantics: OpSemantics,
    *,
    devices: Sequence[Any] | None = None,
    signature: JaxSignature | None = None,
) -> DeviceProgram:
    """Return a local program as a function of JAX.

    Args:
        local: The local program.
        main: The main function of the propagated program, with what it says of donations and memories.
        semantics: What is known about ops.
        devices: The devices, at least as many as the program has; the first ones of ``jax.devices()`` by default.
        signature: The trees of arguments and results of a function of JAX, and the functions that it calls back.

    Raises:
        UnsupportedError: the program cannot run, or has arguments or results that are not arrays.
        OptionError: there are too few devices.
    """
    require_library("jax", purpose="running a module needs", extra="jax")
    register_kernels()
    callbacks = () if signature is None else signature.host_callbacks
    refuse_what_cannot_run(local.program, callbacks=len(callbacks))
    local = _without_dynamic_sizes(local, semantics)
    refuse_what_xla_partitions(local.program)
    _refuse_dynamic_sizes(local, main)
    tokens = _count_tokens(main)
    refuse_index(entry_arguments(main), "argument")
    refuse_index(main.function_results, "result")
    if devices is None and signature is not None:
        devices = signature.devices
    chosen = choose_devices(local.device_count, devices, {"mesh": local.mesh})
    return DeviceProgram(
        local=local,
        placement=place_program(local.mesh, local.arguments, local.results),
        devices=tuple(chosen),
        mesh=make_mesh(local.mesh, chosen, uncut_axes(local.mesh)),
        donated=frozenset(number - tokens for number in donated_arguments(main)) | _donated_by_signature(signature),
        in_memories=tuple(memory_kinds(main, "arg_attrs", len(local.arguments) + tokens)[tokens:]),
        out_memories=tuple(memory_kinds(main, "res_attrs", len(local.results) + tokens)[tokens:]),
        is_ordered=bool(tokens),
        signature=signature,
    )


def _donated_by_signature(signature: JaxSignature | None) -> frozenset[int]:
    """Return the numbers of the donated arguments of a function of JAX.

    JAX marks those in the module only that are as large as a result before anything is sharded.
    """
    if signature is None:
        return frozenset()
    return frozenset(index for index, number in enumerate(signature.used) if signature.arguments[number].donated)


def _refuse_dynamic_sizes(local: LocalProgram, main: Op) -> None:
    """Check that all arguments and results have sizes.

    Raises:
        UnsupportedError: one has a dynamic size.
    """
    argument = "give it, as by sizes={{'arg{number}.{dim}': 64}}, or run it on host devices: local().run"
    result = "return an array of the largest size, and its size beside it, or run it on host devices: local().run"
    for kind, ports, hint in (("argument", local.arguments, argument), ("result", local.results, result)):
        for number, port in enumerate(ports):
            if port.is_dynamic:
                dim = port.type.shape.index(-1)
                message = f"{kind} {number} has a dynamic size in dimension {dim}, which no array of JAX has"
                fix = hint.format(number=number, dim=dim)
                raise UnsupportedError(Diagnostic("no-array-type", message, main.location, main.name, fix))


def _without_dynamic_sizes(local: LocalProgram, semantics: OpSemantics) -> LocalProgram:
    """Return a local program without sizes that are set: JAX's modules have static sizes only.

    Raises:
        UnsupportedError: an op has to know such a size.
    """
    if next(iter(ops_named(local.program, "stablehlo.set_dimension_size")), None) is None:
        return local
    program = local.copied_program()
    ForgetDynamicSizesPass().run(program, PassContext(semantics))
    return evolve(local, module=write_back(program), program=program)


def _count_tokens(main: Op) -> int:
    """Return the number of tokens in front of the arguments, and of the results, of the main function.

    Raises:
        UnsupportedError: they are not as JAX writes a function with ordered effects.
    """
    counts = set()
    for values in (entry_arguments(main), main.function_results):
        tokens = [value.index for value in values if str(value.type) == TOKEN]
        counts.add(len(tokens) if tokens == list(range(len(tokens))) else -1)
    count = counts.pop()
    if counts or count not in (0, 1):
        message = "the main function does not take one token as its first argument and give one as its first result"
        hint = "leave tokens out of its arguments and results: jax.experimental.io_callback(..., ordered=True) has one"
        raise UnsupportedError(Diagnostic("no-array-type", message, main.location, main.name, hint))
    return count
