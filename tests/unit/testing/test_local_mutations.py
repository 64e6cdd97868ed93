"""Mutations of local programs: a wrong combiner, group, offset, pair or mask shows in what devices compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jaxlib", reason="programs are MLIR text")

from attrs import evolve  # noqa: E402

import shardy_py as sdy  # noqa: E402
from shardy_py.api.options import LocalOptions  # noqa: E402
from shardy_py.ir.graph.program import Op, Program  # noqa: E402
from shardy_py.ir.graph.program_copy import copy_program  # noqa: E402
from shardy_py.ir.interfaces.passes import PassContext  # noqa: E402
from shardy_py.local.pipeline import local_passes  # noqa: E402
from shardy_py.testing.sharded.devices import VirtualDevices  # noqa: E402
from shardy_py.testing.sharded.virtual_ops import SPACE, VirtualOps  # noqa: E402
from shardy_py.transforms.run import run  # noqa: E402
from tests.unit.testing.test_run_sharded import FUNCTIONS, LOOP, MESH, XY, X, one_op, plugin  # noqa: E402

MOVED = (
    MESH
    + f"""func.func @main(%x: tensor<8x8xf32> {XY}, %y: tensor<8x8xf32> {X}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  %0 = sdy.reshard %x <@mesh, [{{"y"}}, {{"x"}}]> : tensor<8x8xf32>
  %1 = "my.add"(%0, %0) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = sdy.reshard %y <@mesh, [{{}}, {{"x"}}]> : tensor<8x8xf32>
  %3 = "my.matmul"(%1, %2) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = sdy.reshard %3 <@mesh, [{{}}, {{}}]> : tensor<8x8xf32>
  return %4, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}}"""
)
PROGRAMS = [
    (LOOP, sdy.Combiner.ADD),
    (MOVED, sdy.Combiner.ADD),
    *((one_op("sum", "tensor<4xf32>"), combiner) for combiner in (sdy.Combiner.ADD, sdy.Combiner.MAX)),
    (one_op("sum", "tensor<5xf32>").replace("4x8x", "5x7x"), sdy.Combiner.ADD),
    (one_op("sum", "tensor<5xf32>").replace("4x8x", "5x7x"), sdy.Combiner.MIN),
    (MOVED.replace("8x8x", "6x6x"), sdy.Combiner.ADD),
    (MOVED.replace("8x8x", "7x7x"), sdy.Combiner.ADD),
    (MOVED.replace('[{{"y"}}, {{"x"}}]', "[{}, {}]").replace('[{"y"}, {"x"}]', '[{}, {"x", "y"}]'), sdy.Combiner.ADD),
]
REDUCERS = {sdy.Combiner.ADD: np.sum, sdy.Combiner.MAX: np.max, sdy.Combiner.MIN: np.min}
ORDERED = ("all_gather", "reduce_scatter", "all_to_all")


def make_local(text: str, combiner: sdy.Combiner) -> tuple[Program, Any]:
    """Return a local program for virtual devices, and what is known about its ops."""
    result = sdy.propagate(text, plugins=[plugin(combiner=combiner)], explicit_collectives=True)
    program = copy_program(result.program)
    context = PassContext(evolve(result.registry, local_ops={SPACE: VirtualOps()}))
    run(program, local_passes(LocalOptions(optimize=False)), context)
    return program, result.registry


def mutations(op: Op) -> Iterator[tuple[str, Any]]:
    """Yield other values of attributes of an op that make another op of it."""
    kind, attributes = op.name.removeprefix(f"{SPACE}."), op.attributes
    if "combiner" in attributes:
        others = [item for item in REDUCERS if item is not attributes["combiner"]]
        yield "combiner", others[0]
    if kind in ORDERED:
        yield "groups", tuple(tuple(reversed(group)) for group in attributes["groups"])
    if kind == "collective_permute":
        pairs = attributes["pairs"]
        yield "pairs", tuple((pairs[number - 1][0], target) for number, (_, target) in enumerate(pairs))
    table = attributes.get("table") if kind == "offset" else None
    if table and len(set(table)) > 1:
        high, low = max(table), min(table)
        yield "table", tuple(high + low - item for item in table)
    if kind == "scalar":
        yield "number", attributes["number"] * 0 + 3


def outcome(program: Program, registry: Any, functions: Any, arrays: Any) -> list[Any]:
    """Return the results on every device."""
    devices = VirtualDevices(program, functions, registry, "main")
    values = program.functions["main"].regions[0].block.arguments
    shards = [devices.split(array, value) for array, value in zip(arrays, values, strict=True)]
    rendezvous = devices.interpreters[0].rendezvous
    return rendezvous.run(lambda device: devices.interpreters[device].run("main", [item[device] for item in shards]))


def differs(first: list[Any], second: list[Any]) -> bool:
    """Return whether a device has another result."""
    return any(
        not np.allclose(left, right, equal_nan=True)
        for mine, theirs in zip(first, second, strict=True)
        for left, right in zip(mine, theirs, strict=True)
    )


def test_mutations_are_caught() -> None:
    """At least 19 of 20 mutations of collectives, offsets and masks change a result, none of them behind a softmax."""
    caught, missed = 0, []
    for text, combiner in PROGRAMS:
        functions = FUNCTIONS | {"my.sum": lambda x, reduce=REDUCERS[combiner]: reduce(x, axis=1)}
        program, registry = make_local(text, combiner)
        generator = np.random.default_rng(0)
        arguments = sdy.propagate(text, plugins=[plugin()]).main.regions[0].block.arguments
        arrays = [generator.uniform(-3, -1, value.shape) for value in arguments]
        expected = outcome(program, registry, functions, arrays)
        for op in list(program.walk()):
            for name, value in mutations(op) if op.name.startswith(f"{SPACE}.") else ():
                attribute = op.attributes[name]
                op.attributes[name] = value
                if differs(expected, outcome(program, registry, functions, arrays)):
                    caught += 1
                else:
                    missed.append(f"{op.name} {name}")
                op.attributes[name] = attribute
    assert caught >= 20
    assert len(missed) <= 0.05 * (caught + len(missed)), missed
