"""Propagated modules through XLA, for the devices of JAX (extra ``jax``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError, require_library
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.jax.arguments import array_types, refuse_index
from shardy_py.jax.compiled import CompiledModule
from shardy_py.jax.devices import choose_devices, device_count
from shardy_py.jax.executable import compile_bytecode
from shardy_py.jax.form import for_xla
from shardy_py.jax.form.donate_arguments import donated_arguments
from shardy_py.jax.form.faults import refuse_faults
from shardy_py.jax.kernels import register_kernels
from shardy_py.jax.named_shardings import memory_kinds, to_named_sharding
from shardy_py.jax.probe import probe
from shardy_py.jax.signature import JaxSignature
from shardy_py.jax.unsupported_programs import refuse_what_cannot_run


def to_jax(
    module: Any,
    *,
    semantics: OpSemantics,
    devices: Sequence[Any] | None = None,
    leave_open: bool = False,
    name: str = "-",
    signature: JaxSignature | None = None,
    warnings: list[Diagnostic] | None = None,
    compiler_options: Mapping[str, Any] | None = None,
) -> CompiledModule:
    """Compile a propagated module through XLA, for the devices of JAX.

    Args:
        module: A module as the propagation pipeline leaves it: a `jaxlib.mlir.ir.Module`, or anything else that
            `to_module` takes. It stays as it is; what is compiled is its form for XLA.
        semantics: What the dialects say about the ops (a `Registry`).
        devices: The devices, at least as many as the largest mesh has; the first ones of ``jax.devices()`` by default.
        leave_open: Whether values without a sharding are left to XLA's own propagation.
        name: What locations call a source without a name of its own.
        signature: The trees of arguments and results of a function of JAX, and the functions that it calls back.
        warnings: Gets the faults of XLA's partitioner that the program meets, where it is compiled to be measured.
            Without it they are errors, or Python's `warnings` where wrong numbers are possible only.
        compiler_options: Options of XLA.

    Raises:
        UnsupportedError: XLA's partitioner is known to compute an op wrongly or not at all, there is no function named
            main, meshes are over different devices, an argument or result is not an array, or XLA refuses the module.
        OptionError: fewer devices than the largest mesh has.
    """
    require_library("jax", purpose="running a module needs", extra="jax")
    register_kernels()
    program, faults = for_xla(module, semantics=semantics, leave_open=leave_open, name=name)
    if warnings is None:
        refuse_faults(faults)
    else:
        warnings.extend(faults)
    main = _main(program)
    callbacks = () if signature is None else signature.host_callbacks
    refuse_what_cannot_run(program, callbacks=len(callbacks))
    arguments, results = main.regions[0].blocks[0].arguments, main.function_results
    refuse_index(arguments, "argument")
    refuse_index(results, "result")
    types = array_types(arguments, "argument"), array_types(results, "result")
    meshes = program.meshes
    chosen = choose_devices(device_count(meshes.values()), devices, meshes)

    def placed(values: Sequence[Value], attributes: str) -> tuple[Any, ...]:
        shardings = [program.shardings.get(value.id) for value in values]
        kinds = memory_kinds(main, attributes, len(shardings))
        pairs = zip(shardings, kinds, strict=True)
        return tuple(to_named_sharding(sharding, meshes, chosen, memory_kind=kind) for sharding, kind in pairs)

    in_shardings, out_shardings = placed(arguments, "arg_attrs"), placed(results, "res_attrs")
    bytecode = BytesIO()
    program.origin.module.operation.write_bytecode(bytecode)
    probe(program, bytecode.getvalue(), len(chosen), [item for item in faults if item.severity == "error"])
    executable = compile_bytecode(
        bytecode.getvalue(), chosen, overrides=tuple((compiler_options or {}).items()), host_callbacks=callbacks
    )
    donated = donated_arguments(main)
    return CompiledModule(tuple(chosen), executable, in_shardings, out_shardings, *types, donated, signature)


def _main(program: Program) -> Op:
    main = program.functions.get("main")
    if main is None or not main.regions[0].blocks:
        raise UnsupportedError(Diagnostic("no-main-function", "XLA compiles the function named main, there is none"))
    return main
