"""``shardy emit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from shardy_py.api.propagate import propagate
from shardy_py.cli.files import STDOUT, echo_report, print_warnings, read_input, write_output
from shardy_py.cli.progress import progress_bar, step_bar
from shardy_py.cli.registry import plugin_registry
from shardy_py.errors import Diagnostic, OptionError, read_text_file
from shardy_py.kernels import Fusion, Kernel, emit, emit_tiles, get_device, kernel_coverage, read_fusion, read_fusions
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.reasons import explain
from shardy_py.kernels.recompute import recompute_warning
from shardy_py.kernels.report import (
    coverage_json,
    format_coverage,
    format_kernels,
    format_run,
    format_timings,
    kernel_json,
    kernels_json,
)
from shardy_py.kernels.requirements import require_xdsl
from shardy_py.plugins import Registry
from shardy_py.report.terminal_text import text_width, wrap_line

RANDOM = "random"


def run_emit(
    *,
    file: str,
    untrusted: bool,
    as_list: bool,
    as_coverage: bool,
    fusion: int | None,
    shard_device: int | None,
    target: str,
    stage: str | None,
    stages_dir: str | None,
    device_spec: str,
    spelling: Any,
    level: str,
    tile_sizes: str | None,
    as_run: bool,
    as_time: bool,
    against: str | None,
    inputs: str,
    seed: int,
    outputs: str | None,
    as_explanation: bool,
    as_tuned: bool,
    draw: str | None,
    block: int,
    warp: int,
    page: str | None,
    as_json: bool,
    output: str | None,
    **registry_options: Any,
) -> None:
    """Print what was asked of the kernel of a file: by default its module after the last pass."""
    _check(as_list=as_list or as_coverage, fusion=fusion, target=target, stage=stage)
    printed = {"--run": as_run, "--time": as_time, "--json": as_json, "--explain": as_explanation}
    printed["--tune"] = as_tuned
    printed["--draw"] = draw is not None
    printed["--page"] = page is not None
    listed = [name for name, is_asked in (("--list", as_list), ("--coverage", as_coverage)) if is_asked]
    _check_printed([name for name, is_asked in printed.items() if is_asked], listed)
    _check_against(against, as_time=as_time, stage=stage)
    registry = plugin_registry(**registry_options)
    device = get_device(device_spec, known=registry.devices)
    source = read_input(file, untrusted=untrusted, registry=registry)
    if shard_device is not None:
        source = local_text(source, shard_device, registry)
    if as_coverage:
        with progress_bar("Finding pieces") as show:
            coverage = kernel_coverage(source, registry=registry, on_progress=show)
        _print_report(format_coverage(coverage), coverage_json(coverage) if as_json else None, output)
        return
    if as_list:
        with step_bar(1) as steps:
            steps.start("Finding the pieces of the program")
            fusions = read_fusions(source, registry=registry)
        kernels = []
        with progress_bar("Choosing emitters", total=len(fusions)) as show:
            for number, item in enumerate(fusions, start=1):
                kernels.append(emit(item, device=device))
                show(number, len(fusions), kernels[-1].name)
        _print_report(format_kernels(kernels), kernels_json(kernels) if as_json else None, output)
        return
    if fusion is None:
        chosen = read_fusion(source, registry=registry)
    else:
        chosen = _chosen(read_fusions(source, registry=registry), fusion)
    if level == "tile":
        tiled = emit_tiles(chosen, tile_sizes=_sizes(tile_sizes), device=device, spelling=spelling)
        _print(
            _ran(tiled.kernel, tiled.run, inputs, seed, outputs, tiles=tiled.tile_count) if as_run else tiled.text,
            output,
        )
        return
    kernel = emit(chosen, device=device, spelling=spelling)
    if (warning := recompute_warning(kernel)) is not None:
        print_warnings([warning])
    if stages_dir is not None:
        write_stages(kernel, Path(stages_dir))
    if as_explanation:
        _print_report("\n".join(explain(kernel)), None, output)
    elif as_tuned:
        _print_report(_tuned(kernel), None, output)
    elif draw is not None:
        _draw(kernel, draw, block, warp, output)
    elif page is not None:
        _write_page(kernel, page)
    elif as_time:
        _print(_timed(kernel, inputs, seed, against), output)
    elif as_run:
        _print(_ran(kernel, partial(kernel.run, stage=stage), inputs, seed, outputs), output)
    elif as_json:
        _print(kernel_json(kernel, target), output)
    elif stages_dir is None or stage is not None or output is not None or target != "mlir":
        _print(_text(kernel, target, stage), output)


def local_text(source: Any, device: int, registry: Registry) -> str:
    """Return the text of the program that one device runs; warnings go to stderr.

    Args:
        source: The program for all devices, with shardings.
        device: The number of the device.
        registry: The definitions of ops.
    """
    result = propagate(source, registry=registry, local=True)
    local = result.local()
    print_warnings((*result.warnings, *local.warnings))
    return str(local.per_device(device))


def _check(*, as_list: bool, fusion: int | None, target: str, stage: str | None) -> None:
    """Check that the options do not exclude each other."""
    if as_list and fusion is not None:
        raise OptionError(Diagnostic("option-conflict", "--list, --coverage and --fusion exclude each other"))
    if stage is not None and target != "mlir":
        message = f"--stage is about modules of MLIR, not about --target {target}"
        raise OptionError(Diagnostic("option-conflict", message))


def _check_printed(options: Sequence[str], listed: Sequence[str]) -> None:
    """Check that at most one output option is given; ``--json`` may accompany a list."""
    outputs = [*listed, *(name for name in options if name != "--json")] if listed else list(options)
    if len(outputs) > 1:
        raise OptionError(Diagnostic("option-conflict", f"{' and '.join(outputs)} exclude each other"))


def _check_against(against: str | None, *, as_time: bool, stage: str | None) -> None:
    """Check the options of a timing: what is beside the kernel, and that it is the last stage that runs."""
    if against is not None and not as_time:
        message = "--against says what is timed beside the kernel"
        raise OptionError(Diagnostic("option-conflict", message, hint="add --time"))
    if as_time and stage is not None:
        raise OptionError(Diagnostic("option-conflict", "--time and --stage exclude each other"))


def _chosen(fusions: Sequence[Fusion], number: int) -> Fusion:
    if number < len(fusions):
        return fusions[number]
    message = f"there is no piece {number}; there are {len(fusions)}, numbered from 0"
    raise OptionError(Diagnostic("unknown-fusion", message, hint="shardy emit FILE --list"))


def _text(kernel: Kernel, target: str, stage: str | None) -> str:
    if target != "mlir":
        return kernel.llvm if target == "llvm" else kernel.ptx if target == "ptx" else kernel.sass
    return kernel.text if stage is None else kernel.stage(stage)


def write_stages(kernel: Kernel, directory: Path) -> None:
    """Write the module at every stage to a file of its own, then the texts for LLVM and for the device.

    They are called ``initial.mlir``, ``03.erase-dead-functions.mlir``, ``to-llvm.ll`` and ``kernel.ptx``.
    """
    stages = kernel.stages
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in stages.items():
        write_output(directory / f"{name}.mlir", f"{text.rstrip()}\n")
    write_output(directory / "to-llvm.ll", f"{kernel.llvm.rstrip()}\n")
    write_output(directory / "kernel.ptx", f"{kernel.ptx.rstrip()}\n")


def _sizes(text: str | None) -> list[int] | None:
    """Return the sizes of a tile."""
    if text is None:
        return None
    try:
        return [int(size) for size in text.split(",") if text]
    except ValueError:
        message = f"--tile-sizes takes numbers, not {text!r}"
        raise OptionError(Diagnostic("tile-sizes", message, hint="give one for every dimension: 32,64")) from None


def _ran(
    kernel: Kernel,
    run: Callable[..., list[Any]],
    inputs: str,
    seed: int,
    outputs: str | None,
    *,
    tiles: int | None = None,
) -> str:
    require_xdsl()
    from shardy_py.jax.npz import outputs_file
    from shardy_py.kernels.run.arrays import random_arrays

    arrays = random_arrays(kernel.fusion, seed) if inputs == RANDOM else _load_arrays(kernel, Path(inputs))
    results = run(*arrays)
    if outputs is not None:
        write_output(outputs, outputs_file(results))
    return format_run(kernel, results, tiles=tiles)


def _tuned(kernel: Kernel) -> str:
    require_xdsl()
    from shardy_py.kernels.tune import format_tuned, tuned_launches

    return format_tuned(kernel, tuned_launches(kernel))


def _draw(kernel: Kernel, form: str, block: int, warp: int, output: str | None) -> None:
    require_xdsl()
    from shardy_py.kernels.draw.accesses import warp_accesses
    from shardy_py.kernels.draw.pictures import draw_svg, draw_text

    accesses = warp_accesses(kernel, block=block, warp=warp)
    if form == "svg":
        _print(draw_svg(accesses), output)
    else:
        _print_report(draw_text(accesses, width=text_width() if output is None else None), None, output)


def _write_page(kernel: Kernel, path: str) -> None:
    html = kernel.page().html
    write_output(path, html)
    if path != STDOUT:
        click.echo(f"wrote {path}: {len(html.encode()) // 1024} KiB")


def _timed(kernel: Kernel, inputs: str, seed: int, against: str | None) -> str:
    require_xdsl()
    from shardy_py.kernels.run.arrays import random_arrays

    other = None
    if against is not None:
        hint = "give a file that 'shardy emit --target ptx -o FILE' wrote, or one of another compiler"
        other = read_text_file(against, code="unreadable-ptx", what="the PTX", hint=hint)
    arrays = random_arrays(kernel.fusion, seed) if inputs == RANDOM else _load_arrays(kernel, Path(inputs))
    timings = {kernel.name: kernel.time(*arrays)}
    if other is not None and against is not None:
        timings[against] = kernel.time(*arrays, ptx=other)
    return format_timings(timings)


def _load_arrays(kernel: Kernel, path: Path) -> list[Any]:
    from shardy_py.jax.arguments import ArrayType
    from shardy_py.jax.npz import read_inputs
    from shardy_py.layout.numpy_arrays import numpy_dtype

    values = kernel.fusion.argument_parameters
    return read_inputs(path, [ArrayType(shape_of(value), numpy_dtype(element_type_of(value))) for value in values])


def _print_report(text: str, data: str | None, output: str | None) -> None:
    """Print a report, or the data in its place; the lines of a report are no longer than those of a terminal."""
    if data is not None or output is not None:
        _print(text if data is None else data, output)
        return
    width = text_width()
    echo_report("\n".join(line for long in text.rstrip().split("\n") for line in wrap_line(long, width)))


def _print(text: str, output: str | None) -> None:
    if output is None:
        click.echo(text.rstrip())
    else:
        write_output(output, f"{text.rstrip()}\n")
