"""``--against-jit``: what the program of `jax.jit` costs, and where it is decided otherwise."""

from __future__ import annotations

from typing import Any

import attrs

from shardy_py.cli.progress import ShowProgress
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.estimates import Cost
from shardy_py.jax.commands.run_compare_jit import compare_in_child
from shardy_py.jax.jit_comparison import JitComparison
from shardy_py.values import frozen


@frozen
class AgainstJit:
    """A program under an order of ops, beside the program that `jax.jit` makes of the same one.

    Args:
        here: The cost under the order.
        jit: The cost of jit's program, by the same rules.
        comparison: The decisions of both.
    """

    here: Cost
    jit: Cost
    comparison: JitComparison

    def __str__(self) -> str:
        rows = [("bytes sent", _value(self.here.communication_bytes), _value(self.jit.communication_bytes))]
        rows.append(("peak memory", _value(self.here.peak_bytes), _value(self.jit.peak_bytes)))
        if self.here.seconds.value is not None:
            rows.insert(0, ("estimated time", _value(self.here.seconds), _value(self.jit.seconds)))
        lines = [f"  {name:<15} here {shardy_value}, jit {jit_value}" for name, shardy_value, jit_value in rows]
        return "\n".join(["Against jax.jit", *lines, str(self.comparison)])

    def to_json(self) -> dict[str, Any]:
        """Return both costs and the comparison as plain lists, dictionaries and numbers."""
        comparison = {**attrs.asdict(self.comparison), "equal": self.comparison.equal}
        return {"here": self.here.to_json(), "jit": self.jit.to_json(), "comparison": comparison}


def price_against_jit(
    program: GivenProgram,
    schedule: Any,
    shardy_cost: Cost,
    machine: Any,
    setting: dict[str, Any],
    *,
    timeout: float,
    show: ShowProgress,
) -> AgainstJit:
    """Return a priced program beside that of `jax.jit`, which a process of its own compiles.

    Args:
        program: The program.
        schedule: Its order of ops, or None.
        shardy_cost: Its cost.
        machine: The machine, or None.
        setting: More options of `Session.evaluate`.
        timeout: The seconds that XLA may take.
        show: Called with the steps of the other process.

    Raises:
        ShardyError: XLA refuses the program.
    """
    jit = attrs.evolve(program, input=attrs.evolve(program.input, like="jit"))
    cost = jit.open().evaluate(None, machine, partitioner="xla", **setting).cost
    answer = compare_in_child(program, "", schedule, timeout=timeout, show=show)
    assert answer.comparison is not None
    return AgainstJit(shardy_cost, cost, answer.comparison)


def _value(quantity: Any) -> str:
    from shardy_py.support.texts import format_bytes, format_seconds

    if quantity.value is None:
        return "unknown"
    return format_seconds(quantity.value) if quantity.unit == "s" else format_bytes(round(quantity.value))
