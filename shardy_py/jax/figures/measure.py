"""Figures of a compiled module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from shardy_py.jax.figures.collectives import list_collectives
from shardy_py.jax.figures.hlo_text import HloTextComputation, parse_computations
from shardy_py.jax.figures.loops import Costs, LoopWeights, runs_of, trip_count
from shardy_py.jax.figures.values import XlaFigures


class MeasuredProgram(Protocol):
    """A compiled program of which XLA's figures are read."""

    @property
    def devices(self) -> Sequence[Any]:
        """The devices that it is compiled for."""
        ...

    @property
    def executable(self) -> Any:
        """XLA's loaded executable."""
        ...


def measure(compiled: MeasuredProgram) -> XlaFigures:
    """Return what XLA counts for one device of a compiled module."""
    hlo = hlo_bindings()
    client = compiled.devices[0].client
    module = compiled.executable.hlo_modules()[0]
    options = hlo.HloPrintOptions()
    options.print_large_constants = False
    computations = parse_computations(module.to_string(options))
    options.print_metadata = False
    plain = parse_computations(module.to_string(options))
    entry = next(item.name for item in plain.values() if item.is_entry)

    def analyse(text: str) -> Costs:
        return _costs(client, hlo.hlo_module_from_text(text))

    weights = LoopWeights(plain, analyse)
    weights._once[entry] = _costs(client, module)
    flops, transcendentals, accessed = weights.total(entry)
    # XLA counts -1 operation and -1 byte for a custom call, as it does not know it.
    unknown = custom_calls(plain)
    memory = compiled.executable.get_compiled_memory_stats()
    return XlaFigures(
        flops + unknown,
        transcendentals,
        accessed + unknown,
        tuple(list_collectives(computations, len(compiled.devices))),
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
        memory.alias_size_in_bytes,
        memory.temp_size_in_bytes,
        _unknown_loops(plain),
    )


def _costs(client: Any, module: Any) -> Costs:
    from jaxlib import _jax

    analysis = _jax.hlo_module_cost_analysis(client, module)
    return analysis.get("flops", 0.0), analysis.get("transcendentals", 0.0), analysis.get("bytes accessed", 0.0)


def hlo_bindings() -> Any:
    """Return the module of jaxlib that has XLA's classes of HLO."""
    try:
        from jaxlib import _hlo
    except ImportError:
        # Where jaxlib 0.8.1 has them.
        from jaxlib import _jax as _hlo
    return _hlo


def custom_calls(computations: dict[str, HloTextComputation]) -> float:
    """Return the number of runs of custom calls."""
    runs = runs_of(computations)
    return sum(
        count * sum(item.opcode == "custom-call" for item in computations[name].instructions)
        for name, count in runs.items()
    )


def _unknown_loops(computations: dict[str, HloTextComputation]) -> int:
    loops = [item for name in runs_of(computations) for item in computations[name].instructions]
    return sum(item.opcode == "while" and trip_count(item) is None for item in loops)
