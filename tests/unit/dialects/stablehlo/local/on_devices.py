"""Several ops of StableHLO on one sharded tensor, in one program on host devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

import shardy_py as sdy
from shardy_py.jax.unsharded import compile_unsharded
from tests.unit.local.host_devices import compare_padded

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[3, 1, 0, 2, 7, 6, 5, 4]>'
UNEVEN = 'sdy.mesh @mesh = <["x"=2, "y"=3], device_ids=[3, 1, 0, 2, 5, 4]>'
CONSTANTS = """
  %c = stablehlo.constant dense<1.5> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
"""


@frozen
class Case:
    """An op on the argument ``%a``, or on further arguments that ``{name}`` stands for.

    Args:
        text: The op, without its result; ``{0}`` is the first further argument.
        result: The type of its result.
        others: The shapes of the further arguments.
    """

    text: str
    result: str
    others: Sequence[tuple[int, ...]] = ()


def type_of(shape: Sequence[int]) -> str:
    """Return the type of a tensor of floats."""
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def run_cases(
    cases: Sequence[Case], shape: Sequence[int], sharding: str, *, others: str = "", prelude: str = "", mesh: str = MESH
) -> tuple[str, list[str]]:
    """Run cases as one program on devices, and compare each result with that of one device.

    Args:
        cases: The cases.
        shape: The shape of ``%a``.
        sharding: Its sharding.
        others: The sharding of the further arguments.
        prelude: Ops before the cases.
        mesh: The mesh.

    Returns:
        The local program, and the names of the ops that were gathered.
    """
    text, arrays = program_of(cases, shape, sharding, others=others, prelude=prelude, mesh=mesh)
    result = sdy.propagate(text, explicit_collectives=True)
    # Each op where propagation left it, so that its local form is seen at work.
    local = result.local(optimize=False)
    expected = compile_unsharded(text, semantics=result.registry)(*arrays)
    for program in (local, result.local()):
        for actual, reference in zip(program.run(*arrays), expected, strict=True):
            np.testing.assert_allclose(actual, reference, rtol=2e-5, atol=2e-5)
    return local.text, [warning.op for warning in local.warnings]


def run_padded(
    cases: Sequence[Case], shape: Sequence[int], sharding: str, *, others: str = "", prelude: str = ""
) -> list[str]:
    """Run cases on six devices, with dimensions that need not divide, whatever their padding holds.

    Returns:
        The names of the ops that were gathered.
    """
    text, arrays = program_of(cases, shape, sharding, others=others, prelude=prelude, mesh=UNEVEN)
    return compare_padded(text, *arrays)


def program_of(
    cases: Sequence[Case],
    shape: Sequence[int],
    sharding: str,
    *,
    others: str = "",
    prelude: str = "",
    mesh: str = MESH,
) -> tuple[str, list[Any]]:
    """Return the program of some cases, and arrays for its arguments; the arguments are those of `run_cases`."""
    shapes = [tuple(shape), *(other for case in cases for other in case.others)]
    names = ["%a", *(f"%b{number}" for number in range(len(shapes) - 1))]
    marks = [_mark(sharding), *[_mark(others)] * (len(shapes) - 1)]
    arguments = ", ".join(
        f"{name}: {type_of(sizes)}{mark}" for name, sizes, mark in zip(names, shapes, marks, strict=True)
    )
    rest = iter(names[1:])
    lines = [
        f"  %r{number} = {case.text.format(*(next(rest) for _ in case.others))}" for number, case in enumerate(cases)
    ]
    types = ", ".join(case.result for case in cases)
    results = ", ".join(f"%r{number}" for number in range(len(cases)))
    head = f"{mesh}\nfunc.func @main({arguments}) -> ({types}) {{{CONSTANTS}"
    text = "\n".join([head, prelude, *lines, f"  return {results} : {types}", "}"])
    rng = np.random.default_rng(0)
    return text, [rng.normal(size=item).astype(np.float32) for item in shapes]


def _mark(sharding: str) -> str:
    return f" {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}" if sharding else ""
