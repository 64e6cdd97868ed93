"""Pipelines of kernel passes by name, and a module after each of their passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field
from xdsl.dialects import builtin
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic, OptionError, ShardyError, VerificationError, unknown_name
from shardy_py.guards.error_texts import describe_error
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.locations import inherit_locations
from shardy_py.kernels.opt.modules import KernelModule
from shardy_py.kernels.passes.base import KernelContext, KernelPass
from shardy_py.kernels.passes.pipeline import LOOP_PIPELINE, verify_ops, with_plugin_passes
from shardy_py.kernels.run.kernel import functions_of
from shardy_py.plugins import Registry
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.transforms.pass_names import split_pipeline
from shardy_py.transforms.pass_options import make_pass, split_options
from shardy_py.transforms.run import passes_of, run
from shardy_py.values import frozen

WHOLE = "kernel-pipeline"
"""The name of the pipeline with all passes of kernels; ``until`` is the number or name of its last pass."""
INITIAL = "initial"


@frozen(eq=False)
class ModuleStage:
    """A module at a stage.

    Args:
        label: The number and name of the pass before it; ``initial`` before the first one.
        kernel: The module.
        error: What the pass ended with; the module is the one before it then.
    """

    label: str
    kernel: KernelModule
    error: ShardyError | None = field(default=None)

    def is_called(self, name: str) -> bool:
        """Return whether a name means this stage: its label, its pass, or its number."""
        number, _, pass_ = self.label.partition(".")
        return name in (self.label, pass_) or (name.isdigit() and number.isdigit() and int(name) == int(number))


def parse_kernel_pipeline(text: str, registry: Registry | None = None) -> tuple[KernelPass, ...]:
    """Return the passes of a pipeline, in order.

    Args:
        text: Names with options, as for MLIR: ``inline{max-ops=10},cse``, or ``kernel-pipeline{until=lower-tensors}``.
        registry: The registry with the passes of plugins.

    Raises:
        OptionError: malformed text, an unknown pass or option, or a value that does not fit.

    >>> [item.name for item in parse_kernel_pipeline("inline,cse")]
    ['inline', 'cse']
    """
    pipeline: tuple[KernelPass, ...] = passes_of(LOOP_PIPELINE)
    if registry is not None:
        pipeline = with_plugin_passes(pipeline, registry)
    known = {item.name: item for item in pipeline}
    passes: list[KernelPass] = []
    for name, options in split_pipeline(text):
        values = split_options(options)
        if name == WHOLE:
            passes += _until(pipeline, values)
        elif name not in known:
            raise OptionError(unknown_name("unknown-pass", f"there is no pass {name!r}", name, [*known, WHOLE]))
        elif "name" in values:
            raise OptionError(Diagnostic("unknown-option", f"the pass {name} has no option 'name'"))
        else:
            # A pass of a plugin has no options here, as it is made by the plugin.
            class_: Any = type(known[name])
            passes.append(make_pass(class_, values) if values else known[name])
    return tuple(passes)


def _until(passes: tuple[KernelPass, ...], values: Mapping[str, str]) -> tuple[KernelPass, ...]:
    """Return passes up to the one that the option ``until`` names; by default all."""
    if set(values) - {"until"}:
        raise OptionError(Diagnostic("unknown-option", f"the only option of {WHOLE} is until", hint="until=PASS"))
    if "until" not in values:
        return passes
    last = values["until"]
    numbers = [number for number, item in enumerate(passes) if last in (item.name, str(number), f"{number:02}")]
    if not numbers:
        names = [item.name for item in passes]
        raise OptionError(unknown_name("unknown-pass", f"there is no pass {last!r} in {WHOLE}", last, names))
    return passes[: numbers[-1] + 1]


def module_stages(kernel: KernelModule, passes: Sequence[KernelPass], device: DeviceSpec) -> Iterator[ModuleStage]:
    """Yield a module before the first pass, and after each one, each as a module of its own; stop at an error.

    Args:
        kernel: The module; it stays as it is.
        passes: The passes.
        device: The device that the kernel is for.
    """
    yield ModuleStage(INITIAL, kernel)
    module = kernel.module.clone()
    with no_garbage_collection():
        for number, item in enumerate(passes):
            label = f"{number:02}.{item.name}"
            error = _failure(module, item, device)
            if error is not None:
                yield ModuleStage(label, kernel, error)
                return
            inherit_locations(module)
            # A later pass changes the module in place.
            kernel = KernelModule(module.clone(), kernel.name)
            yield ModuleStage(label, kernel)


def _failure(module: builtin.ModuleOp, item: KernelPass, device: DeviceSpec) -> ShardyError | None:
    """Run a pass; return what it ends with, or what is wrong with the module afterwards."""
    try:
        run(module, (item,), KernelContext(device))
        verify_ops(module)
    except ShardyError as error:
        return error
    except VerifyException as error:
        message = f"the module is not valid behind the pass: {str(error).splitlines()[0]}"
        return VerificationError(Diagnostic("broken-module", message, op=item.name))
    except Exception as error:
        # A pass of a plugin, or one over a module that no emitter writes, may fail in any way: that is what is asked.
        hint = "it takes functions of one block: give it the module before scf-to-cf" if _has_branches(module) else ""
        message = f"the pass ends with {describe_error(error)}"
        return VerificationError(Diagnostic("pass-failed", message, op=item.name, hint=hint))
    return None


def _has_branches(module: builtin.ModuleOp) -> bool:
    return any(len(function.body.blocks) > 1 for function in functions_of(module).values())


def find_stage(stages: Sequence[ModuleStage], name: str) -> ModuleStage:
    """Return the last stage with a name: its label, its pass or its number.

    Raises:
        OptionError: there is none.
    """
    matches = [stage for stage in stages if stage.is_called(name)]
    if not matches:
        labels = [stage.label for stage in stages]
        raise OptionError(unknown_name("unknown-stage", f"there is no stage {name!r}", name, labels))
    return matches[-1]


def run_passes(kernel: KernelModule, passes: Sequence[KernelPass], device: DeviceSpec) -> list[ModuleStage]:
    """Return all stages of a module.

    Raises:
        ShardyError: a pass ends with an error; it names the pass.
    """
    stages = list(module_stages(kernel, passes, device))
    last = stages[-1]
    if last.error is not None:
        raise type(last.error)(*(evolve(item, location=f"pass {last.label}") for item in last.error.diagnostics))
    return stages
