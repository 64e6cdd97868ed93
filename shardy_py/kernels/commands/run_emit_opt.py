"""``shardy emit-opt``."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from shardy_py.cli.files import STDIN, read_stdin, write_output
from shardy_py.cli.registry import plugin_registry
from shardy_py.errors import Diagnostic, OptionError, read_text_file
from shardy_py.kernels import get_device
from shardy_py.kernels.report import extent
from shardy_py.kernels.requirements import require_xdsl
from shardy_py.report.data import diagnostics_data

RANDOM = "random"
_MODES = {
    "as_run": "--run",
    "as_sanitized": "--sanitize",
    "compared": "--compare",
    "as_bisected": "--bisect",
    "as_reduced": "--reduce",
}


def run_emit_opt(
    *,
    file: str,
    pipeline: str,
    stages_dir: str | None,
    device_spec: str,
    spelling: str,
    generic: bool,
    blocks: str | None,
    threads: str | None,
    inputs: str,
    seed: int,
    units: float,
    outputs: str | None,
    as_json: bool,
    output: str | None,
    **others: Any,
) -> None:
    """Run passes over a module, and print the module or the output that an option selects."""
    require_xdsl()
    from shardy_py.kernels.opt.modules import launch_of_module, parse_sizes, read_module
    from shardy_py.kernels.opt.stages import parse_kernel_pipeline, run_passes

    modes = {name: others.pop(name) for name in _MODES}
    chosen = [_MODES[name] for name, is_chosen in modes.items() if is_chosen]
    if len(chosen) > 1:
        raise OptionError(Diagnostic("option-conflict", f"{' and '.join(chosen)} exclude each other"))
    registry = plugin_registry(**others)
    device = get_device(device_spec, known=registry.devices)
    passes = parse_kernel_pipeline(pipeline, registry)
    kernel = read_module(_text_of(file), "<stdin>" if file == STDIN else file)
    if not chosen:
        stages = run_passes(kernel, passes, device)
        if stages_dir is not None:
            _write_stages(stages, Path(stages_dir), spelling, generic=generic)
        if stages_dir is None or output is not None:
            _print(stages[-1].kernel.print(spelling=spelling, generic=generic), output)
        return
    sizes = [None if text is None else parse_sizes(text) for text in (blocks, threads)]
    launch = launch_of_module(kernel, blocks=sizes[0], threads=sizes[1])
    session = _Session(kernel, passes, device, launch, inputs, seed, units)
    if modes["as_run"]:
        _print(session.run(outputs, as_json=as_json), output)
    elif modes["as_sanitized"]:
        _finish(*session.sanitize(as_json=as_json), output)
    elif modes["compared"]:
        _finish(*session.compare(*modes["compared"], as_json=as_json), output)
    elif modes["as_bisected"]:
        _finish(*session.bisect(as_json=as_json), output)
    else:
        _print(session.reduced(spelling, generic=generic), output)


def _text_of(file: str) -> str:
    if file != STDIN:
        hint = "give a module that 'shardy emit --stage' printed, or one of your own"
        return read_text_file(file, code="unreadable-kernel", what="the module", hint=hint)
    try:
        return read_stdin().decode()
    except UnicodeDecodeError as error:
        raise OptionError(Diagnostic("unreadable-kernel", f"stdin is not text: {error}")) from None


def _write_stages(stages: Sequence[Any], directory: Path, spelling: str, *, generic: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for stage in stages:
        write_output(directory / f"{stage.label}.mlir", stage.kernel.print(spelling=spelling, generic=generic))


class _Session:
    """A module with its passes, its grid and the arrays that it runs on."""

    def __init__(
        self, kernel: Any, passes: Any, device: Any, launch: Any, inputs: str, seed: int, units: float
    ) -> None:
        from shardy_py.kernels.opt.run_module import module_arguments, random_inputs

        self.kernel, self.passes, self.device, self.launch, self.units = kernel, passes, device, launch, units
        self.arguments = module_arguments(kernel)
        self.arrays = random_inputs(self.arguments, seed) if inputs == RANDOM else self._load_arrays(Path(inputs))

    def _load_arrays(self, path: Path) -> list[Any]:
        from shardy_py.jax.arguments import ArrayType
        from shardy_py.jax.npz import read_inputs

        return read_inputs(path, [ArrayType(argument.shape, argument.dtype) for argument in self.arguments])

    def _stages(self) -> list[Any]:
        from shardy_py.kernels.opt.stages import run_passes

        return run_passes(self.kernel, self.passes, self.device)

    def _results(self, stage: Any) -> list[Any]:
        from shardy_py.kernels.opt.run_module import run_module

        warp = self.device.threads_per_warp
        return run_module(stage.kernel, self.launch, self.arguments, self.arrays, stage=stage.label, warp=warp)

    def run(self, outputs: str | None, *, as_json: bool) -> str:
        """Return what the last stage computes."""
        from shardy_py.jax.npz import outputs_file

        results = self._results(self._stages()[-1])
        if outputs is not None:
            write_output(outputs, outputs_file([result.array for result in results]))
        rows = [_summary(result) for result in results]
        if as_json:
            return json.dumps({"blocks": self.launch.blocks, "threads": self.launch.threads, "results": rows}, indent=2)
        grid = f"{list(self.launch.blocks)} x {list(self.launch.threads)} threads"
        lines = [
            f"{row['name']}: {row['dtype']}{row['shape']}, "
            f"from {row['least']} to {row['greatest']}, in sum {row['sum']}"
            for row in rows
        ]
        return "\n".join([grid, *lines])

    def sanitize(self, *, as_json: bool) -> tuple[str, bool]:
        """Return a report of the faults of the last stage, and whether there are any."""
        from shardy_py.kernels.opt.sanitizer import sanitize

        stage = self._stages()[-1]
        warp = self.device.threads_per_warp
        faults = sanitize(stage.kernel, self.launch, self.arguments, self.arrays, stage=stage.label, warp=warp)
        if as_json:
            return json.dumps(diagnostics_data(faults), indent=2), bool(faults)
        return "\n".join(map(str, faults)) or "no faults", bool(faults)

    def compare(self, first: str, second: str, *, as_json: bool) -> tuple[str, bool]:
        """Return how the results of two stages differ, and whether they do."""
        from shardy_py.kernels.opt.differences import differences
        from shardy_py.kernels.opt.stages import find_stage

        stages = self._stages()
        chosen = [find_stage(stages, name) for name in (first, second)]
        changes = differences(*(self._results(stage) for stage in chosen), units=self.units)
        labels = [stage.label for stage in chosen]
        if as_json:
            return json.dumps({"stages": labels, "differences": list(map(str, changes))}, indent=2), bool(changes)
        text = f"{labels[0]} and {labels[1]} compute the same" if not changes else f"{labels[0]} and {labels[1]} differ"
        return "\n".join([text, *map(str, changes)]), bool(changes)

    def _culprit(self, kernel: Any, passes: Any) -> Any:
        from shardy_py.kernels.opt.differences import first_difference

        return first_difference(kernel, passes, self.device, self.launch, self.arguments, self.arrays, units=self.units)

    def bisect(self, *, as_json: bool) -> tuple[str, bool]:
        """Return a report of the first pass after which the module is wrong, and whether there is one."""
        culprit = self._culprit(self.kernel, self.passes)
        count = len(self.passes)
        if culprit is None:
            text = f"all {count + 1} stages compute the same"
            if not count:
                text = "the module runs without a fault; --pass-pipeline kernel-pipeline gives passes to compare"
            return (json.dumps({"stage": None}) if as_json else text), False
        reasons = [str(culprit.error)] if culprit.error is not None else list(map(str, culprit.differences))
        if as_json:
            return json.dumps({"stage": culprit.stage.label, "code": culprit.code, "reasons": reasons}, indent=2), True
        where = "before the first pass" if culprit.number < 0 else f"behind pass {culprit.stage.label}"
        lines = [f"wrong {where} [{culprit.code}]", *reasons]
        if culprit.number >= 0 and culprit.stage.error is None:
            before, after = (item.kernel.print().splitlines() for item in (culprit.before, culprit.stage))
            lines += difflib.unified_diff(before, after, culprit.before.label, culprit.stage.label, lineterm="", n=1)
        return "\n".join(lines), True

    def reduced(self, spelling: str, *, generic: bool) -> str:
        """Reduce the module, and return the smallest one that is wrong in the same way.

        Raises:
            OptionError: the module is not wrong.
        """
        from shardy_py.kernels.opt.reduce import module_size, reduce_module

        culprit = self._culprit(self.kernel, self.passes)
        if culprit is None:
            message, hint = "no stage of the module is wrong", "give the passes, or the inputs, with which it is"
            raise OptionError(Diagnostic("nothing-to-reduce", message, self.kernel.name, hint=hint))
        passes = self.passes[: culprit.number + 1]

        def is_wrong(candidate: Any) -> bool:
            candidate_culprit = self._culprit(candidate, passes)
            return candidate_culprit is not None and (candidate_culprit.number, candidate_culprit.code) == (
                culprit.number,
                culprit.code,
            )

        smallest = reduce_module(self.kernel, is_wrong)
        sizes = [module_size(item.module) for item in (self.kernel, smallest)]
        print(f"{culprit.stage.label} [{culprit.code}]: {sizes[0]} ops, reduced to {sizes[1]}", file=sys.stderr)
        return smallest.print(spelling=spelling, generic=generic)


def _summary(result: Any) -> dict[str, Any]:
    array = result.array
    row = {"name": result.name, "dtype": str(array.dtype), "shape": list(array.shape)}
    if not array.size:
        return {**row, "least": None, "greatest": None, "sum": None}
    return row | dict(zip(("least", "greatest", "sum"), extent(array), strict=True))


def _print(text: str, output: str | None) -> None:
    if output is None:
        click.echo(text.rstrip())
    else:
        write_output(output, f"{text.rstrip()}\n")


def _finish(text: str, is_wrong: bool, output: str | None) -> None:
    """Print a report; the exit code is 1 where something is wrong."""
    _print(text, output)
    if is_wrong:
        click.get_current_context().exit(1)
